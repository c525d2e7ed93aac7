"""Superpixels, protein neighbourhoods, OGB's molecules, taxi trips, posts and ZINC from tiny files in the true raw formats."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from cglsuite_graph.datasets.assemble import graph_data
from cglsuite_graph.datasets.molecules.moleculenet import molhiv
from cglsuite_graph.datasets.molecules.zinc_pickles import zinc
from cglsuite_graph.datasets.nyc_taxi import hourly_pairs, read_boroughs
from cglsuite_graph.datasets.ogbg import ppa
from cglsuite_graph.datasets.sentiment import chosen_posts, sentiment140
from cglsuite_graph.datasets.superpixels import cifar10, mnist

from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData


def graph(data: GraphData, i: int) -> Any:
    return data.items.queries(torch.tensor([i]), "cpu")


class Call:
    """Pickled, this makes a file when it is loaded without care."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


# --- superpixels ---------------------------------------------------------------------------------------------------------------


def test_superpixels_are_features_and_positions(files: Any) -> None:
    files.superpixels("mnist")
    files.superpixels("cifar10")
    data = mnist(files.root)
    assert data.n_items == 90
    assert data.official_split is not None
    assert data.official_split.tolist() == [0] * 30 + [1] * 30 + [2] * 30
    assert data.y[:7].tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert data.y[30:34].tolist() == [9, 9, 9, 8], "the second part comes in another order"
    second = graph(data, 4)  # the second graph of class 1: four nodes of intensity 0.1
    torch.testing.assert_close(second.features, torch.tensor([[0.1, i / 10, 1 - i / 10] for i in range(4)]))
    assert second.edges_with_loops[:, :4].tolist() == [[0, 1, 2, 3], [1, 2, 3, 0]]
    assert second.edge_features is None
    assert graph(mnist(files.root, edge_features=True), 4).edge_features.flatten().tolist() == pytest.approx([0, 0.1, 0.2, 0.3])
    assert cifar10(files.root).n_features == 5


def test_superpixels_run_nothing_that_a_file_names(files: Any, tmp_path: Path) -> None:
    files.superpixels("mnist", content=([Call(tmp_path / "called")], [], []))
    with pytest.raises(DataError, match=r"MNIST_v2\.pt is truncated or contains objects other than tensors, so it was not read"):
        mnist(files.root)
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([[], []], "expected three lists of graphs"),
        ([[{"x": torch.ones(1, 1)}]] * 3, "a graph is missing one of the tensors x, pos, edge_index, edge_attr, y"),
    ],
)
def test_bad_superpixels(content: object, message: str, files: Any) -> None:
    files.superpixels("cifar10", content=content)
    with pytest.raises(DataError, match=message):
        cifar10(files.root)


def test_truncated_superpixels(files: Any) -> None:
    path = files.superpixels("mnist")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"MNIST_v2\.pt is truncated"):
        mnist(files.root)


# --- OGB -----------------------------------------------------------------------------------------------------------------------


def test_sampled_protein_neighbourhoods(files: Any) -> None:
    """Graph 0 is not sampled; graph i has 2 + i % 2 nodes; edges are stored once and read in both directions."""
    files.ppa()
    data = ppa(files.root)
    assert data.keys["row"].tolist() == list(range(1, 111))
    assert data.y.tolist() == [i % 37 for i in range(1, 111)]
    assert data.keys["domain"].tolist() == [i % 11 for i in range(110)]
    first = graph(data, 0)  # a path of three nodes; its edges are the file's second and third
    assert first.features.tolist() == [[1, 1], [2, 2], [1, 1]]
    assert first.edges_with_loops[:, :4].tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert first.edge_features.tolist() == [[pytest.approx(e)] * 7 for e in (0.1, 0.1, 0.2, 0.2)]
    assert graph(ppa(files.root, edge_features=False), 0).edge_features is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num-node-list": [[2]]}, "found 1 node counts, 111 edge counts and 111 labels"),
        ({"edge": [(0, 1)] * 200}, r"differ in length|200 edges"),
        ({"edge": [(0, 7)] * 166}, r"an edge refers to a node that its graph does not have"),
    ],
)
def test_files_of_ogb_that_do_not_fit(changes: dict[str, Any], message: str, files: Any) -> None:
    files.ppa(**changes)
    with pytest.raises(DataError, match=message):
        ppa(files.root)


def test_a_truncated_file_of_ogb(files: Any) -> None:
    files.ppa()
    path = files.folder / "data/ogbg_ppa/raw/edge.csv.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"edge\.csv\.gz is truncated or has the wrong format"):
        ppa(files.root)


