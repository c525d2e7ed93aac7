"""Debian packages from tiny files in the raw formats."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from cglsuite_node.datasets.debian_packages import debian_packages

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import tfidf

# "null" is a package, not a missing value; the last two packages are built from one source.
TABLE = pd.DataFrame(
    {
        "id": ["null", "b", "c", "d", "e"],
        "source": ["null", "s", "t", "u", "u"],
        "section": ["web", "admin", "web", "libs", "libs"],
        "text": ["fast web server", "web log tool", "NA", "fast fast library", "library"],
        "tags": ["role::program", "", "", "", ""],
    }
)
EDGES = [(0, 3), (1, 3), (2, 3), (3, 4), (0, 4), (0, 3)]
MINILM = np.random.default_rng(0).normal(size=(5, 384)).astype(np.float16)


def write(tmp_path: Path, table: pd.DataFrame = TABLE, edges: list[tuple[int, int]] = EDGES, minilm: np.ndarray[Any, Any] = MINILM) -> Path:
    folder = tmp_path / "data/DebianPackages"
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "nodes.csv", index=False)
    source, target = np.array(edges, dtype=np.int32).T
    np.savez(folder / "edges.npz", source=source, target=target, relation=np.zeros(len(edges), np.int8), relations=np.array(["depends"]))
    np.save(folder / "all-minilm-l6-v2.npy", minilm)
    return folder


def lenient(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=True, verify=False)


def test_raw_files(tmp_path: Path) -> None:
    write(tmp_path)
    data = debian_packages(lenient(tmp_path))
    assert data.y.tolist() == [2, 0, 2, 1, 1]  # admin, libs, web
    assert (data.n_classes, data.name) == (3, "debian-packages")
    assert data.edge_index.T.tolist() == [[0, 3], [0, 4], [1, 3], [2, 3], [3, 4]]
    assert data.keys["source"].tolist() == [0, 1, 2, 3, 3]
    assert data.n_features == 7  # fast, library, log, na, server, tool, web
    assert data.x.to_dense().norm(dim=1).tolist() == pytest.approx([1.0] * 5)
    assert debian_packages(lenient(tmp_path)).content_hash == data.content_hash


def test_embeddings(tmp_path: Path) -> None:
    write(tmp_path)
    data = debian_packages(lenient(tmp_path), features="minilm")
    np.testing.assert_array_equal(data.x.numpy(), MINILM.astype(np.float32))
    assert data.x.dtype == torch.float32


def test_edges_to_hubs_are_dropped(tmp_path: Path) -> None:
    """Packages 3 and 4 have three and two incoming edges; repeated edges count once."""
    write(tmp_path)
    edges = {bound: debian_packages(lenient(tmp_path), max_in_degree=bound).edge_index.T.tolist() for bound in (3, 2, 1)}
    assert edges == {3: [[0, 3], [0, 4], [1, 3], [2, 3], [3, 4]], 2: [[0, 4], [3, 4]], 1: []}


def many(n: int) -> pd.DataFrame:
    """Packages with two siblings for each source, the siblings in two sections."""
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "source": [f"s{i // 2}" for i in range(n)],
            "section": [("libs", "libdevel")[i % 2] for i in range(n)],
            "text": [f"word{i % 7}" for i in range(n)],
            "tags": "",
        }
    )


def test_siblings_are_in_one_part_unless_packages_are_drawn_one_by_one(tmp_path: Path) -> None:
    write(tmp_path, many(100), minilm=np.zeros((100, 384), np.float16))
    root = lenient(tmp_path)
    splits = [debian_packages(root, split_seed=seed).official_split for seed in (0, 0, 1)]
    alone = debian_packages(root, grouping="none").official_split
    assert alone is not None
    for split in splits:
        assert split is not None
        assert torch.equal(split[::2], split[1::2])
        assert split.bincount().tolist() == [60, 20, 20]
    assert torch.equal(splits[0], splits[1])  # type: ignore[arg-type]
    assert not torch.equal(splits[0], splits[2])  # type: ignore[arg-type]
    assert not torch.equal(alone[::2], alone[1::2])
    assert [alone[i::2].bincount().tolist() for i in (0, 1)] == [[30, 10, 10]] * 2


@pytest.mark.parametrize("features", ["tfidf", "minilm"])
def test_names_sections_and_tags_change_no_bit_of_the_features(tmp_path: Path, features: str) -> None:
    """A method that reads only features cannot profit from what the columns beside the text say."""
    write(tmp_path / "a")
    shuffled = TABLE.assign(id=list("vwxyz"), section=["libs", "web", "libs", "admin", "admin"], tags="made-of::font")
    write(tmp_path / "b", shuffled)
    ours, theirs = (debian_packages(lenient(tmp_path / name), features=features) for name in "ab")
    assert torch.equal(ours.x.to_dense(), theirs.x.to_dense())
    assert not torch.equal(ours.y, theirs.y)


def test_tfidf_by_hand() -> None:
    """Smoothed idf = ln((1 + N) / (1 + df)) + 1, rows of length 1."""
    x = tfidf(["red red blue", "Blue", "green"], 2).toarray()  # red and blue twice each, green once
    blue, red = math.log(4 / 3) + 1, 2 * (math.log(4 / 2) + 1)
    length = math.hypot(blue, red)
    np.testing.assert_allclose(x, [[blue / length, red / length], [1, 0], [0, 0]])


def test_tfidf_is_that_of_scikit_learn() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = TABLE["text"].tolist()
    np.testing.assert_array_equal(tfidf(texts, 100).toarray(), TfidfVectorizer().fit_transform(texts).toarray())
    # fast occurs three times, web and library twice, and log is the first in the alphabet of those that occur once.
    few = TfidfVectorizer(vocabulary=["fast", "library", "log", "web"])
    np.testing.assert_array_equal(tfidf(texts, 4).toarray(), few.fit_transform(texts).toarray())


@pytest.mark.parametrize("file", ["nodes.csv", "edges.npz", "all-minilm-l6-v2.npy"])
def test_absent_file_says_what_goes_where(tmp_path: Path, file: str) -> None:
    (write(tmp_path) / file).unlink()
    with pytest.raises(DataError) as error:
        debian_packages(lenient(tmp_path), features="minilm")
    message = str(error.value)
    assert f"{tmp_path}/data/DebianPackages/{file}" in message
    assert "with sha256" in message
    assert "deb.debian.org" in message


def test_tfidf_does_not_need_the_embeddings(tmp_path: Path) -> None:
    (write(tmp_path) / "all-minilm-l6-v2.npy").unlink()
    assert debian_packages(lenient(tmp_path)).n_nodes == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": [(0, 5)]}, r"edges refer to nodes 0\.\.5; expected 0\.\.4"),
        ({"minilm": MINILM[:-1]}, "4 rows of features, but 5 packages"),
        ({"table": TABLE.drop(columns="section")}, "cannot be read .*section"),
        ({"minilm": np.where(np.arange(384) == 3, np.nan, MINILM)}, "5 feature values are NaN or infinite"),
    ],
)
def test_bad_content(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write(tmp_path, **change)
    with pytest.raises(DataError, match=f"debian-packages.*{message}"):
        debian_packages(lenient(tmp_path), features="minilm")


def test_truncated_files(tmp_path: Path) -> None:
    path = write(tmp_path) / "edges.npz"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=rf"debian-packages cannot be read .*{path}"):
        debian_packages(lenient(tmp_path))


def test_other_files_than_the_published_ones(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(DataError, match="has the wrong checksum"):
        debian_packages(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True))


@pytest.mark.parametrize("seed", range(5))
def test_names_of_sections_reach_no_feature(tmp_path: Path, seed: int) -> None:
    """Sections under permuted names: the same texts and the same bits of features, and the same packages in each class."""
    write(tmp_path / "a")
    names = sorted(set(TABLE["section"]))
    permuted = dict(zip(names, np.random.default_rng(seed).permutation(names), strict=True))
    write(tmp_path / "b", table=TABLE.assign(section=TABLE["section"].map(permuted)))
    for features in ("tfidf", "minilm"):
        first, other = (debian_packages(lenient(tmp_path / side), features=features) for side in ("a", "b"))
        assert other.text == first.text == tuple(TABLE["text"])
        assert torch.equal(other.x.to_dense(), first.x.to_dense())
        assert [names[c] for c in other.y] == [permuted[names[c]] for c in first.y]


@pytest.mark.parametrize("features", ["tfidf", "minilm"])
def test_shuffled_texts_stay_in_their_part(tmp_path: Path, features: str) -> None:
    """Features move with their texts; without an edge, a class or a key changing place."""
    table = pd.concat(
        [TABLE.assign(id=TABLE["id"] + str(k), source=TABLE["source"] + str(k), text=TABLE["text"] + f" w{k}") for k in range(9)]
    )
    write(tmp_path, table=table, minilm=np.random.default_rng(1).normal(size=(45, 384)).astype(np.float16))
    given = debian_packages(lenient(tmp_path), features=features)
    rows = dict(zip(given.text, given.x.to_dense().tolist(), strict=True))
    for texts in ("shuffled", "shuffled-in-class"):
        data = debian_packages(lenient(tmp_path), features=features, texts=texts)
        assert data.text != given.text
        assert data.x.to_dense().tolist() == [rows[text] for text in data.text]
        assert torch.equal(data.y, given.y)
        assert torch.equal(data.official_split, given.official_split)
        groups = [given.official_split, given.y] if texts == "shuffled-in-class" else [given.official_split]
        for group in {tuple(int(part[i]) for part in groups) for i in range(45)}:
            here = [i for i in range(45) if tuple(int(part[i]) for part in groups) == group]
            assert sorted(data.text[i] for i in here) == sorted(given.text[i] for i in here)
