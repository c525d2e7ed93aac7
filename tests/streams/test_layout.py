"""Domains, time steps and label sets that arrive: which items, labels, nodes and edges each task has, against brute force."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_streams import node_numbers, tiny_data, tiny_spec, tiny_stream
from torch import Tensor

from cglsuite import Seeds
from cglsuite.base.errors import CglsuiteError, DataError, SpecError, UnknownNameError
from cglsuite.graphs import NodeData
from cglsuite.graphs.splits.multilabel import node_consistent_split, task_split
from cglsuite.graphs.splits.partition import per_class_split, random_split, replicated, split_into_tasks
from cglsuite.streams import Batch, TaskStream
from cglsuite.streams.layout import layout_of

RATIO = (0.6, 0.2, 0.2)
DOMAINS = {"domain": [9, 3, 5]}
YEARS = {"year": [2004, 2001, 2002, 2009]}
PARTS = {"train": 0, "validation": 1, "test": 2}


@pytest.fixture(scope="module")
def data() -> NodeData:
    """Sixteen nodes of each of six classes, with a domain and a year."""
    return tiny_data(per_class=16, keys=DOMAINS | YEARS)


@pytest.fixture(scope="module")
def labelled() -> NodeData:
    """Nodes with any number of labels."""
    return tiny_data(per_class=15, multi_label=True, official=True, keys=DOMAINS)


def domain_il(data: NodeData, **changes: Any) -> TaskStream:
    return tiny_stream(data, **({"setting": "domain-il", "task_key": "domain"} | changes))


def time_il(data: NodeData, **changes: Any) -> TaskStream:
    return tiny_stream(data, **({"setting": "time-il", "task_key": "year", "edge_policy": "snapshot"} | changes))


def multi(data: NodeData, **changes: Any) -> TaskStream:
    return tiny_stream(data, **({"labels": "multi", "edge_policy": "none"} | changes))


def numbers(batch: Batch) -> list[int]:
    return node_numbers(batch.graph, batch.ids)


def names(stream: TaskStream) -> list[str]:
    return [task.name for task in stream.tasks]


def where(mask: Tensor) -> list[int]:
    found: list[int] = mask.nonzero().flatten().tolist()
    return found


# --- classes ----------------------------------------------------------------------------------------------------------------------


def test_classes_in_a_given_order(data: NodeData) -> None:
    """Two a task: outputs, items and parts are those of the task's classes, and nothing arrives in time."""
    layout = layout_of(tiny_spec(class_order="4,1,0,5,3,2"), data, Seeds())
    assert [classes.tolist() for classes in layout.classes] == [[4, 1], [0, 5], [3, 2]]
    assert layout.names == ["classes 4, 1", "classes 0, 5", "classes 3, 2"]
    assert layout.arrival is None
    for k, classes in enumerate([{1, 4}, {0, 5}, {2, 3}]):
        assert set(where(layout.outputs[k])) == classes
        members = [i for i, c in enumerate(data.y.tolist()) if c in classes]
        assert layout.nodes[k].tolist() == members
        parts = [layout.parts[k][part].tolist() for part in PARTS]
        assert sorted(sum(parts, [])) == members
        assert [len(ids) for ids in parts] == [18, 6, 8]  # 9, 3 and 4 of the 16 items of each class


# --- domains ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_a_task_is_a_domain_with_all_classes(data: NodeData, policy: str) -> None:
    stream = domain_il(data, edge_policy=policy, seeds=Seeds(split=2))
    split, key = per_class_split(data.y, torch.arange(6), RATIO, 2), data.keys["domain"]
    assert names(stream) == ["domain 3", "domain 5", "domain 9"]
    assert stream.task_outputs.all()
    nodes: list[int] = []
    for k, domain in enumerate([3, 5, 9]):
        view = stream.view(k)
        assert view.classes.tolist() == list(range(6))
        assert view.train.allowed.all()
        assert view.seen_outputs.all()
        assert numbers(view.train) == where((key == domain) & (split == 0))
        assert numbers(view.validation) == where((key == domain) & (split == 1))
        assert view.train.y is not None
        assert torch.equal(view.train.y, data.y[numbers(view.train)])
        assert stream.members(k, "test").tolist() == where((key == domain) & (split == 2))
        nodes = where(key == domain) if policy == "none" else nodes + where(key == domain)
        assert node_numbers(view.graph) == (nodes if policy != "full" else list(range(data.n_nodes)))


