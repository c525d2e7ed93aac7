"""Warnings that the methods of a scenario are hard to compare, which are shown before the numbers. All functions are pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.hashing import canonical
from cglsuite.base.markup import several
from cglsuite.campaigns.reference import queries_note
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.cells.records.record import Record
from cglsuite.reports.results.measures import is_fraction, measures_of, value_of
from cglsuite.reports.results.results import Group, Results, at_equal_settings, collapsed, swept
from cglsuite.reports.results.variants import orders_in_all, overlap_of, place_of, searches_of, trials_of
from cglsuite.stats import Refused, layout

Kind = Literal["upper-bound", "memory", "search", "queries", "values", "collapse"]
MEMORY_TOLERANCE = 1.1
"""The factor up to which memories of different sizes count as equal."""
_ALPHA = 0.05
_MAX_WARNINGS = 5


@dataclass(frozen=True, kw_only=True)
class Guard:
    """One reason to interpret a scenario's numbers with caution.

    Args:
        kind: ``upper-bound``: joint training is below a method. ``memory``: methods keep different numbers of items. ``search``: some
            methods were tuned and others were not, or with different numbers of trials, or a search used seeds of the results. ``queries``:
            the size of a query's graph reveals its task. ``values``: records contain warnings about data or training. ``collapse``:
            repetitions of a method collapsed.
        summary: the problem in words that apply to any scenario.
        preset: the scenario as the campaign shows it. backbone: the backbone of the methods compared.
        text: the problem in this scenario, with numbers. advice: what to do about it.
    """

    kind: Kind
    summary: str
    preset: str
    backbone: str
    text: str
    advice: str


def guards(results: Results) -> list[Guard]:
    """Return the warnings about a campaign, sorted by scenario and backbone in campaign order."""
    boards: dict[tuple[str, str], list[Group]] = {}
    for group in results.groups:
        boards.setdefault((group.preset, group.backbone), []).append(group)
    return [guard for groups in boards.values() for guard in _board_guards(results, groups)]


def _board_guards(results: Results, groups: Sequence[Group]) -> Iterator[Guard]:
    candidates: tuple[tuple[Kind, str, str, str], ...] = (
        (
            "values",
            "records contain warnings about data or training",
            _warned(groups),
            "`cglsuite show dataset` prints how a data file was read, and `cglsuite results --curves` prints the losses.",
        ),
        (
            "queries",
            "the size of a query's graph reveals its task",
            queries_note(groups[0].preset, groups[0].records[0].scenario),
            "Be cautious with scores of methods that normalise or average over the query's graph.",
        ),
        (
            "upper-bound",
            "joint training is below another method",
            _exceeding_joint(groups),
            "It is a bound only for its network and training settings. Train it for longer or tune it.",
        ),
        (
            "memory",
            "methods keep memories of different sizes",
            _memory_warning(groups),
            "Differences between methods may be due to memory size. Set scenario.memory_budget or the memory sizes of the methods.",
        ),
        (
            "search",
            "tuned methods are compared with untuned ones",
            _tuning_warning(results, groups),
            "Tune all methods in the same way before you rank them.",
        ),
        (
            "search",
            "methods were tuned with unequal numbers of trials",
            _trials_warning(results, groups),
            "Give every method the same number of trials: set search.trials.",
        ),
        (
            "search",
            "a search used seeds of the results",
            overlap_of(results.searches, [record for group in groups for record in group.records]),
            "Use separate seeds for [search].",
        ),
        (
            "collapse",
            "repetitions of a method collapsed",
            _collapses(groups),
            _advice_on_collapses(),
        ),
    )
    where = {"preset": results.preset_title(groups[0].preset), "backbone": groups[0].backbone}
    return (Guard(kind=kind, summary=said, text=text, advice=advice, **where) for kind, said, text, advice in candidates if text)


def _warned(groups: Sequence[Group]) -> str:
    """List the warnings in the records, each once, with the affected methods and the number of cells."""
    concerned: dict[str, dict[str, int]] = {}
    for group in groups:
        for text in (text for record in group.records for text in record.warnings):
            counts = concerned.setdefault(text, {})
            counts[group.label] = counts.get(group.label, 0) + 1
    every = {group.label for group in groups}
    shown = []
    for text, counts in concerned.items():
        cells = sum(counts.values())
        methods = "all methods" if set(counts) == every else ", ".join(counts)
        shown.append(f"{text} ({methods}; {cells} cell{'' if cells == 1 else 's'})")
    more = f"; and {len(shown) - _MAX_WARNINGS} more" if len(shown) > _MAX_WARNINGS else ""
    return f"Warnings in the records: {'; '.join(shown[:_MAX_WARNINGS])}{more}." if shown else ""


# --- repetitions that collapsed ------------------------------------------------------------------------------------------------


def _collapses(groups: Sequence[Group]) -> str:
    """Report how many repetitions of each method collapsed, with their performance and the median."""
    said = []
    for group in groups:
        fraction = all(is_fraction(record) for record in group.records)
        values = np.array([value for value in map(_performance, group.records) if math.isfinite(value)])
        if (fallen := stats.collapsed(values, least=least_collapse(values, fraction))).any():
            shown = [f"{100 * value:.1f}" if fraction else f"{value:.4g}" for value in (float(np.median(values)), *sorted(values[fallen]))]
            points = ", ".join([*shown[1:6], *(["..."] if len(shown) > 6 else [])])
            said.append(f"{fallen.sum()} of {values.size} of {group.label} collapsed ({points}; median {shown[0]})")
    return f"{'; '.join(said)}." if said else ""


def least_collapse(values: Any, fraction: bool) -> float:
    """Return the distance from the median up to which a value has not collapsed: 10 points for fractions, otherwise a quarter of the
    median.
    """
    return 0.1 if fraction or not len(values) else 0.25 * abs(float(np.median(values)))


def _advice_on_collapses() -> str:
    shares = {n: stats.error_rate("collapses", str(n))["t covers"] for n in (3, 5, 10)}
    said = ", ".join(f"{share:.0f}% at n = {n}" for n, share in shares.items())
    return (
        "Inspect the individual values. If one repetition in five collapses, Student's 95% interval covers the mean in only "
        f"{said}. Run at least {stats.ENOUGH_TO_COLLAPSE} repetitions."
    )


# --- the upper bound -----------------------------------------------------------------------------------------------------------


def _exceeding_joint(groups: Sequence[Group]) -> str:
    """Report the methods that beat joint training at equal settings, on the cells that both have."""
    bounded = [(group, bound) for group in groups if group.method != UPPER_BOUND and (bound := upper_bound_of(group, groups)) is not None]
    gaps = [_gaps(group, bound) for group, bound in bounded]
    p_values = stats.adjust([_p_of(some, group.records) for some, (group, _) in zip(gaps, bounded, strict=True)]).tolist()
    above: dict[str, list[str]] = {}
    for (group, bound), some, p in zip(bounded, gaps, p_values, strict=True):
        if some and (gap := _mean(one["value"] for one in some)) > 0:
            shown = f"{100 * gap:+.1f} points" if is_fraction(group.records[0]) else f"{gap:+.4g}"
            verdict = "too few or too equal to test" if math.isnan(p) else "significant" if p <= _ALPHA else "within chance"
            above.setdefault(bound.label, []).append(f"{group.label} ({shown} in {several(len(some), 'cell')}, {verdict})")
    if not above:
        return ""
    certain = any(text.endswith("significant)") for texts in above.values() for text in texts)
    when = "at the end of the stream, " if groups[0].records[0].stream else ""
    said = "; ".join(f"{label} is below {'; '.join(some)}" for label, some in above.items())
    return f"Joint training {'is not' if certain else 'may not be'} an upper bound here: {when}{said}."


def upper_bound_of(group: Group, groups: Sequence[Group]) -> Group | None:
    """Return joint training at a group's settings, or ``None`` if it was not run. Of several that differ only in its own settings, return
    the best.
    """
    axes = swept(groups)
    bounds = [candidate for candidate in groups if candidate.method == UPPER_BOUND and at_equal_settings(group, candidate, axes)]
    return max(bounds, key=lambda bound: _mean(map(_performance, bound.records)), default=None)


def _gaps(group: Group, bound: Group) -> list[dict[str, Any]]:
    """Return by how much a method exceeds the upper bound for each shared seed, with the cell's place in the design."""
    joint = {canonical(record.cell["seeds"]): _performance(record) for record in bound.records}
    pairs = [(place_of(r), _performance(r) - joint[key]) for r in group.records if (key := canonical(r.cell["seeds"])) in joint]
    return [place | {"value": gap} for place, gap in pairs if math.isfinite(gap)]


