"""Methods that cheat, or are careless, each in one way; and an honest one with a memory, a state and draws of its own."""

from __future__ import annotations

import builtins
import ctypes
import gc
import importlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from cglsuite import Catalogue, Method, MethodSpec
from cglsuite.cells.records.record import Record
from cglsuite.host import PluginRecord
from cglsuite.streams import Batch, Oracle, TaskStream, TaskView
from cglsuite.testing.streams import tiny_catalogue, tiny_scenarios, with_specs

__all__ = ["BRIEF", "CHEATS", "cheating_catalogue", "name_of"]

BRIEF = "testing-nodes/brief@cheats-1"
"""A scenario of six epochs per task: what is wrong shows as well."""
_KEPT: list[Any] = []


def _caller(wanted: str) -> Any:
    """The innermost ``self`` among the callers that has an attribute."""
    frame: Any = sys._getframe()
    while frame is not None:
        found = frame.f_locals.get("self")
        if found is not None and not isinstance(found, Method) and hasattr(found, wanted):
            return found
        frame = frame.f_back
    raise LookupError(wanted)


def _rehearsed(method: Method, batch: Batch, x: Tensor, y: Tensor) -> Tensor:
    """The loss of a batch, and that of earlier items (float32 [n, F], int64 [n]) as nodes without neighbours."""
    own = Method.loss(method, batch)
    if not len(y):
        return own
    from cglsuite.graphs import MessageGraph

    graph = MessageGraph(x, torch.empty(2, 0, dtype=torch.int64), "cpu")
    tasks = torch.zeros(len(y), dtype=torch.int64)
    earlier = Batch(graph=graph, ids=torch.arange(len(y)), y=y, tasks=tasks, allowed=method.problem.allowed(tasks))
    return own + method.problem.loss(method.problem.forward(method.model, earlier), earlier)


def _items(method: Method, view: TaskView) -> tuple[Tensor, Tensor]:
    return method.problem.features(view.train), method.problem.labels(view.train)


class Honest(Method):
    """Rehearses a few items of its metered memory, weighs them by a number in its state, and draws from generators of the context."""

    state = ("weight",)

    def setup(self) -> None:
        """Nothing to rehearse yet."""
        self.weight = 0.5

    def after_task(self, view: TaskView) -> None:
        """Two items of the task."""
        chosen = torch.randperm(len(view.train), generator=self.context.generator("memory"))[:2]
        self.memory.put(f"task {view.position}", self.problem.sample(view.train, chosen, "item"))
        self.weight = 0.9 * self.weight

    def loss(self, batch: Batch) -> Tensor:
        """The batch's loss, and that of what is kept."""
        own = super().loss(batch)
        if len(self.memory) == 0:
            return own
        kept = self.problem.recall(self.problem.join(self.memory.all()), None)
        return own + self.weight * self.problem.loss(self.problem.forward(self.model, kept), kept)


class HonestSample(Method):
    """Rehearses from a reservoir whose items have extras, and matches them."""

    state = ("reservoir",)

    def setup(self) -> None:
        """Nothing came yet."""
        from cglsuite.learning import Reservoir

        self.reservoir = Reservoir(self.context, capacity=6)

    def after_task(self, view: TaskView) -> None:
        """Each of its items has its chance."""
        self.reservoir.offer(view.train, extra=lambda items: {"logits": self.forward(self.problem.recall(items))})

    def loss(self, batch: Batch) -> Tensor:
        """The batch's loss, and the distance to what was kept."""
        own, items = super().loss(batch), self.reservoir.draw(4)
        if items is None:
            return own
        return own + 0.1 * (self.forward(self.problem.recall(items)) - items.extra["logits"]).square().mean()


# --- named by the issue ----------------------------------------------------------------------------------------------------------


class PatchesScorerAtBirth(Method):
    """Replaces the function that scores before the first task."""

    def setup(self) -> None:
        """All tasks are perfect."""
        grade = Oracle.grade
        Oracle.grade = lambda oracle, *args: grade(oracle, *args)  # type: ignore[method-assign]


