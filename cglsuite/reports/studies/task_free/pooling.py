"""The task-free cells of campaigns, pooled, and their streams, regenerated.

Records hold the arrivals up to each evaluation. The arrivals at every step, and how often each item is drawn, follow from the scenario and
its seeds: streams are regenerated here, and the hash of their arrivals is compared with the records.
:mod:`cglsuite.reports.studies.task_free.compute` and :mod:`cglsuite.reports.studies.task_free.performance` compute tables of a study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cglsuite.base.errors import CglsuiteError, UsageError
from cglsuite.base.hashing import canonical
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.results.variants import value_as_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue
    from cglsuite.reports.results.results import CampaignResults, Group

__all__ = ["STREAM_AXES", "DealtStream", "TaskFreeStudy", "installed_catalogue", "one_at_a_time", "task_free_study"]

STREAM_AXES = ("schedule.", "stream.", "training.batch_size")
"""Prefixes of the keys that define how a stream arrives."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DealtStream:
    """One regenerated stream.

    Args:
        preset: of the cells. title: display name. words: what distinguishes it from the other streams of the same preset.
        seeds: order/split/init of its cell.
        schedule: name in the catalogue; hyperparameters: of the schedule; weights: the same with further ones, float64 [T, K].
        spans: float64 [K + 1]. mixture: float64 [T, K]. counts: int64 [T, K]. draws: per latent task int64 [n_k], how often each training
        item arrives. names: of the latent tasks. evaluations: steps made.
        same: whether the records with these seeds were made on the same arrivals; None if no record says.
    """

    preset: str
    title: str
    words: str
    seeds: str
    schedule: str
    hyperparameters: Mapping[str, Any]
    weights: Callable[..., NDArray[np.float64]]
    spans: NDArray[np.float64]
    mixture: NDArray[np.float64]
    counts: NDArray[np.int64]
    draws: Sequence[NDArray[np.int64]]
    names: Sequence[str]
    evaluations: Sequence[int]
    same: bool | None

    @property
    def batch(self) -> int:
        """Items per step."""
        return int(self.counts[0].sum())

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64 [K]: training items of each latent task."""
        return np.array([one.size for one in self.draws], dtype=np.int64)

    @property
    def schedule_text(self) -> str:
        """The schedule with its hyper-parameters, as text."""
        return " ".join([self.schedule, *(f"{name}={value_as_text(value)}" for name, value in self.hyperparameters.items())])


@dataclass(frozen=True, kw_only=True)
class TaskFreeStudy:
    """The task-free part of campaigns.

    Args:
        results: of every campaign. pooled: their finished task-free cells as one campaign's, each record once. streams: by preset.
        words: by preset, what distinguishes it from others of the same base: all differing values for the first, changes for the rest.
        not_dealt: by title, why a preset's stream could not be regenerated. other: finished cells of task streams.
        threshold: the share at which a latent task dominates a step.
    """

    results: tuple[CampaignResults, ...]
    pooled: CampaignResults
    streams: Mapping[str, DealtStream]
    words: Mapping[str, str]
    not_dealt: Mapping[str, str] = field(default_factory=dict)
    other: int = 0
    threshold: float = 0.9

    @property
    def groups(self) -> list[Group]:
        """Records that differ only in their seeds."""
        return self.pooled.groups

    @property
    def methods(self) -> list[str]:
        """Labels in the campaigns' order, which fixes their colours."""
        return list(dict.fromkeys(group.label for group in self.groups))

    @property
    def records(self) -> list[Record]:
        """The finished records in use."""
        return self.pooled.used

    def title(self, preset: str) -> str:
        """Display name of a preset."""
        return ", ".join(filter(None, [self.base(preset), self.words[preset]]))

    def base(self, preset: str) -> str:
        """The preset in words without its overrides; itself if nothing distinguishes variants."""
        mine = next(group for group in self.groups if group.preset == preset)
        return scenario_words(str(mine.records[0].cell["scenario"]) if self.words[preset] else preset)


def task_free_study(
    results: Sequence[CampaignResults], *, threshold: float = 0.9, deal: bool = True, catalogue: Catalogue | None = None
) -> TaskFreeStudy:
    """The task-free cells of all campaigns, and their streams.

    Args:
        threshold: the share at which a latent task dominates a step, for the overlap index.
        deal: regenerate the streams, which needs the data. Streams of presets without a finished cell are skipped.

    Raises:
        UsageError: a threshold outside (0, 1].
    """
    if not 0.0 < threshold <= 1.0:
        raise UsageError(f"threshold = {threshold}: expected a share above 0 and at most 1")
    distinguishing = _distinguishing_values(results)
    pooled = _pooled(results, distinguishing)
    study = TaskFreeStudy(
        results=tuple(results),
        pooled=pooled,
        streams={},
        words={preset: _in_words(configuration) for preset, configuration in distinguishing.items()},
        other=sum(len(group.records) for one in results for group in one.groups if not group.task_free),
        threshold=threshold,
    )
    streams: dict[str, DealtStream] = {}
    not_dealt: dict[str, str] = {}
    for group in study.groups if deal else ():
        if group.preset in streams or group.preset in not_dealt:
            continue
        try:
            streams[group.preset] = _dealt(study, group, catalogue or installed_catalogue())
        except CglsuiteError as error:
            not_dealt[group.preset] = str(error)
    return replace(study, streams=streams, not_dealt={study.title(preset): why for preset, why in not_dealt.items()})


