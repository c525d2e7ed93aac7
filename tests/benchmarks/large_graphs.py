"""Class-IL over graphs of millions of nodes: seconds by part, peak memory, growth with the size, and PyG's loaders beside it. A command.

    python tests/benchmarks/large_graphs.py [--nodes 250000,1000000] [--degree 60] [--features 100] [--classes 47] [--folder DIR]
    python tests/benchmarks/large_graphs.py --nodes 2449029 --degree 50.6        the size of ogbn-products

For each size it writes data in the raw format of ogbn-products (gzipped CSV files; kept in ``--folder`` for the next time), and starts a
process for each of these:

- ``raw``: the raw files are read for the first time, into the cache;
- ``cell``: a cell that finds the cache: it trains by sampled batches and evaluates in the whole graph before the first task and after each;
- ``loaders``: batches of our sampler and of PyG's loaders on the same graph. Those of PyG that need pyg-lib or torch-sparse are named with
  what they say where these are absent.

Seconds are processor seconds of all threads; parts are exclusive. Memory is the peak of the resident set, the pages of the mapped cache
included; the data are features, edges (64-bit) and labels. The target is 40 s and 2.5 times the data for a cell on 1,000,000 nodes with
60 million directed edges.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

import numpy as np

SCENARIO = "ogbn-products/class-il@cglb-inter-2"
STEPS = ("raw", "cell", "loaders")
_ROWS = 1 << 18


# --- data in the raw format -------------------------------------------------------------------------------------------------------


def write_raw(folder: Path, *, nodes: int, degree: float, features: int, classes: int, seed: int = 0) -> None:
    """A graph in the raw format of ogbn-products: heavy-tailed degrees, four of five edges within a class, features around the mean of a
    class; a split of 8 : 2 : 90 as that of OGB. ``degree`` counts neighbours before repeated edges are removed."""
    draws = np.random.default_rng(seed)
    for name in ("raw", "split/sales_ranking"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    share = 0.93 ** np.arange(classes)
    y = draws.permutation(np.concatenate([np.arange(classes).repeat(9), draws.choice(classes, nodes - 9 * classes, p=share / share.sum())]))
    order = np.argsort(y, kind="stable")
    sizes = np.bincount(y, minlength=classes)
    starts = np.cumsum(sizes) - sizes
    n_edges = round(nodes * degree / 2)

    def edges() -> Iterator[Any]:
        for first in range(0, n_edges, _ROWS):
            n = min(_ROWS, n_edges - first)
            here = draws.integers(0, nodes, n)
            popular = draws.random(n) ** 1.5  # low places of a class are reached more often
            near = order[starts[y[here]] + (popular * sizes[y[here]]).astype(np.int64)]
            there = np.where(draws.random(n) < 0.8, near, draws.integers(0, nodes, n))
            yield np.stack([here, np.where(there == here, (here + 1) % nodes, there)], axis=1)

    means = draws.integers(-150, 150, (classes, features))

    def rows() -> Iterator[Any]:
        for first in range(0, nodes, _ROWS // 16):
            of = y[first : first + _ROWS // 16]
            yield np.clip(means[of] + draws.integers(-600, 600, (len(of), features)), -999, 999) + 999

    # Each number is looked up as text; zero bytes pad shorter ones and are dropped.
    decimals = _words([f"{value / 1000:.3f}" for value in range(-999, 1000)])
    _write(folder / "raw/node-feat.csv.gz", (decimals[block] for block in rows()))
    names = _words([str(value) for value in range(nodes)])
    _write(folder / "raw/edge.csv.gz", (names[block] for block in edges()))
    for file, values in {
        "raw/node-label.csv.gz": y,
        "raw/num-node-list.csv.gz": np.array([nodes]),
        "raw/num-edge-list.csv.gz": np.array([n_edges]),
        **dict(zip((f"split/sales_ranking/{part}.csv.gz" for part in ("train", "valid", "test")), _parts(draws, y, starts), strict=True)),
    }.items():
        (folder / file).write_bytes(gzip.compress("".join(f"{value}\n" for value in values.tolist()).encode(), 1))


def _parts(draws: Any, y: Any, starts: Any) -> list[Any]:
    """Training, validation and test nodes: 8 : 2 : 90, at least two of each class in each."""
    shuffled = draws.permutation(len(y))
    shuffled = shuffled[np.argsort(y[shuffled], kind="stable")]
    rank = np.arange(len(y)) - starts[y[shuffled]]
    size = np.bincount(y)[y[shuffled]]
    train, valid = np.maximum(2, size * 8 // 100), np.maximum(2, size // 50)
    part = np.where(rank < train, 0, np.where(rank < train + valid, 1, 2))
    return [np.sort(shuffled[part == code]) for code in range(3)]


def _words(texts: list[str]) -> Any:
    """uint8 [n, width]: each text, ended by a comma."""
    words = np.array([f"{text}," for text in texts], dtype="S")
    return words.view(np.uint8).reshape(len(texts), -1)


def _write(path: Path, blocks: Iterator[Any]) -> None:
    """Lines of blocks of words, uint8 [rows, columns, width], compressed."""
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for block in blocks:
            last = block[:, -1]
            last[last == ord(",")] = ord("\n")
            text = block.reshape(-1)
            stream.write(text[text != 0].tobytes())


# --- what a process measures ------------------------------------------------------------------------------------------------------


class Parts:
    """Exclusive processor seconds by part of the work, and peaks of memory."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self.peaks: dict[str, float] = {}
        self._local = threading.local()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What happens inside, parts inside it excluded."""
        stack = self._local.__dict__.setdefault("stack", [])
        self._charge(stack)
        stack.append([name, time.thread_time()])
        try:
            yield
        finally:
            self._charge(stack)
            stack.pop()
            if stack:
                stack[-1][1] = time.thread_time()
            self.calls[name] = self.calls.get(name, 0) + 1

    def _charge(self, stack: list[Any]) -> None:
        if stack:
            name, since = stack[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + time.thread_time() - since
            self.peaks[name] = max(self.peaks.get(name, 0.0), _status("VmHWM"))
        _reset_peak()

    def of(self, name: str | Callable[..., str], function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, counted as a part."""

        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            with self.part(name if isinstance(name, str) else name(*args)):
                return function(*args, **kwargs)

        return counted


