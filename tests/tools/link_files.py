"""Tiny files in the true raw formats, one function per dataset, for tests that build every preset without the data themselves."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.protocols.begin.splits import BEGIN_FILES

__all__ = ["lenient", "write_all", "write_bitcoin", "write_collab", "write_facebook", "write_gowalla", "write_interactions"]
__all__ += ["write_movielens", "write_wiki_cs"]

_DAY = 24 * 3600


def lenient(folder: Path) -> DataRoot:
    """A data root over ``folder/data`` that neither downloads nor compares checksums and sizes."""
    return DataRoot(folder / "data", folder / "cache", offline=True, verify=False)


def put(folder: Path, relative: str, content: str | bytes) -> Path:
    path = folder / "data" / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def write_bitcoin(folder: Path, short: str, rows: Sequence[Sequence[float]] | None = None) -> Path:
    """``source,target,rating,time`` per line; by default 3,000 ratings over 20 periods, all 20 values about equally often."""
    if rows is None:
        ratings = [*range(-10, 0), *range(1, 11)]
        pairs = [(a, b) for a in range(1, 41) for b in range(41, 116)]
        rows = [(a, b, ratings[i % 20], 1_300_000_000.25 + i * 14 * _DAY * 20 / len(pairs)) for i, (a, b) in enumerate(pairs)]
    if short == "otc":
        split = folder / "data/begin-splits" / BEGIN_FILES["bitcoin-otc"].file
        split.parent.mkdir(parents=True, exist_ok=True)
        residues = np.random.default_rng(0).permutation(len(rows)) % 10
        np.savez(split, inner_tvt_split=residues.astype(np.uint8))
    name = {"otc": "BitcoinOTC", "alpha": "BitcoinAlpha"}[short]
    return put(folder, f"{name}/raw/soc-sign-bitcoin{short}.csv", "\n".join(",".join(map(str, row)) for row in rows) + "\n")


def write_interactions(folder: Path, relative: str, rows: Sequence[Sequence[int]] | None = None, months: int = 3) -> Path:
    """``source target time`` per line, gzipped; by default 100 first interactions in each month from 2009-01 on, and repetitions."""
    if rows is None:
        generator = np.random.default_rng(0)
        pairs = generator.permutation([(a, b) for a in range(1, 200) for b in range(a + 1, 200)])[: 100 * months]
        starts = (np.datetime64("2009-01") + np.arange(months)).astype("datetime64[s]").astype(np.int64)
        times = np.repeat(starts, 100) + generator.integers(0, 27 * _DAY, 100 * months)
        first = np.column_stack([pairs, times])
        again = first[::7] + np.array([0, 0, 40 * _DAY])
        rows = np.concatenate([first, again[:, [1, 0, 2]]]).tolist()
    return put(folder, relative, "\n".join(" ".join(map(str, row)) for row in rows) + "\n")


def write_wiki_cs(folder: Path, **changes: Any) -> Path:
    """``data.json``: 20 articles of each of 10 areas; all pairs of areas are linked but 0 and 6."""
    area = np.repeat(np.arange(10), 20)
    targets: list[list[int]] = [[] for _ in area]
    for u in range(200):
        for v in range(u + 1, 200):
            if {int(area[u]), int(area[v])} != {0, 6} and (u + v) % 2 == 0:
                targets[u].append(v)
    targets[3].append(3)  # a link to itself
    targets[5].append(0)  # one that is also there the other way round
    targets[0].append(5)
    content: dict[str, Any] = {
        "features": np.random.default_rng(0).normal(size=(200, 4)).tolist(),
        "labels": area.tolist(),
        "links": targets,
        "train_masks": [],
        "val_masks": [],
        "stopping_masks": [],
        "test_mask": [],
    }
    return put(folder, "WikiCS/raw/data.json", json.dumps(content | changes))


def write_facebook(folder: Path, category: str, rows: Sequence[tuple[int, int]] | None = None, header: str = "node_1,node_2") -> Path:
    if rows is None:
        size = 16 + len(category)
        rows = [(a, b) for a in range(size) for b in range(a, size) if a == b or (a * b) % 3 == 0]
    lines = [header, *(f"{a},{b}" for a, b in rows)]
    return put(folder, f"FacebookGEMSEC/facebook_clean_data/{category}_edges.csv", "\n".join(lines) + "\n")


def write_collab(folder: Path, years: Sequence[int] = tuple(range(1965, 2020)), per_year: int = 120) -> Path:
    """OGB's layout: raw csv.gz files, and a split by time whose parts are pickled dictionaries of arrays."""
    generator = np.random.default_rng(0)
    n = 400
    put(folder, "ogbl_collab/raw/node-feat.csv.gz", "\n".join(",".join(f"{v:.3f}" for v in row) for row in generator.normal(size=(n, 3))))
    put(folder, "ogbl_collab/raw/num-node-list.csv.gz", f"{n}\n")
    put(folder, "ogbl_collab/raw/edge.csv.gz", "0,1\n")
    year = np.repeat(np.array(years), per_year)
    edge = generator.integers(0, n, (len(year), 2))
    for part, chosen in {"train": year < 2018, "valid": year == 2018, "test": year == 2019}.items():
        content = {"edge": edge[chosen], "weight": np.ones(int(chosen.sum()), dtype=np.int64), "year": year[chosen]}
        if part != "train":
            content["edge_neg"] = generator.integers(0, n, (10, 2))
        path = folder / "data/ogbl_collab/split/time" / f"{part}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(content, path)
    return folder / "data/ogbl_collab"


