"""What a task-free cell costs over a plain loop of the same arithmetic, and other methods over `bare`. A command, not a test.

    python tests/benchmarks/task_free.py [--methods bare,er,a-gem,ssm] [--rounds 1] [--clock wall] [--steps 0]

The graph has CoraFull's size (see overhead.py): 35 latent tasks, about 1,200 batches of 10 nodes under the Gaussian schedule with σ = 20,
sampled neighbourhoods of (10, 25), an evaluation of all latent tasks every 100 batches. The loop draws its neighbours with NumPy, makes
operators by sorting, keeps features in CSR and evaluates in one pass per checkpoint. Times exclude imports and making the graph.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
from clocks import CLOCKS, go_by
from overhead import SIZE

SCENARIO = "synthetic-csbm/gaussian@drift-1"
LIMITS = {"bare": ("loop", 1.25), "er": ("bare", 2.5), "a-gem": ("bare", 2.5), "ssm": ("bare", 2.5)}
SETTINGS = {
    "schedule.sigma": 20.0,
    "stream.evaluate_every": 100,
    "backbone.normalisation": "none",
    "backbone.head": "convolution",
    "backbone.bias": False,
}


def _cell(catalogue, method):
    from cglsuite.cells.spec import resolve_cell

    return resolve_cell(catalogue, SCENARIO, method, overrides=SIZE | SETTINGS)


def run_cell(args) -> dict:
    """The suite's cell, through the same call that a worker makes."""
    from cglsuite import load_catalogue
    from cglsuite.cells.run import _load, run_cell
    from cglsuite.cells.storage.store import Store

    go_by(args.clock)
    catalogue = load_catalogue()
    cell = _cell(catalogue, args.child_method)
    _load(catalogue, cell.scenario.dataset, tuple(sorted(cell.dataset_hyperparameters.items())))
    with tempfile.TemporaryDirectory() as folder:
        started = CLOCKS[args.clock]()
        record = run_cell(cell, catalogue, Store(folder))
        elapsed = CLOCKS[args.clock]() - started
    if record.status != "done":
        raise SystemExit(record.reason)
    return {"seconds": elapsed, "sections": dict(record.timings_s), "final": sum(record.matrix[-1]) / len(record.matrix[-1])}