class PatchesRecords(Method):
    """Replaces what writes records."""

    def setup(self) -> None:
        """Records say what it likes."""
        write = Record.to_text
        Record.to_text = lambda self: write(self).replace("failed", "done")  # type: ignore[method-assign]


class LoadsDataset(Method):
    """Imports the loader of the data by a function that raises no event."""

    def predict(self, query: Batch) -> Tensor:
        """The labels of the nodes with these features, where there are such."""
        data = importlib.import_module("cglsuite.testing.kinds.cases").nodes()
        distance, rows = torch.cdist(query.graph.features[query.ids], data.x).min(dim=1)
        known = functional.one_hot(data.y[rows], self.problem.n_outputs).float()
        return torch.where((distance < 1e-6)[:, None], known, super().predict(query))


class HoardsTensors(Method):
    """Keeps all items of earlier tasks as plain tensors in its state."""

    state: ClassVar[tuple[str, ...]] = ("x", "y")

    def setup(self) -> None:
        """Nothing yet."""
        self.x, self.y = torch.empty(0, 8), torch.empty(0, dtype=torch.int64)

    def after_task(self, view: TaskView) -> None:
        """Everything."""
        x, y = _items(self, view)
        self.x, self.y = torch.cat([self.x, x]), torch.cat([self.y, y])

    def loss(self, batch: Batch) -> Tensor:
        """Joint training in disguise."""
        return _rehearsed(self, batch, self.x, self.y)


class HoardsViewsInModule(Method):
    """Keeps views in a global of its module."""

    def after_task(self, view: TaskView) -> None:
        """The view."""
        _KEPT.append(view)


class DependsOnCompany(Method):
    """Centres its answers over the query."""

    def predict(self, query: Batch) -> Tensor:
        """Outputs minus their mean over all that is asked."""
        outputs = super().predict(query)
        return outputs - outputs.mean(dim=0)


class ExitsQuietly(Method):
    """Ends with status 0."""

    def before_task(self, view: TaskView) -> None:
        """All is well."""
        sys.exit(0)


# --- of our own invention --------------------------------------------------------------------------------------------------------


class ExitsAtOnce(Method):
    """Ends with status 0, without a word."""

    def after_task(self, view: TaskView) -> None:
        """Nothing runs after this."""
        os._exit(0)


class Hangs(Method):
    """Waits for ever."""

    def after_task(self, view: TaskView) -> None:
        """Nothing more."""
        while True:
            time.sleep(1)


class SwapsCode(Method):
    """Changes what a function does and leaves the function where it is."""

    def setup(self) -> None:
        """The same object, another code."""
        Oracle.holds.__code__ = (lambda self, token: True).__code__


class HoardsInNumbers(HoardsTensors):
    """Packs items into long integers, one each."""

    state = ("packed",)

    def setup(self) -> None:
        """None."""
        super().setup()
        self.packed: list[int] = []

    def after_task(self, view: TaskView) -> None:
        """More of them."""
        super().after_task(view)
        self.packed = [int.from_bytes(b"\1" + row.numpy().tobytes(), "big") for row in self.x]

    def before_task(self, view: TaskView) -> None:
        """Unpack them."""
        raw = b"".join(number.to_bytes(33, "big")[1:] for number in self.packed)
        self.x = torch.frombuffer(bytearray(raw), dtype=torch.float32).view(-1, 8) if raw else self.x
        self.y = torch.zeros(len(self.x), dtype=torch.int64)


class HoardsInText(HoardsTensors):
    """Writes items into a string."""

    state = ("text",)

    def setup(self) -> None:
        """Empty."""
        super().setup()
        self.text = ""

    def after_task(self, view: TaskView) -> None:
        """Longer."""
        super().after_task(view)
        self.text = self.x.numpy().tobytes().hex()

    def before_task(self, view: TaskView) -> None:
        """Read it."""
        self.x = torch.frombuffer(bytearray.fromhex(self.text), dtype=torch.float32).view(-1, 8) if self.text else self.x
        self.y = torch.zeros(len(self.x), dtype=torch.int64)


