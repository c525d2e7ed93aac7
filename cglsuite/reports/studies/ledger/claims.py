"""Claims of papers, which are pairs of methods that differ significantly in a table, and the verdicts of our runs of the same pairs.

Two methods of a table share its class orders, and so do ours. Paired differences therefore cancel an order's effect on both methods, which
comparing a single mean with a printed one cannot do. A *block* is a table's metric in one preset and variant.

Every pair of a block's rows that Welch's test separates in print (two-sided, adjusted by Holm's method over the pairs of the block) is a
claim. Our test is a paired t-test over shared repetitions, two-sided, adjusted over the block's claims. Rows that are
published artefacts make no claim.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.hashing import canonical
from cglsuite.base.markup import Content, Fragment, element, join, several
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.reference.reproduction import Selection, selections_of
from cglsuite.campaigns.reference.values import MIN_RUNS, REFERENCE, UNITS, known_about, method_key, published_error
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.reports.kit.tables import (
    Column,
    amount,
    empty,
    folded,
    framed,
    interval,
    label,
    number,
    number_text,
    p_cell,
    row_head,
    titled,
    words,
)
from cglsuite.reports.kit.text import Notes, badge, tile
from cglsuite.reports.studies.ledger.compute import Ledger, Ours, load_ledger, plain, write_files
from cglsuite.specs import METRICS

ALPHA = 0.05
REFERENCES = frozenset({REFERENCE, UPPER_BOUND})
"""Fine-tuning and joint training, which are bounds and not learners. Claims against them are listed separately."""
LEARNERS, AGAINST_REFERENCES = "between learners", "against a reference"
NO_VERDICT = "no verdict"
VERDICTS = (*stats.CLAIM_VERDICTS, NO_VERDICT)
"""The verdicts on claims for which we have run both methods."""
RULE = (
    "A claim is a pair of methods whose printed values differ significantly: a two-sided Welch's test of the printed means and deviations "
    "has p ≤ 0.05 after Holm's adjustment over all pairs of a table, metric, preset and variant. Our test is a two-sided paired t-test "
    "over shared repetitions, adjusted over the same claims. A claim is confirmed or reversed if our values differ significantly, with the "
    "same sign or the opposite one; if they do not, the verdict is same sign or opposite sign. Power and runs are computed for the printed "
    "difference and for half of it, because differences that were selected for being significant are too large on average. The level is "
    "0.05 divided by the number of claims. Published artefacts make no claims."
)
_BLOCK = ["paper", "table", "problem", "dataset", "setting", "variant", "backbone", "metric", "unit"]
_PRINT = ["preset", "kind", "better", "worse", "spread", "printed_difference", "printed_p", "printed_p_holm", "claims_in_block"]
_OURS = [
    "verdict",
    "reason",
    "n",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "p_ledger",
    "power",
    "power_half",
    "runs",
    "runs_half",
    "switch",
]
COLUMNS = [*_BLOCK, *_PRINT, *_OURS, "records"]
_SPREAD = {0: "over n", 1: "over n − 1", None: "unknown"}


def claims_of(ledgers: Sequence[Ledger], store: Store | str | Path | None = None) -> pd.DataFrame:
    """Return all claims of the tables in the given ledgers, with a verdict for each claim.

    Args:
        store: the records that are searched for switches that flip a claim; default: the ledgers' store.

    Returns:
        Columns :data:`COLUMNS`, claims between learners first. Differences are in the printed unit and positive where the better method
        of the claim is ahead; ``low`` to ``high`` is the 95% interval of ours. ``p_ledger`` is adjusted over all claims here. ``power``
        and ``runs`` (for 80% power; NaN: too many to plan) are at the printed difference, those with ``_half`` at half of it. ``switch``
        is a single setting under which our records separate the two methods in the opposite direction. A claim without runs of ours has
        the verdict of its row: ``not run``, ``not runnable here``, ``failed``.
    """
    rows: list[dict[str, Any]] = []
    where = ledgers[0].store if store is None and ledgers else store
    stored = _Stored(where if isinstance(where, Store) else Store(where))
    for ledger in ledgers:
        switches = _Switches(ledger, stored)
        usable = [place for place, entry in enumerate(ledger.reproduction.entries) if _claims_something(entry.row)]
        parts: Any = ledger.rows.loc[usable].groupby(_BLOCK, sort=False)
        for block, part in parts:
            rows += _block(ledger, dict(zip(_BLOCK, block, strict=True)), list(part.index), switches)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame["p_ledger"] = stats.adjust(frame["p"]) if frame["p"].notna().any() else math.nan
    return frame.sort_values("kind", key=lambda kind: kind != LEARNERS, kind="stable", ignore_index=True)


def load_claims(
    selection: Selection | Mapping[str, Any] | None = None,
    store: Store | str | Path | None = None,
    *,
    overrides: Overrides | Mapping[str, Any] | None = None,
    catalogue: Catalogue | None = None,
) -> pd.DataFrame:
    """Load the claims of a selection, with verdicts from the records in a store. No cell is run.

    Args:
        selection: as for :func:`cglsuite.reports.studies.papers.compute.load_papers`; a method's tables are read completely for its claims.

    Raises:
        UnknownNameError, NotApplicable, UsageError: see :func:`cglsuite.campaigns.reference.reproduction.selections_of`.
    """
    catalogue, store = catalogue or load_catalogue(), store if isinstance(store, Store) else Store(store)
    wanted = selection if isinstance(selection, Selection) else Selection(**(selection or {}))
    selections_of(wanted)  # refuses unknown names
    parts = selections_of(replace(wanted, method=""))
    claims = claims_of([load_ledger(part, store, overrides=overrides, extras=False, catalogue=catalogue) for part in parts], store)
    mine = [
        not wanted.method or method_key(wanted.method) in names
        for names in zip(*(claims[side].map(method_key) for side in _SIDES), strict=True)
    ]
    return claims.loc[mine].reset_index(drop=True)


_SIDES = ("better", "worse")


def _claims_something(row: Mapping[str, Any]) -> bool:
    return math.isfinite(row["mean"]) and math.isfinite(row["std"]) and not known_about(row).artefacts


def _block(ledger: Ledger, block: Mapping[str, Any], places: Sequence[int], switches: _Switches) -> list[dict[str, Any]]:
    """The claims of one block."""
    paper, rows = ledger.reproduction.paper, ledger.rows
    metric = METRICS.get(paper.metrics[block["metric"]])
    higher = metric is not None and metric.direction == "up"  # ranges over orders are no metrics of a matrix: lower is better
    errors = [published_error(ledger.reproduction.entries[place].row, paper.repeats) for place in places]
    printed = stats.printed_pairs([rows["published_mean"][p] for p in places], *zip(*errors, strict=True), higher_is_better=higher)
    found = [pair for pair in printed if pair.p_holm <= ALPHA]
    claims = [(places[pair.better], places[pair.worse], pair) for pair in found]
    claims = [claim for claim in claims if method_key(rows["method"][claim[0]]) != method_key(rows["method"][claim[1]])]
    facts = []
    for better, worse, pair in claims:
        names = {rows["method"][better], rows["method"][worse]}
        stated = {"preset": rows["preset"][better], "better": rows["method"][better], "worse": rows["method"][worse]}
        stated |= {"kind": AGAINST_REFERENCES if {method_key(name) for name in names} & REFERENCES else LEARNERS}
        stated |= {"spread": _SPREAD[paper.ddof], "printed_difference": pair.difference, "printed_p": pair.p}
        stated |= {"printed_p_holm": pair.p_holm, "claims_in_block": len(claims)}
        facts.append({**block, **stated, **_ours(ledger, better, worse, pair.difference, len(claims), 1.0 if higher else -1.0, switches)})
    verdicts, p = stats.claim_verdicts([f["difference"] for f in facts], [f["p"] for f in facts], alpha=ALPHA) if facts else ([], [])
    return [fact | {"verdict": fact["verdict"] or verdict, "p_holm": q} for fact, verdict, q in zip(facts, verdicts, p, strict=True)]


def _ours(ledger: Ledger, better: int, worse: int, printed: float, claims: int, sign: float, switches: _Switches) -> dict[str, Any]:
    """The paired difference of two rows; the verdict is left open where there is a test."""
    nothing = dict.fromkeys(("difference", "low", "high", "p", "power", "power_half", "runs", "runs_half"), math.nan)
    facts: dict[str, Any] = {**nothing, "verdict": NO_VERDICT, "reason": "", "n": 0, "switch": "", "records": ""}
    without = next((place for place in (better, worse) if place not in ledger.sides), None)
    if without is not None:
        row = ledger.rows.loc[without]
        return facts | {"verdict": row["verdict"], "reason": row["reason"]}
    values = [switches.repetitions(place) for place in (better, worse)]
    units = [unit for unit in values[0] if unit in values[1]]
    pairs = [np.array([mine[unit] for unit in units]) * sign for mine in values]
    facts |= {"n": len(units), "records": f"{ledger.rows['records'][better]} {ledger.rows['records'][worse]}"}
    if len(units) < MIN_RUNS:
        return facts | {"reason": f"{several(len(units), 'shared repetition')}: a verdict needs at least {MIN_RUNS}"}
    try:
        test = stats.paired_t(*pairs, unit="repetitions")
    except stats.Refused as refusal:
        return facts | {"difference": float((pairs[0] - pairs[1]).mean()), "reason": str(refusal)}
    facts |= {"verdict": "", "difference": test.estimate, "low": test.low, "high": test.high, "p": test.p}
    deviation = stats.observed_std(*pairs, paired=True)
    for suffix, difference in (("", printed), ("_half", printed / 2)):
        facts[f"power{suffix}"], facts[f"runs{suffix}"] = stats.claim_power(deviation, len(units), difference, claims, alpha=ALPHA)
    return facts | {"switch": switches.that_flips(better, worse, sign, test.estimate)}


class _Stored:
    """The finished records of a store by scenario, method, backbone and device. They are read once, on first use."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def records(self) -> dict[tuple[str, ...], list[Record]]:
        """The finished records of the store by :func:`_place`."""
        records: dict[tuple[str, ...], list[Record]] = defaultdict(list)
        for record in self._store.records():
            if record.done:
                records[_place(record)].append(record)
        return records


