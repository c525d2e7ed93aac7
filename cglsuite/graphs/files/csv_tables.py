"""Read a folder of CSV tables into arrays. Cells are read as text and converted later, so ids and class names are preserved.

Only empty fields are missing values. ``NA``, ``null`` and ``nan`` are ordinary words.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.errors import DataError, nearest
from cglsuite.base.inputs import quoted, read_regular, read_text
from cglsuite.graphs.files.options import NONE, FileOptions
from cglsuite.graphs.files.times import is_time, parsed_times

Array = np.ndarray[Any, Any]
_DELIMITERS = (",", ";", "\t", "|")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[+-]?([0-9]*\.[0-9]+|[0-9]+\.)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"(?<=[0-9])\.0+$")
_NUMERIC = frozenset("0123456789+-.eE")
_TRUTH = {"true": True, "false": False}
_FEW = 2
"""A column with at most this many rows may contain only 0 and 1 by chance."""
_NO_FEATURES = ("y", "time", "split", "graph", "train", "validation", "test")
_TYPES = ("node_types", "node_type")
_WEIGHTS = ("edge_weight", "weight")


@dataclass(frozen=True)
class Table:
    """A table's columns by name, as text without surrounding whitespace, and the line number of each row."""

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]

    def place(self, row: int, column: str) -> str:
        """Describe the location of a cell for error messages."""
        return f"{self.path}, row {self.lines[row]}, column {column!r}"

    def without(self, names: Collection[str]) -> Table:
        """Return a copy of the table without the listed columns."""
        return Table(self.path, {name: cells for name, cells in self.columns.items() if name not in names}, self.lines)


def read_folder(path: Path, options: FileOptions, known: Mapping[str, str]) -> dict[str, Any]:
    """Read the arrays from ``nodes.csv`` (one row per node), ``edges.csv`` or ``links.csv`` (``source``, ``target``), and ``graphs.csv``.

    Args:
        known: maps column names to array names, such as ``train_mask`` to ``train``.

    Raises:
        DataError: a table is missing or damaged, or a cell has the wrong type. The message names the file, row and column.
    """
    nodes = _table(path / "nodes.csv")
    links, graphs = path / "links.csv", path / "graphs.csv"
    joined = _table(links if links.is_file() else path / "edges.csv")
    ids = _ids(nodes, options)
    read_as = {name for name in nodes.columns if known.get(name, name) in _NO_FEATURES}
    ends = _ends(joined, nodes.without(read_as - {ids}), ids, rows_are_nodes=options.id == NONE)
    nodes = nodes.without([] if ids is None else [ids])
    if links.is_file():
        arrays = _of_items(joined.without(("source", "target")), options, known)
        return {**arrays, "links": ends, **_of_nodes(nodes, known)}
    edges = {"edge_index": ends, **_of_edges(joined, graphs.is_file())}
    if graphs.is_file():
        if "graph" not in nodes.columns:
            raise DataError(
                f"{nodes.path}: column 'graph' is missing; it must contain the row number in graphs.csv, counted from 0, of each "
                "node's graph"
            )
        of_nodes = {**_of_nodes(nodes.without(("graph",)), known), "graph": _whole(nodes, "graph")}
        return {**_of_items(_table(graphs), options, known), **of_nodes, **edges}
    return {**_of_items(nodes, options, known, features=True), **edges}


