"""Export a leaderboard as CSV, as a LaTeX table (booktabs) and as BibTeX. Files are built row by row, so a page can export the rows it
shows.

Texts from plugins and records are escaped for each file format: a spreadsheet reads no cell as a formula, LaTeX reads no text as a command,
and no text ends a BibTeX entry.

Results of several scenarios are one table for a paper (:func:`results_table`): methods by scenarios or the reverse. The numbers, their
spread and the tests are those of the leaderboards. In each scenario and metric the best mean of the learners is marked, and so is every
learner that does not differ significantly from it (all pairs, Holm). References, such as joint training, and methods with missing
repetitions are not marked.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.markup import csv_text, plain_text
from cglsuite.host import Catalogue, Entry
from cglsuite.reports.kit.tables import as_rows, number_text
from cglsuite.reports.results.results import Results
from cglsuite.reports.results.variants import orders_in_all
from cglsuite.reports.site.boards import LEVEL, Board, Column, Row, Score, axis_value, board_frame, boards, pairs_of, row_name
from cglsuite.specs import Citation, MetricSpec, metric_named

__all__ = ["Download", "Piece", "board_downloads", "csv_text", "file_stem", "in_math", "latex_text", "single_line"]

_LATEX = {
    "\\": r"\textbackslash{}",
    # not \{ and \}: BibTeX counts braces even if escaped
    "{": r"\textbraceleft{}",
    "}": r"\textbraceright{}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "−": r"$-$",
}
_ARXIV = re.compile(r"arXiv:\s*(\d{4}\.\d{4,5})", re.IGNORECASE)
_DOI = re.compile(r"\b(10\.\d{4,9}/[-._;()/:A-Za-z0-9]*[A-Za-z0-9])")


@dataclass(frozen=True)
class Piece:
    """A piece of a file. It is hidden together with ``column``, and is replaced by ``best`` if the row is the best in that column."""

    text: str
    column: str = ""
    best: str = ""


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file in pieces: ``head``, then the pieces of each row in board order, then ``foot``.

    With ``once``, a piece shared by several rows appears once. ``shown``: the file's columns when the page runs
    without its script. ``best``: the rows with the best mean in each of these columns.
    """

    label: str
    name: str
    media: str
    head: tuple[Piece, ...]
    rows: tuple[tuple[Piece, ...], ...]
    foot: str = ""
    once: bool = False
    shown: frozenset[str] = frozenset()
    best: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The complete text of the file."""
        head = "".join(self._written(self.head))
        pieces = [text for number, row in enumerate(self.rows) for text in self._written(row, number)]
        return head + "".join(dict.fromkeys(pieces) if self.once else pieces) + self.foot

    def _written(self, pieces: Iterable[Piece], number: int = -1) -> list[str]:
        return [
            piece.best if piece.best and number in self.best.get(piece.column, ()) else piece.text
            for piece in pieces
            if not piece.column or piece.column in self.shown
        ]


def board_downloads(board: Board, catalogue: Catalogue) -> list[Download]:
    """Export a board as CSV (unrounded) and as a LaTeX table, and its citations as BibTeX."""
    return [_csv(board), _latex(board), _bibtex(board, catalogue)]


def file_stem(preset: str) -> str:
    """Turn a preset's name into a file name."""
    return re.sub(r"[^A-Za-z0-9._+@-]+", "-", preset).strip(".-") or "leaderboard"


def latex_text(text: str) -> str:
    """Escape text for LaTeX. The result is a single line with balanced braces, so it can also be used in a BibTeX field."""
    return "".join(_LATEX.get(c, c) for c in single_line(text))


def single_line(text: str) -> str:
    """Remove control characters from text, and join it into a single line."""
    return " ".join(plain_text(text).split())


def _csv(board: Board) -> Download:
    frame = board_frame(board)
    rows = [_csv_line([_csv_value(row[name]) for name in frame.columns]) for row in as_rows(frame)]
    return Download(
        label="CSV",
        name=f"{file_stem(board.preset)}.csv",
        media="text/csv",
        head=(Piece(_csv_line(map(csv_text, frame.columns))),),
        rows=tuple((Piece(row),) for row in rows),
    )


