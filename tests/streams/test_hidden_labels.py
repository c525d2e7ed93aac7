"""No hidden label can be reached from what a method receives: the whole object graph behind every view and query is walked.

Labels are planted so that they are recognised wherever they are: the classes have ids that nothing else in a stream has, and their
sequence over the nodes of any part of any task is long and unlike any other.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_streams import node_numbers, tiny_data, tiny_stream
from torch import Tensor

from cglsuite.graphs import GraphData, MessageGraph, NodeData
from cglsuite.specs import ScenarioSpec
from cglsuite.specs.scenario import EDGE_POLICIES
from cglsuite.streams import Batch, Oracle, TaskFacts, TaskStream
from cglsuite.streams.assembly import Assembly
from cglsuite.testing.judge.audited import path_to, reachable, whole_storage

CLASS_IDS = [131, 117, 142, 138, 111, 129]
POLICIES = [policy.name for policy in EDGE_POLICIES.values() if policy.allows("NC", "class-il")]
SETTINGS_OF: dict[str, dict[str, Any]] = {
    "domain-il": {"task_key": "domain", "class_order": "random"},
    "time-il": {"task_key": "year", "class_order": "native"},
}
FORBIDDEN = (Oracle, NodeData, TaskStream, ScenarioSpec, GraphData, Assembly)


def leaks(patterns: dict[str, list[int]], *roots: Any) -> list[str]:
    """Paths to tensors and arrays whose memory holds one of the label patterns, in order or in any order."""
    found = []
    for path, obj in reachable(*roots):
        for values in _numbers(obj):
            for name, pattern in patterns.items():
                if _contains(values, pattern):
                    found.append(f"{path} holds the labels of {name}")
    return found


def _numbers(obj: Any) -> list[list[int]]:
    if isinstance(obj, Tensor):
        if obj.layout == torch.sparse_csr:
            return [n for part in (obj.crow_indices(), obj.col_indices(), obj.values()) for n in _numbers(part)]
        return [whole_storage(obj).long().tolist()]
    if isinstance(obj, np.ndarray) and obj.dtype.kind in "iufb":
        return [obj.ravel().astype(np.int64).tolist()]
    if isinstance(obj, (list, tuple)) and obj and all(isinstance(v, int) for v in obj):
        return [list(obj)]
    if isinstance(obj, dict) and obj and all(isinstance(v, int) for v in obj.values()):
        return [list(obj.values())]
    return []


def _contains(values: list[int], pattern: list[int]) -> bool:
    n = len(pattern)
    if sorted(values) == sorted(pattern):
        return True
    return any(values[i : i + n] == pattern for i in range(len(values) - n + 1) if values[i] == pattern[0])


@dataclass
class World:
    """A stream, what it is made of, and everything that a method receives of it."""

    data: NodeData
    stream: TaskStream
    received: list[Any]
    patterns: dict[str, list[int]]


def world(policy: str, setting: str, sparse: bool) -> World:
    switches = SETTINGS_OF.get(setting, {"class_order": "random"})
    size = 40 if setting in SETTINGS_OF else 20  # parts of domains differ in size
    data = tiny_data(class_ids=CLASS_IDS, per_class=size, sparse=sparse, keys={"domain": [3, 5, 9], "year": [2001, 2002, 2004]})
    stream = tiny_stream(data, edge_policy=policy, setting=setting, **switches)
    views = [stream.view(j, k) for k in range(3) for j in range(k + 1)]
    queries = [g.query for k in range(4) for g in stream.make_queries(k)]
    patterns = {"all nodes": data.y.tolist()}
    for k in range(3):
        view = stream.view(k)
        for batch, name in ((view.validation, "validation"),):
            patterns[f"{name} of task {k}"] = data.y[node_numbers(batch.graph, batch.ids)].tolist()
    for k in range(4):
        for group in stream.make_queries(k):
            numbers = node_numbers(group.query.graph, group.query.ids)
            patterns[f"queries of {group.tasks} after {k} tasks, as asked"] = data.y[numbers].tolist()
            patterns[f"queries of {group.tasks} after {k} tasks, by node"] = data.y[sorted(numbers)].tolist()
            hidden = [n for n in numbers if n not in set(node_numbers(views[0].graph, views[0].validation.ids))]
            patterns[f"some queries of {group.tasks} after {k} tasks"] = data.y[hidden].tolist()
    return World(data, stream, [*views, *queries], patterns)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("policy", "setting"),
    [
        *((policy, setting) for policy in POLICIES for setting in ("task-il", "class-il", "domain-il")),
        ("snapshot", "time-il"),
        ("full", "time-il"),
    ],
)
def test_no_hidden_label_is_reachable(policy: str, setting: str, sparse: bool) -> None:
    made = world(policy, setting, sparse)
    assert len(made.received) == 6 + {"none": 0 + 1 + 2 + 3, "inter-task": 3, "snapshot": 3, "full": 4}[policy]
    assert min(map(len, made.patterns.values())) >= 8  # shorter ones may be somewhere by chance
    assert path_to(FORBIDDEN, *made.received) is None
    assert leaks(made.patterns, *made.received) == []


def test_training_labels_are_reachable_and_only_those() -> None:
    """The walk finds what is meant to be found: labels of training items are where they should be, in views and nowhere else."""
    made = world("full", "class-il", False)
    view = made.stream.view(1)
    trained = {"training": made.data.y[node_numbers(view.graph, view.train.ids)].tolist()}
    assert leaks(trained, view)
    assert not leaks(trained, *(g.query for g in made.stream.make_queries(3)))


@pytest.mark.parametrize("policy", POLICIES)
def test_classes_of_later_tasks_are_not_reachable_from_a_view(policy: str) -> None:
    """Not even as the memory that a tensor is a view of: which classes come next is not known yet."""
    stream = world(policy, "class-il", False).stream
    table = stream.task_outputs
    for k in range(2):
        for path, obj in reachable(stream.view(k)):
            if isinstance(obj, Tensor) and obj.layout == torch.strided and obj.dtype == torch.bool:
                rows = whole_storage(obj).view(-1, table.shape[1])
                later = [r for r in rows if any(bool((r == table[j]).all()) for j in range(k + 1, 3))]
                assert not later, f"{path} leads to the outputs of a later task"


# --- several labels ---------------------------------------------------------------------------------------------------------------
#
# There are no label ids to plant: what is looked for are columns and rows of the table of labels, which are long and unlike any other.

ORDERED = [[4, 1], [0, 5], [2, 3]]


def label_sets() -> NodeData:
    """Enough nodes that the column of a label is not somewhere by chance."""
    return tiny_data(per_class=60, multi_label=True, official=True)


def several(split: str = "task-wise", policy: str = "none", setting: str = "class-il", *, data: NodeData | None = None) -> TaskStream:
    chosen = data if data is not None else label_sets()
    order = ",".join(str(c) for classes in ORDERED for c in classes)
    return tiny_stream(chosen, labels="multi", split=split, edge_policy=policy, setting=setting, class_order=order)


def tables(*roots: Any) -> list[tuple[str, list[int]]]:
    """Paths to everything in reach that holds numbers, row by row and, of tables, column by column."""
    found = []
    for path, obj in reachable(*roots):
        found += [(path, values) for values in _numbers(obj)]
        if isinstance(obj, Tensor) and obj.layout == torch.strided and obj.dim() == 2:
            found.append((path, obj.detach().long().T.flatten().tolist()))
    return found


def _holds(values: list[int], pattern: list[int]) -> bool:
    """Whether 0s and 1s are there in order (in any order they say nothing)."""
    return bytes(pattern) in bytes(v if 0 <= v < 255 else 255 for v in values)


def sets_in_reach(patterns: dict[str, Tensor], *roots: Any) -> list[str]:
    """Paths to something that holds one of the columns or tables of labels (bool), row by row or column by column."""
    assert min(p.numel() for p in patterns.values()) >= 36
    wanted = {name: p.long().flatten().tolist() for name, p in patterns.items()}
    wanted |= {f"{name}, column by column": p.long().T.flatten().tolist() for name, p in patterns.items() if p.dim() == 2}
    return [f"{path} holds {name}" for path, values in tables(*roots) for name, p in wanted.items() if _holds(values, p)]


def hidden_sets(stream: TaskStream, y: Tensor, k: int) -> dict[str, Tensor]:
    """What a view of task ``k`` and queries asked after it must not hold: answers, and the later labels of trained items."""
    trained = y[stream.members(k, "train")]
    found = {f"column {c} of the items of task {k}": trained[:, c] for classes in ORDERED[k + 1 :] for c in classes}
    found |= {f"answers to {part} of task {j}": y[stream.members(j, part)] for j in range(3) for part in ("validation", "test")}
    found |= {f"column {c} of {name}": table[:, c] for name, table in list(found.items()) if table.dim() == 2 for c in range(6)}
    groups = [g for learnt in range(k + 2) for g in stream.make_queries(learnt)]
    asked = [node_numbers(g.query.graph, g.query.ids) for g in groups]
    found |= {f"answers to {g.tasks}, as asked": y[n] for g, n in zip(groups, asked, strict=True)}
    return found


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize(
    ("split", "policy"), [("task-wise", "none"), ("node-consistent", "inter-task"), ("official", "full"), ("task-wise", "full")]
)
def test_no_hidden_label_of_a_set_is_reachable(split: str, policy: str, setting: str) -> None:
    """Neither answers nor, of an item that is trained now, the labels that come later."""
    data = label_sets()
    stream = several(split, policy, setting, data=data)
    for k in range(3):
        received = [*(stream.view(j, k) for j in range(k + 1)), *(g.query for learnt in range(k + 2) for g in stream.make_queries(learnt))]
        assert path_to((*FORBIDDEN, TaskFacts), *received) is None
        assert sets_in_reach(hidden_sets(stream, data.y, k), *received) == []


def test_the_labels_of_a_set_that_may_be_seen_are_found() -> None:
    """The walk finds what is there: those of the task, and in class-IL of earlier tasks."""
    data = label_sets()
    for setting, classes in (("task-il", [0, 5]), ("class-il", [4, 1, 0, 5])):
        stream = several(setting=setting, data=data)
        for c in range(6):
            column = data.y[stream.members(1, "train")][:, c]
            assert bool(sets_in_reach({"it": column}, stream.view(1))) is (c in classes)
    query = several(policy="full").make_queries(3)[0].query
    answers = data.y[node_numbers(query.graph, query.ids)]
    for tail in (answers, answers.T.contiguous(), answers[:0], answers.flatten().tolist(), answers[:, 3].clone(), answers.float()):
        planted = Batch(graph=query.graph, ids=query.ids, allowed=query.allowed, cache={"x": tail})
        assert sets_in_reach({"rows": answers, "a column": answers[:, 3]}, planted)


def contents(*roots: Any) -> list[tuple[str, tuple[int, ...], bytes]]:
    """Everything in reach that holds numbers, with the whole memory behind it."""
    found = []
    for _, obj in reachable(*roots):
        if isinstance(obj, Tensor) and obj.layout == torch.strided:
            found.append((str(obj.dtype), tuple(obj.shape), whole_storage(obj).numpy().tobytes()))
        elif isinstance(obj, np.ndarray) and obj.dtype.kind in "iufb":
            found.append((obj.dtype.str, obj.shape, obj.tobytes()))
    return sorted(found)


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("split", ["task-wise", "official"])
def test_views_do_not_depend_on_labels_that_come_later(split: str, policy: str, setting: str) -> None:
    """Whatever the nodes' later labels are, everything behind a view is the same, bit for bit: there is nothing to be found."""
    data = label_sets()
    generator = torch.Generator().manual_seed(0)
    for k in range(2):
        y = data.y.clone()
        for c in (c for classes in ORDERED[k + 1 :] for c in classes):
            y[:, c] = y[torch.randperm(len(y), generator=generator), c]
        one, other = (several(split, policy, setting, data=d) for d in (data, replace(data, y=y)))
        assert one.tasks[k + 1].content != other.tasks[k + 1].content
        for j in range(k + 1):
            assert contents(one.view(j, k)) == contents(other.view(j, k))
        if policy != "full":  # where queries of later tasks are asked from the start
            asked = [[contents(g.query) for learnt in range(k + 2) for g in s.make_queries(learnt)] for s in (one, other)]
            assert asked[0] == asked[1]
        later = [contents(s.view(k + 1)) for s in (one, other)]
        assert later[0] != later[1]


