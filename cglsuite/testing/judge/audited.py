"""The far side of an audit: a process that holds a method and only the parts of its stream that it is sent.

Stream and oracle in this process look like those of an ordinary run, but hold decoys in place of hidden labels, different ones in every
run: a method that uses them in any way gives itself away.
"""

from __future__ import annotations

import gc
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pkgutil import resolve_name
from typing import Any

import torch
from torch import Tensor

import cglsuite.cells.records.record  # noqa: F401 - code that is watched
from cglsuite.base.errors import BudgetError, LeakError, NotApplicable, SpecError
from cglsuite.base.traces import Traces, random_kept
from cglsuite.cells import run as cells_run
from cglsuite.cells.process.code_census import unreplaced
from cglsuite.cells.process.numerical_state import RANDOM_STATES
from cglsuite.cells.run import numerics
from cglsuite.graphs import GraphSet, MessageGraph
from cglsuite.graphs.pack import Pack
from cglsuite.learning.method import Method
from cglsuite.learning.reproducibility.randomness import scope
from cglsuite.learning.task_free_runner import TaskFreeRunner
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.specs import LinkPredictionSpec
from cglsuite.streams import Batch, Oracle, QueryGroup, TaskFreeStream, TaskStream, TaskView
from cglsuite.streams.oracle import Score
from cglsuite.streams.stream import AskedItems, TaskFacts
from cglsuite.testing.findings import error_text
from cglsuite.testing.judge.reach import path_to
from cglsuite.testing.judge.watching import PROCESS_SETTINGS, Acts, Given
from cglsuite.testing.judge.wire import Near, send_plain
from cglsuite.testing.runs import FORBIDDEN, Subject, disturb_randomness

__all__ = ["serve", "warm_up"]


class _Far:
    """Sends requests to the near side, one at a time, and registers the replies."""

    def __init__(self, connection: Connection) -> None:
        self.near = Near(connection)
        self.given = Given()
        self.runner: Any = None
        self.draws: list[tuple[str, ...]] = []

    def ask(self, what: str, **details: Any) -> Any:
        send_plain(self.near.connection, {"what": what, **details})
        return self.near.receive()

    def oracle(self, request: dict[str, Any]) -> Oracle:
        """An oracle with decoy labels; scoring happens on the near side."""
        ranked = request["scenario"].level_spec
        k = {"hits_k": ranked.hits_k} if isinstance(ranked, LinkPredictionSpec) else {}
        oracle = Oracle.of(request["scenario"], request["n_outputs"], **k)
        oracle.grade = self._grade  # type: ignore[method-assign]
        return oracle

    def queries(self, oracle: Oracle, learnt: int) -> list[QueryGroup]:
        reply = self.ask("queries", learnt=learnt)
        for token, decoy in reply["decoys"].items():
            oracle.deposit(token, *decoy)
        groups: list[QueryGroup] = reply["groups"]
        for group in groups:
            self.given.note(group, learnt)
        return groups

    def _grade(
        self, answers: Mapping[str, Tensor], allowed: Mapping[str, Tensor] | None = None
    ) -> tuple[dict[int, Score], dict[int, Score]]:
        """Send predictions; then answer the near side's probes."""
        reply = self.ask("grade", answers=dict(answers))
        draws, self.draws = self.draws, []
        if reply["probes"]:
            self.ask("probed", outputs=[self._predicted(query, draws[reply["group"]]) for query in reply["probes"]])
            self.draws.clear()
        self.given.compare()
        n = self.runner.stream.n_outputs
        nothing = Score(performance=math.nan, hits=torch.zeros(n), counts=torch.zeros(n))
        return dict.fromkeys(reply["tested"], nothing), dict.fromkeys(reply["validated"], nothing)

    @torch.no_grad()
    def _predicted(self, query: Batch, draws: tuple[str, ...]) -> Tensor:
        """Outputs under the random draws of an earlier query."""
        self.runner.method.model.eval()
        with scope(self.runner.init_seed, "predict", draws[0]), self.runner._draws.predicting(*draws):
            outputs: Tensor = self.runner._predicted(query)
        return outputs.detach()


