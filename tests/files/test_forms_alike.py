"""One graph in every form is one stream: arrays, sparse arrays, tables with ids, PyG's Data, lists of it, saved and in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from own_data_lab import PAGE, table_of
from torch_geometric.data import Data

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import GraphData, LinkData, NodeData, PackedSource
from cglsuite.graphs.files.given import content_of, data_spec, options_of
from cglsuite.graphs.files.named import named
from cglsuite.graphs.loading.given import given_data
from cglsuite.study.data import as_data_file, build_stream


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path_factory.mktemp("cache")))


def table(path: Path, columns: dict[str, Any]) -> None:
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")


def features(x: Any) -> dict[str, Any]:
    return {f"f{k}": [repr(float(value)) for value in column] for k, column in enumerate(np.asarray(x).T)}


def ids(rng: Any, n: int) -> Any:
    """Text ids in no order: node i is called ids[i]."""
    return np.array([f"n{number:02}" for number in range(n)])[rng.permutation(n)]


def stored(path: Path, value: Any) -> Path:
    torch.save(value, path)
    return path


def arrays(path: Path, values: dict[str, Any]) -> Path:
    np.savez(path, **values)
    return path


def tensors(values: dict[str, Any]) -> dict[str, Any]:
    return {name: torch.from_numpy(np.asarray(value)) for name, value in values.items()}


def loaded(source: Any) -> Any:
    path = as_data_file(source)
    with named(data=[path]):
        return given_data(DataRoot.from_environment(), content_of(path), options_of(path).text)


def parts(x: Any) -> dict[str, Any]:
    csr = scipy.sparse.csr_matrix(x)
    return {"x_data": csr.data, "x_indices": csr.indices, "x_indptr": csr.indptr, "x_shape": np.array(csr.shape)}


def forms_of_nodes(folder: Path, seed: int) -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(240, 280))  # a tenth validates, in each of three years
    x = np.round(rng.normal(size=(n, 5)), 3).astype(np.float32) * (rng.random((n, 5)) < 0.8)
    y, edges, time = np.arange(n) % 4, rng.integers(0, n, (2, 3 * n)), 18000 + np.arange(n) % 3
    plain = {"x": x, "edge_index": edges, "y": y, "time": time}
    yield "npz", arrays(folder / "dense.npz", plain)
    yield "npz with dates", arrays(folder / "dates.npz", plain | {"time": time.astype("datetime64[D]")})
    yield "npz in CSR", arrays(folder / "csr.npz", {name: v for name, v in plain.items() if name != "x"} | parts(x))
    names = ids(rng, n)
    (folder / "tables").mkdir(exist_ok=True)
    days = time.astype("datetime64[D]")
    table(folder / "tables" / "nodes.csv", {"y": y, "id": names, **features(x), "time": days})
    order = rng.permutation(3 * n)
    table(folder / "tables" / "edges.csv", {"target": names[edges[1, order]], "source": names[edges[0, order]]})
    yield "CSV", folder / "tables"
    data = Data(**tensors(plain))
    yield "Data", data
    yield "a list of one Data", [data]
    yield "a saved Data", stored(folder / "data.pt", data)
    yield "a saved list", stored(folder / "list.pt", [data])
    yield "a dict of lists", {name: np.asarray(value).tolist() for name, value in plain.items() if name != "x"} | {"x": x}
    yield (
        "NodeData",
        NodeData(**tensors({k: v for k, v in plain.items() if k != "time"}), n_classes=4, keys={"time": torch.from_numpy(time)}),
    )


def forms_of_links(folder: Path, seed: int) -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(seed)
    n, m = 20, 120
    x, source = rng.normal(size=(n, 3)).astype(np.float32), rng.integers(0, n, m)
    links = np.stack([source, (source + rng.integers(1, n, m)) % n])
    y, time, types = rng.integers(0, 2, m), np.arange(m) % 3, np.arange(n) % 2
    plain = {"x": x, "links": links, "y": y, "time": time, "node_types": types}
    yield "npz", arrays(folder / "links.npz", plain)
    yield "true and false", arrays(folder / "truth.npz", plain | {"y": (y == 1)[:, None]})
    names = ids(rng, n)
    (folder / "tables").mkdir(exist_ok=True)
    table(folder / "tables" / "nodes.csv", {"id": names, **features(x), "node_type": np.array(["item", "user"])[types]})
    table(folder / "tables" / "links.csv", {"time": time, "source": names[links[0]], "y": y, "target": names[links[1]]})
    yield "CSV", folder / "tables"
    yield (
        "LinkData",
        LinkData(
            **tensors({"links": links, "x": x, "y": y, "node_types": types}), n_classes=2, n_nodes=n, keys={"time": torch.from_numpy(time)}
        ),
    )


def forms_of_graphs(folder: Path, seed: int) -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 24)
    graph, starts = np.repeat(np.arange(24), sizes), np.concatenate([[0], np.cumsum(sizes)[:-1]])
    n = int(sizes.sum())
    x = np.round(rng.normal(size=(n, 3)), 3).astype(np.float32)
    y, domain = np.arange(24) % 3, np.arange(24) % 2
    edges = np.concatenate([np.stack([starts + rng.integers(0, sizes), starts + rng.integers(0, sizes)]) for _ in range(2)], axis=1)
    edges = edges[:, np.argsort(graph[edges[0]], kind="stable")]
    attr = np.round(rng.normal(size=(48, 2)), 3).astype(np.float32)
    yield "npz", arrays(folder / "graphs.npz", {"x": x, "edge_index": edges, "graph": graph, "y": y, "domain": domain, "edge_attr": attr})
    one_by_one = []
    for number, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        own = graph[edges[0]] == number
        values = {"x": x[start : start + size], "edge_index": edges[:, own] - start, "y": y[number : number + 1], "edge_attr": attr[own]}
        one_by_one.append(Data(**tensors(values), domain=int(domain[number])))
    yield "a list of Data", one_by_one
    yield "a saved list", stored(folder / "list.pt", one_by_one)
    names = ids(rng, n)
    (folder / "tables").mkdir(exist_ok=True)
    table(folder / "tables" / "nodes.csv", {"id": names, "graph": graph, **features(x)})
    table(folder / "tables" / "edges.csv", {"source": names[edges[0]], "target": names[edges[1]], **features(attr)})
    table(folder / "tables" / "graphs.csv", {"y": y, "domain": domain})
    yield "CSV", folder / "tables"
    source = PackedSource(*map(torch.from_numpy, (x, edges, sizes)), edge_attr=torch.from_numpy(attr))
    yield "GraphData", GraphData(items=source, y=torch.from_numpy(y), n_classes=3, keys={"domain": torch.from_numpy(domain)})


def digest(value: Any, total: Any) -> Any:
    """Every tensor of a stream's views."""
    if isinstance(value, torch.Tensor):
        dense = value.to_dense() if value.layout != torch.strided else value
        total.update(f"{dense.dtype}{list(dense.shape)}".encode() + dense.contiguous().numpy().tobytes())
    return total


