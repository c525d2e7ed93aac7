"""Rank methods by category. This module contains the page, its figures and their data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cglsuite import stats
from cglsuite.base.errors import UnknownNameError
from cglsuite.base.markup import Fragment, element, join, several
from cglsuite.campaigns.reference import published_results, welch_begin_fig7
from cglsuite.campaigns.reference.values import backbone_key, keyed_results, method_key, paper_of, preset_key
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.host import Catalogue
from cglsuite.reports.kit.figures import box_rows
from cglsuite.reports.kit.pictures import Gallery, Theme, headline, picture, plain_axes, row_titles, wrapped
from cglsuite.reports.kit.sentences import join_names, rank_level
from cglsuite.reports.kit.tables import Column, as_rows, crossed, definition_list, empty, framed, label, number, number_text, titled, words
from cglsuite.reports.kit.text import badge, key_box, listed
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.results.runs import problems, provenance
from cglsuite.reports.results.summary import NOTHING_DONE
from cglsuite.reports.results.summary import overview as campaign_overview
from cglsuite.reports.results.tables import summary
from cglsuite.specs import MethodSpec, MetricSpec, metric_named

__all__ = [
    "SCENARIOS",
    "averages",
    "begin_averages",
    "begin_boxes",
    "begin_tests",
    "beside",
    "boxes",
    "category_study",
    "level_averages",
    "overview",
    "problems",
    "provenance",
    "scenario_tests",
    "tests",
]

# Ranks by category of method as data: Figure 7 of BeGin from its printed tables, and the same for the records of a campaign.
# :mod:`cglsuite.reports.studies.categories` formats these results; the statistics are in :mod:`cglsuite.stats.ranking`.

SCENARIOS: Mapping[str, Sequence[str]] = {
    "task-IL": ("Cora", "Citeseer", "ogbn-arxiv", "CoraFull"),
    "class-IL": ("Cora", "Citeseer", "ogbn-arxiv", "ogbn-products"),
    "time-IL": ("ogbn-arxiv", "ogbn-mag"),
}
"""The data sets of BeGin's Figure 7 by incremental setting, under the paper's names."""
METRICS: Mapping[str, str] = {"AP": "4", "AF": "5", "INT": "6"}
"""The metrics of the figure, and the tables that print them."""
_ISOLATION = "parameter-isolation-based"
SHORT_NAMES: Mapping[str, str] = {"regularization-based": "Reg", "replay-based": "Rep", _ISOLATION: "PI"}
"""The paper's categories, with short names for narrow tables."""
_DECLARED: Mapping[str, str] = {**SHORT_NAMES, _ISOLATION: "Iso"}
"""The paper's categories by the categories that plugins declare."""


@dataclass(frozen=True, kw_only=True)
class RankedPanel:
    """The ranks for one metric in one incremental setting.

    Args:
        metric: its label. setting: the incremental setting. better: the better direction, ``up`` or ``down``.
        ranks: the result of :func:`cglsuite.stats.ranking`; empty if refused, with the reason in ``refused``.
        averages: the result of :func:`cglsuite.stats.average_ranks` over all methods except references, which do not compete;
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
        """The categories with at least one rank."""
        return list(dict.fromkeys(self.ranks["category"]))

    @cached_property
    def tests(self) -> pd.DataFrame:
        """Welch's tests between categories (see :func:`cglsuite.stats.category_tests`)."""
        return stats.category_tests(self.ranks)

    @cached_property
    def scenario_tests(self) -> pd.DataFrame:
        """Tests between categories with the scenario as the unit (see :func:`cglsuite.stats.scenario_tests`)."""
        return stats.scenario_tests(self.ranks)


# --- the paper's figure ------------------------------------------------------------------------------------------------------------


def begin_figure_7() -> list[RankedPanel]:
    """Rank the means of Tables 4 to 6 as in Figure 7, for three metrics in three settings. Parameter isolation occurs only in task-IL."""
    return [begin_ranks(metric, setting) for metric in METRICS for setting in SCENARIOS]


