"""Load BeGin's official splits, which are published as one residue (0 to 9) per item, and convert them to split codes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from cglsuite.base.datafiles import UNREADABLE, DataRoot
from cglsuite.base.errors import DataError, UnknownNameError
from cglsuite.graphs.collection import GraphData
from cglsuite.graphs.data import NodeData
from cglsuite.graphs.links import LinkData

__all__ = ["BEGIN_FILES", "BeginFile", "Residues", "begin_array", "begin_split", "read_split", "with_begin_split"]

Array = np.ndarray[Any, Any]
Data = TypeVar("Data", NodeData, LinkData, GraphData)

_NOTE = (
    "It is made from https://github.com/ShinhwanKang/BeGin, metadata/{stem}.pkl (Apache-2.0): the same arrays under the same keys, "
    "saved with numpy.savez as unsigned integers"
)


class Residues(NamedTuple):
    """Maps residues 0 to 9 to parts: training below ``validation_from``, test from ``test_from`` on, and validation in between."""

    validation_from: int
    test_from: int


class BeginFile(NamedTuple):
    """A published split file: its name in ``begin-splits/``, the key and meaning of its residues, and the number of items."""

    file: str
    key: str
    residues: Residues
    items: int
    sha256: str


_SIX_TWO_TWO, _FOUR_ONE_FIVE, _EIGHT_ONE_ONE = Residues(6, 8), Residues(4, 5), Residues(8, 9)

BEGIN_FILES: dict[str, BeginFile] = {
    "corafull": BeginFile(
        "corafull_metadata_allIL.npz",
        "inner_tvt_splits",
        _SIX_TWO_TWO,
        19_793,
        "faf50bebfcc5c1d52d6ddc00657efdfdbf07730d0894c0b9498a8254cee1bf26",
    ),
    "bitcoin-otc": BeginFile(
        "bitcoin_metadata_allIL.npz",
        "inner_tvt_split",
        _EIGHT_ONE_ONE,
        35_592,
        "3a9e1f761eb2677a4bb8fc96763d9f9c572d559b5c02a352b1ee5e068b28a8f5",
    ),
    "ogbn-arxiv": BeginFile(
        "ogbn-arxiv_metadata_timeIL.npz",
        "inner_tvt_splits",
        _FOUR_ONE_FIVE,
        169_343,
        "8ac1cd5b0e343919f139fc001311dfb880315457a65206418814aa1f8c8991db",
    ),
    "twitch-gamers": BeginFile(
        "twitch_metadata_domainIL.npz",
        "inner_tvt_splits",
        _FOUR_ONE_FIVE,
        168_114,
        "b1125e11306838bc6d105d5d7156df06eff1b97ad7c84f15ae991007fa7fb474",
    ),
    "ogbn-proteins": BeginFile(
        "ogbn-proteins_metadata_domainIL.npz",
        "inner_tvt_splits",
        _FOUR_ONE_FIVE,
        132_534,
        "0af87900e9f97b291a4929bc6f6b58332328cfe4d8cff100228ad7099d794b79",
    ),
    "aromaticity": BeginFile(
        "aromaticity_metadata_allIL.npz",
        "inner_tvt_splits",
        _SIX_TWO_TWO,
        3_868,
        "d268cc98dd3abb3c40b7820fdee871dea1c6861fd7ba1a8244c2804ac1454d00",
    ),
    "ogbg-molhiv": BeginFile(
        "molhivx_metadata_domainIL.npz",
        "inner_tvt_splits",
        _EIGHT_ONE_ONE,
        41_127,
        "394d2bf982c6d4995b7343c8524ba6a944d06adf61c9d2058ebe64404ca96c44",
    ),
    "ogbg-ppa": BeginFile(
        "ogbg-ppa_metadata_domainIL.npz",
        "inner_tvt_split",
        _EIGHT_ONE_ONE,
        40_700,
        "716bb857505d9b13414b6497d43585f7988839717175466b9ea95c04840f83a3",
    ),
    "nyctaxi": BeginFile(
        "nyctaxi_metadata_timeIL.npz",
        "inner_tvt_splits",
        _SIX_TWO_TWO,
        35_064,
        "57938a256ad6a8a6811dbc327c081a3bebd6931962aa4819aed8dad9b2d2d6ca",
    ),
}
"""Maps datasets to files. For ``ogbg-molhiv``, this is the version with 20 domains, which BeGin's current loader reads."""