def test_a_snapshot_does_not_depend_on_what_comes_later() -> None:
    """Labels, features and edges of later time steps may be anything."""
    data = tiny_data(per_class=20, keys={"year": [2001, 2002, 2004]}, official=True)
    common = {"setting": "time-il", "task_key": "year", "edge_policy": "snapshot", "split": "official"}
    for k, year in enumerate([2001, 2002]):
        later = data.keys["year"] > year
        y, x, edges = data.y.clone(), data.x.clone(), data.edge_index
        y[later], x[later] = (y[later] + 1) % 6, 7.0
        edges = torch.cat([edges[:, ~later[edges].any(dim=0)], edges[:, later[edges].any(dim=0)].flip(0)[:, ::2]], dim=1)
        one, other = (tiny_stream(d, **common) for d in (data, replace(data, y=y, x=x, edge_index=edges)))
        for stage in range(k + 1):
            assert contents(one.view(stage)) == contents(other.view(stage))
            for mine, theirs in zip(one.make_queries(stage), other.make_queries(stage), strict=True):
                assert contents(mine.query) == contents(theirs.query)
        assert contents(one.view(k + 1)) != contents(other.view(k + 1))


# --- the walk itself: every hiding place that it must look into -----------------------------------------------------------------


class Slotted:
    """Keeps what it is given in a slot, under a private name."""

    __slots__ = ("__kept",)

    def __init__(self, kept: Any) -> None:
        self.__kept = kept

    def read(self) -> Any:
        return self.__kept


