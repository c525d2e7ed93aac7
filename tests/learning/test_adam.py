"""The suite's Adam is torch's to the bit, and imports no compiler."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.nn import Parameter
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from cglsuite.learning.loop import FusedAdam, make_optimizer
from cglsuite.specs import TrainingSpec

SHAPES = [((300, 7), torch.float32), ((5,), torch.float64), ((), torch.float32), ((4, 0), torch.float32), ((17, 33), torch.float32)]


def parameters() -> list[Parameter]:
    draws = torch.Generator().manual_seed(0)
    return [Parameter(torch.randn(shape, generator=draws, dtype=dtype)) for shape, dtype in SHAPES]


def train(optimizer: Optimizer, given: Sequence[Parameter], steps: range) -> None:
    """With gradients that are absent for some parameters in some steps, and zero in others."""
    for n in steps:
        draws = torch.Generator().manual_seed(100 + n)
        optimizer.zero_grad(set_to_none=n % 2 == 0)
        for i, parameter in enumerate(given):
            gradient = torch.randn(parameter.shape, generator=draws, dtype=parameter.dtype) * (n % 5 > 0)
            if (n + i) % 3:
                parameter.grad = gradient
        optimizer.step()


def both(weight_decay: float) -> tuple[list[Parameter], Optimizer, list[Parameter], Optimizer]:
    """Ours and torch's, over two groups of which one has options of its own."""
    mine, theirs = parameters(), parameters()

    def groups(given: list[Parameter]) -> list[dict[str, Any]]:
        return [{"params": given[:3]}, {"params": given[3:], "lr": 0.3, "betas": (0.5, 0.9), "eps": 1e-3}]

    torchs = Adam(groups(theirs), lr=0.01, weight_decay=weight_decay, fused=True)
    return mine, FusedAdam(groups(mine), lr=0.01, weight_decay=weight_decay), theirs, torchs


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


@pytest.mark.parametrize("weight_decay", [0.0, 0.05])
def test_weights_and_state_are_those_of_torch(weight_decay: float) -> None:
    mine, ours, theirs, torchs = both(weight_decay)
    train(ours, mine, range(8))
    train(torchs, theirs, range(8))
    for one, other, start in zip(mine, theirs, parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.numel() == 0 or not torch.equal(one, start)
    assert equal(ours.state_dict(), torchs.state_dict())


@pytest.mark.parametrize("from_torch", [False, True])
def test_a_saved_state_goes_on_to_the_bit_whoever_saved_it(from_torch: bool) -> None:
    mine, ours, theirs, torchs = both(0.05)
    train(ours, mine, range(3))
    train(torchs, theirs, range(3))
    saved = copy.deepcopy((torchs if from_torch else ours).state_dict())
    torchs.zero_grad()
    again, loaded, _, _ = both(0.05)
    with torch.no_grad():
        for parameter, value in zip(again, mine, strict=True):
            parameter.copy_(value)
    loaded.load_state_dict(saved)
    for group in (*loaded.param_groups, *torchs.param_groups):
        group["lr"] *= 0.5
    train(loaded, again, range(3, 6))
    train(torchs, theirs, range(3, 6))
    assert all(map(torch.equal, again, theirs))


def test_a_schedule_takes_it() -> None:
    mine, ours, *_ = both(0.0)
    schedule = ReduceLROnPlateau(ours, factor=0.5, patience=0)
    for value in (1.0, 2.0):
        train(ours, mine, range(1))
        schedule.step(value)
    assert [group["lr"] for group in ours.param_groups] == [0.005, 0.15]


def test_the_protocols_optimiser_is_this_one() -> None:
    made = make_optimizer([{"params": parameters()[:1], "weight_decay": 0.5}], TrainingSpec(lr=0.25, weight_decay=0.125))
    assert type(made) is FusedAdam
    assert (made.param_groups[0]["lr"], made.param_groups[0]["weight_decay"]) == (0.25, 0.5)


CELL = """
import sys, tempfile
from cglsuite import load_catalogue
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store
catalogue = load_catalogue()
given = {"dataset.n_nodes": 120, "dataset.n_classes": 4, "training.epochs": 2}
for scenario in ("synthetic-csbm/class-il@begin-1", "synthetic-csbm/class-il@cglb-1"):
    with tempfile.TemporaryDirectory() as folder:
        record = run_cell(resolve_cell(catalogue, scenario, "bare", overrides=given), catalogue, Store(folder))
    assert record.status == "done", record.reason
print(sorted({"torch._dynamo", "torch._inductor", "sympy"} & set(sys.modules)))
"""


@pytest.mark.nightly
@pytest.mark.plugins
def test_a_cell_imports_no_compiler() -> None:
    """It takes more than a second, of a cell that may take two; a plateau schedule and a carried optimiser that is saved need none."""
    done = subprocess.run([sys.executable, "-c", CELL], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
