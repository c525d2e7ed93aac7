"""Published values in one unit: what a printed mean and deviation amount to, whether ours agrees with them, what is known about them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from cglsuite.base.errors import UnknownNameError
from cglsuite.base.markup import several
from cglsuite.campaigns.reference import known_artefacts
from cglsuite.specs import METRICS
from cglsuite.stats import Agreement, MeanEstimate, Refused, agreement

__all__ = [
    "ARTEFACT",
    "FEWEST_RUNS",
    "LEAST_RUNS",
    "MARGINS",
    "PAPERS",
    "UNITS",
    "Known",
    "Paper",
    "Unit",
    "known_about",
    "margin_of",
    "own_mean",
    "paper_named",
    "paper_of",
    "printed_deviation",
    "published_error",
    "remarks",
    "require_comparable",
    "shown_value",
    "unit_note",
    "verdict_on",
]

ARTEFACT = "published artefact"
"""The verdict on a published value that is known not to have come about as its protocol says, however close ours is."""
POINT = 1.0
_NO_SPREAD = 1e-12
LEAST_RUNS = 3
"""Repetitions of ours that a verdict needs."""
FEWEST_RUNS = 2
"""Taken for the number of runs of a paper that does not state it: the fewest that have a standard deviation, and so the least certain."""
_OTHER_SCALE = "std evidently on the 0-1 scale"
_DEVIATION_IN_POINTS = (
    "the paper prints standard deviations on the scale from 0 to 1 beside means in percent; they are brought to points here (times 100)"
)
_NOT_A_REMARK = re.compile(r"base metric: .*|AF[<>]0 means forgetting|INT: lower is better|called .*|built upon .*|std evidently .*")


@dataclass(frozen=True)
class Unit:
    """A unit of the published table: what a value of ours is multiplied with, and what a percentage point is in it (``None``: nothing)."""

    name: str
    scale: float
    point: float | None

    @property
    def to_points(self) -> float:
        """What a difference in this unit is multiplied with to be in points; NaN where there are none."""
        return math.nan if self.point is None else POINT / self.point


UNITS: Mapping[str, Unit] = {
    name: Unit(name, scale, point)
    for name, scale, point in (
        ("%", 100.0, 1.0),
        ("fraction", 1.0, 0.01),
        ("-MAE", 1.0, None),
        ("MAE", 1.0, None),
        ("MAE x100", 100.0, None),
    )
}
"""Performance is a fraction here, and of graph regression minus the mean absolute error."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of a published row: its kinds with their reasons (see :func:`cglsuite.campaigns.reference.known_artefacts`)."""

    reasons: tuple[tuple[str, str], ...]

    def of(self, *kinds: str) -> tuple[str, ...]:
        """The reasons of some kinds."""
        return tuple(reason for kind, reason in self.reasons if kind in kinds)

    @property
    def artefacts(self) -> tuple[str, ...]:
        """Why the value did not come about as its protocol says."""
        return self.of("artefact", "not-comparable")

    @property
    def unavailable(self) -> tuple[str, ...]:
        """Why nobody can run the same."""
        return self.of("unavailable")

    @property
    def comparable(self) -> bool:
        """Whether it is the same problem on the same data."""
        return not self.of("not-comparable", "unavailable")


@lru_cache
def _artefacts() -> tuple[dict[str, Any], ...]:
    return tuple({str(k): v for k, v in row.items()} for row in known_artefacts().to_dict(orient="records"))


def known_about(row: Mapping[str, Any]) -> Known:
    """What is known of a published row."""
    where = ("paper", "problem", "setting", "dataset", "method", "metric")
    artefacts = [one for one in _artefacts() if all(not one[w] or row[w] in one[w].split("|") for w in where)]
    return Known(reasons=tuple((one["kind"], one["reason"]) for one in artefacts))


def printed_deviation(row: Mapping[str, Any]) -> float:
    """The printed standard deviation in the unit of the mean; AGALE prints it on the 0 to 1 scale beside means in percent.

    A row that is not comparable stays as printed: AGALE's joint training has 22.47 ± 0.47, which cannot mean 47 points.
    """
    other = _OTHER_SCALE in row["note"] and known_about(row).comparable
    return float(row["std"]) * (100.0 if other else 1.0)


