"""The molecule datasets: labels, splits and keys join on the rows of the file; what bad files say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_graph.datasets.molecules.moleculenet import aromaticity, molhiv, sider, tox21
from cglsuite_graph.datasets.molecules.regression import aqsol, size_domain, zinc_standin

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData


@pytest.fixture(autouse=True)
def _needs_rdkit() -> None:
    pytest.importorskip("rdkit", reason="molecules need RDKit: the extra cglsuite-graph[molecules]")


def graph(data: GraphData, i: int) -> Any:
    return data.items.queries(torch.tensor([i]), "cpu")


def test_numbers_that_few_molecules_have_are_left_out(files: Any) -> None:
    """Numbers 6 (20 molecules), 3 (19) and 9 (21), mixed: classes 0 and 1 are 6 and 9, and the split counts kept rows only."""
    counts = [6, 3, 9] * 19 + [6, 9, 9]
    files.aromaticity([("CO" if c == 6 else "C", float(c)) for c in counts], residues=np.arange(41))
    data = aromaticity(files.root, split_source="begin")
    kept = [i for i, c in enumerate(counts) if c != 3]
    assert data.keys["row"].tolist() == kept
    assert data.keys["aromatic_atoms"].tolist() == [counts[i] for i in kept]
    assert data.y.tolist() == [int(counts[i] == 9) for i in kept]
    assert data.n_classes == 2
    assert data.official_split is not None
    assert data.official_split.tolist() == [[0, 0, 0, 0, 0, 0, 1, 1, 2, 2][i % 10] for i in range(41)]
    assert aromaticity(files.root).official_split is None
    assert len(data.keys["scaffold"].unique()) == 1


def test_a_split_of_other_molecules(files: Any) -> None:
    files.aromaticity(residues=np.arange(599))
    with pytest.raises(DataError, match="aromaticity_metadata_allIL.npz has 599 entries; expected 600, one per molecule"):
        aromaticity(files.root, split_source="begin")


def test_features_are_a_switch(files: Any) -> None:
    files.aromaticity()
    by_degree, named = aromaticity(files.root, features="degrees"), aromaticity(files.root, bonds="types")
    assert graph(by_degree, 2).features.tolist() == [[1, 1], [2, 2], [2, 2], [2, 2], [1, 1]]  # CCCOO: a path of five atoms
    assert (by_degree.n_features, named.n_features) == (2, 74)
    assert graph(by_degree, 2).edge_features is None
    assert graph(named, 2).edge_features.tolist() == [[0, 1, 0, 0, 0]] * 8


def test_missing_labels_are_not_known(files: Any) -> None:
    files.tox21([[1, *[0] * 10, "", "T1", "CC"], ["", *[1] * 11, "T2", "C"]])
    data = tox21(files.root)
    assert data.known is not None
    assert data.known.int().tolist() == [[*[1] * 11, 0], [0, *[1] * 11]]
    assert data.y.int().tolist() == [[1, *[0] * 11], [0, *[1] * 11]]
    assert data.notes == {"graphs_without_bonds": 1}


def test_labels_join_on_rows_where_one_is_left_out(files: Any) -> None:
    labels = [[float(i % 2)] * 12 for i in range(4)]
    files.tox21([[*y, f"T{i}", s] for i, (y, s) in enumerate(zip(labels, ["C", "C(", "CC", "CCC"], strict=True))])
    data = tox21(files.root)
    assert data.keys["row"].tolist() == [0, 2, 3]
    assert data.y[:, 0].tolist() == [False, False, True]
    assert data.notes["unreadable_rows"] == 1


def test_molhiv_has_one_label_and_the_domains_of_the_rows(files: Any) -> None:
    files.molhiv()
    data = molhiv(files.root)
    assert data.y.shape == (600, 1)
    assert data.y[:, 0].tolist() == [i // 20 % 2 == 1 for i in range(600)]
    assert data.keys["domain"].tolist() == [i % 20 for i in range(600)]
    assert data.n_features == 174
    assert graph(data, 0).n_edge_features == 13
    assert graph(data, 0).features.csr.values().numel() == 2 * 9  # nine indicators for each of two atoms


def test_aqsol_leaves_molecules_without_bonds_out(files: Any) -> None:
    files.aqsol()
    data = aqsol(files.root)
    assert data.n_items == 100
    assert data.notes == {"graphs_left_out_without_bonds": 1}
    assert data.y[:3, 0].tolist() == [0, -0.25, -0.5]
    assert data.keys["group"][:6].tolist() == [1, 2, 3, 4, 5, 1]
    pairs = torch.stack([data.keys["scaffold"], data.keys["domain"]]).unique(dim=1)
    assert pairs.shape[1] == 5, "every scaffold lies in one domain"
    assert data.keys["domain"].bincount().tolist() == [20] * 5
    assert data.official_split is not None
    assert data.official_split.bincount().tolist() == [80, 10, 10]


@pytest.mark.parametrize("bad", ["nan", "", "inf", "soluble"])
def test_a_target_that_is_no_number(bad: str, files: Any) -> None:
    path = files.aqsol([*range(100), bad])
    with pytest.raises(DataError, match=rf"data row 100 \(counted from 0\) has '{bad}' for Solubility; expected a number") as caught:
        aqsol(files.root)
    assert str(path) in str(caught.value)


def test_a_molecule_without_a_part_of_the_split(files: Any) -> None:
    files.aqsol()
    files.table("AqSolDB/raw/aqsol_split.csv", ("ID", "split"), [("A-0", "train")])
    with pytest.raises(DataError, match=r"has no split for A-1 in data_curated\.csv; expected one for every ID"):
        aqsol(files.root)
    files.table("AqSolDB/raw/aqsol_split.csv", ("ID", "split"), [(f"A-{i}", "dev") for i in range(101)])
    with pytest.raises(DataError, match="found the split 'dev'; expected 'train', 'val' or 'test'"):
        aqsol(files.root)


def test_domains_of_zinc_by_size(files: Any) -> None:
    assert size_domain(np.array([9, 18, 19, 28, 29, 38])).tolist() == [0, 0, 1, 10, 10, 10]
    files.zinc_standin()
    data = zinc_standin(files.root)
    assert data.keys["domain"].tolist() == [min(max(n - 18, 0), 10) for n in range(17, 30) for _ in range(60)]
    assert (data.n_features, graph(data, 0).n_edge_features) == (28, 4)
    assert data.y[:2, 0].tolist() == pytest.approx([1.7, 1.71])


@pytest.mark.parametrize(
    ("load", "write", "message"),
    [
        (
            sider,
            lambda f: f.table("MoleculeNet/sider/raw/sider.csv", ("smiles", "a"), [("C", 1)]),
            "sider.csv is truncated or has the wrong format",
        ),
        (
            tox21,
            lambda f: f.tox21([[2.5, *["x"] * 11, "T", "C"]]),
            r"data row 0 .* has 'x' for NR-AR-LBD; expected a number or an empty cell",
        ),
        (molhiv, lambda f: f.put("MoleculeNet/hiv/raw/HIV.csv", "smiles,activity,HIV_active\nC,CI,0\nCC"), "data row 1 .* is incomplete"),
        (aromaticity, lambda f: f.aromaticity([("C", 1.0)] * 5), "no number of aromatic atoms occurs at least 20 times"),
        (sider, lambda f: None, r"(?s)sider\.csv is absent|sider\.csv.*put"),
    ],
)
def test_bad_files(load: Callable[..., GraphData], write: Callable[[Any], object], message: str, files: Any) -> None:
    write(files)
    kwargs = {"split_source": "none"} if load is molhiv else {}
    with pytest.raises(DataError, match=message):
        load(files.root, **kwargs)


def test_other_rows_than_those_of_the_dataset_are_told_by_their_content(files: Any) -> None:
    files.sider()
    strict = DataRoot(files.root.root, files.root.cache, offline=True)
    with pytest.raises(DataError, match=r"the columns smiles, .* of 80 rows hash to [0-9a-f]{64}; expected 13904c35"):
        sider(strict)
