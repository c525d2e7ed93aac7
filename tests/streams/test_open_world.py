"""Open-world streams: the next task's items are among the queries, and rejection is scored over all items of a stage."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_streams import node_numbers, tiny_data, tiny_graphs, tiny_runner, tiny_spec
from torch import Tensor

from cglsuite.base.errors import LeakError, SpecError
from cglsuite.problems.open_world import OpenNodeProblem
from cglsuite.specs import MEASURES, Seeds
from cglsuite.streams import QueryGroup, TaskStream
from cglsuite.streams.build import build_task_stream
from cglsuite.streams.measures.answered import Answered
from cglsuite.streams.measures.open_world import open_f1, rejection_auroc, rejection_mcc
from cglsuite.streams.open_world import build_open_stream

DATA = tiny_data(per_class=20)
GLOBAL = {"query_grouping": "pooled", "query_edges": "seen", "edge_policy": "none"}
POLICIES: dict[str, dict[str, Any]] = {"none": GLOBAL, "inter-task": {"edge_policy": "inter-task"}, "full": {"edge_policy": "full"}}


def open_stream(performance: str = "open-f1", **changes: Any) -> TaskStream:
    return build_open_stream(tiny_spec(labels="open", performance=performance, **changes), DATA, Seeds())


def queries(stream: TaskStream, learnt: int) -> tuple[QueryGroup, Tensor]:
    """The only query group of a stage, and the classes of its items."""
    (group,) = stream.make_queries(learnt)
    return group, DATA.y[torch.tensor(node_numbers(group.query.graph, group.query.ids))]


def decided(stream: TaskStream, learnt: int, classes: Tensor, confidence: Tensor) -> dict[int, float]:
    """The test scores if items are predicted as ``classes``, -1 for rejected ones, by a method that decides for itself."""
    group, _ = queries(stream, learnt)
    given = torch.stack([classes.clamp(min=0).float(), confidence, (classes >= 0).float()], dim=1)
    tested, _ = stream.oracle.grade({group.token: given}, {group.token: group.query.allowed})
    return {k: score.performance for k, score in tested.items()}


@pytest.mark.parametrize("policy", POLICIES)
def test_queries_are_the_test_items_of_the_tasks_learnt_and_of_the_next_one(policy: str) -> None:
    stream = open_stream(**POLICIES[policy])
    assert stream.make_queries(0) == []
    for learnt in range(1, len(stream) + 1):
        group, y = queries(stream, learnt)
        asked = stream.asked(group.token)
        assert group.tasks == tuple(range(min(learnt + 1, len(stream))))
        assert set(asked.ids[asked.test].tolist()) == {i for k in group.tasks for i in stream.members(k, "test").tolist()}
        assert set(asked.ids[~asked.test].tolist()) == {i for k in range(learnt) for i in stream.members(k, "validation").tolist()}
        assert group.query.y is None
        assert group.query.tasks is None
        assert group.query.allowed.nonzero().flatten().tolist() == list(range(2 * learnt))  # the classes seen, not those asked
        assert bool((~group.query.allowed[y]).any()) == (learnt < len(stream))


@pytest.mark.parametrize("policy", POLICIES)
def test_views_are_those_of_the_closed_world(policy: str) -> None:
    opened, closed = open_stream(**POLICIES[policy]), build_task_stream(tiny_spec(**POLICIES[policy]), DATA, Seeds())
    for k in range(len(closed)):
        ours, theirs = opened.view(k), closed.view(k)
        assert torch.equal(ours.train.ids, theirs.train.ids)
        assert torch.equal(ours.train.allowed, theirs.train.allowed)
        assert torch.equal(ours.train.graph.edge_index, theirs.train.graph.edge_index)


def test_training_and_accuracy_are_those_of_the_closed_world() -> None:
    """In the whole graph, queries of a task are answered as in class-IL, to the bit; rejection touches only the next task's column."""
    policy = POLICIES["full"]
    opened = tiny_runner(open_stream(**policy)).run()
    closed = tiny_runner(build_task_stream(tiny_spec(**policy), DATA, Seeds())).run()
    for k in range(1, len(closed.matrix)):
        assert opened.matrix[k][:k] == closed.matrix[k][:k]
        assert opened.validation_matrix[k][:k] == closed.validation_matrix[k][:k]
        assert all(math.isnan(value) for value in opened.matrix[k][k + 1 :])
    assert [f["state"] for f in opened.fingerprints] == [f["state"] for f in closed.fingerprints]
    assert all(0 <= opened.matrix[k][k] <= 1 for k in range(1, len(opened.matrix) - 1))


@pytest.mark.parametrize(("measure", "nothing_rejected"), [("open-f1", None), ("rejection-mcc", 0), ("rejection-auroc", 0.5)])
def test_the_next_tasks_column_has_the_measure_over_all_items(measure: str, nothing_rejected: float | None) -> None:
    stream = open_stream(measure)
    group, y = queries(stream, 1)
    known = group.query.allowed[y]
    scores = decided(stream, 1, torch.where(known, y, -1), known.float())
    assert scores == {0: 1.0, 1: 1.0}
    scores = decided(stream, 1, y.clamp(max=1), torch.ones(len(y)))
    assert scores[0] == 1.0
    assert scores[1] < 1
    assert nothing_rejected is None or scores[1] == nothing_rejected


