"""The page of ranks by category. It formats what :mod:`cglsuite.reports.studies.categories.compute` computes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.htmltable import definition_list, empty, group_title, head_cell, number_cell, number_text, row_head, table
from cglsuite.reports.kit.notices import key_box
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
    rows: list[list[Fragment]] = []
    agreeing = total = 0
    head = [head_cell("first − second", "name"), *(head_cell(text, "number") for text in ("ranks", "t", "p", "t, printed", "p, printed"))]
    head.append(head_cell("to every printed digit"))
    for panel in category_study.begin_figure_7():
        frame = category_study.printed_tests(panel)
        rows.append([group_title(f"{panel.metric}, {panel.setting}", len(head))])
        rows += [_begin_row(row) for row in as_rows(frame)]
        agreeing, total = agreeing + int(frame["agrees"].sum()), total + len(frame)
    about = (
        f"{agreeing} of {total} tests agree to every printed digit; for the others, the printed tables give the values shown here. {_SHORT}"
    )
    return table(head, rows, about)


def _begin_row(row: Mapping[str, Any]) -> list[Fragment]:
    badge = element("span", "yes" if row["agrees"] else "no", class_=f"badge {'good' if row['agrees'] else 'note'}")
    numbers = [number_cell(row["t"], 4), _p_cell(row["p"], 4), number_cell(row["printed_t"], 4), _p_cell(row["printed_p"], 4)]
    return [_pair(row), _counts(row), *numbers, element("td", badge)]


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
    rows: list[list[Fragment]] = []
    head = [
        head_cell("first − second", "name"),
        *(head_cell(text, "number") for text in ("ranks", "t", "df", "p", "difference of mean ranks")),
    ]
    head.append(head_cell("95 % interval", "number"))
    for panel in study.ranked:
        rows.append([group_title(f"{panel.metric}, {panel.setting}", len(head))])
        if panel.refused or len(panel.categories) < 2:
            reason = panel.refused or "fewer than two categories have a method here"
            rows.append([row_head("all pairs"), element("td", f"refused: {reason}", class_="quiet long", colspan=len(head) - 1)])
            continue
        rows += [_test_row(row, len(head)) for row in as_rows(panel.tests)]
    about = (
        "Welch's t-tests of ranks, as in BeGin's Figure 7; a negative t favours the first. These p values are no evidence by themselves. "
    )
    about += _SHORT
    return table(head, rows, about) if rows else empty(_nothing(study))


def _test_row(row: Mapping[str, Any], width: int) -> list[Fragment]:
    name = _pair(row)
    if row["refused"]:
        return [name, _counts(row), element("td", f"refused: {row['refused']}", class_="quiet long", colspan=width - 2)]
    text = f"{number_text(row['low'], 2, plus=True)} to {number_text(row['high'], 2, plus=True)}"
    interval = element("td", text, class_="number", data_low=repr(float(row["low"])), data_high=repr(float(row["high"])))
    cells = [number_cell(row["t"], 4), number_cell(row["df"], 1), _p_cell(row["p"], 4), number_cell(row["estimate"], 2, plus=True)]
    return [name, _counts(row), *cells, interval]


def beside(study: CategoryStudy) -> Fragment:
    """Our mean ranks by category beside those of the printed tables, over the same methods in the same scenarios."""
    frame = category_study.beside_print(study)
    if frame.empty:
        return empty("No scenario of this campaign is a paper's protocol unchanged with printed values of methods in a category.")
    head = [head_cell("category", "name")]
    head += [head_cell(text, "number") for text in ("scenarios", "ranks", "mean rank, ours", "mean rank, printed", "difference")]
    rows: list[list[Fragment]] = []
    for (metric, setting), part in frame.groupby(["metric", "setting"], sort=False):
        tau = part["tau"].iloc[0]
        agreement = f"; Kendall's τ of {part['methods'].iloc[0]} methods' average ranks: {number_text(tau, 2)}" if tau == tau else ""
        rows.append([group_title(f"{metric}, {setting}{agreement}", len(head))])
        for row in as_rows(part):
            numbers = [number_cell(row["scenarios"], 0), number_cell(row["ranks"], 0)]
            numbers += [number_cell(row[side], 2) for side in ("ours", "printed")]
            rows.append([row_head(row["category"]), *numbers, number_cell(row["ours"] - row["printed"], 2, plus=True)])
    about = "Methods are ranked within each scenario by our means and by the printed ones, over the methods that have both; 1 is best. "
    return table(head, rows, about + f"Ties share {_TIES[study.ties]}.")


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
        by_setting = {panel.setting: {row["method"]: row for row in as_rows(panel.averages)} for panel in shown}
        methods = list(dict.fromkeys(name for by_method in by_setting.values() for name in by_method))
        rows = [[row_head(method), *(_average(by_method.get(method)) for by_method in by_setting.values())] for method in methods]
        head = [head_cell("method", "name"), *(head_cell(setting, "number") for setting in by_setting)]
        refused = "; ".join(f"{panel.setting}: refused: {panel.refused}" for panel in shown if panel.refused)
        about = f": average rank among all methods but joint training (number of scenarios); ties share {_TIES[ties]}"
        parts.append(table(head, rows, join([element("strong", metric), about, f"; {refused}" if refused else None])))
    return join(parts)


def _average(row: Mapping[str, Any] | None) -> Fragment:
    if row is None:
        return number_cell(None)
    number = element("span", f" ({row['n_scenarios']})", class_="sd")
    return element(
        "td", number_text(row["rank"], 2), number, class_="number", data_value=repr(float(row["rank"])), data_n=row["n_scenarios"]
    )


def _pair(row: Mapping[str, Any]) -> Fragment:
    return row_head(" − ".join(SHORT_NAMES.get(row[name], row[name]) for name in ("first", "second")))


def _counts(row: Mapping[str, Any]) -> Fragment:
    return element("td", f"{row['n']}, {row['n_second']}", class_="number")


def _p_cell(value: float, digits: int) -> Fragment:
    text = number_text(value, digits) if value >= 10**-digits else f"{value:.{digits}e}".replace("-", "−")
    return element("td", text, class_="number", data_value=repr(float(value)))


def _nothing(study: CategoryStudy) -> str:
    return "None of the metrics has a value yet." if study.results.groups else NOTHING_DONE
