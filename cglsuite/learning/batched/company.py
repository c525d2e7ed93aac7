"""Members of a company: runs that proceed in lockstep in one thread, and compute together what they all come to.

Every member is a greenlet. It runs alone until it asks for a step of training; once all members have asked, the company computes their
steps as one (:mod:`cglsuite.learning.batched.stacked`), and each goes on by itself. What belongs to a thread belongs to a member here: the
global random states, whether gradients are recorded, and a clock, which stands while others compute.
"""

from __future__ import annotations

import contextvars
import hashlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from greenlet import getcurrent, greenlet
from torch import Tensor

from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.learning.batched.stacked import Asked, Items, Masks, Parts, Pass, Shape, Stack
from cglsuite.learning.clock import Clock

__all__ = ["Company", "Lesson", "Member", "MemberClock", "Outcome", "member", "pause"]

_numpy_random: Any = np.random  # the global generator is meant
MONITOR, UPDATE, BACKWARD, FORWARD, LEARN = range(5)
"""The kinds of requests, from the one that is served first: members that are behind catch up before the next step begins together."""


@dataclass(frozen=True)
class Outcome:
    """What became of a member: its result, or the error that ended it."""

    result: Any = None
    error: BaseException | None = None


class MemberClock(Clock):
    """A clock that stands while other members compute, and is charged the member's share of what is computed for several."""

    def stop(self) -> None:
        """Charge the time so far."""
        self.switch(self._current)

    def start(self, share_s: float) -> None:
        """Go on, with ``share_s`` seconds charged."""
        self._since = perf_counter() - share_s


@dataclass(eq=False, kw_only=True)
class Lesson:
    """One member's training on a task (a phase of it), as the company sees it.

    Args:
        shape, name, graph: what members of one step have in common; ``name`` is a digest of the graph's content.
        items: what the loss is the mean cross-entropy of; None if the method computes its own loss. watched: likewise of the monitored
            value; None if there is none, or another one.
        rate: the learning rate now. decay: of weights. adam: else plain gradient descent.
        alone: whether nothing comes between gradient, step and monitored value, so that one request serves for all three.
    """

    shape: Shape
    parts: Parts
    stack: Stack
    graph: MessageGraph
    name: str
    items: Items | None
    watched: Items | None
    rate: Callable[[], float]
    decay: float
    adam: bool
    alone: bool
    steps: int = 0
    loss: float = 0.0
    value: float | None = None


@dataclass(eq=False, kw_only=True)
class _Request:
    """What a member waits for: ``kind`` of work on its ``lesson``, or (``until``, as ``time.monotonic()``) only for time to pass."""

    kind: int = MONITOR
    lesson: Any = None
    masks: Masks | None = None
    head: bool = True
    gradients: Sequence[tuple[Pass, Tensor | None, Tensor]] = ()
    done: Any = None
    until: float | None = None

    @property
    def group(self) -> tuple[Any, ...]:
        """Requests with the same one are served together."""
        lesson: Lesson = self.lesson
        return (lesson.shape, lesson.name, lesson.parts.modes, self.head, lesson.alone, lesson.watched is None, lesson.adam)


class Member(greenlet):  # type: ignore[misc]  # it has no types
    """One run of a company.

    Args:
        slot: its place in stacks. work: what it does.
    """

    def __init__(self, company: Company, slot: int, work: Callable[[], Any]) -> None:
        super().__init__(self._run)
        self.gr_context = contextvars.copy_context()
        self.company, self.slot, self._work = company, slot, work
        self.clock = MemberClock()
        self.outcome: Outcome | None = None
        self.request: _Request | None = None
        self.position = self.passes = 0
        """The task that is learnt, and the steps so far: who is behind is served first."""
        self.step: Any = None
        """While the method computes its own loss in a step: its model's passes are computed with the company."""
        self._kept = _Thread.now().apart()

    def _run(self) -> None:
        try:
            self.outcome = Outcome(result=self._work())
        except BaseException as error:  # noqa: BLE001 - raised by whoever asks for the outcome
            self.outcome = Outcome(error=error)

    def resumed(self, share_s: float = 0.0, error: BaseException | None = None) -> None:
        """Let the member run until its next request or its end (called by the company)."""
        self.request = None
        self._kept.enter()
        self.clock.start(share_s)
        if error is None:
            self.switch()
        else:
            self.throw(error)
        self.clock.stop()
        self._kept = _Thread.now()

    def ask(self, **request: Any) -> Any:
        """Wait until the company has served a request; what it computed."""
        self.request = asked = _Request(**request)
        self.parent.switch()
        return asked.done

    def wait(self, seconds: float) -> None:
        """Let the others run for a while."""
        self.ask(until=time.monotonic() + seconds)


