"""Why values here differ from printed ones: named changes of settings, each checked against records.

A mechanism says under which settings the printed value is expected (:func:`cglsuite.campaigns.reference.mechanisms`). It was found on some
orders or data sets and has to hold on others. The change is on top of the settings of a row, those that a search chose where its value has
these. On repetitions that have a record with the change and one without, with values ``w`` and ``v``, it *closes the gap* to a printed
value ``p`` where ``|p - mean(w)| <= |p - mean(v)| / 2``. A row of the ledger is then

- *confirmed* if the gap closes on all repetitions and on at least three that are held out, whose differences ``w - v`` have a 95 % interval
  without 0;
- *refuted* if the gap does not close, or not on those that are held out;
- *named* if it closes and fewer than three repetitions are held out;
- *no records* if no record has the change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.errors import CglsuiteError
from cglsuite.campaigns.overrides import Overrides, parse_overrides
from cglsuite.campaigns.reference import mechanisms
from cglsuite.campaigns.reference.matching import dataset_key
from cglsuite.campaigns.reference.reproduction import campaign_of
from cglsuite.campaigns.reference.values import LEAST_RUNS, UNITS
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.results import load_campaign_results
from cglsuite.reports.studies.ledger.ours import Ours

if TYPE_CHECKING:
    from cglsuite.cells.engine import Engine
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue
    from cglsuite.reports.studies.ledger.compute import Ledger

__all__ = ["CHECKS", "STATES", "checked", "closes", "concerns", "explained"]

STATES = ("confirmed", "refuted", "named", "no records")
CHECKS = ["mechanism", "row", "change", "reason", "state", "n", "held_out", "gap", "left", "effect", "low", "high", "why", "records"]
_PLACE = ("paper", "problem", "setting", "dataset", "method", "metric")
_LEVEL = 0.95


def concerns(mechanism: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a mechanism is about a published row: an empty field is about all, several values are separated by ``|``."""
    return all(not mechanism[name] or row[name] in mechanism[name].split("|") for name in _PLACE)


def closes(published: float, without: Sequence[float], changed: Sequence[float]) -> bool:
    """Whether a change leaves at most half of the distance to a printed value.

    Example:
        >>> closes(90.0, [80.0, 82.0], [88.0, 89.0])
        True
    """
    return abs(published - float(np.mean(changed))) <= abs(published - float(np.mean(without))) / 2


