"""Training and evaluation mode: what batch norm and dropout do at every step, in every epoch, under every monitor, for every method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from installed import installed
from tiny_streams import tiny_data, tiny_graphs, tiny_runner, tiny_stream
from tiny_task_free import task_free_runner, tiny_task_free_stream
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.module import register_module_forward_pre_hook

from cglsuite import Method
from cglsuite.streams import Batch, TaskView

CATALOGUE = installed()
METHODS: list[Any] = list(CATALOGUE.entries("method"))
UNTRAINED = {"frozen-ncm", "task-guesser", "analytic-ridge", "simple-cil", "teen", "pdgnns-tem"}
"""Methods that use their model in no step, or in those of the first task alone."""
FIXED_NORMS = {"piggyback"}
"""Methods whose norms are in evaluation mode in all tasks but the first."""
FIXED_MODELS = {"tpp"}
"""Methods that train what lies around a frozen network, which is in evaluation mode."""
SHORTER = {"joint-budgeted": (3, 2, 1)}
"""Epochs by task of methods that share a task's epochs out; 3 for all others."""
UNMONITORED = {"gdumb"}
"""Methods that use nothing but their own loss to schedule a task."""
ASKING = {"puma"}
"""Methods that ask their model between the rounds of a task, outside of steps, as a monitor does."""
ON_TASKS = [e.name for e in METHODS if set(e.spec.settings) - {"task-free"} and e.name not in UNTRAINED]
ON_TASK_FREE = [e.name for e in METHODS if "task-free" in e.spec.settings and e.name not in UNTRAINED]
MONITORS: dict[str, dict[str, Any]] = {
    "none": {},
    "validation-loss": {"restore_best": True},
    "validation-performance": {"plateau_patience": 9},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "continual-gnn": {"memory": 12, "replayed": 6},
    "gem": {"per_task": 5},
    **{name: {"per_class": 2} for name in ("er-gnn", "ssrm")},
    "icarl": {"memory": 12},
    "delome": {"per_class": 3, "draws": 4, "hidden": 8},
    "puma": {"per_task": 6, "encoders": 2, "steps": 2, "width": 16},
    "joint": {"offline_epochs": 3, "offline_batch": 16},
    **{name: {"memory": 24} for name in ("er", "a-gem", "der++", "er-ace", "gss", "ssm", "sem", "dmsg")},
    "mas-star": {"hard_buffer": 8, "mean_threshold": 10.0, "variance_threshold": 10.0},
}


class Modes:
    """Notes in which mode the modules of a method's model are, by what the run is doing: a list entry per use."""

    def __init__(self) -> None:
        self.doing: list[str] = []
        self.seen: dict[str, list[bool]] = defaultdict(list)
        self.model: Any = None

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        self.doing.append(what)
        try:
            yield
        finally:
            self.doing.pop()

    def __call__(self, module: nn.Module, _: Any) -> None:
        if self.doing and any(module is m for m in self.model.modules()):
            self.seen[self.doing[-1]].append(module.training)

    def watched(self, cls: type[Method]) -> type[Method]:
        """The method, telling what it is asked for."""
        modes = self

        class Watched(cls):  # type: ignore[misc, valid-type]
            epoch, steps, position = -1, 0, -1

            def before_task(self, view: TaskView) -> None:
                modes.model, self.position = self.model, view.position
                with modes.during("before a task"):
                    super().before_task(view)

            def before_epoch(self, epoch: int) -> None:
                modes.model, self.epoch = self.model, epoch
                with modes.during("before an epoch"):
                    super().before_epoch(epoch)

            def loss(self, batch: Batch) -> Tensor:
                modes.model, self.steps = self.model, self.steps + 1
                with modes.during(f"step {self.steps}, task {self.position}, epoch {self.epoch}"):
                    out: Tensor = super().loss(batch)
                    return out

            def forward(self, batch: Batch) -> Tensor:
                modes.model = self.model
                with modes.during("the monitor") if not modes.doing else modes.during(modes.doing[-1]):
                    out: Tensor = super().forward(batch)
                    return out

            def before_step(self) -> None:
                with modes.during("before a step"):
                    super().before_step()

            def after_task(self, view: TaskView) -> None:
                with modes.during("after a task"):
                    super().after_task(view)

            def after_batch(self, batch: Batch) -> None:
                with modes.during("after a batch"):
                    super().after_batch(batch)

            def predict(self, query: Batch) -> Tensor:
                modes.model = self.model
                with modes.during("a query"):
                    out: Tensor = super().predict(query)
                    return out

        Watched.__name__ = cls.__name__
        return Watched