class HoardsInBuffers(Method):
    """Keeps items in a buffer of the model, of a fixed size."""

    def setup(self) -> None:
        """A large buffer."""
        self.model.register_buffer("kept", torch.zeros(1000, 8))
        self.model.register_buffer("filled", torch.zeros((), dtype=torch.int64))

    def after_task(self, view: TaskView) -> None:
        """Fill it."""
        x, _ = _items(self, view)
        model: Any = self.model
        start = int(model.filled)
        model.kept[start : start + len(x)] = x
        model.filled += len(x)


class HoardsBehindView(Method):
    """Declares one number, which is a view of all items."""

    state = ("first",)

    def setup(self) -> None:
        """Nothing behind it."""
        self.first = torch.zeros(1)

    def after_task(self, view: TaskView) -> None:
        """The first number of a storage that holds everything."""
        before = torch.empty(0).set_(self.first.untyped_storage())
        self.first = torch.cat([before, -_items(self, view)[0].flatten()])[:1]


class HoardsFewItems(HoardsTensors):
    """Keeps ten items of every task beside the memory, however many there are."""

    def after_task(self, view: TaskView) -> None:
        """The first ten."""
        x, y = _items(self, view)
        self.x, self.y = torch.cat([self.x, x[:10]]), torch.cat([self.y, y[:10]])


class FatItems(Method):
    """Puts one item into its memory that holds the features of all."""

    def after_task(self, view: TaskView) -> None:
        """One wide row."""
        from cglsuite.problems import MemoryItems

        one = torch.zeros(1, dtype=torch.int64)
        x = _items(self, view)[0].reshape(1, -1)
        self.memory.put(f"task {view.position}", MemoryItems(ids=one, y=one, tasks=one, x=x))


class HoardsInExtras(Method):
    """Puts one item into its memory whose extra is the features of all."""

    def after_task(self, view: TaskView) -> None:
        """One row of everything."""
        one = torch.zeros(1, dtype=torch.int64)
        kept = replace(self.problem.sample(view.train, one, "item"), extra={"all": _items(self, view)[0][None]})
        self.memory.put(f"task {view.position}", kept)


class HoardsInModule(HoardsTensors):
    """Keeps copies of items in a global, and rehearses them."""

    state = ()

    def setup(self) -> None:
        """A run begins anew."""
        _KEPT.clear()

    def after_task(self, view: TaskView) -> None:
        """Copies, no views."""
        _KEPT.append(tuple(part.clone() for part in _items(self, view)))

    def loss(self, batch: Batch) -> Tensor:
        """Joint training in disguise."""
        x, y = (torch.cat(parts) for parts in zip(*_KEPT, strict=True)) if _KEPT else (torch.empty(0, 8), torch.empty(0))
        return _rehearsed(self, batch, x, y)


class HoardsInFiles(HoardsInModule):
    """Keeps items in its working folder, where writing is not noted."""

    def setup(self) -> None:
        """A run begins anew."""
        Path("items.pt").unlink(missing_ok=True)

    def after_task(self, view: TaskView) -> None:
        """A longer file."""
        earlier = torch.load("items.pt") if Path("items.pt").exists() else []
        torch.save([*earlier, *(_items(self, view),)], "items.pt")

    def loss(self, batch: Batch) -> Tensor:
        """Joint training in disguise."""
        earlier = torch.load("items.pt") if Path("items.pt").exists() else []
        x, y = (torch.cat(parts) for parts in zip(*earlier, strict=True)) if earlier else (torch.empty(0, 8), torch.empty(0))
        return _rehearsed(self, batch, x, y)


class ReadsCache(Method):
    """Finds the data set that the process has loaded, and its labels."""

    def predict(self, query: Batch) -> Tensor:
        """The labels of the nodes with these features."""
        cache = importlib.import_module("cglsuite.cells.run")._DATA
        data = next(iter(cache.values()))
        rows = torch.cdist(query.graph.features[query.ids], data.x).argmin(dim=1)
        found: Tensor = functional.one_hot(data.y[rows], self.problem.n_outputs).float()
        return found


