"""Texts as features: encoded once before the stream, named in key and record, and never passed to methods."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cglsuite import Catalogue, DatasetSpec, EncoderSpec
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, SpecError, UnknownNameError
from cglsuite.cells import resolve_cell, run_cell
from cglsuite.cells.keys import cell_key
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import build_stream
from cglsuite.cells.spec import CellSpec
from cglsuite.cells.storage.store import Store
from cglsuite.graphs import AttributedNodeData, NodeData
from cglsuite.graphs.encoders import hashing, tf_idf
from cglsuite.host import PluginRecord
from cglsuite.study.display import spec_facts
from cglsuite.testing import check_encoder, examine, tiny_catalogue
from cglsuite.testing.streams import FINE_TUNING, with_specs

RECORD = PluginRecord(distribution="with-texts", version="1.0", entry_point="m", module="with_texts", status="ok")
NODES, TEXTS = "testing-nodes/class-il@testing-1", "testing-texts/class-il@testing-1"
CODE = '''
"""The tiny nodes with texts, of which most words tell the class, and an encoder that notes its calls."""
from pathlib import Path

import numpy as np
from cglsuite.graphs import AttributedNodeData
from cglsuite.testing import tiny_catalogue

CALLS = []


def load(root):
    tiny = tiny_catalogue()
    data = tiny.resolve(tiny.get("dataset", "testing-nodes"))(root)
    words = [["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"][c] for c in data.y.tolist()]
    return AttributedNodeData(**vars(data), text=tuple(f"{word} number {k % 7}" for k, word in enumerate(words)))


def lengths(root):
    """Encode a text as its length and its first letter."""
    CALLS.append("loaded")
    return lambda texts: np.array([[len(text), ord(text[:1] or "-")] for text in texts], np.float32) / 100


def stateful(root):
    """Count calls."""
    calls = []

    def encode(texts):
        calls.append(1)
        return np.full((len(texts), 2), len(calls))

    return encode


def broken(root):
    """Forget a text."""
    return lambda texts: np.zeros((len(texts) - 1, 2))
'''


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tiny streams, one with texts, and a third party's encoders."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code/with_texts.py").write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    tiny = tiny_catalogue()
    scenario = dataclasses.replace(tiny.scenario(NODES), name=TEXTS, dataset="testing-texts", dataset_hyperparameters=())
    specs: list[Any] = [DatasetSpec(name="testing-texts", summary="s", factory="with_texts:load", embedded=True), scenario]
    specs += [
        EncoderSpec(
            name=name, summary="s", citation="c", factory=f"with_texts:{name}", model="m", revision="7", licence="MIT", cutoff="2020-01"
        )
        for name in ("lengths", "stateful", "broken")
    ]
    yield with_specs(tiny, specs, RECORD)
    sys.modules.pop("with_texts", None)


def cell(catalogue: Catalogue, features: str = "given", scenario: str = TEXTS) -> CellSpec:
    overrides = {"training.epochs": 2, "scenario.features": features}
    return resolve_cell(catalogue, scenario, FINE_TUNING, overrides=overrides)


def ran(catalogue: Catalogue, features: str, folder: Path) -> Record:
    record = run_cell(cell(catalogue, features), catalogue, Store(folder))
    assert record.done, record.reason
    return record


def test_the_record_names_the_encoder_and_its_vectors(catalogue: Catalogue, tmp_path: Path) -> None:
    given, encoded = (ran(catalogue, features, tmp_path / "store") for features in ("given", "text:lengths"))
    assert "features" not in given.provenance
    facts = encoded.provenance["features"]
    assert {**facts, "sha256": len(facts["sha256"])} == {
        "name": "lengths", "provider": "with-texts", "model": "m", "revision": "7", "licence": "MIT", "cutoff": "2020-01", "sha256": 64,
    }  # fmt: skip
    (maker,) = [part for part in encoded.makers if part.get("role") == "encoder"]
    assert (maker["name"], maker["distribution"]) == ("lengths", "with-texts")
    assert encoded.provenance["data"] != given.provenance["data"]
    assert encoded.cell["configuration"]["scenario.features"] == "text:lengths"
    assert "scenario.features" not in given.cell["configuration"]


def test_encoded_once(catalogue: Catalogue, tmp_path: Path) -> None:
    first = ran(catalogue, "text:lengths", tmp_path / "a")
    ran(catalogue, "given", tmp_path / "a")  # the process now holds other data
    again = ran(catalogue, "text:lengths", tmp_path / "b")
    assert sys.modules["with_texts"].CALLS == ["loaded"]
    assert again.provenance["features"] == first.provenance["features"]
    assert again.matrix == first.matrix


def test_the_key_covers_the_encoder(catalogue: Catalogue) -> None:
    keys = [cell_key(cell(catalogue, features), catalogue) for features in ("given", "text:lengths", "text:tf-idf", "text:hashing")]
    assert len(set(keys)) == 4
    path = Path(sys.modules["with_texts"].__file__ or "") if "with_texts" in sys.modules else None
    assert path is None  # planning imports no encoder


@pytest.mark.parametrize("name", ["tf-idf", "hashing", "random", "lengths"])
def test_streams_hold_vectors_instead_of_texts(catalogue: Catalogue, name: str) -> None:
    stream: Any = build_stream(cell(catalogue, f"text:{name}"), catalogue)
    assert type(stream.data) is NodeData
    assert not hasattr(stream.data, "text")
    assert stream.data.x.dtype == torch.float32


def test_data_without_texts(catalogue: Catalogue, tmp_path: Path) -> None:
    record = run_cell(cell(catalogue, "text:tf-idf", NODES), catalogue, Store(tmp_path))
    assert (record.status, record.reason) == ("skipped", "scenario.features = text:tf-idf: the nodes of testing-nodes have no texts")


def test_other_values(catalogue: Catalogue) -> None:
    for value in ("text:", "tf-idf", "Text:tf-idf"):
        with pytest.raises(SpecError, match="scenario.features = .*expected given, or text:NAME"):
            cell(catalogue, value)
    with pytest.raises(SpecError, match="LC"):
        cell(catalogue, "text:tf-idf", "testing-links/class-il@testing-1")
    with pytest.raises(UnknownNameError, match="unknown encoder 'tfidf'.*tf-idf"):
        cell_key(cell(catalogue, "text:tfidf"), catalogue)


def test_as_many_texts_as_nodes() -> None:
    data = {"x": torch.zeros(2, 1), "edge_index": torch.zeros(2, 0, dtype=torch.int64), "y": torch.tensor([0, 1]), "n_classes": 2}
    with pytest.raises(DataError, match="1 texts for 2 nodes"):
        AttributedNodeData(**data, text=("one",))


def test_hashed_words_of_a_text_depend_on_no_other(tmp_path: Path) -> None:
    texts = ["fast web server", "web log", "", "log log"]
    encode = hashing(DataRoot(cache=tmp_path))
    whole = encode(texts).toarray()
    np.testing.assert_array_equal(whole, np.concatenate([encode([text]).toarray() for text in texts]))
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), [1, 1, 0, 1])
    assert whole.shape == (4, 4096)
    alone = tf_idf(DataRoot(cache=tmp_path))
    assert alone(texts).shape != alone(texts[:1]).shape


@pytest.mark.parametrize("name", ["tf-idf", "hashing", "random", "lengths"])
def test_encoders_conform(catalogue: Catalogue, name: str) -> None:
    report = examine("encoder", name, catalogue, only=("factory", "documentation", "declaration", "vectors", "pure"))
    report.raise_failures()
    assert len(list(report)) == 5


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["tf-idf", "hashing", "random"])
def test_encoders_conform_in_every_process(name: str) -> None:
    check_encoder(name)


@pytest.mark.parametrize(("name", "check", "message"), [("stateful", "pure", "two calls"), ("broken", "vectors", r"shape \[5, 2\]")])
def test_encoders_that_do_not_conform(catalogue: Catalogue, name: str, check: str, message: str) -> None:
    (found,) = examine("encoder", name, catalogue, only=(check, "factory", "vectors")).failed
    assert found.check == check
    assert re.search(message, found.message)


def test_what_is_known_of_a_model_is_shown() -> None:
    spec = EncoderSpec(name="m", summary="s", factory="a:b", model="m-1", revision="7", tokens=64, cutoff="2020-01")
    assert dict(spec_facts(spec)).items() >= {"model": "m-1", "revision": "7", "tokens": 64, "cutoff": "2020-01"}.items()