def begin_ranks(metric: str, setting: str) -> RankedPanel:
    """Compute the ranks in one panel of the figure.

    Raises:
        UnknownNameError: if the figure has no such metric or setting.
    """
    for kind, name, known in (("metric of Figure 7", metric, METRICS), ("setting of Figure 7", setting, SCENARIOS)):
        if name not in known:
            raise UnknownNameError(kind, name, known)
    table = _printed_means(metric)
    mine = (table["problem"] == "NC") & (table["setting"] == setting) & table["dataset"].isin(SCENARIOS[setting])
    frame = table[mine].rename(columns={"dataset": "scenario"})[["scenario", "method", "value"]]
    categories = {name: methods for name, methods in stats.CATEGORIES.items() if setting == "task-IL" or name != _ISOLATION}
    return _ranked(metric, setting, "up" if metric == "AP" else "down", frame, categories, "min")


def begin_levels() -> list[RankedPanel]:
    """Rank the means of Tables 4 to 6 by problem level, and over all levels for the methods that occur at every level."""
    panels = []
    for metric in METRICS:
        table = _printed_means(metric)
        table = table.assign(scenario=table["problem"] + " " + table["dataset"] + " " + table["setting"])
        everywhere = set.intersection(*(set(part["method"]) for _, part in table.groupby("problem")))
        levels = {str(level): part for level, part in table.groupby("problem", sort=False)}
        levels["all levels"] = table[table["method"].isin(everywhere)]
        panels += [
            _ranked(metric, name, "up" if metric == "AP" else "down", part, stats.CATEGORIES, "min") for name, part in levels.items()
        ]
    return panels


def _printed_means(metric: str) -> pd.DataFrame:
    """The rows of one of BeGin's Tables 4 to 6 that print a mean, in the column ``value``."""
    table = published_results()
    mine = (table["paper"] == "BeGin") & (table["table"] == METRICS[metric]) & (table["metric"] == metric) & table["mean"].notna()
    return table[mine].rename(columns={"mean": "value"})


def printed_tests(ranked: RankedPanel) -> pd.DataFrame:
    """Compare the tests of a panel with the published ones.

    Returns:
        The columns of :attr:`RankedPanel.tests`, printed_t, printed_p (float64), and ``agrees``: whether t and p are equal to every printed
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
    """The ranks of a campaign's methods, by metric, setting and category.

    Args:
        metrics: names of their definitions. categories: methods by category. outside: methods with a result that are in none of these
            categories. ranked: one per metric and setting.
    """

    results: CampaignResults
    metrics: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]
    outside: tuple[str, ...]
    ties: str
    ranked: tuple[RankedPanel, ...]


def category_study(
    results: CampaignResults,
    catalogue: Catalogue,
    metrics: str | Sequence[str] = ("average_performance", "forgetting_from_diagonal", "intransigence"),
    categories: Mapping[str, Sequence[str]] | None = None,
    *,
    ties: str = "min",
) -> CategoryStudy:
    """Rank the methods of a campaign within each scenario (a preset with one backbone) by the mean over the records of a group.

    Args:
        metrics: names of their definitions. categories: methods by category; default: the categories declared by their plugins.
        ties: one of :data:`cglsuite.stats.TIES`.

    Raises:
        UnknownNameError: if a metric or the rule for ties is unknown. UsageError: if a method is in two categories.
    """
    metrics = [metric_named(word, results.metrics).name for word in listed(metrics)]
    methods = list(dict.fromkeys(group.method for group in results.groups))
    members_of = {name: tuple(members) for name, members in (categories or _declared(catalogue, methods)).items()}
    members = {method.lower() for some in members_of.values() for method in some}
    frame, settings = summary(results), _settings(results)
    scenarios = frame["preset"] + " × " + frame["backbone"]
    frame = frame.assign(scenario=scenarios, setting=frame["preset"].map(settings), value=frame["mean"])
    ranked = []
    for name in metrics:
        spec: MetricSpec = results.metrics[name]
        for setting in dict.fromkeys(settings.values()):
            part = frame[(frame["metric"] == name) & (frame["setting"] == setting)]
            if len(part):
                ranked.append(_ranked(spec.title, setting, spec.direction, part, members_of, ties, results.references))
    outside = tuple(method for method in methods if method.lower() not in members)
    return CategoryStudy(results=results, metrics=tuple(metrics), categories=members_of, outside=outside, ties=ties, ranked=tuple(ranked))


def compared_with_print(study: CategoryStudy) -> pd.DataFrame:
    """Compare our mean ranks by category with those of the printed tables, for the same methods in the same scenarios.

    Only scenarios that use a paper's unchanged protocol and backbone, and methods with a printed value, are included.

    Returns:
        Columns metric (its label), setting, category, scenarios, ranks (how many are pooled), ours and printed (mean ranks, 1 is best),
        methods (in the panel, whatever their category) and tau (Kendall's, between both average ranks of all of them; NaN where there are
        fewer than three).
    """
    rows = []
    for name in study.metrics:
        spec: MetricSpec = study.results.metrics[name]
        for setting, part in _printed_pairs(study, name).groupby("setting", sort=False):
            what = (spec.title, str(setting), spec.direction)
            sides = (part.assign(value=part[side]) for side in ("ours", "printed"))
            how = study.categories, study.ties, study.results.references
            rows += _with_printed_ranks(*(_ranked(*what, values, *how) for values in sides))
    columns = ["metric", "setting", "category", "scenarios", "ranks", "ours", "printed", "methods", "tau"]
    return pd.DataFrame(rows, columns=columns)


def _printed_pairs(study: CategoryStudy, metric: str) -> pd.DataFrame:
    """Our mean and the printed one for every scenario and method with both: columns scenario, setting, method, ours, printed."""
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


def _with_printed_ranks(ours: RankedPanel, printed: RankedPanel) -> list[dict[str, Any]]:
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
    """The methods of a campaign by the categories of BeGin's figure, as declared by their plugins."""
    specs = catalogue.specs(MethodSpec)
    category_of = {method: specs[method].category if method in specs else "other" for method in methods}
    return {
        name: tuple(m for m in methods if category_of[m] == short) for name, short in _DECLARED.items() if short in category_of.values()
    }


