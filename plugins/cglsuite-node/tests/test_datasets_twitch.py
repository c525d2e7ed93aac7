"""Twitch gamers and the MUSAE Twitch graphs from tiny files in the raw formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from cglsuite_node.datasets import twitch
from cglsuite_node.datasets.specs import MUSAE_DOMAINS, TWITCH_LANGUAGES

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError


def lenient(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=True, verify=False)


# Twitch gamers

USERS = pd.DataFrame(
    {
        "views": [7_879, 500, 382, 1_000_000, 0],
        "mature": [1, 0, 1, 0, 0],
        "life_time": [969, 2_699, 2_149, 1_500, 40],
        "created_at": ["2016-02-16"] * 5,
        "updated_at": ["2018-10-12"] * 5,
        "numeric_id": [0, 1, 2, 3, 4],
        "dead_account": [0, 0, 1, 0, 0],
        "language": ["EN", "OTHER", "CS", "ZH", "EN"],
        "affiliate": [1, 0, 1, 1, 0],
    }
)
FRIENDS = [(3, 1), (0, 4), (2, 4)]


def write_gamers(tmp_path: Path, users: pd.DataFrame = USERS, friends: Any = FRIENDS, split: bool = True) -> Path:
    folder = tmp_path / "data/TwitchGamers"
    folder.mkdir(parents=True, exist_ok=True)
    users.to_csv(folder / "large_twitch_features.csv", index=False)
    pd.DataFrame(friends, columns=["numeric_id_1", "numeric_id_2"]).to_csv(folder / "large_twitch_edges.csv", index=False)
    if split:
        (tmp_path / "data/begin-splits").mkdir(exist_ok=True)
        np.savez(tmp_path / "data/begin-splits/twitch_metadata_domainIL.npz", inner_tvt_splits=np.array([5, 4, 3, 0, 9]))
    return folder


def test_gamers(tmp_path: Path) -> None:
    write_gamers(tmp_path)
    data = twitch.gamers(lenient(tmp_path))
    assert data.edge_index.T.tolist() == [[0, 4], [1, 3], [2, 4], [3, 1], [4, 0], [4, 2]]
    assert data.y.tolist() == [1, 0, 1, 1, 0]
    assert data.keys["domain"].tolist() == [3, 20, 0, 19, 3]
    assert data.n_classes == 2
    assert data.official_split is not None
    assert data.official_split.tolist() == [2, 1, 0, 0, 2]
    expected = [[7_879e-6, 1, 969, 0], [5e-4, 0, 2_699, 0], [382e-6, 1, 2_149, 1], [1, 0, 1_500, 0], [0, 0, 40, 0]]
    torch.testing.assert_close(data.x, torch.tensor(expected))


def test_gamers_in_another_order_of_rows(tmp_path: Path) -> None:
    write_gamers(tmp_path)
    data = twitch.gamers(lenient(tmp_path))
    write_gamers(tmp_path, USERS.iloc[[2, 0, 4, 1, 3]])
    assert twitch.gamers(lenient(tmp_path)).content_hash == data.content_hash


def test_gamers_edges_as_given_and_without_split(tmp_path: Path) -> None:
    write_gamers(tmp_path, split=False)
    data = twitch.gamers(lenient(tmp_path), split_source="original", edges="as-given")
    assert data.edge_index.T.tolist() == [[0, 4], [2, 4], [3, 1]]
    assert data.official_split is None
    with pytest.raises(DataError, match=r"begin-splits/twitch_metadata_domainIL\.npz"):
        twitch.gamers(lenient(tmp_path))


def test_languages() -> None:
    assert len(TWITCH_LANGUAGES) == 21
    assert (*sorted(TWITCH_LANGUAGES[:-1]), "OTHER") == TWITCH_LANGUAGES


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("language", ["EN", "EN", "XX", "EN", "EN"], "the language of user 2 is 'XX'; expected one of CS, DA"),
        ("numeric_id", [0, 1, 2, 3, 3], r"numeric_id should list every user 0\.\.4 exactly once"),
        ("affiliate", [0, 2, 0, 1, 0], "affiliate of user 1 has the value 2; expected 0 or 1"),
        ("life_time", [1, 2, None, 3, None], "twitch-gamers: 2 feature values are NaN or infinite, the first at node 2"),
        ("views", [1, 2, 3, None, 4], "twitch-gamers: 1 feature values are NaN or infinite, the first at node 3"),
        ("mature", ["x", 0, 1, 0, 0], "twitch-gamers cannot be read"),
    ],
)
def test_bad_users(tmp_path: Path, column: str, values: Any, message: str) -> None:
    write_gamers(tmp_path, USERS.assign(**{column: values}))
    with pytest.raises(DataError, match=message) as error:
        twitch.gamers(lenient(tmp_path))
    assert "large_twitch_features.csv" in str(error.value)


def test_bad_gamers_files(tmp_path: Path) -> None:
    folder = write_gamers(tmp_path, friends=[(0, 5)])
    with pytest.raises(DataError, match=r"twitch-gamers: edges refer to nodes 0\.\.5; expected 0\.\.4"):
        twitch.gamers(lenient(tmp_path))
    write_gamers(tmp_path, USERS.drop(columns="affiliate"))
    with pytest.raises(DataError, match="twitch-gamers cannot be read .*affiliate"):
        twitch.gamers(lenient(tmp_path))
    write_gamers(tmp_path)
    with pytest.raises(DataError, match="twitch-gamers: found 5 nodes, 4 features, 2 classes; expected 168,114 nodes"):
        twitch.gamers(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True))
    (folder / "large_twitch_edges.csv").unlink()
    with pytest.raises(DataError, match=r"(?s)large_twitch_edges\.csv.*snap\.stanford\.edu/data/twitch_gamers\.zip"):
        twitch.gamers(lenient(tmp_path))


def test_split_of_another_graph(tmp_path: Path) -> None:
    write_gamers(tmp_path, USERS.iloc[:4], friends=[(0, 1)])
    with pytest.raises(DataError, match="twitch-gamers: the split in .* has 5 items, but the dataset has 4"):
        twitch.gamers(lenient(tmp_path))


# MUSAE


def write_musae(tmp_path: Path) -> Path:
    folder = tmp_path / "data/MUSAETwitch"
    for d, domain in enumerate(MUSAE_DOMAINS):
        (folder / domain).mkdir(parents=True)
        n = 2 + d
        new_ids = list(range(n))[::-1]
        target = pd.DataFrame({"id": range(n), "days": 5, "mature": [i % 2 == 0 for i in new_ids], "views": 9, "partner": False})
        target["new_id"] = new_ids
        if domain == "FR":  # a user twice, with other views, as in the true file
            target = pd.concat([target, target.iloc[[1]].assign(views=8)])
        target.to_csv(folder / domain / "target.csv", index=False)
        pd.DataFrame({"from": [0], "to": [n - 1]}).to_csv(folder / domain / "edges.csv", index=False)
        (folder / domain / "features.json").write_text(json.dumps({str(i): [i, 3_169, i] if i else [] for i in reversed(range(n))}))
    return folder


def test_musae(tmp_path: Path) -> None:
    write_musae(tmp_path)
    data = twitch.musae(lenient(tmp_path))
    sizes = torch.arange(2, 9)
    first = sizes.cumsum(0) - sizes
    assert torch.equal(data.keys["domain"], torch.repeat_interleave(torch.arange(7), sizes))
    assert data.y.tolist() == [int(i % 2 == 0) for n in sizes.tolist() for i in range(n)]
    assert data.edge_index.T.tolist() == [
        [a, b] for f, n in zip(first.tolist(), sizes.tolist(), strict=True) for a, b in [(f, f + n - 1), (f + n - 1, f)]
    ]
    assert data.x.layout == torch.sparse_csr
    dense = data.x.to_dense()
    assert dense.shape == (35, 3_170)
    assert not dense[first].any()  # lists of node 0 are empty
    for f, n in zip(first.tolist(), sizes.tolist(), strict=True):
        for i in range(1, n):
            assert dense[f + i].nonzero().flatten().tolist() == [i, 3_169]
            assert dense[f + i].max() == 1
    assert (data.n_classes, data.official_split) == (2, None)
    assert twitch.musae(lenient(tmp_path)).content_hash == data.content_hash


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("ES/features.json", "3169", "3170", r"ES: user \d has feature 3170; expected 0\.\.3169"),
        ("ES/features.json", '"3":', '"7":', r"ES: features.json has 4 users and target.csv 4; expected the same users, 0\.\.3"),
        ("DE/edges.csv", "0,1", "0,2", r"DE: edges refer to nodes 0\.\.2; expected 0\.\.1"),
        ("RU/target.csv", "False,9,False,5", "False,9,False,4", "RU: target.csv has contradictory rows for user 4"),
        ("RU/target.csv", "False,9,False,5", "False,9,False,9", r"RU: target.csv: new_id should list every user 0\.\.6 exactly once"),
        ("RU/target.csv", "False,9,False,5", ",9,False,5", "RU: target.csv: the column 'mature' must be True or False for every user"),
        ("PTBR/target.csv", "mature", "adult", "twitch-musae cannot be read .*mature"),
        ("FR/features.json", "}", "", "twitch-musae cannot be read .*JSONDecodeError"),
    ],
)
def test_bad_musae_content(tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    path = write_musae(tmp_path) / file
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))
    with pytest.raises(DataError, match=message) as error:
        twitch.musae(lenient(tmp_path))
    assert str(path) in str(error.value)


def test_absent_musae_file(tmp_path: Path) -> None:
    path = write_musae(tmp_path) / "PTBR/edges.csv"
    path.unlink()
    with pytest.raises(DataError, match=rf"(?s){path}.*with sha256 b72d93a3.*MUSAE.*target of PTBR become"):
        twitch.musae(lenient(tmp_path))
