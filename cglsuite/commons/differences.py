"""Two campaigns or two stores compared: settings that differ, cells that one of them has alone, and paired differences of means."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cglsuite.base.hashing import canonical
from cglsuite.cells.records.frame import Row, settings
from cglsuite.specs import MetricSpec

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

Group = tuple[str, str, str]
"""Scenario, method and backbone."""
_FACTS = ("device", "dtype", "threads", "torch", "core_version")
_SEEDS = ("order_seed", "split_seed", "init_seed")
_LEVELS = ("order", "split", "seed")
LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting in which all cells of a group differ between A and B; a value is ``None`` where a side has no such key."""

    scenario: str
    method: str
    backbone: str
    name: str
    a: Any
    b: Any


@dataclass(frozen=True, kw_only=True)
class MeanDifference:
    """The mean of A minus B over the cells that both have, of one metric.

    Args:
        place: the values of further axes, for one of several points. n: of pairs. a, b: the means. estimate, low, high: the difference
            and its interval at :data:`LEVEL`, NaN where it cannot be given; ``why`` says so. equal: pairs with the same bits.
    """

    scenario: str
    method: str
    backbone: str
    place: Mapping[str, Any]
    metric: str
    n: int
    equal: int
    a: float
    b: float
    estimate: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What two sides have in common and what they have not.

    Args:
        only_a, only_b: labels of cells. unpaired: groups in which a cell of one side has several counterparts, and why they are not
            compared.
    """

    settings: Sequence[Setting]
    only_a: Sequence[str]
    only_b: Sequence[str]
    both: int
    means: Sequence[MeanDifference]
    unpaired: Sequence[str] = field(default=())


def compare_rows(a: Iterable[Row], b: Iterable[Row], metrics: Sequence[str], catalogue: Catalogue) -> Comparison:
    """Compare the finished records of two sides.

    Cells are alike that have scenario, method, backbone and seeds in common, and the values of every setting that varies within a side.
    """
    sides = _grouped(a), _grouped(b)
    differing: list[Setting] = []
    only: tuple[list[str], list[str]] = [], []
    means: list[MeanDifference] = []
    unpaired: list[str] = []
    both = 0
    for group in sorted(sides[0].keys() | sides[1].keys()):
        rows = [side.get(group, []) for side in sides]
        varying = sorted({name for part in rows for name in _varying(part)})
        differing += _settings(group, rows, varying) if all(rows) else []
        alike: tuple[dict[str, Row], dict[str, Row]] = {}, {}
        twice = False
        for part, known in zip(rows, alike, strict=True):
            for row in part:
                name = canonical([[getattr(row, seed) for seed in _SEEDS], _point(row, varying)])
                twice |= name in known
                known[name] = row
        if twice:
            unpaired.append(f"{' × '.join(group)}: several records have the same settings and seeds: name a campaign instead of the store")
            continue
        for labels, known, other in ((only[0], alike[0], alike[1]), (only[1], alike[1], alike[0])):
            labels += [_label(row, varying) for name, row in known.items() if name not in other]
        pairs = [(alike[0][name], alike[1][name]) for name in alike[0] if name in alike[1]]
        both += len(pairs)
        axes = [name for name in varying if not _follows_seeds(rows, name)]
        for point, paired in _by_point(pairs, axes):
            means += [_mean(group, point, paired, metric, catalogue) for metric in metrics]
    return Comparison(settings=differing, only_a=only[0], only_b=only[1], both=both, means=[m for m in means if m.n], unpaired=unpaired)


def _grouped(rows: Iterable[Row]) -> dict[Group, list[Row]]:
    groups = defaultdict[Group, list[Row]](list)
    for row in sorted((row for row in rows if row.done), key=lambda row: row.order):
        groups[row.preset, row.method, row.backbone].append(row)
    return groups


def _values(row: Row) -> dict[str, Any]:
    return {**settings(row.configuration), **{name: getattr(row, name) for name in _FACTS}}


def _varying(rows: Sequence[Row]) -> list[str]:
    """The settings that differ among the cells of one side."""
    values = [_values(row) for row in rows]
    names = {name for value in values for name in value}
    return [name for name in names if len({canonical(value.get(name)) for value in values}) > 1]


def _settings(group: Group, rows: Sequence[Sequence[Row]], varying: Sequence[str]) -> list[Setting]:
    first, second = (_values(part[0]) for part in rows)
    names = dict(zip(("scenario", "method", "backbone"), group, strict=True))
    return [
        Setting(**names, name=name, a=first.get(name), b=second.get(name))
        for name in sorted(first.keys() | second.keys())
        if name not in varying and canonical(first.get(name)) != canonical(second.get(name))
    ]


def _point(row: Row, names: Sequence[str]) -> dict[str, Any]:
    values = _values(row)
    return {name: values.get(name) for name in names}


def _follows_seeds(rows: Sequence[Sequence[Row]], name: str) -> bool:
    """Whether a varying setting follows from the seeds, as a class order does: then it is no axis."""
    by_seeds = defaultdict[tuple[int, ...], set[str]](set)
    for row in (row for part in rows for row in part):
        by_seeds[tuple(getattr(row, seed) for seed in _SEEDS)].add(canonical(_values(row).get(name)))
    return all(len(values) == 1 for values in by_seeds.values())


def _by_point(pairs: Sequence[tuple[Row, Row]], axes: Sequence[str]) -> list[tuple[dict[str, Any], list[tuple[Row, Row]]]]:
    points: dict[str, tuple[dict[str, Any], list[tuple[Row, Row]]]] = {}
    for pair in pairs:
        point = _point(pair[0], axes)
        points.setdefault(canonical(point), (point, []))[1].append(pair)
    return list(points.values())


def _label(row: Row, varying: Sequence[str]) -> str:
    place = "".join(f", {name}={value}" for name, value in _point(row, varying).items() if name not in _FACTS)
    return row.label if not place else f"{row.label[:-1]}{place})"


def _mean(group: Group, point: Mapping[str, Any], pairs: Sequence[tuple[Row, Row]], metric: str, catalogue: Catalogue) -> MeanDifference:
    import pandas as pd

    from cglsuite.stats import compare_methods

    values = [(first, second, first.metrics.get(metric), second.metrics.get(metric)) for first, second in pairs]
    known = [(first, second, x, y) for first, second, x, y in values if x is not None and y is not None]
    names: dict[str, Any] = dict(zip(("scenario", "method", "backbone"), group, strict=True))
    names |= {"place": point, "metric": metric, "n": len(known), "equal": sum(x == y for *_, x, y in known)}
    if not known:
        return MeanDifference(**names, a=math.nan, b=math.nan, estimate=math.nan)
    a, b = math.fsum(x for _, _, x, _ in known) / len(known), math.fsum(y for *_, y in known) / len(known)
    frame = pd.DataFrame(
        [
            {"method": side, "value": entry[2 + place], **dict(zip(_LEVELS, (getattr(entry[place], seed) for seed in _SEEDS), strict=True))}
            for place, side in enumerate(("A", "B"))
            for entry in known
        ]
    )
    spec = catalogue.specs(MetricSpec).get(metric)
    [tested] = compare_methods(frame, higher_is_better=spec is None or spec.direction == "up", alpha=1 - LEVEL).to_dict(orient="records")
    if tested["refused"]:
        why = "equal in all pairs" if names["equal"] == len(known) else str(tested["refused"])
        return MeanDifference(**names, a=a, b=b, estimate=a - b, why=why)
    numbers: dict[str, Any] = {name: float(tested[name]) for name in ("estimate", "low", "high", "p")}
    return MeanDifference(**names, a=a, b=b, **numbers)