def test_queries_of_domains_do_not_say_where_they_come_from(data: NodeData) -> None:
    stream = domain_il(data, edge_policy="full")
    for learnt in range(4):
        (group,) = stream.make_queries(learnt)
        assert group.query.tasks is None
        assert group.query.allowed.tolist() == [True] * 6
        asked = [stream.members(k, "test") for k in range(3)] + [stream.members(k, "validation") for k in range(learnt)]
        assert sorted(numbers(group.query)) == sorted(torch.cat(asked).tolist())


def test_the_order_seed_permutes_domains(data: NodeData) -> None:
    found = {tuple(names(domain_il(data, class_order="random", seeds=Seeds(order=s)))) for s in range(12)}
    assert len(found) > 3
    for seed in range(3):
        expected = torch.tensor([3, 5, 9])[torch.randperm(3, generator=torch.Generator().manual_seed(seed))].tolist()
        stream = domain_il(data, class_order="random", seeds=Seeds(order=seed))
        assert names(stream) == [f"domain {d}" for d in expected]
        assert [set(data.keys["domain"][stream.members(k, "train")].tolist()) for k in range(3)] == [{d} for d in expected]


def test_explicit_orders_of_domains(data: NodeData) -> None:
    native = domain_il(data)
    stream = domain_il(data, class_order="5,9,3")
    assert names(stream) == ["domain 5", "domain 9", "domain 3"]
    assert [t.content for t in stream.tasks] == [native.tasks[k].content for k in (1, 2, 0)]
    assert names(domain_il(data, class_order="5,9,3", n_tasks=2)) == ["domain 5", "domain 9"]


def test_items_of_domains_that_are_not_learnt_are_not_asked(data: NodeData) -> None:
    """The whole graph stays."""
    stream = domain_il(data, n_tasks=2, edge_policy="full")
    (group,) = stream.make_queries(2)
    assert set(data.keys["domain"][numbers(group.query)].tolist()) == {3, 5}
    assert stream.view(0).graph.n_nodes == data.n_nodes


def test_nodes_without_a_label_belong_to_no_domain(data: NodeData) -> None:
    y = data.y.clone()
    y[::7] = -1
    fewer = replace(data, y=y)
    stream = domain_il(fewer, edge_policy="inter-task")
    assert sorted(node_numbers(stream.view(2).graph)) == where(y >= 0)
    assert domain_il(fewer, edge_policy="full").view(0).graph.n_nodes == data.n_nodes
    for k in range(3):
        assert all(bool((y[stream.members(k, part)] >= 0).all()) for part in PARTS)


def test_a_domain_whose_nodes_all_lack_a_label_is_no_task(data: NodeData) -> None:
    y = torch.where(data.keys["domain"] == 5, -1, data.y)
    assert names(domain_il(replace(data, y=y))) == ["domain 3", "domain 9"]


# --- time -------------------------------------------------------------------------------------------------------------------------


def test_one_step_per_time(data: NodeData) -> None:
    stream = time_il(data)
    split, key = per_class_split(data.y, torch.arange(6), RATIO, 0), data.keys["year"]
    assert names(stream) == ["year 2001", "year 2002", "year 2004", "year 2009"]
    assert stream.task_outputs.all()
    for k, year in enumerate([2001, 2002, 2004, 2009]):
        for part, code in PARTS.items():
            assert stream.members(k, part).tolist() == where((key == year) & (split == code))


def test_bins_begin_at_their_numbers(data: NodeData) -> None:
    stream, key = time_il(data, task_bins=(2002, 2005)), data.keys["year"]
    assert names(stream) == ["year start to 2002", "year 2002 to 2005", "year 2005 to end"]
    for k, years in enumerate([{2001}, {2002, 2004}, {2009}]):
        assert set(key[torch.cat([stream.members(k, part) for part in PARTS])].tolist()) == years
    assert names(time_il(data, task_bins=(2002, 2005), n_tasks=2)) == ["year start to 2002", "year 2002 to 2005"]