class _Tasks(TaskStream):
    """A stream of tasks whose views and queries come from the near side on request."""

    def __init__(self, far: _Far, request: dict[str, Any]) -> None:
        super().__init__()
        self.far, self.spec, self.data, self.data_hash = far, request["scenario"], request["decoy"], ""
        self.n_outputs, self.n_features, self.tasks = request["n_outputs"], request["n_features"], _facts(request)
        self.oracle = far.oracle(request)
        self.task_outputs = torch.zeros(len(self.tasks), self.n_outputs, dtype=torch.bool)  # rows are filled in as tasks arrive

    def make_view(self, position: int, stage: int) -> TaskView:
        if position == stage:
            self.far.given.look(stage, self.far.near.held)
        view: TaskView = self.far.ask("view", position=position, stage=stage)
        self.far.given.note(view, stage)
        self.task_outputs[position] = view.task_outputs
        return view

    def forget(self) -> None:
        self.far.given.compare()
        super().forget()

    def make_queries(self, learnt: int) -> list[QueryGroup]:
        return self.far.queries(self.oracle, learnt)

    def validation_token(self, position: int, stage: int | None = None) -> str:
        return str(self.far.ask("token", position=position, stage=position if stage is None else stage))

    def asked(self, token: str) -> AskedItems:
        raise LeakError("labels are in another process")

    def members(self, k: int, part: str) -> Tensor:
        raise LeakError("the items of a task are known only in another process")


class _Batches(TaskFreeStream):
    """The same for a task-free stream."""

    def __init__(self, far: _Far, request: dict[str, Any]) -> None:
        super().__init__()
        self.far, self.spec, self.data, self.data_hash = far, request["scenario"], request["decoy"], ""
        self.n_outputs, self.n_features, self.tasks = request["n_outputs"], request["n_features"], _facts(request)
        self.oracle = far.oracle(request)
        self.task_outputs = torch.zeros(len(self.tasks), self.n_outputs, dtype=torch.bool)
        self.evaluations, self.content = request["evaluations"], "audited"
        self.items = torch.zeros(self.evaluations[-1], 1, dtype=torch.int64)

    def make_batch(self, step: int) -> Batch:
        batch: Batch = self.far.ask("batch", step=step)
        self.far.given.note(batch, step)
        return batch

    def make_queries(self, learnt: int) -> list[QueryGroup]:
        self.far.given.compare()
        self.far.given.look(learnt, self.far.near.held)
        return self.far.queries(self.oracle, learnt)

    def everything(self) -> Batch:
        batch: Batch = self.far.ask("everything")
        return batch

    def shown(self, made: int) -> Tensor:
        raise LeakError("the content of the stream is known only in another process")

    def members(self, k: int, part: str) -> Tensor:
        raise LeakError("the items of a task are known only in another process")

    def delivered(self) -> list[list[int]]:
        return []

    def exposure(self) -> list[list[int]]:
        return []


def _facts(request: dict[str, Any]) -> list[TaskFacts]:
    return [TaskFacts(name="", classes=(), n_train=0, n_validation=0, n_test=0, content=content) for content in request["contents"]]


class _Noting:
    """Notes the names of a method's generators at each query, so that the query can be repeated with equal draws."""

    _draws: Any

    def _predicted(self, query: Batch) -> Tensor:
        self.stream.far.draws.append(self._draws._query)  # type: ignore[attr-defined]
        outputs: Tensor = super()._predicted(query)  # type: ignore[misc]
        return outputs


class _TaskRun(_Noting, TaskRunner):
    """Validation scores are computed on the near side, which has the labels."""

    stream: _Tasks

    def validation_loss(self, tokens: Sequence[str], batch: Batch, logits: Tensor) -> float:
        return float(self._asked_of("loss", tokens, batch, logits))

    def validation_cost(self, tokens: Sequence[str], batch: Batch, logits: Tensor) -> float:
        return float(self._asked_of("cost", tokens, batch, logits))

    def _asked_of(self, what: str, tokens: Sequence[str], batch: Batch, logits: Tensor) -> Any:
        return self.stream.far.ask(what, tokens=list(tokens), allowed=batch.allowed, logits=logits.detach())


class _TaskFreeRun(_Noting, TaskFreeRunner):
    """The same for a task-free stream, which has no monitor."""


class _Checkpoints:
    """Checkpoints are stored on the near side."""

    def __init__(self, far: _Far) -> None:
        self.far = far

    def load(self, prefix: str) -> dict[str, Any] | None:
        payload: dict[str, Any] | None = self.far.ask("load", prefix=prefix)
        return payload

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        self.far.ask("save", prefix=prefix, payload=payload)

    def drop(self, prefix: str) -> None:
        """The near side decides what to keep."""


