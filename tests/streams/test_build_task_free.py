"""Task-free streams: what arrives, what may be seen of it, and what is asked when."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_streams import node_numbers, tiny_data, tiny_graphs
from tiny_task_free import tiny_task_free_stream

from cglsuite.base.errors import DataError, SpecError
from cglsuite.specs import Seeds


def small_stream(graphs: bool = False, **changes: Any) -> Any:
    return tiny_task_free_stream(tiny_graphs(per_class=20) if graphs else None, **changes)


@pytest.mark.parametrize("graphs", [False, True])
def test_batches_hold_what_the_counts_say(graphs: bool) -> None:
    made = small_stream(graphs)
    task_of = {i: k for k in range(3) for i in made.members(k, "train").tolist()}
    y = tiny_data(per_class=20).y
    assert made.n_steps == 3 * 6
    for step in range(made.n_steps):
        batch = made.make_batch(step)
        items = made.items[step].tolist()
        assert node_numbers(batch.graph, batch.ids) == items
        assert torch.equal(batch.y, y[items])
        assert [sum(task_of[i] == k for i in items) for k in range(3)] == made.counts[step].tolist()
        assert set(batch.tasks.tolist()) == {0}, "nobody says which latent task an item belongs to"


def test_outputs_compete_once_the_stream_has_shown_them() -> None:
    made = small_stream()
    y = tiny_data(per_class=20).y
    seen: set[int] = set()
    for step in range(made.n_steps):
        seen |= set(y[made.items[step]].tolist())
        assert set(made.make_batch(step).allowed.nonzero().flatten().tolist()) == seen
        assert set(made.shown(step + 1).nonzero().flatten().tolist()) == seen
    assert not made.shown(0).any()


def test_an_item_of_several_labels_shows_all_of_them() -> None:
    """Multi-label nodes: after each step the outputs are those that an item so far has had, each with the first one that has it."""
    data = tiny_data(per_class=20, multi_label=True)
    made = tiny_task_free_stream(data, labels="multi", performance="roc-auc", split="node-consistent")
    assert (data.y.sum(dim=1) > 1).any()
    for step in range(made.n_steps):
        so_far = data.y[made.items[: step + 1].flatten()].any(dim=0)
        assert torch.equal(made.shown(step + 1), so_far)
        assert torch.equal(made.make_batch(step).allowed, so_far)


@pytest.mark.parametrize("graphs", [False, True])
def test_every_test_item_is_asked_at_every_evaluation_and_nothing_else(graphs: bool) -> None:
    made = small_stream(graphs)
    assert made.evaluations == [0, 3, 6, 9, 12, 15, 18]
    tests = sorted(i for k in range(3) for i in made.members(k, "test").tolist())
    for steps in made.evaluations:
        group, *others = made.make_queries(steps)
        assert len(others) == (steps == 18)
        assert sorted(node_numbers(group.query.graph, group.query.ids)) == tests
        assert (group.query.y, group.query.tasks) == (None, None)


@pytest.mark.parametrize("query_graph", ["own", "merged"])
@pytest.mark.parametrize("graphs", [False, True])
def test_validation_items_are_asked_at_the_end_in_a_graph_of_their_own(graphs: bool, query_graph: str) -> None:
    made = small_stream(graphs, task_free={"query_graph": query_graph})
    test, validation = made.make_queries(18)
    hidden = sorted(i for k in range(3) for i in made.members(k, "validation").tolist())
    assert sorted(node_numbers(validation.query.graph, validation.query.ids)) == hidden
    assert (validation.query.y, validation.query.tasks, validation.tasks) == (None, None, (0, 1, 2))
    assert torch.equal(validation.query.allowed, made.shown(18))
    assert torch.equal(made.make_queries(18)[0].query.ids, test.query.ids)
    if not graphs:
        y, of = tiny_data(per_class=20).y, validation.query.graph.edge_index
        assert sorted(node_numbers(validation.query.graph)) == list(range(120))
        latent = y[node_numbers(validation.query.graph)] // 2
        assert bool((latent[of[0]] != latent[of[1]]).any()) == (query_graph == "merged")
    answers = tiny_data(per_class=20).y[node_numbers(validation.query.graph, validation.query.ids)]
    tested, validated = made.oracle.grade({validation.token: answers}, {validation.token: validation.query.allowed})
    assert not tested
    assert [validated[k].performance for k in range(3)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("draw", ["without-replacement", "with-replacement"])
def test_exposure_counts_arrivals(draw: str) -> None:
    """Item by item; without replacement the items of a latent task arrive as often as each other, up to one time."""
    made = small_stream(task_free={"draw": draw, "schedule_hyperparameters": (("width", 8.0),)})
    arrived = made.items.flatten().tolist()
    for k, counts in enumerate(made.exposure()):
        times = [arrived.count(i) for i in made.members(k, "train").tolist()]
        assert counts == [times.count(n) for n in range(max(times) + 1)]
        assert sum(counts) == 24
        assert sum(n * count for n, count in enumerate(counts)) == int(made.counts[:, k].sum())
        assert (max(times) - min(times) <= 1) == (draw == "without-replacement")


def test_masks() -> None:
    seen = small_stream().make_queries(3)[0].query.allowed
    assert torch.equal(seen, small_stream().shown(3))
    assert small_stream().make_queries(0)[0].query.allowed.all(), "before anything was shown all compete"
    assert small_stream(task_free={"mask": "all"}).make_queries(3)[0].query.allowed.all()
    made = small_stream(task_free={"mask": "progressive"})
    (group,) = made.make_queries(3)
    asked = node_numbers(group.query.graph, group.query.ids)
    for row, item in zip(group.query.allowed, asked, strict=True):
        k = next(k for k in range(3) if item in made.members(k, "test"))
        assert row.nonzero().flatten().tolist() == list(range(2 * k + 2))


def test_validation_nodes_are_in_no_graph() -> None:
    for query_graph in ("own", "merged"):
        made = small_stream(task_free={"query_graph": query_graph})
        hidden = {i for k in range(3) for i in made.members(k, "validation").tolist()}
        for graph in (made.make_batch(0).graph, made.make_queries(3)[0].query.graph):
            assert not hidden & set(node_numbers(graph))
            assert len(node_numbers(graph)) == 120 - len(hidden)


def test_own_graphs_have_no_edge_between_latent_tasks_and_the_merged_one_has() -> None:
    y = tiny_data(per_class=20).y

    def crossing(graph: Any) -> int:
        of = y[node_numbers(graph)] // 2
        return int((of[graph.edge_index[0]] != of[graph.edge_index[1]]).sum())

    assert crossing(small_stream().make_queries(3)[0].query.graph) == 0
    assert crossing(small_stream(task_free={"query_graph": "merged"}).make_queries(3)[0].query.graph) > 0
    assert crossing(small_stream().make_batch(0).graph) > 0


def test_the_graph_is_built_once() -> None:
    made = small_stream()
    assert made.make_batch(0).graph is made.make_batch(5).graph
    assert made.make_queries(3)[0].query.graph is made.make_queries(6)[0].query.graph


def test_the_stream_depends_on_order_and_split_seeds_alone() -> None:
    one, again = small_stream(seeds=Seeds(order=1)), small_stream(seeds=Seeds(order=1, init=9))
    other = small_stream(seeds=Seeds(order=2))
    assert torch.equal(one.items, again.items)
    assert one.content == again.content != other.content
    assert torch.equal(one.counts, other.counts), "the schedule is no matter of seeds"
    assert one.items.tolist()[0] != other.items.tolist()[0]


def test_pinned_stream() -> None:
    """The same on every machine: a change of these numbers changes every task-free result there is."""
    made = small_stream(seeds=Seeds(order=3))
    assert made.counts[:8].tolist() == PINNED_COUNTS
    assert made.items[:2].tolist() == PINNED_ITEMS


PINNED_COUNTS = [[4, 0, 0], [4, 0, 0], [4, 0, 0], [4, 0, 0], [4, 0, 0], [3, 1, 0], [1, 3, 0], [0, 4, 0]]
PINNED_ITEMS = [[8, 26, 56, 76], [101, 107, 39, 97]]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"training": {"batch_size": 40}}, SpecError, "latent task 1 has only 24 training items; lower training.batch_size"),
        ({"training": {"batch_size": None}}, SpecError, "requires a number of items per step"),
        ({"train_outputs": "task"}, SpecError, "a batch of a task-free stream has no task; expected 'seen' or 'all'"),
        ({"split_ratio": (0.9, 0.1, 0.0)}, DataError, r"task 1 \(classes 0, 1\) has no test items"),
        ({"task_free": {"schedule_factory": ""}}, SpecError, "was not resolved"),
        ({"edge_policy": "none"}, SpecError, "scenario.edge_policy = none: .* expected snapshot or full"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        small_stream(**changes).make_batch(0)