def _closure(kept: Any) -> Callable[[], Any]:
    return lambda: kept


def _default(kept: Any) -> Callable[[], Any]:
    def function(value: Any = kept) -> Any:
        return value

    return function


def _attributed(kept: Any) -> Callable[[], None]:
    def function() -> None: ...

    function.kept = kept  # type: ignore[attr-defined]
    return function


def _cached(kept: Any) -> Any:
    cached = functools.lru_cache(lambda key: kept)
    cached(1)
    return cached


def _generator(kept: Any) -> Any:
    def frame() -> Any:
        inner = kept
        yield 1
        yield inner

    running = frame()
    next(running)
    return running


def _module(kept: Any) -> Any:
    module = torch.nn.Linear(1, 1)
    module.register_buffer("kept", kept) if isinstance(kept, Tensor) else setattr(module, "kept", kept)
    return module


HIDING_PLACES: dict[str, Callable[[Any], Any]] = {
    "attribute": lambda kept: _with_attribute(kept),
    "slot": Slotted,
    "list in dict in tuple": lambda kept: ({"a": [1, kept]},),
    "set": lambda kept: {kept},
    "dictionary key": lambda kept: {kept: 1},
    "closure": _closure,
    "default": _default,
    "attribute of a function": _attributed,
    "partial": lambda kept: functools.partial(print, kept),
    "bound method": lambda kept: Slotted(kept).read,
    "method of a built-in": lambda kept: [kept].append,
    "weak reference": lambda kept: weakref.ref(kept),
    "cache": _cached,
    "suspended generator": _generator,
    "module": _module,
}


