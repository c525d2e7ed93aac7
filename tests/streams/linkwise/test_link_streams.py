"""Streams of links: what carries messages by a count of our own, what is asked, which pairs have no link, and what is refused.

The count: links are read as sets of pairs, one by one, from the data and the stream's facts, and never from its graphs.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_links import LINK_VARIANTS, link_stream, link_variant, tiny_links
from tiny_streams import tiny_data, tiny_spec
from torch import Tensor

from cglsuite import Seeds
from cglsuite.base.errors import DataError, SpecError
from cglsuite.graphs import LinkData
from cglsuite.graphs.linkgraph import degree_features
from cglsuite.specs.scenario import EDGE_POLICIES
from cglsuite.streams import TaskStream
from cglsuite.streams.links import build_link_stream
from cglsuite.streams.oracle import EVERY_TASK, NO_TASK

KINDS = (("LC", "class-il"), ("LC", "domain-il"), ("LC", "time-il"), ("LP", "domain-il"), ("LP", "time-il"))
CASES = [(*kind, policy) for kind in KINDS for policy in EDGE_POLICIES if EDGE_POLICIES[policy].allows(*kind)]


def pairs_of(links: Tensor, undirected: bool) -> list[tuple[int, ...]]:
    return [tuple(sorted(ends)) if undirected else tuple(ends) for ends in links.T.tolist()]


def task_of(data: LinkData, stream: TaskStream) -> list[int]:
    """The task that every link arrives with, from what tells tasks apart; the number of tasks: with none."""
    spec = stream.spec
    if spec.task_key is None:
        of_class = {c: k for k, facts in enumerate(stream.tasks) for c in facts.classes}
        return [of_class.get(c, len(stream)) for c in data.y.tolist()]
    of_name = {int(facts.name.split()[-1]): k for k, facts in enumerate(stream.tasks)}
    return [of_name[v] for v in data.keys[spec.task_key].tolist()]


def expected_carriers(data: LinkData, stream: TaskStream, stage: int) -> set[tuple[int, ...]]:
    """Pairs that carry messages in the graph of ``stage`` (with the policy ``none``: in that task's own)."""
    spec = stream.spec
    of, predicted = task_of(data, stream), spec.level == "LP"
    trained = {i for k in range(len(stream)) for i in stream.members(k, "train").tolist()}
    admitted = {"full": range(len(stream) + 1), "none": [stage]}.get(spec.edge_policy, range(stage + 1))
    carry = {i for i in range(data.n_items) if of[i] in admitted and (not predicted or i in trained)}
    pairs = pairs_of(data.links, spec.undirected)
    asked = {pairs[i] for i in asked_links(stream)} if predicted else set()
    base = {p for p in pairs_of(data.base_edges, spec.undirected) if p not in asked}
    return base | {pairs[i] for i in carry}


def asked_links(stream: TaskStream) -> list[int]:
    return [i for k in range(len(stream)) for part in ("validation", "test") for i in stream.members(k, part).tolist()]


def carried(graph: Any, undirected: bool) -> set[tuple[int, ...]]:
    return set(pairs_of(graph.edge_index, undirected))


def made(level: str, setting: str, policy: str, seeds: Seeds | None = None, **changes: Any) -> tuple[LinkData, TaskStream]:
    """Data and a stream over them, of any setting; ``data`` changes what the data hold."""
    keyed: dict[str, dict[str, Any]] = {"domain-il": {"task_key": "domain", "class_order": "random"}, "time-il": {"task_key": "time"}}
    switches = keyed.get(setting, {})
    asked = {"kind": "existing" if level == "LP" else "classes", **changes.pop("data", {})}
    data = tiny_links(**asked)
    common = {"level": level, "setting": setting, "edge_policy": policy, "split": "official"}
    return data, link_stream(data, seeds=seeds, **(common | switches | changes))


# --- what carries messages --------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_what_carries_messages(drawn: st.DataObject) -> None:
    """In every stage, seen from a view and from a query; features of degrees are counted from these edges and no others."""
    level, setting, policy = drawn.draw(st.sampled_from(CASES))
    undirected, features = drawn.draw(st.booleans()), drawn.draw(st.sampled_from(["given", "degrees", "log-degrees"]))
    more: dict[str, Any] = {"exclude_targets": drawn.draw(st.booleans())} if level == "LP" else {}
    data, stream = made(
        level,
        setting,
        policy,
        Seeds(order=drawn.draw(st.integers(0, 3)), split=drawn.draw(st.integers(0, 3))),
        data={"seed": drawn.draw(st.integers(0, 5)), "featureless": features != "given", "sparse": drawn.draw(st.booleans())},
        undirected=undirected,
        node_features=features,
        split=drawn.draw(st.sampled_from(["official", "random"])),
        **more,
    )
    for stage in range(3):
        graphs = [stream.view(j, stage).graph for j in range(stage + 1)] if policy != "none" else [stream.view(stage).graph]
        expected = expected_carriers(data, stream, stage)
        for graph in graphs:
            assert carried(graph, undirected) == expected
            assert graph.n_nodes == data.n_nodes
            if features != "given":
                assert torch.equal(graph.features, degree_features(graph.edge_index, data.n_nodes, features))
    for learnt in range(4):
        for group in stream.make_queries(learnt):
            stage = group.tasks[0] if policy == "none" else max(learnt - 1, 0)
            assert carried(group.query.graph, undirected) == expected_carriers(data, stream, stage)


def test_edges_lie_in_an_order_of_their_own() -> None:
    """Turning the links' order in the dataset changes no graph."""
    data = tiny_links()
    turned = torch.arange(data.n_items).flip(0)
    again = replace(data, links=data.links[:, turned], y=data.y[turned], official_split=data.official_split[turned], keys={})  # type: ignore[index]
    for undirected in (True, False):
        one, other = (link_stream(d, undirected=undirected, split="official") for d in (data, again))
        assert torch.equal(one.view(0).graph.edge_index, other.view(0).graph.edge_index)


def test_direction_is_kept_or_not() -> None:
    data = tiny_links(base=0)
    directed = link_stream(data, undirected=False).view(0).graph
    assert directed.n_edges == data.n_items
    both = link_stream(data).view(0).graph
    assert both.n_edges == 2 * data.n_items


def test_base_edges_that_are_asked_about_carry_nothing(caplog: pytest.LogCaptureFixture) -> None:
    data = tiny_links(kind="existing")
    tested = (data.official_split == 2).nonzero().flatten()[:3]
    doubled = replace(data, base_edges=torch.cat([data.base_edges, data.links[:, tested].flip(0)], dim=1))
    with caplog.at_level(logging.WARNING):
        stream = link_stream(doubled, level="LP", setting="domain-il", task_key="domain")
        graph = stream.view(0).graph
    assert "3 of 23 base edges are also validation or test links, and therefore carry no messages" in caplog.text
    assert carried(graph, True) == expected_carriers(data, stream, 0)


# --- repetitions ------------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_training_links_that_are_asked_about_elsewhere_are_withheld(drawn: st.DataObject) -> None:
    """But for interactions of the past: where time arrives, of links that are asked about later only."""
    setting, policy = drawn.draw(st.sampled_from([(s, p) for level, s, p in CASES if level == "LP"]))
    undirected = drawn.draw(st.booleans())
    data = tiny_links(kind="existing", repeated=40, seed=drawn.draw(st.integers(0, 20)))
    plain = tiny_spec_of(setting, policy, undirected=undirected)
    stream = build_link_stream(plain, data, Seeds(order=drawn.draw(st.integers(0, 3))))
    of, pairs = task_of(data, stream), pairs_of(data.links, undirected)
    split = data.official_split.tolist()  # type: ignore[union-attr]
    asked, past = defaultdict(list), defaultdict(list)
    for i, p in enumerate(pairs):
        (past if split[i] == 0 else asked)[p].append(of[i])
    for k in range(3):
        expected = []
        for i, p in enumerate(pairs):
            withheld = any(j <= k for j in asked[p]) if setting == "time-il" else bool(asked[p])
            if split[i] == 0 and of[i] == k and not withheld:
                expected.append(i)
        assert stream.members(k, "train").tolist() == expected
        assert stream.tasks[k].n_train == len(expected)
        found = carried(stream.view(k).graph, undirected)
        assert found == expected_carriers(data, stream, k)
        for p in found & {p for p, tasks in asked.items() if tasks}:
            assert setting == "time-il", "a pair that is asked about carries messages"
            assert min(past[p]) < min(asked[p]), "a pair that is asked about is no interaction of the past"


def tiny_spec_of(setting: str, policy: str, **changes: Any) -> Any:
    key = {"domain-il": "domain", "time-il": "time"}[setting]
    prediction = {"level": "LP", "labels": "multi", "performance": "hits", "hits_k": 5, "negatives": 40, "split": "official"}
    return tiny_spec(setting=setting, edge_policy=policy, task_key=key, **(prediction | changes))


def test_a_task_whose_links_are_all_repetitions_is_refused() -> None:
    data = tiny_links(kind="existing")
    first = (data.keys["domain"] == 3).nonzero().flatten()
    links = data.links.clone()
    links[:, first] = links[:, first[0:1]].expand(2, first.numel())
    with pytest.raises(DataError, match=r"every training link of task 1 \(domain 3\) is also a validation or test link; change"):
        link_stream(replace(data, links=links), level="LP", setting="domain-il", task_key="domain")


# --- what is asked ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LINK_VARIANTS if name.startswith("LP")])
def test_the_same_is_asked_at_all_times(name: str) -> None:
    """Test and validation links of all tasks, and twice as many pairs as there are negatives, none of which is linked."""
    stream = link_variant(name)
    options, switches = LINK_VARIANTS[name]
    data = tiny_links(**({"kind": "existing"} | options))
    undirected = switches.get("undirected", True)
    every = pairs_of(data.links, undirected)
    linked = {*every, *pairs_of(data.base_edges, undirected)}
    asked = [g.query.ids for learnt in range(4) for g in stream.make_queries(learnt)]
    assert all(torch.equal(ids, asked[0]) for ids in asked)
    pairs = pairs_of(asked[0].T, undirected)
    assert len(set(pairs)) == len(pairs) == len(asked_links(stream)) + 80
    assert {p for p in pairs if p in linked} == {every[i] for i in asked_links(stream)}
    if undirected:
        assert bool((asked[0][:, 0] < asked[0][:, 1]).all()), "the way round tells nothing"
    if options.get("types"):
        assert bool((asked[0].sum(dim=1) % 2 == 1).all()), "users with items alone"


@pytest.mark.parametrize("name", [name for name in LINK_VARIANTS if name.startswith("LP")])
def test_answers_are_scored_as_they_should(name: str) -> None:
    """Whoever knows the links hits all; who calls everything alike hits none; each task by its own links."""
    stream = link_variant(name)
    for learnt in range(4):
        groups = stream.make_queries(learnt)
        for group in groups:
            made_of = stream.asked(group.token)
            exist = made_of.y.float()
            tasks = made_of.tasks
            scored = set(group.tasks)
            assert set(tasks.tolist()) <= scored | {EVERY_TASK, NO_TASK}
            tested, validated = stream.oracle.grade({group.token: exist}, {group.token: group.query.allowed})
            assert {k: s.performance for k, s in tested.items()} == dict.fromkeys(scored, 1.0)
            assert set(validated) == {k for k in scored if k < learnt}
            tested, _ = stream.oracle.grade({group.token: torch.zeros_like(exist)}, {group.token: group.query.allowed})
            assert {s.performance for s in tested.values()} == {0.0}
            one = torch.where((tasks == group.tasks[0]).unsqueeze(1), exist, torch.zeros(1))
            tested, _ = stream.oracle.grade({group.token: one}, {group.token: group.query.allowed})
            assert {k: s.performance for k, s in tested.items()} == {k: float(k == group.tasks[0]) for k in scored}


def test_negatives_are_fixed_per_split_seed_whatever_the_order_of_tasks() -> None:
    def asked(**seeds: int) -> Tensor:
        stream = link_variant("LP domain-il", seeds=Seeds(**seeds), class_order="random")
        (group,) = stream.make_queries(2)
        ids: Tensor = group.query.ids
        return ids

    assert torch.equal(asked(), asked(order=5, init=3))
    assert not torch.equal(asked(), asked(split=1))


def test_as_many_negatives_as_test_links_where_nobody_says() -> None:
    stream = link_variant("LP domain-il", negatives=None)
    tested = sum(facts.n_test for facts in stream.tasks)
    (group,) = stream.make_queries(1)
    tasks = stream.asked(group.token).tasks
    assert int((tasks == EVERY_TASK).sum()) == 2 * tested


@pytest.mark.parametrize("name", [name for name in LINK_VARIANTS if name.startswith("LP")])
def test_a_view_has_links_and_as_many_pairs_without_one(name: str) -> None:
    stream, options = link_variant(name), LINK_VARIANTS[name][0]
    data = tiny_links(**({"kind": "existing"} | options))
    for k in range(3):
        view = stream.view(k)
        links = data.links[:, stream.members(k, "train")].T
        n = len(links)
        assert torch.equal(view.train.ids[:n], links)
        assert torch.equal(view.train.ids[n:, 0], links[:, 0])
        assert view.train.y is not None
        assert view.train.y.flatten().tolist() == [True] * n + [False] * n
        if options.get("types"):
            assert bool((view.train.ids[:, 1] % 2 == 1).all())
        assert view.validation.y is None
        assert len(view.validation) == stream.tasks[k].n_validation + 40
    lists = [{*map(tuple, stream.view(k).validation.ids.tolist())} for k in range(3)]
    common = [len(one & other) for one, other in combinations(lists, 2)]
    assert max(common) < 35, "were it the same forty, what views have in common would be the pairs without a link"


@pytest.mark.parametrize("rule", ["hits", "roc-auc", "average-precision"])
def test_what_a_schedule_monitors_is_the_views_validation(rule: str) -> None:
    stream = link_variant("LP domain-il", performance=rule)
    view, token = stream.view(1), stream.validation_token(1)
    links = {*map(tuple, tiny_links(kind="existing").links[:, stream.members(1, "validation")].sort(dim=0).values.T.tolist())}
    exist = torch.tensor([[float(tuple(p) in links)] for p in view.validation.ids.tolist()])
    assert int(exist.sum()) == len(links)
    assert stream.oracle.performance([token], exist, view.validation.allowed) == 1.0
    assert stream.oracle.performance([token], -exist, view.validation.allowed) < 0.5
    assert stream.oracle.monitor([token], lambda y: (y.float() == exist).all().float()) == 1.0


# --- what is refused --------------------------------------------------------------------------------------------------------------

PREDICTED = {"level": "LP", "setting": "domain-il", "task_key": "domain"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            PREDICTED | {"hits_k": 41},
            r"hits_k = 41: links are ranked against only 40 negative pairs, too few for Hits@41",
        ),
        (
            PREDICTED | {"setting": "class-il"},
            r"setting = 'class-il', but links have no classes in link prediction; expected 'domain-il' or 'time-il'",
        ),
        (
            {"level": "LP", "setting": "time-il", "task_key": "time"},
            r"edge_policy = full: in time-il it carries messages along links",
        ),
        (PREDICTED | {"edge_policy": "snapshot"}, r"edge_policy = snapshot: domain-il has no time steps"),
        (PREDICTED | {"replicas": 2}, r"replicas = 2: only graphs whose items are nodes can be copied; expected 1"),
        (PREDICTED | {"labels": "single", "performance": "micro"}, r"labels = single: the dataset 'tiny' is multi-label"),
        ({"exclude_targets": True}, r"exclude_targets = true applies only to LP scenarios, but tiny/class-il@test-1 is LC; remove it"),
        ({"negatives": 10}, r"negatives = 10 applies only to LP scenarios"),
        (
            {"level": "NC"},
            r"level = 'NC', and the dataset 'tiny' contains LinkData, but this builder creates streams of links; expected LC or LP",
        ),
        ({"node_features": "degrees", "feature_normalisation": "row"}, r"feature_normalisation = row: features are degrees"),
    ],
)
def test_switches_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=r"scenario\." + message):
        link_stream(**changes)


