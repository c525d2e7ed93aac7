"""Probes of a run: which queries are asked in addition, and how far the predictions for one item may differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from cglsuite.streams import Batch
from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.judge.session import TOLERANCE, Probes, _among, _unrelated_ids

N, OUTPUTS = 12, 3
SCORER: Any = SimpleNamespace(n_outputs=OUTPUTS, decode=lambda outputs, allowed: outputs.argmax(dim=1))


def query(ids: Tensor, **more: Any) -> Batch:
    return Batch(graph=SimpleNamespace(n_nodes=N), ids=ids, allowed=more.pop("allowed", torch.ones(OUTPUTS, dtype=torch.bool)), **more)


def outputs_of(ids: Tensor) -> Tensor:
    """Predictions that depend on the item alone."""
    return torch.stack([torch.sin(ids.float()), torch.cos(ids.float()), torch.zeros(len(ids))], dim=1) * 3


def asked(probes: Probes, ids: Tensor) -> list[Batch]:
    group: Any = SimpleNamespace(query=query(ids), token="t")
    return probes.draw([group], {"t": outputs_of(ids).argmax(dim=1)}, None, torch.Generator().manual_seed(3), "after task 1")


def test_what_is_asked_in_addition() -> None:
    """The same query again, one item alone, half of the items with five that are not of the query, and that half alone."""
    ids = torch.tensor([1, 3, 5, 7, 9, 11])
    again, alone, strangers, half = asked(Probes(), ids)
    assert again.ids.tolist() == ids.tolist()
    assert len(alone) == 1
    assert len(half) == 3
    assert strangers.ids[:3].tolist() == half.ids.tolist()
    assert half.ids[0] == alone.ids[0]
    assert set(strangers.ids[3:].tolist()) <= {0, 2, 4, 6, 8, 10}
    assert len(set(strangers.ids[3:].tolist())) == 5
    assert len(asked(Probes(), ids[:1])[3]) == 1


@pytest.mark.parametrize(
    ("row", "by", "apart", "bitwise"),
    [
        (None, 0.0, "", ""),
        (1, 0.4 * TOLERANCE, "", "items queried alone are not bit-identical"),
        (1, 20 * TOLERANCE, "items queried alone differ from those in their group by up to 0.0002", ""),
        (2, 20 * TOLERANCE, "items queried with unrelated items differ", ""),
        (3, 20 * TOLERANCE, "items queried without the others differ", ""),
    ],
)
def test_differences_within_the_tolerance_are_none(row: int | None, by: float, apart: str, bitwise: str) -> None:
    """Where only the adapter answers, all bits must agree as well."""
    probes = Probes()
    given = [outputs_of(one.ids) for one in asked(probes, torch.tensor([1, 3, 5, 7, 9, 11]))]
    if row is not None:
        given[row][0] += by
    probes.take(given, SCORER, "mine")
    assert (bool(probes.apart), bool(probes.not_bitwise), probes.compared) == (bool(apart), bool(bitwise), 1)
    if apart:
        with pytest.raises(CheckFailed, match=f"^after task 1: predictions for {apart}"):
            probes.check(plain=False)
    else:
        probes.check(plain=False)
    if bitwise:
        with pytest.raises(CheckFailed, match=bitwise):
            probes.check(plain=True)


def test_strangers_themselves_may_be_answered_in_any_way() -> None:
    probes = Probes()
    given = [outputs_of(one.ids) for one in asked(probes, torch.tensor([1, 3, 5, 7, 9, 11]))]
    given[2][3:] += 9.0
    probes.take(given, SCORER, "mine")
    probes.check(plain=True)


@pytest.mark.parametrize("alone", [torch.inf, -torch.inf, 1.0, torch.nan])
def test_infinite_predictions_agree_only_with_themselves(alone: float) -> None:
    """A method of an open world accepts and rejects items with infinite outputs of unseen classes."""
    probes = Probes()
    given = [outputs_of(one.ids) for one in asked(probes, torch.tensor([1, 3, 5, 7, 9, 11]))]
    for one in given:
        one[:, 0] = torch.inf
    given[1][:, 0] = alone
    probes.take(given, SCORER, "mine")
    assert any("differ from" in one for one in probes.apart) == (alone != torch.inf)


def test_the_tolerance_grows_with_the_prediction() -> None:
    """Relative to the larger of 1 and the magnitude: 1000 may become 1000.009, and not 1000.02."""
    for by, differs in ((0.009, False), (0.02, True)):
        probes = Probes()
        queries = asked(probes, torch.tensor([0, 1]))
        given = [torch.full((len(one), OUTPUTS), 1000.0) for one in queries]
        given[1] = given[1] + by
        scorer: Any = SimpleNamespace(n_outputs=OUTPUTS, decode=lambda *_: outputs_of(torch.tensor([0, 1])).argmax(dim=1))
        probes.take(given, scorer, "mine")
        assert bool(probes.apart) is differs


def test_the_same_query_twice() -> None:
    """Another decoded answer the second time is a difference; outputs of another shape end the run."""
    probes = Probes()
    given = [outputs_of(one.ids) for one in asked(probes, torch.tensor([1, 3, 5, 7]))]
    given[0] = given[0].flip(1)
    probes.take(given, SCORER, "mine")
    assert probes.apart[0] == "after task 1: repeating the same query gives different predictions"
    with pytest.raises(
        CheckFailed, match=r"mine returns outputs of the wrong shape .* expected \[\[4, 3\], \[1, 3\], \[7, 3\], \[2, 3\]\]"
    ):
        probes.take([given[0][:2], *given[1:]], SCORER, "mine")


def test_extra_items_take_the_conditions_of_those_chosen() -> None:
    """In turn: their competing outputs and tasks."""
    allowed, tasks = torch.eye(4, 3, dtype=torch.bool), torch.tensor([4, 5, 6, 7])
    one = query(torch.tensor([10, 11, 12, 13]), allowed=allowed, tasks=tasks)
    made = _among(one, torch.tensor([2, 0]), torch.tensor([1, 2, 3]))
    assert made.ids.tolist() == [12, 10, 1, 2, 3]
    assert made.tasks is not None
    assert made.tasks.tolist() == [6, 4, 6, 4, 6]
    assert made.allowed.tolist() == allowed[[2, 0, 2, 0, 2]].tolist()
    assert made.cache == {}
    plain = _among(query(torch.tensor([3, 4])), torch.tensor([1]))
    assert (plain.ids.tolist(), plain.tasks, plain.allowed.dim()) == ([4], None, 1)


def test_strangers_of_pairs_and_of_whole_graphs() -> None:
    draws = torch.Generator().manual_seed(0)
    pairs = _unrelated_ids(query(torch.tensor([[0, 1], [2, 3]])), draws)
    assert (list(pairs.shape), bool((pairs < N).all()), bool((pairs >= 0).all())) == ([5, 2], True, True)
    everybody = _unrelated_ids(query(torch.arange(N)), draws)
    assert len(set(everybody.tolist())) == 5
    assert _unrelated_ids(query(torch.arange(N - 2)), draws).sort().values.tolist() == [N - 2, N - 1]
