"""The loop of one phase against steps by hand: order of hooks, schedule, best weights, divergence, times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cglsuite import TrainingSpec
from cglsuite.base.errors import DivergenceError
from cglsuite.learning.clock import Clock
from cglsuite.learning.loop import Curve, fit, make_optimizer


def groups_of(model: nn.Module) -> list[dict[str, Any]]:
    return [{"params": [p for p in model.parameters() if p.requires_grad]}]


class Scripted:
    """As much of a method as the loop needs: a model with one weight, a linear loss, and a log of the hooks."""

    def __init__(self, slope: float = 1.0, losses: Iterator[float] | None = None) -> None:
        self.model = nn.Linear(1, 1, bias=False)
        self.model.register_buffer("steps", torch.zeros(()))
        with torch.no_grad():
            self.model.weight.fill_(1.0)
        self.slope, self.losses = slope, losses
        self.log: list[str] = []
        self.rates: list[float] = []
        self.optimizer: Any = None

    def before_epoch(self, epoch: int) -> None:
        self.log.append(f"epoch {epoch}")
        self.rates.append(self.optimizer.param_groups[0]["lr"])

    def loss(self, batch: float) -> Tensor:
        assert self.model.training
        self.log.append("loss")
        value = self.slope * batch * self.model.weight.sum()
        return value if self.losses is None else value - value.detach() + next(self.losses)

    def before_step(self) -> None:
        self.log.append("before step")
        assert self.model.weight.grad is not None
        self.gradient = float(self.model.weight.grad)

    def after_step(self) -> None:
        self.log.append("after step")
        self.model.steps += 1  # type: ignore[operator]


def run(
    method: Scripted, *, batches: tuple[float, ...] = (1.0,), epochs: int = 3, monitored: list[float] | None = None, **training: Any
) -> tuple[Curve, Any]:
    spec = TrainingSpec(**({"optimizer": "sgd", "lr": 0.1, "monitor": "validation-loss"} | training))
    method.optimizer = make_optimizer(groups_of(method.model), spec)
    values = iter(monitored) if monitored is not None else None
    monitor = None if values is None else (lambda: next(values))
    curve = fit(method, batches, spec, method.optimizer, epochs=epochs, monitor=monitor, clock=Clock())  # type: ignore[arg-type]
    return curve, method


def test_hooks_come_in_order() -> None:
    _, method = run(Scripted(), batches=(1.0, 2.0), epochs=2)
    step = ["loss", "before step", "after step"]
    assert method.log == ["epoch 0", *step, *step, "epoch 1", *step, *step]


def test_steps_and_losses_by_hand() -> None:
    """SGD at rate 0.1 on the losses w and 2w: w falls by 0.1 and by 0.2; the curve is the mean over batches."""
    curve, method = run(Scripted(), batches=(1.0, 2.0), epochs=2)
    assert method.model.weight.item() == pytest.approx(1 - 0.6)
    assert curve.loss == pytest.approx([(1.0 + 2 * 0.9) / 2, (0.7 + 2 * 0.6) / 2])
    assert curve.monitor == []
    assert curve.best_epoch == 1


def test_a_method_may_change_gradients() -> None:
    class Halved(Scripted):
        def before_step(self) -> None:
            self.model.weight.grad.mul_(0.5)  # type: ignore[union-attr]

    _, method = run(Halved(), epochs=1)
    assert method.model.weight.item() == pytest.approx(0.95)


def test_gradients_do_not_pile_up() -> None:
    _, method = run(Scripted(), epochs=4)
    assert method.gradient == 1.0


def test_weight_decay_and_optimisers() -> None:
    _, method = run(Scripted(), epochs=1, weight_decay=0.5)
    assert method.model.weight.item() == pytest.approx(1 - 0.1 * (1 + 0.5 * 1.0))
    _, method = run(Scripted(slope=-7.0), epochs=1, optimizer="adam")
    assert method.model.weight.item() == pytest.approx(1.1, rel=1e-5)  # Adam's first step is the rate, against the sign
    frozen = Scripted()
    frozen.model.weight.requires_grad_(False)
    frozen.model.register_parameter("free", nn.Parameter(torch.zeros(1)))
    optimizer = make_optimizer(groups_of(frozen.model), TrainingSpec())
    assert [p is frozen.model.free for g in optimizer.param_groups for p in g["params"]] == [True]


def test_no_epochs_leave_everything_as_it_was() -> None:
    curve, method = run(Scripted(), epochs=0, monitored=[])
    assert curve == Curve(loss=[], monitor=[], best_epoch=-1)
    assert method.model.weight.item() == 1.0
    assert method.log == []


# --- schedule ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [0, 1, 3])
@pytest.mark.parametrize(("factor", "ratio", "cuts"), [(0.1, 1e-3, 3), (0.5, 0.1, 4), (0.5, 0.5, 1), (0.1, 1e-2, 2)])
def test_epochs_on_a_plateau(patience: int, factor: float, ratio: float, cuts: int) -> None:
    """One value that is the best, then rounds of patience + 1 that are not, each ended by a cut, until the rate is spent."""
    curve, method = run(Scripted(), epochs=500, monitored=[1.0] * 500, plateau_patience=patience, plateau_factor=factor, stop_ratio=ratio)
    assert len(curve.loss) == len(curve.monitor) == 1 + cuts * (patience + 1)
    expected = [0.1] + [0.1 * factor**c for c in range(cuts) for _ in range(patience + 1)]
    assert method.rates == pytest.approx(expected)


@pytest.mark.parametrize("lr", [1e-1, 1e-3, 1e-6])
def test_the_stop_ratio_is_reached_at_any_rate(lr: float) -> None:
    """Relative to its start; a small rate is no reason to train on until the epochs are over."""
    curve, _ = run(Scripted(), lr=lr, epochs=500, monitored=[1.0] * 500, plateau_patience=1)
    assert len(curve.loss) == 7


def test_a_better_value_resets_the_patience() -> None:
    values = [1.0, 1.1, 1.1, 0.5, 1.1, 1.1, 0.4] + [1.0] * 100
    curve, method = run(Scripted(), epochs=100, monitored=values, plateau_patience=2, stop_ratio=0.1)
    assert len(curve.loss) == 7 + 3
    assert set(method.rates) == {0.1}


def test_epochs_are_the_most() -> None:
    curve, _ = run(Scripted(), epochs=5, monitored=[1.0] * 5, plateau_patience=10)
    assert len(curve.loss) == 5


def test_without_a_plateau_the_rate_is_constant() -> None:
    curve, method = run(Scripted(), epochs=9, monitored=[1.0] * 9)
    assert len(curve.loss) == 9
    assert method.rates == [0.1] * 9


def test_the_rate_is_whole_again_afterwards() -> None:
    """For the next task, where the optimiser is carried over."""
    _, method = run(Scripted(), epochs=100, monitored=[1.0] * 100, plateau_patience=1)
    assert method.rates[-1] < 0.1
    assert method.optimizer.param_groups[0]["lr"] == 0.1


def test_the_best_weights_come_back_with_their_buffers() -> None:
    """The weight falls by 0.1 an epoch; the best value is that of the third. Of equal values the first counts."""
    curve, method = run(Scripted(), epochs=6, monitored=[3.0, 2.0, 1.0, 4.0, 1.0, 2.0], restore_best=True)
    assert curve.best_epoch == 2
    assert method.model.weight.item() == pytest.approx(0.7)
    assert method.model.steps.item() == 3
    assert curve.monitor == [3.0, 2.0, 1.0, 4.0, 1.0, 2.0]


def test_without_restoring_the_last_weights_stay() -> None:
    curve, method = run(Scripted(), epochs=4, monitored=[1.0, 2.0, 3.0, 4.0])
    assert curve.best_epoch == 3
    assert method.model.weight.item() == pytest.approx(0.6)


def test_restoring_keeps_the_optimisers_hold_on_the_weights() -> None:
    _, method = run(Scripted(), epochs=3, monitored=[1.0, 2.0, 3.0], restore_best=True)
    assert method.optimizer.param_groups[0]["params"][0] is method.model.weight


# --- divergence -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_names_the_epoch(value: float) -> None:
    with pytest.raises(DivergenceError, match=f"the loss became {value} in epoch 3: lower training.lr"):
        run(Scripted(losses=iter([1.0, 2.0, value, 1.0])), epochs=4)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_monitored_value_that_is_not_finite_names_the_epoch(value: float) -> None:
    with pytest.raises(DivergenceError, match=f"the monitored value became {value} in epoch 2: lower training.lr"):
        run(Scripted(), epochs=4, monitored=[1.0, value, 1.0, 1.0])


def test_one_bad_batch_is_enough() -> None:
    with pytest.raises(DivergenceError, match="in epoch 1"):
        run(Scripted(losses=iter([1.0, math.nan, 1.0])), batches=(1.0, 1.0, 1.0), epochs=1)


# --- times ------------------------------------------------------------------------------------------------------------------------


def test_hooks_are_the_methods_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hook takes a second by the clock, the loss a hundred: training is what is not in a hook."""
    from cglsuite.learning import clock as clock_module

    now = [0.0]
    monkeypatch.setattr(clock_module, "perf_counter", lambda: now[0])

    class Slow(Scripted):
        def before_epoch(self, epoch: int) -> None:
            now[0] += 1

        def before_step(self) -> None:
            now[0] += 1

        def after_step(self) -> None:
            now[0] += 1

        def loss(self, batch: float) -> Tensor:
            now[0] += 100
            return super().loss(batch)

    method, watch = Slow(), Clock()
    spec = TrainingSpec(optimizer="sgd")
    method.optimizer = make_optimizer(groups_of(method.model), spec)
    with watch.section("training"):
        fit(method, (1.0, 1.0), spec, method.optimizer, epochs=3, monitor=None, clock=watch)  # type: ignore[arg-type]
    assert watch.reading() == {
        "training": 600.0,
        "method": 3.0 + 12.0,
        "evaluation": 0.0,
        "checkpoints": 0.0,
        "framework": 0.0,
        "total": 615.0,
    }