def _settings(results: CampaignResults) -> dict[str, str]:
    return {group.preset: str(group.records[0].scenario["setting"]) for group in results.groups}


def _ranked(
    metric: str,
    setting: str,
    better: str,
    frame: pd.DataFrame,
    categories: Mapping[str, Sequence[str]],
    ties: str,
    references: Collection[str] = (UPPER_BOUND,),
) -> RankedPanel:
    empty = pd.DataFrame(columns=["scenario", "category", "method", "value", "rank"])
    try:
        ranks = stats.category_ranks(frame, categories, ties=ties, higher_is_better=better == "up")
        competing = frame[~frame["method"].str.lower().isin(references)]
        averages = stats.average_ranks(competing, ties=ties, higher_is_better=better == "up")
    except stats.Refused as refusal:
        averages = pd.DataFrame(columns=["method", "rank", "n_scenarios"])
        return RankedPanel(metric=metric, setting=setting, better=better, ranks=empty, averages=averages, refused=str(refusal))
    return RankedPanel(metric=metric, setting=setting, better=better, ranks=ranks, averages=averages)


_TIES = {"min": "the lowest of their ranks", "average": "the average of their ranks", "max": "the highest of their ranks"}

_SHORT = ", ".join(f"{short}: {name}" for name, short in SHORT_NAMES.items()) + "."


# --- the paper's figure ------------------------------------------------------------------------------------------------------------


def begin_boxes() -> Gallery:
    """Draw Figure 7 (a) from the printed tables, one figure per metric."""
    return _gallery(begin_figure_7(), "BeGin, node classification")


def begin_tests() -> Fragment:
    """Tabulate our tests of the printed means next to the paper's, as in Figure 7 (b)."""
    rows = [{**row, "title": _title(panel)} for panel in begin_figure_7() for row in as_rows(printed_tests(panel))]
    columns = [
        *(_PAIR, _COUNTS, number("t", digits=4), _p("p", "p"), number("t, printed", "printed_t", 4), _p("p, printed", "printed_p")),
        words("to every printed digit", lambda row: badge("yes", "good") if row["agrees"] else badge("no", "note")),
    ]
    agreeing = sum(bool(row["agrees"]) for row in rows)
    about = f"{agreeing} of {len(rows)} tests agree to every printed digit; for the others, the printed tables give the values shown here. "
    return framed(rows, columns, f"{about}{pooled_size()} {_SHORT}", by="title")


def _title(panel: RankedPanel) -> str:
    return f"{panel.metric}, {panel.setting}"


