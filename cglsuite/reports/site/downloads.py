"""A leaderboard as files: CSV, a LaTeX table (booktabs) and BibTeX, built row by row so that a page can offer the rows it shows.

Texts from plugins and records are escaped for each file format: a spreadsheet reads no cell as a formula, LaTeX reads no text as a command,
and no text ends a BibTeX entry.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cglsuite.base.markup import csv_text, plain_text
from cglsuite.host import Catalogue, Entry
from cglsuite.reports.kit.tables import as_rows, number_text
from cglsuite.reports.site.boards import Board, Column, Row, axis_value, board_frame
from cglsuite.specs import Citation

__all__ = ["Download", "Piece", "board_downloads", "csv_text", "file_stem", "in_math", "latex_text", "one_line"]

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
    """A piece of a file. ``column``: the column with which it is hidden. ``best``: its replacement if the row is best in that column."""

    text: str
    column: str = ""
    best: str = ""


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file in pieces: ``head``, the pieces of each row in board order, ``foot``.

    With ``once``, a piece shared by several rows appears once. ``shown``: the columns of the file that a link without a script holds.
    ``best``: the rows of the best mean in each of these columns.
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
        """The whole file."""
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
    """A board as CSV (unrounded), as a LaTeX table, and its citations as BibTeX."""
    return [_csv(board), _latex(board), _bibtex(board, catalogue)]


def file_stem(preset: str) -> str:
    """A preset's name as a file name."""
    return re.sub(r"[^A-Za-z0-9._+@-]+", "-", preset).strip(".-") or "leaderboard"


def latex_text(text: str) -> str:
    """A text escaped for LaTeX, on one line and with balanced braces, so it also fits a BibTeX field."""
    return "".join(_LATEX.get(c, c) for c in one_line(text))


def one_line(text: str) -> str:
    """A text without control characters, on one line."""
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
    head = [Piece(f"% {one_line(about)}\n"), Piece(f"% {one_line(_BOLD)}\n")]
    head += [Piece(f"% {one_line(f'{c.label}: {c.name} = {c.formula or c.summary}')}\n", c.name) for c in board.columns]
    if axes:
        head.append(Piece(f"% {one_line(_OF_SWEEPS)}\n"))
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


_OF_SWEEPS = "rows of one method are the settings of a sweep, of which only the one that validation chose can be bold"
_BOLD = "bold: the best mean of a metric among these rows, incomplete ones and reference methods aside"


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
    """A number as :func:`cglsuite.reports.kit.tables.number_text` writes it, in LaTeX's math mode."""
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
    return [part for part in (one_line(part) if isinstance(part, str) else part for part in parts) if part]


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
    text = one_line(cited)
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
