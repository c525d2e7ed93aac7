"""Nodes with real targets as users bring them: one data set from every form, what counts as targets, and cells on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import cglsuite
from cglsuite.base.errors import DataError, SpecError
from cglsuite.cells.run import build_stream
from cglsuite.cells.spec import resolve_cell
from cglsuite.graphs import NodeTargetData
from cglsuite.graphs.files.named import named
from cglsuite.host.catalogue import load_catalogue
from cglsuite.study.data import as_data_file

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(60, 3)).astype(np.float32)
EDGES = np.unique(_RNG.integers(0, 60, (2, 200)), axis=1)
ARRAYS: dict[str, Any] = {
    "x": X,
    "edge_index": EDGES,
    "y": (X[:, :1] * 2).round(3),
    "year": np.arange(60) % 3,
    "domain": np.arange(60) // 20,
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CGLSUITE_DATA_FILES", raising=False)


def data_of(path: Path, **options: Any) -> Any:
    with named(data=[path], options={"mine": options} if options else None):
        catalogue = load_catalogue()
        spec = catalogue.dataset("mine")
        assert (spec.levels, spec.labels) == (("NR",), "real")
        return catalogue.resolve(catalogue.get("dataset", "mine"))(None, **{h.name: h.default for h in spec.hyperparameters})


def csv(folder: Path) -> Path:
    folder.mkdir()
    columns = {"y": ARRAYS["y"][:, 0], "year": ARRAYS["year"], "domain": ARRAYS["domain"], **{f"x{j}": X[:, j] for j in range(3)}}
    rows = zip(*(map(repr, values.tolist()) for values in columns.values()), strict=True)
    (folder / "nodes.csv").write_text("\n".join([",".join(columns), *map(",".join, rows)]) + "\n")
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in EDGES.T))
    return folder


def saved(file: Path) -> Path:
    from torch_geometric.data import Data

    torch.save(Data(**{name: torch.from_numpy(values) for name, values in ARRAYS.items()}), file)
    return file


def test_every_form_is_the_same_data_set(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", **ARRAYS)
    first = data_of(tmp_path / "mine.npz")
    assert isinstance(first, NodeTargetData)
    assert torch.equal(first.y, torch.from_numpy(ARRAYS["y"]))
    assert (first.n_classes, set(first.keys)) == (1, {"year", "domain"})
    others = [
        data_of(as_data_file(ARRAYS, "mine")),
        data_of(as_data_file(first, "mine")),
        data_of(saved(tmp_path / "mine.pt")),
        data_of(csv(tmp_path / "mine"), id="none", keys="year,domain"),
    ]
    assert [other.content_hash for other in others] == [first.content_hash] * 4


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (ARRAYS["y"][:, 0], {}),
        (np.arange(60), {"labels": "real"}),
        (np.concatenate([ARRAYS["y"], ARRAYS["y"]], axis=1), {}),
    ],
)
def test_what_counts_as_targets(y: Any, options: dict[str, Any]) -> None:
    data = data_of(as_data_file({**ARRAYS, "y": y}, "mine"), **options)
    assert torch.equal(data.y, torch.from_numpy(np.reshape(y, (60, -1)).astype(np.float32)))


def test_whole_numbers_of_a_container_stay_targets() -> None:
    data = data_of(as_data_file({**ARRAYS, "y": np.arange(120, dtype=np.float32).reshape(60, 2), "n_classes": 2}, "mine"))
    assert data.n_classes == 2


def test_the_data_are_described_by_node() -> None:
    with named(data=[as_data_file({**ARRAYS, "edge_weight": np.ones(EDGES.shape[1])}, "mine")]):
        spec: Any = load_catalogue().dataset("mine")
    assert spec.summary == f"mine.npz: 60 nodes, {EDGES.shape[1]} edges, 3 features, 1 targets"
    assert re.fullmatch(r"1 real number per node: -?[\d.]+ to [\d.]+", dict(spec.facts)["targets"])
    assert any("edge_weight" in warning for warning in spec.warnings)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"y": np.where(np.arange(60) == 7, np.nan, ARRAYS["y"][:, 0])}, {}, "a target of node 7 is nan; expected finite float32 numbers"),
        ({"y": np.full((60, 1), 1e39) + 0.5}, {"labels": "real"}, "a target of node 0 is 1e[+]39"),
        ({"y": np.array(["a"] * 60)}, {"labels": "real"}, "expected numbers, the targets of nodes"),
        ({"y": ARRAYS["y"][:50]}, {}, r"y has shape \[50\]; expected \[60\]"),
        ({"y": ARRAYS["y"][:, 0]}, {"labels": "single"}, "not a class number"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        data_of(as_data_file({**ARRAYS, **changes}, "mine"), **options)


@pytest.mark.plugins
@pytest.mark.parametrize(("protocol", "key"), [("domain-il@begin-2", "domain"), ("time-il@begin-2", "year")])
def test_scenarios_are_derived(protocol: str, key: str) -> None:
    with named(data=[as_data_file(ARRAYS, "mine")]):
        catalogue = load_catalogue()
        cell = resolve_cell(catalogue, f"mine/{protocol}", "bare", overrides={"scenario.task_key": key})
        stream = build_stream(cell, catalogue)
    assert (cell.scenario.level, cell.scenario.performance, len(stream)) == ("NR", "negative-mae", 3)


@pytest.mark.plugins
def test_an_attribute_of_too_many_values_is_refused_with_bins() -> None:
    n = 240
    many = {"x": np.ones((n, 2), np.float32), "edge_index": EDGES, "y": np.linspace(0, 0.9, n), "domain": np.arange(n)}
    with (
        named(data=[as_data_file(many, "mine")]),
        pytest.raises(SpecError, match=r"domain of mine has 240 values, .*scenario[.]task_bins=24,48,72"),
    ):
        resolve_cell(load_catalogue(), "mine/domain-il@begin-2", "bare")


@pytest.mark.plugins
def test_a_run_on_targets_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = cglsuite.run(["bare", "replay"], ARRAYS, "domain-il@begin-2", overrides={"training.epochs": 1}, store=tmp_path / "store")
    records = list(study.records)
    assert [record.status for record in records] == ["done", "done"]
    assert all(value < 0 for record in records for value in record.matrix[-1])
