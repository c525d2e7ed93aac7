"""Regression on molecules: solubility (AqSol) and penalised logP. The latter uses ZINC from its official pickles, or a stand-in."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite_graph.datasets.assemble import Array, check_sizes, reading
from cglsuite_graph.datasets.molecules.files import Molecules, molecule_data, numbers, read_rows
from cglsuite_graph.datasets.molecules.scaffolds import balanced_domains, scaffold_key

_PARTS = {"train": 0, "val": 1, "test": 2}


def aqsol(root: DataRoot, features: str = "symbols", bonds: str = "types", scaffold: str = "murcko", n_domains: int = 5) -> GraphData:
    """Load AqSolDB as in the benchmark AQSOL, without molecules that have no bonds (see its spec).

    Args:
        n_domains: number of domains of whole scaffolds (see :func:`cglsuite_graph.datasets.molecules.scaffolds.balanced_domains`).

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the other.
    """
    name = "aqsol"
    path = root.file("AqSolDB/raw/data_curated.csv", note="It comes with https://github.com/mcsorkun/AqSolDB (data: CC0 1.0)")
    frame = read_rows(root, name, path, ["ID", "SMILES", "Solubility", "Group"])
    smiles = frame["SMILES"].tolist()
    group = frame["Group"].str.removeprefix("G")
    rows = Molecules(
        path=path,
        smiles=smiles,
        y=numbers(path, frame[["Solubility"]], missing=False),
        n_classes=1,
        chosen=np.ones(len(frame), np.bool_),
        split=_benchmark_split(root, frame["ID"]),
        keys={
            "group": numbers(path, group.to_frame(), missing=False)[:, 0].astype(np.int64),
            "domain": balanced_domains(scaffold_key(root, name, path, smiles, scaffold), n_domains),
        },
    )
    return check_sizes(molecule_data(root, name, rows, features=features, bonds=bonds, scaffold=scaffold, with_bonds=True), root, path)


def zinc_standin(root: DataRoot, features: str = "zinc", bonds: str = "kekule", scaffold: str = "murcko") -> GraphData:
    """Load a stand-in for ZINC-12k with 12,000 molecules from the same source (see its spec).

    Raises:
        DataError: the file is missing or damaged.
    """
    name = "zinc-standin"
    path = root.file("ZINC12kStandIn/raw/zinc_12k_standin.csv", note="Columns smiles, y, num_nodes, split (train, val, test)")
    frame = read_rows(root, name, path, ["smiles", "y", "num_nodes", "split"])
    nodes = numbers(path, frame[["num_nodes"]], missing=False)[:, 0].astype(np.int64)
    rows = Molecules(
        path=path,
        smiles=frame["smiles"].tolist(),
        y=numbers(path, frame[["y"]], missing=False),
        n_classes=1,
        chosen=np.ones(len(frame), np.bool_),
        split=_codes(frame["split"], path),
        keys={"domain": size_domain(nodes)},
    )
    return check_sizes(molecule_data(root, name, rows, features=features, bonds=bonds, scaffold=scaffold), root, path)


def size_domain(nodes: Array) -> Array:
    """Compute BeGin's domain of a ZINC molecule: its number of atoms minus 18, clipped to 0..10."""
    domain: Array = np.clip(nodes - 18, 0, 10).astype(np.int64)
    return domain


def _benchmark_split(root: DataRoot, ids: pd.Series[str]) -> Array:
    path = root.file(
        "AqSolDB/raw/aqsol_split.csv", note="Columns ID (of AqSolDB) and split (train, val, test): the scaffold split of AQSOL"
    )
    with reading(path):
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, index_col="ID")
        parts = frame["split"].reindex(ids)
    if parts.isna().any():
        raise DataError(
            f"{path} has no split for {ids[int(parts.isna().to_numpy().argmax())]} in data_curated.csv; expected one for every ID"
        )
    return _codes(parts.reset_index(drop=True), path)


def _codes(parts: pd.Series[str], where: object) -> Array:
    codes = parts.map(_PARTS)
    if codes.isna().any():
        raise DataError(f"{where}: found the split {parts[int(codes.isna().to_numpy().argmax())]!r}; expected 'train', 'val' or 'test'")
    parted: Array = codes.to_numpy(dtype=np.int8)
    return parted
