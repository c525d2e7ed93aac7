"""Tiny files in the true raw formats of datasets of nodes, with items enough for every task of their presets."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse
from cglsuite_node.datasets.twitch import MUSAE_DOMAINS

from cglsuite.protocols.begin.splits import BEGIN_FILES

__all__ = ["write_arxiv", "write_cora", "write_musae"]


def write_cora(folder: Path, n: int = 700, tests: int = 100) -> None:
    """Planetoid's pickles: seven classes, 500 nodes for validation."""
    place, generator = folder / "data" / "Planetoid" / "Cora" / "raw", np.random.default_rng(0)
    place.mkdir(parents=True)
    x = scipy.sparse.csr_matrix((generator.random((n, 30)) < 0.1).astype(np.float32))
    y, rest = np.eye(7, dtype=np.int32)[np.arange(n) % 7], n - tests
    graph = {node: generator.integers(0, n, 3).tolist() for node in range(n)}
    parts = {"x": x[:70], "tx": x[rest:], "allx": x[:rest], "y": y[:70], "ty": y[rest:], "ally": y[:rest], "graph": graph}
    for part, content in parts.items():
        (place / f"ind.cora.{part}").write_bytes(pickle.dumps(content, protocol=2))
    (place / "ind.cora.test.index").write_text("".join(f"{node}\n" for node in range(rest, n)), encoding="utf-8")


def write_musae(folder: Path, n: int = 40) -> None:
    """Users of six languages, half of them mature."""
    for domain in MUSAE_DOMAINS:
        place = folder / "data" / "MUSAETwitch" / domain
        place.mkdir(parents=True)
        ids = np.arange(n)
        table = {"id": ids, "days": 5, "mature": ids % 2 == 0, "views": 9, "partner": False, "new_id": ids}
        pd.DataFrame(table).to_csv(place / "target.csv", index=False)
        pd.DataFrame({"from": ids[:-1], "to": ids[1:]}).to_csv(place / "edges.csv", index=False)
        (place / "features.json").write_text(json.dumps({str(i): [int(i), 3_169] for i in ids}), encoding="utf-8")


def write_arxiv(folder: Path, per_year: int = 20) -> None:
    """OGB's tables with all years of the true file, and BeGin's split of them."""
    years = np.arange(1997, 2021).repeat(per_year)
    n, generator = len(years), np.random.default_rng(0)
    place = folder / "data" / "ogbn_arxiv"
    tables = {
        "raw/edge": generator.integers(0, n, (2 * n, 2)),
        "raw/node-feat": generator.normal(size=(n, 5)).round(3),
        "raw/node-label": np.arange(n) % 40,
        "raw/num-node-list": np.array([n]),
        "raw/num-edge-list": np.array([2 * n]),
        "raw/node_year": years,
        **{f"split/time/{part}": np.arange(k, n, 3) for k, part in enumerate(("train", "valid", "test"))},
    }
    for name, rows in tables.items():
        path = place / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress("".join(",".join(map(str, np.atleast_1d(row).tolist())) + "\n" for row in rows).encode()))
    splits = folder / "data" / "begin-splits" / BEGIN_FILES["ogbn-arxiv"].file
    splits.parent.mkdir(exist_ok=True)
    np.savez(splits, inner_tvt_splits=(np.arange(n) % 10).astype(np.uint16))