class _Switches:
    """Our repetitions of a ledger's rows, and those of records that differ from a row's in one setting that is no method's."""

    def __init__(self, ledger: Ledger, stored: _Stored) -> None:
        self._ledger, self._stored = ledger, stored
        self._others: dict[int, dict[tuple[str, str], dict[str, float]]] = {}

    def repetitions(self, place: int) -> dict[str, float]:
        """Return the value of a row for each repetition, in the printed unit."""
        return self._values.get(place, {})

    @cached_property
    def _values(self) -> dict[int, dict[str, float]]:
        values: dict[int, dict[str, float]] = defaultdict(dict)
        for place, unit, value in self._ledger.values[["row", "unit", "value"]].itertuples(index=False):
            values[place][unit] = value
        return values

    def others(self, place: int) -> dict[tuple[str, str], dict[str, float]]:
        """Return the value of a row for each repetition, by changed setting and its value."""
        if place not in self._others:
            self._others[place] = self._under_different_settings(self._ledger.sides[place], place)
        return self._others[place]

    def _under_different_settings(self, side: Ours, place: int) -> dict[tuple[str, str], dict[str, float]]:
        entry = self._ledger.reproduction.entries[place]
        if entry.recipe is None or entry.recipe.orders or entry.recipe.needs_joint:
            return {}
        record = next(cell.record for cell in side.cells(entry.recipe) if cell.record is not None and cell.done)
        base, scale = record.cell["configuration"], UNITS[entry.row["unit"]].scale
        values: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for other in self._stored.records[_place(record)]:
            configuration, value = other.cell["configuration"], other.metrics.get(entry.recipe.metric)
            changed = [name for name in {*base, *configuration} if base.get(name) != configuration.get(name)]
            if value is not None and len(changed) == 1 and not changed[0].startswith("method."):
                seeds = other.cell["seeds"]
                unit = f"{seeds['order']}/{seeds['split']}/{seeds['init']}"
                values[changed[0], canonical(configuration.get(changed[0]))][unit] = scale * value
        return values

    def that_flips(self, better: int, worse: int, sign: float, ours: float) -> str:
        """Return the settings under which the two rows differ significantly in the opposite direction, or an empty string if there are
        none.
        """
        first, second = self.others(better), self.others(worse)
        shared = {change: [unit for unit in first[change] if unit in second[change]] for change in sorted(first.keys() & second.keys())}
        tried = {change: units for change, units in shared.items() if len(units) >= MIN_RUNS}
        flipped = []
        for change, units in tried.items():
            pairs = [[sign * side[change][unit] for unit in units] for side in (first, second)]
            if stats.flips(pairs[0], pairs[1], ours, len(tried), alpha=ALPHA):
                flipped.append(f"{change[0]} = {change[1].strip(chr(34))}")
        return "; ".join(flipped)


