"""SMILES to atoms, bonds, features and scaffolds: by hand, and as the reference implementations of PyG and OGB have them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from cglsuite_graph.datasets import atoms
from cglsuite_graph.datasets.molecules.scaffolds import RULES, balanced_domains, scaffold_key, scaffolds_of
from cglsuite_graph.datasets.molecules.tables import chemistry, molecule_table, table_of

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, UnknownNameError
from cglsuite.graphs.splits.ogb import without_update_check

SMILES = ["CO", "c1ccccc1O", "C[C@H](N)C(=O)[O-]", "C/C=C\\Cl", "C#N", "[Na+].[Cl-]", "CS(=O)(=O)N", "F[P](F)(F)(F)F", "[CH3]", "B(O)O"]


@pytest.fixture(autouse=True)
def _needs_rdkit() -> None:
    pytest.importorskip("rdkit", reason="molecules need RDKit: the extra cglsuite-graph[molecules]")


def test_methanol_by_hand() -> None:
    table = table_of(["CO"])
    names = dict(zip(atoms.ATOM, table["atoms"].T.tolist(), strict=True))
    assert names["number"] == [6, 8]
    assert names["degree"] == [1, 1]
    assert names["total_degree"] == [4, 2]
    assert names["hydrogens"] == names["implicit"] == [3, 1]
    assert names["hybridization"] == [4, 4]  # RDKit's number of SP3
    for zero in ("chirality", "charge", "written", "radicals", "aromatic", "ring"):
        assert names[zero] == [0, 0]
    assert table["pairs"].tolist() == [[0], [1]]
    assert table["bonds"].tolist() == [[1, 0, 0]]
    # Carbon is element 0 of 43, oxygen 2; then degree 1, implicit hydrogens, charge and radicals, SP3 as third of five, hydrogens.
    carbon, oxygen = (np.flatnonzero(row).tolist() for row in atoms.canonical(table["atoms"]))
    assert carbon == [0, 43 + 1, 54 + 3, 63 + 2, 69 + 3]
    assert oxygen == [2, 43 + 1, 54 + 1, 63 + 2, 69 + 1]
    assert atoms.canonical(table["atoms"]).shape == (2, 74)


def test_charge_and_radicals_are_numbers() -> None:
    table = table_of(["[O-2]", "[CH3]"])
    assert atoms.canonical(table["atoms"])[:, 61:63].tolist() == [[-2, 0], [0, 1]]


def test_nodes_are_numbered_over_all_molecules() -> None:
    table = table_of(["CC", "C", "CCC"])
    assert table["sizes"].tolist() == [2, 1, 3]
    assert table["pairs"].tolist() == [[0, 3, 4], [1, 4, 5]]


def test_rejected_rows_are_recovered_or_left_out_and_listed() -> None:
    table = table_of(["C", "C(C)(C)(C)(C)C", "C(", "CO"])
    assert table["row"].tolist() == [0, 1, 3]
    assert table["recovered"].tolist() == [1]
    assert table["unreadable"].tolist() == [2]
    assert table["sizes"].tolist() == [1, 6, 2]
    assert table["atoms"][1, atoms.ATOM.index("degree")] == 5


def test_an_empty_molecule(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("smiles\nC\n\n")
    with pytest.raises(
        DataError, match=r"a\.csv: data row 1 \(counted from 0\) has a molecule without atoms \(''\): remove or fix the row"
    ):
        molecule_table(DataRoot(None, tmp_path / "cache"), "a", path, ["C", ""])


def test_without_rdkit_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(
        DataError, match=r"RDKit, which is not installed. Install it with: python -m pip install 'cglsuite-graph\[molecules\]'"
    ):
        chemistry()


def test_as_ogb_has_them() -> None:
    with without_update_check():
        from ogb.utils import smiles2graph
    for smiles in SMILES:
        theirs = smiles2graph(smiles)
        ours = table_of([smiles])
        np.testing.assert_array_equal(atoms.ogb_atoms(ours["atoms"]).columns, theirs["node_feat"], smiles)
        pairs, first = ours["pairs"], np.arange(0, theirs["edge_index"].shape[1], 2)
        np.testing.assert_array_equal(pairs, theirs["edge_index"][:, first], smiles)
        np.testing.assert_array_equal(atoms.ogb_bonds(ours["bonds"]).columns, theirs["edge_feat"][first], smiles)


def test_as_pyg_has_them() -> None:
    from torch_geometric.utils import from_smiles

    number, hydrogens, aromatic = (atoms.ATOM.index(name) for name in ("number", "hydrogens", "aromatic"))
    for smiles in SMILES:
        theirs, ours = from_smiles(smiles), table_of([smiles])["atoms"]
        np.testing.assert_array_equal(ours[:, [number, hydrogens, aromatic]], theirs.x[:, [0, 4, 7]].numpy(), smiles)


def test_symbols_in_order_of_first_appearance() -> None:
    kinds = atoms.symbols(table_of(["OC", "N"])["atoms"])
    assert kinds.columns.ravel().tolist() == [0, 1, 2]
    assert kinds.sizes == (3,)


def test_degrees_by_hand() -> None:
    assert atoms.degrees(np.array([[0, 0, 1], [1, 2, 2]]), 4).tolist() == [[0, 2], [1, 1], [2, 0], [0, 0]]


def test_kinds_of_zinc_are_of_kekule_structures() -> None:
    table = table_of(["c1ccccc1O", "C[NH3+]", "C[NH-]"], kekulize=True)
    kinds = [atoms.ZINC_KINDS[k] for k in atoms.zinc_kinds(table["atoms"]).columns.ravel()]
    assert kinds == [(6, 0, 0)] * 6 + [(8, 0, 0), (6, 0, 0), (7, 3, 1), (6, 0, 0), (7, 1, -1)]
    assert sorted(table["bonds"][:7, 0].tolist()) == [1, 1, 1, 1, 2, 2, 2], "a ring and what hangs on it"
    with pytest.raises(
        DataError, match="an atom of element 92 with 0 written hydrogens and charge 0 does not match any of the 28 atom kinds"
    ):
        atoms.zinc_kinds(table_of(["[U]"])["atoms"])


def test_bond_types_in_a_given_order() -> None:
    bonds = table_of(["C=CC#N"])["bonds"]
    assert atoms.bond_types(bonds, ("SINGLE", "DOUBLE", "TRIPLE")).columns.ravel().tolist() == [2, 1, 3]
    with pytest.raises(DataError, match="found a bond of RDKit type 3; expected one of SINGLE, DOUBLE"):
        atoms.bond_types(bonds, ("SINGLE", "DOUBLE"))


def test_scaffolds_by_hand() -> None:
    """Two benzenes with a tail, an acyclic molecule, one that RDKit rejects, cyclohexane, another acyclic one."""
    smiles = ["CCc1ccccc1", "Oc1ccccc1", "CCC", "C(C)(C)(C)(C)C", "CC1CCCCC1", "CO"]
    assert scaffolds_of(smiles, RULES["murcko"]).tolist() == [0, 0, 1, 2, 3, 1]
    assert scaffolds_of(["CNC(=O)c1ccccc1", "CCNC(=O)c1ccccc1", "CC"], RULES["brics"]).tolist() == [0, 0, 1]


def test_an_unknown_rule(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="murko"):
        scaffold_key(DataRoot(None, tmp_path), "a", tmp_path / "a.csv", [], "murko")


def test_balanced_domains_by_hand() -> None:
    """Scaffolds of 3, 2, 2 and 1 molecules in two domains: 3 | 2, then 2 to the smaller one, then 1 to the smaller one."""
    scaffold = np.array([5, 5, 5, 7, 7, 8, 8, 9])
    assert balanced_domains(scaffold, 2).tolist() == [0, 0, 0, 1, 1, 1, 1, 0]