def write_gowalla(folder: Path, rows: Sequence[str] | None = None) -> Path:
    """``user time latitude longitude place`` per line, newest check-in of a user first, as SNAP has it."""
    if rows is None:
        rows = []
        for user in range(40):
            for place in [place for place in range(29, -1, -1) if (user + place) % 3]:
                day = 1 + (user + place) % 28
                rows.append(f"{user}\t2010-{1 + place % 10:02d}-{day:02d}T23:55:27Z\t30.2359091167\t-97.7951395833\t{1000 + 7 * place}")
            rows.append(f"{user}\t2009-01-01T00:00:00Z\t30.0\t-97.0\t{9000 + user}")  # places with one visitor
    return put(folder, "Gowalla/loc-gowalla_totalCheckins.txt.gz", "\n".join(rows) + "\n")


def write_movielens(folder: Path, **changes: str) -> None:
    """``ratings.dat``, ``users.dat`` and ``movies.dat`` of ml-1m: fields between double colons, Latin-1."""
    generator = np.random.default_rng(0)
    pairs = [(u, m) for u in range(1, 61) for m in (1, 2, 4, *range(6, 44))]
    stars = 1 + generator.integers(0, 5, len(pairs))
    times = 956_703_932 + generator.permutation(len(pairs)) * 1000
    content = {
        "ratings": "\n".join(f"{u}::{m}::{s}::{t}" for (u, m), s, t in zip(pairs, stars, times, strict=True)) + "\n",
        "users": "\n".join(f"{u}::{'FM'[u % 2]}::{(1, 18, 56)[u % 3]}::{u % 21}::{10000 + u}-12" for u in range(1, 61)) + "\n",
        "movies": "1::Toy Story: Encore (1995)::Animation|Children's|Comedy\n2::Cité des enfants perdus, La (1995)::Sci-Fi\n"
        + "\n".join(f"{m}::Film {m} (2000)::Drama|War" for m in (4, *range(6, 44)))
        + "\n",
    }
    for name, text in (content | changes).items():
        put(folder, f"MovieLens1M/raw/{name}.dat", text.encode("latin-1"))


def write_all(folder: Path) -> DataRoot:
    """Every public dataset in small, with as many tasks as the true one forms."""
    for short in ("otc", "alpha"):
        write_bitcoin(folder, short)
    write_interactions(folder, "SXAskUbuntu/sx-askubuntu.txt.gz", months=87)
    write_interactions(folder, "SXMathOverflow/sx-mathoverflow.txt.gz", months=79)
    write_interactions(folder, "CollegeMsg/CollegeMsg.txt.gz", months=7)
    write_wiki_cs(folder)
    for category in ("artist", "athletes", "company", "government", "new_sites", "politician", "public_figure", "tvshow"):
        write_facebook(folder, category)
    write_collab(folder)
    write_gowalla(folder)
    write_movielens(folder)
    return lenient(folder)
