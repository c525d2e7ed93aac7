"""Pre-trained weights that cells of one process share: made once, the last four kept, told of in records."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cglsuite.base.hashing import digest
from cglsuite.cells import run
from cglsuite.learning.pretraining import weights


def cell(name: str, scheme: str = "edge-mask", transfer: str = "frozen") -> Any:
    settings = {"pretraining_hyperparameters": {"transfer": transfer}, "backbone_arguments": {}}
    seeds = SimpleNamespace(init=3, split=0)
    return SimpleNamespace(
        name=name, pretraining=scheme, backbone="gcn", device="cpu", seeds=seeds, scenario=SimpleNamespace(training="T"), **settings
    )


STREAM: Any = SimpleNamespace(tasks=[SimpleNamespace(content="first")], data_hash="d")
CATALOGUE: Any = SimpleNamespace(get=lambda kind, name: (kind, name), resolve=lambda entry: entry)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cells that weights were made for, in order; nothing is kept at first."""
    calls: list[str] = []

    def pretrain(stream: Any, scheme: Any, make_backbone: Any, **given: Any) -> Any:
        assert (stream, scheme, make_backbone) == (STREAM, ("pretraining", "edge-mask"), ("backbone", "gcn"))
        assert (given["init_seed"], given["training"], given["device"]) == (3, "T", "cpu")
        calls.append(identities[-1])
        curve = SimpleNamespace(loss=[3.0, 1.0, 2.0], best_epoch=1)
        return SimpleNamespace(
            name=identities[-1], curve=curve, seconds=1.5, state={"b": torch.tensor([[1.0, 2.0]]), "a": torch.tensor([3.0])}
        )

    identities: list[str] = []

    def identity(asked: Any, catalogue: Any, first: str, data_hash: str | None) -> str:
        assert (catalogue, first, data_hash) == (CATALOGUE, "first", "d")
        identities.append(asked.name)
        return str(asked.name)

    monkeypatch.setattr(run, "_KEPT", OrderedDict())
    monkeypatch.setattr(run, "_identity", identity)
    monkeypatch.setattr(weights, "pretrain", pretrain)
    monkeypatch.setattr(weights, "transferred", lambda make, kept, *, frozen: (make, kept.name, frozen))
    return calls


def test_without_a_scheme_models_are_the_backbones_own(made: list[str]) -> None:
    assert run.first_backbone(cell("a", "none"), CATALOGUE, STREAM) == ("backbone", "gcn")
    assert made == []


def test_the_last_four_are_kept(made: list[str]) -> None:
    """Those used last: using one again keeps it, and the one that was used longest ago goes."""
    for name in "abcd":
        assert run.first_backbone(cell(name), CATALOGUE, STREAM) == (("backbone", "gcn"), name, True)
    assert run.first_backbone(cell("a", transfer="tuned"), CATALOGUE, STREAM) == (("backbone", "gcn"), "a", False)
    assert made == list("abcd")
    run.first_backbone(cell("e"), CATALOGUE, STREAM)
    assert list(run._KEPT) == ["c", "d", "a", "e"]
    run.first_backbone(cell("a"), CATALOGUE, STREAM)
    run.first_backbone(cell("b"), CATALOGUE, STREAM)
    assert made == list("abcdeb")


def test_what_a_record_says_of_them(made: list[str]) -> None:
    """Epochs, the first loss and that of the best epoch, and a digest of all weights by name; nothing where there are none."""
    tasks = [{"content": "first"}, {"content": "second"}]
    assert run.pretraining_facts(cell("a"), CATALOGUE, tasks, "d") == {}
    run.first_backbone(cell("a"), CATALOGUE, STREAM)
    assert run.pretraining_facts(cell("a"), CATALOGUE, tasks, "d") == {
        "scheme": "edge-mask",
        "epochs": 3,
        "best_epoch": 1,
        "loss": [3.0, 1.0],
        "seconds": 1.5,
        "state": digest({"a": [3.0], "b": [1.0, 2.0]}),
    }
    assert run.pretraining_facts(cell("a", "none"), CATALOGUE, tasks, "d") == {}
    assert run.pretraining_facts(cell("a"), CATALOGUE, [], "d") == {}