def stream_digest(source: Any, setting: str) -> str:
    stream, total = build_stream(setting, source), hashlib.sha256()
    for number in range(len(stream)):
        view: Any = stream.view(number)
        data = view.train.as_pyg() if "domain" in setting else view.as_pyg()
        for name, value in sorted(data.to_dict().items()):
            total.update(name.encode())
            digest(value, total)
    return total.hexdigest()


@pytest.mark.nightly
@pytest.mark.parametrize("forms", [forms_of_nodes, forms_of_links, forms_of_graphs])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_one_graph_in_every_form_is_one_data_set(tmp_path_factory: pytest.TempPathFactory, forms: Any, seed: int) -> None:
    made = {name: loaded(source).content_hash for name, source in forms(tmp_path_factory.mktemp("forms"), seed)}
    assert {name for name, content in made.items() if content != made["npz"]} == set()


def test_nodes_in_every_form_are_one_data_set(tmp_path: Path) -> None:
    made = {name: loaded(source).content_hash for name, source in forms_of_nodes(tmp_path, 3)}
    assert {name for name, content in made.items() if content != made["npz"]} == set()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("forms", "setting"), [(forms_of_nodes, "time-il@begin-2"), (forms_of_links, "time-il@begin-2"), (forms_of_graphs, "domain-il@begin-1")]
)
def test_one_graph_in_every_form_is_one_stream(tmp_path: Path, forms: Any, setting: str) -> None:
    made = {name: stream_digest(source, setting) for name, source in forms(tmp_path, 7)}
    assert {name for name, content in made.items() if content != made["npz"]} == set()
    assert data_spec(as_data_file(next(iter(forms(tmp_path, 7)))[1])).warnings == ()


FORMS = {
    "an npz file": {"npz"},
    "a folder of CSV tables": {"CSV"},
    "a PyG `Data`, in memory or saved as `.pt`": {"Data", "a saved Data"},
    "a list of PyG `Data`, in memory or saved as `.pt`": {"a list of one Data", "a list of Data", "a saved list"},
    "a dict of arrays": {"a dict"},
    "`NodeData`, `LinkData`, `GraphData`": {"NodeData", "LinkData", "GraphData"},
}
LEVELS = {"nodes": ("NC", forms_of_nodes), "links": ("LC", forms_of_links), "whole graphs": ("GC", forms_of_graphs)}


def sources(folder: Path, forms: Any) -> dict[str, Any]:
    folder.mkdir()
    made = dict(forms(folder, 3))
    with np.load(made["npz"]) as opened:
        return made | {"a dict": {name: opened[name] for name in opened.files}}


def test_forms(tmp_path: Path) -> None:
    read: dict[str, set[str]] = {}
    for items, (level, forms) in LEVELS.items():
        for name, source in sources(tmp_path / level, forms).items():
            assert data_spec(as_data_file(source)).levels == (level,)
            read.setdefault(items, set()).add(name)
    rows = [["form", *LEVELS], ["---"] * 4]
    rows += [[label, *("yes" if names & read[items] else "–" for items in LEVELS)] for label, names in FORMS.items()]
    assert table_of(PAGE.read_text(encoding="utf-8"), "forms").splitlines() == [f"| {' | '.join(row)} |" for row in rows]
