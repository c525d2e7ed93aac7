"""The problem of nodes with any number of labels, against torch's own losses, loops, and the single-label problem."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_streams import node_numbers, tiny_data, tiny_model, tiny_stream, variant_stream
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import SpecError
from cglsuite.graphs import MessageGraph
from cglsuite.problems import MemoryItems, MultiLabelNodeProblem, NodeProblem, problem_class
from cglsuite.streams import Batch, TaskStream

GRAPH = MessageGraph(torch.eye(3), torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 2, 2]]))
LOGITS = torch.tensor([[1.0, 2.0, -1.0, 0.5], [0.0, 3.0, 1.0, -2.0], [0.2, 0.1, 4.0, 0.0]])
Y = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]], dtype=torch.bool)
SHARED = torch.tensor([True, False, True, True])


def batch(allowed: Tensor = SHARED, y: Tensor | None = Y, **more: Any) -> Batch:
    return Batch(graph=GRAPH, ids=torch.arange(3), allowed=allowed, y=y, **more)


def problem(*, task_ids: bool = False, n_tasks: int = 2) -> MultiLabelNodeProblem:
    return MultiLabelNodeProblem(n_outputs=4, n_tasks=n_tasks, task_ids=task_ids, class_balanced=False)


def softplus(z: float) -> float:
    return math.log(1 + math.exp(z))


def test_the_kind_of_labels_chooses_the_problem() -> None:
    assert problem_class("NC", "multi") is MultiLabelNodeProblem
    assert problem_class("NC", "single") is NodeProblem
    assert (NodeProblem.kind, MultiLabelNodeProblem.kind) == ("single-label", "multi-label")


# --- loss -------------------------------------------------------------------------------------------------------------------------


def test_the_loss_by_hand() -> None:
    """Mean over items of the mean over the outputs that compete of log(1 + exp(∓z)); output 1 does not compete."""
    items = [
        (softplus(-1.0) + softplus(-1.0) + softplus(0.5)) / 3,
        (softplus(0.0) + softplus(-1.0) + softplus(2.0)) / 3,
        (softplus(0.2) + softplus(4.0) + softplus(0.0)) / 3,
    ]
    made = problem()
    assert made.loss(LOGITS, batch(), "none").tolist() == pytest.approx(items)
    assert float(made.loss(LOGITS, batch())) == pytest.approx(sum(items) / 3)
    assert float(made.loss(LOGITS, batch(), "sum")) == pytest.approx(sum(items))


def test_the_loss_of_items_with_outputs_of_their_own_by_hand() -> None:
    """Every item has the same weight, however many outputs compete for it."""
    own = torch.tensor([[True, False, False, False], [False, True, False, True], [True, True, True, True]])
    items = [
        softplus(-1.0),
        (softplus(-3.0) + softplus(2.0)) / 2,
        (softplus(0.2) + softplus(0.1) + softplus(4.0) + softplus(0.0)) / 4,
    ]
    made = problem()
    assert made.loss(LOGITS, batch(own), "none").tolist() == pytest.approx(items)
    assert float(made.loss(LOGITS, batch(own))) == pytest.approx(sum(items) / 3)
    assert float(made.loss(LOGITS, batch(own), "sum")) == pytest.approx(sum(items))


def test_with_one_task_of_all_outputs_it_is_torchs_loss() -> None:
    expected = functional.binary_cross_entropy_with_logits(LOGITS, Y.float())
    torch.testing.assert_close(problem().loss(LOGITS, batch(torch.ones(4, dtype=torch.bool))), expected)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000), st.booleans())
def test_the_loss_equals_a_loop(n: int, seed: int, shared: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, 4, generator=generator)
    y = torch.rand(n, 4, generator=generator) < 0.5
    allowed = torch.rand(n, 4, generator=generator) < 0.5
    allowed[torch.arange(n), torch.randint(0, 4, (n,), generator=generator)] = True
    if shared:
        allowed = allowed[:1].expand(n, -1)
    expected = [
        float(np.mean([softplus(-float(logits[i, c]) if y[i, c] else float(logits[i, c])) for c in range(4) if allowed[i, c]]))
        for i in range(n)
    ]
    given_batch = Batch(graph=GRAPH, ids=torch.zeros(n, dtype=torch.int64), allowed=allowed[0] if shared else allowed, y=y)
    made = problem()
    np.testing.assert_allclose(made.loss(logits, given_batch, "none"), expected, rtol=1e-4, atol=1e-6)
    assert float(made.loss(logits, given_batch)) == pytest.approx(np.mean(expected), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_masks_per_item_equal_a_shared_one(reduction: Literal["mean", "sum", "none"]) -> None:
    one, other = LOGITS.clone().requires_grad_(), LOGITS.clone().requires_grad_()
    shared = problem().loss(one, batch(), reduction)
    separate = problem().loss(other, batch(SHARED.expand(3, -1).clone()), reduction)
    torch.testing.assert_close(shared, separate)
    shared.sum().backward()
    separate.sum().backward()
    assert one.grad is not None
    torch.testing.assert_close(one.grad, other.grad)
    assert not one.grad[:, 1].any()  # an output that does not compete learns nothing
    assert one.grad[:, SHARED].all()


def test_labels_that_do_not_compete_count_neither_for_nor_against() -> None:
    for allowed in (SHARED, SHARED.expand(3, -1).clone()):
        flipped = Y.clone()
        flipped[:, 1] = ~flipped[:, 1]
        assert torch.equal(problem().loss(LOGITS, batch(allowed), "none"), problem().loss(LOGITS, batch(allowed, flipped), "none"))


def test_what_a_batch_remembers_is_its_own() -> None:
    made, first = problem(), batch()
    value = made.loss(LOGITS, first)
    assert torch.equal(made.loss(LOGITS, first), value)
    other = replace(first, allowed=~SHARED, cache={})
    assert float(made.loss(LOGITS, other)) == pytest.approx((softplus(-2.0) + softplus(-3.0) + softplus(0.1)) / 3)


def test_a_query_has_no_labels() -> None:
    for use in (lambda b: problem().loss(LOGITS, b), lambda b: problem().has_output(b, 0)):
        with pytest.raises(SpecError, match="this batch is a query, so it has no labels: only the oracle has them"):
            use(batch(y=None))


# --- class balance ----------------------------------------------------------------------------------------------------------------


def balanced(*, task_ids: bool = False, upto: int = 0) -> tuple[MultiLabelNodeProblem, TaskStream]:
    """The problem of a stream of label sets whose positives are weighed, after its first tasks have arrived."""
    stream = variant_stream("multi task-il" if task_ids else "multi class-il")
    made = MultiLabelNodeProblem(n_outputs=stream.n_outputs, n_tasks=len(stream), task_ids=task_ids, class_balanced=True)
    for k in range(upto + 1):
        made.arrive(stream.view(k))
    return made, stream


@pytest.mark.parametrize("task_ids", [False, True])
def test_positives_are_weighed_by_negatives_over_positives_of_the_tasks_training_items(task_ids: bool) -> None:
    """Counted by hand; outputs keep the weight of the task that they came with last, others have not arrived."""
    made, stream = balanced(task_ids=task_ids, upto=1)
    assert made.positive_weight is not None
    for k in range(2):
        y: Any = stream.view(k).train.y
        for c in stream.tasks[k].classes:
            positives = int(y[:, c].sum())
            assert 0 < positives < len(y)
            assert float(made.positive_weight[c]) == pytest.approx((len(y) - positives) / positives)
    assert made.positive_weight[list(stream.tasks[2].classes)].tolist() == [1.0, 1.0]


def test_the_balanced_loss_by_hand() -> None:
    """Of a positive the loss counts threefold, of a negative once; item by item nothing is weighed."""
    made, plain = problem(), problem()
    made.class_balanced, made.positive_weight = True, torch.full((4,), 3.0)
    first = (3 * softplus(-1.0) + softplus(-1.0) + softplus(0.5)) / 3
    second = (softplus(0.0) + 3 * softplus(-1.0) + 3 * softplus(2.0)) / 3
    third = (softplus(0.2) + softplus(4.0) + softplus(0.0)) / 3
    assert float(made.loss(LOGITS, batch())) == pytest.approx((first + second + third) / 3)
    assert float(made.loss(LOGITS, batch(SHARED.expand(3, -1)), "sum")) == pytest.approx(first + second + third)
    assert torch.equal(made.loss(LOGITS, batch(), "none"), plain.loss(LOGITS, batch(), "none"))


def test_balance_makes_both_kinds_of_items_weigh_alike() -> None:
    """With equal outputs everywhere the gradient of every output is zero at 0: positives pull as much as negatives push."""
    made, stream = balanced(task_ids=True)
    train = stream.view(0).train
    logits = torch.zeros(len(train), stream.n_outputs, requires_grad=True)
    (gradient,) = torch.autograd.grad(made.loss(logits, train), logits)
    torch.testing.assert_close(gradient.sum(dim=0), torch.zeros(stream.n_outputs), atol=1e-6, rtol=0)
    assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("value", [True, False])
def test_an_output_with_items_of_one_kind_alone_is_not_weighed(value: bool) -> None:
    made, stream = balanced(task_ids=True)
    view = stream.view(0)
    y = torch.full_like(view.train.y, value)  # type: ignore[arg-type]
    made.arrive(replace(view, train=replace(view.train, y=y, cache={})))
    assert made.positive_weight is not None
    assert made.positive_weight.tolist() == [1.0] * stream.n_outputs


def test_balance_needs_a_task_whose_items_can_be_counted() -> None:
    made = MultiLabelNodeProblem(n_outputs=4, n_tasks=2, task_ids=False, class_balanced=True)
    with pytest.raises(SpecError, match="training.class_balanced = true: .* this stream has no tasks; expected false"):
        made.loss(LOGITS, batch())


# --- distillation, answers ----------------------------------------------------------------------------------------------------------


def test_distillation_by_hand() -> None:
    """Per output -(p log q + (1-p) log(1-q)) with p, q logistic of the outputs over the temperature; the mean over outputs and items."""
    old, new = torch.tensor([[1.0, 9.0, 0.0], [2.0, 0.0, -1.0]]), torch.tensor([[0.0, -9.0, 2.0], [1.0, 5.0, 1.0]])
    for temperature in (1.0, 2.0):
        terms = []
        for i in range(2):
            for c in (0, 2):
                p, q = (1 / (1 + math.exp(-float(z[i, c]) / temperature)) for z in (old, new))
                terms.append(-(p * math.log(q) + (1 - p) * math.log(1 - q)))
        value = problem().distill(old, new, torch.tensor([True, False, True]), temperature)
        assert float(value) == pytest.approx(sum(terms) / 4, rel=1e-6)


def test_distillation_of_groups_is_the_sum_over_them() -> None:
    """Also of groups of different sizes."""
    made, old = problem(), LOGITS.flip(0)
    groups = torch.tensor([[True, True, False, True], [False, False, True, False]])
    expected = sum(made.distill(old, LOGITS, g, 2.0) for g in groups)
    torch.testing.assert_close(made.distill(old, LOGITS, groups, 2.0), expected)


def test_distillation_is_least_at_the_teacher() -> None:
    student = LOGITS.clone().requires_grad_()
    problem().distill(LOGITS, student, SHARED, 2.0).backward()
    assert student.grad is not None
    torch.testing.assert_close(student.grad, torch.zeros_like(LOGITS))
    moved = LOGITS.clone()
    moved[0, 2] += 0.5
    assert problem().distill(LOGITS, moved, SHARED) > problem().distill(LOGITS, LOGITS, SHARED)


def test_answers_are_the_outputs_that_compete() -> None:
    assert problem().decode(LOGITS, SHARED).tolist() == torch.where(SHARED, LOGITS, 0.0).tolist()
    own = torch.tensor([[True, False, False, False], [False, True, False, True], [False] * 4])
    assert torch.equal(problem().decode(LOGITS, own), LOGITS * own)
    wild = LOGITS.clone()
    wild[:, 1] = math.nan  # an output that was never trained is nobody's fault
    assert torch.isfinite(problem().decode(wild, SHARED)).all()


def test_which_items_carry_an_output() -> None:
    assert [problem().has_output(batch(), c).tolist() for c in range(4)] == Y.T.tolist()
    single = NodeProblem(n_outputs=4, n_tasks=2, task_ids=False, class_balanced=False)
    ids = torch.tensor([2, 0, 2])
    assert [single.has_output(batch(y=ids), c).tolist() for c in range(4)] == [(ids == c).tolist() for c in range(4)]


# --- batches ------------------------------------------------------------------------------------------------------------------------


def ready(stream: TaskStream, upto: int = 0) -> NodeProblem:
    made = problem_class("NC", stream.spec.labels)(
        n_outputs=stream.n_outputs, n_tasks=len(stream), task_ids=stream.spec.task_ids_at_test, class_balanced=False
    )
    for k in range(upto + 1):
        made.arrive(stream.view(k))
    return made


def merged(**changes: Any) -> tuple[NodeProblem, Batch, list[Batch]]:
    stream = variant_stream("multi class-il consistent", **changes)
    made, views = ready(stream, 2), [stream.view(j, 2) for j in range(3)]
    joined = made.batch(views)
    return made, joined, [v.train for v in views]


def assert_joined(joined: Batch, parts: list[Batch]) -> None:
    assert joined.graph is parts[0].graph
    assert torch.equal(joined.ids, torch.cat([p.ids for p in parts]))
    assert joined.tasks is not None
    assert joined.tasks.tolist() == sum(([k] * len(p) for k, p in enumerate(parts)), [])
    assert joined.y is not None
    assert torch.equal(joined.y, torch.cat([p.y for p in parts if p.y is not None]))


def test_batches_with_the_same_outputs_share_them() -> None:
    _, joined, parts = merged()
    assert_joined(joined, parts)
    assert joined.allowed.tolist() == [True] * 6


@pytest.mark.parametrize("changes", [{"setting": "task-il", "train_outputs": "task"}, {"train_outputs": "task"}])
def test_batches_with_different_outputs_keep_them_row_by_row(changes: dict[str, Any]) -> None:
    made, joined, parts = merged(**changes)
    assert_joined(joined, parts)
    assert joined.tasks is not None
    expected = torch.tensor([[c // 2 == k for c in range(6)] for k in range(3)])[joined.tasks]
    assert torch.equal(joined.allowed, expected)
    logits = torch.randn(len(joined), 6, generator=torch.Generator().manual_seed(0))
    losses = [made.loss(z, p, "sum") for z, p in zip(logits.split([len(p) for p in parts]), parts, strict=True)]
    torch.testing.assert_close(made.loss(logits, joined, "sum"), sum(losses))


@pytest.mark.parametrize("labels", ["single", "multi"])
def test_a_shared_mask_joined_with_one_of_rows_becomes_rows(labels: str) -> None:
    stream = variant_stream("multi class-il consistent") if labels == "multi" else tiny_stream(edge_policy="full")
    made = ready(stream, 1)
    one, other = (stream.view(k, 1).train for k in (0, 1))
    rows = torch.zeros(len(other), 6, dtype=torch.bool)
    rows[:, :4] = True
    joined = made.merge([one, replace(other, allowed=rows, cache={})])
    assert joined.allowed.shape == (len(one) + len(other), 6)
    assert torch.equal(joined.allowed, torch.tensor([True] * 4 + [False] * 2).expand(len(joined), -1))
    same = made.merge([one, other])
    assert same.allowed.dim() == 1
    logits = torch.randn(len(joined), 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(made.loss(logits, joined), made.loss(logits, same))


def test_merging_does_the_same_to_both_kinds_of_labels() -> None:
    """A batch of single labels, and the same labels as sets of one: the same graph, items, tasks and outputs to the bit."""
    data = tiny_data(per_class=15)
    sets = replace(data, y=data.y[:, None] == torch.arange(6))
    for setting in ("task-il", "class-il"):
        for policy in ("none", "inter-task", "full"):
            common = {"setting": setting, "edge_policy": policy, "split": "task-wise"}
            streams = [tiny_stream(data, **common), tiny_stream(sets, labels="multi", **common)]
            found = []
            for stream in streams:
                joined = ready(stream, 2).batch([stream.view(j, 2) for j in range(3)])
                found.append(joined)
            one, several = found
            assert one.y is not None
            assert several.y is not None
            assert torch.equal(several.y, one.y[:, None] == torch.arange(6))
            assert torch.equal(one.ids, several.ids)
            assert torch.equal(one.allowed, several.allowed)
            assert torch.equal(one.graph.edge_index, several.graph.edge_index)
            assert node_numbers(one.graph) == node_numbers(several.graph)
            assert one.tasks is not None
            assert several.tasks is not None
            assert torch.equal(one.tasks, several.tasks)


# --- memory -------------------------------------------------------------------------------------------------------------------------

SEARCHED = torch.tensor([3, 0, 7])


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("kind", ["reference", "item"])
def test_later_labels_do_not_count_against_items_that_came_earlier(kind: Literal["reference", "item"], setting: str) -> None:
    """Of a stored item it is not known whether it has labels that were seen later: they are left out of its loss."""
    stream = variant_stream("multi class-il consistent", setting=setting)
    made, items = ready(stream), []
    for k in range(3):
        view = stream.view(k)
        made.arrive(view)
        items.append(made.sample(view.train, SEARCHED, kind))
    recalled = made.recall(made.join(items), stream.view(2))
    allowed = [[0, 1], [2, 3], [4, 5]] if setting == "task-il" else [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5]]
    assert [row.nonzero().flatten().tolist() for row in recalled.allowed] == [a for a in allowed for _ in range(3)]
    truth = tiny_data(per_class=15, multi_label=True).y
    expected = torch.cat([truth[node_numbers(v.graph, v.train.ids[SEARCHED])] for v in map(stream.view, range(3))])
    assert torch.equal(made.labels(recalled), expected & recalled.allowed)
    logits = torch.randn(9, 6, generator=torch.Generator().manual_seed(1)).requires_grad_()
    made.loss(logits, recalled).backward()
    assert logits.grad is not None
    assert torch.equal(logits.grad != 0, recalled.allowed)
    as_if_known = replace(recalled, y=expected, cache={})  # what it would be if later labels were told
    assert torch.equal(made.loss(logits, as_if_known), made.loss(logits, recalled))


def test_outputs_of_tasks_that_have_not_come_do_not_compete() -> None:
    stream = variant_stream("multi class-il consistent")
    made = ready(stream, 1)
    assert made.allowed(torch.tensor([1, 0])).tolist() == [[True] * 4 + [False] * 2, [True] * 2 + [False] * 4]


def test_a_label_set_costs_a_byte_per_label() -> None:
    stream = variant_stream("multi class-il consistent")
    made = ready(stream)
    items = made.sample(stream.view(0).train, SEARCHED, "reference")
    assert items.y.dtype == torch.bool
    assert items.bytes() == 3 * (8 + 8 + 6)
    again = MemoryItems.from_state(items.state(), torch.device("cpu"))
    assert torch.equal(again.y, items.y)
    assert torch.equal(items.take(torch.tensor([2, 0])).y, items.y[[2, 0]])


def test_recalled_items_are_learnt_like_those_of_a_task() -> None:
    """One backward pass over a mixture reaches the model."""
    stream = variant_stream("multi class-il consistent")
    made = ready(stream, 1)
    torch.manual_seed(0)
    model = tiny_model(stream, batch_norm=False, dropout=0.0)()
    recalled = made.recall(made.sample(stream.view(0).train, SEARCHED, "item"), stream.view(1))
    made.loss(made.forward(model, recalled), recalled).backward()
    gradient = model.head.weight.grad
    assert gradient is not None
    by_output = gradient if gradient.shape[0] == 6 else gradient.T
    assert by_output.abs().sum(dim=1).nonzero().flatten().tolist() == [0, 1]
