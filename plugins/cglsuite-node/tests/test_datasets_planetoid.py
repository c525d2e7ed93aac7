"""Cora, CiteSeer and PubMed from tiny files in the raw format: pickled matrices, one-hot labels, adjacency lists, test ids."""

from __future__ import annotations

import collections
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from cglsuite_node.datasets import planetoid

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData

N_TRAIN, N_VALIDATION = 6, 500  # the split's validation part is 500 nodes, whatever the graph
N_REST = 4  # labelled, in no part of the split
N_ALL = N_TRAIN + N_VALIDATION + N_REST


class Raw:
    """What the files hold; ``write`` writes them as the published ones are."""

    def __init__(self, name: str, n_classes: int, test: list[int], n_features: int = 30) -> None:
        generator = np.random.default_rng(0)
        self.name, self.test = name, test
        n = N_ALL + len(test)
        self.features = (generator.random((n, n_features)) < 0.03).astype(np.float32)
        self.labels = generator.integers(0, n_classes, n)
        self.n_classes = n_classes
        # A duplicate edge and a self-loop, as the published lists have.
        self.graph = {0: [1, 2, 1], 1: [0], 2: [0, 2, test[0]], test[0]: [2], N_ALL - 1: [test[-1]], test[-1]: [N_ALL - 1]}
        self.graph |= {node: [] for node in range(max(test) + 1) if node not in self.graph}

    def files(self) -> dict[str, Any]:
        one_hot = np.eye(self.n_classes, dtype=np.int32)[self.labels]
        x = scipy.sparse.csr_matrix(self.features)
        return {
            "x": x[:N_TRAIN],
            "tx": x[N_ALL:],
            "allx": x[:N_ALL],
            "y": one_hot[:N_TRAIN],
            "ty": one_hot[N_ALL:],
            "ally": one_hot[:N_ALL],
            "graph": collections.defaultdict(list, self.graph),
        }

    def write(self, root: Path) -> Path:
        folder = root / "Planetoid" / self.name / "raw"
        folder.mkdir(parents=True)
        for part, content in self.files().items():
            (folder / f"ind.{self.name.lower()}.{part}").write_bytes(pickle.dumps(content, protocol=2))
        (folder / f"ind.{self.name.lower()}.test.index").write_text("".join(f"{i}\n" for i in self.test))
        return folder


def lenient(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=True, verify=False)


def dense(data: NodeData) -> np.ndarray[Any, Any]:
    return (data.x.to_dense() if data.x.layout == torch.sparse_csr else data.x).numpy()


def check(raw: Raw, data: NodeData) -> None:
    """Compare with what was written: row i of tx and ty belongs to the node that line i of the test ids names."""
    ids = np.concatenate([np.arange(N_ALL), raw.test])
    np.testing.assert_array_equal(dense(data)[ids], raw.features)
    np.testing.assert_array_equal(data.y.numpy()[ids], raw.labels)
    edges = {(u, v) for u, to in raw.graph.items() for v in to if u != v}
    assert data.edge_index.T.tolist() == [list(pair) for pair in sorted(edges)]
    assert data.official_split is not None
    split = data.official_split.numpy()
    assert data.official_split.dtype == torch.int8
    np.testing.assert_array_equal(np.flatnonzero(split == 0), np.arange(N_TRAIN))
    np.testing.assert_array_equal(np.flatnonzero(split == 1), np.arange(N_TRAIN, N_TRAIN + N_VALIDATION))
    np.testing.assert_array_equal(np.flatnonzero(split == 2), sorted(raw.test))


@pytest.mark.parametrize(("name", "factory", "n_classes"), [("Cora", "cora", 7), ("PubMed", "pubmed", 3)])
def test_planetoid_files(tmp_path: Path, name: str, factory: str, n_classes: int) -> None:
    raw = Raw(name, n_classes, test=[N_ALL + 2, N_ALL, N_ALL + 1, N_ALL + 3])
    raw.write(tmp_path / "data")
    data = getattr(planetoid, factory)(lenient(tmp_path))
    assert (data.n_nodes, data.n_features, data.n_classes, data.name) == (N_ALL + 4, 30, n_classes, factory)
    assert data.x.layout == torch.sparse_csr
    check(raw, data)


def test_citeseer_nodes_without_label_are_unlabelled(tmp_path: Path) -> None:
    raw = Raw("CiteSeer", 6, test=[N_ALL + 5, N_ALL, N_ALL + 2])
    raw.write(tmp_path / "data")
    data = planetoid.citeseer(lenient(tmp_path))
    assert data.n_nodes == N_ALL + 6
    check(raw, data)
    gaps = [N_ALL + 1, N_ALL + 3, N_ALL + 4]
    assert data.y[gaps].tolist() == [-1, -1, -1]
    assert not dense(data)[gaps].any()
    assert not np.isin(data.edge_index.numpy(), gaps).any()
    assert data.official_split is not None
    assert data.official_split[gaps].tolist() == [-1, -1, -1]
    assert int((data.y < 0).sum()) == 3