def checked(
    ledger: Ledger, store: Store, catalogue: Catalogue, *, engine: Engine | None = None, table: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The mechanisms of a ledger's rows that have a value here, each checked.

    Args:
        table: of mechanisms; default :func:`cglsuite.campaigns.reference.mechanisms`.

    Returns:
        A row per mechanism and ledger row, with the columns :data:`CHECKS`: ``row`` is its place in ``ledger.rows``, ``n`` the number of
        repetitions with both records, ``held_out`` of them; ``gap`` (published - ours) and what is ``left`` of it over all of them; the
        ``effect`` of the change over those held out, with its 95 % interval, all in the printed unit; ``why`` there is no check.
    """
    known = mechanisms() if table is None else table
    found: list[dict[str, Any]] = []
    for mechanism in as_rows(known):
        for place, entry in enumerate(ledger.reproduction.entries):
            ours = ledger.values[ledger.values["row"] == place]
            if entry.recipe is None or ours.empty or not concerns(mechanism, entry.row):
                continue
            facts = {"mechanism": mechanism["mechanism"], "row": place, "change": mechanism["change"], "reason": mechanism["reason"]}
            without = dict(zip(ours["unit"], ours["value"], strict=True))
            found.append(facts | _check(ledger, place, mechanism, without, store, catalogue, engine))
    frame = pd.DataFrame(found, columns=CHECKS)
    numbers = dict.fromkeys(("gap", "left", "effect", "low", "high"), "float64")
    return frame.astype(numbers).astype({"why": "object", "records": "object"}).fillna({"why": "", "records": ""})


def explained(ledger: Ledger, checks: pd.DataFrame) -> set[int]:
    """The ledger's rows that have a mechanism: confirmed there, or closing the gap there and confirmed on another data set."""
    found: set[int] = set()
    datasets = ledger.rows["dataset"]
    for _, part in checks.groupby("mechanism", sort=False):
        confirmed = part[part["state"] == "confirmed"]
        found |= set(confirmed["row"])
        elsewhere = set(datasets.loc[list(confirmed["row"])])
        named = part[part["state"] == "named"]
        found |= {row for row in named["row"] if elsewhere - {datasets.loc[row]}}
    return found


def _check(
    ledger: Ledger,
    place: int,
    mechanism: Mapping[str, Any],
    without: Mapping[str, float],
    store: Store,
    catalogue: Catalogue,
    engine: Engine | None,
) -> dict[str, Any]:
    entry = ledger.reproduction.entries[place]
    if entry.recipe is None:
        raise ValueError(f"row {place} has no recipe: it cannot have a value")
    side = ledger.sides[place]
    choice = side.choice
    campaign = choice.campaign if choice else campaign_of(ledger.reproduction.selection, ledger.reproduction.paper, [entry.recipe])
    values = parse_overrides(mechanism["change"].split(";"), f"mechanism {mechanism['mechanism']}")
    try:
        given = Overrides(values=values, device=side.device)
        results = load_campaign_results(campaign, store, overrides=given, catalogue=catalogue, engine=engine, same_device=True)
    except CglsuiteError as error:
        return {"state": "no records", "n": 0, "held_out": 0, "why": str(error)}
    value = Ours(results, choice).value(entry.recipe)
    scale = UNITS[entry.row["unit"]].scale
    changed = {unit: scale * one for unit, one in zip(value.units, value.values, strict=True)}
    units = [unit for unit in without if unit in changed]
    if not units:
        return {"state": "no records", "n": 0, "held_out": 0, "why": value.reason or "no repetition has a record of both"}
    held_out = list(_held_out(units, entry.row["dataset"], mechanism["named"].split("|") if mechanism["named"] else []))
    published = float(entry.row["mean"])
    v, w = np.array([without[unit] for unit in units]), np.array([changed[unit] for unit in units])
    facts = {"n": len(units), "held_out": len(held_out), "gap": published - v.mean(), "left": published - w.mean()}
    facts |= {"records": " ".join(value.records)}
    if not closes(published, v.tolist(), w.tolist()):
        return facts | {"state": "refuted", "why": "the gap does not close"}
    if len(held_out) < LEAST_RUNS:
        return facts | {"state": "named", "why": f"{len(held_out)} repetitions are held out: it takes {LEAST_RUNS}"}
    return facts | _confirmation(published, [without[unit] for unit in held_out], [changed[unit] for unit in held_out])


def _held_out(units: Sequence[str], dataset: str, named: Sequence[str]) -> Iterator[str]:
    """The repetitions on which a mechanism was not found: neither they nor their order, with whose seed they begin, are named."""
    if any(dataset_key(name) == dataset_key(dataset) for name in named):
        return
    yield from (unit for unit in units if not {unit, unit.partition("/")[0]} & set(named))


def _confirmation(published: float, without: Sequence[float], changed: Sequence[float]) -> dict[str, Any]:
    differences = np.array(changed) - np.array(without)
    effect = float(differences.mean())
    low, high = math.nan, math.nan
    try:
        interval = stats.mean_interval(differences, level=_LEVEL)
        low, high = interval.low, interval.high
    except stats.Refused:  # no spread at all
        low = high = effect
    sure = (low > 0.0) == (high > 0.0) and effect != 0.0 and low * high > 0.0
    held = sure and closes(published, without, changed)
    why = "" if held else "the effect is uncertain on what is held out" if not sure else "the gap does not close on what is held out"
    return {"state": "confirmed" if held else "refuted", "effect": effect, "low": low, "high": high, "why": why}
