"""Twitch user graphs with languages as domains: Twitch gamers (21 languages), and the seven MUSAE graphs combined into one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData, node_arrays
from cglsuite.protocols.begin.splits import with_begin_split
from cglsuite_node.datasets.arrays import Array, binary, both_ways, load
from cglsuite_node.datasets.specs import MUSAE_DOMAINS, SIZES, TWITCH_LANGUAGES

_GAMERS = ("large_twitch_edges.csv", "large_twitch_features.csv")
_GAMERS_URLS = ("https://snap.stanford.edu/data/twitch_gamers.zip",)
_MUSAE_PARTS = ("edges.csv", "features.json", "target.csv")
_MUSAE_NOTE = (
    "It comes from https://github.com/benedekrozemberczki/MUSAE, folder input/: the edges, features and target of {domain} become "
    "edges.csv, features.json and target.csv"
)
_MUSAE_SHA256 = {
    "DE/edges.csv": "54feaf3e3e70a485fe07f8611e4d2677841b97f77b8358204bcf4a48cc884d86",
    "DE/features.json": "7b39c42570f05cd46017c765df8d8a1bc03f19787c3eb0f9684f50a52476ae3a",
    "DE/target.csv": "2188f58a093bb9db363d3eaf7c3a52c2adc8ff6b23cbcb4f53875f87061c0321",
    "ENGB/edges.csv": "5ea4d7f7267454e9523577eb2a9b4dcb7a22dd660a548240f01b815d08e0e3cc",
    "ENGB/features.json": "d55948bd911ab28e0a89c4946562d5a8b363b9a7e4216e1a4986f37c74caa777",
    "ENGB/target.csv": "e9d51399878216d2dd662b0a152b602cccde7b5cbb8452cb91d9379f64114443",
    "ES/edges.csv": "17801d2cc45fc4909a431ce7a190c0565d4af87b0548ca7705cf2bef7da4c884",
    "ES/features.json": "dec4b672183f9cb04524ee605b763cc14244ed88eb766147a3f954e9abe30d59",
    "ES/target.csv": "f843427bae58289100e78c6c211fa4a1ae0d5fbf2c665841df9e390b00dcffb5",
    "FR/edges.csv": "9924263f7e8edaa7278dcbc37bd90c8712cb0ea1726d85e054a5588b7959f887",
    "FR/features.json": "490ff6a0afb0838fea1696980b14b3fcb9e8932d18e1f5172f066e45d97daa46",
    "FR/target.csv": "dd0a9e7ba565cbb95ae66003892709742bd08c26387656e3e235fc25205663b4",
    "PTBR/edges.csv": "b72d93a3c8a82883771a2f3822fce229885fa0d40367fb105c0535fb36c773b9",
    "PTBR/features.json": "5012dee29ca3ae57cbdb4f46279506e3b87ff79d8c43affcafd7576acb21f960",
    "PTBR/target.csv": "ecba7d1287e72ae7c3f42c922be475283288c0c67346245c72109690460444bd",
    "RU/edges.csv": "fd307587a550289f746056ea12a7336171ab2053c9e08c42dba77499126ca5b2",
    "RU/features.json": "7767f5d6fdb405cc5cd4267bd3dd0371cbd585ef3f3bec6b5d156880fe42e30a",
    "RU/target.csv": "db7617528355be994352e491e7b25d060fed466d0d81c09cadd90fa10f15c071",
    "ZHTW/edges.csv": "47c986023f1f434f76026ddfb3ab544be24849011400c99402083d06d3dfa017",
    "ZHTW/features.json": "9508cc55f4b891018f278df4cec40d622aba2b04c1bca9451fd9e8ce11321c7b",
    "ZHTW/target.csv": "65b75f23be40140d2e326813c3f81419f1a94aa1091acfc0279f0403be8165f7",
}


def gamers(root: DataRoot, split_source: str = "begin", edges: str = "both") -> NodeData:
    """Load the Twitch gamers dataset, labelled by membership of the affiliate programme (see its spec).

    Target, features and domains follow BeGin's loader. The target is ``affiliate``. The features are the number of views divided by its
    maximum, ``mature``, ``life_time`` in days and ``dead_account``. The domains are the languages in the order of :data:`TWITCH_LANGUAGES`.

    Args:
        root: where ``TwitchGamers/`` is, and ``begin-splits/`` if BeGin's split is requested.
        split_source: ``begin``: BeGin's split; ``original``: no split, like the source.
        edges: ``both``: every mutual friendship in both directions; ``as-given``: only the direction in the file, as in BeGin's code.

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the other.
    """
    members = {f"TwitchGamers/{name}": name for name in _GAMERS}

    def read(folder: Path) -> dict[str, Array]:
        return _read_gamers(folder / "TwitchGamers", edges)

    data = load(root, "twitch-gamers", root.unpacked(members, urls=_GAMERS_URLS), read, {"edges": edges})
    return with_begin_split(root, data) if split_source == "begin" else data


def musae(root: DataRoot) -> NodeData:
    """Load the MUSAE Twitch graphs as one graph with no edges between them (see its spec).

    Domain ``d`` is :data:`MUSAE_DOMAINS` ``[d]``; its nodes follow those of domain ``d - 1``, in the order of ``new_id``. Repeated feature
    ids of a user count once, as do repeated users in ``target.csv`` (two in FR, whose values of ``mature`` agree).

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    files = {}
    for domain in MUSAE_DOMAINS:
        for part in _MUSAE_PARTS:
            name = f"{domain}/{part}"
            files[f"MUSAETwitch/{name}"] = root.file(
                f"MUSAETwitch/{name}", sha256=_MUSAE_SHA256[name], note=_MUSAE_NOTE.format(domain=domain)
            )
    return load(root, "twitch-musae", files, _read_musae)


