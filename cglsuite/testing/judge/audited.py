"""The method's side of an audit: a process that contains the method and only those parts of its stream that the judge has sent.

The stream and oracle in this process look like those of an ordinary run, but contain decoys instead of hidden labels. Decoys differ between
runs, so a method that uses them is detected.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import math
import os
import resource
import sys
import tempfile
import types
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pkgutil import resolve_name
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cglsuite.base.errors import BudgetError, LeakError, NotApplicable, SpecError
from cglsuite.base.traces import STRICT, THREADS, Probe, Traces, random_state_restored
from cglsuite.cells import run as cells_run
from cglsuite.cells.process import NUMERICAL, RANDOM_STATES, replacements_undone
from cglsuite.cells.run import numerics
from cglsuite.graphs import GraphSet, MessageGraph, SparseMatrix
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
from cglsuite.testing.judge.session import Channel, send_plain
from cglsuite.testing.streams import FORBIDDEN, Subject, disturb_randomness


class _JudgeLink:
    """Sends requests to the judge's side one at a time and registers the replies."""

    def __init__(self, connection: Connection) -> None:
        self.near = Channel(connection)
        self.inputs = MethodInputs()
        self.runner: Any = None
        self.draws: list[tuple[str, ...]] = []

    def ask(self, request: str, **details: Any) -> Any:
        send_plain(self.near.connection, {"what": request, **details})
        return self.near.receive()

    def oracle(self, request: dict[str, Any]) -> Oracle:
        """Return an oracle with decoy labels, since scores are computed on the judge's side."""
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
            self.inputs.note(group, learnt)
        return groups

    def _grade(
        self, answers: Mapping[str, Tensor], allowed: Mapping[str, Tensor] | None = None
    ) -> tuple[dict[int, Score], dict[int, Score]]:
        """Send predictions, then answer the judge's probe queries."""
        reply = self.ask("grade", answers=dict(answers))
        draws, self.draws = self.draws, []
        if reply["probes"]:
            self.ask("probed", outputs=[self._predicted(query, draws[reply["group"]]) for query in reply["probes"]])
            self.draws.clear()
        self.inputs.compare()
        n = self.runner.stream.n_outputs
        nothing = Score(performance=math.nan, hits=torch.zeros(n), counts=torch.zeros(n))
        return dict.fromkeys(reply["tested"], nothing), dict.fromkeys(reply["validated"], nothing)

    @torch.no_grad()
    def _predicted(self, query: Batch, draws: tuple[str, ...]) -> Tensor:
        """Compute predictions with the same random draws as an earlier query."""
        self.runner.method.model.eval()
        with scope(self.runner.init_seed, "predict", draws[0]), self.runner._draws.predicting(*draws):
            outputs: Tensor = self.runner._predicted(query)
        return outputs.detach()


class _RemoteTaskStream(TaskStream):
    """A stream of tasks that requests its views and queries from the judge process."""

    def __init__(self, far: _JudgeLink, request: dict[str, Any]) -> None:
        super().__init__()
        self.far, self.spec, self.data, self.data_hash = far, request["scenario"], request["decoy"], ""
        self.n_outputs, self.n_features, self.tasks = request["n_outputs"], request["n_features"], _facts(request)
        self.oracle = far.oracle(request)
        self.task_outputs = torch.zeros(len(self.tasks), self.n_outputs, dtype=torch.bool)  # rows are filled in as tasks arrive

    def make_view(self, position: int, stage: int) -> TaskView:
        if position == stage:
            self.far.inputs.record_lasting(stage, self.far.near.held)
        view: TaskView = self.far.ask("view", position=position, stage=stage)
        self.far.inputs.note(view, stage)
        self.task_outputs[position] = view.task_outputs
        return view

    def forget(self) -> None:
        self.far.inputs.compare()
        super().forget()

    def make_queries(self, learnt: int) -> list[QueryGroup]:
        return self.far.queries(self.oracle, learnt)

    def validation_token(self, position: int, stage: int | None = None) -> str:
        return str(self.far.ask("token", position=position, stage=position if stage is None else stage))

    def asked(self, token: str) -> AskedItems:
        raise LeakError("labels are hidden from this process; a method must not read them")

    def members(self, k: int, part: str) -> Tensor:
        raise LeakError("the items of a task are hidden from this process; use the view that the method receives")


