"""Runs over task-free streams: one pass, a curve, nothing that depends on what ran before or on an interruption."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tiny_streams import KeptCheckpoints, assert_same_run, node_numbers, tiny_data, tiny_graphs
from tiny_task_free import task_free_runner, tiny_task_free_stream

from cglsuite import Method
from cglsuite.base.errors import DivergenceError, LeakError, NotApplicable
from cglsuite.learning.task_free_runner import TaskFreeRunner
from cglsuite.streams import Batch


def small_stream(graphs: bool = False, **changes: Any) -> Any:
    return tiny_task_free_stream(tiny_graphs(per_class=20) if graphs else None, **changes)


class Keeps(Method):
    """Keeps some of what came, replays it, and notes what it met."""

    state = ("met", "drawn")

    def setup(self) -> None:
        """Nothing yet."""
        self.met: list[list[int]] = []
        self.drawn: list[int] = []

    def loss(self, batch: Batch) -> torch.Tensor:
        """Noise from global randomness, and the memory."""
        loss = super().loss(batch) * (1 + 0.1 * torch.rand(()))
        if len(self.memory):
            replay = self.problem.recall(self.problem.join(self.memory.all()), None)  # type: ignore[arg-type]
            loss = loss + self.problem.loss(self.forward(replay), replay)
        return loss

    def after_batch(self, batch: Batch) -> None:
        """Take two."""
        self.met.append(node_numbers(batch.graph, batch.ids))
        chosen = torch.randint(len(batch), (2,), generator=self.context.generator("choose"))
        self.drawn.append(int(chosen[0]))
        self.memory.put("latest", self.problem.sample(batch, chosen, "item"))


@pytest.mark.parametrize("fan_out", [(), (3, 5)])
@pytest.mark.parametrize("graphs", [False, True])
def test_every_batch_is_learnt_once_in_its_order(graphs: bool, fan_out: tuple[int, ...]) -> None:
    if graphs and fan_out:
        pytest.skip("neighbours are sampled in one large graph")
    stream = small_stream(graphs, training={"fan_out": fan_out})
    runner = task_free_runner(stream, Keeps)
    result = runner.run()
    assert runner.method.met == stream.items.tolist()  # type: ignore[attr-defined]
    assert len(set(runner.method.drawn)) > 1, "draws differ from step to step"  # type: ignore[attr-defined]
    assert len(result.matrix) == 7
    assert all(0 <= v <= 1 for row in result.matrix for v in row)
    assert len(result.curves[0]["loss"]) == stream.n_steps
    assert result.stream["evaluations"] == [0, 3, 6, 9, 12, 15, 18]
    assert result.stream["delivered"][-1] == stream.counts.sum(0).tolist()
    assert result.stream["delivered"][0] == [0, 0, 0]


@pytest.mark.parametrize("graphs", [False, True])
def test_validation_is_scored_after_the_last_step(graphs: bool) -> None:
    """By hand, from the trained model."""
    stream = small_stream(graphs)
    runner = task_free_runner(stream, Keeps)
    found = runner.run().validation_matrix
    assert len(found) == 7
    assert all(math.isnan(v) for row in found[:-1] for v in row)
    query = stream.make_queries(18)[1].query
    y = tiny_data(per_class=20).y[node_numbers(query.graph, query.ids)]
    with torch.no_grad():
        logits = runner.method.model.eval()(query.graph, query.ids)
    right = logits.masked_fill(~query.allowed, -math.inf).argmax(1) == y
    assert found[-1] == pytest.approx([float(right[y // 2 == k].float().mean()) for k in range(3)])


@pytest.mark.parametrize("graphs", [False, True])
def test_an_interruption_changes_no_bit(graphs: bool) -> None:
    stream = small_stream(graphs)

    whole = task_free_runner(stream, Keeps).run()
    kept = _Stops()
    with pytest.raises(KeyboardInterrupt):
        task_free_runner(stream, Keeps).run(kept)
    torch.manual_seed(999)
    resumed = task_free_runner(small_stream(graphs), Keeps).run(kept)
    assert resumed.stream["resumed_from_evaluation"] == 3
    assert_same_run(resumed, whole)
    assert resumed.fingerprints == whole.fingerprints
    assert not kept.files


class _Stops(KeptCheckpoints):
    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        """The third state is the last one."""
        super().save(prefix, payload)
        if len(self.saved) == 3:
            raise KeyboardInterrupt


def test_a_resumed_run_says_what_it_trained_itself() -> None:
    """Three of six stretches between evaluations were covered: 1.5 of three latent tasks, of which whole ones count."""
    whole = task_free_runner(small_stream(), Keeps).run()
    assert (whole.resumed_from_task, whole.trained_tasks, whole.covered_s) == (0, 3, 0.0)
    assert 0 < whole.trained_s < whole.timings_s["total"], "the first evaluation is no training"
    kept = _Stops()
    with pytest.raises(KeyboardInterrupt):
        task_free_runner(small_stream(), Keeps).run(kept)
    resumed = task_free_runner(small_stream(), Keeps).run(kept)
    assert resumed.stream["resumed_from_evaluation"] == 3
    assert (resumed.resumed_from_task, resumed.trained_tasks) == (1, 2)
    assert resumed.trained_s > 0 < resumed.covered_s
    assert resumed.trained_s + resumed.covered_s == pytest.approx(resumed.timings_s["total"])


def test_what_is_learnt_offline_is_trained_before_the_first_evaluation() -> None:
    hyperparameters, kept = {"offline_epochs": 5, "offline_batch": None}, _Stops()
    method = type("Bound", (Method,), {})
    whole = task_free_runner(small_stream(), method, hyperparameters, past_views=True).run()
    assert (whole.resumed_from_task, whole.trained_tasks) == (0, 3)
    assert whole.trained_s == pytest.approx(whole.timings_s["total"])
    with pytest.raises(KeyboardInterrupt):
        task_free_runner(small_stream(), method, hyperparameters, past_views=True).run(kept)
    resumed = task_free_runner(small_stream(), method, hyperparameters, past_views=True).run(kept)
    assert (resumed.resumed_from_task, resumed.trained_tasks) == (3, 0)
    assert_same_run(resumed, whole)
    assert 0 < resumed.trained_s < resumed.timings_s["total"], "the evaluations that were left"


def test_the_global_state_of_randomness_is_left_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    task_free_runner(small_stream(), Keeps).run()
    assert torch.equal(torch.get_rng_state(), before)


def test_several_passes_over_a_batch() -> None:
    class Counts(Method):
        steps = 0

        def after_step(self) -> None:
            """One more."""
            type(self).steps += 1

    task_free_runner(small_stream(training={"epochs": 3}), Counts).run()
    assert Counts.steps == 3 * 18


class Peeks(Method):
    """Learns from queries."""

    def predict(self, query: Batch) -> torch.Tensor:
        """Changes a weight."""
        with torch.no_grad():
            next(self.model.parameters()).add_(1.0)
        return super().predict(query)


def test_predicting_must_change_nothing() -> None:
    with pytest.raises(LeakError, match="Peeks.predict changed"):
        task_free_runner(small_stream(), Peeks).run()


def test_a_loss_that_is_not_finite_ends_the_run() -> None:
    class Explodes(Method):
        def loss(self, batch: Batch) -> torch.Tensor:
            """Too much."""
            return super().loss(batch) * math.inf

    with pytest.raises(DivergenceError, match="at step 1"):
        task_free_runner(small_stream(), Explodes).run()


class Offline(Method):
    """An upper bound."""

    met = 0

    def loss(self, batch: Batch) -> torch.Tensor:
        """Counts."""
        type(self).met += len(batch)
        return super().loss(batch)


def test_upper_bounds_learn_everything_before_the_first_evaluation() -> None:
    hyperparameters = {"offline_epochs": 80, "offline_batch": None}
    runner: TaskFreeRunner = task_free_runner(small_stream(), Offline, hyperparameters, past_views=True)
    result = runner.run()
    assert Offline.met == 80 * 72
    assert sum(result.matrix[-1]) / 3 > 0.4, "chance is 1/6"
    with pytest.raises(NotApplicable, match="offline_epochs"):
        task_free_runner(small_stream(), Offline, past_views=True).run()


def test_what_a_method_counts_is_part_of_the_result() -> None:
    class Counts(Keeps):
        def counters(self) -> dict[str, int]:
            """Batches met."""
            return {"batches": len(self.met)}

    stream = small_stream()
    assert task_free_runner(stream, Counts).run().counters == {"batches": stream.n_steps}
    assert task_free_runner(stream, Keeps).run().counters == {}