def _read_gamers(folder: Path, edges: str) -> dict[str, Array]:
    pairs = pd.read_csv(folder / _GAMERS[0])[["numeric_id_1", "numeric_id_2"]].to_numpy(dtype=np.int64).T
    users = pd.read_csv(folder / _GAMERS[1], keep_default_na=False, na_values=[""]).sort_values("numeric_id", kind="stable")
    _check_ids(users["numeric_id"].to_numpy(), "large_twitch_features.csv: numeric_id")
    unknown = ~users["language"].isin(TWITCH_LANGUAGES)
    if unknown.any():
        user = users[unknown].iloc[0]
        raise DataError(f"the language of user {user['numeric_id']} is {user['language']!r}; expected one of {', '.join(TWITCH_LANGUAGES)}")
    domain = users["language"].map({language: d for d, language in enumerate(TWITCH_LANGUAGES)})
    features = users[["views", "mature", "life_time", "dead_account"]].to_numpy(dtype=np.float64)
    # The maximum of a column with NaN is NaN, so every node would be reported.
    features[:, 0] /= max(float(np.nanmax(features[:, 0])), 1.0)
    return node_arrays(
        x=features,
        edge_index=both_ways(pairs) if edges == "both" else pairs,
        y=binary(users["affiliate"].to_numpy(), "affiliate of user").astype(np.int64),
        keys={"domain": domain.to_numpy()},
    )


def _read_musae(folder: Path) -> dict[str, Array]:
    features, pairs, labels = [], [], []
    first = 0
    for domain in MUSAE_DOMAINS:
        y = _musae_labels(folder / f"MUSAETwitch/{domain}/target.csv", domain)
        features.append(_musae_features(folder / f"MUSAETwitch/{domain}/features.json", domain, len(y)))
        edges = pd.read_csv(folder / f"MUSAETwitch/{domain}/edges.csv")[["from", "to"]].to_numpy(dtype=np.int64).T
        if edges.size and not (edges.min() >= 0 and edges.max() < len(y)):
            raise DataError(f"{domain}: edges refer to nodes {edges.min()}..{edges.max()}; expected 0..{len(y) - 1}")
        pairs.append(both_ways(edges + first))
        labels.append(y)
        first += len(y)
    sizes = [len(y) for y in labels]
    return node_arrays(
        x=scipy.sparse.vstack(features, format="csr"),
        edge_index=np.concatenate(pairs, axis=1),
        y=np.concatenate(labels),
        keys={"domain": np.repeat(np.arange(len(sizes)), sizes)},
    )


def _musae_labels(path: Path, domain: str) -> Array:
    users = pd.read_csv(path)[["new_id", "mature"]].drop_duplicates().sort_values("new_id", kind="stable")
    twice = users["new_id"].duplicated()
    if twice.any():
        raise DataError(f"{domain}: target.csv has contradictory rows for user {users.loc[twice, 'new_id'].iloc[0]}")
    _check_ids(users["new_id"].to_numpy(), f"{domain}: target.csv: new_id")
    if users["mature"].dtype != np.bool_:
        raise DataError(f"{domain}: target.csv: the column 'mature' must be True or False for every user")
    return users["mature"].to_numpy().astype(np.int64)


def _musae_features(path: Path, domain: str, n: int) -> scipy.sparse.csr_matrix:
    """Multi-hot features, float32 [n, 3170]."""
    lists = json.loads(path.read_text(encoding="utf-8"))
    if {int(user) for user in lists} != set(range(n)):
        raise DataError(f"{domain}: features.json has {len(lists)} users and target.csv {n}; expected the same users, 0..{n - 1}")
    width = SIZES["twitch-musae"].features
    rows = np.repeat([int(user) for user in lists], [len(ids) for ids in lists.values()])
    columns = np.array([i for ids in lists.values() for i in ids], dtype=np.int64)
    bad = (columns < 0) | (columns >= width)
    if bad.any():
        raise DataError(f"{domain}: user {rows[bad][0]} has feature {columns[bad][0]}; expected 0..{width - 1}")
    matrix = scipy.sparse.csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, columns)), (n, width))  # sums what repeats
    matrix.data[:] = 1
    return matrix


def _check_ids(ids: Array, what: str) -> None:
    if not np.array_equal(ids, np.arange(len(ids))):
        raise DataError(f"{what} should list every user 0..{len(ids) - 1} exactly once")
