"""Results of several scenarios in one table, for a paper: methods by scenarios or the reverse, as LaTeX (booktabs), Markdown or CSV.

The numbers, their spread and the tests are those of the leaderboards. In each scenario and metric the best mean of the learners is marked,
and so is every learner that the design's test does not tell from it (all pairs, Holm). References, such as joint training, and methods
with missing repetitions are not marked.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.markup import csv_text
from cglsuite.host import Catalogue
from cglsuite.reports.kit.tables import as_rows, number_text
from cglsuite.reports.results.results import Results
from cglsuite.reports.results.variants import orders_in_all
from cglsuite.reports.site.boards import LEVEL, Board, Column, Score, boards, pairs_of, row_name
from cglsuite.reports.site.downloads import in_math, latex_text, one_line
from cglsuite.specs import MetricSpec, metric_named

AXES = ("method", "scenario")
FORMS = ("latex", "csv", "md")
SPREADS: Mapping[str, str] = {
    "std": "sample standard deviation over records that differ only in their seeds",
    "interval": f"half of the {LEVEL:.0%} interval of the mean over the design",
    "none": "",
}
"""The kinds of spread that may follow ±."""
Mark = Literal["best", "tied", ""]


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A score, its metric's column, and whether it is the scenario's best or not significantly different from it."""

    score: Score
    column: Column
    mark: Mark

    def text(self, spread: str) -> tuple[str, str]:
        """Mean and spread as text; the spread is empty if there is none."""
        half = {"std": self.score.std, "interval": (self.score.high - self.score.low) / 2, "none": float("nan")}[spread]
        return self._shown(self.score.mean), "" if half != half else self._shown(half)

    def _shown(self, value: float) -> str:
        return number_text(value * self.column.scale, self.column.digits)