def _p_of(gaps: Sequence[Mapping[str, Any]], records: Sequence[Record]) -> float:
    """Return the p value of the design's test of the gaps against 0, or NaN if the test is refused."""
    try:
        return layout(pd.DataFrame(gaps), orders_in_all(records)).estimate.p if gaps else math.nan
    except Refused:
        return math.nan


def _performance(record: Record) -> float:
    """Average performance at the end."""
    return value_of(measures_of([record])["aa"], record)


# --- memory --------------------------------------------------------------------------------------------------------------------


def _memory_warning(groups: Sequence[Group]) -> str:
    """The memory sizes of methods with a memory, if they are not equal."""
    by_memory: dict[tuple[str, float], list[Group]] = {}
    for group in groups:
        if group.method != UPPER_BOUND and (items := _mean(record.memory.get("items") for record in group.records)) > 0:
            by_memory.setdefault((group.method, items), []).append(group)
    used = {label: items for (_, items), some in by_memory.items() for label in collapsed(some, groups)}
    if len(used) < 2 or max(used.values()) <= MEMORY_TOLERANCE * min(used.values()):
        return ""
    listed = ", ".join(f"{label} {items:,.0f}" for label, items in sorted(used.items(), key=lambda pair: pair[1]))
    return f"Methods use replay memories of different sizes (peak number of items): {listed}."