def _in_words(configuration: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.partition('.')[2]} = {value_as_text(value)}" for name, value in configuration.items())


def _pooled(results: Sequence[CampaignResults], distinguishing: Mapping[str, Mapping[str, Any]]) -> CampaignResults:
    """The finished task-free cells of all campaigns, each record once; presets are named by what distinguishes them."""
    cells = {c.record.key: c for one in results for c in one.cells if c.record is not None and c.record.done and c.record.stream}
    variants = {name: variant for one in reversed(results) for name, variant in one.variants.items()}
    named = {name: replace(variant, distinguishing=distinguishing.get(name, variant.distinguishing)) for name, variant in variants.items()}
    return replace(results[0], cells=tuple(cells.values()), variants=named)


def _distinguishing_values(results: Sequence[CampaignResults]) -> dict[str, dict[str, Any]]:
    """The values that distinguish presets of one base: all of them for the first, those that differ from the first for the rest."""
    by_base: dict[str, dict[str, Mapping[str, Any]]] = {}
    changed: set[str] = set()
    for owner, group in [(one, group) for one in results for group in one.groups if group.task_free]:
        cell = group.records[0].cell
        by_base.setdefault(cell["scenario"], {}).setdefault(group.preset, cell["configuration"])
        changed |= set(owner.variants[group.preset].changes) if group.preset in owner.variants else set()
    distinguishing = {}
    for presets in by_base.values():
        first = next(iter(presets.values()))
        varying = [n for n in sorted(changed) if len({canonical(configuration.get(n)) for configuration in presets.values()}) > 1]
        for preset, configuration in presets.items():
            named = [n for n in varying if configuration is first or canonical(configuration.get(n)) != canonical(first.get(n))]
            distinguishing[preset] = {n: configuration.get(n) for n in named}
    return distinguishing


def installed_catalogue() -> Catalogue:
    """The catalogue of installed plugins, as loaded by cells run here."""
    from cglsuite.cells.engine import default_engine

    return default_engine().load_catalogue()


def _dealt(study: TaskFreeStudy, group: Group, catalogue: Catalogue) -> DealtStream:
    from cglsuite.cells.run import build_scenario

    reported = next(cell for cell in group.cells if cell.planned.cell is not None and cell.record is not None)
    cell: Any = reported.planned.cell
    stream: Any = build_scenario(catalogue, cell.scenario, cell.dataset_hyperparameters, cell.seeds)
    drawn = np.bincount(stream.items.flatten().numpy())
    members = [stream.members(k, "train").numpy() for k in range(len(stream))]
    top = max(int(ids.max()) for ids in members) + 1
    drawn = np.pad(drawn, (0, max(0, top - drawn.size)))
    sizes = np.array([ids.size for ids in members])
    batch = cell.scenario.training.batch_size or 1
    contents = {r.stream.get("content") for r in group.records if _stream_seeds(r) == (cell.seeds.order, cell.seeds.split)} - {None}
    task_free = cell.scenario.task_free
    return DealtStream(
        preset=group.preset,
        title=study.title(group.preset),
        words=study.words[group.preset],
        seeds=f"{cell.seeds.order}/{cell.seeds.split}/{cell.seeds.init}",
        schedule=task_free.schedule,
        hyperparameters=dict(task_free.schedule_hyperparameters),
        weights=_schedule(cell, catalogue),
        spans=np.concatenate([[0.0], np.cumsum(-(-sizes // batch), dtype=np.float64)]),
        mixture=stream.mixture,
        counts=stream.counts.numpy(),
        draws=[drawn[ids] for ids in members],
        names=[task.name for task in stream.tasks],
        evaluations=list(stream.evaluations),
        same=contents == {stream.content} if contents else None,
    )


def _stream_seeds(record: Record) -> tuple[int, int]:
    return record.cell["seeds"]["order"], record.cell["seeds"]["split"]


def _schedule(cell: CellSpec, catalogue: Catalogue) -> Callable[..., NDArray[np.float64]]:
    task_free: Any = cell.scenario.task_free
    function: Callable[..., NDArray[np.float64]] = catalogue.resolve(catalogue.get("schedule", task_free.schedule))
    return function


def one_at_a_time(campaign: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """More campaigns, each the content of the given one along one of ``axes`` (dotted keys to values)."""
    grid, title = dict(campaign.get("grid", {})), campaign.get("title") or campaign["name"]
    return [
        {
            **campaign,
            "name": f"{campaign['name']}-{axis.replace('.', '-').replace('_', '-')}",
            "title": f"{title}: along {axis}",
            "grid": grid | {"axes": {axis: list(values)}},
        }
        for axis, values in axes.items()
    ]