def test_dense_where_features_are_dense(tmp_path: Path) -> None:
    raw = Raw("PubMed", 3, test=[N_ALL])
    raw.features = np.random.default_rng(1).random(raw.features.shape).astype(np.float32)
    raw.write(tmp_path / "data")
    data = planetoid.pubmed(lenient(tmp_path))
    assert data.x.layout == torch.strided
    check(raw, data)


@pytest.mark.nightly
def test_loading_prints_nothing(tmp_path: Path) -> None:
    """PyG prints "Processing..." and "Done!", though not where pytest is imported."""
    Raw("Cora", 7, list(range(N_ALL, N_ALL + 8))).write(tmp_path / "data")
    code = (
        "import sys; from pathlib import Path; from cglsuite.base.datafiles import DataRoot; from cglsuite_node.datasets import planetoid\n"
        "root = DataRoot(Path(sys.argv[1], 'data'), Path(sys.argv[1], 'cache'), offline=True, verify=False)\n"
        "planetoid.cora(root)\nassert 'torch_geometric.datasets' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.nightly
def test_data_root_is_never_written_and_the_cache_serves_equal_data(tmp_path: Path) -> None:
    Raw("Cora", 7, test=[N_ALL]).write(tmp_path / "data")
    before = {p: (p.stat().st_mtime_ns, p.is_dir()) for p in (tmp_path / "data").rglob("*")}
    first = planetoid.cora(lenient(tmp_path))
    assert {p: (p.stat().st_mtime_ns, p.is_dir()) for p in (tmp_path / "data").rglob("*")} == before
    assert planetoid.cora(lenient(tmp_path)).content_hash == first.content_hash
    assert not any((tmp_path / "cache/staging").iterdir())
    code = (
        "import sys, warnings; from pathlib import Path; from cglsuite.base.datafiles import DataRoot; "
        "from cglsuite_node.datasets.planetoid import cora; "
        f"data = cora(DataRoot(Path({str(tmp_path / 'data')!r}), Path({str(tmp_path / 'cache')!r}), verify=False)); "
        "print(data.content_hash, 'torch_geometric' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.split() == [first.content_hash, "False"]


def test_checksums_are_compared_unless_told_otherwise(tmp_path: Path) -> None:
    folder = Raw("Cora", 7, test=[N_ALL]).write(tmp_path / "data")
    with pytest.raises(DataError, match=r"ind\.cora\.x has the wrong checksum: found sha256 [0-9a-f]{64}.* expected 23cfa55d"):
        planetoid.cora(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True))
    assert folder.is_dir()


def test_other_sizes_than_the_published_ones_are_an_error(tmp_path: Path) -> None:
    Raw("PubMed", 3, test=[N_ALL]).write(tmp_path / "data")  # no checksum is known for PubMed
    with pytest.raises(DataError, match=r"pubmed: found 511 nodes, .*; expected 19,717 nodes, 88,648 directed edges, 500 features"):
        planetoid.pubmed(DataRoot(tmp_path / "data", tmp_path / "cache", offline=True))


@pytest.mark.parametrize("part", ["x", "tx", "allx", "y", "ty", "ally", "graph"])
def test_truncated_pickle_is_named(tmp_path: Path, part: str) -> None:
    file = Raw("Cora", 7, test=[N_ALL]).write(tmp_path / "data") / f"ind.cora.{part}"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(DataError, match=rf"raw/ind\.cora\.{part} is truncated or not a Planetoid file"):
        planetoid.cora(lenient(tmp_path))


class _Stateless:
    """Pickled as a sparse matrix that is never given its arrays."""

    def __reduce__(self) -> Any:
        return scipy.sparse.csr_matrix, ()


@pytest.mark.parametrize("part", ["x", "tx", "allx"])
def test_a_sparse_matrix_without_content_is_named(tmp_path: Path, part: str) -> None:
    file = Raw("Cora", 7, test=[N_ALL]).write(tmp_path / "data") / f"ind.cora.{part}"
    file.write_bytes(pickle.dumps(_Stateless(), protocol=2))
    with pytest.raises(DataError, match=rf"ind\.cora\.{part} is truncated or not a Planetoid file \(it contains a sparse matrix without"):
        planetoid.cora(lenient(tmp_path))


@pytest.mark.parametrize("content", ["", "511\n", "no number\n"])
def test_broken_test_ids_are_an_error_that_lists_the_files(tmp_path: Path, content: str) -> None:
    file = Raw("Cora", 7, test=[N_ALL]).write(tmp_path / "data") / "ind.cora.test.index"
    file.write_text(content)
    with pytest.raises(DataError, match=r"cora cannot be read .*ind\.cora\.test\.index"):
        planetoid.cora(lenient(tmp_path))


def test_absent_file_says_what_to_put_where(tmp_path: Path) -> None:
    (Raw("Cora", 7, test=[N_ALL]).write(tmp_path / "data") / "ind.cora.ally").unlink()
    with pytest.raises(DataError) as error:
        planetoid.cora(lenient(tmp_path))
    message = str(error.value)
    assert f"  {tmp_path}/data/Planetoid/Cora/raw/ind.cora.ally\n" in message
    assert "with sha256 2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71\n" in message
    assert "from https://github.com/kimiyoung/planetoid/raw/master/data/ind.cora.ally\n" in message


def test_nan_features_are_counted(tmp_path: Path) -> None:
    raw = Raw("Cora", 7, test=[N_ALL])
    raw.features[[5, 17, 17], [0, 3, 4]] = np.nan
    raw.write(tmp_path / "data")
    with pytest.raises(DataError, match=r"cora: 3 feature values are NaN or infinite, the first at node 5"):
        planetoid.cora(lenient(tmp_path))


def test_label_out_of_range(tmp_path: Path) -> None:
    raw = Raw("Cora", 9, test=[N_ALL])
    raw.labels[3] = 8
    raw.write(tmp_path / "data")
    with pytest.raises(DataError, match=r"cora: labels range over 0\.\.8; expected -1\.\.6.*ind\.cora\.ally"):
        planetoid.cora(lenient(tmp_path))


class Evil:
    """A pickle that would run a command."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.trace}",)


def test_pickles_cannot_run_code(tmp_path: Path) -> None:
    folder = Raw("PubMed", 3, test=[N_ALL]).write(tmp_path / "data")
    (folder / "ind.pubmed.graph").write_bytes(pickle.dumps(Evil(tmp_path / "trace"), protocol=2))
    with pytest.raises(DataError, match=r"ind\.pubmed\.graph .*it names \w+\.system, which is not allowed"):
        planetoid.pubmed(lenient(tmp_path))
    assert not (tmp_path / "trace").exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", ["x", "ally", "graph"])
def test_a_crafted_dtype_does_not_end_the_interpreter(tmp_path: Path, part: str) -> None:
    """NumPy's own reader takes the fields of a dtype on trust and reads where they point."""
    fields = b"(K\x03X\x01\0\0\0|N(X\x01\0\0\0at}X\x01\0\0\0aK\x07sJ\xff\xff\xff\x7fK\x01K\x10tb"
    array = b"\x80\x03cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tC\x01btR(K\x01K\x01\x85"
    crafted = array + b"cnumpy\ndtype\n(X\x02\0\0\0f8K\0K\x01tR" + fields + b"\x89C\x08" + b"\0" * 8 + b"tb."
    (Raw("PubMed", 3, test=[N_ALL]).write(tmp_path / "data") / f"ind.pubmed.{part}").write_bytes(crafted)
    code = (
        "import sys; from pathlib import Path; from cglsuite.base.datafiles import DataRoot; from cglsuite_node.datasets import planetoid\n"
        "planetoid.pubmed(DataRoot(Path(sys.argv[1], 'data'), Path(sys.argv[1], 'cache'), offline=True, verify=False))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"ind.pubmed.{part} is truncated or not a Planetoid file (an array has a dtype with fields" in done.stderr


def test_what_was_read_first_counts_where_no_checksum_is_published(tmp_path: Path) -> None:
    raw = Raw("PubMed", 3, test=[N_ALL])
    folder, root = raw.write(tmp_path / "data"), DataRoot(tmp_path / "data", tmp_path / "cache", offline=True)
    for _ in range(2):  # refused for its size, which is found after the checksums
        with pytest.raises(DataError, match="pubmed: found 511 nodes"):
            planetoid.pubmed(root)
    raw.features[0, 0] += 1
    (folder / "ind.pubmed.allx").write_bytes(pickle.dumps(raw.files()["allx"], protocol=2))
    with pytest.raises(DataError, match=r"ind\.pubmed\.allx is not the file first read here: found sha256 .*remove .*\.sha256"):
        planetoid.pubmed(root)
    (tmp_path / "cache/pins/Planetoid/PubMed/raw/ind.pubmed.allx.sha256").unlink()
    with pytest.raises(DataError, match="pubmed: found 511 nodes"):
        planetoid.pubmed(root)


def test_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is exchanged after our reading reaches nobody: PyG is given pickles of our own making."""
    folder = Raw("Cora", 7, test=[N_ALL]).write(tmp_path / "data")
    real = DataRoot.read

    def read_then_exchange(self: DataRoot, relative: str, **options: Any) -> Any:
        found = real(self, relative, **options)
        if not relative.endswith("test.index"):
            found.path.write_bytes(pickle.dumps(Evil(tmp_path / "trace"), protocol=2))
        return found

    monkeypatch.setattr(DataRoot, "read", read_then_exchange)
    assert planetoid.cora(lenient(tmp_path)).n_nodes == N_ALL + 1
    assert folder.is_dir()
    assert not (tmp_path / "trace").exists()