def _mean(values: Iterable[Any]) -> float:
    known = [float(value) for value in values if value is not None]
    return math.fsum(known) / len(known) if known else 0.0


# --- tuning --------------------------------------------------------------------------------------------------------------------


def _tuning_warning(results: Results, groups: Sequence[Group]) -> str:
    """Which methods were tuned by a search or the protocol and which were not, if both are compared."""
    searched = [group for group in groups if _searched(results, group)]
    fixed = [group for group in groups if _preset_values(group) and group not in searched]
    names = [name for group in searched for name in _searched(results, group)] + [name for group in fixed for name in _preset_values(group)]
    shared = any(not name.startswith("method.") for name in names)
    left = [g for g in groups if g not in searched and g not in fixed and (shared or _tunable(g))]
    if not names or not left:
        return ""
    parts = [f"searched in this campaign: {', '.join(collapsed(searched, groups))}"] if searched else []
    parts += [f"set by the protocol: {', '.join(collapsed(fixed, groups))}"] if fixed else []
    untuned = ", ".join(collapsed(left, groups))
    return f"Tuned methods are compared with untuned ones. Hyperparameters {'; '.join(parts)}; defaults or set by hand: {untuned}."


def _trials_warning(results: Results, groups: Sequence[Group]) -> str:
    """The numbers of trials of tuned methods, if they are not equal."""
    trials = {g.label: trials_of(results.searches, g.records[0].cell) for g in groups if _searched(results, g)}
    if len(set(trials.values())) < 2:
        return ""
    listed = ", ".join(f"{label} {n}" for label, n in sorted(trials.items(), key=lambda pair: pair[1]))
    return f"Methods were tuned with unequal numbers of trials: {listed}."


def _searched(results: Results, group: Group) -> set[str]:
    """The settings that a search of this campaign chose for a group, by dotted name."""
    cell = group.records[0].cell
    names = set[str]()
    for outcome in searches_of(results.searches, cell):
        names |= set(outcome["candidates"][outcome["chosen"]]["overrides"])
    return {next((full for full in cell["configuration"] if name in (full, full.partition(".")[2])), name) for name in names}


def _preset_values(group: Group) -> set[str]:
    """The real-valued settings that the protocol sets for a group's method; variants of an algorithm and memory sizes are not tuning."""
    planned = group.cells[0].planned.cell
    defaults: Mapping[str, Any] = planned.scenario.method_defaults.get(group.method, {}) if planned is not None else {}
    used = group.records[0].cell["configuration"]
    return {name for name, value in defaults.items() if isinstance(value, float) and used.get(name) == value}


def _tunable(group: Group) -> bool:
    """Whether a method has settings of its own that can be tuned."""
    return any(name.startswith("method.") for name in group.records[0].cell["configuration"])
