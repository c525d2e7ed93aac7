"""Functions shared by the molecule loaders: they turn a CSV file with one SMILES per row into a dataset whose graphs keep their row
numbers.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, UnknownNameError
from cglsuite.graphs import GraphData
from cglsuite_graph.datasets import atoms
from cglsuite_graph.datasets.assemble import Array, Features, both_ways, graph_data, reading, taken
from cglsuite_graph.datasets.molecules.scaffolds import scaffold_key
from cglsuite_graph.datasets.molecules.tables import molecule_table
from cglsuite_graph.datasets.specs import CONTENT

_log = logging.getLogger(__name__)

#: The order in which the benchmark of Dwivedi et al. counts the bond types of AqSolDB, after its number for no bond.
_BOND_ORDER = ("SINGLE", "DOUBLE", "AROMATIC", "TRIPLE")
_KEKULE_ORDER = ("SINGLE", "DOUBLE", "TRIPLE")
_REJECTED = {"recovered": "which are read without its check", "unreadable": "which are left out"}
_ATOMS: dict[str, Callable[[Array], Features]] = {"canonical": atoms.canonical, "ogb": atoms.ogb_atoms, "symbols": atoms.symbols}
_BONDS: dict[str, Callable[[Array], Features]] = {
    "ogb": atoms.ogb_bonds,
    "types": lambda bonds: atoms.bond_types(bonds, _BOND_ORDER),
    "kekule": lambda bonds: atoms.bond_types(bonds, _KEKULE_ORDER),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Molecules:
    """Rows of a CSV file of molecules, with their labels.

    Args:
        path: the file, for messages and cache keys. smiles: one per row.
        y, known, split, keys: as in :func:`cglsuite_graph.datasets.assemble.graph_data`, one entry per row.
        chosen: bool [R], which rows are graphs of the dataset.
    """

    path: Path
    smiles: Sequence[str]
    y: Array
    n_classes: int
    chosen: Array
    known: Array | None = None
    split: Array | None = None
    keys: Mapping[str, Array] = field(default_factory=dict)


def read_rows(root: DataRoot, name: str, path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read ``columns`` of a CSV file as strings. Empty cells become empty strings.

    Raises:
        DataError: the file cannot be read, lacks a column, ends within a row, or (if ``root`` verifies) differs from the dataset ``name``.
            Line endings and further columns are ignored.
    """
    with reading(path):
        # The C parser fills short rows with empty cells, which would pass as unknown labels.
        frame = pd.read_csv(path, usecols=list(columns), dtype=str, keep_default_na=False, engine="python")[list(columns)]
    if (short := frame.isna().any(axis=1)).any():
        raise DataError(
            f"{path}: data row {int(short.argmax())} (counted from 0) is incomplete; expected {', '.join(columns)}. Replace the file"
        )
    if root.verify and name in CONTENT:
        lines = frame.agg(",".join, axis=1)
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        if digest != CONTENT[name]:
            raise DataError(
                f"{path}: the columns {', '.join(columns)} of {len(frame):,} rows hash to {digest}; expected {CONTENT[name]}. The "
                f"file is not {name}, or its rows are in a different order"
            )
    return frame


def numbers(path: Path, frame: pd.DataFrame, *, missing: bool) -> Array:
    """Convert strings to numbers: float64 [R, C], with NaN for empty cells.

    Raises:
        DataError: a cell is not a finite number, or is empty although ``missing`` is false; the message names file, row and column.
    """
    values: Array = frame.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    given = (frame != "").to_numpy()
    if (bad := ~np.isfinite(values) & (given if missing else True)).any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"{path}: data row {row} (counted from 0) has {frame.iat[row, column]!r} for {frame.columns[column]}; expected a number"
            + (" or an empty cell" if missing else "")
        )
    return values


def molecule_data(
    root: DataRoot, name: str, rows: Molecules, *, features: str, bonds: str, scaffold: str, with_bonds: bool = False
) -> GraphData:
    """Build the dataset from the selected rows. Its keys include ``row``, the row of the CSV file, and ``scaffold``, the scaffold of the
    molecule.

    Args:
        features: atom features: canonical, ogb, symbols, zinc (kinds of Kekulé structures) or degrees.
        bonds: features of bonds: none, ogb, types or kekule.
        scaffold: the rule, a key of :data:`cglsuite_graph.datasets.molecules.scaffolds.RULES`.
        with_bonds: leave out molecules without bonds.

    Raises:
        DataError: RDKit is not installed, a molecule has no atoms, or one that :mod:`cglsuite_graph.datasets.atoms` has no features for.
        UnknownNameError: an unknown kind of features or scaffold.
    """
    for what, given, choices in (("atom features", features, (*_ATOMS, "zinc", "degrees")), ("bond features", bonds, ("none", *_BONDS))):
        if given not in choices:
            raise UnknownNameError(what, given, choices)
    table = molecule_table(root, name, rows.path, rows.smiles, kekulize=features == "zinc" or bonds == "kekule")
    sizes, row = table["sizes"], table["row"]
    owner = np.repeat(np.arange(len(sizes)), sizes)[table["pairs"][0]]
    kept = rows.chosen[row]
    bondless = kept & (np.bincount(owner, minlength=len(sizes)) == 0)
    if with_bonds:
        kept &= ~bondless
    nodes, edges, pairs = taken(sizes, table["pairs"], kept)
    try:
        edge_index = both_ways(pairs)
        edge_attr = None if bonds == "none" else _BONDS[bonds](table["bonds"])[np.repeat(np.flatnonzero(edges), 2)]
        x = _features(features, table["atoms"], nodes, edge_index)
    except DataError as error:
        raise DataError(f"{name}: {error} (read from {rows.path})") from error
    row = row[kept]
    keys = {**rows.keys, "scaffold": scaffold_key(root, name, rows.path, rows.smiles, scaffold)}
    notes = {"graphs_left_out_without_bonds" if with_bonds else "graphs_without_bonds": int(bondless.sum())}
    return graph_data(
        name,
        x=x,
        edge_index=edge_index,
        edge_attr=edge_attr,
        sizes=sizes[kept],
        y=rows.y[row],
        n_classes=rows.n_classes,
        known=None if rows.known is None else rows.known[row],
        split=None if rows.split is None else rows.split[row],
        keys={"row": row, **{key: values[row] for key, values in keys.items()}},
        notes=_rejected(name, table, rows.chosen) | notes,
    )


def _rejected(name: str, table: Mapping[str, Array], chosen: Array) -> dict[str, int]:
    """The number of selected rows that RDKit rejects; rejected rows of the whole file are logged."""
    for what, treated in _REJECTED.items():
        if table[what].size:
            _log.info("%s: RDKit rejects the data rows %s (counted from 0), %s", name, table[what].tolist(), treated)
    return {f"{what}_rows": int(chosen[table[what]].sum()) for what in _REJECTED}


def _features(kind: str, table: Array, nodes: Array, edge_index: Array) -> Features:
    if kind == "degrees":
        return atoms.degrees(edge_index, int(nodes.sum()))
    if kind == "zinc":
        return atoms.zinc_kinds(table)[nodes]
    return _ATOMS[kind](table)[nodes]  # elements are numbered over the whole file, whatever rows are chosen
