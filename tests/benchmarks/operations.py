"""Single operations with native and with portable numerics, on this processor and emulated ones: which are equal in every bit? A command.

    python tests/benchmarks/operations.py                     prints the table of docs/how-to/keep-results.md
    python tests/benchmarks/operations.py --write             and writes operations.json, from which a test computes it again

Every operation gets the same fixed inputs, and a digest of its result is kept by numerics and processor. The emulated ones run under QEMU's
user emulation (see ``processors.py``), natively and portably in a process each. About ten minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from processors import EMULATOR, PROCESSORS

from cglsuite.cells.portable import NumericsWord, _probe, environment_of, prepare, process_numerics

FILE = Path(__file__).with_suffix(".json")
WORDS: tuple[NumericsWord, NumericsWord] = ("native", "portable")
Operations = dict[str, dict[str, Callable[[], Any]]]


def operations() -> Operations:
    """By kind and name; each returns a tensor or an array."""
    import numpy as np
    import torch
    from torch.nn import functional

    x, w, square = _probe(67, 150, seed=1), _probe(150, 37, seed=2), _probe(24, 24, seed=3)
    wide, positive, inside, ties = x.double().numpy(), x.abs() + 2**-10, x / 2.001, (x * 4).round().flatten()
    symmetric, definite, few = square + square.T, square @ square.T + 24 * torch.eye(24), ties.numpy()

    def drawing() -> torch.Generator:
        return torch.Generator().manual_seed(3)

    return {
        "dense products": {
            "mm": lambda: x @ w,
            "mm, float64": lambda: x.double() @ w.double(),
            "addmm": lambda: torch.addmm(w[0], x, w),
            "bmm": lambda: torch.bmm(x[None], w[None]),
            "mv": lambda: x @ w[:, 0],
            "dot": lambda: x.flatten() @ ties,
            "cdist": lambda: torch.cdist(x, x),
            "conv2d": lambda: functional.conv2d(x[:48].reshape(1, 3, 48, 50), w.flatten()[:135].reshape(5, 3, 9, 1)),
            "NumPy, float32": lambda: x.numpy() @ w.numpy(),
            "NumPy, float64": lambda: wide @ wide.T,
        },
        "sparse products": {
            "CSR": lambda: x[:, :67].relu().to_sparse_csr() @ x,
            "COO": lambda: x[:, :67].relu().to_sparse().coalesce() @ x,
            "index_add": lambda: torch.zeros(9, 150).index_add_(0, torch.arange(67) % 9, x),
        },
        "functions of PyTorch": {
            **{f.__name__: lambda f=f: f(x) for f in (torch.exp, torch.expm1, torch.tanh, torch.sin, torch.cos, torch.tan)},
            **{f.__name__: lambda f=f: f(x) for f in (torch.erf, torch.sigmoid, torch.atan)},
            **{f.__name__: lambda f=f: f(positive) for f in (torch.sqrt, torch.rsqrt, torch.log, torch.log1p)},
            **{f.__name__: lambda f=f: f(inside) for f in (torch.asin, torch.acos)},
            "pow": lambda: torch.pow(positive, 1.7),
            "softmax": lambda: torch.softmax(x, 1),
            "log_softmax": lambda: torch.log_softmax(x, 1),
            "logsumexp": lambda: torch.logsumexp(x, 1),
            "gelu": lambda: functional.gelu(x),
            "elu": lambda: functional.elu(x),
            "softplus": lambda: functional.softplus(x),
            "layer_norm": lambda: functional.layer_norm(x, (150,)),
            "addcdiv": lambda: torch.addcdiv(x, x, positive.sqrt() + 1e-8),
        },
        "functions of NumPy": {
            **{f"{f.__name__}, float64": lambda f=f: f(wide) for f in (np.exp, np.sin, np.tanh)},
            "log, float64": lambda: np.log(positive.double().numpy()),
            "power, float64": lambda: np.power(positive.double().numpy(), 1.7),
            "sqrt, float64": lambda: np.sqrt(positive.double().numpy()),
            "exp, float32": lambda: np.exp(x.numpy()),
            "log, float32": lambda: np.log(positive.numpy()),
        },
        "reductions": {
            "sum": lambda: x.sum(),
            "mean": lambda: x.mean(1),
            "var": lambda: x.var(0),
            "norm": lambda: torch.linalg.norm(x),
            "cumsum": lambda: x.cumsum(1),
            "prod": lambda: x[:, :20].prod(1),
            "NumPy, sum": lambda: wide.sum(),
            "NumPy, mean": lambda: x.numpy().mean(0),
        },
        "factorisations": {
            "cholesky": lambda: torch.linalg.cholesky(definite),
            "solve": lambda: torch.linalg.solve(square, square[:, :3]),
            "inv": lambda: torch.linalg.inv(square),
            "qr": lambda: torch.linalg.qr(x.T)[0],
            "svd": lambda: torch.linalg.svd(x, full_matrices=False)[0],
            "eigh": lambda: torch.linalg.eigh(symmetric)[1],
            "lstsq": lambda: torch.linalg.lstsq(x.T, x.T[:, :3])[0],
            "fft": lambda: torch.view_as_real(torch.fft.fft(x)),
            "NumPy, svd": lambda: np.linalg.svd(x.numpy(), full_matrices=False)[0],
            "NumPy, eigh": lambda: np.linalg.eigh(symmetric.numpy())[1],
        },
        "sorts of equal values": {
            "argsort": lambda: ties.argsort(),
            "topk": lambda: ties.topk(200).indices,
            "unique": lambda: ties.unique(return_inverse=True)[1],
            "NumPy, float32": lambda: np.argsort(few),
            "NumPy, float64": lambda: np.argsort(few.astype(np.float64)),
            "NumPy, int64": lambda: np.argsort(few.astype(np.int64)),
            "NumPy, argpartition": lambda: np.argpartition(few, 500),
        },
        "draws": {
            "randn": lambda: torch.randn(500, generator=drawing()),
            "rand": lambda: torch.rand(500, generator=drawing()),
            "bernoulli": lambda: torch.empty(500).bernoulli_(0.3, generator=drawing()),
            "exponential": lambda: torch.empty(500).exponential_(generator=drawing()),
            "multinomial": lambda: torch.multinomial(positive, 5, generator=drawing()),
            "NumPy, normal": lambda: np.random.default_rng(1).normal(size=500),
        },
    }


def digests() -> dict[str, dict[str, str]]:
    """By kind and operation, a digest of its result in this process, or that it is refused."""
    import numpy as np

    from cglsuite.base.errors import UsageError

    def digest(operation: Callable[[], Any]) -> str:
        try:
            return hashlib.sha256(np.ascontiguousarray(operation()).tobytes()).hexdigest()[:16]
        except UsageError:
            return "refused"

    return {kind: {name: digest(operation) for name, operation in some.items()} for kind, some in operations().items()}


def equal(found: Mapping[str, Any], numerics: str, kind: str, *processors: str) -> int:
    """The number of operations of a kind whose results on these processors are those of the first processor."""
    first, *others = (found[numerics][place][kind] for place in ("", *processors))
    return sum(all(there[name] == result != "refused" for there in others) for name, result in first.items())


def table(found: Mapping[str, Any]) -> list[str]:
    """Markdown: per kind, how many operations have the bits of the first processor, natively and portably."""
    others = [processor for processor in found["native"] if processor]
    heads = ["operations", *(f"native, {name}" for name in others), "portable, all three"]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for kind, some in found["native"][""].items():
        cells = [f"{equal(found, 'native', kind, name)} of {len(some)}" for name in others]
        refused = "".join(f", {name} is refused" for name, result in found["portable"][""][kind].items() if result == "refused")
        cells.append(f"{equal(found, 'portable', kind, *others)} of {len(some)}{refused}")
        lines.append(f"| {' | '.join([kind, *cells])} |")
    return lines


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        prepare(process_numerics())
        print(json.dumps(digests()))
        return 0
    found: dict[str, dict[str, Any]] = {numerics: {} for numerics in WORDS}
    for numerics in WORDS:
        for processor in ("", *PROCESSORS):
            emulated = [str(EMULATOR), "-cpu", processor] if processor else []
            command = [*emulated, sys.executable, "-W", "ignore", __file__, "--here"]
            environment = environment_of(numerics) | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            found[numerics][processor] = json.loads(done.stdout.splitlines()[-1])
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    if options.write:
        FILE.write_text(text)
    print("\n".join(table(json.loads(text))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
