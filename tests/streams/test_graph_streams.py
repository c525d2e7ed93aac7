"""Streams whose items are graphs: what views and queries hold, and when they are asked."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_streams import node_numbers, tiny_graphs, tiny_stream

from cglsuite.errors import SpecError
from cglsuite.specs import Seeds


def stream(**changes: Any) -> Any:
    return tiny_stream(tiny_graphs(), **changes)


def test_views_hold_their_own_training_and_validation_graphs_and_nothing_else() -> None:
    made = stream()
    for k in range(3):
        view = made.view(k)
        for part, batch in (("train", view.train), ("validation", view.validation)):
            assert node_numbers(batch.graph) == made.members(k, part).tolist()
            assert len(batch.graph) == len(batch)
        assert torch.equal(view.train.y, tiny_graphs().y[made.members(k, "train")])
        assert view.validation.y is None
        assert not view.keeps_nodes


def test_every_test_graph_is_asked_at_any_time_and_validation_graphs_of_the_tasks_learnt() -> None:
    made = stream()
    for learnt in range(4):
        (group,) = made.make_queries(learnt)
        tests = [i for k in range(3) for i in made.members(k, "test").tolist()]
        validation = [i for k in range(learnt) for i in made.members(k, "validation").tolist()]
        asked = node_numbers(group.query.graph)
        assert sorted(asked) == sorted(tests + validation)
        assert asked != sorted(asked), "queries are shuffled"
        assert group.tasks == (0, 1, 2)
        assert group.query.y is None
        assert group.query.tasks is None


def test_only_task_il_names_tasks() -> None:
    (group,) = stream(setting="task-il").make_queries(2)
    of = group.query.tasks
    assert of is not None
    assert torch.equal(group.query.allowed, stream(setting="task-il").task_outputs[of])


def test_the_same_items_are_asked_in_the_same_order_whatever_comes_later() -> None:
    one = stream(class_order="0,1,2,3,4,5").make_queries(1)[0]
    other = stream(class_order="0,1,4,5,2,3").make_queries(1)[0]
    assert node_numbers(one.query.graph) == node_numbers(other.query.graph)


def test_no_graph_is_in_two_parts() -> None:
    made = stream(seeds=Seeds(split=3))
    everything = [i for k in range(3) for part in ("train", "validation", "test") for i in made.members(k, part).tolist()]
    assert len(everything) == len(set(everything)) == 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_policy": "none"}, "no edge leads from one to another; expected full"),
        ({"replicas": 2}, "expected 1"),
        ({"feature_normalisation": "row"}, "expected none"),
        ({"labels": "multi"}, "is single-label"),
    ],
)
def test_switches_that_are_about_one_large_graph_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        stream(**changes)
