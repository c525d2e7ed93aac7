"""The page of ranks by category. It formats what :mod:`cglsuite.reports.studies.categories.compute` computes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.columns import Column, crossed, framed, label, number, words
from cglsuite.reports.kit.htmltable import definition_list, empty, number_text, titled
from cglsuite.reports.kit.notices import badge, key_box
from cglsuite.reports.kit.pictures import Gallery, Theme, picture
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.overview import NOTHING_DONE
from cglsuite.reports.results.overview import overview as campaign_overview
from cglsuite.reports.studies.categories import compute as category_study
from cglsuite.reports.studies.categories.compute import SHORT_NAMES, CategoryStudy, Ranked
from cglsuite.reports.studies.categories.figures import rank_boxes

if TYPE_CHECKING:
    from cglsuite.reports.results.runs import Facts

__all__ = [
    "averages",
    "begin_averages",
    "begin_boxes",
    "begin_tests",
    "beside",
    "boxes",
    "overview",
    "problems",
    "provenance",
    "tests",
]

_TIES = {"min": "the lowest of their ranks", "average": "the average of their ranks", "max": "the highest of their ranks"}

_SHORT = ", ".join(f"{short}: {name}" for name, short in SHORT_NAMES.items()) + "."


# --- the paper's figure ------------------------------------------------------------------------------------------------------------


def begin_boxes() -> Gallery:
    """Figure 7 (a) from the printed tables: one figure per metric."""
    return _gallery(category_study.begin_figure_7(), "BeGin, node classification")


def begin_tests() -> Fragment:
    """Figure 7 (b): our tests of the printed means next to the paper's."""
    rows = [
        {**row, "title": _title(panel)} for panel in category_study.begin_figure_7() for row in as_rows(category_study.printed_tests(panel))
    ]
    columns = [
        *(_PAIR, _COUNTS, number("t", digits=4), _p("p", "p"), number("t, printed", "printed_t", 4), _p("p, printed", "printed_p")),
        words("to every printed digit", lambda row: badge("yes", "good") if row["agrees"] else badge("no", "note")),
    ]
    agreeing = sum(bool(row["agrees"]) for row in rows)
    about = f"{agreeing} of {len(rows)} tests agree to every printed digit; for the others, the printed tables give the values shown here. "
    return framed(rows, columns, about + _SHORT, by="title")


def _title(panel: Ranked) -> str:
    return f"{panel.metric}, {panel.setting}"


def begin_averages() -> Fragment:
    """The average ranks of all methods that BeGin's tables list, in the scenarios of the figure."""
    return _average_tables(category_study.begin_figure_7(), "min")


# --- a campaign --------------------------------------------------------------------------------------------------------------------


def overview(study: CategoryStudy) -> Fragment:
    """The campaign, its categories, and the rule for ties."""
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
            first = " and ".join(panel.averages.loc[panel.averages["rank"] == lowest, "method"])
            n = int(panel.ranks["scenario"].nunique())
            ranks = ", ".join(f"{name} {rank:.1f}" for name, rank in means.items())
            said = f": mean ranks {ranks}; lowest {lowest:.1f}, {first} ({n} scenario{'s' * (n != 1)})."
            lines.append(element("li", element("strong", f"{panel.setting.replace('-il', '-IL')}, {panel.metric}"), said))
    return key_box(lines) if lines else None


def boxes(study: CategoryStudy) -> Gallery | Fragment:
    """One figure per metric: the ranks of every category, by incremental setting."""
    shown = [panel for panel in study.ranked if len(panel.ranks)]
    return _gallery(shown, study.results.title) if shown else empty(_nothing(study))


def tests(study: CategoryStudy) -> Fragment:
    """Welch's tests between categories, by metric and setting; or the reason for a refusal."""
    rows: list[Mapping[str, Any]] = []
    for panel in study.ranked:
        if panel.refused or len(panel.categories) < 2:
            reason = panel.refused or "fewer than two categories have a method here"
            rows.append({"title": _title(panel), "first": "all pairs", "refused": reason})
        else:
            rows += [{**row, "title": _title(panel)} for row in as_rows(panel.tests)]
    columns = [
        *(_PAIR, _COUNTS, number("t", digits=4), number("df", digits=1), _p("p", "p")),
        *(number("difference of mean ranks", "estimate", 2, plus=True), Column("95 % interval", _interval)),
    ]
    about = (
        "Welch's t-tests of ranks, as in BeGin's Figure 7; a negative t favours the first. These p values are no evidence by themselves. "
    )
    about += _SHORT
    return framed(rows, columns, about, none=_nothing(study), by="title", refused=_unfit)