class _RemoteTaskFreeStream(TaskFreeStream):
    """A task-free stream that requests its batches and queries from the judge process."""

    def __init__(self, far: _JudgeLink, request: dict[str, Any]) -> None:
        super().__init__()
        self.far, self.spec, self.data, self.data_hash = far, request["scenario"], request["decoy"], ""
        self.n_outputs, self.n_features, self.tasks = request["n_outputs"], request["n_features"], _facts(request)
        self.oracle = far.oracle(request)
        self.task_outputs = torch.zeros(len(self.tasks), self.n_outputs, dtype=torch.bool)
        self.evaluations, self.content = request["evaluations"], "audited"
        self.items = torch.zeros(self.evaluations[-1], 1, dtype=torch.int64)

    def make_batch(self, step: int) -> Batch:
        batch: Batch = self.far.ask("batch", step=step)
        self.far.inputs.note(batch, step)
        return batch

    def make_queries(self, learnt: int) -> list[QueryGroup]:
        self.far.inputs.compare()
        self.far.inputs.record_lasting(learnt, self.far.near.held)
        return self.far.queries(self.oracle, learnt)

    def everything(self) -> Batch:
        batch: Batch = self.far.ask("everything")
        return batch

    def shown(self, count: int) -> Tensor:
        raise LeakError("the content of the stream is hidden from this process; use the view that the method receives")

    def members(self, k: int, part: str) -> Tensor:
        raise LeakError("the items of a task are hidden from this process; use the view that the method receives")

    def delivered(self) -> list[list[int]]:
        return []

    def exposure(self) -> list[list[int]]:
        return []


def _facts(request: dict[str, Any]) -> list[TaskFacts]:
    return [TaskFacts(name="", classes=(), n_train=0, n_validation=0, n_test=0, content=content) for content in request["contents"]]


class _DrawRecorder:
    """Records the names of the generators that a method uses in each query, so that the query can be repeated with the same draws."""

    _draws: Any

    def _predicted(self, query: Batch) -> Tensor:
        self.stream.far.draws.append(self._draws._query)  # type: ignore[attr-defined]
        outputs: Tensor = super()._predicted(query)  # type: ignore[misc]
        return outputs


class _TaskRun(_DrawRecorder, TaskRunner):
    """A run over tasks with validation scores computed on the judge's side, which has the labels."""

    stream: _RemoteTaskStream

    def validation_loss(self, tokens: Sequence[str], batch: Batch, logits: Tensor) -> float:
        return float(self._request_about("loss", tokens, batch, logits))

    def validation_cost(self, tokens: Sequence[str], batch: Batch, logits: Tensor) -> float:
        return float(self._request_about("cost", tokens, batch, logits))

    def _request_about(self, request: str, tokens: Sequence[str], batch: Batch, logits: Tensor) -> Any:
        return self.stream.far.ask(request, tokens=list(tokens), allowed=batch.allowed, logits=logits.detach())


class _TaskFreeRun(_DrawRecorder, TaskFreeRunner):
    """A run over a task-free stream, which has no monitor."""


class _Checkpoints:
    """Checkpoints that are stored on the judge's side."""

    def __init__(self, far: _JudgeLink) -> None:
        self.far = far

    def load(self, prefix: str) -> dict[str, Any] | None:
        payload: dict[str, Any] | None = self.far.ask("load", prefix=prefix)
        return payload

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        self.far.ask("save", prefix=prefix, payload=payload)

    def drop(self, prefix: str) -> None:
        """Do nothing. The judge's side decides which checkpoints to keep."""


def _run(far: _JudgeLink, request: dict[str, Any]) -> dict[str, Any]:
    cell, free = request["cell"], "evaluations" in request
    build, make_method = resolve_name(request["backbone"]), resolve_name(request["method"])
    sizes, hyperparameters = (request["n_features"], request["n_outputs"]), cell.backbone_arguments
    cells_run._DATA.clear()
    cells_run._DATA["check",] = request["decoy"]
    kind: Any = _TaskFreeRun if free else _TaskRun
    with numerics(cell):
        runner = far.runner = kind(
            (_RemoteTaskFreeStream if free else _RemoteTaskStream)(far, request),
            make_method,
            lambda: build(*sizes, **hyperparameters),
            hyperparameters=dict(cell.method_hyperparameters),
            training=cell.scenario.training,
            init_seed=cell.seeds.init,
            identity=request["identity"],
            past_views=request["past_views"],
        )
        outcome = runner.run(_Checkpoints(far), keep=99)
    far.inputs.record_lasting(10**9 if free else len(request["contents"]), far.near.held)
    return {
        "what": "done",
        "states": [prints["state"] for prints in outcome.fingerprints],
        **_of_method(runner.method, request["past_views"]),
    }


