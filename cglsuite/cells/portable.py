"""Portable numerics, and a digest that identifies the arithmetic of this process.

The same cell differs in the last bits between processors, because libraries choose kernels by the hardware that they detect: MKL by the
processor's vendor; PyTorch, oneDNN, OpenBLAS and NumPy by its instruction sets. ``numerics = "portable"`` pins them all to AVX2, which
nearly every x86-64 processor since about 2015 has, and NumPy to its baseline:

- MKL runs in its compatible mode, which ignores the vendor but is two to five times slower for dense products. Dense products therefore
  use NumPy's OpenBLAS, with the kernels for one processor (Haswell). They are redirected by PyTorch's dispatcher, so
  autograd, second derivatives and ``torch.func`` work as before.
- The compatible mode computes square roots, arc functions and the tangent from the processor's approximations (``rsqrtps``), which
  vendors implement differently. These functions come from NumPy's exact square root, and from functions that PyTorch computes itself.

Libraries read the variables when they are loaded, so a process is portable from its start or not at all. Nothing here imports torch early.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cglsuite.base.errors import UsageError
from cglsuite.cells.device import planned_device

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

NumericsWord = Literal["native", "portable"]
NumericsChoice = Literal["auto", "native", "portable"]

ENVIRONMENT: Mapping[str, str] = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    # All features by which NumPy chooses code: its sorts order equal values differently. Names of NumPy 2.4, then of earlier versions;
    # unknown names are ignored.
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL",
}
"""The environment variables that make a process portable if set before NumPy and PyTorch are loaded."""


def environment_of(numerics: NumericsWord) -> dict[str, str]:
    """Return the environment variables for a child process that runs cells with these numerics."""
    if numerics == "portable":
        return {**os.environ, **ENVIRONMENT}
    return {name: value for name, value in os.environ.items() if not (in_force() and name in ENVIRONMENT)}


def device_and_numerics(device: str, numerics: NumericsChoice, *, in_this_process: bool = False) -> tuple[str, NumericsWord]:
    """Resolve the device and numerics requested for cells, either of which may be ``auto``.

    Portable numerics need a CPU. ``auto`` chooses them on a CPU with AVX2 or, ``in_this_process``, if the process was started with them.

    Raises:
        UsageError: portable numerics were requested for a different device.
    """
    kind = "cpu" if (device, numerics) == ("auto", "portable") else planned_device(device)
    if numerics != "auto":
        return kind, numerics
    return kind, "portable" if kind == "cpu" and (in_force() or (not in_this_process and _has_avx2())) else "native"


@lru_cache(maxsize=1)
def _has_avx2() -> bool:
    """Return whether Linux reports AVX2; other systems are not queried."""
    try:
        return re.search(r"^flags\s*:.*\bavx2\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE) is not None
    except OSError:
        return False


def in_force() -> bool:
    """Return whether this process was started with :data:`ENVIRONMENT`."""
    return all(_AT_START.get(name) == value for name, value in ENVIRONMENT.items())


def process_numerics() -> NumericsWord:
    """Return the numerics that a cell must have to run in this process."""
    return "portable" if in_force() else "native"


def _at_start() -> dict[str, str]:
    """Return the environment that NumPy and PyTorch were, or will be, loaded with: if they are loaded, that at the process's start
    (Linux)."""
    if sys.modules.keys().isdisjoint({"numpy", "torch"}) or not (began := Path("/proc/self/environ")).is_file():
        return dict(os.environ)
    pairs = (os.fsdecode(pair).partition("=") for pair in began.read_bytes().split(b"\0"))
    return {name: value for name, _, value in pairs}


_AT_START = _at_start()


def prepare(numerics: str) -> None:
    """Make this process compute with these numerics. Must be called before the first cell runs.

    Raises:
        UsageError: the libraries were already loaded with other settings, or the processor has no AVX2.
    """
    if numerics == "native":
        if in_force():
            raise UsageError(
                "this process has portable numerics, so it cannot run a cell with native ones: run it with --numerics portable, or "
                f"without {', '.join(ENVIRONMENT)} in the environment"
            )
        return
    if not in_force():
        raise UsageError(
            "portable numerics must be set before NumPy and PyTorch are loaded, but this process has already loaded them: let "
            "`cglsuite run` or `cglsuite.run` train the cell in new worker processes, or set in the environment before Python "
            f"starts: {' '.join(f'{name}={value!r}' for name, value in ENVIRONMENT.items())}"
        )
    import torch

    if (found := torch.backends.cpu.get_cpu_capability()) != "AVX2":
        raise UsageError(f"portable numerics need an x86-64 processor with AVX2 and FMA; PyTorch finds {found} here: use native numerics")
    _replace_kernels()


# --- kernels ---------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _replace_kernels() -> Any:
    """Register the portable kernels with PyTorch's dispatcher; the registration lives as long as the process."""
    import warnings

    import torch

    library = torch.library.Library("aten", "IMPL")
    kernels: dict[str, Callable[..., Any]] = {
        "mm": _product,
        "bmm": _product,
        "addmm": _product_and_sum,
        "baddbmm": _product_and_sum,
        **_unary("sqrt", _sqrt),
        **_unary("tan", lambda x: torch.sin(x) / torch.cos(x)),
        **_unary("atan", lambda x: torch.atan2(x, torch.ones_like(x))),
        **_unary("asin", lambda x: torch.atan2(x, _sqrt((1 - x) * (1 + x)))),
        **_unary("acos", lambda x: torch.atan2(_sqrt((1 - x) * (1 + x)), x)),
        "linalg_cholesky_ex": _cholesky,
        "linalg_lstsq": _refuse_operation("torch.linalg.lstsq"),
        "mkldnn_rnn_layer": _refuse_operation("torch.nn.LSTM"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch warns about each kernel that is replaced
        for name, kernel in kernels.items():
            library.impl(name, kernel, "CPU")
    return library


def _array(x: torch.Tensor) -> NDArray[Any]:
    return x.detach().numpy()


def _is_real(*tensors: torch.Tensor) -> bool:
    import torch

    return all(x.dtype in (torch.float32, torch.float64) for x in tensors)


def _matrix(x: torch.Tensor) -> NDArray[Any]:
    """Return a matrix, or a batch of them, as an array whose layout BLAS accepts."""
    return _array(x if 1 in x.stride()[-2:] else x.contiguous())


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compute ``a @ b`` with OpenBLAS, for [n, k] and [k, m] or batches of them."""
    import numpy as np
    import torch

    if not _is_real(a, b) or a.dtype != b.dtype or a.shape[-1] != b.shape[-2]:
        out = a.new_empty((*a.shape[:-1], b.shape[-1]))
        return torch.mm(a, b, out=out) if a.dim() == 2 else torch.bmm(a, b, out=out)
    return torch.from_numpy(np.matmul(_matrix(a), _matrix(b)))


def _product_and_sum(added: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1) -> torch.Tensor:
    """Compute ``beta * added + alpha * a @ b``; ``added`` broadcasts, and is not read if ``beta`` is 0."""
    out = _product(a, b)
    if alpha != 1:
        out.mul_(alpha)
    return out if beta == 0 else out.add_(added, alpha=beta)


def _sqrt(x: torch.Tensor) -> torch.Tensor:
    """Return the exactly rounded square root."""
    import numpy as np
    import torch

    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.asarray(np.sqrt(_array(x))))


def _unary(name: str, function: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Callable[..., torch.Tensor]]:
    """Return the functional, in-place and ``out=`` kernels of an elementwise function. Real numbers only."""
    import torch

    def of(x: torch.Tensor) -> torch.Tensor:
        if _is_real(x):
            return function(x)
        if x.is_complex() or x.is_floating_point():
            raise UsageError(f"torch.{name} of {x.dtype} has no portable form: use native numerics")
        return function(x.to(torch.get_default_dtype()))

    def into(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        values = of(x)
        return out.resize_(values.shape).copy_(values)

    return {name: of, f"{name}_": lambda x: x.copy_(of(x)), f"{name}.out": into}


def _cholesky(a: torch.Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the Cholesky factor computed by OpenBLAS, and whether it exists; after a failure the rest of a batch is not factorised."""
    import numpy as np
    import torch

    info = torch.zeros(a.shape[:-2], dtype=torch.int32)
    try:
        factor = torch.from_numpy(np.linalg.cholesky(_array(a.mH if upper else a)))
    except np.linalg.LinAlgError:
        if check_errors:
            raise torch.linalg.LinAlgError("the matrix is not positive-definite") from None  # type: ignore[attr-defined]
        return a.clone(), info + 1
    return (factor.mH.contiguous() if upper else factor), info


def _refuse_operation(operation: str) -> Callable[..., Any]:
    def refuse(*args: object, **kwargs: object) -> Any:
        raise UsageError(f"{operation} has no portable form on this PyTorch: use native numerics")

    return refuse


# --- identity --------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def arithmetic() -> str:
    """Return the SHA-256 (hex) of the results of probe operations: products, functions, reductions, factorisations, sorts and random draws.

    If the digests agree, the same code on the same inputs gives the same bits, which a processor's name does not guarantee. Takes
    milliseconds, draws no random numbers and changes no state. Equal keys guarantee equal results only if these digests agree.
    """
    import torch

    if in_force():
        _replace_kernels()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            return hashlib.sha256(b"".join(values.contiguous().numpy().tobytes() for values in _probes())).hexdigest()
    finally:
        torch.set_num_threads(threads)


def _probe(*shape: int, seed: int) -> torch.Tensor:
    """Return fixed numbers between -2 and 2, float32, computed with integer arithmetic only."""
    import torch

    count = torch.arange(int(torch.Size(shape).numel()), dtype=torch.int64)
    mixed = (count * 2654435761 + seed * 40503) % 4294967291
    mixed = (mixed * 48271 + 11) % 2147483647
    return (mixed.to(torch.float64) / 2147483647 * 4 - 2).to(torch.float32).reshape(shape)


def _probes() -> Sequence[torch.Tensor]:
    import numpy as np
    import torch
    from torch.nn import functional

    x, w = _probe(67, 150, seed=1), _probe(150, 37, seed=2)
    inside, positive, square = x / 2.0009765625, x.abs() + 0.0009765625, _probe(24, 24, seed=3)
    rows, columns = torch.arange(600) % 67, (torch.arange(600) * 7) % 67
    sparse = torch.sparse_coo_tensor(torch.stack([rows, columns]), positive.flatten()[:600], (67, 67), check_invariants=False)
    out = [x @ w, x.T @ x, x.double() @ w.double(), functional.linear(x[:7], w.T, w[0]), torch.bmm(x[None], w[None]), x @ w[:, 0]]
    out += [f(x) for f in (torch.exp, torch.expm1, torch.tanh, torch.sin, torch.cos, torch.erf, torch.sigmoid, torch.atan)]
    out += [f(positive) for f in (torch.sqrt, torch.rsqrt, torch.log, torch.log1p)]
    out += [torch.acos(inside), torch.pow(positive, 1.7), torch.softmax(x, 1), torch.log_softmax(x, 1), torch.logsumexp(x, 1)]
    out += [functional.gelu(x), functional.elu(x), functional.softplus(x), functional.layer_norm(x, (150,)), functional.normalize(x)]
    out += [x.sum(), x.sum(0), x.mean(1), x.var(0), x.cumsum(1)]
    out += [torch.zeros(9, 150).index_add_(0, torch.arange(67) % 9, x), sparse.coalesce() @ x]
    out += [functional.conv2d(x[:48].reshape(1, 3, 48, 50), w.flatten()[:135].reshape(5, 3, 9, 1))]
    out += [torch.linalg.cholesky(square @ square.T + 24 * torch.eye(24)), torch.linalg.solve(square, square[:, :3])]
    out += [torch.linalg.qr(x.T)[0], torch.linalg.svdvals(square), torch.cdist(x, x), torch.addcdiv(x, x, positive)]
    wide, ties = x.double().numpy(), (x.flatten() * 4).round()
    out += [ties.argsort(), ties.topk(200).indices, torch.empty(150).exponential_(generator=torch.Generator().manual_seed(0))]
    out += [torch.randn(150, generator=torch.Generator().manual_seed(0))]
    of_numpy = [np.argsort(values) for values in (ties.numpy(), wide.round().flatten(), ties.long().numpy())]
    of_numpy += [np.argpartition(ties.numpy(), 500), np.exp(wide), np.log(positive.double().numpy()), wide @ wide.T, np.linalg.svd(wide)[1]]
    return [*out, *map(torch.from_numpy, of_numpy)]
