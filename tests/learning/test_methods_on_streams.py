"""Every installed method over streams of every kind: it finishes, its numbers are finite, and an interruption changes no bit.

Not the whole grid: rows that cover every method at every level and in every setting that it declares, every category of methods in every
setting of a level, and every stream, hence every backbone on which one is trained. ``cglsuite check`` goes over the grid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import Any, NamedTuple

import pytest
import torch
from covering import covering
from installed import installed
from tiny_graphs import GRAPH_VARIANTS, graph_runner, graph_variant
from tiny_links import LINK_VARIANTS, link_runner, link_variant
from tiny_streams import VARIANTS, KeptCheckpoints, assert_same_run, catalogue_runner, tiny_data, tiny_graphs, tiny_stream, variant_stream
from tiny_task_free import catalogue_task_free_runner, tiny_task_free_stream

from cglsuite.base.errors import NotApplicable

pytestmark = pytest.mark.plugins
TRAINING = {"lr": 1e-3, "epochs": 2, "monitor": "validation-loss", "restore_best": True}
CATALOGUE = installed()
#: Memories smaller than a task or stream, so that there is something to choose; penalties that do not blow up a large error's gradient; and
#: events that would be rare in so short a stream.
SETTINGS: dict[str, dict[str, Any]] = {
    "continual-gnn": {"memory": 12, "replayed": 6},
    "gdoc": {"alpha": 0.1},
    "gem": {"per_task": 5},
    "er-gnn": {"per_class": 2},
    **{name: {"memory": 12} for name in ("der++", "er-ace", "gdumb", "icarl")},
    **{name: {"memory": 24} for name in ("er", "a-gem", "gss", "dmsg")},
    "ssrm": {"per_class": 2},
    **{name: {"memory": 40, "fan_out": 2} for name in ("ssm", "sem")},
    "delome": {"per_class": 3, "draws": 4, "hidden": 8},
    "puma": {"per_task": 6, "encoders": 2, "steps": 2, "width": 16},
    "ewc": {"lambda": 1.0},
    "twp": {"lambda_l": 1.0, "lambda_t": 1.0},
    "joint": {"offline_epochs": 2, "offline_batch": 16},
    "mas-star": {"hard_buffer": 8, "mean_threshold": 10.0, "variance_threshold": 10.0},
}
#: Data and switches of streams without tasks.
TASK_FREE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nodes": ({}, {}),
    "sparse nodes, a budget": ({"sparse": True}, {"memory_budget": 40}),
    "nodes in sampled graphs": ({}, {"training": {"fan_out": (3, 5)}}),
    "nodes, several passes": ({}, {"training": {"epochs": 2}}),
    "nodes with several labels": (
        {"multi_label": True, "keys": {"domain": [3, 5, 9]}},
        {"labels": "multi", "split": "random", "performance": "average-precision", "task_key": "domain"},
    ),
    "graphs": ({"graphs": True}, {}),
}
#: Streams for which methods are not defined: CaT, PUMA and DeLoMe condense class by class what features describe; NCM, SimpleCIL,
#: iCaRL and the guesser compare classes, gDOC trains a classifier and PDGNNs-TEM stores rows by class, TEEN needs a base session.
REFUSED = {
    **dict.fromkeys(("cat", "puma", "delome"), "graph|multi|several labels|LC time-il"),
    **dict.fromkeys(("frozen-ncm", "icarl", "simple-cil", "task-guesser"), "multi|several labels|label|LC time-il"),
    **dict.fromkeys(("gdoc", "pdgnns-tem"), "multi"),
    "teen": "^(?!few-shot)",
}


class Stream(NamedTuple):
    """A kind of stream: its level, its setting, and what makes one and a runner of a method over it."""

    level: str
    setting: str
    make: Callable[[], Any]
    runner: Callable[[Any, str], Any]


def _without_tasks(data: dict[str, Any], switches: dict[str, Any]) -> Any:
    asked = {"per_class": 20} | data
    make: Any = tiny_graphs if asked.pop("graphs", False) else tiny_data
    return tiny_task_free_stream(make(**asked), **switches)


def _streams() -> dict[str, Stream]:
    """Streams of every kind, by name."""

    def nodes(stream: Any, method: str) -> Any:
        return catalogue_runner(stream, method, SETTINGS.get(method))

    def molecules(variant: str, stream: Any, method: str) -> Any:
        return graph_runner(stream, variant, method, SETTINGS.get(method))

    def links(stream: Any, method: str) -> Any:
        return link_runner(stream, method, SETTINGS.get(method))

    def task_free(stream: Any, method: str) -> Any:
        return catalogue_task_free_runner(stream, method, SETTINGS.get(method))

    def plain() -> Any:
        return tiny_stream(tiny_data(per_class=15), edge_policy="inter-task", training=TRAINING)

    def few_shot() -> Any:
        return tiny_stream(
            tiny_data(per_class=15), edge_policy="inter-task", base_classes=4, classes_per_task=1, shots=3, training=TRAINING
        )

    made = {"class-il": Stream("NC", "class-il", plain, nodes), "few-shot": Stream("NC", "class-il", few_shot, nodes)}
    for name, (data, switches) in VARIANTS.items():
        level = "GC" if data.get("graphs") else "NC"
        made[name] = Stream(level, switches["setting"], partial(variant_stream, name, training=TRAINING), nodes)
    for name, (_, switches, _, _) in GRAPH_VARIANTS.items():
        make = partial(graph_variant, name, training=TRAINING)
        made[f"molecules, {name}"] = Stream(switches["level"], switches["setting"], make, partial(molecules, name))
    for name, (_, switches) in LINK_VARIANTS.items():
        made[name] = Stream(switches["level"], switches["setting"], partial(link_variant, name, training=TRAINING), links)
    for name, (data, switches) in TASK_FREE.items():
        level = "GC" if data.get("graphs") else "NC"
        made[f"task-free {name}"] = Stream(level, "task-free", partial(_without_tasks, data, switches), task_free)
    return made


STREAMS = _streams()
METHODS: dict[str, Any] = {e.name: e.spec for e in CATALOGUE.entries("method")}
BUILT_IN = {e.name for e in CATALOGUE.entries("method") if e.record.distribution == "cglsuite-methods"}
Row = tuple[str, str]


def _is_for(method: str, stream: str) -> bool:
    spec, kind = METHODS[method], STREAMS[stream]
    return kind.level in spec.levels and kind.setting in spec.settings and not re.search(REFUSED.get(method, "^$"), stream)


def _pairs(row: Row) -> set[Hashable]:
    method, stream = row
    level, setting = STREAMS[stream][:2]
    category = METHODS[method].category
    return {("stream", stream), ("level", method, level), ("setting", method, setting), ("category", category, level, setting)}


GRID: list[Row] = [(method, stream) for method in METHODS for stream in STREAMS if _is_for(method, stream)]
ROWS = covering(GRID, _pairs)


def test_the_rows_cover_methods_levels_settings_and_streams() -> None:
    """A method that is new enters by itself, with each level and setting that it declares and some stream has."""
    assert {stream for _, stream in ROWS} == set(STREAMS)
    for method, spec in METHODS.items():
        kinds = {STREAMS[stream][:2] for stream in STREAMS if _is_for(method, stream)}
        own = {STREAMS[stream][:2] for name, stream in ROWS if name == method}
        for part in (0, 1):
            assert {kind[part] for kind in own} == {kind[part] for kind in kinds}, method
        assert {setting for _, setting in kinds} <= set(spec.settings)
    categories = {(METHODS[method].category, *STREAMS[stream][:2]) for method, stream in GRID}
    assert {(METHODS[method].category, *STREAMS[stream][:2]) for method, stream in ROWS} == categories
    assert len(ROWS) < len(GRID) / 3


def test_a_covering_has_every_pair_and_few_rows() -> None:
    grid = [(a, b, c) for a in "abc" for b in "abc" for c in "abc"]
    rows = covering(grid, lambda row: {(i, j, row[i], row[j]) for i, j in ((0, 1), (0, 2), (1, 2))})
    assert {row[:2] for row in rows} == {row[1:] for row in rows} == {row[::2] for row in rows} == {(a, b) for a in "abc" for b in "abc"}
    assert len(rows) < 15
    assert covering(grid, lambda row: {row[0]}) == [("a", "a", "a"), ("b", "a", "a"), ("c", "a", "a")]


def runner_of(method: str, stream: str) -> Any:
    kind = STREAMS[stream]
    try:
        return kind.runner(kind.make(), method)
    except NotApplicable as reason:
        if method in BUILT_IN:
            raise
        pytest.skip(str(reason))


@pytest.mark.parametrize(("method", "stream"), [row for row in ROWS if STREAMS[row[1]].setting != "task-free"])
def test_a_method_runs_and_can_be_interrupted(method: str, stream: str) -> None:
    """From the first task's checkpoint, with other global randomness, it gives what it gave in one go."""
    kept = KeptCheckpoints()
    runner = runner_of(method, stream)
    whole = runner.run(kept, keep=99)
    assert whole.trained_tasks == 3
    spec = runner.stream.spec
    asked_early = spec.level == "LP" or spec.edge_policy == "full"
    low, high = (-math.inf, 0) if spec.performance == "negative-mae" else (0, 1)
    for k, row in enumerate(whole.matrix):
        assert [math.isfinite(v) for v in row] == [j < k or asked_early for j in range(3)]
        assert all(low <= v <= high for j, v in enumerate(row) if j < k or asked_early)
    for k, row in enumerate(whole.validation_matrix):
        assert [math.isfinite(v) for v in row] == [j < k for j in range(3)]
    assert all(math.isfinite(loss) for curve in whole.curves for loss in (*curve["loss"], *curve["monitor"]))
    only = KeptCheckpoints()
    only.files[kept.saved[0]] = kept.files[kept.saved[0]]
    torch.manual_seed(12345)
    resumed = runner_of(method, stream).run(only)
    assert resumed.trained_tasks == 2
    assert_same_run(resumed, whole)
    assert resumed.fingerprints == whole.fingerprints