def test_molhiv_from_the_files_of_ogb(files: Any) -> None:
    """Methanol and ethane as OGB stores them; features are the indicators of its nine columns."""
    carbon, oxygen = [5, 0, 4, 5, 3, 0, 2, 0, 0], [7, 0, 2, 5, 1, 0, 2, 0, 0]
    content = {
        "edge": [(0, 1), (0, 1)],
        "edge-feat": [(0, 0, 0), (0, 0, 0)],
        "node-feat": [carbon, oxygen, carbon, carbon],
        "num-node-list": [[2], [2]],
        "num-edge-list": [[1], [1]],
        "graph-label": [[1], [0]],
    }
    files.ogb("ogbg_molhiv", content)
    data = molhiv(files.root, source="ogb", split_source="none")
    assert data.y.tolist() == [[True], [False]]
    starts = np.cumsum([0, 119, 5, 12, 12, 10, 6, 6, 2])
    columns = graph(data, 0).features.csr.col_indices().reshape(2, 9).tolist()
    assert columns == [(starts + np.array(atom)).tolist() for atom in (carbon, oxygen)]
    assert graph(data, 1).edge_features.shape == (2, 13)
    assert data.official_split is None


# --- taxi trips ----------------------------------------------------------------------------------------------------------------


def months(files: Any, trips: dict[str, list[tuple[Any, ...]]]) -> dict[str, Any]:
    files.taxi(list(trips), trips)
    suffix = {name: "csv" if name.startswith("2018") else "parquet" for name in trips}
    paths = [(pd.Period(name), files.folder / f"data/NYCTaxi/raw/yellow_tripdata_{name}.{suffix[name]}") for name in trips]
    return hourly_pairs(paths)


@pytest.mark.parametrize("year", [2018, 2019])
def test_passengers_per_hour_and_pair(year: int, files: Any) -> None:
    """What counts and what does not, from csv (2018) and parquet (2019) alike."""
    pairs = months(
        files,
        {
            f"{year}-01": [
                (f"{year}-01-01 00:00:00", 2, 4, 7),
                (f"{year}-01-01 00:59:59", 3, 4, 7),  # the same hour
                (f"{year}-01-01 01:00:00", 1, 4, 7),
                (f"{year}-01-01 00:30:00", 1, 7, 4),  # the other direction
                (f"{year}-01-01 00:30:00", 1, 4, 4),  # within a zone
                (f"{year}-01-01 00:30:00", 0, 4, 9),  # nobody
                (f"{year}-01-01 00:30:00", None, 4, 9),  # not given
                (f"{year}-01-01 00:30:00", 1, 4, 266),  # no zone
                (f"{year}-02-01 00:00:00", 1, 4, 7),  # another month's
            ],
            f"{year}-02": [(f"{year}-02-01 00:00:00", 6, 265, 1)],
        },
    )
    assert pairs["hour"].tolist() == [0, 0, 1, 31 * 24]
    assert list(zip(pairs["origin"].tolist(), pairs["target"].tolist(), strict=True)) == [(3, 6), (6, 3), (3, 6), (264, 0)]
    assert pairs["passengers"].tolist() == [5, 1, 1, 6]


def test_boroughs_by_name(files: Any) -> None:
    files.taxi(["2018-01"])
    path = files.folder / "data/NYCTaxi/raw/taxi_zone_lookup.csv"
    features = read_boroughs(path)
    assert features.shape == (265, 7)
    assert features[[0, 6, 7, 263, 264]].argmax(axis=1).tolist() == [0, 6, 0, 6, 6]
    path.write_text("LocationID,Borough\n1,Queens\n2,Bronx\n")
    with pytest.raises(DataError, match=r"found 2 zones in 2 boroughs; expected zones 1\.\.265 in 7"):
        read_boroughs(path)


def test_a_month_without_a_column(files: Any) -> None:
    files.taxi(["2018-01"])
    path = files.put("NYCTaxi/raw/yellow_tripdata_2018-01.csv", "tpep_pickup_datetime,PULocationID\n2018-01-01,4\n")
    with pytest.raises(DataError, match=r"yellow_tripdata_2018-01\.csv is truncated or has the wrong format"):
        hourly_pairs([(pd.Period("2018-01"), path)])


# --- posts ---------------------------------------------------------------------------------------------------------------------


def test_posts_are_drawn_per_day_and_polarity(files: Any) -> None:
    path = files.sentiment()
    chosen = chosen_posts(path, days=3, posts=5)
    assert chosen["day"].tolist() == [day for day in (20090526, 20090527, 20090528) for _ in range(10)]
    assert chosen["y"].tolist() == [0] * 5 + [1] * 5 + [0] * 5 + [1] * 5 + [0] * 5 + [1] * 5
    assert chosen["row"].is_unique
    first = chosen["row"][:5]
    assert first.between(12 * 15, 12 * 15 + 14).all(), "negative posts of the first day follow the positive ones of all days"
    assert chosen.equals(chosen_posts(path, days=3, posts=5))
    with pytest.raises(DataError, match="only 12 days from 2009-05-26 to 2009-07-07 have 15 posts of each polarity; expected 13"):
        chosen_posts(path, days=13, posts=15)