@pytest.fixture
def modes() -> Iterator[Modes]:
    made = Modes()
    hook = register_module_forward_pre_hook(made)
    yield made
    hook.remove()


def steps_of(modes: Modes) -> dict[str, list[bool]]:
    return {name: used for name, used in modes.seen.items() if name.startswith("step ")}


@pytest.mark.parametrize(("graphs", "monitor"), [*((False, monitor) for monitor in MONITORS), (True, "validation-loss")])
@pytest.mark.parametrize("method", ON_TASKS)
def test_every_step_trains_and_every_question_evaluates(method: str, graphs: bool, monitor: str, modes: Modes) -> None:
    """Three epochs of three tasks: each step uses the model in training mode, the one after an evaluation included."""
    spec: Any = CATALOGUE.get("method", method).spec
    if graphs and "GC" not in spec.levels:
        pytest.skip(f"{method} is not for graphs")
    training = {"epochs": 3, "monitor": monitor} | MONITORS[monitor]
    stream = tiny_stream(tiny_graphs() if graphs else tiny_data(), training=training)
    defaults = {h.name: h.default for h in spec.hyperparameters}
    watched = modes.watched(CATALOGUE.resolve(CATALOGUE.get("method", method)))
    tiny_runner(stream, watched, defaults | SETTINGS.get(method, {}), past_views="past-views" in spec.needs).run()
    steps = steps_of(modes)
    epochs = SHORTER.get(method, (3, 3, 3))
    assert len(steps) >= sum(epochs)
    assert {f"task {k}, epoch {e}" for k in range(3) for e in range(epochs[k])} <= {name.partition(", ")[2] for name in steps}
    evaluating = {name for name, used in steps.items() if not all(used)}
    fixed = {name for name in steps if method in FIXED_MODELS or (method in FIXED_NORMS and "task 0" not in name)}
    assert evaluating == fixed, "a step used the model in evaluation mode"
    assert modes.seen["a query"]
    assert not any(modes.seen["a query"])
    assert bool(modes.seen["the monitor"]) == (method in ASKING or (monitor != "none" and method not in UNMONITORED))
    assert not any(modes.seen["the monitor"])
    assert not any(modes.seen["after a task"])
    assert bool(modes.seen["before a step"]) == (method == "gem")
    assert all(modes.seen["before a step"]), "memories are read as the task's items are"


@pytest.mark.parametrize("graphs", [False, True], ids=["nodes", "graphs"])
@pytest.mark.parametrize("method", ON_TASK_FREE)
def test_so_it_is_on_streams_without_tasks(method: str, graphs: bool, modes: Modes) -> None:
    """Evaluations lie between the steps; what a method asks its model after a batch leaves it in training mode."""
    spec: Any = CATALOGUE.get("method", method).spec
    stream = tiny_task_free_stream(tiny_graphs(per_class=20) if graphs else None, training={"epochs": 2})
    defaults = {h.name: h.default for h in spec.hyperparameters}
    watched = modes.watched(CATALOGUE.resolve(CATALOGUE.get("method", method)))
    task_free_runner(stream, watched, defaults | SETTINGS.get(method, {}), past_views="past-views" in spec.needs).run()
    steps = steps_of(modes)
    assert len(steps) >= (3 if method == "joint" else 2 * stream.n_steps)
    evaluating = {name for name, used in steps.items() if not all(used)}
    assert not evaluating, "a step used the model in evaluation mode"
    assert modes.seen["a query"]
    assert not any(modes.seen["a query"])


@pytest.mark.parametrize("policy", ["shared", "frozen", "per-task"])
@pytest.mark.parametrize("monitor", MONITORS)
def test_statistics_are_frozen_at_every_epoch_of_the_later_tasks(monitor: str, policy: str, modes: Modes) -> None:
    """The rest of the model trains throughout; batch norm does in all steps but, where its statistics are frozen, those after task 1."""
    norms: dict[int, set[bool]] = defaultdict(set)
    others: set[bool] = set()

    def note(module: nn.Module, _: Any) -> None:
        if torch.is_grad_enabled():
            of_norms = norms[runner.method.position]  # type: ignore[attr-defined]
            (of_norms if isinstance(module, _BatchNorm) else others).add(module.training)

    training = {"epochs": 3, "monitor": monitor, "norm_statistics": policy} | MONITORS[monitor]
    runner = tiny_runner(tiny_stream(training=training), modes.watched(Method))
    hook = register_module_forward_pre_hook(note)
    try:
        runner.run()
    finally:
        hook.remove()
    later = {policy != "frozen"}
    assert norms == {0: {True}, 1: later, 2: later}
    assert others == {True}