def test_streams_without_tasks_and_other_data_are_refused() -> None:
    from cglsuite.specs import TaskFreeSpec

    task_free: dict[str, Any] = {"setting": "task-free", "task_free": TaskFreeSpec(), "training": {"batch_size": 5}}
    with pytest.raises(
        SpecError, match=r"scenario\.setting = task-free: links always arrive in tasks; expected task-il, class-il, domain-il or"
    ):
        link_stream(**task_free)
    with pytest.raises(
        SpecError, match=r"scenario\.level = 'LC', and the dataset 'tiny' contains NodeData, but this builder creates streams of links"
    ):
        build_link_stream(tiny_spec(level="LC"), tiny_data(), Seeds())  # type: ignore[arg-type]


def test_nodes_without_features_need_degrees() -> None:
    data = tiny_links(featureless=True)
    with pytest.raises(SpecError, match=r"scenario\.node_features = given: the dataset 'tiny' has no node features"):
        link_stream(data)
    assert link_stream(data, node_features="degrees").n_features == 2
    assert link_stream(data, node_features="log-degrees").n_features == 3


@pytest.mark.parametrize("level", ["LC", "LP"])
def test_a_link_from_a_node_to_itself_is_refused(level: str) -> None:
    data = tiny_links(kind="existing" if level == "LP" else "classes")
    links = data.links.clone()
    links[:, 7] = links[:, 9] = 4
    changes = PREDICTED if level == "LP" else {}
    with pytest.raises(DataError, match=r"tiny: link 7 connects node 4 to itself \(2 self-loops in total\); links must connect two"):
        link_stream(replace(data, links=links), **changes)