def _place(record: Record) -> tuple[str, ...]:
    cell = record.cell
    return cell["scenario"], cell["method"], cell["backbone"], cell["device"]


# --- counts ----------------------------------------------------------------------------------------------------------------------


def judged(claims: pd.DataFrame) -> pd.DataFrame:
    """Return the claims for which we have run both methods."""
    return claims[claims["verdict"].isin(VERDICTS)]


def counts(claims: pd.DataFrame) -> list[dict[str, Any]]:
    """Count the printed claims, the claims that we have run, and the claims with each verdict, by kind and paper."""
    parts: Any = claims.groupby(["kind", "paper"], sort=False)
    rows = []
    for (kind, paper), part in parts:
        verdicts = Counter(part["verdict"])
        rows.append({"kind": kind, "paper": paper, "printed": len(part), "run": len(judged(part)), **{v: verdicts[v] for v in VERDICTS}})
    return rows


def headlines(claims: pd.DataFrame) -> list[str]:
    """Summarise the claims in two or three sentences. Only reversals that survive Holm's adjustment over the whole ledger are counted."""
    ours = judged(claims)
    if ours.empty:
        return []
    lines = []
    for kind in (LEARNERS, AGAINST_REFERENCES):
        part = ours[ours["kind"] == kind]
        if len(part):
            verdicts = Counter(part["verdict"])
            confirmed, (_, *others) = verdicts["confirmed"], VERDICTS
            said = (
                f"{confirmed or 'None'} of {several(len(part), 'printed claim')} {kind} (“A beats B”) {'is' if confirmed < 2 else 'are'} "
            )
            left = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in others if verdicts[verdict])
            lines.append(f"{said}confirmed{f' [{left}]' if left else ''}.")
    reversals = ours[(ours["verdict"] == "reversed") & (ours["p_ledger"] <= ALPHA)]
    named = "; ".join(f"{row.better} over {row.worse}, {row.dataset} {row.setting} {row.metric}" for row in reversals.itertuples())
    subject = several(len(reversals), "claim") if len(reversals) else "No claim"
    lines.append(f"{subject} {'is' if len(reversals) < 2 else 'are'} reversed{f': {named}' if named else ''} [Holm over all {len(ours)}].")
    return lines


