"""The public reservoir: uniform, as by Algorithm R, whatever the batches; it keeps extras at every level, and resumes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from scipy.stats import chisquare
from tiny_links import LINK_VARIANTS, link_runner, link_variant
from tiny_streams import VARIANTS, KeptCheckpoints, assert_same_run, tiny_data, tiny_graphs, tiny_runner, tiny_stream, variant_stream
from tiny_task_free import task_free_runner, tiny_task_free_stream
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import BudgetError, PluginError, SpecError
from cglsuite.graphs import MessageGraph
from cglsuite.learning import MeteredMemory, MethodContext, Reservoir
from cglsuite.learning.method import Hyperparameters
from cglsuite.learning.reproducibility.randomness import generator
from cglsuite.learning.reservoir import keep_lowest
from cglsuite.learning.runner import Runner
from cglsuite.problems import MemoryItems, NodeProblem
from cglsuite.streams import Batch, TaskView

# --- what is kept -----------------------------------------------------------------------------------------------------------------


def test_the_lowest_stay_by_hand() -> None:
    priorities = torch.tensor([0.5, 0.1, 0.9, 0.3], dtype=torch.float64)
    stays, refused = keep_lowest(priorities, torch.ones(4, dtype=torch.int64), 2)
    assert (stays.tolist(), refused) == ([1, 3], 0.5)
    stays, refused = keep_lowest(priorities, torch.tensor([1, 2, 1, 3]), 4)  # 2, then 3 does not fit, and nothing behind it is looked at
    assert (stays.tolist(), refused) == ([1], 0.3)
    stays, refused = keep_lowest(priorities, torch.ones(4, dtype=torch.int64), 9)
    assert (stays.tolist(), refused) == ([0, 1, 2, 3], 1.0)


@pytest.mark.parametrize("cuts", [(6,), (1,) * 6, (2, 3, 1)])
def test_what_is_kept_does_not_depend_on_the_sizes_of_batches(cuts: tuple[int, ...]) -> None:
    """Over every order of six priorities each pair is kept equally often: exactly uniform."""
    kept: Counter[tuple[int, ...]] = Counter()
    for order in itertools.permutations(range(6)):
        arriving = (torch.tensor(order, dtype=torch.float64) + 0.5) / 6
        who, priorities, bar, start = torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.float64), 1.0, 0
        for n in cuts:
            new = torch.arange(start, start + n)
            new, start = new[arriving[new] < bar], start + n
            pool, drawn_ = torch.cat([who, new]), torch.cat([priorities, arriving[new]])
            stays, refused = keep_lowest(drawn_, torch.ones(len(pool), dtype=torch.int64), 2)
            who, priorities, bar = pool[stays], drawn_[stays], min(bar, refused)
        kept[tuple(sorted(who.tolist()))] += 1
    assert set(kept) == set(itertools.combinations(range(6), 2))
    assert set(kept.values()) == {720 // 15}


def context(seed: int = 0, budget: int | None = None) -> MethodContext:
    """Of a method on nodes, whose generators start at ``seed``."""
    made: dict[str, torch.Generator] = {}
    return MethodContext(
        problem=NodeProblem(n_outputs=2, n_tasks=1, task_ids=False, class_balanced=False),
        hyperparameters=Hyperparameters({}),
        build_model=lambda: torch.nn.Linear(1, 1),  # type: ignore[arg-type, return-value]
        memory=MeteredMemory(budget),
        n_tasks=1,
        generator=lambda purpose: made.setdefault(purpose, generator(seed, purpose)),
    )


def numbered(start: int, stop: int) -> Batch:
    """Nodes whose only feature is their number."""
    n = stop - start
    graph = MessageGraph(torch.arange(start, stop, dtype=torch.float32).unsqueeze(1), torch.empty(2, 0, dtype=torch.int64))
    zeros = torch.zeros(n, dtype=torch.int64)
    return Batch(graph=graph, ids=torch.arange(n), allowed=torch.ones(2, dtype=torch.bool), y=zeros, tasks=zeros)


def numbers(reservoir: Reservoir) -> tuple[int, ...]:
    x: Any = None if reservoir.items is None else reservoir.items.x
    return () if x is None else tuple(int(v) for v in x[:, 0])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cuts", [(1,) * 5, (2, 3), (5,)])
def test_histories_are_those_of_algorithm_r(cuts: tuple[int, ...]) -> None:
    """With room for two: the third of five items is kept with probability 2/3 in place of either, and so on. Every history of what is
    held after each batch is as frequent, over 1500 seeds, as in Algorithm R, whose histories are enumerated."""
    ends = set(itertools.accumulate(cuts))
    expected: Counter[tuple[tuple[int, ...], ...]] = Counter()

    def enumerate_from(t: int, held: tuple[int, ...], weight: float, history: tuple[tuple[int, ...], ...]) -> None:
        history = (*history, tuple(sorted(held))) if t in ends else history
        if t == 5:
            expected[history] += weight  # type: ignore[assignment]
            return
        if len(held) < 2:
            enumerate_from(t + 1, (*held, t), weight, history)
            return
        for place in range(t + 1):  # Algorithm R: a place of 0..t; one beyond the capacity refuses
            enumerate_from(t + 1, tuple(t if i == place else h for i, h in enumerate(held)), weight / (t + 1), history)

    enumerate_from(0, (), 1.0, ())
    observed: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for seed in range(1500):
        reservoir, start, history = Reservoir(context(seed), capacity=2), 0, list[tuple[int, ...]]()
        for n in cuts:
            reservoir.offer(numbered(start, start + n))
            start += n
            history.append(tuple(sorted(numbers(reservoir))))
        observed[tuple(history)] += 1
    assert set(observed) <= set(expected)
    assert chisquare([observed[h] for h in expected], [1500 * w for w in expected.values()]).pvalue > 1e-3


def test_the_capacity_is_the_budget_where_the_scenario_has_one() -> None:
    for budget, expected in ((None, 3), (2, 2), (50, 7), (0, 0)):
        reservoir = Reservoir(context(budget=budget), capacity=3)
        assert (len(reservoir), reservoir.items, reservoir.draw(2)) == (0, None, None)
        reservoir.offer(numbered(0, 7))
        assert len(reservoir) == len(numbers(reservoir)) == expected


def test_several_reservoirs_share_a_budget() -> None:
    shared = context(budget=4)
    one, other = Reservoir(shared, capacity=9, shelf="a"), Reservoir(shared, capacity=9, shelf="b")
    one.capacity = other.capacity = 2
    one.offer(numbered(0, 5))
    other.offer(numbered(5, 10))
    assert set(numbers(one)) < set(range(5))
    assert set(numbers(other)) < set(range(5, 10))
    other.capacity = 3
    other.bar = 1.0
    with pytest.raises(BudgetError, match="would hold 5 items"):
        other.offer(numbered(5, 10))


def test_what_cannot_stay_is_not_copied_and_its_extras_are_not_computed() -> None:
    asked: list[int] = []

    def logits(items: MemoryItems) -> dict[str, Tensor]:
        asked.append(len(items))
        return {"number": items.x}  # type: ignore[dict-item]

    reservoir = Reservoir(context(), capacity=5)
    for start in range(0, 2000, 100):
        reservoir.offer(numbered(start, start + 100), extra=logits)
    assert max(asked) == 5
    assert sum(asked) < 40, "5 + 5 (1/2 + 1/3 + ...) are expected to enter"
    assert reservoir.items is not None
    assert reservoir.items.extra["number"][:, 0].tolist() == list(numbers(reservoir))


def test_draws_continue_and_are_of_the_items() -> None:
    reservoir = Reservoir(context(), capacity=9)
    reservoir.offer(numbered(0, 9), extra={"number": torch.arange(9)})
    draws = [reservoir.draw(4) for _ in range(6)]
    found = [one.extra["number"].tolist() for one in draws if one is not None]
    assert all(len(set(one)) == 4 for one in found)
    assert len({tuple(one) for one in found}) > 1


def test_extras_of_a_batch_have_a_row_per_item_of_it() -> None:
    reservoir = Reservoir(context(), capacity=2)
    with pytest.raises(SpecError, match=r"extra 'z' .* has shape \[2, 3\]; expected one row per item of the batch: \[5, \.\.\.\]"):
        reservoir.offer(numbered(0, 5), extra={"z": torch.zeros(2, 3)})
    with pytest.raises(SpecError, match=r"extra 'z' .* has shape \[5\]; expected one row per item: \[2, \.\.\.\]"):
        reservoir.offer(numbered(0, 5), extra=lambda items: {"z": torch.zeros(5)})
    assert len(reservoir) == 0
    z = torch.ones(5, 3, requires_grad=True) * 2
    reservoir.offer(numbered(0, 5), extra={"z": z})
    assert reservoir.items is not None
    assert not reservoir.items.extra["z"].requires_grad
    reservoir.bar = 1.0
    with pytest.raises(SpecError, match="cannot be joined: 'z' and none"):
        reservoir.offer(numbered(5, 10))


# --- in a method ------------------------------------------------------------------------------------------------------------------


class Dark(Method):
    """Keeps input features and outputs of what it sees in a reservoir, and watches that they stay with their items."""

    state = ("reservoir",)

    def setup(self) -> None:
        """Nothing came yet."""
        self.reservoir = Reservoir(self.context, capacity=11)

    def loss(self, batch: Batch) -> Tensor:
        """The batch's loss, and the distance to the outputs of kept items."""
        loss = super().loss(batch)
        drawn = self.reservoir.draw(5)
        if drawn is None:
            return loss
        replay = self.problem.recall(drawn)
        assert torch.equal(self.problem.features(replay), drawn.extra["features"])
        return loss + (self.forward(replay) - drawn.extra["logits"]).square().mean()

    def _of(self, items: MemoryItems) -> Mapping[str, Tensor]:
        replay, training = self.problem.recall(items), self.model.training
        self.model.eval()
        logits = self.forward(replay)
        self.model.train(training)
        return {"features": self.problem.features(replay), "logits": logits}

    def after_batch(self, batch: Batch) -> None:
        """Without tasks."""
        self.reservoir.offer(batch, extra=self._of)

    def after_task(self, view: TaskView) -> None:
        """With tasks."""
        self.reservoir.offer(view.train, extra=self._of)