def test_links_that_do_not_exist_cannot_be_predicted() -> None:
    data = tiny_links(kind="existing")
    y = data.y.clone()
    y[[3, 5]] = False
    with pytest.raises(
        DataError, match="tiny: 2 links are labelled false, or y does not have exactly one column; in link prediction, every item"
    ):
        link_stream(replace(data, y=y), **PREDICTED)


def test_a_graph_in_which_everything_is_linked_is_refused() -> None:
    data = tiny_links(kind="existing", n_nodes=16, n_links=110, base=10)
    with pytest.raises(DataError, match="tiny: 10 negatives are needed, but only 0 node pairs have no link; lower scenario.negatives"):
        link_stream(data, **(PREDICTED | {"negatives": 5}))


def test_a_task_without_a_pair_to_be_trained_on_is_refused() -> None:
    data = tiny_links(kind="existing", n_links=60, base=0, n_nodes=62)
    links = torch.stack([torch.arange(1, 61), torch.zeros(60, dtype=torch.int64)])
    types = torch.ones(62, dtype=torch.int64).index_fill(0, torch.tensor([0]), 0)
    lonely = replace(data, links=links, node_types=types)
    with pytest.raises(DataError, match=r"task 1 \(domain 3\) has no negative pairs to train on: every node that its training links"):
        link_stream(lonely, **(PREDICTED | {"negatives": 5, "undirected": False}))


@pytest.mark.parametrize(("value", "part", "lacking"), [(True, 2, "negative test"), (False, 1, "positive validation")])
def test_a_task_with_one_answer_only_is_refused(value: bool, part: int, lacking: str) -> None:
    data = tiny_links(kind="signs")
    y = data.y.clone()
    y[(data.official_split == part) & (data.keys["time"] == 20)] = value
    signs: dict[str, Any] = {"setting": "time-il", "labels": "multi", "performance": "roc-auc", "task_key": "time", "split": "official"}
    with pytest.raises(DataError, match=rf"task 2 \(time 20\) has no {lacking} links, so its ROC-AUC is undefined"):
        link_stream(replace(data, y=y), **signs)
    assert len(link_stream(replace(data, y=y), **(signs | {"performance": "average-precision"}))) == 3


def test_a_task_without_links_of_some_part_is_refused() -> None:
    data = tiny_links(kind="existing")
    split = data.official_split.clone()  # type: ignore[union-attr]
    split[(data.keys["domain"] == 5) & (split == 1)] = 0
    with pytest.raises(DataError, match=r"task 2 \(domain 5\) has no validation items; change scenario\.split"):
        link_stream(replace(data, official_split=split), **PREDICTED)