def _table(path: Path) -> Table:
    try:
        text = read_text(read_regular(path))
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist: a data folder must contain nodes.csv and either edges.csv or links.csv") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    rows = _rows(path, text)
    header = next(rows, None)
    if header is None:
        raise DataError(f"{path} is empty; expected a CSV table with a header")
    _, names = header
    if repeated := sorted({name for name in names if names.count(name) > 1 and name}):
        raise DataError(f"{path}: the header contains {repeated[0]!r} more than once; expected unique column names")
    lines, cells = [], []
    for line, row in rows:
        if len(row) != len(names):
            raise DataError(f"{path}, row {line} has {len(row)} fields; expected {len(names)}, one per column of the header")
        lines.append(line)
        cells.append(row)
    columns: list[list[str]] = [list(column) for column in zip(*cells, strict=True)] if cells else [[] for _ in names]
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        counts = column == [str(row) for row in range(len(column))]
        if not name or (counts and re.fullmatch(r"Unnamed: ?\d+", name)):
            what = (
                "it counts the rows, as DataFrame.to_csv writes it: write it with index=False, or delete it"
                if counts
                else ("name it in the header (id, where it names the nodes), or delete it")
            )
            raise DataError(f"{path}: column {number + 1} has no name{f' ({name})' if name else ''}: {what}")
    return Table(path, dict(zip(names, columns, strict=True)), lines)


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the non-empty rows, each with the number of the line on which it ends."""
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)  # of equals the first
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()):
                yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise DataError(f"{path}, row {reader.line_num} is not valid CSV ({error})") from error


# --- resolving edges to nodes -------------------------------------------------------------------------------------------------------


def _ids(nodes: Table, options: FileOptions) -> str | None:
    """Return the name of the column with node ids, or ``None`` if edges refer to row numbers."""
    name = options.id
    if name is not None and name != NONE and name not in nodes.columns:
        close = nearest(name, nodes.columns, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise DataError(f"{nodes.path}: id = {name!r} is not a column; the columns are {', '.join(nodes.columns)}{hint}")
    if name == NONE:
        return None
    return name or ("id" if "id" in nodes.columns else None)


def _ends(table: Table, nodes: Table, ids: str | None, *, rows_are_nodes: bool) -> Array:
    """Return the row numbers of each edge's source and target nodes: int64 [2, E]."""
    if missing := [column for column in ("source", "target") if column not in table.columns]:
        raise DataError(f"{table.path} has no column {missing[0]!r}; it has {', '.join(table.columns)}, but source and target are required")
    ends = [table.columns["source"], table.columns["target"]]
    if ids is None:
        if not rows_are_nodes:
            _refuse_hidden_ids(nodes, {*ends[0], *ends[1]})
        for column, cells in zip(("source", "target"), ends, strict=True):
            if (wrong := next((row for row, cell in enumerate(cells) if not _INTEGER.fullmatch(cell)), None)) is not None:
                raise DataError(
                    f"{table.place(wrong, column)}: {quoted(cells[wrong])} is not a row number, and {nodes.path.name} has no 'id' column"
                )
        return np.array(ends, dtype=np.int64).reshape(2, -1)
    row_of: dict[str, int] = {}
    for row, name in enumerate(nodes.columns[ids]):
        if not name:
            raise DataError(f"{nodes.place(row, ids)}: the id is empty; every node needs a unique id")
        if name in row_of:
            raise DataError(f"{nodes.place(row, ids)}: duplicate id: row {nodes.lines[row_of[name]]} also has {quoted(name)}")
        row_of[name] = row
    for column, cells in zip(("source", "target"), ends, strict=True):
        if (wrong := next((row for row, cell in enumerate(cells) if cell not in row_of), None)) is not None:
            close = nearest(cells[wrong], row_of, 1) if len(row_of) < 10_000 else []
            hint = f"; did you mean {close[0]}?" if close else ""
            raise DataError(f"{table.place(wrong, column)}: {column} {quoted(cells[wrong])} is not an id in nodes.csv{hint}")
    return np.array([[row_of[cell] for cell in cells] for cells in ends], dtype=np.int64).reshape(2, -1)


def _refuse_hidden_ids(nodes: Table, given: set[str]) -> None:
    ends = {_WHOLE.sub("", cell) for cell in given}
    for name, cells in nodes.columns.items():
        distinct = {_WHOLE.sub("", cell) for cell in cells}  # pandas writes 7 as 7.0 where a neighbour is missing
        if len(cells) > _FEW and ends and len(distinct) == len(cells) and ends <= distinct:
            raise DataError(
                f"{nodes.path}: the values of column {name!r} are unique and include the ends of all edges, so it may contain the "
                "node ids. If it "
                f"does, set id = {name} or rename the column to id. If it is a feature and edges refer to row numbers, set id = {NONE} "
                f"(--data-option NAME.id={name}, [data_options.NAME] in a campaign, or an argument of cglsuite.run)"
            )


# --- interpreting the columns ---------------------------------------------------------------------------------------------------------


