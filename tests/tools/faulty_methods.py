"""Methods that break a promise or try to cheat, each in one way, and the names by which a catalogue holds them."""

from __future__ import annotations

import gc
import os
import random
import socket
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cglsuite import Catalogue, Method, MethodSpec
from cglsuite.host import PluginRecord
from cglsuite.streams import Batch, Oracle, TaskView
from cglsuite.testing.streams import tiny_catalogue, with_specs

__all__ = ["faulty_catalogue"]

_SEEN: list[int] = []


def _answers(oracle: Oracle, query: Batch, n_outputs: int) -> Tensor | None:
    """The labels that an oracle holds for a query of that size, one-hot."""
    for sheet in oracle._sheets.values():
        if len(sheet.y) == len(query) and sheet.y.dim() == 1:
            return torch.nn.functional.one_hot(sheet.y, n_outputs).float()
    return None


class NeverLearns(Method):
    """Its loss reaches no parameter but by a factor of zero."""

    def loss(self, batch: Batch) -> Tensor:
        """Nothing."""
        return super().loss(batch) * 0


class Hashed(Method):
    """Draws its weights by the hash of a name."""

    def setup(self) -> None:
        """Python's hash differs between processes."""
        generator = torch.Generator().manual_seed(hash("my method") % 1000)
        with torch.no_grad():
            for p in self.model.parameters():
                p.add_(0.01 * torch.randn(p.shape, generator=generator))


class Rigid(Method):
    """Holds on to the weights of the first task, whatever comes."""

    state = ("before",)

    def setup(self) -> None:
        """Nothing learnt yet."""
        self.before: dict[str, Tensor] = {}

    def loss(self, batch: Batch) -> Tensor:
        """A penalty that outweighs the loss by far."""
        pulls = [(p - self.before[n]).square().sum() for n, p in self.model.named_parameters() if n in self.before]
        return super().loss(batch) + 1e6 * sum(pulls)

    def after_task(self, view: TaskView) -> None:
        """Remember the weights of the first task."""
        self.before = self.before or {n: p.detach().clone() for n, p in self.model.named_parameters()}


class AnswersBackwards(Method):
    """Learns, and gives its outputs in another order than the classes have."""

    def predict(self, query: Batch) -> Tensor:
        """The least likely class first."""
        return -super().predict(query)


class Climbs(Method):
    """The loss has the wrong sign."""

    def loss(self, batch: Batch) -> Tensor:
        """What is to be made small is made large."""
        return -super().loss(batch).clamp(max=50.0)


class Restless(Method):
    """Draws from a source that nobody seeds."""

    def loss(self, batch: Batch) -> Tensor:
        """A little more or less."""
        return super().loss(batch) * (1 + random.SystemRandom().random())


class Forgetful(Method):
    """Counts tasks in an attribute that no checkpoint holds."""

    def setup(self) -> None:
        """No task yet."""
        self.tasks = 0

    def before_task(self, view: TaskView) -> None:
        """One more."""
        self.tasks += 1

    def loss(self, batch: Batch) -> Tensor:
        """Earlier tasks weigh more."""
        return super().loss(batch) / max(1, self.tasks)


class Endless(Method):
    """Answers with numbers that are none."""

    def predict(self, query: Batch) -> Tensor:
        """Not a number."""
        return super().predict(query) * float("nan")


class OneColumn(Method):
    """Answers with the likeliest class in place of outputs."""

    def predict(self, query: Batch) -> Tensor:
        """A class per item."""
        return super().predict(query).argmax(dim=1).float()


class Undocumented(Method):
    pass


class RemembersRuns(Method):
    """Keeps in its module what an earlier run saw."""

    def before_task(self, view: TaskView) -> None:
        """One more, for ever."""
        _SEEN.append(view.position)

    def loss(self, batch: Batch) -> Tensor:
        """Depends on what ran before in this process."""
        return super().loss(batch) / len(_SEEN)


class ReadsAttributes(Method):
    """Asks the query itself for its labels."""

    def predict(self, query: Batch) -> Tensor:
        """What would be the labels."""
        return torch.nn.functional.one_hot(self.problem.labels(query), self.problem.n_outputs).float()


class AsksGarbageCollector(Method):
    """Finds the oracle among all objects of the process."""

    def predict(self, query: Batch) -> Tensor:
        """Its answers."""
        found = [_answers(o, query, self.problem.n_outputs) for o in gc.get_objects() if type(o) is Oracle]
        return next((y for y in reversed(found) if y is not None), super().predict(query))


