"""No hidden label can be reached from what a method receives: the whole object graph behind every view and query is walked.

Labels are planted so that they are recognised wherever they are: the classes have ids that nothing else in a stream has, and their
sequence over the nodes of any part of any task is long and unlike any other.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from reachable import path_to, reachable, whole_storage
from tiny_streams import node_numbers, tiny_data, tiny_stream
from torch import Tensor

from cglsuite.graphs import MessageGraph, NodeData
from cglsuite.specs import ScenarioSpec
from cglsuite.streams import Batch, Oracle, TaskStream
from cglsuite.streams.classes import _Builder, _Questions

CLASS_IDS = [131, 117, 142, 138, 111, 129]
POLICIES = ("none", "inter-task", "full")
FORBIDDEN = (Oracle, NodeData, TaskStream, ScenarioSpec, _Builder, _Questions)


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
    data = tiny_data(class_ids=CLASS_IDS, per_class=20, sparse=sparse)
    stream = tiny_stream(data, edge_policy=policy, setting=setting, class_order="random")
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
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_hidden_label_is_reachable(policy: str, setting: str, sparse: bool) -> None:
    made = world(policy, setting, sparse)
    assert len(made.received) == 6 + {"none": 0 + 1 + 2 + 3, "inter-task": 3, "full": 4}[policy]
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
