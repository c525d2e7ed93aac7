"""Conversion of SMILES to tables of atoms and bonds through RDKit, once per file; rejected rows are recovered, or skipped and listed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite_graph.datasets.assemble import Array
from cglsuite_graph.datasets.atoms import ATOM, BOND

_READER = 2  # part of the cache key: increment it when a reader's output changes


def chemistry() -> ModuleType:
    """Import ``rdkit.Chem``, or raise an error that explains how to install it.

    Raises:
        DataError: RDKit is not installed; the message names the extra that installs it.
    """
    try:
        from rdkit import Chem
    except ImportError as error:
        raise DataError(
            "reading molecules requires RDKit, which is not installed. Install it with: python -m pip install 'cglsuite-graph[molecules]'"
        ) from error
    module: ModuleType = Chem
    return module


def molecule_table(root: DataRoot, name: str, path: Path, smiles: Sequence[str], *, kekulize: bool = False) -> dict[str, Array]:
    """Apply :func:`table_of` to the column ``smiles`` of the file ``path``, and cache the result per RDKit version.

    Raises:
        DataError: RDKit is not installed, or as :func:`table_of`; the message names the file.
    """
    chemistry()
    import rdkit

    def build() -> dict[str, Array]:
        try:
            return table_of(smiles, kekulize=kekulize)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    key = {"reader": _READER, "rdkit": rdkit.__version__, "sha256": root.sha256(path), "kekulize": kekulize}
    return root.derived(name, key, build)


def table_of(smiles: Sequence[str], *, kekulize: bool = False) -> dict[str, Array]:
    """Convert molecules with implicit hydrogens to arrays.

    If RDKit rejects the chemistry of a SMILES, the SMILES is read without that check (see :func:`parsed`). Rows that are not SMILES are
    left out.

    Args:
        kekulize: whether to replace aromatic bonds by single and double bonds.

    Returns:
        ``row`` int64 [M], positions in ``smiles`` of what was kept; ``sizes`` int32 [M]; ``atoms`` int16 [N, len(ATOM)]; ``pairs`` int32
        [2, B], each bond once, atoms numbered over all molecules; ``bonds`` int16 [B, len(BOND)]; and int64 positions of the
        ``recovered`` and ``unreadable`` rows.

    Raises:
        DataError: a row has no atoms.
    """
    from rdkit import rdBase

    rows, atoms, pairs, bonds, sizes = [], [], [], [], []
    recovered, unreadable = [], []
    begin = 0
    with rdBase.BlockLogs():
        for row, text in enumerate(smiles):
            molecule, checked = parsed(text)
            if molecule is None:
                unreadable.append(row)
                continue
            if not molecule.GetNumAtoms():
                raise DataError(f"data row {row} (counted from 0) has a molecule without atoms ({text!r}): remove or fix the row")
            if not checked:
                recovered.append(row)
            if kekulize and checked:
                chemistry().Kekulize(molecule, clearAromaticFlags=True)
            rows.append(row)
            sizes.append(molecule.GetNumAtoms())
            atoms += [_atom(atom) for atom in molecule.GetAtoms()]
            pairs += [(begin + bond.GetBeginAtomIdx(), begin + bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
            bonds += [(int(b.GetBondType()), int(b.GetStereo()), int(b.GetIsConjugated())) for b in molecule.GetBonds()]
            begin += sizes[-1]
    return {
        "row": np.array(rows, dtype=np.int64),
        "sizes": np.array(sizes, dtype=np.int32),
        "atoms": np.array(atoms, dtype=np.int16).reshape(-1, len(ATOM)),
        "pairs": np.array(pairs, dtype=np.int32).reshape(-1, 2).T,
        "bonds": np.array(bonds, dtype=np.int16).reshape(-1, len(BOND)),
        "recovered": np.array(recovered, dtype=np.int64),
        "unreadable": np.array(unreadable, dtype=np.int64),
    }


def parsed(smiles: str) -> tuple[Any, bool]:
    """Parse a SMILES. Returns the molecule and whether RDKit accepted its chemistry.

    Rejected molecules (because of a valence, or an aromatic ring without a Kekulé form) are read without sanitisation, and hydrogens and
    rings are computed as far as possible. Returns ``None`` if the text is not a SMILES.
    """
    chem = chemistry()
    molecule = chem.MolFromSmiles(smiles)
    if molecule is not None:
        return molecule, True
    molecule = chem.MolFromSmiles(smiles, sanitize=False)
    if molecule is not None:
        molecule.UpdatePropertyCache(strict=False)
        chem.FastFindRings(molecule)
    return molecule, False


def _atom(atom: Any) -> tuple[int, ...]:
    return (
        atom.GetAtomicNum(),
        int(atom.GetChiralTag()),
        atom.GetDegree(),
        atom.GetTotalDegree(),
        atom.GetFormalCharge(),
        atom.GetTotalNumHs(),
        atom.GetNumImplicitHs(),
        atom.GetNumExplicitHs(),
        atom.GetNumRadicalElectrons(),
        int(atom.GetHybridization()),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    )
