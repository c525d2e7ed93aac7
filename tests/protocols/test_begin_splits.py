"""BeGin's official splits: the residue rules, and what bad files say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, UnknownNameError
from cglsuite.graphs import NodeData
from cglsuite.protocols.begin.splits import BEGIN_FILES, Residues, begin_array, begin_split, read_split, with_begin_split


def save(folder: Path, dataset: str, **arrays: Any) -> Path:
    path = folder / "data/begin-splits" / BEGIN_FILES[dataset].file
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return path


def lenient(folder: Path) -> DataRoot:
    return DataRoot(folder / "data", folder / "cache", offline=True, verify=False)


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("corafull", [0, 0, 0, 0, 0, 0, 1, 1, 2, 2]),
        ("ogbn-arxiv", [0, 0, 0, 0, 1, 2, 2, 2, 2, 2]),
        ("twitch-gamers", [0, 0, 0, 0, 1, 2, 2, 2, 2, 2]),
        ("ogbn-proteins", [0, 0, 0, 0, 1, 2, 2, 2, 2, 2]),
        ("bitcoin-otc", [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]),
        ("ogbg-molhiv", [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]),
        ("ogbg-ppa", [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]),
        ("aromaticity", [0, 0, 0, 0, 0, 0, 1, 1, 2, 2]),
        ("nyctaxi", [0, 0, 0, 0, 0, 0, 1, 1, 2, 2]),
    ],
)
def test_residues_of_every_file(tmp_path: Path, dataset: str, expected: list[int]) -> None:
    save(tmp_path, dataset, **{BEGIN_FILES[dataset].key: np.arange(20, dtype=np.uint8)})
    split = begin_split(lenient(tmp_path), dataset)
    assert split.dtype == np.int8
    assert split.tolist() == expected * 2


def test_every_file_is_tested() -> None:
    assert len(BEGIN_FILES) == 9
    assert all(len(file.sha256) == 64 for file in BEGIN_FILES.values())


def test_any_file_key_and_rule(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, parts=np.arange(10))
    assert read_split(path, "parts", Residues(1, 9)).tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1, 2]
    assert read_split(str(path), "parts").tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 2, 2]


def test_other_arrays_of_a_file(tmp_path: Path) -> None:
    save(tmp_path, "ogbn-arxiv", inner_tvt_splits=np.arange(3), time_splits=np.array([1971, 2011]))
    assert begin_array(lenient(tmp_path), "ogbn-arxiv", "time_splits").tolist() == [1971, 2011]


def test_unknown_dataset() -> None:
    with pytest.raises(UnknownNameError, match="dataset with a BeGin split 'ogbn-arxif'.*'ogbn-arxiv'"):
        begin_split(DataRoot(), "ogbn-arxif")


def test_absent_file_says_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        begin_split(DataRoot(tmp_path, tmp_path / "cache"), "corafull")
    message = str(error.value)
    assert f"{tmp_path}/begin-splits/corafull_metadata_allIL.npz" in message
    assert "with sha256 faf50beb" in message
    assert "metadata/corafull_metadata_allIL.pkl" in message


@pytest.mark.parametrize("kept", [0.0, 0.6, 0.98])
def test_truncated_file(tmp_path: Path, kept: float) -> None:
    path = save(tmp_path, "corafull", inner_tvt_splits=np.arange(500))
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(DataError, match=rf"{path} is truncated or not an npz file"):
        begin_split(lenient(tmp_path), "corafull")


def test_corrupt_file(tmp_path: Path) -> None:
    path = save(tmp_path, "corafull", inner_tvt_splits=np.arange(500))
    content = bytearray(path.read_bytes())
    content[1000] ^= 255
    path.write_bytes(content)
    with pytest.raises(DataError, match="CRC"):
        begin_split(lenient(tmp_path), "corafull")
    with pytest.raises(DataError, match="has the wrong checksum"):
        begin_split(DataRoot(tmp_path / "data", tmp_path / "cache"), "corafull")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"splits": np.arange(3)}, "has no array 'inner_tvt_splits'; it contains splits"),
        ({"inner_tvt_splits": np.zeros(3)}, r"inner_tvt_splits is float64 \[3\]; expected non-negative integers"),
        ({"inner_tvt_splits": np.zeros((3, 1), dtype=int)}, r"inner_tvt_splits is int64 \[3, 1\]"),
        ({"inner_tvt_splits": np.array([-1])}, "non-negative"),
        ({"inner_tvt_splits": np.array([None, "x"], dtype=object)}, "truncated or not an npz file .*pickle"),
    ],
)
def test_bad_content(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = save(tmp_path, "corafull", **arrays)
    with pytest.raises(DataError, match=rf"{path}.*{message}"):
        begin_split(lenient(tmp_path), "corafull")


def test_a_split_of_another_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, "corafull", inner_tvt_splits=np.arange(500))
    monkeypatch.setattr(DataRoot, "file", lambda self, relative, **_: self.root / relative)
    with pytest.raises(DataError, match="inner_tvt_splits has 500 entries; expected 19,793, one per item of corafull"):
        begin_split(DataRoot(tmp_path / "data", tmp_path / "cache"), "corafull")


def test_in_place_of_the_datasets_own_split(tmp_path: Path) -> None:
    save(tmp_path, "ogbn-arxiv", inner_tvt_splits=np.array([4, 9, 0]))
    data = NodeData(
        x=torch.ones(3, 1),
        edge_index=torch.zeros(2, 0, dtype=torch.int64),
        y=torch.zeros(3, dtype=torch.int64),
        n_classes=1,
        official_split=torch.zeros(3, dtype=torch.int8),
        name="ogbn-arxiv",
    )
    changed = with_begin_split(lenient(tmp_path), data)
    assert changed.official_split is not None
    assert changed.official_split.dtype == torch.int8
    assert changed.official_split.tolist() == [1, 2, 0]
    assert changed.content_hash != data.content_hash
    save(tmp_path, "ogbn-arxiv", inner_tvt_splits=np.arange(5))
    with pytest.raises(DataError, match="ogbn-arxiv: the split in .* has 5 items, but the dataset has 3"):
        with_begin_split(lenient(tmp_path), data)
