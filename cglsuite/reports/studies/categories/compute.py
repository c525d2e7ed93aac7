"""Ranks by category of method as data: Figure 7 of BeGin from its printed tables, and the same for the records of a campaign.

:mod:`cglsuite.reports.studies.categories.page` formats these results; the statistics are in :mod:`cglsuite.stats.ranking.category_ranks`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite import stats
from cglsuite.base.errors import UnknownNameError
from cglsuite.campaigns.reference import published_results, welch_begin_fig7
from cglsuite.campaigns.reference.matching import backbone_key, keyed_results, method_key, preset_key
from cglsuite.campaigns.reference.papers import paper_of
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.kit.text import listed
from cglsuite.reports.results.tables import summary
from cglsuite.specs import MethodSpec, MetricSpec

if TYPE_CHECKING:
    from cglsuite.host import Catalogue
    from cglsuite.reports.results.results import CampaignResults

__all__ = [
    "METRICS",
    "SCENARIOS",
    "SHORT_NAMES",
    "CategoryStudy",
    "Ranked",
    "begin_figure_7",
    "begin_ranks",
    "beside_print",
    "category_study",
    "printed_tests",
]

SCENARIOS: Mapping[str, Sequence[str]] = {
    "task-IL": ("Cora", "Citeseer", "ogbn-arxiv", "CoraFull"),
    "class-IL": ("Cora", "Citeseer", "ogbn-arxiv", "ogbn-products"),
    "time-IL": ("ogbn-arxiv", "ogbn-mag"),
}
"""The data sets of BeGin's Figure 7 by incremental setting, as the paper names them."""
METRICS: Mapping[str, str] = {"AP": "4", "AF": "5", "INT": "6"}
"""The metrics of the figure, and the table that prints each of them."""
_ISOLATION = "parameter-isolation-based"
SHORT_NAMES: Mapping[str, str] = {"regularization-based": "Reg", "replay-based": "Rep", _ISOLATION: "PI"}
"""The paper's categories, with their names in narrow tables."""
_DECLARED: Mapping[str, str] = {**SHORT_NAMES, _ISOLATION: "Iso"}
"""The same by what plugins declare."""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """The ranks of one metric in one incremental setting.

    Args:
        metric: its label. setting: the incremental setting. better: the better direction, ``up`` or ``down``.
        ranks: what :func:`cglsuite.stats.ranking.category_ranks` returns; empty if refused, with the reason in ``refused``.
        averages: what :func:`cglsuite.stats.average_ranks` returns, over all methods except joint training, which does not compete;
            methods outside the categories are included.
    """

    metric: str
    setting: str
    better: str
    ranks: pd.DataFrame
    averages: pd.DataFrame
    refused: str = ""

    @property
    def categories(self) -> list[str]:
        """The categories that have a rank."""
        return list(dict.fromkeys(self.ranks["category"]))

    @cached_property
    def tests(self) -> pd.DataFrame:
        """Welch's tests between categories: see :func:`cglsuite.stats.category_tests`."""
        return stats.category_tests(self.ranks)


# --- the paper's figure ------------------------------------------------------------------------------------------------------------


def begin_figure_7() -> list[Ranked]:
    """Figure 7 from the means of Tables 4 to 6: three metrics in three settings; parameter isolation takes part in task-IL only."""
    return [begin_ranks(metric, setting) for metric in METRICS for setting in SCENARIOS]


def begin_ranks(metric: str, setting: str) -> Ranked:
    """One panel of the figure.

    Raises:
        UnknownNameError: the figure has no such metric or setting.
    """
    for kind, name, known in (("metric of Figure 7", metric, METRICS), ("setting of Figure 7", setting, SCENARIOS)):
        if name not in known:
            raise UnknownNameError(kind, name, known)
    table = published_results()
    mine = (table["paper"] == "BeGin") & (table["problem"] == "NC") & (table["table"] == METRICS[metric])
    mine &= (table["metric"] == metric) & (table["setting"] == setting) & table["dataset"].isin(SCENARIOS[setting])
    frame = table[mine].rename(columns={"dataset": "scenario", "mean": "value"})[["scenario", "method", "value"]].dropna()
    categories = {name: methods for name, methods in stats.CATEGORIES.items() if setting == "task-IL" or name != _ISOLATION}
    return _ranked(metric, setting, "up" if metric == "AP" else "down", frame, categories, "min")