def _of_method(method: Method, past_views: bool) -> dict[str, Any]:
    """Return facts about a method after a run: the objects reachable from it, and whether all predictions come from the adapter."""
    items = (TaskView, Batch, MessageGraph, GraphSet, Pack)
    # Items may be stored in the metered memory, whichever object refers to it, such as a reservoir.
    held = None if past_views else path_to(items, vars(method), around=(method.context, method.memory, method.problem))
    kind = type(method)
    return {
        "leads_to": path_to(FORBIDDEN, method) or "",
        "holds": held or "",
        "plain": kind.predict is Method.predict and kind.forward is Method.forward and "predict" not in vars(method),
    }


def _answer(far: _JudgeLink, request: dict[str, Any], acts: Acts) -> dict[str, Any]:
    """Run the method once and return the outcome with all observations."""
    disturb_randomness()
    written = _bytes_written(far.near.connection)
    random_states, settings = Traces(RANDOM_STATES), Traces(PROCESS_SETTINGS)
    with replacements_undone() as replaced, random_state_restored():
        try:
            answer = _run(far, request)
        except BaseException as error:  # noqa: BLE001 - reported to the judge's side, which decides
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
        "written": _bytes_written(far.near.connection) - written,
        "changed": list(far.inputs.changed),
        "kept": list(far.inputs.unreleased),
        "random": not random_states.changes(),
        "settings": settings.changes(),
    }


def _described(factory: str) -> dict[str, Any]:
    return {"doc": resolve_name(factory).__doc__ or ""}


def _on_devices(request: dict[str, Any]) -> dict[str, Any]:
    """Return the losses of three training steps without dropout on each device. The data are not hidden, since only losses are compared."""
    subject = Subject(**request)
    losses = {}
    for device in ("cpu", "cuda"):
        losses[device] = subject.run(subject.cell(device=device, training__epochs=3)).curves[0]["loss"][:3]
    return losses


def _attempt(action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"what": "answered", **action()}
    except BaseException as error:  # noqa: BLE001 - reported to the judge's side, which decides
        return {"what": "failed", "reason": error_text(error)}


def warm_up() -> None:
    """Trigger the lazy imports of torch's first optimiser step, which take about a second."""
    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.zeros(1)
    for optimizer in (torch.optim.Adam([weight], fused=True), torch.optim.SGD([weight])):
        optimizer.zero_grad()
        weight.grad = torch.zeros(1)
        optimizer.step()


class _CountingConnection(Connection):
    """A connection that counts the bytes it sends."""

    sent = 0

    def send_bytes(self, buf: Any, offset: int = 0, size: int | None = None) -> None:
        """Send bytes with the connection's framing: the length in 4 bytes, then the content."""
        super().send_bytes(buf, offset, size)
        self.sent += 4 + (len(buf) - offset if size is None else size)


def _bytes_written(connection: Connection) -> int:
    """Return the number of bytes that this process has written to files, excluding its connection; 0 if the system does not report it."""
    with suppress(OSError, ValueError), open("/proc/self/io") as lines:
        return int(dict(line.split(": ") for line in lines)["wchar"]) - getattr(connection, "sent", 0)
    return 0


def serve(descriptor: int) -> None:
    """Serve requests on a connection one by one until it is closed."""
    connection = _CountingConnection(descriptor)
    gc.freeze()
    far = _JudgeLink(connection)
    common = far.near.receive()
    sys.path[:] = common["path"]
    acts = Acts(os.getcwd(), common["loaders"], common["data"])
    tempfile.gettempdir()  # tests for a writable folder by writing to it; torch calls this when the first optimiser is created
    sys.addaudithook(acts)
    while (request := far.near.receive()) is not None:
        if "describe" in request:
            send_plain(connection, _attempt(partial(_described, request["describe"])))
            continue
        if "devices" in request:
            send_plain(connection, _attempt(partial(_on_devices, request["devices"])))
            continue
        far.inputs, far.runner = MethodInputs(), None
        send_plain(connection, _answer(far, request, acts))


