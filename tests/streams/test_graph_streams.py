"""Streams whose items are graphs: what views and queries hold, and when they are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_graphs import GRAPH_VARIANTS, graph_variant, tiny_molecules
from tiny_streams import node_numbers, tiny_graphs, tiny_spec, tiny_stream
from torch import Tensor

from cglsuite.base.errors import DataError, SpecError
from cglsuite.graphs import GraphData
from cglsuite.graphs.packed import PackedGraphs
from cglsuite.specs import Seeds
from cglsuite.streams import Oracle, TaskStream
from cglsuite.streams.assembly import Assembly
from cglsuite.streams.graphwise import build_graph_stream
from cglsuite.testing.judge.audited import path_to, reachable, whole_storage


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
        ({"edge_policy": "none"}, "items are whole graphs without edges between them; expected full"),
        ({"replicas": 2}, "expected 1"),
        ({"feature_normalisation": "row"}, "expected none"),
        ({"labels": "multi"}, "is single-label"),
    ],
)
def test_switches_that_are_about_one_large_graph_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        stream(**changes)


# --- real targets and labels that are not all known -------------------------------------------------------------------------------

PARTS = ("train", "validation", "test")


def which(graphs: PackedGraphs, data: GraphData) -> list[int]:
    """Which graphs of the dataset a set holds, by all that they consist of (equal graphs of the tiny data have equal targets)."""
    known = {content(data.items.queries(torch.tensor([i]), "cpu")): i for i in range(data.n_items)}  # type: ignore[arg-type]
    return [known[content(graphs.take(torch.tensor([i])))] for i in range(len(graphs))]


def content(graph: PackedGraphs) -> bytes:
    return b"|".join(t.to_dense().numpy().tobytes() for _, t in sorted(graph.payload().items()))


def told_apart(name: str) -> tuple[TaskStream, GraphData]:
    """A stream of :data:`GRAPH_VARIANTS` whose graphs all differ: feature 0 of the first atom is the number of its graph."""
    of_data, switches, _, _ = GRAPH_VARIANTS[name]
    data = tiny_molecules(**of_data)
    pack = data.items._pack  # type: ignore[attr-defined]
    x = pack.x.to_dense()
    x[pack.node_start[:-1], 0] += torch.arange(data.n_items) / 1024
    items = type(data.items)(x, pack.edge_index, pack.sizes, "tiny", edge_attr=pack.edge_attr)  # type: ignore[call-arg]
    data = replace(data, items=items)
    return build_graph_stream(tiny_spec(**switches), data, Seeds()), data


@pytest.mark.parametrize("name", GRAPH_VARIANTS)
def test_no_test_graph_is_in_any_view_of_any_task(name: str) -> None:
    """Nor is a validation graph among those trained on: told by what the graphs consist of, not by what the stream says."""
    stream, data = told_apart(name)
    tests = [set(stream.members(k, "test").tolist()) for k in range(3)]
    validation = [set(stream.members(k, "validation").tolist()) for k in range(3)]
    assert all(tests)
    for k in range(3):
        for stage in range(k, 3):
            view = stream.view(k, stage)
            trained, checked = which(view.train.graph, data), which(view.validation.graph, data)
            assert trained == stream.members(k, "train").tolist()
            assert checked == stream.members(k, "validation").tolist()
            for other in range(3):  # with node-level splits of labels, a graph may be in several tasks, and always in the same part
                assert not {*trained, *checked} & tests[other]
                assert not {*trained} & validation[other]


@pytest.mark.parametrize("name", GRAPH_VARIANTS)
def test_no_hidden_target_is_reachable(name: str) -> None:
    """No real target of a validation or test graph, and no column of their labels in the order of the dataset or of the questions."""
    stream, data = told_apart(name)
    views = [stream.view(j, k) for k in range(3) for j in range(k + 1)]
    groups = [g for k in range(4) for g in stream.make_queries(k)]
    hidden: list[Tensor] = [data.y[stream.members(k, part)] for k in range(3) for part in PARTS[1:]]
    hidden += [data.y[stream.asked(g.token).ids] for g in groups]
    patterns = [h[:, c].double() for h in hidden for c in range(h.shape[1])]
    assert min(map(len, patterns)) >= 5
    received = [*views, *(g.query for g in groups)]
    assert path_to((Oracle, GraphData, TaskStream, Assembly), *received) is None
    numbers = [v for root in received for v in values_in_reach(root)]
    if data.y.dtype == torch.float32:
        every = torch.cat(numbers)
        assert not torch.isin(torch.cat(patterns), every).any()
        trained = torch.cat([data.y[stream.members(k, "train")] for k in range(3)]).double().flatten()
        assert torch.isin(trained, every).all(), "the walk finds what is there"
    else:  # a column of booleans is found as such
        columns = {tuple(v.tolist()) for v in numbers}
        assert not columns & {tuple(p.tolist()) for p in [*patterns, *data.y.double().unbind(dim=1)] if len(p) >= 12}


def values_in_reach(root: Any) -> list[Tensor]:
    """All numbers in reach of an object, tensor by tensor, and of labels column by column."""
    found = []
    for _, obj in reachable(root):
        if isinstance(obj, Tensor) and obj.layout == torch.strided and obj.numel():
            found.append(whole_storage(obj).double().flatten())
            if obj.dim() == 2 and obj.dtype in (torch.bool, torch.float32):
                found.extend(obj.double().unbind(dim=1))
    return found


def test_targets_come_as_they_are() -> None:
    data = tiny_molecules(outputs=2)
    stream = build_graph_stream(tiny_spec(**GRAPH_VARIANTS["regression domain-il"][1]), data, Seeds())
    for k in range(3):
        view = stream.view(k)
        assert torch.equal(view.train.y, data.y[stream.members(k, "train")])  # type: ignore[arg-type]
        assert view.train.allowed.tolist() == [True, True]
        assert view.validation.y is None


def test_a_task_of_labels_that_are_not_all_known_has_the_graphs_whose_label_is_known() -> None:
    stream, data = told_apart("unknown labels task-il")
    assert data.known is not None
    assert 0.2 < float((~data.known).float().mean()) < 0.4
    for k in range(3):
        (output,) = stream.tasks[k].classes
        members = torch.cat([stream.members(k, part) for part in PARTS])
        assert sorted(members.tolist()) == data.known[:, output].nonzero().flatten().tolist()
        assert data.y[members, output].any(), "graphs that have the label"
        assert not data.y[members, output].all(), "and graphs that do not"
        y: Any = stream.view(k).train.y
        assert torch.equal(y[:, output], data.y[stream.members(k, "train"), output])
        assert not y[:, [c for c in range(3) if c != output]].any(), "other labels are not told"


def test_a_graph_is_in_the_same_part_of_all_tasks() -> None:
    stream, _ = told_apart("unknown labels task-il")
    for part in PARTS:
        for other in set(PARTS) - {part}:
            of_any = [{i for k in range(3) for i in stream.members(k, p).tolist()} for p in (part, other)]
            assert not of_any[0] & of_any[1]


REFUSED: dict[str, tuple[str, dict[str, Any], dict[str, Any], type[Exception], str]] = {
    "classes of real targets": (
        "regression domain-il",
        {},
        {"setting": "class-il"},
        SpecError,
        "scenario.setting = 'class-il', but the dataset 'tiny' has no classes; expected 'domain-il' or 'time-il'",
    ),
    "single labels for real targets": (
        "regression domain-il",
        {},
        {"labels": "single", "performance": "micro"},
        SpecError,
        "the dataset 'tiny' has real targets",
    ),
    "a split per class of real targets": (
        "regression domain-il",
        {},
        {"split": "per-class"},
        SpecError,
        "scenario.split = per-class: this scenario can be split by official or random",
    ),
    "labels that compete without being known": (
        "unknown labels task-il",
        {},
        {"setting": "class-il", "train_outputs": "seen"},
        DataError,
        r"label \d of graph \d+, a train graph of task 1 \(classes 0\), is unknown, but competes in the task; use data",
    ),
    "unknown labels of a task of two": (
        "unknown labels task-il",
        {},
        {"classes_per_task": 2, "drop_last": True},
        DataError,
        r"a train graph of task 1 \(classes 0, 1\), is unknown",
    ),
    "a monitored area under a curve that is not there": (
        "one label domain-il",
        {"y": torch.zeros(180, 1, dtype=torch.bool)},
        {"training": {"monitor": "validation-performance"}},
        DataError,
        r"ROC-AUC is undefined on the \d+ validation graphs of task 1 \(domain 3\): no label has both positives and negatives",
    ),
    "no test graphs": (
        "regression domain-il",
        {"official_split": torch.where(torch.arange(90) % 3 == 1, torch.arange(90) // 3 % 2, torch.arange(90) // 3 % 3).to(torch.int8)},
        {"split": "official"},
        DataError,
        r"scenario 'tiny/domain-il@test-1': task 2 \(domain 5\) has no test items; change scenario.split",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what: str) -> None:
    name, of_data, changes, error, message = REFUSED[what]
    more, switches, _, _ = GRAPH_VARIANTS[name]
    data = replace(tiny_molecules(**more), **of_data)
    with pytest.raises(error, match=message):
        build_graph_stream(tiny_spec(**(switches | changes)), data, Seeds())


def test_a_split_at_random_is_for_labels_of_which_it_is_said_which_are_known() -> None:
    with pytest.raises(SpecError, match="scenario.split = random: the dataset 'tiny' is multi-label; expected task-wise"):
        tiny_stream(tiny_graphs(multi_label=True), setting="task-il", labels="multi", split="random")
    assert len(graph_variant("unknown labels task-il")) == 3
