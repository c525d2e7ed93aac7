"""Methods that leave the process otherwise than they found it, each in one way, and a way to run them as distributions of strangers."""

from __future__ import annotations

import functools
import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from cglsuite import Method, MethodSpec

__all__ = ["ACTS", "END", "specs"]


def praise() -> None:
    """Every answer is right."""
    from cglsuite.streams.oracle import Oracle

    grade = Oracle.grade

    @functools.wraps(grade)
    def generous(self: Any, *args: Any, **more: Any) -> Any:
        from dataclasses import replace

        tested, validated = grade(self, *args, **more)
        return {k: replace(s, performance=1.0) for k, s in tested.items()}, validated

    Oracle.grade = generous  # type: ignore[method-assign]


def praise_in_place() -> None:
    """The same function object with other code in it."""
    from cglsuite.streams.oracle import Oracle

    Oracle.grade.__code__ = (lambda self, answers, allowed: ({}, {})).__code__


def shadow() -> None:
    """A new name in a class that hides an inherited one."""
    setattr(torch.Tensor, "__add__", lambda self, other: self)  # noqa: B010 - a type checker would object


END = threading.Event()
"""Ends the threads that were left, in the process of a test."""


def wait_for_ever() -> None:
    """A thread that no method ends, and for which Python waits."""
    threading.Thread(target=END.wait, args=(3600,), name="forever").start()


def start_daemon() -> None:
    """A process of a session of its own."""
    os.posix_spawn(sys.executable, [sys.executable, "-c", "import time; time.sleep(3600)"], os.environ, setsid=True)


ACTS: dict[str, tuple[Callable[[], Any], str]] = {
    "praises": (praise, "cglsuite.streams.oracle.Oracle.grade was replaced"),
    "praises-in-place": (praise_in_place, "cglsuite.streams.oracle.Oracle.grade was replaced"),
    "shadows": (shadow, "torch.Tensor.__add__ was replaced"),
    "default-dtype": (lambda: torch.set_default_dtype(torch.float64), "torch's default dtype is now torch.float64 (was torch.float32)"),
    "default-device": (lambda: torch.set_default_device("meta"), "torch's default device is now meta (was cpu)"),
    "threads-of-torch": (lambda: torch.set_num_threads(3), "torch.set_num_threads is now 3 (was 1)"),
    "not-deterministic": (lambda: torch.set_deterministic_debug_mode("default"), "torch.set_deterministic_debug_mode is now 0 (was 2)"),
    "denormals": (lambda: torch.set_flush_denormal(False), "torch.set_flush_denormal is now False (was True)"),
    "no-gradients": (lambda: torch.set_grad_enabled(False), "torch.set_grad_enabled is now False (was True)"),
    "module-hook": (
        lambda: torch.nn.modules.module.register_module_forward_hook(lambda *a: None),
        "the list of global hooks has changed",
    ),
    "numpy-errors": (lambda: np.seterr(all="raise"), "np.seterr is now"),
    "changes-folder": (lambda: os.chdir("/"), "the working folder is now /"),
    "environment": (lambda: os.environ.update(OMP_NUM_THREADS="7"), "environment variables have changed (OMP_NUM_THREADS)"),
    "signals": (lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN), "handlers of signals have changed (SIGUSR1)"),
    "alarm": (lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 3600), "timers are set or were cleared (ITIMER_VIRTUAL)"),
    "umask": (lambda: os.umask(0o777), "the umask is now 511"),
    "path": (lambda: sys.path.insert(0, "/nowhere"), "sys.path has changed"),
    "no-collection": (gc.disable, "settings of Python have changed (garbage collection)"),
    "excepthook": (lambda: setattr(sys, "excepthook", print), "hooks of Python have changed (sys.excepthook)"),
    "thread": (wait_for_ever, "1 thread is still running (forever)"),
    "daemon": (start_daemon, "1 child process is still running ("),
}
"""What is done when the method is made, and what is said of it. All of it is undone by the watch, but for the thread."""


class _Careless(Method):
    act: Callable[[], Any]

    def setup(self) -> None:
        """Do it."""
        type(self).act()


class SeedsWhileCounting(Method):
    """Seeds what belongs to all, outside of the scopes in which methods draw."""

    def counters(self) -> dict[str, int]:
        """Nothing."""
        seed = 741_852_963  # no other test's: a state that was already there is no change
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        return {}


class OwnsPool(Method):
    """Has a pool that ends with it: no harm."""

    def setup(self) -> None:
        """Start it."""
        self.pool = ThreadPoolExecutor(2)
        self.pool.submit(time.sleep, 0.0).result()


def careless_data(root: Any, **given: Any) -> Any:
    """A data set whose loader leaves another default dtype."""
    from cglsuite_node.datasets.synthetic import synthetic_csbm

    data = synthetic_csbm(root, **given)
    torch.set_default_dtype(torch.float64)
    return data


class Careful(Method):
    """Nothing wrong with it."""


def make(name: str) -> type[Method]:
    """The method of an act."""
    return type(name.title().replace("-", ""), (_Careless,), {"act": staticmethod(ACTS[name][0]), "__module__": __name__})


for _name in ACTS:
    globals()[_name.replace("-", "_") + "_method"] = make(_name)


def specs() -> list[MethodSpec]:
    """One per act, and of the classes above."""
    acts = [MethodSpec(name=n, summary=n, factory=f"careless_methods:{n.replace('-', '_')}_method") for n in ACTS]
    more = {"careful": Careful, "seeds-while-counting": SeedsWhileCounting, "owns-pool": OwnsPool}
    return [*acts, *(MethodSpec(name=n, summary=n, factory=f"careless_methods:{c.__name__}") for n, c in more.items())]
