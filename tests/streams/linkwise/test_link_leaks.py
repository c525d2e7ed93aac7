"""Nothing hidden shows in what is received of a stream of links: no label of another part, no link that is asked about, nothing of later.

The strongest form is used wherever there is one: what is hidden is changed, and everything behind views and queries stays the same, bit
for bit, so that there is nothing to be found.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_links import LINK_VARIANTS, link_runner, link_stream, link_variant, tiny_links
from tiny_streams import BusyMethod
from torch import Tensor

from cglsuite.graphs import LinkData
from cglsuite.graphs.splits.negatives import pair_keys
from cglsuite.specs import ScenarioSpec
from cglsuite.streams import Oracle, TaskFacts, TaskStream
from cglsuite.streams.assembly import Assembly
from cglsuite.testing.judge.audited import path_to, reachable, whole_storage

FORBIDDEN = (Oracle, LinkData, TaskStream, ScenarioSpec, TaskFacts, Assembly)
PREDICTED = [
    ("domain-il", "full"),
    ("domain-il", "none"),
    ("domain-il", "inter-task"),
    ("time-il", "none"),
    ("time-il", "inter-task"),
    ("time-il", "snapshot"),
]
CLASSIFIED = [
    *((setting, policy) for setting in ("task-il", "class-il", "domain-il") for policy in ("none", "inter-task", "full")),
    ("time-il", "snapshot"),
    ("time-il", "inter-task"),
    ("time-il", "none"),
    ("signs", "snapshot"),
]
KEYS: dict[str, dict[str, Any]] = {"domain-il": {"task_key": "domain"}, "time-il": {"task_key": "time"}}


def received(stream: TaskStream, upto: int) -> list[Any]:
    """Everything that a method receives until task ``upto`` is learnt and asked about, views of earlier tasks in later stages included."""
    views = [stream.view(j, k) for k in range(upto + 1) for j in range(k + 1)]
    return [*views, *(group.query for learnt in range(upto + 2) for group in stream.make_queries(learnt))]


def contents(*roots: Any) -> list[tuple[str, tuple[int, ...], bytes]]:
    """Everything in reach that holds numbers, with the whole memory behind it."""
    found = []
    for _, obj in reachable(*roots):
        if isinstance(obj, Tensor) and obj.layout == torch.strided:
            found.append((str(obj.dtype), tuple(obj.shape), whole_storage(obj).numpy().tobytes()))
        elif isinstance(obj, np.ndarray) and obj.dtype.kind in "iufb":
            found.append((obj.dtype.str, obj.shape, obj.tobytes()))
    return sorted(found)


def classified(data: LinkData, setting: str, policy: str, **changes: Any) -> TaskStream:
    if setting == "signs":
        signs = {"setting": "time-il", "task_key": "time", "labels": "multi", "performance": "roc-auc", "undirected": False}
        return link_stream(data, edge_policy=policy, split="official", **(signs | changes))
    return link_stream(data, setting=setting, edge_policy=policy, split="official", **(KEYS.get(setting, {}) | changes))


def swapped(y: Tensor, which: Tensor) -> Tensor:
    """Labels of the links ``which`` (bool [M]) exchanged for the other class of the same task (0 and 1, 2 and 3, ...), or turned."""
    other = ~y if y.dtype == torch.bool else y + 1 - 2 * (y % 2)
    return torch.where(which.unsqueeze(1) if y.dim() == 2 else which, other, y)


# --- classification: labels of other parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "policy"), CLASSIFIED)
def test_no_label_of_another_part_is_behind_anything(setting: str, policy: str) -> None:
    """Other answers to every validation and test link: everything is the same. Other labels to be trained on: it is not."""
    data = tiny_links(kind="signs" if setting == "signs" else "classes")
    trained = data.official_split == 0
    stream = classified(data, setting, policy)
    assert path_to(FORBIDDEN, *received(stream, 2)) is None
    plain = contents(*received(stream, 2))
    assert contents(*received(classified(replace(data, y=swapped(data.y, ~trained)), setting, policy), 2)) == plain
    assert contents(*received(classified(replace(data, y=swapped(data.y, trained)), setting, policy), 2)) != plain


@pytest.mark.parametrize(("setting", "policy"), CLASSIFIED)
def test_no_label_of_a_later_task_is_behind_anything(setting: str, policy: str) -> None:
    """Not even of links that will be trained on."""
    data = tiny_links(kind="signs" if setting == "signs" else "classes")
    stream = classified(data, setting, policy)
    for k in range(2):
        later = torch.zeros(data.n_items, dtype=torch.bool)
        for j in range(k + 1, 3):
            later[torch.cat([stream.members(j, part) for part in ("train", "validation", "test")])] = True
        other = classified(replace(data, y=swapped(data.y, later)), setting, policy)
        assert contents(*received(other, k)) == contents(*received(stream, k))
        assert contents(other.view(k + 1)) != contents(stream.view(k + 1))


def test_the_comparison_finds_a_hidden_label() -> None:
    """Planted anywhere in a batch, one label changes what is found."""
    data = tiny_links()
    view = classified(data, "class-il", "full").view(0)
    hidden = data.y[data.official_split == 2]
    found = []
    for y in (hidden, swapped(hidden, torch.arange(len(hidden)) == 3)):
        view.train.cache["x"] = {"deep": [y[:0]]}  # a view of no item of a tensor of all
        found.append(contents(view))
    assert found[0] != found[1]


# --- prediction: links that are asked about ---------------------------------------------------------------------------------------


def predicted(data: LinkData, setting: str, policy: str, **changes: Any) -> TaskStream:
    return link_stream(data, level="LP", setting=setting, edge_policy=policy, **(KEYS[setting] | changes))


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_no_link_that_is_asked_about_carries_messages(drawn: st.DataObject) -> None:
    """In no graph that a method receives, under any policy, in any stage; nor is it among the links to be trained on, nor a base edge."""
    setting, policy = drawn.draw(st.sampled_from(PREDICTED))
    undirected = drawn.draw(st.booleans())
    data = tiny_links(kind="existing", featureless=drawn.draw(st.booleans()), seed=drawn.draw(st.integers(0, 9)))
    asked = data.official_split != 0
    doubled = drawn.draw(st.integers(0, 5))
    base = torch.cat([data.base_edges, data.links[:, asked][:, :doubled]], dim=1)
    stream = predicted(
        replace(data, base_edges=base),
        setting,
        policy,
        undirected=undirected,
        exclude_targets=drawn.draw(st.booleans()),
        node_features="degrees" if data.x is None else "given",
    )
    hidden = pair_keys(data.links[:, asked], data.n_nodes, undirected)
    later = pair_keys(data.links, data.n_nodes, undirected)
    for stage in range(3):
        views = [stream.view(j, stage) for j in range(stage + 1)]
        queries = [g.query for g in stream.make_queries(stage + 1)]
        graphs = {id(b.graph): b.graph for v in views for b in (v.train, v.validation)}
        graphs |= {id(q.graph): q.graph for q in queries}
        for graph in graphs.values():
            carried = pair_keys(graph.edge_index, data.n_nodes, undirected)
            assert not torch.isin(carried, hidden).any(), "a validation or test link carries messages"
            if setting == "time-il":
                coming = later[data.keys["time"] > (stage + 1) * 10]
                assert not torch.isin(carried, coming).any(), "a link carries messages before its time"
        for view in views:
            assert view.train.y is not None
            trained = pair_keys(view.train.ids[view.train.y[:, 0]].T, data.n_nodes, undirected)
            assert not torch.isin(trained, hidden).any()


@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize(("setting", "policy"), PREDICTED)
def test_no_feature_is_counted_from_what_is_hidden(setting: str, policy: str, exclude: bool) -> None:
    """The degrees of every view and query, and in a training step, are those of the edges that carry messages there, one by one."""
    data = tiny_links(kind="existing", featureless=True)
    stream = predicted(data, setting, policy, node_features="degrees", exclude_targets=exclude)
    hidden = pair_keys(data.links[:, data.official_split != 0], data.n_nodes, True)
    for batch in (b for root in received(stream, 2) for b in ([root.train, root.validation] if hasattr(root, "train") else [root])):
        graphs = [batch.graph, batch.graph.in_step(batch.ids[:4])]
        for graph in graphs:
            assert not torch.isin(pair_keys(graph.edge_index, data.n_nodes, True), hidden).any()
            heard = Counter(graph.edge_index[1].tolist())
            assert torch.equal(graph.features[:, 0], torch.tensor([heard[v] for v in range(data.n_nodes)]).float())
            assert graph.counted is not None


@pytest.mark.parametrize(("setting", "policy"), PREDICTED)
def test_which_of_what_is_asked_exist_is_behind_nothing(setting: str, policy: str) -> None:
    """No object in reach of a query or of a view's validation holds the answers, in order, as positions or as counts from the front."""
    data = tiny_links(kind="existing")
    stream = predicted(data, setting, policy)
    linked = pair_keys(data.links, data.n_nodes, True)
    assert path_to(FORBIDDEN, *received(stream, 2)) is None
    for root in received(stream, 2):
        batch = getattr(root, "validation", root)
        exist = torch.isin(pair_keys(batch.ids.T, data.n_nodes, True), linked)
        n = len(exist)
        assert 0 < int(exist.sum()) < n
        assert not bool(exist[: int(exist.sum())].all()), "links come first"
        wanted = {exist.long().numpy().tobytes(), (~exist).long().numpy().tobytes()}
        wanted |= {which.nonzero().flatten().numpy().tobytes() for which in (exist, ~exist)}
        for path, obj in reachable(batch):
            if isinstance(obj, Tensor) and obj.layout == torch.strided and not obj.is_floating_point():
                values = whole_storage(obj).long().flatten()
                assert values.numpy().tobytes() not in wanted, path
                assert values.sort().values.numpy().tobytes() not in wanted, path
                assert all(values[i : i + n].numpy().tobytes() not in wanted for i in range(len(values) - n + 1)), path


