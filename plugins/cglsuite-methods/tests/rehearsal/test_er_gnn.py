"""ER-GNN: samplers against brute force, the weights of the two losses, what is replayed and how it is metered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_methods.rehearsal.er_gnn import ERGNN, coverage_maximization, mean_of_feature
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_streams import KeptCheckpoints, assert_same_run, node_numbers, tiny_data, tiny_runner, tiny_stream
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import BudgetError, NotApplicable
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch, TaskView

SETTINGS: dict[str, Any] = {
    "per_class": 2,
    "sampler": "cm",
    "distance": 0.5,
    "candidates": 1000,
    "swap_weights": False,
    "neighbourhood": False,
}
DATA = tiny_data()
SAMPLERS = ("mf", "mf+", "cm", "cm+", "random")


def runner_of(method: type[Method] = ERGNN, /, *, stream: dict[str, Any] | None = None, **changes: Any) -> TaskRunner:
    return tiny_runner(tiny_stream(DATA, **(stream or {})), method, SETTINGS | changes)


# --- samplers ---------------------------------------------------------------------------------------------------------------------


def test_mean_of_feature_by_hand() -> None:
    """On a line: the mean of 0, 1, 2, 9 is 3; nearest are 2, then 1, then 0, then 9."""
    points = torch.tensor([[50.0], [0.0], [1.0], [2.0], [9.0]])
    members = torch.tensor([1, 2, 3, 4])
    assert mean_of_feature(points, members, 3).tolist() == [3, 2, 1]
    assert mean_of_feature(points, members, 9).tolist() == [3, 2, 1, 4]


def test_mean_of_feature_breaks_ties_by_position() -> None:
    points = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])
    assert mean_of_feature(points, torch.arange(4), 3).tolist() == [0, 1, 2]


def test_coverage_maximization_by_hand() -> None:
    """Class 0 at 0, 1, 2; others at 0.1, 0.2, 1.1 and 5: with radius 0.5 the crowds are 2, 1 and 0."""
    points = torch.tensor([[0.0], [1.0], [2.0], [0.1], [0.2], [1.1], [5.0]])
    y = torch.tensor([0, 0, 0, 1, 1, 2, 1])
    candidates = torch.tensor([0, 1, 2])
    assert coverage_maximization(points, y != 0, candidates, 2, 0.5).tolist() == [2, 1]
    assert coverage_maximization(points, y != 0, candidates, 3, 10.0).tolist() == [0, 1, 2]  # all equally crowded
    assert coverage_maximization(points, y != 0, torch.tensor([1, 2, 0]), 3, 0.05).tolist() == [1, 2, 0]  # nobody is near anybody


def test_coverage_maximization_without_others_takes_the_first() -> None:
    assert coverage_maximization(torch.zeros(3, 1), torch.zeros(3, dtype=torch.bool), torch.tensor([2, 0, 1]), 2, 0.5).tolist() == [2, 0]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 15), st.integers(0, 10_000), st.sampled_from([0.5, 1.0, 2.0]))
def test_samplers_equal_brute_force(own: int, others: int, budget: int, seed: int, distance: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((own + others, 2)).astype(np.float32)
    y = rng.permutation([0] * own + [1] * others)
    members = np.flatnonzero(y == 0)
    mean = x[members].astype(np.float64).mean(axis=0)
    distances = {int(i): float(np.linalg.norm(x[i] - mean)) for i in members}
    chosen = mean_of_feature(torch.from_numpy(x), torch.from_numpy(members), budget).tolist()
    assert len(set(chosen)) == min(budget, own)
    # By distance, not by number: two members are equally far from their mean, up to rounding.
    assert np.allclose([distances[i] for i in chosen], sorted(distances.values())[:budget], atol=1e-5)

    candidates = rng.permutation(members)
    crowds = {i: sum(np.linalg.norm(x[i] - x[j]) < distance for j in np.flatnonzero(y == 1)) for i in candidates}
    by_crowd = sorted(candidates, key=lambda i: crowds[i])  # stable: ties stay in the order given
    chosen = coverage_maximization(torch.from_numpy(x), torch.from_numpy(y != 0), torch.from_numpy(candidates), budget, distance)
    assert chosen.tolist() == by_crowd[:budget]


def kept_nodes(method: Method) -> dict[int, list[int]]:
    """The numbers of the nodes in memory, by class."""
    out: dict[int, list[int]] = {}
    for shelf in method.memory:
        items = method.memory[shelf]
        assert items.x is not None
        rows = items.x if items.x.layout == torch.strided else items.x.to_dense()
        out[int(items.y[0])] = [round(float(v) * 1024) for v in rows[:, 0]]
        assert set(items.y.tolist()) == {int(items.y[0])}
    return out


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_memory_holds_training_nodes_of_every_class(sampler: str, policy: str, setting: str) -> None:
    seen: list[set[int]] = []

    class Watched(ERGNN):
        def after_task(self, view: TaskView) -> None:
            seen.append(set(node_numbers(view.graph, view.train.ids)))
            super().after_task(view)

    runner = runner_of(Watched, sampler=sampler, stream={"edge_policy": policy, "setting": setting})
    runner.run()
    kept = kept_nodes(runner.method)
    assert sorted(kept) == [0, 1, 2, 3, 4, 5]
    for c, numbers in kept.items():
        assert len(set(numbers)) == 2
        assert set(numbers) <= seen[c // 2]
        assert {int(DATA.y[n]) for n in numbers} == {c}


def test_mean_of_feature_samples_input_features_and_its_plus_form_embeddings() -> None:
    """The nodes kept of the first task, recomputed from what the method saw."""
    for sampler in ("mf", "mf+"):
        expected: dict[int, list[int]] = {}

        class Watched(ERGNN):
            def after_task(self, view: TaskView, sampler: str = sampler, expected: dict[int, list[int]] = expected) -> None:
                assert view.train.y is not None
                with torch.no_grad():
                    points = self.model.encode(view.graph)[view.train.ids] if sampler == "mf+" else self.problem.features(view.train)
                numbers = node_numbers(view.graph, view.train.ids)
                for c in view.classes.tolist():
                    members = (view.train.y == c).nonzero().flatten()
                    own = points[members]
                    order = (own - own.mean(0)).pow(2).sum(1).sqrt().argsort(stable=True)[:2]
                    expected[c] = [numbers[i] for i in members[order].tolist()]
                super().after_task(view)

        runner = runner_of(Watched, sampler=sampler)
        runner.run()
        assert kept_nodes(runner.method) == expected


def test_candidates_cap_what_coverage_maximization_looks_at() -> None:
    """With as many candidates as places, it takes the first of its random order whatever their crowds."""
    capped, random = (runner_of(sampler=s, candidates=2) for s in ("cm", "random"))
    capped.run()
    random.run()
    assert {c: set(n) for c, n in kept_nodes(capped.method).items()} == {c: set(n) for c, n in kept_nodes(random.method).items()}
    free = runner_of(sampler="cm", distance=2.0)
    free.run()
    assert kept_nodes(free.method) != kept_nodes(capped.method)


def test_a_class_smaller_than_its_share_is_kept_whole() -> None:
    for sampler in SAMPLERS:
        runner = runner_of(per_class=100, sampler=sampler, stream={"n_tasks": 1})
        runner.run()
        assert {c: len(set(n)) for c, n in kept_nodes(runner.method).items()} == {0: 6, 1: 6}


def test_samples_follow_the_init_seed_only() -> None:
    def kept(**options: Any) -> dict[int, list[int]]:
        runner = tiny_runner(tiny_stream(DATA), ERGNN, SETTINGS | {"sampler": "random"}, **options)
        torch.manual_seed(len(options))
        runner.run()
        return kept_nodes(runner.method)

    assert kept() == kept()
    assert kept(init_seed=1) != kept()


# --- the loss ---------------------------------------------------------------------------------------------------------------------


def moment(runner: TaskRunner) -> tuple[ERGNN, Batch]:
    """The method in evaluation mode, its memory of the first task laid out, and the batch of the second."""
    first, second = runner.stream.view(0), runner.stream.view(1)
    method = runner.method
    assert isinstance(method, ERGNN)
    runner.problem.arrive(first)
    method.model.eval()
    method.before_task(first)
    method.after_task(first)
    runner.problem.arrive(second)
    method.before_task(second)
    return method, second.train


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("neighbourhood", [False, True])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_weights_of_the_two_losses(setting: str, neighbourhood: bool, swap: bool) -> None:
    """β = |B| / (|B| + n) with 4 kept nodes and 12 current ones: β L + (1 - β) L_B; swapped, the other way round."""
    method, batch = moment(runner_of(neighbourhood=neighbourhood, swap_weights=swap, stream={"setting": setting}))
    items = method.problem.join(method.memory.all())
    replay = method._replay
    assert replay is not None
    assert (len(replay), len(batch)) == (4, 12)
    beta = 4 / (4 + 12)
    if swap:
        beta = 1 - beta
    current = method.problem.loss(method.forward(batch), batch)
    replayed = method.problem.loss(method.forward(replay), replay)
    torch.testing.assert_close(method.loss(batch), beta * current + (1 - beta) * replayed)
    assert replay.y is not None
    assert replay.y.tolist() == items.y.tolist()
    competing = [[0, 1]] * 4 if setting == "task-il" else [[0, 1, 2, 3]] * 4
    allowed = replay.allowed if replay.allowed.dim() == 2 else replay.allowed.expand(4, -1)
    assert [row.nonzero().flatten().tolist() for row in allowed] == competing


def test_one_forward_pass_serves_both_losses_in_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in the current graph, the nodes are encoded once; dropout then sees one mask, and no separate pass is paid for."""
    method, batch = moment(runner_of(neighbourhood=True))
    passes: list[Any] = []
    original = method.model.encode
    monkeypatch.setattr(method.model, "encode", lambda graph: (passes.append(graph), original(graph))[1])
    method.loss(batch)
    assert passes == [batch.graph]


