"""The graph-level adapter: batches, epochs, answers and memories of whole graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_streams import node_numbers, tiny_graphs, tiny_model, tiny_stream

from cglsuite.base.errors import SpecError
from cglsuite.graphs.packed import PackedGraphs
from cglsuite.learning.memory import MeteredMemory
from cglsuite.problems import GraphProblem, MultiLabelGraphProblem, NodeProblem, problem_class
from cglsuite.streams import TaskStream


def stream(**changes: Any) -> TaskStream:
    return tiny_stream(tiny_graphs(), **changes)


def ready(over: TaskStream, upto: int = 0, **options: Any) -> GraphProblem:
    made = GraphProblem(
        n_outputs=over.n_outputs, n_tasks=len(over), task_ids=over.spec.task_ids_at_test, **({"class_balanced": False} | options)
    )
    for k in range(upto + 1):
        made.arrive(over.view(k))
    return made


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


class Jittered(PackedGraphs):
    """Every epoch adds its number to the features."""

    number: int | None = None

    def epoch(self, number: int) -> Jittered:
        changed = type(self)(self._pack, self.device)
        changed.features = self.features + number
        changed.number = number
        return changed


def jittered(batch: Any) -> Any:
    from dataclasses import replace

    return replace(batch, graph=Jittered(batch.graph._pack, batch.graph.device), cache={})


def test_levels_have_their_adapters() -> None:
    assert problem_class("NC", "single") is NodeProblem
    assert problem_class("GC", "single") is GraphProblem
    assert problem_class("GC", "multi") is MultiLabelGraphProblem
    with pytest.raises(
        SpecError,
        match="there is no adapter for problem level LP with single labels; expected GC with multi labels, .*GR with real labels, ",
    ):
        problem_class("LP", "single")


def test_views_of_several_tasks_are_one_batch() -> None:
    made = stream()
    problem = ready(made, 1)
    batch = problem.batch([made.view(0), made.view(1)])
    expected = [*made.members(0, "train").tolist(), *made.members(1, "train").tolist()]
    assert node_numbers(batch.graph, batch.ids) == expected
    assert torch.equal(problem.labels(batch), tiny_graphs().y[expected])


def test_answers_are_those_of_each_graph_alone() -> None:
    made = stream()
    problem, model = ready(made), tiny_model(made)().eval()
    batch = made.view(0).train
    with torch.no_grad():
        together = problem.forward(model, batch)
        for i in range(3):
            (alone,) = model(batch.graph.take(torch.tensor([i])))
            torch.testing.assert_close(together[i], alone)
        assert problem.embed(model, batch).shape == (len(batch), 5)
        assert problem.edge_attention(model, batch).shape == (batch.graph.edges_with_loops.shape[1], 1)
    assert problem.features(batch).shape == (len(batch), 8)


def test_items_in_another_order_than_their_set() -> None:
    from dataclasses import replace

    made = stream()
    problem, model, batch = ready(made), tiny_model(made)().eval(), made.view(0).train
    turned = replace(batch, ids=batch.ids.flip(0), cache={})
    with torch.no_grad():
        assert torch.equal(problem.forward(model, turned), problem.forward(model, batch).flip(0))


def test_without_augmentation_every_epoch_is_the_same_batch() -> None:
    made = stream()
    epochs = ready(made).epochs([made.view(0)], generator())
    first, second = list(epochs), list(epochs)
    assert first[0] is second[0]


def test_every_pass_is_the_next_epoch_and_keeps_what_follows_from_labels_only() -> None:
    from dataclasses import replace

    made = stream()
    problem, view = ready(made, class_balanced=True), made.view(0)
    epochs = problem.epochs([replace(view, train=jittered(view.train))], generator())
    model = tiny_model(made)()
    for number in range(3):
        (batch,) = epochs
        assert batch.graph.number == number
        if number:
            assert {"columns", "labels", "class_weight", "everything"} <= set(batch.cache)
        assert "teacher" not in batch.cache
        problem.loss(problem.forward(model, batch), batch)
        batch.cache["teacher"] = "answers to this epoch's inputs"


def test_mini_batches_are_all_items_in_a_new_order() -> None:
    from dataclasses import replace

    made = stream()
    view = made.view(0)
    epochs = ready(made, batch_size=5).epochs([replace(view, train=jittered(view.train))], generator())
    assert len(epochs) == 3  # type: ignore[arg-type]
    orders = []
    for number in range(2):
        batches = list(epochs)
        assert [len(b) for b in batches] == [5, 5, 2]
        assert {b.graph.number for b in batches} == {number}
        shown = [n for b in batches for n in node_numbers_of_epoch(b.graph, number)]
        assert sorted(shown) == made.members(0, "train").tolist()
        assert torch.equal(torch.cat([b.y for b in batches]), tiny_graphs().y[shown])
        orders.append(shown)
    assert orders[0] != orders[1]


def node_numbers_of_epoch(graphs: Any, number: int) -> list[int]:
    return [round(float(v - number) * 1024) for v in graphs.pool(graphs.features, "max")[:, 0]]


def test_neighbours_are_not_sampled_in_whole_graphs() -> None:
    made = stream()
    with pytest.raises(SpecError, match="items are whole graphs, but neighbours can be sampled only in a large graph"):
        ready(made, batch_size=4, fan_out=(2, 2)).epochs([made.view(0)], generator())


@pytest.mark.parametrize("kind", ["reference", "item"])
def test_memories_keep_graphs_and_come_back_from_a_checkpoint(kind: Any) -> None:
    made = stream()
    problem = ready(made)
    batch = made.view(0).train
    items = problem.sample(batch, torch.tensor([4, 0, 7]), kind)
    again = problem.sample(batch, torch.tensor([2]), kind)
    memory = MeteredMemory()
    memory.put("a", problem.join([items, again]))
    assert memory.bytes() > sum(8 * 3 for _ in range(4))
    restored = MeteredMemory()
    restored.load_state(memory.state(), torch.device("cpu"), problem.like)
    for held in (memory, restored):
        recalled = problem.recall(held["a"], made.view(0))
        assert node_numbers(recalled.graph, recalled.ids) == made.members(0, "train")[[4, 0, 7, 2]].tolist()
        assert torch.equal(problem.labels(recalled), problem.labels(batch)[[4, 0, 7, 2]])
        assert node_numbers(held["a"].take(torch.tensor([3, 1])).x) == made.members(0, "train")[[2, 0]].tolist()  # type: ignore[arg-type]
    together = problem.merge([made.view(0).train, problem.recall(memory["a"], made.view(0))])
    assert len(together) == len(batch) + 4