def begin_averages() -> Fragment:
    """Tabulate the average ranks of all methods in BeGin's tables, in the scenarios of the figure."""
    return _average_tables(begin_figure_7(), "min")


def level_averages() -> Fragment:
    """Tabulate the average ranks of all methods in BeGin's tables, by problem level and over all levels."""
    return _average_tables(begin_levels(), "min")


# --- a campaign --------------------------------------------------------------------------------------------------------------------


def overview(study: CategoryStudy) -> Fragment:
    """Show the campaign, its categories, and the rule for ties."""
    parts = {name: ", ".join(methods) for name, methods in study.categories.items() if methods}
    parts |= {"no category here": ", ".join(study.outside)} if study.outside else {}
    parts["ties share"] = _TIES[study.ties]
    return join([_message(study), campaign_overview(study.results), definition_list(parts.items())])


def _message(study: CategoryStudy) -> Fragment | None:
    """Key results: by setting and metric, the mean rank of every category, and the method with the lowest."""
    lines = []
    for panel in study.ranked:
        if len(panel.categories) > 1:
            means = panel.ranks.groupby("category", sort=False)["rank"].mean().sort_values(kind="stable")
            lowest = panel.averages["rank"].min()
            first = [*panel.averages.loc[panel.averages["rank"] == lowest, "method"]]
            leading = join_names([str(name) for name, rank in means.items() if rank_level(rank) == rank_level(means.iloc[0])])
            others = [f"{name} {rank:.1f}" for name, rank in means.items() if rank_level(rank) > rank_level(means.iloc[0])]
            said = f": {leading} {'ranks' if len(means) - len(others) == 1 else 'rank'} first with a mean rank of {means.iloc[0]:.1f}"
            said += f"{f', ahead of {join_names(others)}' if others else ''}. Of single methods, {join_names(first)} "
            said += f"{'ranks' if len(first) == 1 else 'rank'} first ({lowest:.1f}) "
            said += f"[{several(int(panel.ranks['scenario'].nunique()), 'scenario')}, not tested]."
            lines.append(element("li", element("strong", f"{panel.setting.replace('-il', '-IL')}, {panel.metric}"), said))
    return key_box(lines) if lines else None


def boxes(study: CategoryStudy) -> Gallery | Fragment:
    """Draw one figure per metric with the ranks of every category, by incremental setting."""
    shown = [panel for panel in study.ranked if len(panel.ranks)]
    return _gallery(shown, study.results.title) if shown else empty(_no_ranks(study))


def scenario_tests(study: CategoryStudy) -> Fragment:
    """Tabulate the tests between categories with the scenario as the unit, or the reasons for refusals, by metric and setting."""
    columns = [
        *(_PAIR, words("verdict", _scenario_verdict, "nowrap"), number("scenarios")),
        *(number("first ranks better", "wins"), number("second ranks better", "losses")),
        *(number("difference of mean ranks", "estimate", 2, plus=True), Column("95% interval", _interval)),
        *(number("statistic", digits=1), _p("p", "p"), _p("p, Holm", "p_adjusted")),
    ]
    about = "Wilcoxon's signed-rank test of the mean ranks of two categories, paired over scenarios after averaging over seeds; at least "
    about += (
        f"{stats.MIN_SCENARIOS} scenarios. The claim is about these methods in scenarios like these. A negative difference favours the "
    )
    about += f"first. {_SHORT}"
    rows = _rows_of(study, lambda panel: panel.scenario_tests)
    return framed(rows, columns, about, none=_no_ranks(study), by="title", refused=_unfit)


def _scenario_verdict(row: Mapping[str, Any]) -> Fragment:
    return badge(row["verdict"], "plain" if row["verdict"] == stats.NO_DIFFERENCE else "good")


def _rows_of(study: CategoryStudy, function: Callable[[RankedPanel], pd.DataFrame]) -> list[Mapping[str, Any]]:
    """The rows of every panel, or the reason why it has none."""
    rows: list[Mapping[str, Any]] = []
    for panel in study.ranked:
        if panel.refused or len(panel.categories) < 2:
            reason = panel.refused or "fewer than two categories have a method here"
            rows.append({"title": _title(panel), "first": "all pairs", "refused": reason})
        else:
            rows += [{**row, "title": _title(panel)} for row in as_rows(function(panel))]
    return rows