def begin_split(root: DataRoot, dataset: str) -> Array:
    """Load BeGin's official split for a dataset listed in :data:`BEGIN_FILES`.

    Args:
        root: the data folder that contains the file ``begin-splits/<name>.npz``.
        dataset: a key of :data:`BEGIN_FILES`.

    Returns:
        int8 [N]: 0 training, 1 validation, 2 test, in the order of the dataset's items.

    Raises:
        UnknownNameError: if there is no such dataset.
        DataError: if the file is missing (the message explains which file to put where), truncated, or has a different length.

    Example:
        >>> begin_split(DataRoot.from_environment(), "corafull")  # doctest: +SKIP
        array([2, 0, 0, ..., 1, 0, 0], dtype=int8)
    """
    file = _file(dataset)
    path = _path(root, file)
    split = read_split(path, file.key, file.residues)
    if root.verify and len(split) != file.items:
        raise DataError(f"{path}: {file.key} has {len(split):,} entries; expected {file.items:,}, one per item of {dataset}")
    return split


def begin_array(root: DataRoot, dataset: str, key: str) -> Array:
    """Load another array from a split file unchanged, such as ``time_splits`` or ``domain_splits``: unsigned integers [M].

    Raises:
        UnknownNameError, DataError: as for :func:`begin_split`, or if there is no such key.
    """
    return _array(_path(root, _file(dataset)), key)


def read_split(path: str | Path, key: str = "inner_tvt_splits", residues: Residues = _FOUR_ONE_FIVE) -> Array:
    """Load a split from any file of this format, where ``archive[key][i] % 10`` determines the part of item ``i``.

    Args:
        path: an npz file without pickled objects.
        key: the name of the array of residues, integers [N].
        residues: the residues of validation and test items. Lower residues are training items.

    Returns:
        int8 [N]: 0 training, 1 validation, 2 test.

    Raises:
        DataError: if the file cannot be read, has no such key, or does not contain non-negative integers [N].
    """
    values = _array(Path(path), key)
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer) or (values.size and values.min() < 0):
        raise DataError(f"{path}: {key} is {values.dtype} {list(values.shape)}; expected non-negative integers [N]")
    residue = values % 10
    return np.select([residue < residues.validation_from, residue < residues.test_from], [0, 1], 2).astype(np.int8)


def with_begin_split(root: DataRoot, data: Data) -> Data:
    """Replace the split of ``data`` with BeGin's split for the dataset ``data.name``.

    Raises:
        DataError: as for :func:`begin_split`, or if the split has a different number of items.
    """
    split = begin_split(root, data.name)
    if len(split) != data.n_items:
        raise DataError(
            f"{data.name}: the split in begin-splits/{_file(data.name).file} has {len(split):,} items, but the dataset has "
            f"{data.n_items:,}: they do not belong to the same dataset"
        )
    return dataclasses.replace(data, official_split=torch.from_numpy(split))


def _file(dataset: str) -> BeginFile:
    if dataset not in BEGIN_FILES:
        raise UnknownNameError("dataset with a BeGin split", dataset, BEGIN_FILES)
    return BEGIN_FILES[dataset]


def _path(root: DataRoot, file: BeginFile) -> Path:
    return root.file(f"begin-splits/{file.file}", sha256=file.sha256, note=_NOTE.format(stem=file.file.removesuffix(".npz")))


def _array(path: Path, key: str) -> Array:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            if key in archive:
                values: Array = archive[key]
                return values
            known = ", ".join(archive)
    except UNREADABLE as error:
        raise DataError(f"{path} is truncated or not an npz file ({type(error).__name__}: {error}): replace the file") from error
    raise DataError(f"{path} has no array {key!r}; it contains {known}")
