"""ogbn-arxiv, ogbn-products and Reddit from tiny files in the raw format, present or in a downloaded archive."""

from __future__ import annotations

import gzip
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from cglsuite_node.datasets import ogbn, reddit

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData, node_arrays
from cglsuite.graphs.splits.ogb import without_update_check

N = 12
# A repeated edge, and one that is given in both directions.
EDGES = [(0, 1), (4, 2), (0, 1), (1, 0), (3, 11), (11, 5)]
RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(N, 5)).round(3)
LABELS = RNG.integers(0, 40, N)
YEARS = 2005 + np.arange(N)
SPLIT = {"train": [0, 1, 2, 7], "valid": [3, 4], "test": [5, 6, 11]}


def table(rows: Any) -> bytes:
    return gzip.compress("".join(",".join(map(str, np.atleast_1d(row).tolist())) + "\n" for row in rows).encode())


def ogb_files(rule: str, years: bool) -> dict[str, bytes]:
    files = {
        "raw/edge.csv.gz": table(EDGES),
        "raw/node-feat.csv.gz": table(FEATURES),
        "raw/node-label.csv.gz": table(LABELS),
        "raw/num-node-list.csv.gz": table([N]),
        "raw/num-edge-list.csv.gz": table([len(EDGES)]),
    }
    if years:
        files["raw/node_year.csv.gz"] = table(YEARS)
    return files | {f"split/{rule}/{part}.csv.gz": table(ids) for part, ids in SPLIT.items()}


def reddit_files() -> dict[str, bytes]:
    types = np.zeros(N, dtype=np.int64)
    for code, part in enumerate(SPLIT, start=1):
        types[SPLIT[part]] = code
    source, target = np.array(EDGES).T
    data, graph = io.BytesIO(), io.BytesIO()
    np.savez(data, feature=FEATURES, node_types=types, node_ids=np.arange(N), label=LABELS)
    scipy.sparse.save_npz(graph, scipy.sparse.coo_matrix((np.ones(len(EDGES)), (source, target)), (N, N)))
    return {"reddit_data.npz": data.getvalue(), "reddit_graph.npz": graph.getvalue()}


#: loader, folder in the data root, folder in the archive, files, whether edges are doubled
SETS: dict[str, tuple[Callable[[DataRoot], NodeData], str, str, dict[str, bytes], bool]] = {
    "ogbn-arxiv": (ogbn.arxiv, "ogbn_arxiv", "arxiv/", ogb_files("time", years=True), False),
    "ogbn-products": (ogbn.products, "ogbn_products", "products/", ogb_files("sales_ranking", years=False), True),
    "reddit": (reddit.reddit, "Reddit/raw", "", reddit_files(), False),
}


def write(root: Path, name: str) -> Path:
    folder = root / SETS[name][1]
    for relative, content in SETS[name][3].items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def lenient(tmp_path: Path, offline: bool = True) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=offline, verify=False)


def check(name: str, data: NodeData) -> None:
    edges = set(EDGES)
    if SETS[name][4]:
        edges |= {(v, u) for u, v in edges}
    assert data.edge_index.T.tolist() == [list(pair) for pair in sorted(edges)]
    assert data.x.layout == torch.strided
    np.testing.assert_allclose(data.x.numpy(), FEATURES, rtol=1e-6)
    np.testing.assert_array_equal(data.y.numpy(), LABELS)
    assert data.official_split is not None
    for code, part in enumerate(SPLIT):
        assert (data.official_split == code).nonzero().flatten().tolist() == SPLIT[part]
    assert int((data.official_split == -1).sum()) == 3


@pytest.mark.parametrize("name", SETS)
def test_raw_files(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "data", name)
    before = sorted((tmp_path / "data").rglob("*"))
    data = SETS[name][0](lenient(tmp_path))
    check(name, data)
    assert data.name == name
    assert ({"year": YEARS.tolist()} if name == "ogbn-arxiv" else {}) == {k: v.tolist() for k, v in data.keys.items()}
    assert capfd.readouterr().out == ""
    assert sorted((tmp_path / "data").rglob("*")) == before
    assert SETS[name][0](lenient(tmp_path)).content_hash == data.content_hash


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address at which a server on this machine shows it."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("name", SETS)
def test_download_of_the_archive(tmp_path: Path, name: str, site: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, address = site
    loader, _, inside, files, _ = SETS[name]
    with zipfile.ZipFile(folder / f"{name.removeprefix('ogbn-')}.zip", "w") as archive:
        for relative, content in files.items():
            archive.writestr(inside + relative, content)
        archive.writestr(inside + "mapping/README.md", "not needed")
    monkeypatch.setattr(ogbn, "_URL", address)
    monkeypatch.setattr(reddit, "_URLS", (f"{address}/reddit.zip",))
    check(name, loader(lenient(tmp_path, offline=False)))
    check(name, loader(lenient(tmp_path, offline=True)))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("name", "part"), [(name, part) for name in SETS for part in SETS[name][3]])
def test_truncated_file_is_named(tmp_path: Path, name: str, part: str) -> None:
    path = write(tmp_path / "data", name) / part
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataError, match=rf"{name} cannot be read .*damaged: {path}"):
        SETS[name][0](lenient(tmp_path))