def tests(study: CategoryStudy) -> Fragment:
    """Tabulate Welch's tests of pooled ranks (as in the paper), or the reasons for refusals, by metric and setting."""
    columns = [
        *(_PAIR, _COUNTS, number("t", digits=4), number("df", digits=1), _p("p", "p")),
        *(number("difference of mean ranks", "estimate", 2, plus=True), Column("95% interval", _interval)),
    ]
    about = f"As printed: Welch's t-tests of pooled ranks, as in BeGin's Figure 7; a negative t favours the first. {pooled_size()} {_SHORT}"
    return framed(_rows_of(study, lambda panel: panel.tests), columns, about, none=_no_ranks(study), by="title", refused=_unfit)


def pooled_size() -> str:
    """State how often, in simulations, Welch's test on pooled ranks finds a difference between identical categories."""
    shares = [
        stats.error_rate("categories", f"4 scenarios, {methods}")["Welch on pooled ranks, as printed"]
        for methods in ("methods alike", "methods differ as much as within a scenario", "methods differ much more")
    ]
    return (
        "These p values are not evidence. At a level of 5%, the test finds a difference between categories from one population in "
        f"{shares[0]:.0f}% of cases if all methods are equally good, in {shares[1]:.0f}% if they differ as much as results do within a "
        f"scenario, and in {shares[2]:.0f}% if they differ much more."
    )


def _unfit(row: Mapping[str, Any]) -> tuple[int, str] | None:
    return (2 if "second" in row else 1, f"refused: {row['refused']}") if row["refused"] else None


def _interval(row: Mapping[str, Any]) -> Fragment:
    text = " to ".join(number_text(row[end], 2, plus=True) for end in ("low", "high"))
    return element("td", text, class_="number", data_low=repr(float(row["low"])), data_high=repr(float(row["high"])))


def beside(study: CategoryStudy) -> Fragment:
    """Tabulate our mean ranks by category next to the printed tables' ranks, for the same methods in the same scenarios."""
    frame = compared_with_print(study)

    def title(row: Mapping[str, Any]) -> str:
        tau, n = row["tau"], row["methods"]
        agreement = f"; Kendall's τ of {n} methods' average ranks: {number_text(tau, 2)}" if tau == tau else ""
        return f"{row['metric']}, {row['setting']}{agreement}"

    columns = [
        *(label("category"), number("scenarios"), number("ranks"), number("mean rank, ours", "ours", 2)),
        number("mean rank, printed", "printed", 2),
        number("difference", lambda row: row["ours"] - row["printed"], 2, plus=True),
    ]
    about = "Within each scenario, the methods with both values are ranked by our means and by the printed ones; 1 is best. "
    none = "No scenario of this campaign follows a paper's protocol unchanged and has printed values for methods of a category."
    return framed(frame, columns, about + f"Ties share {_TIES[study.ties]}.", none=none, by=title)


def averages(study: CategoryStudy) -> Fragment:
    """Tabulate the average rank of every method over the scenarios of a setting, for each metric."""
    return _average_tables(study.ranked, study.ties) if study.ranked else empty(_no_ranks(study))


# --- parts of both -----------------------------------------------------------------------------------------------------------------


def _gallery(panels: Sequence[RankedPanel], source: str) -> Gallery:
    order = list(dict.fromkeys(name for panel in panels for name in panel.categories))
    pictures = []
    for metric, some in itertools.groupby(panels, key=lambda panel: panel.metric):
        shown = list(some)
        title = f"{metric}, {'higher' if shown[0].better == 'up' else 'lower'} is better"
        draw = partial(rank_boxes, shown, title=title, order=order)
        pictures.append(picture(draw, f"Ranks by category, {source}, {metric}. {'; '.join(map(_mean_ranks, shown))}", group=source))
    return Gallery(tuple(pictures))


def _mean_ranks(panel: RankedPanel) -> str:
    mean = panel.ranks.groupby("category", sort=False)["rank"].mean()
    return f"{panel.setting}: mean rank " + ", ".join(f"{name} {rank:.2f}" for name, rank in mean.items())