def test_replayed_nodes_carry_no_edges_unless_asked() -> None:
    alone, _ = moment(runner_of())
    assert alone._replay is not None
    assert (alone._replay.graph.n_nodes, alone._replay.graph.n_edges) == (4, 0)
    for policy in ("inter-task", "full"):
        near, batch = moment(runner_of(neighbourhood=True, stream={"edge_policy": policy}))
        assert near._replay is not None
        assert near._replay.graph is batch.graph
        assert near._replay.graph.n_edges > 0
        # The same nodes either way: only where they are read differs.
        kept = sorted(node_numbers(near._replay.graph, near._replay.ids))
        assert kept == sorted(node_numbers(alone._replay.graph, alone._replay.ids))


def test_the_neighbourhood_matters() -> None:
    (alone, batch), (near, _) = moment(runner_of()), moment(runner_of(neighbourhood=True))
    assert not torch.allclose(alone.loss(batch), near.loss(batch))


def test_a_neighbourhood_cannot_be_read_where_old_nodes_are_gone() -> None:
    with pytest.raises(NotApplicable, match="edge policy `none`.*method.neighbourhood=false"):
        runner_of(neighbourhood=True, stream={"edge_policy": "none"}).run()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_before_anything_is_kept_it_is_fine_tuning(sampler: str) -> None:
    one = runner_of(sampler=sampler).run()
    bare = tiny_runner(tiny_stream(DATA), Method).run()
    assert one.curves[0] == bare.curves[0]
    assert one.matrix[1] == bare.matrix[1]
    assert one.curves[1] != bare.curves[1]