def printed_tests(ranked: Ranked) -> pd.DataFrame:
    """The tests of a panel next to the published ones.

    Returns:
        The columns of :attr:`Ranked.tests`, printed_t, printed_p (float64), and ``agrees``: whether t and p are equal to every printed
        digit (four decimals; five significant digits for a p below 0.0001).
    """
    printed = welch_begin_fig7()
    printed = printed[(printed["metric"] == ranked.metric) & (printed["setting"] == ranked.setting)]
    merged = ranked.tests.merge(printed.rename(columns={"t": "printed_t", "p": "printed_p"}), on=["first", "second"], how="left")
    same = [_digits(r.t, r.p) == _digits(r.printed_t, r.printed_p) for r in merged.itertuples()]
    return merged.drop(columns=["metric", "setting"]).assign(agrees=same)


def _digits(t: Any, p: Any) -> tuple[str, str]:
    return f"{t:.4f}", f"{p:.4f}" if p >= 1e-4 else f"{p:.4e}"


# --- a campaign --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CategoryStudy:
    """Ranks of the methods of a campaign.

    Args:
        metrics: names of their definitions. categories: methods by category. outside: methods with a result and without one of these
            categories. ranked: one per metric and setting.
    """

    results: CampaignResults
    metrics: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]
    outside: tuple[str, ...]
    ties: str
    ranked: tuple[Ranked, ...]


def category_study(
    results: CampaignResults,
    catalogue: Catalogue,
    metrics: str | Sequence[str] = ("average_performance", "forgetting_from_diagonal", "intransigence"),
    categories: Mapping[str, Sequence[str]] | None = None,
    *,
    ties: str = "min",
) -> CategoryStudy:
    """Rank the methods of a campaign within each scenario (a preset on one backbone) by the mean over the records of a group.

    Args:
        metrics: names of their definitions. categories: methods by category; default: the categories declared by their plugins.
        ties: one of :data:`cglsuite.stats.TIES`.

    Raises:
        UnknownNameError: unknown metric or rule for ties. UsageError: a method in two categories.
    """
    metrics = listed(metrics)
    for name in metrics:
        if name not in results.metrics:
            raise UnknownNameError("metric", name, results.metrics)
    methods = list(dict.fromkeys(group.method for group in results.groups))
    chosen = {name: tuple(members) for name, members in (categories or _declared(catalogue, methods)).items()}
    members = {method.lower() for some in chosen.values() for method in some}
    frame, settings = summary(results), _settings(results)
    frame = frame.assign(
        scenario=[f"{row['preset']} × {row['backbone']}" for row in as_rows(frame)],
        setting=frame["preset"].map(settings),
        value=frame["mean"],
    )
    ranked = []
    for name in metrics:
        spec: MetricSpec = results.metrics[name]
        for setting in dict.fromkeys(settings.values()):
            part = frame[(frame["metric"] == name) & (frame["setting"] == setting)]
            if len(part):
                ranked.append(_ranked(spec.label or name, setting, spec.direction, part, chosen, ties))
    outside = tuple(method for method in methods if method.lower() not in members)
    return CategoryStudy(results=results, metrics=tuple(metrics), categories=chosen, outside=outside, ties=ties, ranked=tuple(ranked))


def beside_print(study: CategoryStudy) -> pd.DataFrame:
    """Our mean ranks by category beside those of the printed tables, over the same methods in the same scenarios.

    Only scenarios of a paper's protocol unchanged, on its own backbone, and methods of which it prints a value, take part.

    Returns:
        Columns metric (its label), setting, category, scenarios, ranks (how many are pooled), ours and printed (mean ranks, 1 is best),
        methods (in the panel, whatever their category) and tau (Kendall's, between both average ranks of all of them; NaN where there are
        fewer than three).
    """
    rows = []
    for name in study.metrics:
        spec: MetricSpec = study.results.metrics[name]
        pairs = _printed_pairs(study, name)
        for setting, part in pairs.groupby("setting", sort=False):
            panels = {
                side: _ranked(spec.label or name, str(setting), spec.direction, part.assign(value=part[side]), study.categories, study.ties)
                for side in ("ours", "printed")
            }
            rows += _beside(panels["ours"], panels["printed"])
    columns = ["metric", "setting", "category", "scenarios", "ranks", "ours", "printed", "methods", "tau"]
    return pd.DataFrame(rows, columns=columns)