def _csv_line(cells: Iterable[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def _csv_value(value: Any) -> str:
    if isinstance(value, (int, float)):
        return "" if value != value else repr(value)
    return csv_text(value)


def _latex(board: Board) -> Download:
    """A LaTeX table of the shown columns, with the best mean of each metric in bold; incomplete rows and references never are."""
    axes = {name: latex_text(name.partition(".")[2] or name) for name in board.axes}
    names = {"method": "method", **{name: name for name in sorted(board.texts)}, "records": "$n$"}
    heads = names | {column.name: _latex_head(column) for column in board.columns}
    about = f"{board.preset}: {board.performance}; mean ± sample standard deviation over n records that differ only in their seeds"
    head = [Piece(f"% {single_line(about)}\n"), Piece(f"% {single_line(_BOLD)}\n")]
    head += [Piece(f"% {single_line(f'{c.label}: {c.name} = {c.formula or c.summary}')}\n", c.name) for c in board.columns]
    if axes:
        head.append(Piece(f"% {single_line(_OF_SWEEPS)}\n"))
    head.append(Piece("% needs \\usepackage{booktabs}\n\\begin{tabular}{"))
    head += [Piece(f"l{'r' * len(axes)}" if name == "method" else "l" if name in board.texts else "r", name) for name in heads]
    head.append(Piece("}\n\\toprule\n"))
    texts = {name: " & ".join([text, *axes.values()]) if name == "method" else text for name, text in heads.items()}
    head += [Piece(f"{' & ' if name != 'method' else ''}{text}", name) for name, text in texts.items()]
    head.append(Piece(" \\\\\n\\midrule\n"))
    rows = []
    compared = {id(row) for row in board.compared}
    for row in board.rows:
        pieces = [Piece(" & ".join(latex_text(str(text)) for text in (row.method, *(axis_value(row, name) for name in axes))), "method")]
        texts = {name: row.texts[name] for name in sorted(board.texts)} | {"records": str(len(row.records))}
        pieces += [Piece(f" & {latex_text(text)}", name) for name, text in texts.items()]
        pieces += [_latex_score(row, column, id(row) in compared) for column in board.columns]
        rows.append((*pieces, Piece(" \\\\\n")))
    return Download(
        label="LaTeX",
        name=f"{file_stem(board.preset)}.tex",
        media="application/x-tex",
        head=tuple(head),
        rows=tuple(rows),
        foot="\\bottomrule\n\\end{tabular}\n",
        shown=frozenset(heads) - {"category"} - (frozenset() if len(board.backbones) > 1 else {"backbone"}),
        best={column.name: _best(board, column) for column in board.columns if _ranked(column)},
    )


_OF_SWEEPS = "rows of one method are the settings of a sweep; only the setting chosen by validation can be bold"
_BOLD = "bold: the best mean of a metric among these rows, excluding incomplete rows and reference methods"


def _ranked(column: Column) -> bool:
    return column.metric and bool(column.better)


def _best(board: Board, column: Column) -> frozenset[int]:
    """The rows with the best mean."""
    compared = {id(row) for row in board.compared}
    rivals = {n: row for n, row in enumerate(board.rows) if id(row) in compared and _competes(row, column)}
    means = {n: column.sign * row.scores[column.name].mean for n, row in rivals.items()}
    return frozenset(n for n, mean in means.items() if mean == max(means.values()))


def _competes(row: Row, column: Column) -> bool:
    return column.name in row.scores and row.section == 0


def _latex_head(column: Column) -> str:
    return latex_text(column.headed(f" ({column.unit})" if column.unit else ""))


def _latex_score(row: Row, column: Column, compared: bool) -> Piece:
    score = row.scores.get(column.name)
    if score is None:
        return Piece(" & --", column.name)
    mean = _digits(score.mean, column)
    spread = "" if score.std != score.std else rf" \pm {_digits(score.std, column)}"
    bold = rf" & $\mathbf{{{mean}}}{spread}$" if compared and _ranked(column) and _competes(row, column) else ""
    return Piece(f" & ${mean}{spread}$", column.name, bold)


def _digits(value: float, column: Column) -> str:
    return in_math(number_text(value * column.scale, column.digits))


def in_math(number: str) -> str:
    """Format a number as :func:`cglsuite.reports.kit.tables.number_text` does, in LaTeX's math mode."""
    return number.replace(",", "{,}").replace("−", "-")


def _bibtex(board: Board, catalogue: Catalogue) -> Download:
    """Citations: of the scenario, dataset and metrics in the head, of methods and backbones per row; each once."""
    scenario = _find(catalogue, "scenario", board.scenario)
    dataset = _find(catalogue, "dataset", str(getattr(scenario.spec, "dataset", ""))) if scenario else None
    metrics = [_find(catalogue, "metric", column.name) for column in board.columns if column.metric]
    by_row = [[_find(catalogue, "method", row.method), _find(catalogue, "backbone", row.group.backbone)] for row in board.rows]
    shared = [scenario, dataset, *metrics]
    components = {(entry.kind, entry.name): entry for some in (shared, *by_row) for entry in some if entry is not None}
    entries = _entries(components.values())
    head = dict.fromkeys(cited for entry in shared for cited in _cited(entry))
    rows = [[entries[cited] for entry in some for cited in _cited(entry) if cited not in head] for some in by_row]
    about = "% Citations as given by the plugins of this leaderboard. A citation without fields becomes the note of a @misc entry.\n\n"
    return Download(
        label="BibTeX",
        name=f"{file_stem(board.preset)}.bib",
        media="application/x-bibtex",
        head=(Piece(about), *(Piece(entries[cited]) for cited in head)),
        rows=tuple(tuple(map(Piece, texts)) for texts in rows),
        once=True,
    )


def _find(catalogue: Catalogue, kind: str, name: str) -> Entry | None:
    return next((entry for entry in catalogue.entries(kind) if entry.name == name), None)


def _cited(entry: Entry | None) -> list[str | Citation]:
    parts = entry.spec.citations if entry is not None else ()
    return [part for part in (single_line(part) if isinstance(part, str) else part for part in parts) if part]


def _entries(components: Iterable[Entry]) -> dict[str | Citation, str]:
    """The BibTeX entry of every citation with what cites it. Keys are unique."""
    citing: dict[str | Citation, list[Entry]] = {}
    for component in components:
        for cited in _cited(component):
            citing.setdefault(cited, []).append(component)
    entries: dict[str | Citation, str] = {}
    taken: set[str] = set()
    for cited, by in citing.items():
        kind, name, fields = _fields(cited) if not isinstance(cited, str) else _fields_of_text(cited, by[0])
        key = re.sub(r"[^A-Za-z0-9:.+-]+", "-", name)
        key = next(candidate for candidate in (key, *(f"{key}-{n}" for n in range(2, len(citing) + 2))) if candidate not in taken)
        taken.add(key)
        fields["annote"] = f"cited by {'; '.join(f'{e.kind} {e.name} ({e.provider})' for e in by)}"
        body = "".join(f"  {field} = {{{latex_text(value)}}},\n" for field, value in fields.items())
        entries[cited] = f"@{kind}{{{key},\n{body}}}\n\n"
    return entries


def _fields_of_text(cited: str, component: Entry) -> tuple[str, str, dict[str, str]]:
    """A textual citation as the note of a ``@misc``, with the identifiers found in it."""
    text = single_line(cited)
    fields = {"note": text}
    if arxiv := _ARXIV.search(text):
        fields |= {"eprint": arxiv[1], "archiveprefix": "arXiv"}
    if doi := _DOI.search(text):
        fields["doi"] = doi[1]
    return "misc", f"{component.kind}:{component.name}", fields


def _fields(cited: Citation) -> tuple[str, str, dict[str, str]]:
    """The type of the entry, its key (author, year and the first word of the title), and its fields."""
    kind = "article" if cited.journal else "inproceedings" if cited.booktitle else "misc"
    fields = {"author": " and ".join(cited.authors), "title": cited.title, "year": str(cited.year)}
    fields |= {name: value for name, value in (("booktitle", cited.booktitle), ("journal", cited.journal)) if value}
    fields |= {"eprint": cited.arxiv, "archiveprefix": "arXiv"} if cited.arxiv else {}
    fields |= {
        name: value for name, value in (("doi", cited.doi), ("howpublished" if cited.venue == cited.note else "note", cited.note)) if value
    }
    words = re.findall(r"\w+", cited.title)
    ascii_name = unicodedata.normalize("NFKD", f"{cited.authors[0]}{cited.year}{next((w for w in words if len(w) > 3), words[0])}")
    return kind, ascii_name.encode("ascii", "ignore").decode().lower(), fields


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
        """Format the mean and the spread as text. The spread is empty if there is none."""
        half = {"std": self.score.std, "interval": (self.score.high - self.score.low) / 2, "none": float("nan")}[spread]
        return self._shown(self.score.mean), "" if half != half else self._shown(half)

    def _shown(self, value: float) -> str:
        return number_text(value * self.column.scale, self.column.digits)


@dataclass(frozen=True, kw_only=True)
class ResultsTable:
    """A table of results. ``str`` returns its Markdown, and notebooks display it.

    Args:
        rows, columns: the names of rows and columns; each column holds all ``metrics``. entries: by row, column and name of the metric.
        axes: the kinds of rows and columns. spread: a key of :data:`SPREADS`. notes: the tests, and the reason for missing marks.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    metrics: tuple[Column, ...]
    entries: Mapping[tuple[str, str, str], _Entry]
    axes: tuple[str, str]
    spread: str
    notes: tuple[str, ...]

    def render(self, form: str) -> str:
        """Render the table in one of :data:`FORMS`."""
        return {"latex": self.to_latex, "csv": self.to_csv, "md": self.to_markdown}[form]()

    @property
    def frame(self) -> pd.DataFrame:
        """One row per cell and metric, with the unrounded mean, std, n, interval (low, high) and mark."""
        return pd.DataFrame(
            [
                {self.axes[0]: row, self.axes[1]: column, "metric": name}
                | {part: getattr(entry.score, part) for part in ("mean", "std", "n", "low", "high")}
                | {"mark": entry.mark}
                for (row, column, name), entry in self.entries.items()
            ]
        )

    def to_csv(self) -> str:
        """Return :attr:`frame` as CSV."""
        frame = self.frame
        texts = [*self.axes, "metric", "mark"]
        buffer = io.StringIO()
        frame.assign(**{name: frame[name].map(csv_text) for name in texts}).to_csv(buffer, index=False, lineterminator="\n")
        return buffer.getvalue()

    def to_markdown(self) -> str:
        """Return a Markdown pipe table. The best values are bold; values that do not differ significantly from them are in italics."""
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
        """Return a ``tabular`` for booktabs. The best values are bold; values that do not differ significantly from them are underlined."""
        several = len(self.columns) > 1 and len(self.metrics) > 1
        groups = [rf"\multicolumn{{{len(self.metrics)}}}{{c}}{{{latex_text(column)}}}" for column in self.columns]
        rules = [rf"\cmidrule(lr){{{2 + n * len(self.metrics)}-{1 + (n + 1) * len(self.metrics)}}}" for n in range(len(self.columns))]
        heads = [latex_text(_head(metric) if several else self._heading(column, metric)) for column, metric in self._pairs()]
        lines = [f"% {single_line(note)}" for note in self.notes] + [r"% needs \usepackage{booktabs}"]
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
    """Build a table of the results of a campaign or a store.

    Args:
        rows, columns: one of :data:`AXES` each. metrics: as :func:`cglsuite.specs.metric_named` reads them; default: the first of
            the leaderboards.
        spread: the quantity shown after ±, a key of :data:`SPREADS`.

    Raises:
        UsageError: if there is no result, an axis is used twice, or an axis, metric or spread is unknown.
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
        missing_marks[f"{board.title}: nothing is marked, because the best variant of a method would be selected on test data."] = None
        return {}
    if any(family.swept for family in learners):
        missing_marks[f"{board.title}: among the settings of a method, only the one chosen by validation can be marked."] = None
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
            missing_marks[f"{board.title}: {column.label} cannot be tested ({test['refused']})."] = None
        elif other not in marks and not test["p_adjusted"] <= 1.0 - LEVEL:
            marks[other] = "tied"
    return marks


def _notes(metrics: Sequence[Column], spread: str, missing_marks: Mapping[str, None]) -> Iterator[str]:
    if SPREADS[spread]:
        yield f"Mean ± {SPREADS[spread]}."
    how = f"all pairs, Holm, {1 - LEVEL:.0%}"
    yield f"Marked: the best mean of the learners, and the means that do not differ significantly from it in the design's test ({how})."
    yield from (f"{_head(metric)}: {metric.name} = {metric.formula or metric.summary}." for metric in metrics)
    yield from missing_marks


def _cell(text: str) -> str:
    return single_line(text).replace("|", r"\|")