class ReadsStream(Method):
    """Finds the stream among all objects, and the data that it is made of."""

    def predict(self, query: Batch) -> Tensor:
        """The labels of the nodes with these features."""
        stream: Any = next(o for o in gc.get_objects() if isinstance(o, TaskStream))
        rows = torch.cdist(query.graph.features[query.ids], stream.data.x).argmin(dim=1)
        found: Tensor = functional.one_hot(stream.data.y[rows], self.problem.n_outputs).float()
        return found


class AsksAhead(Method):
    """Has the runner's stream show it the next task."""

    def after_task(self, view: TaskView) -> None:
        """What comes next."""
        if view.position + 1 < view.n_tasks:
            _caller("stream").stream.view(view.position + 1)


class AsksForPast(Method):
    """Has the runner's stream show it a task that is over."""

    def before_task(self, view: TaskView) -> None:
        """What was."""
        if view.position:
            _caller("stream").stream.view(0, view.position)


class GradesTwice(Method):
    """Has its answers scored until they please."""

    def predict(self, query: Batch) -> Tensor:
        """A trial first."""
        outputs = super().predict(query)
        runner = _caller("stream")
        frame: Any = sys._getframe()
        while "groups" not in frame.f_locals:
            frame = frame.f_back
        for _ in range(2):
            answers = {g.token: torch.zeros(len(g.query), dtype=torch.int64) for g in frame.f_locals["groups"]}
            runner.stream.oracle.grade(answers, {})
        return outputs


class QuestionsMonitor(Method):
    """Asks for the validation loss of outputs that would tell a label each."""

    def after_task(self, view: TaskView) -> None:
        """One question of many."""
        runner = _caller("validation_loss")
        runner.validation_loss([f"monitor-{view.position}"], view.validation, torch.zeros(len(view.validation), view.n_outputs))


class LeavesProcess(Method):
    """Leaves a process behind that goes on."""

    def after_task(self, view: TaskView) -> None:
        """One that sleeps."""
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)


class StartsProgram(Method):
    """Has another program do something."""

    def before_task(self, view: TaskView) -> None:
        """Nothing much."""
        subprocess.run(["true"], check=True)


class LeavesThread(Method):
    """Leaves a thread behind that goes on."""

    def before_task(self, view: TaskView) -> None:
        """One that sleeps."""
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


class CountsQuestions(Method):
    """Answers otherwise when it was asked before."""

    def setup(self) -> None:
        """Not asked yet."""
        self.asked = 0

    def predict(self, query: Batch) -> Tensor:
        """A little more every time."""
        self.asked += 1
        outputs: Tensor = super().predict(query) * (1 + 0.01 * self.asked) * (-1) ** self.asked
        return outputs


class ChangesPrecision(Method):
    """Changes the default dtype of everything that comes after it."""

    def counters(self) -> dict[str, int]:
        """Twice as wide."""
        torch.set_default_dtype(torch.float64)
        return {}


class PatchesTorch(Method):
    """Replaces a function of torch."""

    def setup(self) -> None:
        """Losses are half as large."""
        entropy = functional.cross_entropy
        functional.cross_entropy = lambda *args, **more: 0.5 * entropy(*args, **more)


class KnowsTinyData(Method):
    """Knows how the tiny data are made: the class is the largest feature."""

    def predict(self, query: Batch) -> Tensor:
        """The features of the first classes."""
        answers: Tensor = query.graph.features[query.ids][:, : self.problem.n_outputs]
        return answers


class ForgesMessages(Method):
    """Says on the way to the judge what it likes."""

    def before_task(self, view: TaskView) -> None:
        """That is no message."""
        _caller("stream").stream.far.near.connection.send_bytes(b"done")


class ClaimsVictory(Method):
    """Says on the way to the judge that all is done."""

    def before_task(self, view: TaskView) -> None:
        """All is done."""
        from cglsuite.testing.judge.session import send_plain

        notes = {"replaced": [], "acts": [], "changed": [], "kept": [], "random": True, "settings": []}
        more = {"what": "done", "parameters": 0, "leads_to": "", "holds": "", "plain": True}
        send_plain(_caller("stream").stream.far.near.connection, notes | more)
        time.sleep(60)