class Company:
    """Up to ``slots`` members at a time; fewer leave slots unused, which changes no number of any member.

    Args:
        slots: the size of the stacks.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._graphs: WeakValueDictionary[str, MessageGraph] = WeakValueDictionary()
        self._stacks: dict[Shape, Stack] = {}
        self._asked: dict[tuple[Any, ...], Asked] = {}

    def run(self, works: Sequence[Callable[[], Any]]) -> list[Outcome]:
        """Do all ``works`` side by side, and return what became of each, in their order. A slot that becomes free is given to the next.

        Once one has raised an error, none is begun any more.

        Raises:
            KeyboardInterrupt: one of them was interrupted; then all are.
        """
        here = _Thread.now()
        members = list[Member]()
        try:
            self._serve(members, works)
        finally:
            for one in members:
                while not one.dead and one.outcome is None:
                    one.resumed(error=KeyboardInterrupt())
            here.enter()
        outcomes = [one.outcome or Outcome() for one in members] + [Outcome()] * (len(works) - len(members))
        for outcome in outcomes:
            if isinstance(outcome.error, KeyboardInterrupt):
                raise outcome.error
        return outcomes

    def graph(self, given: MessageGraph) -> tuple[str, MessageGraph]:
        """A name of a graph's content, and the one graph of that content that members share."""
        name = _content(given)
        return name, self._graphs.setdefault(name, given)

    def stack(self, shape: Shape, parts: Parts) -> Stack:
        """The stack of models of a shape."""
        if shape not in self._stacks:
            self._stacks[shape] = Stack(parts.model, self.slots)
        return self._stacks[shape]

    def _serve(self, members: list[Member], works: Sequence[Callable[[], Any]]) -> None:
        """Run all ``works`` to their ends, each as one of ``members``."""
        at_start = _Thread.now()
        served = _Served(())
        while True:
            for one in served.members:
                one.resumed(served.share_s, served.error)
                if one.outcome is not None and isinstance(one.outcome.error, KeyboardInterrupt):
                    return
            active = [one for one in members if one.outcome is None]
            sound = all(one.outcome is None or one.outcome.error is None for one in members)
            if sound and len(active) < self.slots and len(members) < len(works):
                slot = min({*range(self.slots)} - {one.slot for one in active})
                at_start.enter()
                members.append(Member(self, slot, works[len(members)]))
                served = _Served(members[-1:])
                continue
            torch.set_grad_enabled(True)
            waiting = [(one, one.request) for one in active if one.request is not None]
            if not waiting:
                return
            served = self._served(waiting)

    def _served(self, waiting: Sequence[tuple[Member, _Request]]) -> _Served:
        """Serve the most urgent requests."""
        work = [(one, asked) for one, asked in waiting if asked.until is None]
        while not (due := [one for one, asked in waiting if asked.until is not None and asked.until <= time.monotonic()]) and not work:
            time.sleep(max(0.0, min(asked.until for _, asked in waiting if asked.until is not None) - time.monotonic()))
        if due:
            return _Served(due)
        kind = min(asked.kind for _, asked in work)
        work = [(one, asked) for one, asked in work if asked.kind == kind]
        first = min(work, key=lambda pair: (pair[0].position, pair[0].passes, pair[0].slot))[1].group
        work = [(one, asked) for one, asked in work if asked.group == first]
        began, error = perf_counter(), None
        try:
            _SERVICES[kind](self, work)
        except Exception as raised:  # noqa: BLE001 - each member's own boundary deals with it
            error = raised
        return _Served([one for one, _ in work], (perf_counter() - began) / len(work), error)

    # --- services ----------------------------------------------------------------------------------------------------------------

    def _forward(self, work: Sequence[tuple[Member, _Request]]) -> None:
        """A pass whose gradients are to come."""
        done = self._pass(work, head=work[0][1].head)
        for _, asked in work:
            asked.done = done

    @staticmethod
    def _pass(work: Sequence[tuple[Member, _Request]], *, head: bool = True) -> Pass:
        lesson = work[0][1].lesson
        masks = {one.slot: asked.masks for one, asked in work if asked.masks is not None}
        modes = lesson.parts.modes
        done: Pass = lesson.stack.forward([one.slot for one, _ in work], masks, lesson.graph, modes, head=head, grad=True)
        if any(modes):
            moved = [c for _, asked in work for name, c in asked.lesson.parts.counts.items() if modes[int(name.split(".")[1])]]
            torch._foreach_add_(moved, 1)
        return done

    def _learn(self, work: Sequence[tuple[Member, _Request]]) -> None:
        """A pass, its loss and its gradients; where nothing comes between, the step and the monitored value too."""
        lesson: Lesson = work[0][1].lesson
        lesson.stack.clear([one.slot for one, _ in work])
        losses = self._pass(work).cross_entropy(self._side_by_side(work, "items"), grad=True)
        for (_, asked), loss in zip(work, losses, strict=True):
            asked.lesson.loss = loss
        if lesson.alone:
            self._update(work)
            if lesson.watched is not None:
                self._monitor(work)

    @staticmethod
    def _backward(work: Sequence[tuple[Member, _Request]]) -> None:
        """The gradients of passes whose outputs' gradients are known."""
        work[0][1].lesson.stack.clear([one.slot for one, _ in work])
        passes: dict[int, tuple[Pass, dict[int, tuple[Tensor | None, Tensor]]]] = {}
        for one, asked in work:
            for done, ids, gradient in asked.gradients:
                passes.setdefault(id(done), (done, {}))[1][one.slot] = (ids, gradient)
        for done, given in passes.values():
            done.backward(given)

    @staticmethod
    def _update(work: Sequence[tuple[Member, _Request]]) -> None:
        """A step of the optimiser."""
        slots, lessons = [one.slot for one, _ in work], [asked.lesson for _, asked in work]
        stack, rates, decays = lessons[0].stack, [lesson.rate() for lesson in lessons], [lesson.decay for lesson in lessons]
        for lesson in lessons:
            lesson.steps += 1
        if lessons[0].adam:
            stack.adam(slots, rates, decays, [lesson.steps for lesson in lessons])
        else:
            stack.sgd(slots, rates, decays)

    def _monitor(self, work: Sequence[tuple[Member, _Request]]) -> None:
        """The cross-entropy of the watched items, in evaluation."""
        lesson: Lesson = work[0][1].lesson
        still = [False] * len(lesson.parts.norms)
        done = lesson.stack.forward([one.slot for one, _ in work], {}, lesson.graph, still, grad=False)
        values = done.cross_entropy(self._side_by_side(work, "watched"), grad=False)
        for (_, asked), value in zip(work, values, strict=True):
            asked.lesson.value = value

    def _side_by_side(self, work: Sequence[tuple[Member, _Request]], which: str) -> Asked:
        """All members' items, kept for the next step of the same members."""
        items = {one.slot: getattr(asked.lesson, which) for one, asked in work}
        name = (which, *((slot, id(one)) for slot, one in items.items()))
        if name not in self._asked:
            for known in [known for known in self._asked if known[0] == which]:
                del self._asked[known]
            self._asked[name] = Asked(items, self.slots)
        return self._asked[name]