def _status(name: str) -> float:
    """A size of this process, in GB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e9
    return 0.0


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _root(args: argparse.Namespace) -> Any:
    """The data root, whose sizes are those of the generated data."""
    from cglsuite_node.datasets import arrays

    from cglsuite.base.datafiles import DataRoot

    arrays.SIZES["ogbn-products"] = arrays.SIZES["ogbn-products"]._replace(
        nodes=int(args.nodes), features=args.features, classes=args.classes
    )
    folder = _folder(args)
    os.environ.update(CGLSUITE_DATA=str(folder / "data"), CGLSUITE_CACHE=str(folder / "cache"), CGLSUITE_OFFLINE="1")
    return DataRoot.from_environment()


def _folder(args: argparse.Namespace) -> Path:
    return Path(args.folder) / f"{args.nodes}-{args.degree:g}-{args.features}-{args.classes}"


def raw(args: argparse.Namespace) -> dict[str, Any]:
    """Read the raw files for the first time."""
    from cglsuite_node.datasets import ogbn

    shutil.rmtree(_folder(args) / "cache", ignore_errors=True)
    data = ogbn.products(_root(args))
    return {"data_gb": _data_gb(data), "n_edges": data.edge_index.shape[1], "parts": {}}


def _data_gb(data: Any) -> float:
    return float(sum(part.nbytes for part in (data.x, data.edge_index, data.y)) / 1e9)


def cell(args: argparse.Namespace) -> dict[str, Any]:
    """Train by samples and evaluate whole, from the cache."""
    from cglsuite_node.datasets import ogbn

    from cglsuite import load_catalogue
    from cglsuite.cells.run import run_cell
    from cglsuite.cells.spec import resolve_cell
    from cglsuite.cells.storage.store import Store
    from cglsuite.graphs import MessageGraph, NodeData, sparse
    from cglsuite.learning import task_runner
    from cglsuite.learning.runner import Runner
    from cglsuite.problems import minibatch
    from cglsuite.streams import build

    _root(args)
    parts, sizes = Parts(), dict[str, float]()

    def loaded(*given: Any) -> Any:
        data = load(*given)
        sizes.update(data_gb=_data_gb(data), n_edges=data.edge_index.shape[1])
        return data

    def whole(graph: Any, *_: Any) -> str:
        return "operators" if graph.n_edges > sizes["n_edges"] / 2 else "operators of batches"

    def prepared(owner: Any, name: str, part: str) -> None:
        made = cached_property(parts.of(part, vars(owner)[name].func))
        made.__set_name__(owner, name)
        setattr(owner, name, made)

    load = ogbn._load
    ogbn._load = parts.of("reading the cache", loaded)
    prepared(NodeData, "content_hash", "content hash")
    prepared(MessageGraph, "in_neighbours", "in-neighbours")
    build.layout_of = parts.of("layout", build.layout_of)
    build.NodeGraphs.graph = parts.of("views", build.NodeGraphs.graph)  # type: ignore[method-assign]
    MessageGraph.operator = parts.of(whole, MessageGraph.operator)  # type: ignore[method-assign]
    prepared(sparse.SparseMatrix, "_columns", "transposes")
    sample, reached = minibatch.sample_neighbours, list[int]()

    def sampled(*given: Any) -> Any:
        graph, places = sample(*given)
        reached.append(graph.n_nodes)
        return graph, places

    minibatch.sample_neighbours = parts.of("sampling", sampled)
    task_runner.fit = parts.of("training", task_runner.fit)
    Runner._evaluate = parts.of("evaluation", Runner._evaluate)  # type: ignore[method-assign]

    catalogue = load_catalogue()
    settings = {
        "scenario.classes_per_task": args.classes // args.tasks,
        "scenario.n_tasks": args.tasks,
        "scenario.split": "official",
        "scenario.edge_policy": args.policy,
        "training.epochs": args.epochs,
        "training.batch_size": args.batch_size,
        "training.fan_out": args.fan_out,
        "backbone.width": args.width,
    }
    planned = resolve_cell(catalogue, SCENARIO, args.method, overrides=settings)
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder, parts.part("the rest"):
        record = run_cell(planned, catalogue, Store(folder))
    if record.status != "done":
        raise SystemExit(record.reason)
    return {
        **sizes,
        "seconds": time.process_time() - started,
        "parts": parts.seconds,
        "peaks": parts.peaks,
        "batches": parts.calls.get("sampling", 0),
        "sampled_nodes": sum(reached),
        "average_performance": record.metrics["average_performance"],
        "answers": record.fingerprints()[-1]["answers"][:12],
        "losses": [training["last_loss"] for training in record.training["tasks"]],
    }


def loaders(args: argparse.Namespace) -> dict[str, Any]:
    """Batches of our sampler and of PyG's loaders on the same graph."""
    import torch
    from cglsuite_node.datasets import ogbn
    from torch_geometric.data import Data
    from torch_geometric.loader import ClusterData, NeighborLoader, RandomNodeLoader
    from torch_geometric.utils import k_hop_subgraph

    from cglsuite.graphs import MessageGraph
    from cglsuite.graphs.sampling import sample_neighbours

    data = ogbn.products(_root(args))
    assert data.official_split is not None
    train = (data.official_split == 0).nonzero().flatten()
    batches = train[torch.randperm(len(train), generator=torch.Generator().manual_seed(0))].split(args.batch_size)[: args.batches]
    fan_out = [int(k) for k in args.fan_out.split(",")]
    graph, draws = MessageGraph(data.x, data.edge_index), torch.Generator().manual_seed(0)
    pyg = Data(x=data.x, edge_index=data.edge_index, y=data.y, num_nodes=data.n_nodes)

    def ours() -> Any:
        _ = graph.in_neighbours
        yield
        for ids in batches:
            yield sample_neighbours(graph, ids, fan_out, draws)[0].n_nodes

    def neighbour_loader() -> Any:
        made = iter(NeighborLoader(pyg, fan_out[::-1], input_nodes=torch.cat(batches), batch_size=args.batch_size))
        yield
        for batch in made:
            yield batch.num_nodes

    def k_hop() -> Any:
        yield
        for ids in batches[:2]:
            nodes, _, _, _ = k_hop_subgraph(ids, len(fan_out), data.edge_index, num_nodes=data.n_nodes)
            yield len(data.x[nodes])

    def random_nodes() -> Any:
        made = iter(RandomNodeLoader(pyg, num_parts=max(2, data.n_nodes // args.batch_size)))
        yield
        for _ in batches[:2]:
            yield next(made).num_nodes

    def clusters() -> Any:
        yield
        yield len(ClusterData(pyg, num_parts=max(2, data.n_nodes // args.batch_size)))

    measured: dict[str, Any] = {}
    for name, made in {
        "cglsuite, sample_neighbours": ours,
        "PyG, NeighborLoader": neighbour_loader,
        "PyG, k_hop_subgraph (all neighbours)": k_hop,
        "PyG, RandomNodeLoader (no neighbours outside)": random_nodes,
        "PyG, ClusterData": clusters,
    }.items():
        measured[name] = _batches_of(made)
    return {"data_gb": _data_gb(data), "loaders": measured, "parts": {}}


def _batches_of(made: Callable[[], Any]) -> dict[str, Any]:
    """Seconds to begin and per batch, nodes per batch, and memory on top of what was there; or why there is none."""
    before, started = _status("VmRSS"), time.process_time()
    _reset_peak()
    try:
        steps = made()
        next(steps)
        begun, nodes = time.process_time(), 0
        n = 0
        for size in steps:
            n, nodes = n + 1, nodes + size
    except ImportError as error:
        return {"refused": str(error).splitlines()[0]}
    ended = time.process_time()
    return {"begin_s": begun - started, "batch_s": (ended - begun) / n, "nodes": nodes / n, "gb": max(0.0, _status("VmHWM") - before)}


# --- all of it --------------------------------------------------------------------------------------------------------------------


def measured(args: argparse.Namespace, nodes: int, step: str) -> dict[str, Any]:
    """What a process of its own measures."""
    given = {name: value for name, value in vars(args).items() if name not in ("nodes", "child", "steps", "json")}
    options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    words = [sys.executable, __file__, *options, "--nodes", str(nodes), "--child", step]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the step {step!r} failed on {nodes:,} nodes (exit status {done.returncode}): see above")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def child(args: argparse.Namespace) -> None:
    """Run one step and print what it measured."""
    warnings.simplefilter("ignore")
    from cglsuite.cells.run import _keep_freed_memory

    _keep_freed_memory()
    started = time.process_time()
    _reset_peak()
    result = {"raw": raw, "cell": cell, "loaders": loaders}[args.child](args)
    result.setdefault("seconds", time.process_time() - started)
    result["peak_gb"] = max(_status("VmHWM"), *result.get("peaks", {}).values(), 0.0)
    result["mapped_gb"] = _status("RssFile")
    print(json.dumps(result))


def show(nodes: list[int], results: dict[int, dict[str, Any]]) -> None:
    """Tables: by part and size, and the loaders."""
    titles = [f"{n:,}" for n in nodes]
    for step in [s for s in STEPS[:2] if any(s in results[n] for n in nodes)]:
        of = [results[n][step] for n in nodes]
        print(f"\n{'reading raw files' if step == 'raw' else 'cell':32}" + "".join(f"{title:>14}" for title in titles) + f"{'growth':>10}")
        rows = {"directed edges, million": [r["n_edges"] / 1e6 for r in of], "data, GB": [r["data_gb"] for r in of]}
        rows["processor, s"] = [r["seconds"] for r in of]
        for name in sorted({part for r in of for part in r["parts"]}, key=lambda part: -of[-1]["parts"].get(part, 0)):
            rows[f"  {name}, s"] = [r["parts"].get(name, 0.0) for r in of]
        if step == "cell":
            spent = [1000 * r["parts"].get("sampling", 0.0) for r in of]
            rows["  sampling, ms per batch"] = [s / max(1, r["batches"]) for s, r in zip(spent, of, strict=True)]
            rows["  sampling, ms per 1,000 nodes"] = [1000 * s / max(1, r["sampled_nodes"]) for s, r in zip(spent, of, strict=True)]
        rows["peak memory, GB"] = [r["peak_gb"] for r in of]
        rows["peak / data"] = [r["peak_gb"] / r["data_gb"] for r in of]
        for part in of[-1].get("peaks", {}):
            rows[f"  peak in {part}, GB"] = [r["peaks"].get(part, 0.0) for r in of]
        if step == "cell":
            rows["average performance"] = [r["average_performance"] for r in of]
        for name, values in rows.items():
            growth = f"{values[-1] / values[0]:10.2f}" if len(values) > 1 and values[0] else ""
            print(f"{name:32}" + "".join(f"{value:14.2f}" for value in values) + growth)
    for n in nodes:
        if "loaders" in results[n]:
            print(f"\n{f'batches on {n:,} nodes':48}{'begin, s':>10}{'ms a batch':>12}{'nodes':>11}{'on top, GB':>12}")
            for name, row in results[n]["loaders"]["loaders"].items():
                told = "refused" in row
                values = () if told else (row["begin_s"], 1000 * row["batch_s"], row["nodes"], row["gb"])
                print(f"{name:48}" + (f"  {row['refused']}" if told else "{:10.2f}{:12.1f}{:11,.0f}{:12.2f}".format(*values)))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="250000,1000000", help="one size, or several separated by commas")
    parser.add_argument("--degree", type=float, default=60.0, help="neighbours of a node on average")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--classes", type=int, default=47)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=2000)
    parser.add_argument("--fan-out", default="5,10")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--method", default="bare")
    parser.add_argument("--policy", default="full", help="full or inter-task")
    parser.add_argument("--batches", type=int, default=10, help="batches of each loader")
    parser.add_argument("--folder", default=str(Path(tempfile.gettempdir(), "cglsuite-large-graphs")), help="where data and cache are kept")
    parser.add_argument("--steps", default=",".join(STEPS), help="some of them, separated by commas")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--child", choices=STEPS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    sizes, results = [int(n) for n in args.nodes.split(",")], dict[int, dict[str, Any]]()
    for n in sizes:
        args.nodes = n
        folder = _folder(args) / "data/ogbn_products"
        if not (done := folder / "complete").exists():
            started = time.process_time()
            write_raw(folder, nodes=n, degree=args.degree, features=args.features, classes=args.classes)
            done.touch()
            size = sum(path.stat().st_size for path in folder.rglob("*.gz")) / 1e9
            print(f"{n:,} nodes: raw files of {size:.2f} GB written in {time.process_time() - started:.0f} s", flush=True)
        results[n] = {}
        for step in args.steps.split(","):
            results[n][step] = measured(args, n, step)
            print(f"{n:,} nodes, {step}: {results[n][step]['seconds']:.1f} s, peak {results[n][step]['peak_gb']:.2f} GB", flush=True)
    show(sizes, results)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