# Observations of a method from within its process: forbidden actions, replaced code, retained views, modified inputs.
# They explain failures. The judge's measurements decide, since a method can tamper with its own process.

PROCESS_SETTINGS: tuple[Probe, ...] = tuple(probe for probe in (*STRICT, *NUMERICAL, THREADS) if probe not in RANDOM_STATES)
"""Settings that a method shares with all code in its process. Random states are compared separately."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_ACTS = {
    "socket.connect": "connects to a network address",
    "socket.bind": "opens a network address",
    "socket.sendto": "sends to a network address",
    "socket.sendmsg": "sends to a network address",
    "socket.getaddrinfo": "looks up a network address",
    "socket.gethostbyname": "looks up a network address",
    "socket.gethostbyaddr": "looks up a network address",
    "socket.getnameinfo": "looks up a network address",
    "syslog.syslog": "writes to the system's log",
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.spawn": "starts a process",
    "pty.spawn": "starts a process",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "os.kill": "sends a signal",
    "os.killpg": "sends a signal",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.rmdir": "removes a folder",
    "shutil.rmtree": "removes a folder",
}
_ACTS_ON_PATHS = {
    "os.chflags": ("changes the flags of", 1),
    "os.chmod": ("changes the mode of", 1),
    "os.chown": ("changes the owner of", 1),
    "os.link": ("links", 2),
    "os.removexattr": ("changes the attributes of", 1),
    "os.setxattr": ("changes the attributes of", 1),
    "os.symlink": ("links", 2),
    "os.truncate": ("truncates", 1),
    "os.utime": ("changes the times of", 1),
    "sqlite3.connect": ("opens the database", 1),
}
"""Maps each audit event to the action on the paths in its first arguments. These actions are allowed in the method's own folder.

Audit events in none of these tables only read, or are followed by an event in a table. ``os.mkdir`` is not in a table,
since libraries raise it for existing folders; instead, folders are compared from outside.
"""
_FOREIGN = {
    **dict.fromkeys(("system", "popen", "fork", "vfork", "clone", "posix_spawn", "posix_spawnp"), "starts a process"),
    **dict.fromkeys(("execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "fexecve"), "starts a process"),
    **dict.fromkeys(("socket", "connect", "bind", "send", "sendto", "sendmsg", "getaddrinfo"), "uses the network"),
    **dict.fromkeys(("open", "open64", "openat", "creat", "fopen", "fopen64", "freopen", "mkstemp", "syscall"), "opens files"),
    **dict.fromkeys(("unlink", "unlinkat", "rename", "renameat", "truncate", "link", "symlink", "mkfifo", "mknod"), "changes files"),
    **dict.fromkeys(("shmget", "shmat", "shm_open", "msgget", "msgsnd", "semget", "mq_open"), "uses memory that processes share"),
}
"""Functions of the C library whose effects no audit event reports. Libraries may look up others, such as those that set threads."""


class Acts:
    """An audit hook that records file writes, reads of raw data, imports of dataset loaders, and the events and calls listed above.

    Args:
        folder: the only folder that the method may write to.
        loaders: the modules of dataset loaders. data: the folders of raw data.
    """

    def __init__(self, folder: str, loaders: Iterable[str], data: Iterable[str]) -> None:
        self.folder = os.path.realpath(folder)
        self.own_paths = ("/proc/self/", f"/proc/{os.getpid()}/", "/proc/cpuinfo", "/proc/meminfo")
        self.data = tuple(os.path.realpath(folder) + os.sep for folder in data)
        self.loaders = frozenset(loaders) - set(sys.modules)
        places = {name: name.replace(".", "/") for name in self.loaders}
        self._files = {name: (f"/{p}.py", f"/{os.path.dirname(p)}/__pycache__/{os.path.basename(p)}.") for name, p in places.items()}
        self.seen: dict[str, None] = {}
        self._ended = _ended_children()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._opened(*arguments)
        elif event == "import" and arguments[0] in self.loaders:
            self._note_loader(arguments[0])
        elif event in _ACTS:
            self.seen[f"{_ACTS[event]}: {arguments[0]!r:.200}" if arguments else _ACTS[event]] = None
        elif event in _ACTS_ON_PATHS:
            self._done_to(event, arguments)
        elif event == "ctypes.dlsym" and arguments[1] in _FOREIGN and _is_libc(arguments[0]):
            self.seen[f"{_FOREIGN[arguments[1]]} by ctypes: {arguments[1]}"] = None

    def _done_to(self, event: str, arguments: tuple[Any, ...]) -> None:
        act, number = _ACTS_ON_PATHS[event]
        for path in arguments[:number]:
            if isinstance(path, int) or path in ("", b"", ":memory:", b":memory:"):  # an open file was recorded when it was opened
                continue
            with suppress(OSError, ValueError, TypeError):
                where = os.path.abspath(os.fsdecode(path))
                if not (where + os.sep).startswith(self.folder + os.sep):
                    self.seen[f"{act} {where}"] = None

    def _note_loader(self, name: str) -> None:
        self.seen[f"imports a dataset's loader: {name}"] = None

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        with suppress(OSError, ValueError, TypeError):
            where = os.path.abspath(os.fsdecode(path))
            if where == os.devnull or where.startswith(self.folder):
                return
            if isinstance(flags, int) and flags & _WRITES:
                self.seen[f"writes the file {where}"] = None
            elif where.startswith(self.data):
                self.seen[f"reads raw data: {where}"] = None
            elif where.startswith("/proc/") and not where.startswith(self.own_paths):
                self.seen[f"reads {where}"] = None
            else:
                # importlib.import_module raises no audit event, but the module's file is opened.
                for name, (source, compiled) in self._files.items():
                    if where.endswith(source) or compiled in where:
                        self._note_loader(name)

    def noted(self) -> list[str]:
        """Return all observations, including loaders imported without opening a file, and processes started without an audit event."""
        if _ended_children() != self._ended and "starts a process" not in "".join(self.seen):
            self.seen["starts a process, which has ended"] = None
        for name in sorted(self.loaders & set(sys.modules)):
            self._note_loader(name)
        return list(self.seen)


def _is_libc(library: Any) -> bool:
    """Return whether a library loaded with ctypes is the C library or the whole process."""
    name = getattr(library, "_name", None)
    return name is None or (isinstance(name, str) and os.path.basename(name).startswith("libc."))


def _ended_children() -> tuple[float, ...]:
    """Return the resource usage of all ended children of this process. It changes whenever a child ends."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime, used.ru_stime, used.ru_minflt, used.ru_maxrss