@pytest.mark.parametrize(
    "changes", [{}, {"task_bins": (2002, 2004, 2009)}, {"n_tasks": 3}, {"task_bins": (2002, 2004, 2009), "n_tasks": 3}]
)
def test_a_snapshot_holds_what_exists_by_its_time(data: NodeData, changes: dict[str, Any]) -> None:
    stream, key = time_il(data, undirected=False, **changes), data.keys["year"]
    years = [2001, 2002, 2004, 2009][: len(stream)]
    edges = {(a, b) for a, b in data.edge_index.T.tolist()}
    for k, year in enumerate(years):
        graph = stream.view(k).graph
        inside = node_numbers(graph)
        assert sorted(inside) == where(key <= year)
        assert {(inside[a], inside[b]) for a, b in graph.edge_index.T.tolist()} == {
            (a, b) for a, b in edges if max(key[a], key[b]) <= year
        }  # none to or from a later node
        assert stream.view(k).keeps_nodes
    grown = [node_numbers(stream.view(k).graph) for k in range(len(stream))]
    assert all(after[: len(before)] == before for before, after in pairwise(grown))


def test_sparse_and_dense_snapshots_are_the_same() -> None:
    one, other = (time_il(tiny_data(per_class=16, keys=YEARS, sparse=s)) for s in (True, False))
    for k in range(4):
        assert node_numbers(one.view(k).graph) == node_numbers(other.view(k).graph)
        assert torch.equal(one.view(k).graph.edge_index, other.view(k).graph.edge_index)


def test_queries_of_time_steps_are_those_of_steps_so_far(data: NodeData) -> None:
    stream, key = time_il(data), data.keys["year"]
    assert stream.make_queries(0) == []
    for learnt, year in enumerate([2001, 2002, 2004, 2009], start=1):
        (group,) = stream.make_queries(learnt)
        assert group.query.graph is stream.view(learnt - 1).graph
        assert group.query.tasks is None
        expected = torch.cat([stream.members(k, part) for k in range(learnt) for part in ("test", "validation")])
        assert sorted(numbers(group.query)) == sorted(expected.tolist())
        assert int(key[numbers(group.query)].max()) == year


@pytest.mark.parametrize("bins", [(), (2002, 2004, 2009)])
def test_nodes_without_a_label_are_there_in_their_time(data: NodeData, bins: tuple[int, ...]) -> None:
    """Also where no labelled node is of the same time: before the first, between two, after the last."""
    y, key = data.y.clone(), data.keys["year"].clone()
    y[:12] = -1
    key[:4], key[4:8], key[8:12] = 1990, 2003, 2050
    stream = time_il(replace(data, y=y, keys={"year": key}), task_bins=bins)
    for k, year in enumerate([2001, 2003, 2008, 2050] if bins else [2001, 2002, 2004, 2009]):  # the last bin has no end
        assert sorted(node_numbers(stream.view(k).graph)) == where(key <= year)
        assert not {*range(12)} & set(torch.cat([stream.members(k, part) for part in PARTS]).tolist())


def test_without_snapshots_time_may_keep_its_steps_apart_or_everything_together(data: NodeData) -> None:
    key = data.keys["year"]
    apart, grown, full = (time_il(data, edge_policy=policy) for policy in ("none", "inter-task", "full"))
    assert sorted(node_numbers(apart.view(1).graph)) == where(key == 2002)
    assert sorted(node_numbers(grown.view(1).graph)) == where(key <= 2002)
    assert full.view(1).graph.n_nodes == data.n_nodes


# --- splits, numbers of tasks, copies -----------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 200), st.integers(0, 2**40), st.sampled_from([RATIO, (0.4, 0.1, 0.5), (0.5, 0.0, 0.5)]))
def test_a_random_split_has_its_shares(n: int, seed: int, ratio: tuple[float, float, float]) -> None:
    split = random_split(n, ratio, seed)
    train, validation = int(n * ratio[0] + 1e-9), int(n * ratio[1] + 1e-9)
    assert torch.bincount(split.long(), minlength=3).tolist() == [train, validation, n - train - validation]
    assert torch.equal(random_split(n, ratio, seed), split)