def _average_tables(panels: Sequence[RankedPanel], ties: str) -> Fragment:
    """A table per metric: a row per method, a column per setting."""
    parts = []
    for metric, some in itertools.groupby(panels, key=lambda panel: panel.metric):
        shown = list(some)
        ranks = {(row["method"], panel.setting): row for panel in shown for row in as_rows(panel.averages)}
        methods = list(dict.fromkeys(method for method, _ in ranks))
        columns = [label("method", str), *(crossed(panel.setting, ranks, panel.setting, _average) for panel in shown)]
        refused = "; ".join(f"{panel.setting}: refused: {panel.refused}" for panel in shown if panel.refused)
        about = f": average rank among all methods except references such as joint training (number of scenarios); ties share {_TIES[ties]}"
        parts.append(framed(methods, columns, titled(metric, about, f"; {refused}" if refused else None)))
    return join(parts)


def _average(row: Mapping[str, Any]) -> Fragment:
    rank, n = float(row["rank"]), row["n_scenarios"]
    shown = element("span", f" ({n})", class_="sd")
    return element("td", number_text(rank, 2), shown, class_="number", data_value=repr(rank), data_n=n)


_PAIR = label(
    "first − second", lambda row: " − ".join(SHORT_NAMES.get(row[name], row[name]) for name in ("first", "second") if name in row)
)
_COUNTS = words("ranks", lambda row: f"{row['n']}, {row['n_second']}", "number", "number")


def _p(head: str, of: str) -> Column:
    return Column(head, lambda row: _p_cell(row[of], 4))


def _p_cell(value: float, digits: int) -> Fragment:
    text = number_text(value, digits) if value >= 10**-digits else f"{value:.{digits}e}".replace("-", "−")
    return element("td", text, class_="number", data_value=repr(float(value)))


def _no_ranks(study: CategoryStudy) -> str:
    return "None of the metrics has a value yet." if study.results.groups else NOTHING_DONE


# Box plots of ranks by category of method, as in BeGin's Figure 7 (a).


def rank_boxes(panels: Sequence[RankedPanel], theme: Theme, *, title: str, order: Sequence[str]) -> Figure:
    """Draw one panel per incremental setting, stacked vertically. A box summarises the ranks of a category, and every rank is a point.

    The box spans the quartiles, its line is the median, the whiskers reach the extremes, and the upright mark is the mean.

    Args:
        order: the categories; their positions determine the colours.
    """
    counts, lines = [len(panel.categories) for panel in panels], wrapped(title, 4.6, 10.5)
    row, gap, below, above = 0.34, 0.34, 0.46, 0.16 + 0.19 * len(lines)
    left, inner = 0.3 + 0.075 * max(len(name) for panel in panels for name in panel.categories), 2.9
    width, height = left + inner + 0.2, sum(row * n + gap for n in counts) + below + above
    most = max(float(panel.ranks["rank"].max()) for panel in panels)
    figure, top = Figure(figsize=(width, height)), height - above
    for place, (panel, n) in enumerate(zip(panels, counts, strict=True)):
        top -= gap
        axes = figure.add_axes((left / width, (top - row * n) / height, inner / width, row * n / height))
        top -= row * n
        _boxes(axes, panel, theme, order)
        axes.set_title(panel.setting, loc="left", fontsize=9, color=theme.quiet, pad=3)
        axes.set_xlim(0.4, most + 0.6)
        if place < len(panels) - 1:
            axes.set_xticklabels([])
        else:
            axes.set_xlabel("rank within a scenario, 1 = best")
    headline(figure, lines, theme)
    return figure


def _boxes(axes: Axes, panel: RankedPanel, theme: Theme, order: Sequence[str]) -> None:
    names = panel.categories
    values = [panel.ranks.loc[panel.ranks["category"] == name, "rank"].to_numpy(dtype=np.float64) for name in names]
    colours = {name: theme.lines[order.index(name) % len(theme.lines)] for name in names}
    box_rows(axes, list(zip(names, values, strict=True)), theme, colours=colours)
    for place, (name, scores) in enumerate(zip(names, values, strict=True)):
        ranks, count = np.unique(scores, return_counts=True)
        y = len(names) - 1 - place + np.concatenate([0.09 * (np.arange(n) - (n - 1) / 2) for n in count])
        axes.plot(np.repeat(ranks, count), y, markersize=3.6, markeredgewidth=0, linestyle="none", marker="o", color=colours[name])
    plain_axes(axes, theme, "x")
    row_titles(axes, theme)
