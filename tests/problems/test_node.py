"""The node problem against torch's own losses, loops and separate forward passes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_streams import node_numbers, tiny_data, tiny_model, tiny_stream
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.cells.border import refuse_unknown_nodes
from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.problems import MemoryItems, NodeProblem
from cglsuite.streams import Batch, TaskStream

EDGES = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 2, 2]])
X = torch.tensor([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0], [0.5, 0.0, 0.0], [0.0, 3.0, 1.0]])
LOGITS = torch.tensor([[1.0, 2.0, -1.0, 0.5], [0.0, 3.0, 1.0, -2.0], [0.2, 0.1, 4.0, 0.0]])
SHARED = torch.tensor([True, False, True, True])


def graph(sparse: bool = False) -> MessageGraph:
    return MessageGraph(scipy.sparse.csr_matrix(X.numpy()) if sparse else X, EDGES)


def batch(y: list[int], allowed: Tensor = SHARED, ids: list[int] | None = None, **more: Any) -> Batch:
    return Batch(graph=graph(), ids=torch.tensor(ids or list(range(len(y)))), allowed=allowed, y=torch.tensor(y), **more)


def problem(*, task_ids: bool = False, class_balanced: bool = False, n_outputs: int = 4) -> NodeProblem:
    return NodeProblem(n_outputs=n_outputs, n_tasks=2, task_ids=task_ids, class_balanced=class_balanced)


def per_item(mask: Tensor, n: int = 3) -> Tensor:
    return mask.expand(n, -1).clone()


# --- loss -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_loss_is_cross_entropy_among_the_allowed_outputs(reduction: Literal["mean", "sum", "none"]) -> None:
    """Column 1, the highest of the first two items, does not compete; labels are renumbered 0, 2, 3 → 0, 1, 2."""
    columns, labels = LOGITS[:, [0, 2, 3]], torch.tensor([1, 0, 2])
    expected = functional.cross_entropy(columns, labels, reduction=reduction)
    assert torch.equal(problem().loss(LOGITS, batch([2, 0, 3]), reduction), expected)


def test_the_loss_by_hand() -> None:
    """One item, two outputs that compete: log(1 + exp(z_other - z_label))."""
    allowed = torch.tensor([True, True, False, False])
    assert float(problem().loss(LOGITS[:1], batch([0], allowed))) == pytest.approx(math.log(1 + math.e))


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_masks_per_item_equal_a_shared_one(reduction: Literal["mean", "sum", "none"], balanced: bool) -> None:
    one, other = LOGITS.clone().requires_grad_(), LOGITS.clone().requires_grad_()
    made = problem(class_balanced=balanced)
    shared = made.loss(one, batch([2, 0, 2]), reduction)
    separate = made.loss(other, batch([2, 0, 2], per_item(SHARED)), reduction)
    torch.testing.assert_close(shared, separate)
    shared.sum().backward()
    separate.sum().backward()
    assert one.grad is not None
    torch.testing.assert_close(one.grad, other.grad)
    assert not one.grad[:, 1].any()  # an output that does not compete learns nothing


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000), st.booleans())
def test_the_loss_equals_a_loop_over_items_with_outputs_of_their_own(n: int, seed: int, balanced: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, 5, generator=generator)
    y = torch.randint(0, 5, (n,), generator=generator)
    allowed = torch.rand(n, 5, generator=generator) < 0.5
    allowed[torch.arange(n), y] = True
    items = [-float(logits[i, y[i]] - logits[i][allowed[i]].logsumexp(0)) for i in range(n)]
    weights = [1 / int((y == y[i]).sum()) if balanced else 1.0 for i in range(n)]
    expected = sum(w * v for w, v in zip(weights, items, strict=True))
    made = problem(class_balanced=balanced, n_outputs=5)
    given_batch = Batch(graph=graph(), ids=torch.zeros(n, dtype=torch.int64), allowed=allowed, y=y)
    assert float(made.loss(logits, given_batch)) == pytest.approx(expected / sum(weights), rel=1e-5, abs=1e-6)
    assert float(made.loss(logits, given_batch, "sum")) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(made.loss(logits, given_batch, "none"), items, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("allowed", [SHARED, torch.ones(4, dtype=torch.bool), per_item(SHARED, 4)], ids=["some", "all", "per item"])
def test_class_balance_is_the_mean_over_classes_of_their_mean_losses(allowed: Tensor) -> None:
    logits = torch.cat([LOGITS, torch.tensor([[0.3, 0.3, 0.3, 0.3]])])
    given_batch = batch([2, 0, 2, 2], allowed)
    items = problem().loss(logits, given_batch, "none")
    expected = (items[1] + items[[0, 2, 3]].mean()) / 2
    torch.testing.assert_close(problem(class_balanced=True).loss(logits, replace(given_batch, cache={})), expected)
    torch.testing.assert_close(problem(class_balanced=True).loss(logits, replace(given_batch, cache={}), "none"), items)


def test_what_a_batch_remembers_is_its_own() -> None:
    """The columns and weights kept with a batch serve the same batch again, and no other."""
    made = problem(class_balanced=True)
    one = batch([2, 0, 3])
    first = made.loss(LOGITS, one)
    assert torch.equal(made.loss(LOGITS, one), first)
    other = replace(one, y=torch.tensor([0, 0, 2]), cache={})
    torch.testing.assert_close(made.loss(LOGITS, other), made.loss(LOGITS, batch([0, 0, 2])))
    assert not torch.equal(made.loss(LOGITS, other), first)


def test_a_query_has_no_labels() -> None:
    query = Batch(graph=graph(), ids=torch.tensor([0]), allowed=SHARED)
    for use in (lambda: problem().labels(query), lambda: problem().loss(LOGITS[:1], query)):
        with pytest.raises(SpecError, match="this batch is a query, so it has no labels: only the oracle has them"):
            use()


# --- distillation, norms, answers -------------------------------------------------------------------------------------------------


def test_distillation_by_hand() -> None:
    """Two outputs: -Σ p log q with p, q logistic; at temperature 2 of half the difference."""
    old, new = torch.tensor([[1.0, 9.0, 0.0]]), torch.tensor([[0.0, -9.0, 2.0]])
    outputs = torch.tensor([True, False, True])
    for temperature in (1.0, 2.0):
        p, q = 1 / (1 + math.exp(-1 / temperature)), 1 / (1 + math.exp(2 / temperature))
        expected = -(p * math.log(q) + (1 - p) * math.log(1 - q))
        assert float(problem().distill(old, new, outputs, temperature)) == pytest.approx(expected, rel=1e-6)


def test_distillation_equals_cross_entropy_with_soft_targets_and_is_least_at_the_teacher() -> None:
    old = LOGITS.flip(0)
    soft = (old[:, SHARED] / 3).softmax(1)
    torch.testing.assert_close(problem().distill(old, LOGITS, SHARED, 3.0), functional.cross_entropy(LOGITS[:, SHARED] / 3, soft))
    student = old.clone().requires_grad_()
    problem().distill(old, student, SHARED, 3.0).backward()
    assert student.grad is not None
    torch.testing.assert_close(student.grad, torch.zeros_like(old))


def test_squared_norm_counts_what_competes() -> None:
    assert problem().squared_norm(LOGITS, batch([0, 0, 0])).tolist() == pytest.approx([1 + 1 + 0.25, 0 + 1 + 4, 0.04 + 16 + 0])
    own = torch.tensor([[True, False, False, False], [False, True, False, True], [False] * 4])
    assert problem().squared_norm(LOGITS, batch([0, 1, 0], own)).tolist() == pytest.approx([1.0, 9 + 4, 0.0])


def test_decode_takes_the_highest_allowed_output() -> None:
    assert problem().decode(LOGITS, torch.ones(4, dtype=torch.bool)).tolist() == [1, 1, 2]
    assert problem().decode(LOGITS, SHARED).tolist() == [0, 2, 2]
    own = torch.tensor([[False, False, True, True], [True, False, False, True], [True, True, False, False]])
    assert problem().decode(LOGITS, own).tolist() == [3, 0, 0]
    assert problem().decode(torch.full((1, 4), -1e30), SHARED).tolist() == [0]


# --- forward passes ---------------------------------------------------------------------------------------------------------------


def stream_of(policy: str, sparse: bool = False, **changes: Any) -> TaskStream:
    return tiny_stream(tiny_data(sparse=sparse), edge_policy=policy, **changes)


def model_of(stream: TaskStream) -> Any:
    torch.manual_seed(0)
    model = tiny_model(stream)()
    model.train()
    model(stream.view(0).graph)  # running statistics that are not those of the start
    return model.eval()


def ready(stream: TaskStream, upto: int = 0) -> NodeProblem:
    made = NodeProblem(
        n_outputs=stream.n_outputs,
        n_tasks=len(stream),
        task_ids=stream.spec.task_ids_at_test,
        class_balanced=stream.spec.training.class_balanced,
    )
    for k in range(upto + 1):
        made.arrive(stream.view(k))
    return made


def test_outputs_are_the_same_with_and_without_gradients() -> None:
    stream = stream_of("full")
    model, view, made = model_of(stream), stream.view(0), ready(stream)
    with_gradients = made.forward(model, view.train)
    assert with_gradients.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(made.forward(model, view.train), with_gradients)


def test_an_answer_does_not_depend_on_what_else_is_asked() -> None:
    """To the last bit: else the rows of orders that share a prefix could differ."""
    stream = stream_of("full")
    model, made = model_of(stream), ready(stream)
    query = stream.make_queries(3)[0].query
    with torch.no_grad():
        everything = made.forward(model, query)
        for chosen in (torch.tensor([5]), torch.arange(len(query)).flip(0), torch.arange(0, len(query), 3)):
            assert torch.equal(made.forward(model, replace(query, ids=query.ids[chosen])), everything[chosen])


@pytest.mark.parametrize("sparse", [False, True])
def test_embeddings_and_features_of_items(sparse: bool) -> None:
    stream = stream_of("inter-task", sparse)
    model, view, made = model_of(stream), stream.view(1), ready(stream, 1)
    torch.testing.assert_close(made.embed(model, view.train), model.encode(view.graph)[view.train.ids])
    features = made.features(view.train)
    assert features.layout == torch.strided
    assert torch.equal(features, tiny_data().x[node_numbers(view.graph, view.train.ids)])


@pytest.mark.parametrize("part", ["train", "validation"])
def test_one_epoch_is_one_batch_of_all_items(part: Literal["train", "validation"]) -> None:
    stream = stream_of("none")
    made, view = ready(stream), stream.view(0)
    only = made.batch([view], part)
    assert only is getattr(view, part)


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", ["inter-task", "full"])
def test_views_of_one_graph_are_joined_in_order(policy: str, setting: str) -> None:
    stream = stream_of(policy, setting=setting)
    made = ready(stream, 2)
    views = [stream.view(j, 2) for j in range(3)]
    for part in ("train", "validation"):
        joined = made.batch(views, part)  # type: ignore[arg-type]
        parts = [getattr(v, part) for v in views]
        assert joined.graph is views[0].graph
        assert torch.equal(joined.ids, torch.cat([p.ids for p in parts]))
        assert joined.tasks is not None
        assert joined.tasks.tolist() == sum(([k] * len(p) for k, p in enumerate(parts)), [])
        if part == "train":
            assert joined.y is not None
            assert torch.equal(joined.y, torch.cat([p.y for p in parts]))
        else:
            assert joined.y is None
        if setting == "task-il":
            assert torch.equal(joined.allowed, stream.task_outputs[joined.tasks])
        else:
            assert joined.allowed.tolist() == [True] * 6


@pytest.mark.parametrize("sparse", [False, True])
def test_the_disjoint_union_of_graphs_equals_separate_forward_passes(sparse: bool) -> None:
    stream = stream_of("none", sparse)
    made, model = ready(stream, 2), model_of(stream)
    views = [stream.view(j, 2) for j in range(3)]
    union = made.batch(views)
    assert union.graph.n_nodes == sum(v.graph.n_nodes for v in views)
    assert union.graph.n_edges == sum(v.graph.n_edges for v in views)
    assert isinstance(union.graph.features, SparseMatrix) is sparse
    assert node_numbers(union.graph, union.ids) == sum((node_numbers(v.graph, v.train.ids) for v in views), [])
    torch.testing.assert_close(model(union.graph, union.ids), torch.cat([model(v.graph, v.train.ids) for v in views]))
    assert union.y is not None
    assert torch.equal(union.y, torch.cat([v.train.y for v in views if v.train.y is not None]))
    sizes = [len(v.train) for v in views]
    losses = torch.stack([made.loss(model(v.graph, v.train.ids), replace(v.train, allowed=union.allowed, cache={})) for v in views])
    torch.testing.assert_close(made.loss(model(union.graph, union.ids), union), (losses * torch.tensor(sizes)).sum() / sum(sizes))


def test_outputs_are_revealed_as_tasks_arrive() -> None:
    for setting in ("task-il", "class-il"):
        stream = stream_of("full", setting=setting)
        made = ready(stream, 0)
        assert made.task_outputs.sum(dim=1).tolist() == [2, 0, 0]
        made.arrive(stream.view(1))
        assert made.task_outputs.sum(dim=1).tolist() == [2, 2, 0]
        allowed = made.allowed(torch.tensor([0, 1, 0]))
        if setting == "task-il":
            assert [row.nonzero().flatten().tolist() for row in allowed] == [[0, 1], [2, 3], [0, 1]]
        else:
            assert allowed.nonzero().flatten().tolist() == [0, 1, 2, 3]


def test_parameters_are_the_trainable_ones() -> None:
    model = torch.nn.Linear(2, 3)
    model.bias.requires_grad_(False)
    assert list(NodeProblem.parameters(model)) == ["weight"]


# --- memory -----------------------------------------------------------------------------------------------------------------------

SEARCHED = torch.tensor([3, 0, 7])


@pytest.mark.parametrize("policy", ["inter-task", "full"])
def test_memory_by_reference_reads_the_current_graph(policy: str) -> None:
    stream = stream_of(policy)
    made = ready(stream)
    first = stream.view(0)
    items = made.sample(first.train, SEARCHED, "reference")
    assert items.x is None
    assert len(items) == 3
    assert items.bytes() == 3 * 3 * 8
    made.arrive(stream.view(1))
    recalled = made.recall(items, stream.view(1))
    assert recalled.graph is stream.view(1).graph
    assert node_numbers(recalled.graph, recalled.ids) == node_numbers(first.graph, first.train.ids[SEARCHED])
    assert first.train.y is not None
    assert made.labels(recalled).tolist() == first.train.y[SEARCHED].tolist()
    assert recalled.tasks is not None
    assert recalled.tasks.tolist() == [0, 0, 0]
    assert recalled.allowed.nonzero().flatten().tolist() == [0, 1, 2, 3]


def test_memory_by_reference_is_impossible_where_old_nodes_are_gone() -> None:
    stream = stream_of("none")
    made = ready(stream)
    items = made.sample(stream.view(0).train, SEARCHED, "reference")
    with pytest.raises(NotApplicable, match="edge policy `none` excludes old nodes from it: store items with their features instead"):
        made.recall(items, stream.view(1))


def test_a_cell_refuses_memory_by_reference_in_a_batch_without_the_old_nodes() -> None:
    """A batch has other nodes under their ids: they would be read in silence."""
    stream = stream_of("none")
    made = ready(stream)
    items = made.sample(stream.view(0).train, SEARCHED, "reference")
    refuse_unknown_nodes(made)
    made.arrive(stream.view(0))
    assert made.recall(items, stream.view(0).train).ids.tolist() == items.ids.tolist()
    made.arrive(stream.view(1))
    with pytest.raises(NotApplicable, match="in another batch.*under the edge policy `none`: keep items with their features"):
        made.recall(items, stream.view(1).train)
    with pytest.raises(NotApplicable, match="in another batch"):
        made.recall(items, replace(stream.view(1).train, tasks=None))
    kept = ready(stream_of("inter-task"))
    refuse_unknown_nodes(kept)
    kept.arrive(stream_of("inter-task").view(1))
    assert kept.recall(items, stream_of("inter-task").view(1).train).ids.tolist() == items.ids.tolist()


def test_a_cell_refuses_memory_by_reference_in_sampled_neighbours() -> None:
    """Their graph numbers its nodes anew. The graph of the task has the old ids, and items with features need no graph."""
    view = stream_of("full").view(0)
    made = ready(stream_of("full"))
    items = made.sample(view.train, SEARCHED, "reference")
    made.batch_size, made.fan_out = 4, (2, 2)
    refuse_unknown_nodes(made)
    made.arrive(view)
    batch = next(iter(made.epochs([view], torch.Generator().manual_seed(0))))
    assert batch.graph is not view.graph
    with pytest.raises(NotApplicable, match=r"in a batch of sampled neighbours.*or set training\.fan_out = \(\)"):
        made.recall(items, batch)
    assert made.recall(items, view.train).ids.tolist() == items.ids.tolist()
    assert made.recall(items, view).ids.tolist() == items.ids.tolist()
    assert len(made.recall(made.sample(view.train, SEARCHED, "item"), batch)) == len(SEARCHED)


def test_a_cell_refuses_to_recall_references_to_sampled_neighbours() -> None:
    """Their ids are of no other graph: in a view they would name other nodes. What is stored with its features is recalled as ever."""
    view = stream_of("full").view(0)
    made = ready(stream_of("full"))
    made.batch_size, made.fan_out = 4, (2, 2)
    refuse_unknown_nodes(made)
    made.arrive(view)
    batch = next(iter(made.epochs([view], torch.Generator().manual_seed(0))))
    assert batch.ids.tolist() != view.train.ids[:4].tolist()
    chosen = torch.arange(len(batch))
    items = made.sample(batch, chosen, "reference")
    assert items.ids.tolist() == batch.ids.tolist()
    whole = made.sample(view.train, SEARCHED, "reference")
    for kept in (items, items.take(chosen[:1]), items.draw(2, None), made.join([whole, items])):
        with pytest.raises(
            NotApplicable, match="refers to nodes in a batch of sampled neighbours, and their ids are not valid in any other graph"
        ):
            made.recall(kept, view)
    assert made.recall(whole, view).ids.tolist() == whole.ids.tolist()
    assert len(made.recall(made.sample(batch, chosen, "item"), view)) == len(batch)


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_memory_with_features_is_isolated_nodes(policy: str, sparse: bool, setting: str) -> None:
    stream = stream_of(policy, sparse, setting=setting)
    made = ready(stream)
    first = stream.view(0)
    items = made.sample(first.train, SEARCHED, "item")
    numbers = node_numbers(first.graph, first.train.ids[SEARCHED])
    rows = tiny_data().x[numbers]
    assert items.x is not None
    assert torch.equal(items.x.to_dense() if sparse else items.x, rows)
    assert items.bytes() == 72 + (12 * int((rows != 0).sum()) + 8 * 4 if sparse else 4 * rows.numel())
    made.arrive(stream.view(1))
    recalled = made.recall(items, stream.view(1))
    assert (recalled.graph.n_nodes, recalled.graph.n_edges) == (3, 0)
    assert recalled.ids.tolist() == [0, 1, 2]
    assert node_numbers(recalled.graph) == numbers
    if setting == "task-il":
        assert [row.nonzero().flatten().tolist() for row in recalled.allowed] == [[0, 1]] * 3
    model = model_of(stream)
    alone = model(MessageGraph(rows, torch.empty(2, 0, dtype=torch.int64)))
    torch.testing.assert_close(made.forward(model, recalled), alone)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["reference", "item"])
def test_samples_are_joined_in_order(kind: Literal["reference", "item"], sparse: bool) -> None:
    stream = stream_of("full", sparse)
    made = ready(stream, 1)
    parts = [made.sample(stream.view(k).train, SEARCHED[: 3 - k], kind) for k in range(2)]
    joined = made.join(parts)
    assert made.join(parts[:1]) is parts[0]
    assert len(joined) == 5
    assert joined.tasks.tolist() == [0, 0, 0, 1, 1]
    assert torch.equal(joined.y, torch.cat([p.y for p in parts]))
    assert joined.bytes() <= sum(p.bytes() for p in parts)
    expected = sum((node_numbers(stream.view(k).graph, stream.view(k).train.ids[SEARCHED[: 3 - k]]) for k in range(2)), [])
    recalled = made.recall(joined, stream.view(1))
    assert node_numbers(recalled.graph, recalled.ids) == expected


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["reference", "item"])
def test_an_empty_sample_is_a_sample(kind: Literal["reference", "item"], sparse: bool) -> None:
    stream = stream_of("full", sparse)
    made = ready(stream)
    items = made.sample(stream.view(0).train, torch.tensor([], dtype=torch.int64), kind)
    assert len(items) == 0
    joined = made.join([items, made.sample(stream.view(0).train, SEARCHED, kind)])
    assert len(made.recall(joined, stream.view(0))) == 3


@pytest.mark.parametrize("sparse", [False, True])
def test_memory_items_come_back_from_their_state(sparse: bool) -> None:
    stream = stream_of("full", sparse)
    made = ready(stream)
    for kind in ("reference", "item"):
        items = made.sample(stream.view(0).train, SEARCHED, kind)  # type: ignore[arg-type]
        again = MemoryItems.from_state(items.state(), torch.device("cpu"))
        assert torch.equal(again.ids, items.ids)
        assert torch.equal(again.y, items.y)
        assert torch.equal(again.tasks, items.tasks)
        assert again.bytes() == items.bytes()


def test_memory_does_not_change_with_the_view_it_came_from() -> None:
    stream = stream_of("full")
    made = ready(stream)
    view = stream.view(0)
    items = made.sample(view.train, SEARCHED, "item")
    before = [t.clone() for t in (items.ids, items.y, items.x) if t is not None]
    features = view.graph.features
    assert isinstance(features, Tensor)
    assert view.train.y is not None
    features.zero_()
    view.train.y.zero_()
    for kept, old in zip((items.ids, items.y, items.x), before, strict=True):
        assert kept is not None
        assert torch.equal(kept, old)


def test_only_labelled_items_of_a_known_task_can_be_kept() -> None:
    with pytest.raises(SpecError, match="this batch is a query"):
        problem().sample(Batch(graph=graph(), ids=torch.tensor([0]), allowed=SHARED), torch.tensor([0]), "item")
    with pytest.raises(SpecError, match="only from a batch with task positions, but this batch has none"):
        problem().sample(batch([0, 2]), torch.tensor([0]), "item")