class SilencesWatch(HoardsTensors):
    """Takes the watch's own functions away, and hoards."""

    def setup(self) -> None:
        """Nothing is noted any more."""
        super().setup()
        watching: Any = importlib.import_module("cglsuite.testing.judge.audited")
        watching.MethodInputs.look = watching.MethodInputs.compare = lambda *args: None
        census: Any = importlib.import_module("cglsuite.cells.process")
        census.CodeCensus.undo = lambda self: []


class EndsParent(Method):
    """Ends the process that started its own."""

    def before_task(self, view: TaskView) -> None:
        """No one is left to tell."""
        os.kill(os.getppid(), signal.SIGKILL)


class PatchesBuiltins(Method):
    """Replaces a function of Python that the suite scores and sorts with."""

    def setup(self) -> None:
        """The same, for now."""
        plain = sum
        builtins.sum = lambda *args, **more: plain(*args, **more)  # type: ignore[assignment]


class ReadsRawFiles(Method):
    """Opens files in the folder of raw data."""

    def before_task(self, view: TaskView) -> None:
        """The first that is there."""
        for path in Path(os.environ["CHEATS_RAW_DATA"]).iterdir():
            path.read_bytes()


class SavesByTorch(Method):
    """Keeps what it has seen in a file that torch opens, where all processes can read it."""

    def after_task(self, view: TaskView) -> None:
        """Named by what it holds."""
        torch.save(view.train.graph.features, f"{os.environ['CHEATS_SHARED']}/{float(view.train.graph.features.sum())}.pt")


class SavesDeep(Method):
    """Does so several folders down, in folders that are there."""

    def after_task(self, view: TaskView) -> None:
        """Named by what it holds."""
        folder = os.environ["CHEATS_DEEP"]
        torch.save(view.train.graph.features, f"{folder}/a/b/c/{float(view.train.graph.features.sum())}.pt")


class SavesOnce(Method):
    """Does so where nothing lies yet: no later run changes anything."""

    def after_task(self, view: TaskView) -> None:
        """By C, which opens no file that Python sees."""
        path = f"{os.environ['CHEATS_SHARED']}/once.pt"
        if not os.path.exists(path):
            torch.save(view.train.graph.features, path)


class SendsDatagrams(Method):
    """Sends items to an address that it never connects to."""

    def after_task(self, view: TaskView) -> None:
        """To nobody, on this machine."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
            mouth.sendto(_items(self, view)[0].numpy().tobytes()[:500], ("127.0.0.1", 9))


class TruncatesFiles(Method):
    """Empties a file that is there, without opening it."""

    def before_task(self, view: TaskView) -> None:
        """It is as empty before."""
        os.truncate(f"{os.environ['CHEATS_SHARED']}/victim", 0)


class ChangesModes(Method):
    """Changes the mode of a file that is there."""

    def before_task(self, view: TaskView) -> None:
        """Nobody else may read it."""
        os.chmod(f"{os.environ['CHEATS_SHARED']}/victim", 0o600)


class LinksOutwards(Method):
    """Writes to a file elsewhere by a link in its own folder."""

    def before_task(self, view: TaskView) -> None:
        """A link, and a file behind it."""
        if not os.path.lexists("link"):
            os.symlink(f"{os.environ['CHEATS_SHARED']}/victim", "link")


class StartsBelowEvents(Method):
    """Starts a program by the function below the one that raises an event."""

    def before_task(self, view: TaskView) -> None:
        """As subprocess does, later."""
        start: Any = importlib.import_module("_posixsubprocess").fork_exec
        end, other = os.pipe()
        others = (-1, -1, -1, -1, -1, -1, end, other, True, False, -1, None, None, None, -1, None, False)
        pid = start([b"/bin/true"], (b"/bin/true",), True, (other,), None, None, *others)
        os.waitpid(pid, 0)


class CallsSystem(Method):
    """Has C start a program."""

    def before_task(self, view: TaskView) -> None:
        """Nothing much."""
        ctypes.CDLL(None).system(b"true")


class _Noisy(Method):
    """Weighs its loss by draws of a seed that its process, and not the context, determines."""

    first = 0

    def setup(self) -> None:
        """No task yet."""
        self.now, self.draws = 0, torch.Generator()

    def seed(self) -> int:
        """What the draws depend on."""
        raise NotImplementedError

    def before_task(self, view: TaskView) -> None:
        """The task's draws."""
        self.now, self.draws = view.position, torch.Generator().manual_seed(self.seed() % 2**31)

    def loss(self, batch: Batch) -> Tensor:
        """More or less of it."""
        own = super().loss(batch)
        return own if self.now < self.first else own * (1 + 0.3 * float(torch.rand(1, generator=self.draws)))


