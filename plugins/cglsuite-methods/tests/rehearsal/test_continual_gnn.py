"""ContinualGNN: shares and changes against brute force, what is kept and replayed, and the EWC term."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.regularisation.ewc import EWC
from cglsuite_methods.rehearsal.continual_gnn import ContinualGNN, most_changed, proportional
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_streams import KeptCheckpoints, assert_same_run, node_numbers, tiny_data, tiny_runner, tiny_stream

from cglsuite import Method
from cglsuite.base.errors import NotApplicable
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import TaskView

SETTINGS: dict[str, Any] = {
    "memory": 9,
    "replayed": 4,
    "changed_share": 0.5,
    "lambda": 3.0,
    "fisher": "batch",
    "chunk": 16,
    "without_ewc": False,
    "neighbourhood": False,
}
DATA = tiny_data()


def runner_of(
    method: type[Method] = ContinualGNN, /, *, stream: dict[str, Any] | None = None, sparse: bool = False, **changes: Any
) -> TaskRunner:
    return tiny_runner(tiny_stream(tiny_data(sparse=sparse), **(stream or {})), method, SETTINGS | changes)


# --- pure functions ---------------------------------------------------------------------------------------------------------------


def test_shares_by_hand() -> None:
    assert proportional([6, 3, 1], 5) == [3, 2, 0]  # 3.0, 1.5, 0.5: the tie goes to the first
    assert proportional([6, 3, 1], 10) == proportional([6, 3, 1], 99) == [6, 3, 1]
    assert proportional([], 5) == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 50), max_size=12), st.integers(1, 60))
def test_shares_are_within_one_of_proportion(sizes: list[int], budget: int) -> None:
    places = proportional(sizes, budget)
    assert sum(places) == min(budget, sum(sizes))
    for size, place in zip(sizes, places, strict=True):
        assert 0 <= place <= size
        assert abs(place - min(budget / sum(sizes), 1) * size) < 1


def test_most_changed_by_hand() -> None:
    before = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    now = before + torch.tensor([[0.5, 0.0], [0.0, 2.0], [1e-7, 0.0], [0.0, -0.5]])
    assert most_changed(before, now, 9).tolist() == [1, 0, 3]  # rounding is no change; a tie goes to the lower position
    assert most_changed(before, now, 2).tolist() == [1, 0]
    assert most_changed(before, torch.empty(0, 0), 2).tolist() == []


# --- what is kept and replayed ----------------------------------------------------------------------------------------------------


def numbers_in_memory(method: Method) -> dict[str, list[int]]:
    out = {}
    for shelf in method.memory:
        x = method.memory[shelf].x
        assert x is not None
        rows = x if x.layout == torch.strided else x.to_dense()
        out[shelf] = [round(float(v) * 1024) for v in rows[:, 0]]
    return out


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_the_memory_holds_every_class_in_proportion(setting: str, policy: str, sparse: bool) -> None:
    """Six training items of each class; a shelf only ever loses its last items, so that it stays a uniform sample."""
    shelves: list[dict[str, list[int]]] = []

    class Watched(ContinualGNN):
        def after_task(self, view: TaskView) -> None:
            super().after_task(view)
            shelves.append(numbers_in_memory(self))

    runner_of(Watched, stream={"setting": setting, "edge_policy": policy}, sparse=sparse).run()
    assert [sorted(map(len, s.values()), reverse=True) for s in shelves] == [[5, 4], [3, 2, 2, 2], [2, 2, 2, 1, 1, 1]]
    for k, held in enumerate(shelves):
        for shelf, numbers in held.items():
            task, c = (int(part) for part in shelf.removeprefix("task-").split("-class-"))
            assert task == c // 2 <= k
            assert {int(DATA.y[n]) for n in numbers} == {c}
            if k > task:
                assert numbers == shelves[k - 1][shelf][: len(numbers)]


def replays(**options: Any) -> list[tuple[set[int], set[int]]]:
    """By task after the first: the replayed nodes, and the nodes in memory."""
    seen: list[tuple[set[int], set[int]]] = []

    class Watched(ContinualGNN):
        def training_views(self, view: TaskView) -> Any:
            held = {n for numbers in numbers_in_memory(self).values() for n in numbers}
            (made,) = super().training_views(view)
            own = set(node_numbers(view.graph, view.train.ids))
            assert made.validation is view.validation
            if not view.first:
                seen.append((set(node_numbers(made.graph, made.train.ids)) - own, held))
            return (made,)

    runner_of(Watched, **options).run()
    return seen


@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_some_of_the_memory_is_replayed(policy: str) -> None:
    for replayed, held in replays(stream={"edge_policy": policy}):
        assert len(replayed) == 4
        assert replayed <= held
    for replayed, held in replays(stream={"edge_policy": policy}, replayed=100):
        assert replayed == held


def test_the_most_changed_by_brute_force() -> None:
    """Where the graph grows: embeddings of all of memory in the last graph and in the new one, under the weights before the task."""
    previous: list[Any] = []
    expected: list[set[int]] = []

    class Watched(ContinualGNN):
        def training_views(self, view: TaskView) -> Any:
            if not view.first:
                ids = torch.cat([items.ids for items in self.memory.all()])
                self.model.eval()
                with torch.no_grad():
                    change = (self.model.encode(view.graph)[ids] - self.model.encode(previous[-1])[ids]).norm(dim=1)
                self.model.train()
                expected.append({node_numbers(view.graph, ids)[i] for i in change.argsort(descending=True)[:4].tolist()})
                assert change[change.argsort(descending=True)[3]] > 1e-3
            previous.append(view.graph)
            return super().training_views(view)

    options: dict[str, Any] = {"changed_share": 1.0, "without_ewc": True}
    runner_of(Watched, stream={"edge_policy": "inter-task"}, **options).run()
    found = [replayed for replayed, _ in replays(stream={"edge_policy": "inter-task"}, **options)]
    assert found == expected


@pytest.mark.parametrize("policy", ["none", "full"])
def test_where_nothing_changes_all_are_drawn(policy: str) -> None:
    """No edges reach old nodes, or the graph does not grow: the share of changed items makes no difference."""
    one, other = (runner_of(stream={"edge_policy": policy}, changed_share=share).run() for share in (0.0, 1.0))
    assert_same_run(one, other)


def test_the_changed_matter_where_the_graph_grows() -> None:
    one, other = (runner_of(stream={"edge_policy": "inter-task"}, changed_share=share).run() for share in (0.0, 1.0))
    assert one.curves != other.curves


def test_replayed_nodes_carry_no_edges_unless_asked() -> None:
    for neighbourhood in (False, True):
        runner = runner_of(neighbourhood=neighbourhood, stream={"edge_policy": "inter-task"})
        first, second = runner.stream.view(0), runner.stream.view(1)
        for view in (first, second):
            runner.problem.arrive(view)
            (made,) = runner.method.training_views(view)
            if view is first:
                assert made is view
                runner.method.model.eval()
                runner.method.after_task(view)
        assert len(made.train) == 12 + 4
        assert (made.graph is second.graph) == neighbourhood
        assert made.graph.n_edges == second.graph.n_edges
    with pytest.raises(NotApplicable, match="edge policy `none`"):
        runner_of(neighbourhood=True, stream={"edge_policy": "none"}).run()


# --- the EWC term, metering, state ------------------------------------------------------------------------------------------------


def test_the_ewc_term_is_ewcs() -> None:
    """Nothing to replay (a class and a task on): after the first task both have the same Fisher information and anchors."""
    mine, ewc = runner_of(stream={"n_tasks": 1}), runner_of(EWC, stream={"n_tasks": 1})
    mine.run()
    ewc.run()
    assert isinstance(mine.method, ContinualGNN)
    assert isinstance(ewc.method, EWC)
    for name, value in ewc.method.fisher.items():
        assert torch.equal(mine.method.fisher[name], value)
        assert torch.equal(mine.method.weighted[name], ewc.method.weighted[name])


def test_without_ewc_the_term_never_applies() -> None:
    without, zero, full = (runner_of(**c).run() for c in ({"without_ewc": True}, {"lambda": 0.0}, {}))
    assert without.curves == zero.curves
    assert repr(without.matrix) == repr(zero.matrix)
    assert without.curves[0] == full.curves[0]
    assert without.curves[1] != full.curves[1]
    assert without.parameters["method"] < full.parameters["method"] / 2


def test_the_scenarios_budget_bounds_the_memory() -> None:
    assert runner_of(stream={"memory_budget": 7}).run().memory["items"] == 7
    usage = runner_of().run().memory
    assert usage["items"] == 9
    assert usage["budget_items"] is None
    assert runner_of(memory=1000).run().memory["items"] == 36


@pytest.mark.parametrize("neighbourhood", [False, True])
@pytest.mark.parametrize("policy", ["none", "inter-task"])
def test_resumption(policy: str, neighbourhood: bool) -> None:
    if policy == "none" and neighbourhood:
        return
    options: dict[str, Any] = {"stream": {"edge_policy": policy}, "sparse": True, "neighbourhood": neighbourhood}
    kept = KeptCheckpoints()
    whole = runner_of(**options).run(kept, keep=99)
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner_of(**options).run(only), whole)


def test_replay_forgets_less() -> None:
    stream = tiny_stream(tiny_data(per_class=30), training={"epochs": 30})
    options: dict[str, Any] = {"backbone": {"dropout": 0.0, "width": 16}}
    changes: dict[str, Any] = {"memory": 60, "replayed": 60, "neighbourhood": True, "lambda": 0.0}
    mine = tiny_runner(stream, ContinualGNN, SETTINGS | changes, **options).run().matrix
    bare = tiny_runner(stream, Method, **options).run().matrix
    assert mine[3][0] > bare[3][0] + 0.2
