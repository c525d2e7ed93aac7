"""What tiny streams of every kind show, as digests in tests/streams/shown.json. A command that writes them again.

    python tests/tools/shown_streams.py

It prints the streams that have changed; ``tests/streams/test_shown.py`` fails until what is committed is what is shown. A digest covers the
facts of the tasks, the items of every part, every view or batch with its message graph, and every query with the labels that are asked for.
Floats count to four decimals, so that another processor gives the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from tiny_graphs import GRAPH_VARIANTS, graph_variant
from tiny_links import LINK_VARIANTS, link_variant
from tiny_streams import VARIANTS, tiny_data, tiny_graphs, tiny_stream, variant_stream
from tiny_task_free import tiny_task_free_stream
from torch import Tensor

from cglsuite.base.errors import CglsuiteError
from cglsuite.specs import Seeds
from cglsuite.streams import Batch, TaskView

FILE = Path(__file__).parents[1] / "streams" / "shown.json"
SEEDS = Seeds(order=1, split=2)
#: Switches of node streams, each away from its default by itself.
SWITCHES: list[dict[str, Any]] = [
    *({"edge_policy": policy, "undirected": both} for policy in ("none", "inter-task", "full") for both in (True, False)),
    *({"class_order": order} for order in ("native", "random", "all-tasks", "random-tasks", "latin-tasks", "latin-classes")),
    {"class_order": "5,4,3,2,1,0|0,2,4,1,3,5"},
    *({"split": split} for split in ("official", "per-class", "random")),
    *({"split_ratio": ratio} for ratio in ((0.5, 0.25, 0.25), (0.8, 0.1, 0.1), (0.3, 0.0, 0.7))),
    *({"train_outputs": outputs} for outputs in ("task", "seen", "all")),
    {"classes_per_task": 4, "leftover": "join-last", "drop_last": True},
    {"classes_per_task": 4, "leftover": "drop", "drop_last": True},
    {"classes_per_task": None, "n_tasks": 2},
    {"n_tasks": 2},
    {"min_class_size": 10},
    {"min_class_size": 11},
    {"feature_normalisation": "row"},
    {"replicas": 2},
    {"performance": "macro"},
    {"head": "growing"},
]
TASK_FREE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({"draw": draw}, {}) for draw in ("without-replacement", "with-replacement")),
    *(({"mask": mask}, {}) for mask in ("seen", "progressive", "all")),
    *(({"query_graph": graph}, {"edge_policy": policy}) for graph in ("own", "merged") for policy in ("none", "full")),
    *(({"evaluate_every": n}, {"training": {"batch_size": b}}) for n, b in ((1, 10), (100, 3), (5, 7))),
    ({}, {"class_order": "random", "split": "random", "train_outputs": "all", "undirected": False}),
]


def streams() -> Iterator[tuple[str, Any]]:
    """Names and functions that build the streams."""
    for seeds in (Seeds(), SEEDS):
        at = f" at {seeds.order}/{seeds.split}"
        for name in VARIANTS:
            yield f"{name}{at}", lambda name=name, seeds=seeds: variant_stream(name, seeds=seeds)
        for name in LINK_VARIANTS:
            yield f"{name}{at}", lambda name=name, seeds=seeds: link_variant(name, seeds=seeds)
        for name in GRAPH_VARIANTS:
            yield f"{name}{at}", lambda name=name, seeds=seeds: graph_variant(name, seeds=seeds)
    for setting in ("task-il", "class-il"):
        for changes in SWITCHES:
            of_data = {"official": changes.get("split") == "official", "sparse": "normalisation" in str(changes)}
            yield (
                f"nodes {setting} {json.dumps(changes)}",
                lambda changes=changes, of_data=of_data, setting=setting: tiny_stream(
                    tiny_data(**of_data), seeds=SEEDS, **{"setting": setting, **changes}
                ),
            )
    for changes in SWITCHES:
        if not {"edge_policy", "replicas", "undirected", "feature_normalisation"} & changes.keys():
            of_data = {"official": changes.get("split") == "official"}
            yield (
                f"graphs {json.dumps(changes)}",
                lambda changes=changes, of_data=of_data: tiny_stream(tiny_graphs(**of_data), seeds=SEEDS, **changes),
            )
    for task_free, changes in TASK_FREE:
        for graphs in (False, True):
            if graphs and ({"edge_policy", "undirected"} & changes.keys() or "query_graph" in task_free):
                continue
            name = f"task-free {'graphs' if graphs else 'nodes'} {json.dumps([task_free, changes])}"
            yield (
                name,
                lambda task_free=task_free, changes=changes, graphs=graphs: tiny_task_free_stream(
                    (tiny_graphs if graphs else tiny_data)(per_class=20), seeds=SEEDS, task_free=task_free, **changes
                ),
            )


def shown() -> dict[str, str]:
    """Stream to a digest of what it shows, or to why it is refused."""
    found = {}
    for name, build in streams():
        try:
            found[name] = _digest(_of(build()))
        except CglsuiteError as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def _of(stream: Any) -> Iterator[Any]:
    """Everything that a runner, a method or an oracle can learn of a stream."""
    yield from (len(stream), stream.n_outputs, stream.n_features, stream.task_outputs)
    yield from map(asdict, stream.tasks)
    for k in range(len(stream)):
        yield from (stream.members(k, part) for part in ("train", "validation", "test"))
    task_free = hasattr(stream, "evaluations")
    if task_free:
        yield from (stream.mixture, stream.counts, stream.items, list(stream.evaluations), stream.content, stream.delivered())
        yield from (stream.exposure(), stream.everything(), stream.shown(0), stream.shown(3), stream.shown(stream.n_steps))
        yield from (stream.make_batch(step) for step in (0, stream.n_steps // 2, stream.n_steps - 1))
    else:
        last = len(stream) - 1
        yield from (stream.view(k) for k in range(len(stream)))
        yield stream.view(0, last)
    for learnt in stream.evaluations if task_free else range(len(stream) + 1):
        for group in stream.make_queries(learnt):
            yield group.query
            yield group.tasks
            if not task_free:
                yield vars(stream.asked(group.token))


def _digest(parts: Iterator[Any]) -> str:
    total = hashlib.sha256()
    for part in parts:
        _feed(total, part)
    return total.hexdigest()[:10]


def _feed(total: Any, value: Any) -> None:
    """Type, shape and content of a value, and of what it holds."""
    if isinstance(value, Tensor) or hasattr(value, "dtype"):
        array = torch.as_tensor(value)
        array = array.to_dense() if array.layout != torch.strided else array
        total.update(f"{array.dtype}{tuple(array.shape)}".encode())
        exact = (array.double() * 1e4).round().long() if array.is_floating_point() else array
        total.update(exact.contiguous().numpy().tobytes())
    elif isinstance(value, Batch):
        for name in ("graph", "ids", "allowed", "y", "tasks"):
            _feed(total, getattr(value, name))
    elif isinstance(value, TaskView):
        for name in ("position", "n_tasks", "n_outputs", "train", "validation", "classes", "task_outputs", "seen_outputs", "keeps_nodes"):
            _feed(total, getattr(value, name))
    elif hasattr(value, "edge_index") and hasattr(value, "n_nodes"):
        _feed(total, (value.n_nodes, value.n_features, value.n_edges, value.edge_index, value.dense))
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            _feed(total, str(key))
            _feed(total, value[key])
    elif isinstance(value, (list, tuple)):
        total.update(f"[{len(value)}".encode())
        for inner in value:
            _feed(total, inner)
    else:
        total.update(f"|{value!r}|".encode())


def main() -> None:
    """Write the digests, and say what has moved."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    now = shown()
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            print(f"{name}: {before.get(name)} -> {now.get(name)}")
    FILE.write_text(json.dumps(now, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
