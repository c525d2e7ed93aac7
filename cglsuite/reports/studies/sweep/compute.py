"""How results depend on a setting, of a method, the backbone or the protocol: campaigns with axes, as tidy frames of curves.

Everything here computes; :mod:`cglsuite.reports.studies.sweep.page` formats. Values are fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.errors import UnknownNameError
from cglsuite.base.hashing import canonical
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.kit.text import listed
from cglsuite.reports.results.measures import measures_of
from cglsuite.reports.results.orders import order_of
from cglsuite.reports.results.performance import is_fraction, performance_bounds, performance_name
from cglsuite.reports.results.variants import value_as_text

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.reports.results.measures import Measure
    from cglsuite.reports.results.results import CampaignResults, Group

__all__ = ["BACKBONE", "Sweep", "sweep", "sweep_curves", "unevenly_filled"]

BACKBONE = ("backbone.",)
"""Prefix of the backbone's hyper-parameters."""
_ORDER = "scenario.class_order"


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The records of campaigns with axes.

    Args:
        results: of every campaign. axes: dotted keys. cells: one row per record: design (everything that records
            share), label (method), order, seed, parameters (of the model), a column per measure and one per axis.
        measures: the measures drawn against an axis, by column name.
        percent: by design, whether performance is a fraction; bounds: of performance. performance: the name of the measure.
        methods: labels in the campaigns' order, which fixes their colours.
    """

    results: tuple[CampaignResults, ...]
    axes: tuple[str, ...]
    cells: pd.DataFrame
    measures: Mapping[str, Measure]
    percent: Mapping[str, bool]
    bounds: Mapping[str, tuple[float, float] | None]
    performance: Mapping[str, str]
    methods: tuple[str, ...]


def sweep(results: Sequence[CampaignResults], axes: str | Sequence[str] = (), varying: Sequence[str] = ()) -> Sweep:
    """The cells of all campaigns along axes; a record shared by two campaigns counts once.

    Args:
        axes: dotted keys; none: the axes of the campaigns (``grid.axes``), or those with a prefix in ``varying`` where it is given. Of both
            only keys with several values among the records of one scenario count. Campaigns without axes: hyper-parameters of the backbone.

    Raises:
        UnknownNameError: no record has the axis.
        UsageError: the records mix task-free streams and task streams.
    """
    sources = [(owner, group, record) for owner in results for group in owner.groups for record in group.records]
    records = list({record.key: record for _, _, record in sources}.values())
    known = sorted({name for record in records for name in record.cell["configuration"]})
    for name in listed(axes):
        if records and name not in known:
            raise UnknownNameError("key in axes", name, known)
    declared = tuple(dict.fromkeys(name for owner in results for name in owner.campaign.grid.further))
    chosen, measures = tuple(listed(axes)) or _varying(records, varying or declared or BACKBONE), measures_of(records)
    rows: dict[str, dict[str, Any]] = {}
    for owner, group, record in sources:
        if record.key not in rows:
            rows[record.key] = _row(owner, group, record, chosen) | {name: one.of(record) for name, one in measures.items()}
    frame = pd.DataFrame(list(rows.values()), columns=["design", "method", "own", "order", "seed", *measures, "parameters", *chosen])
    frame["label"] = _labels(frame, chosen)
    by_design = [(row["design"], record) for row, record in zip(rows.values(), records, strict=True)]
    return Sweep(
        results=tuple(results),
        axes=chosen,
        cells=frame,
        measures=measures,
        percent={design: is_fraction(record) for design, record in by_design},
        bounds={design: performance_bounds(record) for design, record in by_design},
        performance={design: performance_name(record.scenario) for design, record in by_design},
        methods=tuple(dict.fromkeys(frame["label"])),
    )


def _varying(records: Iterable[Record], sections: Sequence[str]) -> tuple[str, ...]:
    values: dict[str, dict[str, set[str]]] = {}
    for record in records:
        family = f"{record.cell['scenario']} × {record.cell['backbone']}"
        for name, value in record.cell["configuration"].items():
            if name in sections or name.startswith(tuple(s for s in sections if s.endswith("."))):
                values.setdefault(name, {}).setdefault(family, set()).add(canonical(value))
    return tuple(sorted(name for name, families in values.items() if any(len(v) > 1 for v in families.values())))


def _row(results: CampaignResults, group: Group, record: Record, axes: Sequence[str]) -> dict[str, Any]:
    variant, configuration, seeds = results.variants.get(group.preset), record.cell["configuration"], record.cell["seeds"]
    changes = {n: v for n, v in (variant.changes if variant else {}).items() if n != _ORDER and n not in axes}
    changed = ", ".join(f"{name} = {value_as_text(value)}" for name, value in changes.items())
    return {
        "design": f"{record.cell['scenario']} × {group.backbone}" + (f" with {changed}" if changed else ""),
        "method": group.method,
        "own": canonical({n: v for n, v in configuration.items() if n.startswith("method.")}),
        "order": order_of(record),
        "seed": f"{seeds['split']}/{seeds['init']}",
        "parameters": record.parameters.get("model"),
        **{axis: _held(configuration, axis) for axis in axes},
    }


def _held(configuration: Mapping[str, Any], axis: str) -> Any:
    """A cell's value on an axis: ``"none"`` where it is none, NaN where the cell has no such setting, as it is of another method."""
    if axis not in configuration:
        return np.nan
    value = configuration[axis]
    return value_as_text(value) if value is None else value


