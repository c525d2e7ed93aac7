"""A campaign at a glance: its progress, and warnings to read before the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.htmltable import duration
from cglsuite.reports.kit.notices import notice, tile
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.results.guards import Guard, guards
from cglsuite.reports.results.variants import PresetVariant, changes_as_text

if TYPE_CHECKING:
    from cglsuite.reports.results.results import CampaignResults


__all__ = ["NOTHING_DONE", "derived_note", "notices", "overview", "preset_caption"]

NOTHING_DONE = "No cell of this campaign is finished yet."
"""Shown in place of numbers that do not exist yet."""
_MOST_CAUTIONS = 4
"""Boxes about comparisons that stand above a page; more are one box, by what they say."""


def overview(results: CampaignResults, message: Fragment | None = None) -> Fragment:
    """The campaign's title, description, ``message`` (such as its key results), progress tiles and warnings."""
    seconds = sum(float(r.timings_s.get("total") or 0.0) for r in results.records)
    tiles = [tile(len(results.cells), "cells planned"), *(tile(n, state) for state, n in results.counts().items())]
    tiles += [tile(len({g.preset for g in results.groups}), "scenarios"), tile(len({g.method for g in results.groups}), "methods")]
    tiles.append(tile(duration(seconds), "compute time in total"))
    description = results.campaign.description
    parts = [element("p", element("strong", results.title), class_="lead"), element("p", description) if description else None]
    return join([*parts, message, element("ul", *tiles, class_="tiles"), *notices(results)])


def notices(results: CampaignResults) -> Iterable[Fragment]:
    """Warnings about unfinished, stale and left-out cells, and about methods that are hard to compare."""
    lacking = {state: n for state, n in results.counts().items() if state in {"missing", "waiting"}}
    if lacking:
        unfinished = ", ".join(f"{n} {state}" for state, n in lacking.items())
        yield notice(f"This campaign is not finished: {unfinished}. Means below are over the available records; n is their number.")
    counted = {id(c) for group in results.groups for c in group.cells}
    stale = [c.stale for c in results.cells if c.stale and id(c) in counted]
    if stale:
        summary = f"{len(stale)} of {len(results.used)} records are stale: they were made by different code or on another class of machine."
        reasons = sorted(set(stale), key=stale.count, reverse=True)
        yield notice(summary, *reasons[:3], *([f"and {len(reasons) - 3} more differences"] if len(reasons) > 3 else []))
    if results.left_out:
        yield notice(f"{len(results.left_out)} finished cells are left out: they were made by different code from the rest of their group.")
    for name in dict.fromkeys(c.planned.request.scenario for c in results.cells):
        if text := derived_note(results, name):
            yield notice(text)
    yield from _cautions(guards(results))


def _cautions(warnings: Sequence[Guard]) -> Iterable[Fragment]:
    """A notice per set of warnings, headed by the comparisons that share it; of many, one notice."""
    of_board: dict[str, list[str]] = {}
    for guard in warnings:
        of_board.setdefault(_board(guard), []).append(f"{guard.text} {guard.advice}")
    shared: dict[tuple[str, ...], list[str]] = {}
    for board, texts in of_board.items():
        shared.setdefault(tuple(texts), []).append(board)
    if len(shared) > _MOST_CAUTIONS:
        yield notice(f"Read {len(of_board)} comparisons with care.", *_by_kind(warnings))
        return
    for said, boards in shared.items():
        yield notice(f"{'; '.join(boards)}: read the comparison with care.", *said)


def _by_kind(warnings: Iterable[Guard]) -> Iterable[Content]:
    """A line per advice: what all its comparisons share, or what is the case in each, folded."""
    kinds: dict[tuple[str, str], dict[str, str]] = {}
    for guard in warnings:
        kinds.setdefault((guard.summary, guard.advice), {})[_board(guard)] = guard.text
    for (summary, advice), texts in kinds.items():
        count = f"{len(texts)} comparison{'' if len(texts) == 1 else 's'}"
        if len(set(texts.values())) == 1:
            yield f"{next(iter(texts.values()))} {advice} ({count})"
            continue
        listed = element("ul", *(element("li", f"{board}: {text}") for board, text in texts.items()))
        folded = element("details", element("summary", "One by one"), listed)
        yield join([f"{summary.capitalize()} in {count}. {advice} ", folded])


def _board(guard: Guard) -> str:
    return f"{guard.preset} × {guard.backbone}"


def derived_note(results: CampaignResults, name: str) -> str:
    """What to know of a scenario that no plugin names; empty for a preset."""
    specs = (c.planned.cell.scenario for c in results.cells if c.planned.request.scenario == name and c.planned.cell is not None)
    parent = next((spec.derived_from for spec in specs), "")
    if not parent:
        return ""
    return f"{name} is derived from {parent}: nobody has published values under it. Compare its methods with each other, not with a paper."


def preset_caption(preset: str, variants: Sequence[PresetVariant], details: str = "") -> Fragment:
    """A preset in words, further text, and its overrides; several variants share a caption under the name of their preset."""
    title = variants[0].title if len(variants) == 1 else variants[0].base if variants else preset
    parts: list[Content] = [element("strong", scenario_words(title)), f" – {details}" if details else None]
    if not variants:
        return join([parts[0], " ", element("code", preset), *parts[1:]])
    if len(variants) == 1:
        (variant,) = variants
        return join([*parts, element("br"), f"{variant.name} is {variant.base} with ", element("code", variant.changes_text)])
    common = {name: value for name, value in variants[0].changes.items() if name not in variants[0].distinguishing}
    parts += [element("br"), f"{', '.join(variant.name for variant in variants)}: {variants[0].base} with the values below"]
    parts += [" and ", element("code", changes_as_text(common))] if common else []
    return join(parts)