_SERVICES: dict[int, Callable[[Company, Sequence[tuple[Member, _Request]]], None]] = {
    MONITOR: Company._monitor,
    UPDATE: lambda company, work: company._update(work),
    BACKWARD: lambda company, work: company._backward(work),
    FORWARD: Company._forward,
    LEARN: Company._learn,
}


def member() -> Member | None:
    """The member that runs now; ``None`` outside of a company."""
    current = getcurrent()
    return current if isinstance(current, Member) else None


def pause(seconds: float) -> None:
    """Sleep; a member lets the others run."""
    current = member()
    if current is None:
        time.sleep(seconds)
    else:
        current.wait(seconds)


@dataclass(frozen=True)
class _Served:
    """Members that can go on, with the share of what was computed for them, or the error that came of it."""

    members: Sequence[Member]
    share_s: float = 0.0
    error: Exception | None = None


@dataclass(frozen=True)
class _Thread:
    """What a thread has one of: global random states and the mode of autograd."""

    torch_state: Tensor
    cuda_states: tuple[Tensor, ...]
    python_state: Any
    numpy_generator: Any
    grad: bool

    @classmethod
    def now(cls) -> _Thread:
        on_cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
        return cls(
            torch.default_generator.get_state(),
            tuple(torch.cuda.get_rng_state_all()) if on_cuda else (),
            random.getstate(),
            _numpy_random.get_bit_generator(),
            torch.is_grad_enabled(),
        )

    def apart(self) -> _Thread:
        """The same with a NumPy generator of its own: states of torch and Python are copies already."""
        own = type(self.numpy_generator)()
        own.state = self.numpy_generator.state
        return replace(self, numpy_generator=own)

    def enter(self) -> None:
        torch.default_generator.set_state(self.torch_state)
        if self.cuda_states:
            torch.cuda.set_rng_state_all(list(self.cuda_states))
        random.setstate(self.python_state)
        _numpy_random.set_bit_generator(self.numpy_generator)
        torch.set_grad_enabled(self.grad)


def _content(graph: MessageGraph) -> str:
    """A digest of features and edges: graphs of one content are one graph to a company."""
    total = hashlib.blake2b(digest_size=16)
    x = graph.features
    parts: Mapping[str, Tensor] = (
        {"crow": x.csr.crow_indices(), "col": x.csr.col_indices(), "values": x.values} if isinstance(x, SparseMatrix) else {"x": x}
    )
    for name, part in {**parts, "edges": graph.edge_index}.items():
        total.update(f"{name}{part.dtype}{tuple(part.shape)}".encode())
        total.update(part.detach().cpu().contiguous().numpy().data)
    return total.hexdigest()