def write_claims(claims: pd.DataFrame, folder: Path) -> list[Path]:
    """Write ``claims.csv`` (one row per claim) and ``claims.json`` (rule and counts) into a folder, atomically. Return their paths."""
    return write_files(claims, {"rule": RULE, "counts": counts(claims), "claims": plain(claims)}, folder, "claims")


# --- the page --------------------------------------------------------------------------------------------------------------------

_BADGES = {"confirmed": "good", "reversed": "bad", "opposite sign": "note"}


def overview(claims: pd.DataFrame) -> Fragment:
    """Show the number of claims with each verdict, by paper, and the rule for verdicts."""
    if claims.empty:
        return empty("No pair of printed rows differs significantly, so there are no claims.")
    ours = judged(claims)
    verdicts = Counter(ours["verdict"])
    tiles = [tile(len(ours), f"of {len(claims):,} claims run"), *(tile(verdicts[v], v) for v in VERDICTS if verdicts[v])]
    columns = [label("paper"), number("claims in print", "printed"), number("run", zero=False), *(number(v, zero=False) for v in VERDICTS)]
    parts: list[Content] = [element("ul", *tiles, class_="tiles"), framed(counts(claims), columns, by="kind"), element("p", RULE)]
    return join(parts)


def contradicted(claims: pd.DataFrame) -> Fragment:
    """List the claims that have the opposite sign in our runs, reversed ones first."""
    rows = judged(claims)
    rows = rows[rows["verdict"].isin(stats.CLAIM_VERDICTS[2:])].sort_values("verdict", key=lambda v: v != "reversed", kind="stable")
    notes = Notes()
    table = framed(
        rows, _columns(notes, place=True), "Claims with the opposite sign in our runs.", none="No claim has the opposite sign in our runs."
    )
    return join([table, notes.listed()])