def _with_attribute(kept: Any) -> Any:
    class Holder:
        pass

    holder = Holder()
    holder.kept = kept  # type: ignore[attr-defined]
    return holder


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_the_walk_finds_what_is_hidden(place: str) -> None:
    """Planted in a query's cache, an oracle and a tensor of labels are both found."""
    made = world("full", "class-il", False)
    group = made.stream.make_queries(3)[0]
    labels = made.data.y.clone()
    for kept in (made.stream.oracle, labels):
        query = Batch(graph=group.query.graph, ids=group.query.ids, allowed=group.query.allowed, cache={"x": HIDING_PLACES[place](kept)})
        found = path_to(Oracle, query) if kept is made.stream.oracle else leaks(made.patterns, query)
        assert found, f"{place}: {type(kept).__name__} not found"


def test_the_walk_finds_labels_behind_views_of_memory() -> None:
    made = world("full", "class-il", False)
    query = made.stream.make_queries(3)[0].query
    labels = made.data.y
    tails: dict[str, Any] = {
        "slice": labels[:0],
        "base of an array": labels.numpy()[:0],
        "stored numbers of a sparse matrix": torch.sparse_csr_tensor(
            torch.tensor([0, labels.numel()]), torch.arange(labels.numel()), labels.float(), size=(1, labels.numel())
        ),
        "graph's features": MessageGraph(labels.float().unsqueeze(1), torch.empty(2, 0, dtype=torch.int64)),
        "autograd graph": (labels.float().requires_grad_() * torch.ones(1)).sum().grad_fn,
        "shuffled": labels[torch.randperm(labels.numel())],
        "python list": labels.tolist(),
    }
    for name, tail in tails.items():
        planted = Batch(graph=query.graph, ids=query.ids, allowed=query.allowed, cache={"x": tail})
        assert leaks(made.patterns, planted), name


def test_the_walk_stops_at_modules() -> None:
    """Else everything in the process would count as reachable from everything."""
    view = tiny_stream().view(0)
    assert path_to(type(pytest), view) is None
    assert len(list(reachable(view))) < 500
