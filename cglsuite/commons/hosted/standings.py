"""A preset as boards: of its verified records and of the others, and what further pages take from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.hashing import canonical
from cglsuite.base.markup import Fragment
from cglsuite.campaigns.reference.papers import paper_of
from cglsuite.commons.hosted.gathering import Marked
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.published import compare
from cglsuite.reports.results.results import CampaignResults, results_of
from cglsuite.reports.results.variants import record_variants
from cglsuite.reports.site.boards import Board, Row, boards
from cglsuite.reports.site.datasets import tasks_row
from cglsuite.reports.site.leaderboard import Used, settings_used

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

__all__ = ["Part", "Scenario", "Standing", "scenario_of"]

LEVELS = ("verified", "unverified")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One row of a board without its records: what other pages show of it.

    Args:
        rank: on its board, by the first column; 1 is the best. records, rerun: how many are behind it, and how many of these were rerun.
        missing: repetitions that other rows of the board have and this one has not. reasons: why records are not verified, most
            frequent first, each with the number of records.
    """

    row: Row
    rank: int | None
    records: int
    rerun: int
    missing: int
    reasons: Sequence[tuple[str, int]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """The board of one level. ``results`` and the records of ``board`` are there until the preset's page is written."""

    level: str
    results: CampaignResults
    board: Board
    standings: Sequence[Standing]
    left_out: int
    compared: Sequence[Mapping[str, Any]]

    def without_records(self) -> Part:
        """The part as the other pages need it."""
        rows = tuple(replace(row, group=replace(row.group, cells=())) for row in self.board.rows)
        standings = [replace(one, row=row) for one, row in zip(self.standings, rows, strict=True)]
        board = replace(self.board, rows=rows)
        return replace(self, board=board, standings=standings, results=replace(self.results, cells=()))


@dataclass(kw_only=True)
class Scenario:
    """A preset with its boards.

    Args:
        title: display name. changes: the switches in which it differs from the preset of its name, with their values; empty if in none.
        level, setting, dataset, protocol: of the scenario. paper: whose benchmark it is, or empty.
        parts: by level, those with a record. used: by method, the hyper-parameters in the records.
    """

    preset: str
    title: str
    dataset: str
    setting: str
    problem: str
    protocol: str
    paper: str
    changes: str = ""
    parts: dict[str, Part] = field(default_factory=dict)
    tasks: Sequence[Fragment] = ()
    used: dict[str, Used] = field(default_factory=dict)

    @property
    def first(self) -> Part:
        """The part that stands for the scenario: of verified records if there are any."""
        return next(self.parts[level] for level in LEVELS if level in self.parts)

    def count(self, level: str) -> int:
        """The number of records on the board of a level."""
        return sum(one.records for one in self.parts[level].standings) if level in self.parts else 0


def scenario_of(preset: str, records: Sequence[Marked], catalogue: Catalogue, store: Path, *, own: bool = False) -> Scenario:
    """The boards of a preset; verified records never share one with others. ``own``: of a folder without any mark."""
    first = records[0].record
    variants = record_variants((one.record for one in _one_per_configuration(records)), catalogue)
    nothing = results_of((), catalogue, store, variants=variants)
    protocol = str(first.cell["scenario"]).partition("@")[2]
    paper = paper_of(protocol)
    found = Scenario(
        preset=preset,
        title=nothing.preset_title(preset),
        dataset=str(first.cell["scenario"]).partition("/")[0],
        setting=str(first.scenario.get("setting") or ""),
        problem=str(first.scenario.get("level") or ""),
        protocol=protocol,
        paper=paper.name if paper is not None else "",
        changes=variants[preset].changes_text if preset in variants else "",
    )
    for level in LEVELS:
        of_level = [one for one in records if one.mark.level == level]
        if not of_level:
            continue
        results = results_of((one.record for one in of_level), catalogue, store, variants=variants)
        (board,) = boards(results, catalogue)
        if level == "unverified" and not own:
            board = replace(board, title=f"{board.title}, unverified")
        found.parts[level] = Part(
            level=level,
            results=results,
            board=board,
            standings=_standings(board, {one.record.key: one for one in of_level}),
            left_out=len(results.left_out),
            compared=as_rows(compare(results)) if found.paper else (),
        )
        for group in results.groups:
            settings_used(group.method, [group], results.preset_title, found.used.setdefault(group.method, {}))
    found.tasks = tasks_row(found.first.board)
    return found


def _one_per_configuration(records: Sequence[Marked]) -> Iterable[Marked]:
    """The variants of presets do not depend on seeds."""
    distinct: dict[tuple[str, str, str], Marked] = {}
    seen: dict[int, str] = {}
    for one in records:
        configuration = one.record.cell["configuration"]  # shared among records, so that its text is made once
        text = seen.setdefault(id(configuration), "") or canonical(configuration)
        seen[id(configuration)] = text
        distinct.setdefault((one.record.cell["method"], one.record.cell["backbone"], text), one)
    return distinct.values()


def _standings(board: Board, marked: Mapping[str, Marked]) -> list[Standing]:
    places = [{tuple(record.cell["seeds"].values()) for record in row.records} for row in board.rows]
    by_backbone: dict[str, set[Any]] = {}
    for row, own in zip(board.rows, places, strict=True):
        by_backbone.setdefault(row.group.backbone, set()).update(own)
    found, rank = [], 0
    for row, own in zip(board.rows, places, strict=True):
        marks = [marked[record.key].mark for record in row.records]
        scored = board.first.name in row.scores
        rank += scored
        reasons = Counter(
            f"{name}: {reason}" if name else reason
            for mark in marks
            if not mark.verified
            for name, reason in mark.reasons.items()
            if name != "orders"
        )
        found.append(
            Standing(
                row=row,
                rank=rank if scored else None,
                records=len(marks),
                rerun=sum(mark.rerun in ("bits", "tolerance") for mark in marks),
                missing=len(by_backbone[row.group.backbone] - own),
                reasons=reasons.most_common(3),
            )
        )
    return found