def _tensors(batch: Batch) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a batch, without derived data."""
    graph = batch.graph
    named: dict[str, Any] = {"ids": batch.ids, "y": batch.y, "allowed": batch.allowed, "tasks": batch.tasks}
    if graph is not None:
        named["features"] = graph.features
        named |= graph.payload() if isinstance(graph, GraphSet) else {"edges": graph.edge_index}
    for name, value in named.items():
        if isinstance(value, SparseMatrix):
            yield name, value.values
        elif isinstance(value, torch.Tensor) and value.layout == torch.strided:
            yield name, value.detach()


def _batches(value: Any) -> list[Batch]:
    if isinstance(value, Batch):
        return [value]
    if isinstance(value, TaskView):
        return [value.train, value.validation]
    return [value.query] if isinstance(value, QueryGroup) else []


class MethodInputs:
    """Tracks whether a method's inputs stay unchanged and are released."""

    def __init__(self) -> None:
        self._content: list[tuple[str, torch.Tensor, int]] = []
        self._alive: list[tuple[int, str, weakref.ref[Any]]] = []
        self.changed: dict[str, None] = {}
        self.unreleased: dict[str, None] = {}

    def note(self, value: Any, stage: int) -> None:
        """Register a view, query group or batch passed to the method in ``stage``."""
        holders = [value, *_batches(value)]
        for batch in _batches(value):
            self._content += [(name, tensor, _checksum(tensor)) for name, tensor in _tensors(batch)]
        if not isinstance(value, QueryGroup):  # queries are released after prediction; graphs are shared
            self._alive += [(stage, type(holder).__name__, weakref.ref(holder)) for holder in holders]
        self._alive += [(stage + 1, type(b.graph).__name__, weakref.ref(b.graph)) for b in _batches(value) if _weak(b.graph)]

    def compare(self) -> None:
        """Record which tensors have changed since they were passed to the method, and stop tracking all of them."""
        for name, tensor, checksum in self._content:
            if _checksum(tensor) != checksum:
                self.changed[name] = None
        self._content.clear()

    def record_lasting(self, stage: int, lasting: Iterable[Any]) -> None:
        """Record which objects of earlier stages are still alive. ``lasting`` are the graphs that the stream still uses."""
        gc.collect()
        shown = {id(graph) for graph in lasting}
        for noted_stage, what, reference in self._alive:
            if noted_stage < stage and (held := reference()) is not None and id(held) not in shown:
                self.unreleased[what] = None
        self._alive = [entry for entry in self._alive if entry[2]() is not None]


