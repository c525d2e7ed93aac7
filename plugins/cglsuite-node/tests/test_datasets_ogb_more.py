"""ogbn-mag and ogbn-proteins from tiny files in the raw format, and the choice of splits."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_node.datasets import ogbn
from torch_geometric.utils import scatter

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError

N = 12
RNG = np.random.default_rng(0)
EDGES = [(0, 1), (4, 2), (0, 1), (1, 0), (3, 11), (11, 5), (6, 6)]
FEATURES = RNG.normal(size=(N, 5)).round(3)
YEARS = 2010 + np.arange(N) % 10
SPLIT = {"train": [0, 1, 2, 7], "valid": [3, 4], "test": [5, 6, 11]}
LABELS = np.array([0, 0, 3, 0, 3, 0, 3, 7, 0, 0, 0, 7])
EDGE_FEATURES = RNG.random((len(EDGES), 8)).round(3)
SPECIES = np.array([9606, 511145, 3702, 9606, 4932, 6239, 7227, 7955, 10090, 3702, 4932, 9606])
TARGETS = RNG.integers(0, 2, (N, 112))


def table(rows: Any, header: str = "") -> bytes:
    return gzip.compress((header + "".join(",".join(map(str, np.atleast_1d(row).tolist())) + "\n" for row in rows)).encode())


MAG = {
    "raw/num-node-dict.csv.gz": table([[3, 4, 5, N]], "author,field_of_study,institution,paper\n"),
    "raw/relations/paper___cites___paper/edge.csv.gz": table(EDGES),
    "raw/node-feat/paper/node-feat.csv.gz": table(FEATURES),
    "raw/node-feat/paper/node_year.csv.gz": table(YEARS),
    "raw/node-label/paper/node-label.csv.gz": table(LABELS),
} | {f"split/time/paper/{part}.csv.gz": table(ids) for part, ids in SPLIT.items()}
PROTEINS = {
    "raw/edge.csv.gz": table(EDGES),
    "raw/edge-feat.csv.gz": table(EDGE_FEATURES),
    "raw/node_species.csv.gz": table(SPECIES),
    "raw/node-label.csv.gz": table(TARGETS),
    "raw/num-node-list.csv.gz": table([N]),
} | {f"split/species/{part}.csv.gz": table(ids) for part, ids in SPLIT.items()}
SETS = {"mag": (ogbn.mag, MAG), "proteins": (ogbn.proteins, PROTEINS)}


def write(tmp_path: Path, name: str, **changed: bytes) -> Path:
    folder = tmp_path / f"data/ogbn_{name}"
    for relative, content in (SETS[name][1] | changed).items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def lenient(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=True, verify=False)


def check_split(split: torch.Tensor | None) -> None:
    assert split is not None
    for code, part in enumerate(SPLIT):
        assert (split == code).nonzero().flatten().tolist() == SPLIT[part]
    assert int((split == -1).sum()) == 3


def test_mag(tmp_path: Path) -> None:
    write(tmp_path, "mag")
    data = ogbn.mag(lenient(tmp_path))
    assert data.edge_index.T.tolist() == [list(pair) for pair in sorted(set(EDGES))]
    np.testing.assert_allclose(data.x.numpy(), FEATURES, rtol=1e-6)
    assert data.y.tolist() == LABELS.tolist()
    assert data.n_classes == 349
    assert {k: v.tolist() for k, v in data.keys.items()} == {"year": YEARS.tolist()}
    check_split(data.official_split)


def test_mag_without_classes_too_small_in_any_part(tmp_path: Path) -> None:
    write(tmp_path, "mag")
    # Class 0: 2 training, 1 validation, 1 test nodes; class 3: 1 each; class 7: 1, 0, 1.
    data = ogbn.mag(lenient(tmp_path), min_per_part=1)
    assert data.n_classes == 2
    assert data.y.tolist() == [{0: 0, 3: 1, 7: -1}[int(c)] for c in LABELS]
    check_split(data.official_split)
    with pytest.raises(DataError, match="ogbn-mag: no class has at least 10 nodes in every part"):
        ogbn.mag(lenient(tmp_path), min_per_part=10)


@pytest.mark.parametrize("chunk", [2, 1 << 20])
def test_proteins(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ogbn, "_CHUNK", chunk)
    write(tmp_path, "proteins")
    data = ogbn.proteins(lenient(tmp_path))
    assert data.edge_index.T.tolist() == [list(pair) for pair in sorted({*EDGES, *((v, u) for u, v in EDGES)})]
    assert data.y.dtype == torch.bool
    np.testing.assert_array_equal(data.y.numpy(), TARGETS > 0)
    # As OGB's examples make them: the mean at the source over all edges, each in both directions.
    source = torch.tensor([u for u, _ in EDGES] + [v for _, v in EDGES])
    both = torch.from_numpy(np.concatenate([EDGE_FEATURES, EDGE_FEATURES]))
    torch.testing.assert_close(data.x, scatter(both, source, dim_size=N, reduce="mean").float())
    assert not data.x[7].any()
    assert data.keys["domain"].tolist() == [np.unique(SPECIES).tolist().index(s) for s in SPECIES]
    assert data.n_classes == 112
    check_split(data.official_split)


def test_splits_of_begin(tmp_path: Path) -> None:
    write(tmp_path, "proteins")
    with pytest.raises(DataError, match=r"begin-splits/ogbn-proteins_metadata_domainIL\.npz"):
        ogbn.proteins(lenient(tmp_path), split_source="begin")
    (tmp_path / "data/begin-splits").mkdir()
    path = tmp_path / "data/begin-splits/ogbn-proteins_metadata_domainIL.npz"
    np.savez(path, inner_tvt_splits=np.arange(N) % 10)
    begin, original = ogbn.proteins(lenient(tmp_path), split_source="begin"), ogbn.proteins(lenient(tmp_path))
    assert begin.official_split is not None
    assert begin.official_split.tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 0, 0]
    assert torch.equal(begin.x, original.x)
    assert begin.content_hash != original.content_hash
    np.savez(path, inner_tvt_splits=np.arange(N - 1) % 10)
    with pytest.raises(DataError, match="ogbn-proteins: the split in .* has 11 items, but the dataset has 12"):
        ogbn.proteins(lenient(tmp_path), split_source="begin")


@pytest.mark.parametrize(("name", "part"), [(name, part) for name in SETS for part in SETS[name][1]])
def test_truncated_or_absent_file_is_named(tmp_path: Path, name: str, part: str) -> None:
    path = write(tmp_path, name) / part
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataError, match=rf"ogbn-{name} cannot be read .*damaged: {path}"):
        SETS[name][0](lenient(tmp_path))
    path.unlink()
    with pytest.raises(DataError, match=rf"(?s){path}.*nodeproppred/{name}\.zip.*Its folder {name}/ becomes ogbn_{name}/"):
        SETS[name][0](lenient(tmp_path))


@pytest.mark.parametrize(
    ("name", "part", "rows", "message"),
    [
        ("mag", "raw/node-label/paper/node-label.csv.gz", [*LABELS[:-1], 349], r"labels range over 0\.\.349; expected -1\.\.348"),
        ("mag", "raw/node-feat/paper/node-feat.csv.gz", FEATURES[:-1], "node-feat.csv.gz has 11 rows; expected 12, one per paper"),
        (
            "mag",
            "raw/node-feat/paper/node-feat.csv.gz",
            [*FEATURES[:-1], [np.nan] * 5],
            "ogbn-mag: 5 feature values are NaN .* node 11",
        ),
        ("mag", "raw/node-feat/paper/node_year.csv.gz", YEARS[:-1], r"year has shape \[11\]; expected \[12\]"),
        ("mag", "raw/relations/paper___cites___paper/edge.csv.gz", [(0, N)], r"edges refer to nodes 0\.\.12; expected 0\.\.11"),
        ("mag", "split/time/paper/test.csv.gz", [N], "ogbn-mag cannot be read .*IndexError"),
        ("proteins", "raw/edge-feat.csv.gz", EDGE_FEATURES[:-1], "ogbn-proteins: edge.csv.gz and edge-feat.csv.gz differ in length"),
        (
            "proteins",
            "raw/edge-feat.csv.gz",
            [*EDGE_FEATURES[:-1], [np.nan] * 8],
            "ogbn-proteins: 8 feature values are NaN .* node 6",
        ),
        ("proteins", "raw/edge.csv.gz", [*EDGES[:-1], (0, N)], r"ogbn-proteins: edges refer to nodes 0\.\.12; expected 0\.\.11"),
        ("proteins", "raw/edge.csv.gz", [*EDGES[:-1], (0, -1)], r"ogbn-proteins: edges refer to nodes -1\.\.\d+; expected 0\.\.11"),
        ("proteins", "raw/node-label.csv.gz", [*TARGETS[:-1], [2] * 112], "the label row of node 11 has the value 2"),
        ("proteins", "raw/node-label.csv.gz", TARGETS[:, :5], "y has 5 columns; expected one per label, 112"),
        ("proteins", "raw/node_species.csv.gz", SPECIES[:-1], r"domain has shape \[11\]; expected \[12\]"),
    ],
)
def test_bad_content(tmp_path: Path, name: str, part: str, rows: Any, message: str) -> None:
    (write(tmp_path, name) / part).write_bytes(table(rows))
    with pytest.raises(DataError, match=message) as error:
        SETS[name][0](lenient(tmp_path))
    assert str(tmp_path / f"data/ogbn_{name}" / part) in str(error.value)
