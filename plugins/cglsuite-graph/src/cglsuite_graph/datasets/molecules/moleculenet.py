"""Classification of molecules: SIDER, Tox21, the number of aromatic atoms in PubChem's bioassays, and HIV in the form of ogbg-molhiv."""

from __future__ import annotations

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite.protocols.begin.splits import begin_array, begin_split
from cglsuite_graph.datasets.assemble import Array, check_sizes
from cglsuite_graph.datasets.molecules.files import Molecules, molecule_data, numbers, read_rows
from cglsuite_graph.datasets.ogbg import molhiv_graphs
from cglsuite_graph.datasets.specs import SIDER_CLASSES, TOX21_ASSAYS

#: Minimum number of molecules for a count of aromatic atoms to be a class.
AROMATICITY_LEAST = 20
_NOTE = "The file is the one of the MoleculeNet collection (https://moleculenet.org), in the layout of PyG's class MoleculeNet"


def sider(root: DataRoot, features: str = "canonical", bonds: str = "none", scaffold: str = "murcko") -> GraphData:
    """Load the SIDER dataset (see its spec). Raises DataError if a file is missing or damaged."""
    return _labelled(root, "sider", "MoleculeNet/sider/raw/sider.csv", SIDER_CLASSES, features, bonds, scaffold)


def tox21(root: DataRoot, features: str = "canonical", bonds: str = "none", scaffold: str = "murcko") -> GraphData:
    """Load the Tox21 dataset, which has missing labels (see its spec). Raises DataError if a file is missing or damaged."""
    return _labelled(root, "tox21", "MoleculeNet/tox21/raw/tox21.csv", TOX21_ASSAYS, features, bonds, scaffold)


def aromaticity(
    root: DataRoot, features: str = "canonical", bonds: str = "none", scaffold: str = "murcko", split_source: str = "none"
) -> GraphData:
    """Load molecules classified by their number of aromatic atoms, for all numbers that occur in at least 20 molecules (see its spec).

    Args:
        split_source: ``begin`` for BeGin's split (6 : 2 : 2), otherwise none.

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    name = "aromaticity"
    path = root.file(
        "PubChemBioAssayAromaticity/raw/pubchem_bioassay_aromaticity.csv",
        note="It is the file aromatic_atom_count.csv of the AttentiveFP project, under the name that DGL-LifeSci gives it",
    )
    frame = read_rows(root, name, path, ["cano_smiles", "aromatic_count"])
    counts = numbers(path, frame[["aromatic_count"]], missing=False)[:, 0].astype(np.int64)
    values, of, sizes = np.unique(counts, return_inverse=True, return_counts=True)
    classes = sizes >= AROMATICITY_LEAST
    if not classes.any():
        raise DataError(f"{name}: no number of aromatic atoms occurs at least {AROMATICITY_LEAST} times (read from {path})")
    chosen = classes[of]
    split = None
    if split_source == "begin":
        split = np.full(len(frame), -1, np.int8)
        split[chosen] = _fitting(begin_split(root, name), int(chosen.sum()), "aromaticity_metadata_allIL.npz")
    rows = Molecules(
        path=path,
        smiles=frame["cano_smiles"].tolist(),
        y=np.where(chosen, (np.cumsum(classes) - 1)[of], -1),
        n_classes=int(classes.sum()),
        chosen=chosen,
        split=split,
        keys={"aromatic_atoms": values[of]},
    )
    return check_sizes(molecule_data(root, name, rows, features=features, bonds=bonds, scaffold=scaffold), root, path)


def molhiv(
    root: DataRoot,
    features: str = "ogb",
    bonds: str = "ogb",
    scaffold: str = "murcko",
    split_source: str = "begin",
    source: str = "smiles",
) -> GraphData:
    """Load ogbg-molhiv (see its spec).

    Args:
        source: ``smiles`` reads HIV.csv through RDKit; ``ogb`` reads OGB's raw files, with OGB's features and without scaffolds.
        split_source: ``begin`` for BeGin's split (8 : 1 : 1) and its 20 domains, otherwise none.

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    name = "ogbg-molhiv"
    split, keys = None, {}
    if split_source == "begin":
        split, keys["domain"] = begin_split(root, name), begin_array(root, name, "domain_splits")
    if source == "ogb":
        return check_sizes(molhiv_graphs(root, split, keys), root, "ogbg_molhiv/raw")
    path = root.file("MoleculeNet/hiv/raw/HIV.csv", note=_NOTE)
    frame = read_rows(root, name, path, ["smiles", "HIV_active"])
    y = numbers(path, frame[["HIV_active"]], missing=False) > 0
    if split is not None:
        split, keys = _fitting(split, len(frame), _DOMAINS), {"domain": _fitting(keys["domain"], len(frame), _DOMAINS)}
    rows = Molecules(
        path=path,
        smiles=frame["smiles"].tolist(),
        y=y,
        n_classes=1,
        chosen=np.ones(len(frame), np.bool_),
        known=np.ones_like(y),
        split=split,
        keys=keys,
    )
    return check_sizes(molecule_data(root, name, rows, features=features, bonds=bonds, scaffold=scaffold), root, path)


_DOMAINS = "molhivx_metadata_domainIL.npz"


def _labelled(root: DataRoot, name: str, file: str, labels: tuple[str, ...], features: str, bonds: str, scaffold: str) -> GraphData:
    """A dataset from a file with one column per binary label; empty cells are unknown labels."""
    path = root.file(file, note=_NOTE)
    frame = read_rows(root, name, path, ["smiles", *labels])
    values = numbers(path, frame[list(labels)], missing=True)
    rows = Molecules(
        path=path,
        smiles=frame["smiles"].tolist(),
        y=values > 0,
        n_classes=len(labels),
        chosen=np.ones(len(frame), np.bool_),
        known=~np.isnan(values),
    )
    return check_sizes(molecule_data(root, name, rows, features=features, bonds=bonds, scaffold=scaffold), root, path)


def _fitting(entries: Array, rows: int, file: str) -> Array:
    if len(entries) != rows:
        raise DataError(
            f"begin-splits/{file} has {len(entries):,} entries; expected {rows:,}, one per molecule. The two files do not belong together"
        )
    return entries
