"""Cora, CiteSeer and PubMed with the public Planetoid split, loaded through PyG."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.base.pickles import ARRAYS, Stated, as_array, read_pickle
from cglsuite.graphs import NodeData, node_arrays
from cglsuite_node.datasets.arrays import UNREADABLE, Array, load

_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
_SHA256 = {
    "ind.cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "ind.cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "ind.citeseer.x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
    "ind.citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "ind.citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "ind.citeseer.y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    "ind.citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "ind.citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "ind.citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "ind.citeseer.test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
}


def cora(root: DataRoot) -> NodeData:
    """Load the Cora dataset (see its spec). Raises DataError if a file is missing or damaged."""
    return _load(root, "Cora")


def citeseer(root: DataRoot) -> NodeData:
    """Load the CiteSeer dataset (see its spec). Raises DataError if a file is missing or damaged."""
    return _load(root, "CiteSeer")


def pubmed(root: DataRoot) -> NodeData:
    """Load the PubMed dataset (see its spec). Raises DataError if a file is missing or damaged."""
    return _load(root, "PubMed")


def _load(root: DataRoot, name: str) -> NodeData:
    note = f"The dataset is eight files in that folder: ind.{name.lower()}.{{{','.join(_PARTS)}}}"
    files, contents = {}, {}
    for part in _PARTS:
        file = f"ind.{name.lower()}.{part}"
        relative = f"Planetoid/{name}/raw/{file}"
        known = _SHA256.get(file)
        file_read = root.read(relative, sha256=known, pin=known is None, urls=[f"{_URL}/{file}"], note=note)
        files[relative], contents[relative] = file_read.path, file_read

    def read(folder: Path) -> dict[str, Array]:
        # PyG unpickles whatever its files name, so it gets files that we write from the safely read contents.
        for relative, file_read in contents.items():
            target = folder / relative
            target.unlink()
            target.write_bytes(file_read.content if relative.endswith("test.index") else _plain_pickle(file_read.path, file_read.content))
        return _read(folder / "Planetoid", name)

    return load(root, name.lower(), files, read, hashes={relative: file_read.sha256 for relative, file_read in contents.items()})


def _read(folder: Path, name: str) -> dict[str, Array]:
    from torch_geometric.datasets import Planetoid

    data = Planetoid(str(folder), name)[0]
    y = data.y.numpy().copy()
    # CiteSeer's test ids have gaps. PyG fills them with nodes without features, and their label, the largest entry of a row of zeros,
    # with class 0; they have none.
    test = np.loadtxt(folder / name / "raw" / f"ind.{name.lower()}.test.index", dtype=np.int64, ndmin=1)
    y[np.setdiff1d(np.arange(test.min(), test.max() + 1), test)] = -1
    split = np.full(len(y), -1, dtype=np.int8)
    for code, mask in enumerate((data.train_mask, data.val_mask, data.test_mask)):
        split[mask.numpy()] = code
    return node_arrays(x=data.x.numpy(), edge_index=data.edge_index.numpy(), y=y, split=split)


class _Matrix(Stated):
    """A sparse matrix during unpickling."""

    value: scipy.sparse.csr_matrix | None = None

    def set_state(self, state: Any) -> None:
        """Set the arrays and the shape of a CSR matrix."""
        if type(state) is not dict or not {"data", "indices", "indptr", "_shape"} <= state.keys():
            raise pickle.UnpicklingError("a sparse matrix has an invalid state")
        shape = state["_shape"]
        if type(shape) is not tuple or len(shape) != 2 or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
            raise pickle.UnpicklingError("a sparse matrix has no shape")
        data, indices, indptr = (as_array(state[part]) for part in ("data", "indices", "indptr"))
        self.value = scipy.sparse.csr_matrix((data, indices, indptr), shape=shape)
        self.value.check_format(full_check=True)  # out-of-bounds indices would read other memory


def _reconstructor(kind: Any, base: Any, state: Any) -> _Matrix:
    return _Matrix()


# Everything that the published pickles name, under the module names of Python 2 and 3, old and new NumPy and SciPy.
_NAMES: Mapping[tuple[str, str], Callable[..., Any]] = {
    **ARRAYS,
    **{(module, "csr_matrix"): _Matrix for module in ("scipy.sparse.csr", "scipy.sparse._csr")},
    **{(module, "_reconstructor"): _reconstructor for module in ("copy_reg", "copyreg")},
    **{(module, name): (lambda *_: []) for module in ("__builtin__", "builtins") for name in ("list", "object")},
    ("collections", "defaultdict"): lambda *_: {},
}


def _plain_pickle(path: Path, content: bytes) -> bytes:
    """Unpickle the matrix, array or adjacency lists in ``content``, and nothing else."""
    try:
        unpickled = read_pickle(content, _NAMES)
        if isinstance(unpickled, _Matrix):
            if unpickled.value is None:
                raise pickle.UnpicklingError("it contains a sparse matrix without content")
            return pickle.dumps(unpickled.value, protocol=2)
        if isinstance(unpickled, dict):
            graph = {_node(node): [_node(other) for other in neighbours] for node, neighbours in unpickled.items()}
            return pickle.dumps(defaultdict(list, graph), protocol=2)
        return pickle.dumps(np.array(as_array(unpickled)), protocol=2)
    except UNREADABLE as error:
        reason = str(error) or type(error).__name__
        raise DataError(f"{path} is truncated or not a Planetoid file ({reason}). Replace it, or remove it to download it again") from error


def _node(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**31:
        raise pickle.UnpicklingError(f"a node id is {number!r:.60}; expected a number")
    return number
