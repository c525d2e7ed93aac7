"""The papers whose tables ship with the suite: their protocols, the names of their metrics here, and their numbers of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cglsuite.base.errors import UnknownNameError
from cglsuite.campaigns.reference.values import FEWEST_RUNS

__all__ = ["PAPERS", "Paper", "paper_named", "paper_of"]


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