def test_random_splits_differ_between_seeds_and_leave_global_randomness_alone() -> None:
    before = torch.get_rng_state()
    assert len({tuple(random_split(40, RATIO, seed).tolist()) for seed in range(8)}) == 8
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("setting", ["class-il", "domain-il"])
def test_a_random_split_is_drawn_over_all_nodes(data: NodeData, setting: str) -> None:
    stream = tiny_stream(data, setting=setting, task_key="domain", split="random", seeds=Seeds(split=5))
    split = random_split(data.n_nodes, RATIO, 5)
    for part, code in PARTS.items():
        assert sorted(torch.cat([stream.members(k, part) for k in range(3)]).tolist()) == where(split == code)


@pytest.mark.parametrize(
    ("n_classes", "n_tasks", "leftover", "expected"),
    [
        (7, 3, "drop", [2, 2, 2]),
        (7, 3, "join-last", [2, 2, 3]),
        (11, 4, "drop", [2, 2, 2, 2]),
        (11, 4, "join-last", [2, 2, 2, 5]),  # no class is lost
        (6, 3, "join-last", [2, 2, 2]),
        (6, 6, "drop", [1] * 6),
        (5, 1, "drop", [5]),
        (40, 8, "drop", [5] * 8),
        (40, 20, "join-last", [2] * 20),
    ],
)
def test_classes_spread_over_a_number_of_tasks(n_classes: int, n_tasks: int, leftover: str, expected: list[int]) -> None:
    order = torch.arange(n_classes).flip(0)
    tasks = split_into_tasks(order, None, leftover, n_tasks, drop_last=True)
    assert [len(t) for t in tasks] == expected
    assert torch.cat(tasks).tolist() == order[: sum(expected)].tolist()


def test_a_stream_that_lacks_classes_is_refused_unless_that_is_meant(data: NodeData) -> None:
    with pytest.raises(SpecError, match=r"scenario\.classes_per_task = 4: of 6 classes 2 would fill no task"):
        tiny_stream(data, classes_per_task=4)
    assert [t.classes for t in tiny_stream(data, classes_per_task=4, drop_last=True).tasks] == [(0, 1, 2, 3)]
    assert [t.classes for t in tiny_stream(data, classes_per_task=4, leftover="join-last").tasks] == [(0, 1, 2, 3, 4, 5)]