def _of_items(table: Table, options: FileOptions, known: Mapping[str, str], *, features: bool = False) -> dict[str, Any]:
    """Interpret an item table's columns: ``y`` or ``y_*``, ``split`` or masks, and ``time``. Others are node features or attributes."""
    out: dict[str, Any] = {}
    rest: list[str] = []
    labels = [name for name in table.columns if name.startswith("y_")]
    if absent := [name for name in options.key_columns if name not in table.columns]:
        raise DataError(
            f"{table.path}: keys = {options.keys} contains {absent[0]!r}, which is not a column; the columns are {', '.join(table.columns)}"
        )
    for name in table.columns:
        array = known.get(name, name)
        if name in labels or name == "split":
            continue
        if name in options.key_columns:
            out[name] = _codes(table, name)
        elif array == "y":
            out[array] = _labels(table, name, options)
        elif array == "time":
            out[array] = _times(table, name)
        elif array in ("train", "validation", "test"):
            out[array] = _mask(table, name)
        elif features:
            rest.append(name)
        else:
            out[name if array not in ("x", "edge_index", "links", "graph", "n_nodes") else f"{table.path.name}: {name}"] = _attribute(
                table, name
            )
    if labels:
        if "y" in out:
            raise DataError(
                f"{table.path} has both a y column and y_* columns; expected either y (one class per row) or y_* (one column per label)"
            )
        out["y"] = np.stack([_numbers(table, name, empty=True) for name in labels], axis=1)
    if "split" in table.columns:
        out |= _masks(table)
    if rest:
        out["x"] = np.stack([_numbers(table, name) for name in rest], axis=1)
    return out


def _of_nodes(nodes: Table, known: Mapping[str, str]) -> dict[str, Any]:
    """Read the features of nodes that are not items and therefore have no labels, times or splits."""
    out: dict[str, Any] = {"n_nodes": np.array(len(nodes.lines))}
    features = []
    for name in nodes.columns:
        if name in _TYPES:
            out["node_types"] = _codes(nodes, name)
        elif known.get(name, name) in _NO_FEATURES or name.startswith("y_"):
            out[f"nodes.csv: {name}"] = None
        else:
            features.append(_numbers(nodes, name))
    return {**out, "x": np.stack(features, axis=1)} if features else out


def _of_edges(table: Table, of_graphs: bool) -> dict[str, Any]:
    """Read the other columns of ``edges.csv``: edge features if the items are whole graphs, or edge weights if the items are nodes."""
    names = [name for name in table.columns if name not in ("source", "target")]
    numeric = [name for name in names if all(map(_is_number, table.columns[name]))]
    weights = [name for name in _WEIGHTS if name in numeric][:1]
    used = numeric if of_graphs else weights
    out: dict[str, Any] = {f"edges.csv: {name}": None for name in names if name not in used}
    if of_graphs and used:
        out["edge_attr"] = np.stack([_numbers(table, name) for name in used], axis=1)
    elif used:
        out["edge_weight"] = _numbers(table, used[0])
    return out


# --- text to values -----------------------------------------------------------------------------------------------------------------


def _whole(table: Table, name: str) -> Array:
    cells = table.columns[name]
    if (wrong := next((row for row, cell in enumerate(cells) if not _INTEGER.fullmatch(cell)), None)) is not None:
        raise DataError(f"{table.place(wrong, name)}: {quoted(cells[wrong])} is not a whole number")
    return np.array(cells, dtype=np.int64)


def _is_number(cell: str) -> bool:
    if not _NUMERIC.issuperset(cell):
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(table: Table, name: str, *, empty: bool = False) -> Array:
    """Convert a column of numbers or truth values to float64. Empty cells become NaN where allowed."""
    cells = table.columns[name]
    try:
        if _NUMERIC.issuperset("".join(cells)) and not (empty and "" in cells):
            return np.array(list(map(float, cells)))
    except ValueError:
        pass  # below, where the cell is named
    if all(cell.lower() in _TRUTH for cell in cells):
        return np.array([float(_TRUTH[cell.lower()]) for cell in cells])
    values = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if _is_number(cell):
            values[row] = float(cell)
        elif cell or not empty:
            comma = "; decimals have a point" if re.fullmatch(r"[+-]?\d+,\d+", cell) else ""
            date = "call the column time where it is that of the items, " if is_time(cell) else ""
            expected = (
                "expected a number"
                if not cell
                else f"expected numbers{comma}: {date}encode the column, name it in the option keys, or leave it out"
            )
            raise DataError(f"{table.place(row, name)}: {f'{quoted(cell)} is not a number' if cell else 'the cell is empty'}; {expected}")
    return values