class Stops(KeptCheckpoints):
    """The power fails at the third evaluation."""

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        """Save, and stop."""
        super().save(prefix, payload)
        if len(self.saved) == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("method", "stream"), [row for row in ROWS if STREAMS[row[1]].setting == "task-free"])
def test_so_it_does_where_there_are_no_tasks(method: str, stream: str) -> None:
    """Resumed with other global randomness it gives what it gave in one go; rates and counters stay what they are."""
    runner = runner_of(method, stream)
    whole = runner.run()
    assert all(0 <= v <= 1 for row in whole.matrix for v in row)
    assert all(math.isfinite(loss) for loss in whole.curves[0]["loss"])
    budget = runner.stream.spec.memory_budget
    assert budget is None or (whole.memory["items"] or 0) <= budget
    kept = Stops()
    with pytest.raises(KeyboardInterrupt):
        runner_of(method, stream).run(kept)
    torch.manual_seed(999)
    resumed = runner_of(method, stream).run(kept)
    assert resumed.stream["resumed_from_evaluation"] == 3
    assert_same_run(resumed, whole)
    assert resumed.fingerprints == whole.fingerprints
    assert resumed.counters == whole.counters


@cache
def _made(stream: str) -> Any:
    return STREAMS[stream].make()


@pytest.mark.parametrize("stream", STREAMS)
def test_built_in_methods_are_refused_where_they_are_not_defined_and_nowhere_else(stream: str) -> None:
    """Made, not run: the rows above run a part of the grid. TEEN knows at the second task that the first is no base session."""
    kind = STREAMS[stream]
    for method in sorted(BUILT_IN):
        spec = METHODS[method]
        if _is_for(method, stream):
            assert type(kind.runner(_made(stream), method).method) is CATALOGUE.resolve(CATALOGUE.get("method", method)), method
        elif kind.level in spec.levels and kind.setting in spec.settings:
            with pytest.raises(NotApplicable, match=method):
                kind.runner(_made(stream), method).run()