def every(claims: pd.DataFrame) -> Fragment:
    """List all claims that we have run, collapsed by block. Claims between learners come first."""
    ours = judged(claims)
    if ours.empty:
        return empty("We have not run both methods of any claim.")
    parts: Any = ours.groupby(["kind", *_BLOCK[:-1]], sort=False)
    shown: list[Content] = []
    for (kind, paper, table, _, dataset, setting, variant, _, metric), part in parts:
        verdicts = Counter(part["verdict"])
        listed = ", ".join(f"{verdicts[v]} {v}" for v in VERDICTS if verdicts[v])
        title = f"{paper}, table {table}: {dataset} in {setting}{f', {variant}' if variant else ''}, {metric}, {kind}"
        notes = Notes()
        shown.append(folded(titled(title, f": {listed}"), framed(part, _columns(notes)), notes.listed()))
    return join(shown)


def _columns(notes: Notes, *, place: bool = False) -> list[Column]:
    def where(row: Mapping[str, Any]) -> str:
        return f"{row['paper']}, table {row['table']}: {row['dataset']}, {row['setting']}, {row['metric']}"

    def verdict(row: Mapping[str, Any]) -> Fragment:
        return join(notes.mark(badge(row["verdict"], _BADGES.get(row["verdict"], "plain")), row["reason"]))

    def digits(row: Mapping[str, Any]) -> int:
        return 1 if UNITS[row["unit"]].scale > 1 else 3

    def runs(row: Mapping[str, Any]) -> Fragment:
        ends = [f"{int(n):,}" if n == n else "–" for n in (row["runs"], row["runs_half"])]
        return element("td", f"{ends[0]} / {ends[1]}", class_="number")

    return [
        Column("claim", lambda row: row_head(f"{row['better']} > {row['worse']}", where(row) if place else ""), "name"),
        words("verdict", verdict, "nowrap"),
        number("printed", "printed_difference", digits, plus=True),
        number("ours", "difference", digits, plus=True),
        interval("95% interval", lambda row: (digits(row), 1.0), plus=True),
        Column("p, Holm", lambda row: p_cell(row["p_holm"])),
        number("n"),
        *(amount("power", "power", (0, 100.0)), amount("at half", "power_half", (0, 100.0))),
        Column("runs needed, at half", runs),
        *(words("± divides", "spread", "nowrap"), words("flipped by", "switch", "quiet long")),
    ]


def text_rows(claims: pd.DataFrame) -> Iterable[list[str]]:
    """Format the claims that we have run as lines of a plain-text table (see ``cglsuite reproduce --claims``)."""
    for row in judged(claims).to_dict(orient="records"):
        digits = 1 if UNITS[row["unit"]].scale > 1 else 3
        known = row["low"] == row["low"]
        interval_text = f"{number_text(row['low'], digits, plus=True)} to {number_text(row['high'], digits, plus=True)}" if known else ""
        power = [f"{100 * row[name]:.0f}" if row[name] == row[name] else "" for name in ("power", "power_half")]
        yield [
            *(row["paper"], row["table"], f"{row['dataset']} {row['setting']}", row["metric"], row["better"], row["worse"], row["verdict"]),
            *(number_text(row["printed_difference"], digits, plus=True), number_text(row["difference"], digits, plus=True), interval_text),
            *(str(row["n"]), "/".join(filter(None, power)), f"{row['runs']:.0f}" if row["runs"] == row["runs"] else "", row["switch"]),
        ]