def _labels(table: Table, name: str, options: FileOptions) -> Array:
    """Convert labels to numbers if all are numeric, and otherwise to words (such as ``007`` or ``1e2``). An empty cell means no label."""
    cells = table.columns[name]
    labels = [cell for cell in cells if cell]
    if labels and all(cell.lower() in _TRUTH for cell in labels):
        values: Sequence[Any] = [_TRUTH.get(cell.lower(), np.nan) for cell in cells]
        return np.array(values, dtype=np.bool_ if len(labels) == len(cells) else np.float64)
    if all(_INTEGER.fullmatch(cell) for cell in labels):
        return np.array(cells, dtype=np.int64) if len(labels) == len(cells) else _numbers(table, name, empty=True)
    of_numbers = all(_INTEGER.fullmatch(cell) or _DECIMAL.fullmatch(cell) for cell in labels)
    if of_numbers or (options.labels == "real" and all(map(_is_number, labels))):
        return _numbers(table, name, empty=True)
    return np.array(cells, dtype=np.str_)


def _times(table: Table, name: str) -> Array:
    cells = table.columns[name]
    if all(_INTEGER.fullmatch(cell) for cell in cells):
        return np.array(cells, dtype=np.int64)
    if all(_is_number(cell) and float(cell).is_integer() and abs(float(cell)) <= 2**53 for cell in cells):
        return np.array(list(map(float, cells))).astype(np.int64)
    whole = list(map(_INTEGER.fullmatch, cells))
    if any(whole):
        wrong = whole.index(None)
        what = f"it holds {quoted(cells[wrong])}" if cells[wrong] else "it is empty"
        raise DataError(
            f"{table.place(wrong, name)}: {what}; every item needs a time, and times must be either all ISO dates or all whole numbers"
        )
    return parsed_times(cells, lambda row: table.place(row, name))


def _attribute(table: Table, name: str) -> Array:
    """Convert an attribute column of links or graphs to whole numbers, other numbers, or words."""
    cells = table.columns[name]
    if all(map(_INTEGER.fullmatch, cells)):
        return np.array(cells, dtype=np.int64)
    return _numbers(table, name) if all(map(_is_number, cells)) else np.array(cells, dtype=np.str_)


def _codes(table: Table, name: str) -> Array:
    """Convert a column to integer codes (int64). Whole numbers are unchanged, and words become their positions in sorted order."""
    cells = table.columns[name]
    if "" in cells:
        raise DataError(f"{table.place(cells.index(''), name)}: the cell is empty; every row needs a value")
    if all(map(_INTEGER.fullmatch, cells)):
        return np.array(cells, dtype=np.int64)
    return np.asarray(np.unique(np.array(cells, dtype=np.str_), return_inverse=True)[1], dtype=np.int64)


def _mask(table: Table, name: str) -> Array:
    words = {**_TRUTH, "1": True, "0": False, "1.0": True, "0.0": False}
    cells = table.columns[name]
    if (wrong := next((row for row, cell in enumerate(cells) if cell.lower() not in words), None)) is not None:
        raise DataError(f"{table.place(wrong, name)}: {quoted(cells[wrong])} is not a truth value; expected true, false, 1 or 0")
    return np.array([words[cell.lower()] for cell in cells], dtype=np.bool_)


def _masks(table: Table) -> dict[str, Array]:
    same = {"val": "validation", "valid": "validation", "none": ""}
    parts = ("train", "validation", "test")
    words = [same.get(cell.lower(), cell.lower()) for cell in table.columns["split"]]
    if (wrong := next((row for row, word in enumerate(words) if word not in (*parts, "")), None)) is not None:
        cell = table.columns["split"][wrong]
        raise DataError(f"{table.place(wrong, 'split')}: {quoted(cell)} is not a valid part; expected {', '.join(parts)}, or an empty cell")
    return {part: np.array([word == part for word in words], dtype=np.bool_) for part in parts if part in words}
