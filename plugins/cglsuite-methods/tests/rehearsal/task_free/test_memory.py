"""The reservoir along a stream, ER, A-GEM and SSM: what is kept, that it is uniform, what is learnt from it, what it counts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from cglsuite_methods.gradients.a_gem import AGEM, project
from cglsuite_methods.rehearsal.task_free.er import ER
from cglsuite_methods.rehearsal.task_free.memory import MEMORY, Sampling
from cglsuite_methods.rehearsal.task_free.ssm import SSM, drawn
from scipy.stats import chisquare
from tiny_streams import tiny_data, tiny_graphs
from tiny_task_free import task_free_runner, tiny_task_free_stream

from cglsuite import Method
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph
from cglsuite.graphs.pack import Pack
from cglsuite.learning.task_free_runner import TaskFreeRunner
from cglsuite.streams import Batch

KEEP: dict[str, Any] = {"memory": 7, "neighbourhood": False}
SUBGRAPHS: dict[str, Any] = {"memory": 30, "fan_out": 2, "hops": 2, "neighbours": "uniform", "centres_only": False}


def numbers(method: Method) -> list[int]:
    x: Any = method.memory[MEMORY].x
    return [round(float(v) * 1024) for v in x[:, 0]]


def arrived(runner: TaskFreeRunner, step: int) -> Batch:
    """A batch of the runner's stream, with the runner's state as it is in that step."""
    batch = runner.stream.make_batch(step)
    runner._draws.begin(f"step {step}")
    runner.problem.current = batch.allowed
    return batch


# --- the reservoir ----------------------------------------------------------------------------------------------------------------


def test_the_memory_of_a_run_is_uniform_over_what_came() -> None:
    """Each of the first 32 items is as often among seven kept ones, over 300 init seeds."""
    stream = tiny_task_free_stream()
    counts: Counter[int] = Counter()
    runner = task_free_runner(stream, Sampling, KEEP)
    items = runner.stream.items[:8].flatten().tolist()
    for seed in range(300):
        method = runner.method
        method.memory.drop(MEMORY)
        method.setup()
        runner._draws.seed = seed
        for step in range(8):
            method.after_batch(arrived(runner, step))
        assert len(method.memory) == 7
        counts.update(numbers(method))
    assert set(counts) == set(items)
    assert chisquare([counts[i] for i in items]).pvalue > 1e-3


def test_the_capacity_is_the_budget_or_the_setting() -> None:
    for budget, expected in ((None, 7), (5, 5), (500, 72)):
        runner = task_free_runner(tiny_task_free_stream(memory_budget=budget), Sampling, KEEP)
        assert runner.run().memory["items"] == expected


# --- ER ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("neighbourhood", [False, True])
def test_the_loss_is_that_of_the_batch_and_of_as_many_kept_items(neighbourhood: bool, graphs: bool) -> None:
    seen: list[int] = []

    class Watched(ER):
        def draw(self, batch: Batch, n: int) -> Batch | None:
            replay = super().draw(batch, n)
            seen.append(0 if replay is None else len(replay))
            return replay

        def loss(self, batch: Batch) -> torch.Tensor:
            self.model.eval()
            state = None if self._generator is None else self._generator.get_state()
            found = super().loss(batch)
            assert state is not None
            assert self._generator is not None
            self._generator.set_state(state)
            replay = super().draw(batch, len(batch))
            expected = self.problem.loss(self.problem.forward(self.model, batch), batch)
            if replay is not None:
                expected = expected + self.problem.loss(self.problem.forward(self.model, replay), replay)
                if not graphs:
                    assert (replay.graph is batch.graph) is neighbourhood
            torch.testing.assert_close(found, expected)
            self.model.train()
            return found

    stream = tiny_task_free_stream(tiny_graphs(per_class=20) if graphs else None, training={"epochs": 2})
    task_free_runner(stream, Watched, KEEP | {"neighbourhood": neighbourhood}).run()
    assert seen[:4] == [0, 0, 4, 4]
    assert len(seen) == 2 * stream.n_steps


def test_passes_over_a_batch_draw_anew() -> None:
    drawn_: list[list[int]] = []

    class Watched(ER):
        def draw(self, batch: Batch, n: int) -> Batch | None:
            replay = super().draw(batch, n)
            drawn_.append([] if replay is None else replay.graph.rows(replay.ids)[:, 0].tolist())
            return replay

    task_free_runner(tiny_task_free_stream(training={"epochs": 2}), Watched, KEEP | {"memory": 40}).run()
    assert any(drawn_[i] != drawn_[i + 1] for i in range(2, len(drawn_), 2))


def test_memory_by_reference_needs_the_whole_graph() -> None:
    with pytest.raises(NotApplicable, match="fan_out samples a new graph for every step"):
        task_free_runner(tiny_task_free_stream(training={"fan_out": (2, 2)}), ER, KEEP | {"neighbourhood": True})


# --- A-GEM ------------------------------------------------------------------------------------------------------------------------


def parameter(values: list[float] | None, n: int = 2) -> torch.nn.Parameter:
    p = torch.nn.Parameter(torch.zeros(n))
    p.grad = None if values is None else torch.tensor(values)
    return p


def test_a_conflicting_gradient_is_projected() -> None:
    """g = (1, -2 | 0, 0), r = (1, 1 | 0, 1): <g, r> = -1, ‖r‖² = 3, g + r / 3."""
    parameters = [parameter([1.0, -2.0]), parameter(None)]
    assert project(parameters, (torch.tensor([1.0, 1.0]), torch.tensor([0.0, 1.0])))
    found = torch.cat([p.grad for p in parameters if p.grad is not None])
    torch.testing.assert_close(found, torch.tensor([4 / 3, -5 / 3, 0.0, 1 / 3]))
    assert abs(float(found @ torch.tensor([1.0, 1.0, 0.0, 1.0]))) < 1e-6


@pytest.mark.parametrize("reference", [(torch.tensor([1.0, 0.0]),), (None,), (torch.zeros(2),)])
def test_other_gradients_stay(reference: tuple[torch.Tensor | None, ...]) -> None:
    one = parameter([1.0, -2.0])
    assert not project([one], reference)
    assert one.grad is not None
    assert one.grad.tolist() == [1.0, -2.0]


def test_no_step_goes_against_the_memory_and_projections_are_counted() -> None:
    products: list[float] = []

    class Watched(AGEM):
        def before_step(self) -> None:
            batch, state = self._batch, self._generator.get_state() if self._generator else None
            self.model.eval()
            super().before_step()
            assert self._generator is not None
            assert state is not None
            self._generator.set_state(state)
            assert batch is not None
            memory = self.draw(batch, 5)
            if memory is not None:
                loss = self.problem.loss(self.forward(memory), memory)
                parameters = list(self.model.parameters())
                reference = torch.autograd.grad(loss, parameters)
                products.append(sum(float((p.grad * r).sum()) for p, r in zip(parameters, reference, strict=True) if p.grad is not None))
            self.model.train()

    result = task_free_runner(tiny_task_free_stream(), Watched, KEEP | {"reference": 5}).run()
    assert min(products) > -1e-5
    assert result.counters["projected"] == sum(abs(p) <= 1e-5 for p in products) > 0


# --- SSM --------------------------------------------------------------------------------------------------------------------------


def test_a_budget_counts_nodes_and_edges_are_metered() -> None:
    runner = task_free_runner(tiny_task_free_stream(memory_budget=30), SSM, SUBGRAPHS)
    usage = runner.run().memory
    pack: Any = runner.method.memory[MEMORY].x
    assert isinstance(pack, Pack)
    assert int(pack.sizes.sum()) <= 30
    assert len(pack) < int(pack.sizes.sum())
    assert int(pack.sizes.max()) <= 1 + 2 + 4
    assert 0 < (usage["items"] or 0) <= 30
    assert (usage["edges"] or 0) >= pack.n_edges > 0


def test_as_benchmarked_the_capacity_counts_centres_and_the_meter_tells() -> None:
    runner = task_free_runner(tiny_task_free_stream(memory_budget=10), SSM, SUBGRAPHS | {"centres_only": True})
    usage = runner.run().memory
    assert len(runner.method.memory[MEMORY]) == 10
    assert (usage["items"] or 0) > 10


def test_what_is_larger_than_the_memory_is_passed_over_and_counted() -> None:
    result = task_free_runner(tiny_task_free_stream(memory_budget=2), SSM, SUBGRAPHS).run()
    assert result.counters["passed_over"] > 0
    assert (result.memory["items"] or 0) <= 2


def test_replay_is_the_loss_of_the_centres() -> None:
    runner = task_free_runner(tiny_task_free_stream(tiny_data(per_class=20, sparse=True)), SSM, SUBGRAPHS)
    runner.run()
    method = runner.method
    items = method.memory[MEMORY]
    replay = runner.problem.recall(items, None)
    assert isinstance(items.x, Pack)
    assert replay.ids.tolist() == items.x.node_start[:-1].tolist()
    assert replay.graph.n_edges == items.x.n_edges


def test_whole_graphs_are_kept_as_they_are() -> None:
    runner = task_free_runner(tiny_task_free_stream(tiny_graphs(per_class=20), memory_budget=9), SSM, SUBGRAPHS)
    usage = runner.run().memory
    assert usage["items"] == 9
    assert (usage["edges"] or 0) > 0


@pytest.mark.parametrize(("by_degree", "expected"), [(False, (1 / 2, 1 / 2)), (True, (3 / 4, 1 / 4))])
def test_neighbours_are_drawn_uniformly_or_by_degree(by_degree: bool, expected: tuple[float, float]) -> None:
    """Of node 0's neighbours 1 (degree 3) and 2 (degree 1) one is drawn."""
    graph = MessageGraph(torch.ones(5, 1), torch.tensor([[1, 2, 0, 3, 4, 0], [0, 0, 1, 1, 1, 2]]))
    rank = drawn(torch.Generator().manual_seed(0), by_degree=by_degree)
    ends = torch.tensor([1, 2]).numpy(), torch.tensor([0, 0]).numpy()
    first = Counter(int(rank(graph, *ends).argmin()) for _ in range(2000))
    assert chisquare([first[0], first[1]], [2000 * p for p in expected]).pvalue > 1e-3