def _unfit(row: Mapping[str, Any]) -> tuple[int, str] | None:
    return (2 if "second" in row else 1, f"refused: {row['refused']}") if row["refused"] else None


def _interval(row: Mapping[str, Any]) -> Fragment:
    text = f"{number_text(row['low'], 2, plus=True)} to {number_text(row['high'], 2, plus=True)}"
    return element("td", text, class_="number", data_low=repr(float(row["low"])), data_high=repr(float(row["high"])))


def beside(study: CategoryStudy) -> Fragment:
    """Our mean ranks by category beside those of the printed tables, over the same methods in the same scenarios."""
    frame = category_study.beside_print(study)

    def title(row: Mapping[str, Any]) -> str:
        tau, n = row["tau"], row["methods"]
        agreement = f"; Kendall's τ of {n} methods' average ranks: {number_text(tau, 2)}" if tau == tau else ""
        return f"{row['metric']}, {row['setting']}{agreement}"

    columns = [
        *(label("category"), number("scenarios"), number("ranks"), number("mean rank, ours", "ours", 2)),
        number("mean rank, printed", "printed", 2),
        number("difference", lambda row: row["ours"] - row["printed"], 2, plus=True),
    ]
    about = "Methods are ranked within each scenario by our means and by the printed ones, over the methods that have both; 1 is best. "
    none = "No scenario of this campaign is a paper's protocol unchanged with printed values of methods in a category."
    return framed(frame, columns, about + f"Ties share {_TIES[study.ties]}.", none=none, by=title)


def averages(study: CategoryStudy) -> Fragment:
    """The average rank of every method over the scenarios of a setting, for each metric."""
    return _average_tables(study.ranked, study.ties) if study.ranked else empty(_nothing(study))


def problems(study: CategoryStudy) -> Fragment:
    """Every planned cell without a result, with its reason."""
    return show_runs.problems(study.results)


def provenance(study: CategoryStudy) -> Facts:
    """Code and environment of the records, with lines for the page footer."""
    return show_runs.provenance(study.results)


# --- parts of both -----------------------------------------------------------------------------------------------------------------


def _gallery(panels: Sequence[Ranked], source: str) -> Gallery:
    order = list(dict.fromkeys(name for panel in panels for name in panel.categories))
    pictures = []
    for metric, some in itertools.groupby(panels, key=lambda panel: panel.metric):
        shown = list(some)
        title = f"{metric}, {'higher' if shown[0].better == 'up' else 'lower'} is better"

        def draw(theme: Theme, shown: list[Ranked] = shown, title: str = title) -> Any:
            return rank_boxes(shown, theme, title=title, order=order)

        pictures.append(picture(draw, f"Ranks by category, {source}, {metric}. {'; '.join(map(_mean_ranks, shown))}", group=source))
    return Gallery(tuple(pictures))


def _mean_ranks(panel: Ranked) -> str:
    mean = panel.ranks.groupby("category", sort=False)["rank"].mean()
    return f"{panel.setting}: mean rank " + ", ".join(f"{name} {rank:.2f}" for name, rank in mean.items())


def _average_tables(panels: Sequence[Ranked], ties: str) -> Fragment:
    """A table per metric: a row per method, a column per setting."""
    parts = []
    for metric, some in itertools.groupby(panels, key=lambda panel: panel.metric):
        shown = list(some)
        ranks = {(row["method"], panel.setting): row for panel in shown for row in as_rows(panel.averages)}
        methods = list(dict.fromkeys(method for method, _ in ranks))
        columns = [label("method", str), *(crossed(panel.setting, ranks, panel.setting, _average) for panel in shown)]
        refused = "; ".join(f"{panel.setting}: refused: {panel.refused}" for panel in shown if panel.refused)
        about = f": average rank among all methods but joint training (number of scenarios); ties share {_TIES[ties]}"
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


def _nothing(study: CategoryStudy) -> str:
    return "None of the metrics has a value yet." if study.results.groups else NOTHING_DONE