def _run(far: _Far, request: dict[str, Any]) -> dict[str, Any]:
    cell, free = request["cell"], "evaluations" in request
    build, make_method = resolve_name(request["backbone"]), resolve_name(request["method"])
    sizes, hyperparameters = (request["n_features"], request["n_outputs"]), dict(cell.backbone_hyperparameters)
    cells_run._DATA.clear()
    cells_run._DATA["check",] = request["decoy"]
    kind: Any = _TaskFreeRun if free else _TaskRun
    with numerics(cell):
        runner = far.runner = kind(
            (_Batches if free else _Tasks)(far, request),
            make_method,
            lambda: build(*sizes, **hyperparameters),
            hyperparameters=dict(cell.method_hyperparameters),
            training=cell.scenario.training,
            init_seed=cell.seeds.init,
            identity=request["identity"],
            past_views=request["past_views"],
        )
        outcome = runner.run(_Checkpoints(far), keep=99)
    far.given.look(10**9 if free else len(request["contents"]), far.near.held)
    return {
        "what": "done",
        "states": [prints["state"] for prints in outcome.fingerprints],
        **_of_method(runner.method, request["past_views"]),
    }


def _of_method(method: Method, past_views: bool) -> dict[str, Any]:
    """Facts about a method after a run: what can be reached from it, and whether only the adapter makes its predictions."""
    items = (TaskView, Batch, MessageGraph, GraphSet, Pack)
    # The metered memory is where items may be held, whoever refers to it: a reservoir does.
    held = None if past_views else path_to(items, vars(method), around=(method.context, method.memory, method.problem))
    kind = type(method)
    return {
        "leads_to": path_to(FORBIDDEN, method) or "",
        "holds": held or "",
        "plain": kind.predict is Method.predict and kind.forward is Method.forward and "predict" not in vars(method),
    }


def _answer(far: _Far, request: dict[str, Any], acts: Acts) -> dict[str, Any]:
    """Run once; return the outcome with all notes."""
    disturb_randomness()
    random_states, settings = Traces(RANDOM_STATES), Traces(PROCESS_SETTINGS)
    with unreplaced() as replaced, random_kept():
        try:
            answer = _run(far, request)
        except BaseException as error:  # noqa: BLE001 - reported to the near side, which decides
            answer = {
                "what": "failed",
                "reason": error_text(error),
                "ended": isinstance(error, (SystemExit, KeyboardInterrupt)),
                "refused": isinstance(error, (BudgetError, SpecError)),
                "not_applicable": isinstance(error, NotApplicable),
            }
    return answer | {
        "replaced": replaced,
        "acts": acts.noted(),
        "changed": list(far.given.changed),
        "kept": list(far.given.kept),
        "random": not random_states.changes(),
        "settings": settings.changes(),
    }


def _described(factory: str) -> dict[str, Any]:
    return {"doc": resolve_name(factory).__doc__ or ""}


def _on_devices(request: dict[str, Any]) -> dict[str, Any]:
    """The losses of three steps without dropout by device, on public data, since only losses are compared."""
    subject = Subject(**request)
    losses = {}
    for device in ("cpu", "cuda"):
        losses[device] = subject.run(subject.cell(device=device, training__epochs=3)).curves[0]["loss"][:3]
    return losses


def _attempt(action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"what": "answered", **action()}
    except BaseException as error:  # noqa: BLE001 - reported to the near side, which decides
        return {"what": "failed", "reason": error_text(error)}


def warm_up() -> None:
    """Trigger the lazy imports of torch's first optimiser step, which take a second."""
    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.zeros(1)
    for optimizer in (torch.optim.Adam([weight], fused=True), torch.optim.SGD([weight])):
        optimizer.zero_grad()
        weight.grad = torch.zeros(1)
        optimizer.step()


def serve(connection: Connection) -> None:
    """Serve requests on a connection, one after another, until it is closed."""
    gc.freeze()
    far = _Far(connection)
    common = far.near.receive()
    sys.path[:] = common["path"]
    acts = Acts(os.getcwd(), common["loaders"], common["data"])
    tempfile.gettempdir()  # probes for a writable folder by writing there; torch calls it when the first optimiser is created
    sys.addaudithook(acts)
    while (request := far.near.receive()) is not None:
        if "describe" in request:
            send_plain(connection, _attempt(partial(_described, request["describe"])))
            continue
        if "devices" in request:
            send_plain(connection, _attempt(partial(_on_devices, request["devices"])))
            continue
        far.given, far.runner = Given(), None
        send_plain(connection, _answer(far, request, acts))