def test_trees_of_tokens_and_their_heads(files: Any, chain: Any) -> None:
    stamp = "Tue May 26 10:00:00 PDT 2009"
    files.sentiment([(4, 1, stamp, "NO_QUERY", "a", "so good now"), (0, 2, stamp, "NO_QUERY", "b", " ")])
    data = sentiment140(files.root, days=1, posts=1)
    assert data.n_items == 1, "the blank post has no token"
    assert data.notes == {"posts_without_tokens": 1}
    assert (data.y.tolist(), data.keys["row"].tolist(), data.keys["day"].tolist()) == ([1], [0], [20090526])
    tree = graph(data, 0)
    assert tree.features.tolist() == [[2] * 4, [4] * 4, [3] * 4]
    assert tree.edges_with_loops[:, :4].tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]


def test_without_spacy_or_its_model_both_are_named(files: Any) -> None:
    files.sentiment()
    with pytest.raises(
        DataError, match=r"parsing posts requires spaCy and its model no_such_model, but .* is not installed. Run: python -m"
    ):
        sentiment140(files.root, model="no_such_model")


@pytest.mark.nightly
def test_documents_of_spacy_itself(files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spacy = pytest.importorskip("spacy", reason="posts need spaCy: the extra cglsuite-graph[text]")
    from cglsuite_graph.datasets.sentiment import trees

    vocab = spacy.blank("en").vocab
    vocab.reset_vectors(width=2)
    vocab.set_vector("good", np.array([1, 2], dtype=np.float32))
    document = spacy.tokens.Doc(vocab, ["really", "good", "stuff"], heads=[1, 2, 2], deps=["advmod", "amod", "ROOT"])
    arrays = trees(type("Pipeline", (), {"pipe": lambda self, texts: [document]})(), ["really good stuff"])
    assert arrays["pairs"].tolist() == [[0, 1], [1, 2]]
    assert arrays["x"].tolist() == [[0, 0], [1, 2], [0, 0]]


# --- ZINC ----------------------------------------------------------------------------------------------------------------------


def test_zinc_reads_the_subset_of_the_pickles(files: Any) -> None:
    files.zinc(per_size=1)
    data = zinc(files.root)
    assert (data.n_items, data.n_features) == (33, 28)
    assert data.keys["row"].tolist() == list(range(1, 12)) * 3
    assert data.keys["domain"].tolist() == list(range(11)) * 3
    assert data.official_split is not None
    assert data.official_split.tolist() == [0] * 11 + [1] * 11 + [2] * 11
    assert data.y[:3, 0].tolist() == pytest.approx([1.8, 1.9, 2.0])
    first = graph(data, 0)
    assert first.features.csr.col_indices().tolist() == list(range(18))
    assert first.n_edges == 2 * 17
    assert first.edge_features.argmax(dim=1).tolist() == [1] * 34


def set_type(molecule: dict[str, Any], kind: str, value: int) -> None:
    molecule[kind] = torch.full_like(molecule[kind], value)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m.pop("bond_type"), "molecule 2 is missing one of the tensors atom_type, bond_type, logP_SA_cycle_normalized"),
        (lambda m: set_type(m, "atom_type", 28), "found type 28 among the atoms; expected a value below 28"),
        (lambda m: set_type(m, "logP_SA_cycle_normalized", 1), None),
        (lambda m: m.update(logP_SA_cycle_normalized=torch.tensor([float("nan")])), "zinc: .*(NaN|not finite)"),
    ],
)
def test_bad_molecules_of_zinc(edit: Callable[[dict[str, Any]], None], message: str | None, files: Any) -> None:
    files.zinc(per_size=1, edit=edit)
    if message is None:
        assert zinc(files.root).n_items == 33
        return
    with pytest.raises(DataError, match=message):
        zinc(files.root)


def test_zinc_runs_nothing_that_a_pickle_names(files: Any, tmp_path: Path) -> None:
    paths = files.zinc(per_size=1)
    paths["val"].write_bytes(pickle.dumps([Call(tmp_path / "called")]))
    with pytest.raises(DataError, match=r"val\.pickle .*which is not allowed"):
        zinc(files.root)
    assert not (tmp_path / "called").exists()
    paths["val"].write_bytes(gzip.compress(b"no pickle"))
    with pytest.raises(DataError, match=r"val\.pickle is truncated or has the wrong format"):
        zinc(files.root)


def test_only_notes_that_count_something_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Of what was found in the files: how often, in the data and in the log."""
    features, none = np.ones((2, 1), dtype=np.float32), np.empty((2, 0), dtype=np.int64)
    with caplog.at_level("INFO"):
        data = graph_data(
            "toy",
            x=features,
            edge_index=none,
            sizes=np.array([1, 1]),
            y=np.array([0, 1]),
            n_classes=2,
            notes={"loops_left_out": 0, "dropped": 3},
        )
    assert dict(data.notes) == {"dropped": 3}
    assert [record.getMessage() for record in caplog.records] == ["toy: dropped: 3"]
