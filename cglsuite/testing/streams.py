"""Tiny scenarios of every problem level and incremental setting, and a catalogue with them and the installed entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cglsuite import DatasetSpec, Hyperparameter, MethodSpec, ScenarioSpec, TaskFreeSpec, TrainingSpec, __version__, load_catalogue
from cglsuite.host import Catalogue, Entry, PluginRecord
from cglsuite.specs import KINDS, LEVELS, SETTINGS, LinkPredictionSpec, PluginSpec, ScheduleSpec

_GRAPHWISE, _LINKWISE = "cglsuite.streams.graphwise:build_graph_stream", "cglsuite.streams.links:build_link_stream"


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """One kind of data: its level, and the switches for its labels."""

    data: str
    level: str
    summary: str
    settings: tuple[str, ...]
    switches: dict[str, Any]
    backbone: tuple[str, dict[str, Any]]


_SCHEDULE = "testing-overlap"
FINE_TUNING = "testing-fine-tuning"
"""The method of the tiny catalogue: plain training on one task after another."""
_FOUR = ("task-il", "class-il", "domain-il", "time-il")
_ALL = (*_FOUR, "task-free")
_NODES: tuple[str, dict[str, Any]] = ("gcn", {"layers": 2, "width": 16})
_GRAPHS: tuple[str, dict[str, Any]] = ("graph-gcn", {"layers": 2, "width": 16, "predictor_width": 0, "batch_norm": False})
_LINKS: tuple[str, dict[str, Any]] = ("link-gcn", {"layers": 2, "width": 16})
_KINDS = (
    _Kind(data="nodes", level="NC", summary="nodes of six classes", settings=_ALL, switches={}, backbone=_NODES),
    _Kind(
        data="label_sets",
        level="NC",
        summary="nodes with several of six labels",
        settings=("task-il", "class-il"),
        switches={"labels": "multi", "performance": "average-precision", "split": "node-consistent"},
        backbone=_NODES,
    ),
    _Kind(data="graphs", level="GC", summary="graphs of six classes", settings=_ALL, switches={"builder": _GRAPHWISE}, backbone=_GRAPHS),
    _Kind(
        data="molecules",
        level="GC",
        summary="graphs with or without one property",
        settings=("domain-il", "time-il"),
        switches={"builder": _GRAPHWISE, "labels": "multi", "performance": "roc-auc", "split": "random"},
        backbone=_GRAPHS,
    ),
    _Kind(
        data="targets",
        level="GR",
        summary="graphs with a real target",
        settings=("domain-il", "time-il"),
        switches={"builder": _GRAPHWISE, "labels": "real", "performance": "negative-mae", "split": "random"},
        backbone=_GRAPHS,
    ),
    _Kind(data="links", level="LC", summary="links of six classes", settings=_FOUR, switches={"builder": _LINKWISE}, backbone=_LINKS),
    _Kind(
        data="interactions",
        level="LP",
        summary="links to be distinguished from pairs without one",
        settings=("domain-il", "time-il"),
        switches={
            "builder": _LINKWISE,
            "labels": "multi",
            "performance": "hits",
            "level_spec": LinkPredictionSpec(hits_k=20),
            "split": "random",
        },
        backbone=_LINKS,
    ),
)
_BY_SETTING: dict[str, dict[str, Any]] = {
    "task-il": {"class_order": "native", "train_outputs": "task"},
    "class-il": {"class_order": "native"},
    "domain-il": {"class_order": "native", "task_key": "domain"},
    "time-il": {"class_order": "native", "task_key": "year"},
    "task-free": {"class_order": "native", "train_outputs": "seen", "split": "per-class"},
}


def _scenario(kind: _Kind, setting: str) -> ScenarioSpec:
    dataset = f"testing-{kind.data.replace('_', '-')}"
    switches = {"split_ratio": (0.5, 0.25, 0.25), **_BY_SETTING[setting], **kind.switches}
    if setting == "time-il" and kind.level in ("NC", "LC", "LP"):
        switches["edge_policy"] = "snapshot"
    backbone, hyperparameters = kind.backbone
    free = setting == "task-free"
    if free:
        switches["builder"] = "cglsuite.streams.build_task_free:build_task_free_stream"
    training = TrainingSpec(backbone=backbone, lr=0.02, epochs=4 if free else 30, batch_size=4 if free else None)
    return ScenarioSpec(
        name=f"{dataset}/{setting}@testing-1",
        summary=f"{kind.summary}, embedded, in seconds",
        dataset=dataset,
        setting=setting,
        protocol="testing-1",
        level=kind.level,
        training=training,
        task_free=TaskFreeSpec(schedule=_SCHEDULE, evaluate_every=6) if free else None,
        backbone_hyperparameters=tuple(hyperparameters.items()),
        **switches,
    )


def overlapping(steps: NDArray[np.float64], spans: NDArray[np.float64]) -> NDArray[np.float64]:
    """The schedule of the tiny task-free streams: shares decrease linearly with the distance from the middle of a latent task's span.

    Args:
        steps: float64 [T], mid-points of the steps.
        spans: float64 [K + 1], the boundaries of latent tasks.

    Returns:
        float64 [T, K], rows sum to 1.
    """
    middles, widths = (spans[1:] + spans[:-1]) / 2, np.diff(spans)
    near = np.clip(1 - np.abs(steps[:, None] - middles) / widths, 0, None)
    shares: NDArray[np.float64] = near / near.sum(axis=1, keepdims=True)
    return shares


def tiny_scenarios() -> list[ScenarioSpec]:
    """One tiny scenario per kind of item and supported setting; a task takes well below a second."""
    return [_scenario(kind, setting) for kind in _KINDS for setting in kind.settings]


TINY_SCENARIOS: tuple[str, ...] = tuple(f"testing-{k.data.replace('_', '-')}/{s}@testing-1" for k in _KINDS for s in k.settings)
"""The names of :func:`tiny_scenarios`."""


def _datasets() -> list[DatasetSpec]:
    return [
        DatasetSpec(
            name=f"testing-{kind.data.replace('_', '-')}",
            summary=f"{kind.summary}, embedded",
            factory=f"cglsuite.testing.kinds.cases:{kind.data}",
            levels=(kind.level,),
            licence="CC0-1.0",
            embedded=True,
            hyperparameters=(
                Hyperparameter(name="seed", default=0, minimum=0, doc="of the drawn data; what `cglsuite check --seed` takes"),
            ),
        )
        for kind in _KINDS
    ]


def tiny_catalogue(catalogue: Catalogue | None = None) -> Catalogue:
    """``catalogue`` (default: the installed plugins) with the tiny datasets and scenarios added."""
    record = PluginRecord(distribution="cglsuite", version=__version__, entry_point="testing", module="cglsuite.testing", status="ok")
    whole = catalogue or load_catalogue()
    if FINE_TUNING in whole.names("method"):
        return whole
    return with_specs(whole, tiny_specs(), record)


def tiny_specs() -> list[PluginSpec]:
    """The specs that :func:`tiny_catalogue` adds: datasets, scenarios, plain training, and the schedule of task-free streams."""
    method = MethodSpec(
        name=FINE_TUNING,
        summary="plain training on one task after another",
        factory="cglsuite.learning.method:Method",
        levels=LEVELS,
        settings=SETTINGS,
    )
    schedule = ScheduleSpec(
        name=_SCHEDULE,
        summary="neighbouring latent tasks overlap",
        citation="The cglsuite authors, 2026 (unpublished)",
        factory="cglsuite.testing.streams:overlapping",
    )
    return [*_datasets(), *tiny_scenarios(), method, schedule]


def with_specs(catalogue: Catalogue, specs: list[Any], record: PluginRecord) -> Catalogue:
    """A catalogue with additional specs, as if the plugin of ``record`` provided them."""
    entries = [entry for kind in KINDS for entry in catalogue.entries(kind)]
    return Catalogue([*catalogue.records, record], [*entries, *(_entry(spec, record) for spec in specs)])


def _entry(spec: PluginSpec, record: PluginRecord) -> Entry:
    return Entry(kind=next(k for k, t in KINDS.items() if isinstance(spec, t)), name=spec.name, spec=spec, record=record)
