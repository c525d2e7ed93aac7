"""What streams over any kind of item share: facts of tasks, groups of queries made once, and an order that later tasks do not change."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tiny_streams import tiny_data, tiny_graphs, tiny_spec, tiny_stream

from cglsuite import Seeds
from cglsuite.base.errors import SpecError
from cglsuite.streams.assembly import TaskAssembly, check_labels


def assembled(**changes: object) -> TaskAssembly:
    stream = tiny_stream(tiny_data(), **changes)
    assert isinstance(stream, TaskAssembly)
    return stream


@pytest.mark.parametrize(
    ("labels", "data", "message"),
    [
        ("multi", {}, r"scenario.labels = multi: the dataset 'tiny' is single-label"),
        ("single", {"multi_label": True}, r"scenario.labels = single: the dataset 'tiny' is multi-label"),
    ],
)
def test_labels_of_another_kind_are_refused(labels: str, data: dict[str, bool], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        check_labels(tiny_spec(labels=labels), tiny_data(**data))


def test_real_targets_are_no_labels() -> None:
    graphs = replace(tiny_graphs(), y=torch.zeros(60, 1), n_classes=1)
    with pytest.raises(SpecError, match="the dataset 'tiny' has real targets"):
        check_labels(tiny_spec(), graphs)


def test_facts_of_tasks_are_those_of_their_items() -> None:
    """Sizes by part, the classes in order of arrival; the content is the same wherever a task stands in the order."""
    stream, turned = assembled(), assembled(class_order="2,3,0,1,4,5")
    assert [task.classes for task in stream.tasks] == [(0, 1), (2, 3), (4, 5)]
    for k, task in enumerate(stream.tasks):
        sizes = (task.n_train, task.n_validation, task.n_test)
        assert sizes == tuple(stream.members(k, part).numel() for part in ("train", "validation", "test"))
        assert sum(sizes) == 20
    assert [task.content for task in turned.tasks] == [stream.tasks[k].content for k in (1, 0, 2)]


def test_a_group_is_made_once() -> None:
    """Asking again gives the same token, and the oracle holds its answers."""
    stream = assembled()
    token = stream.ask((0, 1), 2, 1)
    assert stream.oracle.holds(token)
    first = stream.asked(token)
    assert stream.ask((0, 1), 2, 1) == token
    assert stream.asked(token).ids.tolist() == first.ids.tolist()
    assert stream.ask((0, 1), 1, 1) != token


def test_a_group_asks_test_items_and_the_validation_items_of_tasks_learnt() -> None:
    """With one task learnt, of task 1 only its test items."""
    stream = assembled()
    asked = stream.asked(stream.ask((0, 1), 1, 1))
    expected = {0: ("test", "validation"), 1: ("test",)}
    for k, parts in expected.items():
        wanted = {int(i) for part in parts for i in stream.members(k, part)}
        assert {int(i) for i in asked.ids[asked.tasks == k]} == wanted
        tested = {int(i) for i in stream.members(k, "test")}
        assert {int(i) for i in asked.ids[(asked.tasks == k) & asked.test]} == tested


def test_the_order_of_queries_does_not_depend_on_the_order_of_later_tasks() -> None:
    """It is shuffled, the same for every order seed, and another one for another split seed."""
    first = {"edge_policy": "none"}
    a, b = assembled(**first, class_order="0,1,2,3,4,5"), assembled(**first, class_order="0,1,4,5,2,3")
    ids = a.asked(a.ask((0,), 1, 0)).ids.tolist()
    assert b.asked(b.ask((0,), 1, 0)).ids.tolist() == ids
    assert ids != sorted(ids)


def test_generators_depend_on_split_seed_purpose_and_context_alone() -> None:
    def draw(seeds: Seeds, *purpose: object) -> float:
        stream = tiny_stream(tiny_data(), seeds=seeds)
        assert isinstance(stream, TaskAssembly)
        return float(torch.rand(1, generator=stream.generator(*map(str, purpose))))

    first = draw(Seeds(split=1), "items", 0)
    assert draw(Seeds(split=1, order=5, init=7), "items", 0) == first
    assert len({first, draw(Seeds(split=2), "items", 0), draw(Seeds(split=1), "views", 0), draw(Seeds(split=1), "items", 1)}) == 4
