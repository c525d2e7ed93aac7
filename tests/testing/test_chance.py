"""What guessing gives under each measure: the bar that a method must be above to have learnt something."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from cglsuite.testing.streams import chance


def stream(performance: str, *, told: bool = False, targets: tuple[Tensor, ...] = ()) -> Any:
    """Three tasks of 2, 1 and 3 of six outputs; ``targets`` per task, and training items that must not count."""
    table = torch.tensor([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    tasks = torch.cat([torch.full((len(y) + 1,), k) for k, y in enumerate(targets)]) if targets else torch.zeros(0)
    test = torch.cat([torch.tensor([True] * len(y) + [False]) for y in targets]) if targets else torch.zeros(0)
    y = torch.cat([torch.cat([y, torch.full((1, y.shape[1]), 1000.0)]) for y in targets]) if targets else torch.zeros(0)
    sheets = {"a": SimpleNamespace(tasks=tasks, test=test, y=y)}

    class Stream(SimpleNamespace):
        def __len__(self) -> int:
            return 3

    return Stream(
        spec=SimpleNamespace(task_ids_at_test=told, performance=performance),
        task_outputs=table,
        n_outputs=1,
        make_queries=lambda n: None,
        oracle=SimpleNamespace(_sheets=sheets),
    )


@pytest.mark.parametrize("performance", ["micro", "macro"])
def test_guessing_a_class(performance: str) -> None:
    """Among the outputs of the task if it is known, otherwise among all so far."""
    assert chance(stream(performance, told=True)) == [1 / 2, 1 / 1, 1 / 3]
    assert chance(stream(performance)) == [1 / 2, 1 / 3, 1 / 6]


def test_guessing_an_order() -> None:
    assert chance(stream("roc-auc")) == [0.5] * 3
    assert chance(stream("hits")) == [0.0] * 3


def test_guessing_several_labels() -> None:
    """Mean prevalence of the labels that occur among test items; 0 where none does."""
    first = torch.tensor([[True, False, False], [True, True, False], [False, False, False], [False, False, False]])
    values = chance(stream("average-precision", targets=(first.float(), torch.zeros(2, 3), torch.ones(1, 3))))
    assert values == [pytest.approx((2 / 4 + 1 / 4) / 2), 0.0, 1.0]


def test_guessing_a_number() -> None:
    """Minus the mean distance from the mean: of 1, 2 and 6 from 3 it is 2."""
    values = chance(stream("mae", targets=(torch.tensor([[1.0], [2.0], [6.0]]), torch.tensor([[4.0]]), torch.zeros(0, 1))))
    assert values[:2] == [pytest.approx(-2.0), 0.0]
    assert math.isnan(cast("float", values[2]))