RUNNERS: dict[str, Any] = {
    **{name: lambda name=name: tiny_runner(variant_stream(name), Dark) for name in VARIANTS},
    **{name: lambda name=name: link_runner(link_variant(name), Dark) for name in LINK_VARIANTS},
    "class-il": lambda: tiny_runner(tiny_stream(tiny_data(sparse=True)), Dark),
    "graph budget": lambda: tiny_runner(tiny_stream(tiny_graphs(), memory_budget=4), Dark),
    "task-free nodes": lambda: task_free_runner(tiny_task_free_stream(), Dark),
    "task-free sampled": lambda: task_free_runner(tiny_task_free_stream(training={"fan_out": (2, 2)}), Dark),
    "task-free graphs": lambda: task_free_runner(tiny_task_free_stream(tiny_graphs(per_class=20)), Dark),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", RUNNERS)
def test_extras_stay_with_their_items_and_an_interruption_changes_no_bit(name: str) -> None:
    class All(KeptCheckpoints):
        def drop(self, prefix: str) -> None:
            """Let nothing go."""

    kept, only = All(), KeptCheckpoints()
    runner: Runner[Any] = RUNNERS[name]()
    whole = runner.run(kept, keep=99)
    reservoir: Reservoir = runner.method.reservoir  # type: ignore[attr-defined]
    items = reservoir.items
    assert items is not None
    assert len(reservoir) == (4 if "budget" in name else 11)
    width = sum(rows[0].numel() * rows.element_size() for rows in items.extra.values())
    assert whole.memory["extra_bytes"] == len(items) * width
    assert (whole.memory["bytes"] or 0) > len(items) * width
    middle = kept.saved[len(kept.saved) // 2]
    only.files[middle] = kept.files[middle]
    resumed = RUNNERS[name]().run(only)
    assert resumed.trained_tasks < whole.trained_tasks
    assert_same_run(resumed, whole)


def test_an_object_of_its_own_state_must_stand_by_itself() -> None:
    class Hidden(Method):
        state = ("reservoirs",)

        def setup(self) -> None:
            self.reservoirs = {"a": Reservoir(self.context, capacity=3)}

    with pytest.raises(PluginError, match=r"Hidden\.reservoirs contains a Reservoir, .* \(but not an entry of a list or dict\)"):
        tiny_runner(tiny_stream(), Hidden).run(KeptCheckpoints())