def test_a_number_of_tasks_stands_for_classes_per_task(data: NodeData) -> None:
    stream = tiny_stream(data, classes_per_task=None, n_tasks=2)
    assert [t.classes for t in stream.tasks] == [(0, 1, 2), (3, 4, 5)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_copies_of_a_graph(copies: int, several: bool, sparse: bool) -> None:
    one = tiny_data(official=True, keys=DOMAINS, sparse=sparse, multi_label=several)
    data = replicated(one, copies)
    n, e = one.n_nodes, one.edge_index.shape[1]
    assert (data.n_nodes, data.edge_index.shape[1], data.n_classes) == (copies * n, copies * e, one.n_classes)
    assert one.official_split is not None
    assert data.official_split is not None
    assert data.x.layout == one.x.layout
    x, original = (v.x.to_dense() if sparse else v.x for v in (data, one))
    for c in range(copies):
        own = slice(c * n, (c + 1) * n)
        assert torch.equal(x[own], original)
        assert torch.equal(data.edge_index[:, c * e : (c + 1) * e], one.edge_index + c * n)
        assert torch.equal(data.y[own], one.y)
        assert torch.equal(data.official_split[own], one.official_split)
        assert torch.equal(data.keys["domain"][own], one.keys["domain"])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_stream_over_copies(sparse: bool) -> None:
    data = tiny_data(official=True, sparse=sparse)
    single, double = (tiny_stream(data, split="official", edge_policy="inter-task", replicas=r) for r in (1, 2))
    for k in range(3):
        graphs = [s.view(k).graph for s in (single, double)]
        assert [graphs[1].n_nodes, graphs[1].n_edges] == [2 * graphs[0].n_nodes, 2 * graphs[0].n_edges]
        for part in PARTS:
            ids = single.members(k, part)
            assert torch.equal(double.members(k, part), torch.cat([ids, ids + data.n_nodes]))
    assert [t.n_test for t in double.tasks] == [2 * t.n_test for t in single.tasks]
    assert double.data_hash != single.data_hash
    drawn = tiny_stream(data, replicas=2)
    assert [(t.n_train, t.n_validation, t.n_test) for t in drawn.tasks] == [(24, 8, 8)] * 3


# --- several labels ---------------------------------------------------------------------------------------------------------------

ORDER = "4,1,0,5,2,3"
TASKS = [[4, 1], [0, 5], [2, 3]]


def expected_split(data: NodeData, rule: str, k: int) -> Tensor:
    if rule == "official":
        assert data.official_split is not None
        return data.official_split
    if rule == "node-consistent":
        return node_consistent_split(data.y, torch.tensor(sum(TASKS, [])), RATIO, 4)
    members = data.y[:, TASKS[k]].any(dim=1).nonzero().flatten()
    return task_split(data.y, torch.tensor(TASKS[k]), members, RATIO, 4)


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
@pytest.mark.parametrize("rule", ["task-wise", "node-consistent", "official"])
def test_tasks_of_several_labels(labelled: NodeData, rule: str, policy: str, setting: str) -> None:
    """A node is in every task that has one of its labels, and shows the labels of its task, or in class-IL those seen so far."""
    stream = multi(labelled, class_order=ORDER, split=rule, edge_policy=policy, setting=setting, seeds=Seeds(split=4))
    reached: set[int] = set()
    for k, own in enumerate(TASKS):
        view, seen = stream.view(k), sum(TASKS[: k + 1], [])
        members = labelled.y[:, own].any(dim=1)
        split = expected_split(labelled, rule, k)
        for part, code in PARTS.items():
            assert stream.members(k, part).tolist() == where(members & (split == code))
        assert numbers(view.train) == stream.members(k, "train").tolist()
        assert numbers(view.validation) == stream.members(k, "validation").tolist()
        assert view.validation.y is None
        visible = own if setting == "task-il" else seen
        assert view.train.y is not None
        assert view.train.y.dtype == torch.bool
        hidden = [c for c in range(6) if c not in visible]
        assert torch.equal(view.train.y[:, visible], labelled.y[numbers(view.train)][:, visible])
        assert not view.train.y[:, hidden].any()
        assert where(view.task_outputs) == sorted(own)
        assert where(view.seen_outputs) == sorted(seen)
        assert where(view.train.allowed) == sorted(visible)
        reached = set(where(members)) if policy == "none" else reached | set(where(members))
        assert set(node_numbers(view.graph)) == (reached if policy != "full" else set(range(labelled.n_nodes)))
        assert len(set(node_numbers(view.graph))) == view.graph.n_nodes


def test_nodes_of_two_tasks_keep_their_position(labelled: NodeData) -> None:
    stream = multi(labelled, edge_policy="inter-task")
    grown = [node_numbers(stream.view(k).graph) for k in range(3)]
    assert all(after[: len(before)] == before for before, after in pairwise(grown))
    (both,) = {len(set(numbers(stream.view(0).train)) & set(numbers(stream.view(1).train)))}
    assert both > 0  # there are such nodes


def test_an_earlier_item_in_a_later_class_il_view_shows_the_labels_seen_by_then(labelled: NodeData) -> None:
    """Upper bounds learn again what the label set has become; in task-IL it stays the task's."""
    for setting, visible in (("class-il", [0, 1, 2, 3]), ("task-il", [0, 1])):
        past = multi(labelled, setting=setting, edge_policy="full").view(0, 1)
        assert past.train.y is not None
        expected = torch.zeros(6, dtype=torch.bool)
        expected[visible] = True
        assert torch.equal(past.train.y, labelled.y[numbers(past.train)] & expected)


def test_task_wise_parts_overlap_between_tasks_and_node_consistent_ones_do_not(labelled: NodeData) -> None:
    def shared(rule: str) -> int:
        stream = multi(labelled, split=rule)
        trained, tested = ({*torch.cat([stream.members(k, p) for k in range(3)]).tolist()} for p in ("train", "test"))
        for k in range(3):
            assert not {*stream.members(k, "train").tolist()} & {*stream.members(k, "test").tolist()}
        return len(trained & tested)

    assert shared("task-wise") > 0
    assert shared("node-consistent") == 0


def test_a_node_of_two_tasks_is_asked_in_both(labelled: NodeData) -> None:
    stream = multi(labelled, setting="task-il", edge_policy="full", split="node-consistent")
    (group,) = stream.make_queries(3)
    assert group.query.tasks is not None
    asked = list(zip(numbers(group.query), group.query.tasks.tolist(), strict=True))
    expected = [(n, k) for k in range(3) for part in ("test", "validation") for n in stream.members(k, part).tolist()]
    assert sorted(asked) == sorted(expected)
    assert len({n for n, _ in asked}) < len(asked)
    assert torch.equal(group.query.allowed, stream.task_outputs[group.query.tasks])


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_shared_nodes_are_asked_in_the_same_order_whatever_the_order_of_later_tasks(labelled: NodeData, setting: str) -> None:
    """Rows of a shared prefix are kept as they are: what is asked after one task may not depend on how the others are numbered."""
    asked = []
    for order in ("0,1,2,3,4,5", "0,1,4,5,2,3"):
        stream = multi(labelled, setting=setting, edge_policy="full", split="node-consistent", class_order=order)
        (group,) = stream.make_queries(1)
        of = group.query.tasks
        tasks = [stream.tasks[k].content for k in of.tolist()] if of is not None else []
        asked.append((numbers(group.query), tasks))
    assert asked[0] == asked[1]


def test_label_sets_as_domains(labelled: NodeData) -> None:
    stream = domain_il(labelled, labels="multi", split="official", edge_policy="full", performance="roc-auc")
    for k, domain in enumerate([3, 5, 9]):
        view = stream.view(k)
        members = (labelled.keys["domain"] == domain) & (labelled.official_split == 0)
        assert numbers(view.train) == where(members)
        assert view.train.y is not None
        assert torch.equal(view.train.y, labelled.y[members])


@pytest.mark.parametrize("rule", ["task-wise", "node-consistent"])
def test_single_labels_may_be_split_by_the_same_algorithm(data: NodeData, rule: str) -> None:
    stream = tiny_stream(data, split=rule, split_ratio=(0.6, 0.1, 0.3))
    for k in range(3):
        members = torch.isin(data.y, torch.tensor([2 * k, 2 * k + 1]))
        assert sorted(torch.cat([stream.members(k, p) for p in PARTS]).tolist()) == where(members)
        # Of sixteen: floor(16·0.6) train, floor((16 - 9)·0.25) validate.
        assert [torch.bincount(data.y[stream.members(k, p)])[2 * k :].tolist() for p in PARTS] == [[9, 9], [1, 1], [6, 6]]


# --- what cannot be built -----------------------------------------------------------------------------------------------------------


def unlearnable(data: NodeData) -> NodeData:
    """Class 3 is never trained."""
    assert data.official_split is not None
    has = data.y[:, 3] if data.multi_label else data.y == 3
    return replace(data, official_split=torch.where(has & (data.official_split == 0), -1, data.official_split).to(torch.int8))


SINGLE = tiny_data(per_class=15, official=True, keys=DOMAINS | YEARS)
SEVERAL = tiny_data(per_class=15, multi_label=True, official=True, keys=DOMAINS)
REFUSED: dict[str, tuple[Callable[[], TaskStream], type[CglsuiteError], str]] = {
    "no key": (lambda: tiny_stream(SINGLE, setting="domain-il"), SpecError, "scenario.task_key is not set: domain-il requires the name"),
    "no time": (lambda: tiny_stream(SINGLE, setting="time-il"), SpecError, "scenario.task_key is not set: time-il requires the name"),
    "another key": (
        lambda: domain_il(SINGLE, task_key="language"),
        DataError,
        r"the dataset 'tiny' has no attribute 'language' \(it has: domain, year\); set scenario.task_key to one of those",
    ),
    "a key where there is none": (lambda: domain_il(tiny_data()), DataError, r"no attribute 'domain' \(it has: none\)"),
    "a domain that is none": (lambda: domain_il(SINGLE, class_order="3,5,7"), SpecError, "scenario.class_order: 7 is not a"),
    "a domain is missing": (lambda: domain_il(SINGLE, class_order="3,5"), SpecError, "scenario.class_order: class 9 is missing"),
    "more tasks than domains": (
        lambda: domain_il(SINGLE, n_tasks=4),
        SpecError,
        "scenario.n_tasks = 4: domain defines only 3 tasks; lower n_tasks, or set it to none",
    ),
    "more tasks than bins": (
        lambda: time_il(SINGLE, task_bins=(2002,), n_tasks=3),
        SpecError,
        "scenario.n_tasks = 3: year defines only 2 tasks",
    ),
    "time in random order": (
        lambda: time_il(SINGLE, class_order="random"),
        SpecError,
        "scenario.class_order = 'random', but time steps have a fixed order; expected 'native'",
    ),
    "bins in random order": (
        lambda: time_il(SINGLE, class_order="random", task_bins=(2002,)),
        SpecError,
        "scenario.class_order = 'random', but time steps have a fixed order; expected 'native'",
    ),
    "domains in bins": (
        lambda: domain_il(SINGLE, task_bins=(4,)),
        SpecError,
        r"scenario.task_bins = \(4,\): only time steps can be binned",
    ),
    "an empty bin": (
        lambda: time_il(SINGLE, task_bins=(2002, 2005, 2007)),
        DataError,
        r"task 3 \(year 2005 to 2007\) has no train items; change scenario.split",
    ),
    "snapshots of domains": (
        lambda: domain_il(SINGLE, edge_policy="snapshot"),
        SpecError,
        "scenario.edge_policy = snapshot: domain-il has no time steps; expected none, inter-task or full",
    ),
    "snapshots of classes": (lambda: tiny_stream(SINGLE, edge_policy="snapshot"), SpecError, "class-il has no time steps"),
    "several labels in a single-label scenario": (
        lambda: tiny_stream(SEVERAL),
        SpecError,
        "scenario.labels = single: the dataset 'tiny' is multi-label",
    ),
    "single labels in a multi-label scenario": (
        lambda: multi(SINGLE),
        SpecError,
        "scenario.labels = multi: the dataset 'tiny' is single-label",
    ),
    "several labels, split class by class": (
        lambda: multi(SEVERAL, split="per-class"),
        SpecError,
        r"scenario.split = per-class: the dataset 'tiny' is multi-label; expected task-wise .* node-consistent .* or official",
    ),
    "several labels, split at random": (
        lambda: multi(SEVERAL, split="random"),
        SpecError,
        "scenario.split = random: the dataset 'tiny' is multi-label",
    ),
    "several labels in domains, split class by class": (
        lambda: domain_il(SEVERAL, labels="multi", performance="roc-auc", split="per-class"),
        SpecError,
        r"scenario.split = per-class: this scenario can be split by official or random$",
    ),
    "domains split by the algorithm of label sets": (
        lambda: domain_il(SINGLE, split="task-wise"),
        SpecError,
        "scenario.split = task-wise: this scenario can be split by official or random, or per-class$",
    ),
    "no official split": (
        lambda: multi(replace(SEVERAL, official_split=None), split="official"),
        SpecError,
        "the dataset 'tiny' has no official split",
    ),
    "a class that is never trained": (
        lambda: tiny_stream(unlearnable(SINGLE), split="official"),
        DataError,
        "class 3 of task 2 has no training items and cannot be learnt; raise scenario.min_class_size",
    ),
    "a label that is never trained": (
        lambda: multi(unlearnable(SEVERAL), split="official"),
        DataError,
        "class 3 of task 2 has no training items",
    ),
    "a label too small to split": (
        lambda: multi(replace(SEVERAL, y=SEVERAL.y & (torch.arange(90) < 8)[:, None])),
        DataError,
        "class . has . items, too few for a 0.6/0.2/0.2 split with an item in every part: raise scenario.min_class_size",
    ),
    "tasks without a number": (
        lambda: tiny_stream(SINGLE, classes_per_task=None),
        SpecError,
        "scenario.classes_per_task = none requires scenario.n_tasks",
    ),
    "more tasks than classes": (
        lambda: tiny_stream(SINGLE, classes_per_task=None, n_tasks=7),
        SpecError,
        "scenario.n_tasks = 7, but 6 classes form at most 6 tasks",
    ),
    "accuracy of label sets": (
        lambda: multi(SEVERAL, performance="micro"),
        SpecError,
        "scenario.performance = micro does not apply to multi labels; expected micro, macro for single labels; "
        "average-precision, roc-auc, hits for",
    ),
    "average precision of single labels": (
        lambda: tiny_stream(SINGLE, performance="average-precision"),
        SpecError,
        "scenario.performance = average-precision does not apply to single labels; expected micro, macro for single labels",
    ),
    "real targets balanced by class": (
        lambda: multi(SEVERAL, labels="real", performance="negative-mae", training={"class_balanced": True}),
        SpecError,
        "training.class_balanced = true, but real targets have no classes to balance",
    ),
    "real targets of a dataset with label sets": (
        lambda: multi(SEVERAL, labels="real", performance="negative-mae"),
        SpecError,
        "scenario.labels = real: the dataset .* is multi-label",
    ),
    "no copy": (lambda: tiny_stream(SINGLE, replicas=0), SpecError, "scenario.replicas = 0: expected at least 1"),
    "bins that do not ascend": (
        lambda: time_il(SINGLE, task_bins=(2004, 2002)),
        SpecError,
        r"scenario.task_bins = \(2004, 2002\); expected strictly ascending numbers",
    ),
    "bins that repeat": (lambda: time_il(SINGLE, task_bins=(2002, 2002)), SpecError, "expected strictly ascending numbers"),
    "no class per task": (
        lambda: tiny_stream(SINGLE, classes_per_task=0),
        SpecError,
        "scenario.classes_per_task = 0: expected at least 1",
    ),
    "another kind of labels": (lambda: tiny_stream(SINGLE, labels="two"), UnknownNameError, "scenario.labels 'two'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_when_the_stream_is_built(what: str) -> None:
    build, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize(("part", "code"), list(PARTS.items()))
def test_a_domain_without_items_in_a_part_is_named(part: str, code: int) -> None:
    assert SINGLE.official_split is not None
    emptied = (SINGLE.keys["domain"] == 5) & (SINGLE.official_split == code)
    broken = replace(SINGLE, official_split=torch.where(emptied, -1, SINGLE.official_split).to(torch.int8))
    with pytest.raises(DataError, match=rf"scenario 'tiny/domain-il@test-1': task 2 \(domain 5\) has no {part} items"):
        domain_il(broken, split="official")


def test_a_class_that_some_domain_never_trains_is_no_fault() -> None:
    """All classes are outputs of every domain; which of them a domain has is up to it."""
    assert len(domain_il(unlearnable(SINGLE), split="official")) == 3


def test_an_isolated_task_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Only the middle task has no edge among its own nodes."""
    data = tiny_data()
    middle = torch.isin(data.y, torch.tensor([2, 3]))
    edges = data.edge_index[:, ~middle[data.edge_index].all(dim=0)]
    stream = tiny_stream(replace(data, edge_index=edges), edge_policy="none", undirected=False)
    with caplog.at_level(logging.WARNING, logger="cglsuite.streams.build"):
        for k in (0, 2):
            stream.view(k)
        assert caplog.messages == []
        stream.view(1)
    (message,) = caplog.messages
    assert "tiny/class-il@test-1" in message
    assert "the graph of task 2 (classes 2, 3) has no edges" in message
    assert "scenario.edge_policy=full" in message
