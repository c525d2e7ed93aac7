"""Synaptic intelligence against the path that the optimiser took."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.regularisation.si import SI, importance_of
from tiny_streams import tiny_runner, tiny_stream
from torch import Tensor

from cglsuite.learning.task_runner import TaskRunner

TRAINING = {"epochs": 6, "lr": 0.05}


def runner_of(c: float = 10.0, method: type[SI] = SI, **training: Any) -> TaskRunner:
    return tiny_runner(tiny_stream(training=TRAINING | training), method, {"c": c, "xi": 0.1})


class Watched(SI):
    """Notes the gradient of the loss alone before each step, and the weights around it."""

    def setup(self) -> None:
        """Nothing noted yet."""
        super().setup()
        self.steps: list[list[tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]]] = []
        self.ends: list[dict[str, Tensor]] = []

    def _weights(self) -> dict[str, Tensor]:
        return {n: p.detach().clone() for n, p in self.problem.parameters(self.model).items()}

    def before_task(self, view: Any) -> None:
        """A list of steps per task."""
        super().before_task(view)
        self.steps.append([])
        self._origin = self._weights()

    def before_step(self) -> None:
        """Before the penalty joins it."""
        parameters = self.problem.parameters(self.model)
        self._noted = {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in parameters.items()}, self._weights()
        super().before_step()
        self.pulls = {n: p.grad - self._noted[0][n] for n, p in parameters.items() if p.grad is not None}

    def after_step(self) -> None:
        """And where it led."""
        super().after_step()
        self.steps[-1].append((*self._noted, self._weights()))

    def after_task(self, view: Any) -> None:
        """The importance by the definition, from all steps up to the weights that are kept."""
        super().after_task(view)
        now, before = self._weights(), self.ends[-1] if self.ends else {n: torch.zeros_like(p) for n, p in self._origin.items()}
        kept = next(i for i, (*_, after) in enumerate(self.steps[-1]) if all(torch.equal(after[n], now[n]) for n in now))
        taken = self.steps[-1][: kept + 1]
        path = {n: -sum(g[n] * (after[n] - start[n]) for g, start, after in taken) for n in now}
        self.ends.append({n: (before[n] + path[n] / ((now[n] - self._origin[n]) ** 2 + 0.1)).clamp(min=0) for n in now})
        for n, expected in self.ends[-1].items():
            torch.testing.assert_close(self.importance[n], expected, rtol=1e-4, atol=1e-7)


class Idle(Watched):
    """With a parameter that no output depends on: it never has a gradient."""

    def setup(self) -> None:
        """The model's first parameter that is not its own."""
        self.model.register_parameter("idle", torch.nn.Parameter(torch.ones(2)))
        super().setup()


def test_a_weight_without_a_gradient_has_no_importance() -> None:
    runner = runner_of(method=Idle)
    runner.run()
    method: Any = runner.method
    assert method.importance["idle"].tolist() == [0.0, 0.0]
    assert method.model.idle.tolist() == [1.0, 1.0]
    assert any(bool((o > 0).any()) for o in method.importance.values())


@pytest.mark.parametrize("best", [{}, {"monitor": "validation-loss", "restore_best": True, "lr": 0.3, "epochs": 12}], ids=["last", "best"])
def test_importance_is_the_path_to_the_weights_that_are_kept(best: dict[str, Any]) -> None:
    """With weight decay and a penalty too: the gradient is that of the loss alone, and the step the optimiser's own."""
    runner = runner_of(method=Watched, weight_decay=0.01, **best)
    result = runner.run()
    method: Any = runner.method
    assert len(method.ends) == 3
    assert any(bool((o > 0).any()) for o in method.ends[0].values())
    if best:
        assert any(curve["best_epoch"] < len(curve["loss"]) - 1 for curve in result.curves)


def test_the_penalty_pulls_to_where_the_last_task_ended() -> None:
    """2 c Ω (θ - θ*) is added to the gradient, and nothing in the first task."""
    runner = runner_of(method=Watched)
    pulled = list[tuple[int, dict[str, Tensor], dict[str, Tensor]]]()
    method: Any = runner.method
    after = method.after_step

    def noted() -> None:
        importance = {n: o.clone() for n, o in method.importance.items()}
        start, weights = method._origin, method._noted[1]
        pulled.append((len(method.steps), method.pulls, {n: 20.0 * importance[n] * (weights[n] - start[n]) for n in start}))
        after()

    method.after_step = noted
    runner.run()
    assert len(pulled) == 3 * TRAINING["epochs"]
    for task, found, expected in pulled:
        assert task > 1 or not any(bool(f.any()) for f in found.values())
        for n, pull in found.items():
            torch.testing.assert_close(pull, expected[n], rtol=1e-3, atol=1e-6)
    assert any(bool(f.any()) for _, found, _ in pulled for f in found.values())


def test_a_heavy_penalty_holds_weights() -> None:
    def moved(c: float) -> float:
        runner, kept = runner_of(c), list[dict[str, Tensor]]()
        runner.on_task = lambda k: kept.append({n: p.detach().clone() for n, p in runner.method.model.named_parameters()}) if k else None
        runner.run()
        return sum(float((kept[2][n] - kept[0][n]).square().sum()) for n in kept[0])

    assert moved(1e3) < 0.5 * moved(0.0)


def test_importance_does_not_become_negative() -> None:
    found = importance_of(torch.tensor([1.0, 1.0, 0.0]), torch.tensor([0.2, -5.0, 0.3]), torch.tensor([0.0, 0.0, 0.5]), 0.1)
    torch.testing.assert_close(found, torch.tensor([3.0, 0.0, 0.3 / 0.35]))


def test_what_it_costs() -> None:
    """Importance and path: two numbers per weight, however many tasks there are."""
    runner = runner_of()
    result = runner.run()
    assert result.parameters["method_bytes"] == 2 * 4 * result.parameters["model"]