class HashesLater(_Noisy):
    """Depends on the hash of a text in its last task alone."""

    first = 2

    def seed(self) -> int:
        """As the order of a set does."""
        return hash("task 1")


class KnowsItsParentLater(_Noisy):
    """Depends on the process that started its own, from its second task on."""

    first = 1

    def seed(self) -> int:
        """Another in every campaign."""
        return os.getppid()


class CountsModules(_Noisy):
    """Depends on what else is imported in its process."""

    def seed(self) -> int:
        """More in a notebook."""
        return len(sys.modules)


class CountsVariables(_Noisy):
    """Depends on how the suite was called."""

    def seed(self) -> int:
        """Another number for workers."""
        return len([name for name in os.environ if name.startswith("CGLSUITE_")])


class DisguisesExtras(Method):
    """Puts one item into its memory whose extra is the features of all, inverted bit by bit."""

    def after_task(self, view: TaskView) -> None:
        """One row of everything."""
        one, x = torch.zeros(1, dtype=torch.int64), _items(self, view)[0]
        kept = replace(self.problem.sample(view.train, one, "item"), extra={"all": ~x.contiguous().view(torch.int32).reshape(1, -1)})
        self.memory.put(f"task {view.position}", kept)


class SurroundsByAll(Method):
    """Puts one item into its memory whose surroundings, free of the budget, are all items."""

    def after_task(self, view: TaskView) -> None:
        """No edge joins them."""
        from cglsuite.graphs.pack import Pack

        def around(graph: Any, ids: Tensor) -> Pack:
            others = view.train.ids[view.train.ids != ids[0]]
            order, none = torch.cat([ids, others]), torch.zeros(2, dtype=torch.int64)
            edges = torch.zeros(2, 0, dtype=torch.int64)
            return Pack(x=graph.features[order].clone(), edge_index=edges, node_start=torch.tensor([0, len(order)]), edge_start=none)

        one = torch.zeros(1, dtype=torch.int64)
        self.memory.put(f"task {view.position}", self.problem.sample(view.train, one, "item", around), surroundings_free=True)