class WalksFrames(Method):
    """Climbs to the runner that calls it, and uses its oracle as often as it likes."""

    def predict(self, query: Batch) -> Tensor:
        """The answers that the runner's oracle holds."""
        frame: Any = sys._getframe()
        while frame is not None:
            runner = frame.f_locals.get("self")
            oracle = getattr(getattr(runner, "stream", None), "oracle", None)
            if isinstance(oracle, Oracle) and (y := _answers(oracle, query, self.problem.n_outputs)) is not None:
                return y
            frame = frame.f_back
        return super().predict(query)


class LooksUpFeatures(Method):
    """Loads the dataset itself, and finds the labels of test items by their features."""

    def predict(self, query: Batch) -> Tensor:
        """The labels of the nodes with these features."""
        from cglsuite.testing.kinds.cases import nodes

        data = nodes()
        asked = query.graph.features[query.ids]
        rows = torch.cdist(asked, data.x).argmin(dim=1)
        return torch.nn.functional.one_hot(data.y[rows], self.problem.n_outputs).float()


class WritesToTensors(Method):
    """Leaves marks in tensors that all share."""

    def after_task(self, view: TaskView) -> None:
        """A mark in the features."""
        view.graph.features.add_(1.0)


class HoardsViews(Method):
    """Keeps what it has seen where no meter counts it."""

    def setup(self) -> None:
        """Nothing kept yet."""
        self.seen: list[TaskView] = []

    def after_task(self, view: TaskView) -> None:
        """Everything."""
        self.seen.append(view)


class LiftsBudget(Method):
    """Grants itself more memory."""

    def after_task(self, view: TaskView) -> None:
        """All items of the task, whatever the budget."""
        self.memory.budget = None
        self.memory.put(f"task {view.position}", self.problem.sample(view.train, torch.arange(len(view.train)), "reference"))


class PatchesScorer(Method):
    """Replaces the function that scores."""

    def before_task(self, view: TaskView) -> None:
        """All tasks are perfect from now on."""
        grade = Oracle.grade

        def praise(oracle: Oracle, *args: Any) -> Any:
            tested, validation = grade(oracle, *args)
            return {k: type(s)(performance=1.0, hits=s.counts, counts=s.counts) for k, s in tested.items()}, validation

        Oracle.grade = praise  # type: ignore[method-assign]


class PatchesAdapter(Method):
    """Replaces what decodes its answers, in its own adapter."""

    def setup(self) -> None:
        """Every answer is the first output."""
        self.problem.decode = lambda logits, allowed: torch.zeros(len(logits), dtype=torch.int64)  # type: ignore[method-assign, assignment]


class WritesFiles(Method):
    """Leaves a file behind."""

    def after_task(self, view: TaskView) -> None:
        """Beside its own folder."""
        Path(os.getcwd()).parent.joinpath("left-behind.txt").write_text("here")


class Telephones(Method):
    """Opens a connection."""

    def before_task(self, view: TaskView) -> None:
        """To nobody."""
        with socket.socket() as line:
            line.settimeout(0.01)
            line.connect_ex(("127.0.0.1", 9))


_METHODS = {
    "never-learns": NeverLearns,
    "hashed": Hashed,
    "rigid": Rigid,
    "answers-backwards": AnswersBackwards,
    "climbs": Climbs,
    "restless": Restless,
    "forgetful": Forgetful,
    "endless": Endless,
    "undocumented": Undocumented,
    "remembers-runs": RemembersRuns,
    "reads-attributes": ReadsAttributes,
    "asks-garbage-collector": AsksGarbageCollector,
    "walks-frames": WalksFrames,
    "looks-up-features": LooksUpFeatures,
    "writes-to-tensors": WritesToTensors,
    "hoards-views": HoardsViews,
    "lifts-budget": LiftsBudget,
    "patches-scorer": PatchesScorer,
    "patches-adapter": PatchesAdapter,
    "writes-files": WritesFiles,
    "telephones": Telephones,
}


def faulty_catalogue() -> Catalogue:
    """The tiny catalogue with all of them, in class-IL over nodes."""
    record = PluginRecord(distribution="faulty", version="1.0", entry_point="faulty", module="cglsuite.testing", status="ok")
    specs = [
        MethodSpec(
            name=name,
            summary="goes wrong",
            factory=f"faulty_methods:{method.__name__}",
            citation="" if name == "undocumented" else "Nobody, 2026",
            settings=("class-il",),
        )
        for name, method in _METHODS.items()
    ]
    return with_specs(tiny_catalogue(Catalogue([], [e for k in ("backbone",) for e in tiny_catalogue().entries(k)])), specs, record)
