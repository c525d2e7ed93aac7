"""What short runs of every built-in method give, as numbers in tests/learning/runs.json. A command that writes them again.

    python tests/tools/tiny_runs.py

It prints the runs whose numbers have moved; ``tests/learning/test_runs_stay.py`` fails until what is committed is what runs give. Losses
are held to 0.1%. Another processor gives the same (ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE are as good as one); another release of
torch may draw other numbers, so its name is kept too.
``tests/benchmarks/bits.py`` compares whole cells bit by bit, over two commits.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from installed import installed
from tiny_graphs import graph_runner, graph_variant
from tiny_links import link_runner, link_variant
from tiny_streams import catalogue_runner, tiny_data, tiny_stream, variant_stream
from tiny_task_free import catalogue_task_free_runner, tiny_task_free_stream

from cglsuite.base.errors import NotApplicable

FILE = Path(__file__).parents[1] / "learning" / "runs.json"
#: Not Adam: it makes full steps of gradients that are zero but for rounding, whose sign depends on the processor.
TRAINING = {"epochs": 2, "lr": 0.2, "optimizer": "sgd"}
IN_BATCHES = TRAINING | {"batch_size": 8, "class_balanced": True}
#: Memories smaller than a task, rare events made common, and weights that are felt within a few steps.
SETTINGS: dict[str, dict[str, Any]] = {
    "continual-gnn": {"memory": 24, "replayed": 6, "fisher": "batch"},
    "er-gnn": {"per_class": 2, "candidates": 4, "sampler": "cm"},
    "ewc": {"lambda": 1.0},
    "gem": {"per_task": 5},
    "joint": {"offline_epochs": 2, "offline_batch": 16},
    **{name: {"memory": 24} for name in ("er", "a-gem", "der++", "er-ace", "gss", "dmsg")},
    **{name: {"memory": 40, "fan_out": 2} for name in ("ssm", "sem")},
    "mas-star": {"hard_buffer": 8, "mean_threshold": 3.0, "variance_threshold": 1.0},
    "cat": {"per_task": 6},
    "pdgnns-tem": {"per_class": 3},
    "delome": {"per_class": 3, "draws": 4, "hidden": 8},
    "puma": {"per_task": 6, "encoders": 2, "steps": 2, "width": 16},
    "pi-gnn": {"per_task": 30, "share": 0.3},
    "replay": {"fraction": 0.3},
    "si": {"c": 10.0},
    "twp": {"lambda_l": 0.1, "lambda_t": 0.1},
}

Make = Callable[[str, dict[str, Any]], Any]


def _streams() -> dict[str, tuple[str, str, Make]]:
    """Stream to its level, its setting, and a function that makes a runner of a method over it."""

    def nodes(setting: str, **changes: Any) -> Make:
        made = {"setting": setting, "training": TRAINING, **changes}
        return lambda method, given: catalogue_runner(tiny_stream(tiny_data(per_class=15), **made), method, given)

    def variant(name: str) -> Make:
        return lambda method, given: catalogue_runner(variant_stream(name, training=TRAINING), method, given)

    def links(name: str) -> Make:
        return lambda method, given: link_runner(link_variant(name, training=TRAINING), method, given)

    def graphs(name: str) -> Make:
        return lambda method, given: graph_runner(graph_variant(name, training=TRAINING), name, method, given)

    def task_free(**changes: Any) -> Make:
        return lambda method, given: catalogue_task_free_runner(tiny_task_free_stream(**changes), method, given)

    return {
        "nodes class-il": ("NC", "class-il", nodes("class-il", edge_policy="inter-task")),
        "nodes task-il in batches": (
            "NC",
            "task-il",
            nodes("task-il", edge_policy="none", training=IN_BATCHES),
        ),
        "several labels": ("NC", "class-il", variant("multi class-il")),
        "whole graphs": ("GC", "task-il", variant("graph task-il")),
        "targets": ("GR", "domain-il", graphs("regression domain-il")),
        "labelled links": ("LC", "class-il", links("LC class-il")),
        "predicted links": ("LP", "domain-il", links("LP growing")),
        "task-free": ("NC", "task-free", task_free(training=TRAINING)),
    }


def runs() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """``"stream: method"`` and a function that runs it, for every method that is for the stream."""
    methods: list[Any] = [e for e in installed().entries("method") if e.record.distribution == "cglsuite-methods"]
    for stream, (level, setting, make) in _streams().items():
        for entry in methods:
            if level in entry.spec.levels and setting in entry.spec.settings:
                yield f"{stream}: {entry.name}", partial(_numbers, make, entry.name)


def _numbers(make: Make, method: str) -> dict[str, Any]:
    return _facts(make(method, SETTINGS.get(method, {})).run())


def measured() -> dict[str, Any]:
    """The numbers of every run, and the release of torch."""
    found = {}
    for name, run in runs():
        with contextlib.suppress(NotApplicable):  # some methods are for single labels only
            found[name] = run()
    return {"torch": torch.__version__.partition("+")[0], "runs": found}


def _facts(result: Any) -> dict[str, Any]:
    losses = [float(loss) for curve in result.curves for loss in curve.get("loss", []) if loss is not None]
    matrix = [value for row in result.matrix for value in row if not math.isnan(value)]
    return {
        "losses": [float(f"{loss:.5g}") for loss in losses],
        "matrix": [round(value, 3) for value in matrix],
        "memory": {name: value for name, value in result.memory.items() if name in ("items", "edges")},
        "parameters": result.parameters,
        "counters": result.counters,
    }


def main() -> None:
    """Write the numbers, and say what has moved."""
    before = json.loads(FILE.read_text(encoding="utf-8"))["runs"] if FILE.exists() else {}
    now = measured()
    for name in sorted(before.keys() | now["runs"].keys()):
        if before.get(name) != now["runs"].get(name):
            print(name)
    lines = [f'"{name}": {json.dumps(facts, sort_keys=True)}' for name, facts in sorted(now["runs"].items())]
    FILE.write_text(f'{{"torch": "{now["torch"]}", "runs": {{\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
