"""MAS*: when the detector fires, what is hard, and what a trigger renews."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.regularisation.mas_star import MASStar
from cglsuite_methods.rehearsal.task_free.memory import MEMORY
from tiny_streams import tiny_graphs
from tiny_task_free import task_free_runner, tiny_task_free_stream

from cglsuite import Method
from cglsuite.streams import Batch

SETTINGS: dict[str, Any] = {
    "lambda": 0.5,
    "window": 3,
    "mean_threshold": 0.2,
    "variance_threshold": 0.1,
    "hard_buffer": 6,
    "chunk": 4,
    "neighbourhood": False,
}


def fired_at(losses: list[float], **changes: Any) -> list[int]:
    """The steps at which the detector fires for a sequence of losses."""
    runner = task_free_runner(tiny_task_free_stream(), MASStar, SETTINGS | {"hard_buffer": 0} | changes)
    method: Any = runner.method
    fired: list[int] = []
    batch = runner.stream.make_batch(0)
    runner.problem.current = batch.allowed
    method._consolidate = lambda batch: None
    for step, loss in enumerate(losses):
        method.before_batch(batch)
        method._losses = [torch.tensor(loss), torch.tensor(99.0)]  # a second pass does not count
        before = method.triggers
        method.after_batch(batch)
        fired += [step] * (method.triggers - before)
    return fired


def test_the_detector_by_hand() -> None:
    assert fired_at([0.1] * 9) == [2], "the first rest counts, another needs a peak"
    assert fired_at([0.1] * 3 + [0.9] * 3 + [0.1] * 5) == [2, 8]
    assert fired_at([0.3] * 9) == [], "too high"
    assert fired_at([0.0, 0.0, 0.55, 0.0, 0.0], variance_threshold=0.01) == [], "too restless"
    assert fired_at([0.9, 0.1, 0.1, 0.1]) == [3], "a window is full of new losses"


def test_what_is_hard_stays() -> None:
    """Along the stream the buffer holds the highest losses of itself and of each batch, measured on the items as they are kept."""

    class Watched(MASStar):
        def _keep_hardest(self, batch: Batch) -> None:
            before = self.kept()
            super()._keep_hardest(batch)
            pool = self.sampled(batch, torch.arange(len(batch)))
            pool = pool if before is None else self.problem.join([before, pool])

            def losses(items: Any) -> list[float]:
                asked = self.problem.recall(items, batch)
                with torch.no_grad():
                    values: list[float] = self.problem.loss(self.forward(asked), asked, "none").tolist()
                return sorted(values, reverse=True)

            assert losses(self.memory[MEMORY]) == pytest.approx(losses(pool)[:6], abs=1e-5)

    assert task_free_runner(tiny_task_free_stream(), Watched, SETTINGS).run().memory["items"] == 6


def test_without_penalty_and_buffer_it_is_fine_tuning() -> None:
    stream = tiny_task_free_stream()
    result = task_free_runner(stream, MASStar, SETTINGS | {"hard_buffer": 0, "lambda": 0.0}).run()
    bare = task_free_runner(stream, Method).run()
    assert result.matrix == bare.matrix
    assert result.curves == bare.curves


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("hard_buffer", [0, 6])
def test_a_trigger_renews_importance_and_anchor(hard_buffer: int, graphs: bool) -> None:
    """The mean over triggers of the mean over items of |∂‖z‖²/∂θ|, item by item, and the weights of the last."""
    importances: list[dict[str, torch.Tensor]] = []
    anchors: list[dict[str, torch.Tensor]] = []

    class Watched(MASStar):
        def _consolidate(self, batch: Batch) -> None:
            items = self.kept()
            assert (items is None) == (hard_buffer == 0)
            asked = batch if items is None else self.problem.recall(items, batch)
            assert not self.model.training
            total: dict[str, torch.Tensor] = {}
            for i in range(len(asked)):
                norm = (self.forward(asked) * asked.allowed).pow(2).sum(1)[i]
                for (name, p), g in zip(
                    self.model.named_parameters(), torch.autograd.grad(norm, list(self.model.parameters())), strict=True
                ):
                    total[name] = total.get(name, torch.zeros_like(p)) + g.abs() / len(asked)
            importances.append(total)
            anchors.append({n: p.detach().clone() for n, p in self.model.named_parameters()})
            super()._consolidate(batch)

    stream = tiny_task_free_stream(tiny_graphs(per_class=20) if graphs else None)
    rates = {"mean_threshold": 10.0, "variance_threshold": 10.0, "hard_buffer": hard_buffer}
    runner = task_free_runner(stream, Watched, SETTINGS | rates)
    result = runner.run()
    method: Any = runner.method
    assert result.counters == {"triggers": len(importances)}
    assert importances
    for name, omega in method.omega.items():
        mean = torch.stack([i[name] for i in importances]).mean(dim=0)
        torch.testing.assert_close(omega, mean, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(method.weighted[name], omega * anchors[-1][name])


def test_importance_of_the_batch_as_benchmarked() -> None:
    """|∂ mean z²/∂θ| with the mean over the items of the batch and the outputs seen, and a running mean over triggers."""
    runner = task_free_runner(tiny_task_free_stream(), MASStar, SETTINGS | {"hard_buffer": 0, "importance": "batch"})
    method: Any = runner.method
    method.model.eval()
    expected: dict[str, torch.Tensor] = {}
    for trigger, step in enumerate((0, 5), start=1):
        batch = runner.stream.make_batch(step)
        runner.problem.current = batch.allowed
        columns = batch.allowed.nonzero().flatten()
        parameters = dict(method.model.named_parameters())
        mean = method.forward(batch)[:, columns].pow(2).mean()
        found = torch.autograd.grad(mean, list(parameters.values()), materialize_grads=True, allow_unused=True)
        for name, gradient in zip(parameters, found, strict=True):
            expected[name] = gradient.abs() if trigger == 1 else expected[name] + (gradient.abs() - expected[name]) / trigger
        method.triggers = trigger
        method._consolidate(batch)
        for name, value in expected.items():
            torch.testing.assert_close(method.omega[name], value)
    assert max(float(v.max()) for v in expected.values()) > 0