def test_absent_files_say_what_to_put_where(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "ogbn-arxiv")
    (folder / "raw/node_year.csv.gz").unlink()
    (folder / "split/time/test.csv.gz").unlink()
    with pytest.raises(DataError) as error:
        ogbn.arxiv(lenient(tmp_path))
    assert str(error.value).splitlines() == [
        "2 data files are absent: CGLSUITE_OFFLINE forbids downloads. To provide them by hand, put",
        f"  {folder}/raw/node_year.csv.gz",
        f"  {folder}/split/time/test.csv.gz",
        "(no checksum is known)",
        "from https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip",
        "Its folder arxiv/ becomes ogbn_arxiv/",
    ]


def test_other_sizes_than_the_published_ones_are_an_error(tmp_path: Path) -> None:
    write(tmp_path / "data", "ogbn-arxiv")
    with pytest.raises(DataError, match=r"ogbn-arxiv: found 12 nodes, 5 directed edges, 5 features.* expected 169,343 nodes"):
        ogbn.arxiv(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True))


@pytest.mark.parametrize(
    ("part", "rows", "message"),
    [
        ("raw/node-label.csv.gz", [*LABELS[:-1], 40], r"labels range over \d+\.\.40; expected -1\.\.39"),
        ("raw/node-label.csv.gz", [*LABELS[:-1], 1.5], "label of node 11 is not an integer"),
        ("raw/node-label.csv.gz", LABELS[:-1], r"expected float32 \[11, F\]"),
        (
            "raw/node-feat.csv.gz",
            [*FEATURES[:2], [np.nan, 1, np.nan, 2, 3], *FEATURES[3:]],
            r"2 feature values are NaN .* the first at node 2",
        ),
        ("raw/edge.csv.gz", [*EDGES[:-1], (N, 0)], r"edges refer to nodes 0\.\.12; expected 0\.\.11"),
        ("split/time/test.csv.gz", [N], "ogbn-arxiv cannot be read .*IndexError"),
        ("raw/node_year.csv.gz", YEARS[:-1], r"year has shape \[11\]; expected \[12\]"),
    ],
)
def test_bad_content(tmp_path: Path, part: str, rows: Any, message: str) -> None:
    (write(tmp_path / "data", "ogbn-arxiv") / part).write_bytes(table(rows))
    with pytest.raises(DataError, match=message):
        ogbn.arxiv(lenient(tmp_path))


def test_arxiv_takes_the_begin_split_on_request(tmp_path: Path) -> None:
    write(tmp_path / "data", "ogbn-arxiv")
    with pytest.raises(DataError, match=r"begin-splits/ogbn-arxiv_metadata_timeIL\.npz"):
        ogbn.arxiv(lenient(tmp_path), split_source="begin")
    (tmp_path / "data/begin-splits").mkdir()
    np.savez(tmp_path / "data/begin-splits/ogbn-arxiv_metadata_timeIL.npz", inner_tvt_splits=np.arange(N))
    check("ogbn-arxiv", ogbn.arxiv(lenient(tmp_path)))
    data = ogbn.arxiv(lenient(tmp_path), split_source="begin")
    assert data.official_split is not None
    assert data.official_split.tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 0, 0]
    assert data.keys["year"].tolist() == YEARS.tolist()


def test_nodes_without_a_label(tmp_path: Path) -> None:
    rows = [*LABELS[:-1], np.nan]
    (write(tmp_path / "data", "ogbn-arxiv") / "raw/node-label.csv.gz").write_bytes(table(rows))
    assert ogbn.arxiv(lenient(tmp_path)).y.tolist() == [*LABELS[:-1].tolist(), -1]


@pytest.mark.parametrize("chunk", [1, 4, 1 << 18])
@pytest.mark.parametrize(("name", "rule", "inverse"), [("ogbn-arxiv", "time", False), ("ogbn-products", "sales_ranking", True)])
def test_the_arrays_are_those_that_ogbs_own_reader_gives(
    tmp_path: Path, name: str, rule: str, inverse: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ogbn, "_CHUNK", chunk)
    folder = write(tmp_path / "data", name)
    with without_update_check():
        from ogb.io.read_graph_raw import read_csv_graph_raw
    years = ["node_year"] if rule == "time" else []
    theirs = read_csv_graph_raw(str(folder / "raw"), add_inverse_edge=inverse, additional_node_files=years)[0]
    expected = node_arrays(
        x=theirs["node_feat"],
        edge_index=theirs["edge_index"],
        y=LABELS,
        split=ogbn._split(folder / "split" / rule, theirs["num_nodes"]),
        keys={"year": theirs["node_year"]} if years else {},
    )
    found = ogbn._read(folder, rule, inverse=inverse, extra=tuple(years))
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype == array.dtype


@pytest.mark.parametrize(
    ("part", "rows", "says"),
    [
        ("edge", EDGES[:-1], "edge.csv.gz has 5 rows; expected 6, one per edge"),
        ("edge", [*EDGES, (0, 2)], "edge.csv.gz has 7 rows; expected 6, one per edge"),
        ("edge", [*EDGES[:-1], (0, N)], r"edges refer to nodes 0\.\.12; expected 0\.\.11"),
        ("edge", [*EDGES[:-1], (0, 2**40)], r"edge.csv.gz refers to nodes 0\.\.1099511627776; expected 0\.\.2147483647"),
        ("node-feat", FEATURES[:-1], "node-feat.csv.gz has 11 rows; expected 12, one per node"),
    ],
)
def test_rows_that_do_not_fit_are_named(tmp_path: Path, part: str, rows: Any, says: str) -> None:
    folder = write(tmp_path / "data", "ogbn-products")
    (folder / f"raw/{part}.csv.gz").write_bytes(table(rows))
    with pytest.raises(DataError, match=f"ogbn-products: {says}"):
        ogbn.products(lenient(tmp_path))
