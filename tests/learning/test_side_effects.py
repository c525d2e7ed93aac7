"""What a run must not do beside computing: global random states, folders, the environment, logging, threads, plotting, torch's settings."""

from __future__ import annotations

import importlib
import logging
import os
import random
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from installed import installed
from short_methods import SHORT
from tiny_streams import BusyMethod, KeptCheckpoints, catalogue_runner, tiny_runner, tiny_stream
from tiny_task_free import catalogue_task_free_runner, tiny_task_free_stream

METHODS: list[Any] = [e for e in installed().entries("method") if e.record.distribution == "cglsuite-methods"]
SETTINGS: dict[str, dict[str, Any]] = {
    "joint": {"offline_epochs": 2, "offline_batch": 16},
    **{method: {name.removeprefix("method."): value for name, value in given.items()} for method, given in SHORT.items()},
}


def loggers() -> dict[str, tuple[int, int, bool]]:
    named = {n: x for n, x in logging.root.manager.loggerDict.items() if isinstance(x, logging.Logger) and n.startswith("cglsuite")}
    return {n: (x.level, len(x.handlers), x.propagate) for n, x in {**named, "root": logging.root}.items()}


def surroundings(folder: Path) -> dict[str, Any]:
    """Everything of the process that does not belong to a run."""
    return {
        "python's random state": random.getstate(),
        "numpy's random state": [v.tolist() if isinstance(v, np.ndarray) else v for v in np.random.get_state()],  # noqa: NPY002
        "torch's random state": torch.get_rng_state().tolist(),
        "default dtype": torch.get_default_dtype(),
        "default device": str(torch.get_default_device()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "gradients": torch.is_grad_enabled(),
        "threads of torch": torch.get_num_threads(),
        "threads": sorted(t.name for t in threading.enumerate()),
        "folder": str(Path.cwd()),
        "files": sorted(str(p) for p in folder.rglob("*")),
        "environment": dict(os.environ),
        "logging": loggers(),
        "warnings": list(warnings.filters),
        "numpy's errors": np.geterr(),
        "print options": (np.get_printoptions()["precision"], torch._tensor_str.PRINT_OPTS.precision),
    }


def assert_unchanged(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert [name for name in before if before[name] != after[name] and name != "logging"] == []
    assert {n: x for n, x in after["logging"].items() if n in before["logging"]} == before["logging"]
    assert not any(handlers for name, (_, handlers, _) in after["logging"].items() if name not in before["logging"])


@pytest.fixture(scope="module")
def _torch_has_run() -> None:
    """Torch imports parts of itself with the first step, and SymPy with the first of some methods, which change warning filters and the
    environment."""
    importlib.import_module("sympy")
    tiny_runner(tiny_stream(training={"epochs": 1})).run()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _torch_has_run: None) -> Path:
    monkeypatch.chdir(tmp_path)
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    torch.manual_seed(5)
    return tmp_path


@pytest.mark.plugins
@pytest.mark.parametrize("method", [e.name for e in METHODS])
def test_a_run_leaves_the_process_as_it_was(method: str, folder: Path) -> None:
    """Over tasks, with checkpoints, or over a stream without tasks."""
    entry = next(e for e in METHODS if e.name == method)
    installed().resolve(entry)  # third-party libraries change warning filters when they are imported
    spec = entry.spec
    before = surroundings(folder)
    if set(spec.settings) - {"task-free"}:
        setting = "class-il" if "class-il" in spec.settings else "task-il"
        sessions = {"base_classes": 4, "classes_per_task": 1} if method == "teen" else {}
        stream = tiny_stream(training={"epochs": 2, "monitor": "validation-loss", "restore_best": True}, setting=setting, **sessions)
        catalogue_runner(stream, method, SETTINGS.get(method)).run(KeptCheckpoints())
    if "task-free" in spec.settings:
        catalogue_task_free_runner(tiny_task_free_stream(), method, SETTINGS.get(method)).run(KeptCheckpoints())
    assert_unchanged(before, surroundings(folder))


def test_so_does_one_that_draws_from_every_global_source(folder: Path) -> None:
    before = surroundings(folder)
    tiny_runner(tiny_stream(), BusyMethod).run(KeptCheckpoints())
    assert_unchanged(before, surroundings(folder))


def test_and_one_that_fails_in_the_middle(folder: Path) -> None:
    class Fails(BusyMethod):
        def after_task(self, view: Any) -> None:
            super().after_task(view)
            if view.position == 1:
                raise ZeroDivisionError

    before = surroundings(folder)
    with pytest.raises(ZeroDivisionError):
        tiny_runner(tiny_stream(), Fails).run(KeptCheckpoints())
    assert_unchanged(before, surroundings(folder))