def _weak(graph: Any) -> bool:
    return isinstance(graph, MessageGraph | GraphSet)


def _checksum(tensor: torch.Tensor) -> int:
    return zlib.crc32(tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy().data) if tensor.numel() else 0


# All objects reachable from an object without passing through a module, which a method could therefore read.
# The walk follows attributes, slots, dictionaries, containers, closures, defaults, bound methods, weak references, and the garbage
# collector's references; for tensors and arrays also the base of views and the autograd graph. It stops at modules and classes and skips
# the globals of functions, since everything in the process can be reached from a module.

_STOP = (types.ModuleType, type, types.CodeType, str, bytes, int, float, complex, bool, type(None), torch.device)


def _neighbours(obj: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, types.FunctionType):
        for name, cell in zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=True):
            if cell != types.CellType():
                yield f".<closure {name}>", cell.cell_contents
        yield ".__defaults__", obj.__defaults__
        yield ".__kwdefaults__", obj.__kwdefaults__
        yield ".__dict__", vars(obj)
        return
    if isinstance(obj, dict):
        for key, value in list(obj.items()):
            yield f"[{key!r:.40}]", value
            yield ".<key>", key
    elif isinstance(obj, (list, tuple, set, frozenset)):
        for i, value in enumerate(obj):
            yield f"[{i}]", value
    for name in {*getattr(obj, "__dict__", {}), *_slots(obj)}:
        value = inspect.getattr_static(obj, name, None)
        yield f".{name}", getattr(obj, name, None) if isinstance(value, (types.MemberDescriptorType, property)) else value
    if isinstance(obj, Tensor):
        yield "._base", obj._base
        yield ".grad_fn", obj.grad_fn
    if isinstance(obj, np.ndarray):
        yield ".base", obj.base
    if isinstance(obj, weakref.ref):
        yield "()", obj()
    if hasattr(type(obj), "next_functions"):
        yield from _autograd_references(obj)
    for value in gc.get_referents(obj):
        yield f".<{type(value).__name__}>", value


def _autograd_references(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the references of an autograd node: its inputs, the leaf it accumulates into, and tensors saved for the backward pass."""
    for name in dir(node):
        if name in ("next_functions", "variable", "saved_tensors") or name.startswith("_saved_"):
            with contextlib.suppress(RuntimeError):  # already freed
                yield f".{name}", getattr(node, name)


def _slots(obj: Any) -> Iterator[str]:
    for cls in type(obj).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                yield f"_{cls.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name


def reachable(*roots: Any, around: Sequence[Any] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every object reachable from the roots once, with a path to it. Paths do not pass through objects in ``around``."""
    todo: list[tuple[str, Any]] = [(f"<{type(r).__name__}>", r) for r in roots]
    seen: dict[int, Any] = {id(obj): obj for obj in around}  # objects are kept alive so that ids are not reused
    while todo:
        path, obj = todo.pop()
        if id(obj) in seen or isinstance(obj, _STOP):
            continue
        seen[id(obj)] = obj
        yield path, obj
        todo.extend([(path + step, value) for step, value in _neighbours(obj)][::-1])  # the most informative step is taken first


def path_to(wanted: type | tuple[type, ...], *roots: Any, around: Sequence[Any] = ()) -> str | None:
    """Return a path from the roots to an object of type ``wanted`` that avoids the objects in ``around``, or ``None``."""
    return next((path for path, obj in reachable(*roots, around=around) if isinstance(obj, wanted)), None)


def whole_storage(tensor: Tensor) -> Tensor:
    """Return all values in a dense tensor's storage, which are accessible through ``_base`` or ``set_``, in the tensor's dtype."""
    storage = tensor.detach().untyped_storage()
    return torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (storage.nbytes() // tensor.element_size(),))  # type: ignore[call-overload, no-any-return]