# --- time: nothing of later -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [False, True])
@pytest.mark.parametrize(("level", "policy"), [(level, policy) for level in ("LC", "LP") for policy in ("none", "inter-task", "snapshot")])
def test_graphs_and_training_do_not_depend_on_later_links(level: str, policy: str, degrees: bool) -> None:
    """Later links may lead anywhere: graphs, features and what is trained on are the same; in classification so is what is asked."""
    data = tiny_links(kind="existing" if level == "LP" else "classes", featureless=degrees, n_nodes=40)
    common: dict[str, Any] = {"node_features": "degrees" if degrees else "given"}
    for k in range(2):
        later = data.keys["time"] > (k + 1) * 10
        links = data.links.clone()
        free = torch.combinations(torch.arange(40)).T
        taken = pair_keys(torch.cat([data.links, data.base_edges], dim=1), 40, True)
        free = free[:, ~torch.isin(pair_keys(free, 40, True), taken)]
        links[:, later] = free[:, : int(later.sum())]
        make = predicted if level == "LP" else classified
        one, other = (make(d, "time-il", policy, **common) for d in (data, replace(data, links=links)))
        for stage in range(k + 1):
            for j in range(stage + 1):
                assert contents(one.view(j, stage).train) == contents(other.view(j, stage).train)
            if level == "LC":
                assert contents(*received(one, stage)) == contents(*received(other, stage))
            asked = [[g.query.graph for g in s.make_queries(stage + 1)] for s in (one, other)]
            assert contents(*asked[0]) == contents(*asked[1])
        assert contents(one.view(k + 1).train) != contents(other.view(k + 1).train)


