"""Features of atoms and bonds, computed for all molecules at once from a table of their properties (see :mod:`.molecules.tables`).

A table of atoms is int16 [N, len(ATOM)] with RDKit's numbers for chiral tags and hybridisations; a table of bonds is int16 [B, len(BOND)]
with its numbers for bond types and stereo.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cglsuite.base.errors import DataError
from cglsuite_graph.datasets.assemble import Array, Categories

#: Columns of a table of atoms; ``hydrogens`` are all hydrogens of an atom, ``implicit`` those not in its SMILES, ``written`` the others.
ATOM = (
    *("number", "chirality", "degree", "total_degree", "charge", "hydrogens", "implicit", "written", "radicals", "hybridization"),
    *("aromatic", "ring"),
)
BOND = ("type", "stereo", "conjugated")
#: RDKit's numbers of the bond types that occur, in the order in which OGB counts them.
BOND_TYPES = {"SINGLE": 1, "DOUBLE": 2, "TRIPLE": 3, "AROMATIC": 12}

#: Number of values of each of OGB's nine atom features and three bond features.
OGB_ATOMS = (119, 5, 12, 12, 10, 6, 6, 2, 2)
OGB_BONDS = (5, 6, 2)

_HYBRIDIZATIONS = (2, 3, 4, 6, 7)  # RDKit's numbers of SP, SP2, SP3, SP3D, SP3D2
_STEREO = (0, 2, 3, 4, 5, 1)  # NONE, Z, E, CIS, TRANS, ANY
#: The 43 elements that DGL-LifeSci's canonical featuriser distinguishes:
#: C N O S F Si P Cl Br Mg Na Ca Fe As Al I B V K Tl Yb Sb Sn Ag Pd Co Se Ti Zn H Li Ge Cu Au Ni Cd In Mn Zr Cr Pt Hg Pb
_CANONICAL_ELEMENTS = (
    *(6, 7, 8, 16, 9, 14, 15, 17, 35, 12, 11, 20, 26, 33, 13, 53, 5, 23, 19, 81, 70, 51, 50, 47, 46, 27, 34, 22, 30, 1, 3, 32, 29, 79, 28),
    *(48, 49, 25, 40, 24, 78, 80, 82),
)
#: Kinds of atoms in ZINC as (atomic number, hydrogens written in a Kekulé SMILES, charge), 28 of them.
ZINC_KINDS = (
    *((6, 0, 0), (8, 0, 0), (7, 0, 0), (9, 0, 0), (6, 1, 0), (16, 0, 0), (17, 0, 0), (8, 0, -1), (7, 1, 1), (35, 0, 0), (7, 3, 1)),
    *((7, 2, 1), (7, 0, 1), (7, 0, -1), (16, 0, -1), (53, 0, 0), (15, 0, 0), (8, 1, 1), (7, 1, -1), (8, 0, 1), (16, 0, 1), (15, 1, 0)),
    *((15, 2, 0), (6, 2, -1), (15, 0, 1), (16, 1, 1), (6, 1, -1), (15, 1, 1)),
)


def canonical(atoms: Array) -> Array:
    """Compute the 74 features of the canonical featuriser of DGL-LifeSci: float32 [N, 74].

    One-hot element (43), degree 0-10, implicit hydrogens 0-6, then formal charge and radical electrons as numbers, one-hot hybridisation
    (SP to SP3D2), aromatic, one-hot hydrogens 0-4. A value outside its list is encoded as zeros.
    """
    return np.concatenate(
        [
            _among(_column(atoms, "number"), _CANONICAL_ELEMENTS),
            _among(_column(atoms, "degree"), range(11)),
            _among(_column(atoms, "implicit"), range(7)),
            _column(atoms, "charge")[:, None],
            _column(atoms, "radicals")[:, None],
            _among(_column(atoms, "hybridization"), _HYBRIDIZATIONS),
            _column(atoms, "aromatic")[:, None],
            _among(_column(atoms, "hydrogens"), range(5)),
        ],
        axis=1,
        dtype=np.float32,
    )


def ogb_atoms(atoms: Array) -> Categories:
    """Compute the nine atom features of OGB, which have 174 values in total.

    The features are element, chirality, degree with hydrogens, charge, hydrogens, radical electrons, hybridisation, aromaticity and ring
    membership; the last value of a feature represents all other values. A linear map of the indicators equals the sum of embeddings that
    OGB's encoder learns.
    """
    indices = (
        _clipped(_column(atoms, "number") - 1, 118),
        _clipped(_column(atoms, "chirality"), 4),
        _clipped(_column(atoms, "total_degree"), 11),
        _clipped(_column(atoms, "charge") + 5, 11),
        _clipped(_column(atoms, "hydrogens"), 9),
        _clipped(_column(atoms, "radicals"), 5),
        _place(_column(atoms, "hybridization"), _HYBRIDIZATIONS, other=5),
        _column(atoms, "aromatic"),
        _column(atoms, "ring"),
    )
    return Categories(np.stack(indices, axis=1), OGB_ATOMS)


def ogb_bonds(bonds: Array) -> Categories:
    """Compute the three bond features of OGB (type, stereo, conjugated), which have 13 values in total."""
    kind = _place(bonds[:, 0], tuple(BOND_TYPES.values()), other=4)
    return Categories(np.stack([kind, _place(bonds[:, 1], _STEREO, other=0), bonds[:, 2]], axis=1), OGB_BONDS)


def degrees(edge_index: Array, n_nodes: int) -> Array:
    """Compute the in-degree and out-degree of every node: float32 [N, 2]."""
    return np.stack([np.bincount(edge_index[end], minlength=n_nodes) for end in (1, 0)], axis=1).astype(np.float32)


def symbols(atoms: Array) -> Categories:
    """Return the element of each atom; elements are numbered in order of first appearance."""
    numbers, first, of = np.unique(_column(atoms, "number"), return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return Categories(rank[of][:, None], (len(numbers),))


def zinc_kinds(atoms: Array) -> Categories:
    """Return the kind of each atom in :data:`ZINC_KINDS`. All neutral nitrogen atoms are one kind, regardless of which hydrogens are
    written.

    Raises:
        DataError: an atom belongs to none of the kinds.
    """
    number, written, charge = (_column(atoms, name) for name in ("number", "written", "charge"))
    written = np.where((number == 7) & (charge == 0), 0, written)
    kind = _place((number * 100 + written) * 100 + charge, tuple((n * 100 + h) * 100 + c for n, h, c in ZINC_KINDS), other=-1)
    if (kind < 0).any():
        at = int(np.flatnonzero(kind < 0)[0])
        raise DataError(
            f"an atom of element {number[at]} with {written[at]} written hydrogens and charge {charge[at]} does not match any of the "
            f"{len(ZINC_KINDS)} atom kinds of ZINC"
        )
    return Categories(kind[:, None], (len(ZINC_KINDS),))


def bond_types(bonds: Array, order: Sequence[str]) -> Categories:
    """Return the type of each bond, starting at 1 for the first entry of ``order``; 0 would mean no bond and does not occur.

    Raises:
        DataError: a bond has a type that is not in ``order``.
    """
    place = _place(bonds[:, 0], tuple(BOND_TYPES[name] for name in order), other=-1)
    if (place < 0).any():
        raise DataError(f"found a bond of RDKit type {bonds[place < 0, 0][0]}; expected one of {', '.join(order)}")
    return Categories(place[:, None] + 1, (len(order) + 1,))


def _column(atoms: Array, name: str) -> Array:
    column: Array = atoms[:, ATOM.index(name)].astype(np.int64)
    return column


def _among(values: Array, allowed: Sequence[int]) -> Array:
    match: Array = values[:, None] == np.asarray(allowed)
    return match


def _place(values: Array, allowed: Sequence[int], other: int) -> Array:
    """The position of each value among ``allowed``, ``other`` for all others: int64 [N]."""
    match = _among(values, allowed)
    return np.where(match.any(axis=1), match.argmax(axis=1), other)


def _clipped(values: Array, other: int) -> Array:
    """``values`` within ``0..other-1``, replaced by ``other`` elsewhere."""
    return np.where((values >= 0) & (values < other), values, other)
