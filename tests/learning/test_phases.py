"""Phases with their own loss, parameters, monitor and early end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch
from tiny_streams import KeptCheckpoints, assert_same_run, tiny_runner, tiny_stream
from torch import Tensor, nn

from cglsuite import Method, TrainingSpec
from cglsuite.base.errors import SpecError
from cglsuite.learning import Phase
from cglsuite.learning.clock import Clock
from cglsuite.learning.loop import Curve, fit, make_optimizer
from cglsuite.learning.reproducibility.state import collect
from cglsuite.streams import TaskView


class Holder:
    """A model with one weight, and hooks that must not be called."""

    def __init__(self) -> None:
        self.model = nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            self.model.weight.fill_(1.0)

    def before_epoch(self, epoch: int) -> None:
        raise AssertionError("a loss of its own runs without hooks")

    loss = before_step = after_step = before_epoch


def run(phase: Phase, parameters: list[nn.Parameter], *, epochs: int = 3, monitored: list[float] | None = None, **training: Any) -> Curve:
    spec = TrainingSpec(**({"optimizer": "sgd", "lr": 0.1, "monitor": "validation-loss"} | training))
    values = iter(monitored or [])
    monitor = None if monitored is None else (lambda: next(values))
    optimizer = make_optimizer([{"params": parameters}], spec)
    return fit(Holder(), [1.0], spec, optimizer, epochs=epochs, monitor=monitor, clock=Clock(), phase=phase)  # type: ignore[arg-type,list-item]


def test_its_own_loss_and_parameters_outside_the_model() -> None:
    x = nn.Parameter(torch.tensor(4.0))
    curve = run(Phase(loss=lambda batch: x * batch, monitor="none"), [x])
    assert curve.loss == pytest.approx([4.0, 3.9, 3.8])
    assert curve.monitor == []
    assert x.item() == pytest.approx(3.7)


def test_the_best_epoch_restores_parameters_outside_the_model() -> None:
    """Epoch 1 of the monitored values is the best: x has been moved twice by then."""
    x = nn.Parameter(torch.tensor(4.0))
    curve = run(Phase(loss=lambda batch: x * batch), [x], monitored=[2.0, 1.0, 3.0], restore_best=True)
    assert curve.best_epoch == 1
    assert x.item() == pytest.approx(3.8)


def test_the_training_loss_may_steer_the_schedule() -> None:
    """A rising loss: the first epoch is the best, and a plateau of patience 0 cuts the rate three times."""
    x = nn.Parameter(torch.tensor(4.0))
    rising = iter(range(100))
    phase = Phase(loss=lambda batch: x * 0 + next(rising), monitor="loss")
    curve = run(phase, [x], epochs=50, monitored=None, plateau_patience=0, stop_ratio=1e-3)
    assert curve.monitor == curve.loss == [0.0, 1.0, 2.0, 3.0]


def test_an_unmonitored_phase_keeps_its_last_epoch() -> None:
    x = nn.Parameter(torch.tensor(4.0))
    curve = run(Phase(loss=lambda batch: x * batch, monitor="none"), [x], monitored=[], restore_best=True, plateau_patience=0)
    assert (len(curve.loss), curve.best_epoch) == (3, 2)


def test_a_phase_may_end_early() -> None:
    x, heard = nn.Parameter(torch.tensor(4.0)), list[Any]()

    def stop(epoch: int, values: Mapping[str, float]) -> bool:
        heard.append((epoch, dict(values)))
        return values["loss"] < 3.95

    curve = run(Phase(loss=lambda batch: x * batch, monitor="none", stop=stop), [x], epochs=9)
    assert len(curve.loss) == 2
    assert heard == [(0, {"loss": pytest.approx(4.0)}), (1, {"loss": pytest.approx(3.9)})]


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"share": float("nan")}, {"monitor": "test"}])
def test_a_phase_that_does_not_exist_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="phase 'warm-up'"):
        Phase(name="warm-up", **wrong)


class TwoPhases(Method):
    """A vector of its own, learnt by itself before the model, and one on the model with its own rate."""

    state = ("own",)

    def setup(self) -> None:
        self.own = torch.ones(3)
        self.model.register_parameter("scale", nn.Parameter(torch.ones(2)))

    def parameter_groups(self) -> Iterator[dict[str, Any]]:
        scale = self.model.scale
        yield {"params": [p for p in self.model.parameters() if p is not scale]}
        yield {"params": [scale], "lr": 0.5}

    def phases(self, view: TaskView) -> Iterator[Phase]:
        x = nn.Parameter(self.own.clone())
        before = {n: v.clone() for n, v in collect(self)["model"].items()}
        yield Phase(share=0.5, name="own", loss=lambda batch: x.square().sum(), parameters=[x], monitor="none", stop=lambda e, v: e == 1)
        assert all(torch.equal(v, before[n]) for n, v in collect(self)["model"].items())
        self.own = x.detach().clone()
        yield Phase()

    def loss(self, batch: Any) -> Tensor:
        return super().loss(batch) + self.model.scale.square().sum()


def test_phases_of_a_method_in_a_run_and_what_they_cost() -> None:
    """Two epochs of the vector's own phase and all of the model's; a resumed run continues with the vector; sizes are told apart."""
    result = tiny_runner(tiny_stream(), TwoPhases).run()
    epochs = len(result.curves[0]["loss"])
    assert all(len(curve["loss"]) == epochs for curve in result.curves)
    assert result.curves[0]["loss"][0] == pytest.approx(3.0)
    plain = tiny_runner(tiny_stream(), Method).run()
    assert epochs == 2 + len(plain.curves[0]["loss"])
    assert result.parameters == {"model": plain.parameters["model"], "method": 5, "method_bytes": 20}
    kept = KeptCheckpoints()
    first = tiny_runner(tiny_stream(), TwoPhases)
    first.run(kept, keep=9)
    kept.drop(first.prefixes[-1])
    assert_same_run(tiny_runner(tiny_stream(), TwoPhases).run(kept), result)
    assert plain.parameters["method"] == plain.parameters["method_bytes"] == 0