def test_measures_agree_with_a_count_by_hand() -> None:
    """Classes 0 and 1 are seen. Class 0: three right, one rejected. Class 1: two taken for 0. Unknown: two rejected, one taken for 1."""
    y = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 3])
    predicted = torch.tensor([0.0, 0, 0, -1, 0, 0, -1, -1, 1])
    confidence = torch.tensor([0.9, 0.9, 0.9, 0.3, 0.8, 0.8, 0.2, 0.2, 0.95])
    answered = Answered(y=y, answers=torch.stack([predicted, confidence], dim=1), outputs=torch.tensor([True, True, False, False]))
    f1 = {0: 2 * 3 / (2 * 3 + 2 + 1), 1: 0.0, "unknown": 2 * 2 / (2 * 2 + 1 + 1)}
    assert open_f1(answered) == pytest.approx(sum(f1.values()) / 3)
    right, wrong, missed, kept = 2, 1, 1, 5
    cells = (right + wrong) * (right + missed) * (kept + wrong) * (kept + missed)
    assert rejection_mcc(answered) == pytest.approx((right * kept - wrong * missed) / math.sqrt(cells))
    pairs = [(float(u), float(k)) for u in confidence[6:] for k in confidence[:6]]
    assert rejection_auroc(answered) == pytest.approx(sum((u < k) + (u == k) / 2 for u, k in pairs) / len(pairs))


def problem() -> OpenNodeProblem:
    return OpenNodeProblem(n_outputs=4, n_tasks=2, task_ids=False, class_balanced=False)


def test_confidence_is_the_largest_probability_over_seen_classes() -> None:
    logits = torch.tensor([[2.0, 0.0, 9.0, 9.0], [0.0, 1.0, -9.0, 9.0]])
    found = problem().decode(logits, torch.tensor([True, True, False, False]))
    assert found[:, 0].tolist() == [0, 1]
    assert found[:, 1].tolist() == pytest.approx([1 / (1 + math.exp(-2)), 1 / (1 + math.exp(-1))])
    assert bool(found[:, 2].isnan().all())


def test_a_method_rejects_by_infinite_outputs_of_all_unseen_classes() -> None:
    inf = math.inf
    logits = torch.tensor([[0.3, 0.1, inf, inf], [0.1, 0.7, -inf, -inf], [0.1, 0.7, -inf, 0.0]])
    found = problem().decode(logits, torch.tensor([True, True, False, False]))
    assert found[:2].tolist() == [[0, pytest.approx(0.3), 0], [1, pytest.approx(0.7), 1]]
    assert bool(found[2, 2].isnan())  # only some are infinite: the scenario decides


def test_the_threshold_decides_where_the_method_does_not() -> None:
    group, y = queries(open_stream(), 1)
    confidence = torch.where(group.query.allowed[y], 0.7, 0.6)
    answers = torch.stack([y.clamp(max=1).float(), confidence, torch.full((len(y),), math.nan)], dim=1)
    scores = {}
    for threshold in (0.5, 0.65, 0.75):
        stream = open_stream("rejection-mcc", reject_below=threshold)
        (asked,) = stream.make_queries(1)
        scores[threshold] = stream.oracle.grade({asked.token: answers}, {asked.token: asked.query.allowed})[0][1].performance
    assert scores == {0.5: 0.0, 0.65: 1.0, 0.75: 0.0}


def test_an_incomplete_answer_is_refused() -> None:
    stream = open_stream()
    group, y = queries(stream, 1)
    with pytest.raises(LeakError, match="one per query"):
        stream.oracle.grade({group.token: torch.zeros(len(y) - 1, 3)}, {group.token: group.query.allowed})


def test_whole_graphs_run(recwarn: pytest.WarningsRecorder) -> None:
    data = tiny_graphs()
    stream = build_open_stream(tiny_spec(level="GC", labels="open", performance="rejection-auroc"), data, Seeds())
    matrix = tiny_runner(stream).run().matrix
    assert 0 <= matrix[1][1] <= 1
    assert all(math.isnan(value) for value in matrix[1][2:])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"edge_policy": "none"}, "query_grouping = 'pooled' and query_edges = 'seen'"),
        ({"labels": "single", "performance": "micro"}, "expected 'open'"),
    ],
)
def test_streams_that_would_reveal_the_unknown_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        build_open_stream(tiny_spec(**({"labels": "open", "performance": "open-f1"} | changes)), DATA, Seeds())


def test_specs_name_what_does_not_fit() -> None:
    spec = tiny_spec(labels="open", performance="open-f1")
    with pytest.raises(SpecError, match="'NC', 'LC' or 'GC' and setting 'class-il'"):
        replace(spec, setting="task-il")
    with pytest.raises(SpecError, match="for open labels"):
        replace(spec, performance="micro")
    assert set(MEASURES["open"]) == {"open-f1", "rejection-mcc", "rejection-auroc"}