def run_loop(args) -> dict:
    """The plain loop over the same batches."""
    import numpy as np
    import torch
    from plain import Adam, Pass, Task, pair, weights_of

    from cglsuite import load_catalogue
    from cglsuite.cells.run import _keep_freed_memory, _load, build_stream
    from cglsuite.graphs.message import scipy_features

    catalogue = load_catalogue()
    cell = _cell(catalogue, "bare")
    torch.set_num_threads(1)
    _keep_freed_memory()
    torch.set_flush_denormal(True)
    data = _load(catalogue, cell.scenario.dataset, tuple(sorted(cell.dataset_hyperparameters.items())))
    started = CLOCKS[args.clock]()
    stream = build_stream(cell, catalogue)
    items, y = stream.items.numpy(), data.y
    members = {p: [stream.members(k, p).numpy() for k in range(len(stream))] for p in ("train", "validation", "test")}
    n, x, edges = data.n_nodes, scipy_features(data.x), data.edge_index.numpy()
    present = np.ones(n, bool)
    present[np.concatenate(members["validation"])] = False
    edges = edges[:, present[edges].all(0) & (edges[0] != edges[1])]
    keys = np.unique(np.concatenate([edges[0] * n + edges[1], edges[1] * n + edges[0]]))  # both directions, by target
    edges = np.stack([keys % n, keys // n])
    sources, pointers = edges[0], np.searchsorted(keys, np.arange(n + 1) * n)
    of = np.full(n, -1)
    for k in range(len(stream)):
        for part in members.values():
            of[part[k]] = k
    own = edges[:, of[edges[0]] == of[edges[1]]]
    everyone = np.flatnonzero(present)
    whole_x, whole_a = pair(x[everyone]), _adjacency(own, everyone, n)
    place = np.full(n, -1)
    place[everyone] = np.arange(len(everyone))
    asked = [torch.from_numpy(place[ids]) for ids in members["test"]]
    columns = [torch.tensor(sorted({c for f in stream.tasks[: k + 1] for c in f.classes})) for k in range(len(stream))]
    draws, scratch = np.random.default_rng(0), np.full(n, -1)
    torch.manual_seed(0)

    nothing = torch.empty(0, dtype=torch.int64)

    def graph(features, adjacency) -> Task:
        return Task(features, adjacency, nothing, nothing, nothing, nothing, nothing, nothing)

    whole = graph(whole_x, whole_a)
    weights = weights_of([whole], data.n_classes)
    optimizer = Adam(weights)
    seen = torch.zeros(data.n_classes, dtype=torch.bool)
    rows = []

    def evaluate() -> None:
        logits = Pass.of(whole, *weights).out
        row = []
        for k, ids in enumerate(asked):
            answers = columns[k][logits[ids][:, columns[k]].argmax(1)]
            row.append(float((answers == y[members["test"][k]]).float().mean()))
        rows.append(row)

    for step, ids in enumerate(items):
        if step % cell.scenario.task_free.evaluate_every == 0:
            evaluate()
        nodes, source, target, at = _sampled(ids, pointers, sources, (25, 10), draws, scratch)
        batch = graph(pair(x[nodes]), _operator(source, target, len(nodes)))
        labels = y[ids]
        seen[labels] = True
        competing = seen.nonzero().flatten()
        position = seen.cumsum(0) - 1
        made = Pass.of(batch, *weights)
        places = torch.from_numpy(at)[:, None], competing
        chosen = made.out[places].softmax(dim=1)
        chosen[torch.arange(len(ids)), position[labels]] -= 1
        slope = torch.zeros_like(made.out)
        slope[places] = chosen / len(ids)
        optimizer.step(made.back(batch, weights[1], slope))
    evaluate()
    elapsed = CLOCKS[args.clock]() - started
    return {"seconds": elapsed, "sections": {}, "final": float(np.mean(rows[-1]))}


def _adjacency(edges, nodes, n):
    import numpy as np

    place = np.full(n, -1)
    place[nodes] = np.arange(len(nodes))
    inner = place[edges]
    return _operator(*inner[:, (inner >= 0).all(0)], len(nodes))


def _operator(source, target, n):
    """A + I of ``n`` nodes and its transpose as torch CSR, by sorting: a fifth of the time that SciPy takes for a small graph."""
    import numpy as np
    import torch

    loops = np.arange(n) * (n + 1)

    def csr(rows, columns):
        keys = np.concatenate([rows * n + columns, loops])
        keys.sort()
        pointers = np.searchsorted(keys, np.arange(n + 1) * n)
        return torch.sparse_csr_tensor(*map(torch.from_numpy, (pointers, keys % n, np.ones(len(keys), np.float32))), size=(n, n))

    return csr(target, source), csr(source, target)


def _sampled(ids, pointers, sources, fan_out, draws, place):
    """Nodes, sources and targets of a sampled neighbourhood, hop by hop from the batch, and where the batch's nodes are in it.

    ``place``: int64 [N] of -1, working memory that is left as it was.
    """
    import numpy as np

    hops, heard, hearing, n = [np.unique(ids)], [], [], 0
    for k in fan_out:
        frontier = hops[-1]
        place[frontier] = np.arange(n, n + len(frontier))
        slots, rows = _drawn(frontier, pointers, k, draws)
        heard.append(sources[slots])
        hearing.append(rows + n)
        n += len(frontier)
        hops.append(np.unique(heard[-1][place[heard[-1]] < 0]))
    place[hops[-1]] = np.arange(n, n + len(hops[-1]))
    nodes = np.concatenate(hops)
    found = nodes, place[np.concatenate(heard)], np.concatenate(hearing), place[ids]
    place[nodes] = -1
    return found


def _drawn(nodes, pointers, k, draws):
    """The slots of at most ``k`` in-neighbours of every node, and its row."""
    import numpy as np

    starts = pointers[nodes]
    degree = pointers[nodes + 1] - starts
    before = np.cumsum(degree) - degree
    rows = np.repeat(np.arange(len(nodes)), degree)
    slots = np.arange(len(rows)) + np.repeat(starts - before, degree)
    if degree.max(initial=0) <= k:
        return slots, rows
    order = np.argsort(rows + draws.random(len(rows)))
    kept = order[np.arange(len(rows)) - np.repeat(before, degree) < k]
    return slots[kept], rows[kept]


def _child(what: str, method: str, args) -> dict:
    command = [sys.executable, __file__, "--child", what, "--child-method", method, "--clock", args.clock]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(LIMITS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu for a machine that is busy")
    parser.add_argument("--child", choices=["cell", "loop"], help=argparse.SUPPRESS)
    parser.add_argument("--child-method", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        warnings.simplefilter("ignore")
        found = (run_cell if args.child == "cell" else run_loop)(args)
        print(json.dumps(found | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return
    methods = list(dict.fromkeys(["bare", *args.methods.split(",")]))
    rounds = []
    for number in range(args.rounds):
        runs = {("bare", "loop"): _child("loop", "bare", args)} | {(m, "cell"): _child("cell", m, args) for m in methods}
        for (method, what), f in runs.items():
            print(
                f"round {number + 1}: {method:6s} {what} {f['seconds']:6.2f} s, final {f['final']:.3f}, {f['peak_mb']:.0f} MB", flush=True
            )
        rounds.append(runs)
    for method in methods:
        against, limit = LIMITS.get(method, ("bare", 2.5))
        base = ("bare", "loop") if against == "loop" else ("bare", "cell")
        ratio = median(r[method, "cell"]["seconds"] / r[base]["seconds"] for r in rounds)
        peak = max(r[method, "cell"]["peak_mb"] for r in rounds)
        print(f"{method:6s} {ratio:6.3f} x {against:5s} (at most {limit}) {'met' if ratio <= limit else 'MISSED'}, peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