def shown_value(row: Mapping[str, Any], *, percent: bool = False) -> str:
    """What the paper prints, the deviation in the unit of the mean.

    Args:
        percent: bring fractions to percent, with all their digits: for what stands beside results in percent.
    """
    deviation, text = printed_deviation(row), str(row["printed"])
    if math.isfinite(deviation) and deviation != row["std"]:
        text = f"{text.partition(' ±')[0]} ± {deviation:g}"
    if percent and row["unit"] == "fraction":
        return " ± ".join(format(Decimal(number).scaleb(2), "f") for number in text.split(" ± "))
    return text


def unit_note(row: Mapping[str, Any], *, percent: bool = False) -> str:
    """Why :func:`shown_value` is not what the paper prints; empty where it is."""
    if shown_value(row) != row["printed"]:
        return _DEVIATION_IN_POINTS
    if shown_value(row, percent=percent) != row["printed"]:
        return "the paper prints fractions of 1; they are in percent here (times 100)"
    return ""


def remarks(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What the notes of a row say that a reader of its value should know."""
    noted = [part for part in row["note"].split("; ") if part and not _NOT_A_REMARK.fullmatch(part)]
    return (*noted, *known_about(row).of("remark"))


# --- agreement -------------------------------------------------------------------------------------------------------------------


def margin_of(metric: str, unit: Unit) -> float:
    """The margin of a metric, by its name here, in a published unit.

    Raises:
        KeyError: a metric without a margin; every metric of :data:`cglsuite.campaigns.reference.values.PAPERS` has one.
    """
    return MARGINS[metric] * unit.scale


def own_mean(values: Sequence[float]) -> MeanEstimate:
    """The mean of independent repetitions, in their unit; they may be without spread.

    Raises:
        Refused: fewer than :data:`LEAST_RUNS` repetitions.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size < LEAST_RUNS:
        raise Refused(f"{several(x.size, 'repetition')} of ours: a verdict needs at least {LEAST_RUNS}")
    spread = float(x.std(ddof=1))
    return MeanEstimate(mean=float(x.mean()), error=spread / math.sqrt(x.size), df=x.size - 1.0, spread=spread, n=x.shape)


def require_comparable(row: Mapping[str, Any]) -> None:
    """Check that a published row is of the same problem on the same data.

    Raises:
        Refused: it is not.
    """
    if not known_about(row).comparable:
        raise Refused("the published value is not comparable: it is of another problem or other data")


def published_error(row: Mapping[str, Any], runs: int | None) -> tuple[float, int]:
    """The printed standard deviation in the published unit, and the number of runs it is over.

    A printed 0.0 stands for anything below half a unit of its last digit, which is taken. Where the paper does not say over how many runs,
    :data:`FEWEST_RUNS` are.
    """
    deviation = printed_deviation(row)
    if deviation == 0.0:
        digits = str(row["printed"]).partition(" ± ")[2].partition(".")[2]
        deviation = 0.5 * 10.0 ** -len(digits)
    return deviation, runs or FEWEST_RUNS


def verdict_on(row: Mapping[str, Any], metric: str, ours: MeanEstimate, runs: int | None) -> Agreement:
    """Both tests of a mean of ours beside a published row, in the published unit.

    Args:
        metric: its name here. ours: in stored units. runs: of the published mean; ``None`` where unknown.

    Raises:
        Refused: nothing is printed to test against; the row is of another problem; neither mean has spread (a printed 0.0 beside a value
            that is the same in all of our repetitions, usually one at the bound of its scale).
    """
    require_comparable(row)
    unit = UNITS[row["unit"]]
    if printed_deviation(row) == 0.0 and ours.spread <= _NO_SPREAD:
        raise Refused("neither value has spread over its repetitions: there is no variance to test against")
    std, n = published_error(row, runs)
    scaled = replace(ours, mean=unit.scale * ours.mean, error=unit.scale * ours.error, spread=unit.scale * ours.spread)
    return agreement(scaled, float(row["mean"]), std, n, margin=margin_of(metric, unit))


# The papers whose tables ship with the suite: their protocols, the names of their metrics here, and their numbers of runs.


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper and the meaning of its tables.

    Args:
        name: as in the column ``paper`` of the published tables.
        protocols: of presets that are this paper's benchmark unchanged, newest version first.
        metrics: printed label to the name that says its definition. Of two papers' "AF", one may be another's negative.
        seeds: one repetition after the other, as the table ``[seeds]`` of a campaign; the lists are gone through in step.
        repeats: how many runs a printed mean is over; ``None`` where the paper does not say. seeds_note: what the paper leaves open.
        spread: what the printed standard deviation is over, as far as the paper says.
        trials: from how many settings the hyper-parameters of a method were chosen, as far as the paper says.
        backbone: what the tables call the backbone that the protocol's presets have of their own.
    """

    name: str
    protocols: tuple[str, ...]
    metrics: Mapping[str, str]
    seeds: Mapping[str, tuple[int, ...]]
    repeats: int | None
    spread: str
    seeds_note: str = ""
    trials: str = ""
    backbone: str = "GCN"
    orders: Mapping[str, Any] = field(default_factory=dict)

    @property
    def most_repeats(self) -> int:
        """The number of repetitions of the protocol."""
        return max(map(len, self.seeds.values()))


_TASKS = {"AP": "average_performance", "AF": "backward_transfer"}
_THOUSANDS = tuple(range(0, 10_000, 1000))

PAPERS: tuple[Paper, ...] = (
    Paper(
        name="BeGin",
        protocols=("begin-2", "begin-1"),
        metrics=_TASKS | {"AF": "forgetting_from_diagonal", "INT": "intransigence", "FWT": "forward_transfer"},
        seeds={"order": _THOUSANDS, "split": (0,), "init": _THOUSANDS},
        repeats=10,
        spread="10 seeds, each with its own order of classes and its own initialisation, on one split; the code prints the sample standard "
        "deviation",
        trials="18 settings of Bare and 36 of most other methods, chosen by the final validation AP over all tasks",
    ),
    Paper(
        name="CGLB",
        protocols=("cglb-2", "cglb-inter-2", "cglb-1", "cglb-inter-1"),
        metrics=_TASKS,
        seeds={"order": (0,), "split": (0,), "init": tuple(range(5))},
        repeats=None,
        spread=f"runs of one order of classes, whose number the paper does not state; {FEWEST_RUNS} are assumed, the least certain case",
        seeds_note="The paper does not say how many runs a mean is over; here there are five, of the native order.",
    ),
    Paper(
        name="AGALE",
        protocols=("agale-2", "agale-1"),
        metrics=_TASKS,
        seeds={"order": (0, 1, 2), "split": (0,), "init": (0, 1, 2)},
        repeats=3,
        spread="3 orders of classes, each with its own initialisation",
    ),
    Paper(
        name="DRIFT",
        protocols=("drift-2", "drift-1"),
        metrics={"A_AUC": "a_auc", "AF_s": "af_s", "AA": "a_end", "AF": "af_hard"},
        seeds={"order": (1, 2, 3), "split": (1, 2, 3), "init": (1, 2, 3)},
        repeats=3,
        spread="3 seeds, each with its own stream, split and initialisation",
    ),
    Paper(
        name="SkeletonCGL",
        protocols=("skeleton-2", "skeleton-1"),
        metrics={"AOPD": "aopd", "MOPD": "mopd"},
        seeds={"split": (0,), "init": tuple(range(5))},
        repeats=5,
        spread="5 repetitions of all orders, of which each gives one AOPD and one MOPD",
        seeds_note="A repetition is one seed with which every order is run.",
        orders={"task": ("all-tasks",), "class (aggregated)": ("all-tasks", "random-classes:100")},
    ),
)

_LEVEL, _DIFFERENCE = 0.02, 0.03
MARGINS: Mapping[str, float] = {
    name: _LEVEL if name in METRICS and METRICS[name].quantity == "performance" else _DIFFERENCE
    for paper in PAPERS
    for name in paper.metrics.values()
}
"""By metric, within which a mean counts as equivalent to a published one; in stored units, so that 0.02 is 2 points of a fraction.

Fixed before looking: 2 points for means of performance, 3 for differences and ranges of two performances, whose spread is about √2 times as
large.
"""


def paper_named(name: str) -> Paper:
    """The paper of that name, in whatever case.

    Raises:
        UnknownNameError: unknown; suggests the nearest.
    """
    for paper in PAPERS:
        if paper.name.lower() == name.lower():
            return paper
    raise UnknownNameError("paper", name, [paper.name for paper in PAPERS])


def paper_of(protocol: str) -> Paper | None:
    """The paper of a protocol; presets of other protocols have no published values."""
    return next((paper for paper in PAPERS if protocol in paper.protocols), None)