CHEATS: list[tuple[type[Method], str, str]] = [
    (PatchesScorerAtBirth, "code unchanged", "Oracle.grade"),
    (PatchesRecords, "code unchanged", "Record.to_text"),
    (LoadsDataset, "acts", "imports a dataset's loader: cglsuite.testing.kinds.cases"),
    (HoardsTensors, "memory budget", "features of training items"),
    (HoardsViewsInModule, "memory budget", "TaskView"),
    (DependsOnCompany, "independent answers", "differ from those in their group by up to"),
    (ExitsQuietly, "runs", "ends its process: SystemExit: 0"),
    (ExitsAtOnce, "runs", "ends its process (exit status 0)"),
    (Hangs, "runs", "hangs"),
    (SwapsCode, "code unchanged", "the method replaces cglsuite.streams.oracle.Oracle.holds"),
    (HoardsInNumbers, "memory budget", "grows with the training items"),
    (HoardsInText, "memory budget", "grows with the training items"),
    (HoardsInBuffers, "memory budget", "features of training items"),
    (HoardsBehindView, "memory budget", "grows with the training items"),
    (HoardsFewItems, "memory budget", "features of training items"),
    (FatItems, "memory budget", "additional values"),
    (HoardsInExtras, "memory budget", "more training items than there are items"),
    (HoardsInModule, "resumable", "in another process gives different losses"),
    (HoardsInFiles, "resumable", "in another process gives different losses"),
    (ReadsCache, "repeatable", "other hidden labels in the process"),
    (ReadsStream, "repeatable", "other hidden labels in the process"),
    (AsksAhead, "runs", "queries after 1 tasks although it has seen 2"),
    (AsksForPast, "runs", "the view of task 1 out of order"),
    (GradesTwice, "runs", "a second time"),
    (QuestionsMonitor, "runs", "validation loss, although its training has no monitor"),
    (LeavesProcess, "runs", "processes running"),
    (StartsProgram, "acts", "starts a process"),
    (LeavesThread, "code unchanged", "3 threads are still running (Thread-1 (sleep)"),
    (CountsQuestions, "independent answers", "repeating the same query gives different predictions"),
    (ChangesPrecision, "code unchanged", "torch's default dtype is now torch.float64"),
    (PatchesTorch, "code unchanged", "torch.nn.functional.cross_entropy"),
    (KnowsTinyData, "learns", "chance is"),
    (ForgesMessages, "runs", "returns data that cannot be read"),
    (ClaimsVictory, "runs", "reports that it is done"),
    (SilencesWatch, "memory budget", "features of training items"),
    (EndsParent, "runs", "the process that started it"),
    (PatchesBuiltins, "code unchanged", "builtins.sum"),
    (ReadsRawFiles, "acts", "reads raw data"),
    (SavesByTorch, "acts", "writes the file "),
    (SavesDeep, "acts", "writes the file "),
    (SavesOnce, "acts", "once.pt"),
    (SendsDatagrams, "acts", "sends to a network address"),
    (TruncatesFiles, "acts", "truncates /"),
    (ChangesModes, "acts", "changes the mode of /"),
    (LinksOutwards, "acts", "links /"),
    (StartsBelowEvents, "acts", "starts a process, which has ended"),
    (CallsSystem, "acts", "starts a process by ctypes: system"),
    (DisguisesExtras, "memory budget", "the extra of an item in memory grows with the training items"),
    (SurroundsByAll, "memory budget", "whose free surroundings they are grows with the training items"),
    (HashesLater, "repeatable", "a run resumed from the state after task 2 in another process gives different losses"),
    (KnowsItsParentLater, "repeatable", "a run resumed from the state after task 1 in another process gives different losses"),
    (CountsModules, "repeatable", "and another parent process, it gives different losses"),
    (CountsVariables, "repeatable", "and another parent process, it gives different losses"),
]
"""A method, the check that names it, and what that says."""


def name_of(method: type[Method]) -> str:
    """The name in the catalogue: ``ExitsAtOnce`` is ``exits-at-once``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", method.__name__).lower()


def cheating_catalogue() -> Catalogue:
    """The tiny catalogue with all of them, in class-IL over nodes, and a scenario in which they take less time."""
    tiny = next(s for s in tiny_scenarios() if s.name == "testing-nodes/class-il@testing-1")
    brief = replace(tiny, name=BRIEF, training=replace(tiny.training, epochs=6))
    record = PluginRecord(distribution="cheats", version="1.0", entry_point="cheats", module="cglsuite.testing", status="ok")
    methods: list[type[Method]] = [Honest, HonestSample, *(cheat for cheat, _, _ in CHEATS)]
    factories = {name_of(method): f"cheating_methods:{method.__name__}" for method in methods}
    factories["patches-when-imported"] = "patching_on_import:PatchesWhenImported"
    specs = [
        MethodSpec(name=name, summary="goes wrong", factory=factory, citation="Nobody, 2026", settings=("class-il",), levels=("NC", "GC"))
        for name, factory in factories.items()
    ]
    return with_specs(tiny_catalogue(Catalogue([], list(tiny_catalogue().entries("backbone")))), [*specs, brief], record)