@dataclass(frozen=True, kw_only=True)
class ResultsTable:
    """A table of results; ``str`` is its Markdown, and notebooks show it.

    Args:
        rows, columns: the names along both sides; each column holds all ``metrics``. entries: by row, column and name of the metric.
        axes: what rows and columns are. spread: a key of :data:`SPREADS`. notes: what was tested, and what was not marked and why.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    metrics: tuple[Column, ...]
    entries: Mapping[tuple[str, str, str], _Entry]
    axes: tuple[str, str]
    spread: str
    notes: tuple[str, ...]

    def render(self, form: str) -> str:
        """The table in one of :data:`FORMS`."""
        return {"latex": self.to_latex, "csv": self.to_csv, "md": self.to_markdown}[form]()

    @property
    def frame(self) -> pd.DataFrame:
        """One line per row, column and metric: the unrounded mean, std, n, interval (low, high) and the mark."""
        return pd.DataFrame(
            [
                {self.axes[0]: row, self.axes[1]: column, "metric": name}
                | {part: getattr(entry.score, part) for part in ("mean", "std", "n", "low", "high")}
                | {"mark": entry.mark}
                for (row, column, name), entry in self.entries.items()
            ]
        )

    def to_csv(self) -> str:
        """:attr:`frame` as CSV."""
        frame = self.frame
        texts = [*self.axes, "metric", "mark"]
        buffer = io.StringIO()
        frame.assign(**{name: frame[name].map(csv_text) for name in texts}).to_csv(buffer, index=False, lineterminator="\n")
        return buffer.getvalue()

    def to_markdown(self) -> str:
        """A pipe table: the best in bold, what does not differ significantly from it in italics."""
        heads = [self._heading(column, metric) for column, metric in self._pairs()]
        body = [[row, *(self._marked(row, column, metric) for column, metric in self._pairs())] for row in self.rows]
        lines = [[self.axes[0], *heads], ["---", *("---:" for _ in heads)], *body]
        table = "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)
        return f"{table}\n\n{' '.join(self.notes)}\n"

    def _marked(self, row: str, column: str, metric: Column) -> str:
        entry = self.entries.get((row, column, metric.name))
        if entry is None:
            return "–"
        mean, spread = entry.text(self.spread)
        star = {"best": "**", "tied": "*", "": ""}[entry.mark]
        return f"{star}{mean}{star}{f' ± {spread}' if spread else ''}"

    def to_latex(self) -> str:
        """A ``tabular`` for booktabs: the best in bold, what does not differ significantly from it underlined."""
        several = len(self.columns) > 1 and len(self.metrics) > 1
        groups = [rf"\multicolumn{{{len(self.metrics)}}}{{c}}{{{latex_text(column)}}}" for column in self.columns]
        rules = [rf"\cmidrule(lr){{{2 + n * len(self.metrics)}-{1 + (n + 1) * len(self.metrics)}}}" for n in range(len(self.columns))]
        heads = [latex_text(_head(metric) if several else self._heading(column, metric)) for column, metric in self._pairs()]
        lines = [f"% {one_line(note)}" for note in self.notes] + [r"% needs \usepackage{booktabs}"]
        lines.append(rf"\begin{{tabular}}{{l{'r' * len(heads)}}}")
        lines.append(r"\toprule")
        if several:
            lines += [rf" & {' & '.join(groups)} \\", "".join(rules)]
        lines += [rf"{self.axes[0]} & {' & '.join(heads)} \\", r"\midrule"]
        lines += [self._latex_row(row) for row in self.rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def _latex_row(self, row: str) -> str:
        texts = [latex_text(row)]
        for column, metric in self._pairs():
            entry = self.entries.get((row, column, metric.name))
            if entry is None:
                texts.append("--")
                continue
            mean, spread = map(in_math, entry.text(self.spread))
            wrapped = {"best": rf"\mathbf{{{mean}}}", "tied": rf"\underline{{{mean}}}", "": mean}[entry.mark]
            behind = rf" \pm {spread}" if spread else ""
            texts.append(f"${wrapped}{behind}$")
        return rf"{' & '.join(texts)} \\"

    def _pairs(self) -> Iterator[tuple[str, Column]]:
        return ((column, metric) for column in self.columns for metric in self.metrics)

    def _heading(self, column: str, metric: Column) -> str:
        """The heading that distinguishes a column of the table from the others."""
        if len(self.columns) > 1 and len(self.metrics) > 1:
            return f"{column}: {_head(metric)}"
        return column if len(self.columns) > 1 else _head(metric)

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def results_table(
    results: Results,
    catalogue: Catalogue,
    *,
    rows: str = "method",
    columns: str = "scenario",
    metrics: Sequence[str] = (),
    spread: str = "std",
) -> ResultsTable:
    """The table of a campaign's or a store's results.

    Args:
        rows, columns: one of :data:`AXES` each. metrics: as :func:`cglsuite.specs.metric_named` reads them; default: the first of
            the leaderboards.
        spread: what stands behind ±, a key of :data:`SPREADS`.

    Raises:
        UsageError: no result, an axis twice, or an unknown axis, metric or spread.
    """
    for what, value, known in (("rows", rows, AXES), ("columns", columns, AXES), ("spread", spread, SPREADS)):
        if value not in known:
            raise UnknownNameError(f"value of {what}", value, known)
    if rows == columns:
        raise UsageError(f"rows and columns are both {rows!r}; expected one to be method and the other scenario")
    tables = boards(results, catalogue)
    if not tables:
        raise UsageError("there is no finished result to show: run the campaign first, or name another store")
    by_key = results.frame.set_index("key")
    shown_columns = _selected_columns(tables, metrics, results.metrics)
    several = len({row.group.backbone for board in tables for row in board.rows}) > 1
    titles = _titles(tables)
    entries: dict[tuple[str, str, str], _Entry] = {}
    missing_marks = dict[str, None]()
    for board in tables:
        for metric in shown_columns:
            column = next((c for c in board.columns if c.name == metric.name), None)
            if column is None:
                continue
            marks = _marks(board, column, by_key, missing_marks)
            for number, row in enumerate(board.rows):
                if column.name in row.scores:
                    names = {"method": row_name(row, several), "scenario": titles[board.preset]}
                    entry = _Entry(score=row.scores[column.name], column=column, mark=marks.get(number, ""))
                    entries[names[rows], names[columns], column.name] = entry
    sides = [tuple(dict.fromkeys(key[n] for key in entries)) for n in (0, 1)]
    return ResultsTable(
        rows=sides[0],
        columns=sides[1],
        metrics=tuple(shown_columns),
        entries=entries,
        axes=(rows, columns),
        spread=spread,
        notes=tuple(_notes(shown_columns, spread, missing_marks)),
    )


def _head(metric: Column) -> str:
    return metric.headed(f" ({metric.unit})" if metric.unit else "")


def _selected_columns(all_boards: Sequence[Board], metrics: Sequence[str], specs: Mapping[str, MetricSpec]) -> list[Column]:
    """The columns of the selected metrics, in that order; by default the first column."""
    known = {column.name: column for board in all_boards for column in board.columns if column.metric}
    if not metrics:
        return [next(iter(known.values()))]
    here = {name: specs[name] for name in known}
    return [known[name] for name in dict.fromkeys(metric_named(word, here, "metric of these results").name for word in metrics)]


def _titles(all_boards: Sequence[Board]) -> dict[str, str]:
    """Presets by their titles if these are unique, else by their names."""
    titles = [board.title for board in all_boards]
    return {board.preset: board.title if titles.count(board.title) == 1 else board.preset for board in all_boards}


def _marks(board: Board, column: Column, by_key: pd.DataFrame, missing_marks: dict[str, None]) -> dict[int, Mark]:
    """By row, the learners' best mean and rows not significantly different from it; ``missing_marks`` gets reasons."""
    compared = {id(row) for row in board.compared if column.name in row.scores}
    rivals = {n: row for n, row in enumerate(board.rows) if row.section == 0 and id(row) in compared}
    learners = [family for family in board.families if family.section == 0 and family.range(column) is not None]
    if len(learners) < 2 or not column.better:
        return {}
    if any(family.selected is None for family in learners):
        missing_marks[f"{board.title}: nothing is marked, since the best variant of a method would be selected on test data."] = None
        return {}
    if any(family.swept for family in learners):
        missing_marks[f"{board.title}: of the settings of one method, only the one that validation chose can be marked."] = None
    means = {n: column.sign * row.scores[column.name].mean for n, row in rivals.items()}
    best = max(means.values())
    marks: dict[int, Mark] = {n: "best" for n, mean in means.items() if mean == best}
    first = next(iter(marks))
    several = len({row.group.backbone for row in board.rows}) > 1
    names = {row_name(row, several): n for n, row in rivals.items()}
    tested = [row for row in board.rows if id(row) in compared]
    n_possible_orders = orders_in_all([record for row in tested for record in row.records])
    for test in as_rows(pairs_of(tested, by_key, column, n_possible_orders, several)):
        pair = {names.get(test["first"], -1), names.get(test["second"], -1)}
        if first not in pair or -1 in pair:
            continue
        (other,) = pair - {first}
        if test["refused"]:
            missing_marks[f"{board.title}: no test tells {column.label} apart ({test['refused']})."] = None
        elif other not in marks and not test["p_adjusted"] <= 1.0 - LEVEL:
            marks[other] = "tied"
    return marks


def _notes(metrics: Sequence[Column], spread: str, missing_marks: Mapping[str, None]) -> Iterator[str]:
    if SPREADS[spread]:
        yield f"Mean ± {SPREADS[spread]}."
    how = f"all pairs, Holm, {1 - LEVEL:.0%}"
    yield f"Marked: the best mean of the learners, and those that the design's test does not tell from it ({how})."
    yield from (f"{_head(metric)}: {metric.name} = {metric.formula or metric.summary}." for metric in metrics)
    yield from missing_marks


def _cell(text: str) -> str:
    return one_line(text).replace("|", r"\|")