# --- at work ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINK_VARIANTS)
def test_test_answers_change_scores_and_nothing_else(name: str) -> None:
    """A busy method, trained with a monitor, over answers that were exchanged."""
    training = {"monitor": "validation-performance" if name.startswith("LP") else "validation-loss", "epochs": 2}
    results = []
    for permuted in (False, True):
        stream = link_variant(name, training=training)
        runner = link_runner(stream, BusyMethod)
        if permuted:
            for learnt in range(4):
                stream.make_queries(learnt)
            for sheet in stream.oracle._sheets.values():
                scored = (sheet.test & (sheet.tasks >= -1)).nonzero().flatten()
                turned = scored[torch.randperm(len(scored), generator=torch.Generator().manual_seed(3))]
                sheet.y[scored] = sheet.y[turned]
                if bool((sheet.tasks < 0).any()):  # a pair without a link is of no task
                    sheet.tasks[scored] = sheet.tasks[turned]
        results.append(runner.run())
    plain, other = results
    assert other.fingerprints == plain.fingerprints
    assert other.curves == plain.curves
    assert repr(other.validation_matrix) == repr(plain.validation_matrix)
    assert repr(other.matrix) != repr(plain.matrix)


@pytest.mark.parametrize("name", LINK_VARIANTS)
def test_a_method_at_work_cannot_reach_the_answers(name: str) -> None:
    class Watched(BusyMethod):
        def before_task(self, view: Any) -> None:
            super().before_task(view)
            assert path_to(FORBIDDEN, self, view) is None

        def after_task(self, view: Any) -> None:
            super().after_task(view)
            assert path_to(FORBIDDEN, self, view) is None

        def predict(self, query: Any) -> Tensor:
            assert path_to(FORBIDDEN, self, query) is None
            return super().predict(query)

    link_runner(link_variant(name, training={"epochs": 1}), Watched).run()