def _labels(frame: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """The method, numbered if one point holds several of its configurations (a search may choose different ones at every point)."""
    points = [canonical([None if pd.isna(row[a]) else row[a] for a in axes]) for _, row in frame.iterrows()]
    counted = frame.assign(point=points).groupby(["design", "method", "point"])["own"].nunique()
    several = {row["method"] for row in as_rows(counted.reset_index()) if row["own"] > 1}
    numbers: dict[str, dict[str, int]] = {}
    labels = []
    for method, own in zip(frame["method"], frame["own"], strict=True):
        seen = numbers.setdefault(method, {})
        number = seen.setdefault(own, len(seen) + 1)
        labels.append(f"{method} (configuration {number})" if method in several else method)
    return labels


def sweep_curves(study: Sweep, metric: str = "aa") -> pd.DataFrame:
    """A metric against every axis, the other axes held fixed; of an axis that is a method's only that method has a curve.

    Orders are the unit of replication: seeds within an order are averaged. If a point has a single order, its seeds are the units.

    Returns:
        Columns design, axis, rest (the other axes as text), label, place (index of the value on the curve), value (as text), mean,
        std, low, high, interval (kind, or why it is missing), n, unit (orders or seeds), parameters (mean of the model's). Axes with a
        single value beside the rest have no rows; cells whose metric is undefined do not count.
    """
    rows: list[dict[str, Any]] = []
    for axis in study.axes:
        others = [other for other in study.axes if other != axis]
        cells = study.cells.dropna(subset=[metric, axis])
        rest = [
            ", ".join(f"{_short(other)} = {value_as_text(row[other])}" for other in others if not pd.isna(row[other]))
            for _, row in cells.iterrows()
        ]
        for (design, held), part in cells.assign(rest=rest).groupby(["design", "rest"], sort=False):
            values = sorted(set(part[axis]), key=_value_order)
            if len(values) < 2:
                continue
            identity = {"design": design, "axis": axis, "rest": held}
            bounds = study.bounds[str(design)] if study.measures[metric].share else None
            for (label, value), point in part.groupby(["label", axis], sort=False):
                position = {"label": label, "place": values.index(value), "value": value_as_text(value)}
                rows.append(identity | position | _point(point, metric, bounds))
    columns = ["design", "axis", "rest", "label", "place", "value", "mean", "std", "low", "high", "interval", "n", "unit", "parameters"]
    return pd.DataFrame(rows, columns=columns)


def _short(axis: str) -> str:
    return axis.partition(".")[2] or axis


def _value_order(value: Any) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, (int, float)) else (1, 0.0, str(value))


def _point(cells: pd.DataFrame, metric: str, bounds: tuple[float, float] | None) -> dict[str, Any]:
    several = cells["order"].nunique() > 1
    units = (cells.groupby("order", sort=False)[metric].mean() if several else cells[metric]).to_numpy(dtype=np.float64)
    unit = "orders" if several else "seeds"
    parameters = cells["parameters"].dropna().to_numpy(dtype=np.float64)
    row = {
        "mean": float(units.mean()),
        "std": float(units.std(ddof=1)) if units.size > 1 else np.nan,
        "n": units.size,
        "unit": unit,
        "parameters": float(parameters.mean()) if parameters.size else np.nan,
    }
    try:
        interval = stats.mean_interval(units, unit=unit, bounds=bounds)
    except stats.Refused as refusal:
        return row | {"interval": str(refusal)}
    return row | {"low": interval.low, "high": interval.high, "interval": interval.method}


def unevenly_filled(curves: pd.DataFrame) -> list[str]:
    """Curves whose points have different numbers of units, as text: differences along them may come from orders."""
    notes = []
    for (design, axis, rest, label), part in curves.groupby(["design", "axis", "rest", "label"], sort=False):
        counts = Counter(part["n"])
        if len(counts) > 1:
            where = f"{design}, {_short(str(axis))}{f' ({rest})' if rest else ''}, {label}"
            notes.append(f"{where}: from {min(counts)} to {max(counts)} {'/'.join(dict.fromkeys(part['unit']))} per point")
    return notes