def _printed_pairs(study: CategoryStudy, metric: str) -> pd.DataFrame:
    """Our mean and the printed one of every scenario and method that has both: columns scenario, setting, method, ours, printed."""
    table = keyed_results()
    table = table[(table["variant"] == "") & table["mean"].notna()]
    levels = {group.preset: str(group.records[0].scenario["level"]) for group in study.results.groups}
    settings = _settings(study.results)
    frame = summary(study.results)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in as_rows(frame[frame["metric"] == metric]):
        preset, paper = row["preset"], paper_of(row["preset"].partition("@")[2])
        if paper is None or backbone_key(row["backbone"]) != backbone_key(paper.backbone):
            continue
        labels = [label for label, definition in paper.metrics.items() if definition == metric]
        place = preset_key(preset, settings[preset], levels[preset])
        mine = table[(table["place"] == place) & table["metric"].isin(labels) & (table["backbone"] == paper.backbone)]
        mine = mine[mine["method_key"] == method_key(row["method"])]
        if len(mine) == 1:
            facts = {"scenario": preset, "setting": settings[preset], "method": row["method"]}
            rows.setdefault((preset, row["method"]), facts | {"ours": row["mean"], "printed": float(mine["mean"].iloc[0])})
    return pd.DataFrame(list(rows.values()), columns=["scenario", "setting", "method", "ours", "printed"])


def _beside(ours: Ranked, printed: Ranked) -> list[dict[str, Any]]:
    from scipy import stats as scipy_stats

    both = ours.averages.merge(printed.averages, on="method", suffixes=("", "_printed"))
    tau = float(scipy_stats.kendalltau(both["rank"], both["rank_printed"]).statistic) if len(both) > 2 else math.nan
    rows = []
    for category in ours.categories:
        mine, theirs = (panel.ranks[panel.ranks["category"] == category] for panel in (ours, printed))
        facts = {"metric": ours.metric, "setting": ours.setting, "category": category, "methods": len(both), "tau": tau}
        facts |= {"scenarios": int(mine["scenario"].nunique()), "ranks": len(mine)}
        rows.append(facts | {"ours": float(mine["rank"].mean()), "printed": float(theirs["rank"].mean())})
    return rows


def _declared(catalogue: Catalogue, methods: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The methods of a campaign by the categories of BeGin's figure, as their plugins declare them."""
    specs = catalogue.specs(MethodSpec)
    category_of = {method: specs[method].category if method in specs else "other" for method in methods}
    return {
        name: tuple(m for m in methods if category_of[m] == short) for name, short in _DECLARED.items() if short in category_of.values()
    }


def _settings(results: CampaignResults) -> dict[str, str]:
    return {group.preset: str(group.records[0].scenario["setting"]) for group in results.groups}


def _ranked(metric: str, setting: str, better: str, frame: pd.DataFrame, categories: Mapping[str, Sequence[str]], ties: str) -> Ranked:
    empty = pd.DataFrame(columns=["scenario", "category", "method", "value", "rank"])
    try:
        ranks = stats.category_ranks(frame, categories, ties=ties, higher_is_better=better == "up")
        competing = frame[frame["method"].str.lower() != UPPER_BOUND]
        averages = stats.average_ranks(competing, ties=ties, higher_is_better=better == "up")
    except stats.Refused as refusal:
        averages = pd.DataFrame(columns=["method", "rank", "n_scenarios"])
        return Ranked(metric=metric, setting=setting, better=better, ranks=empty, averages=averages, refused=str(refusal))
    return Ranked(metric=metric, setting=setting, better=better, ranks=ranks, averages=averages)