def test_replay_forgets_less() -> None:
    stream = tiny_stream(tiny_data(per_class=30), training={"epochs": 40})
    options: dict[str, Any] = {"backbone": {"dropout": 0.0, "width": 16}}
    replay = tiny_runner(stream, ERGNN, SETTINGS | {"per_class": 9, "neighbourhood": True}, **options).run().matrix
    bare = tiny_runner(stream, Method, **options).run().matrix
    assert replay[3][0] > bare[3][0] + 0.2


# --- metering, state --------------------------------------------------------------------------------------------------------------


def test_the_budget_is_kept_or_refused() -> None:
    assert runner_of(stream={"memory_budget": 12}).run().memory["items"] == 12
    with pytest.raises(BudgetError, match="would hold 12 items; the scenario's budget is 11"):
        runner_of(stream={"memory_budget": 11}).run()


def test_memory_is_metered() -> None:
    by_reference = runner_of(neighbourhood=True).run().memory
    with_features = runner_of().run().memory
    assert by_reference == {"items": 12, "edges": 0, "bytes": 12 * 24, "budget_items": None}
    assert with_features == {"items": 12, "edges": 0, "bytes": 12 * (24 + 8 * 4), "budget_items": None}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("neighbourhood", [False, True])
def test_resumption(neighbourhood: bool, sparse: bool) -> None:
    def runner() -> TaskRunner:
        return tiny_runner(tiny_stream(tiny_data(sparse=sparse)), ERGNN, SETTINGS | {"neighbourhood": neighbourhood})

    kept = KeptCheckpoints()
    whole = runner().run(kept, keep=99)
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner().run(only), whole)


def test_a_class_that_a_domain_lacks_is_no_matter() -> None:
    """Nothing is kept of it; classes of several domains are kept domain by domain."""
    from cglsuite.graphs import NodeData

    data = tiny_data()
    domain = torch.arange(data.n_nodes) % 2
    both = NodeData(
        x=data.x, edge_index=data.edge_index, y=torch.where((data.y == 1) & (domain == 0), 0, data.y), n_classes=6, keys={"domain": domain}
    )
    for sampler in SAMPLERS:
        stream = tiny_stream(both, setting="domain-il", task_key="domain", class_order="native", split="random", edge_policy="full")
        runner = tiny_runner(stream, ERGNN, SETTINGS | {"sampler": sampler})
        runner.run()
        assert {f"task-{k}-class-{c}" for k in (0, 1) for c in range(6)} - set(runner.method.memory) == {"task-0-class-1"}


def test_points_are_where_the_sampler_measures() -> None:
    """Shape and content, for sparse features too: dense input features or embeddings."""
    runner = tiny_runner(tiny_stream(tiny_data(sparse=True)), ERGNN, SETTINGS | {"sampler": "cm"})
    method, view = runner.method, runner.stream.view(0)
    assert isinstance(method, ERGNN)
    points: Tensor = method._points(view.train)
    assert torch.equal(points, tiny_data().x[node_numbers(view.graph, view.train.ids)])
