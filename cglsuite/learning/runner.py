"""Run one method over one stream of tasks: learn, predict, have the oracle score, checkpoint."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from cglsuite.backbones.growth import redraw_outputs
from cglsuite.hashing import digest
from cglsuite.learning import state as method_state
from cglsuite.learning.clock import Clock
from cglsuite.learning.equipment import Draws, adapter, answers_of, equip
from cglsuite.learning.loop import Curve, fit, make_optimizer
from cglsuite.learning.method import Method, MethodContext
from cglsuite.learning.norms import NormStatistics
from cglsuite.learning.randomness import generator, scope
from cglsuite.learning.result import Checkpoints, RunResult, numbers_in
from cglsuite.specs import TrainingSpec
from cglsuite.streams import Batch, QueryGroup, TaskStream, TaskView

__all__ = ["Checkpoints", "Claim", "RunResult", "StreamRunner", "unclaimed"]

Rows = dict[str, float]
"""Accuracy by task content: rows of a shared prefix mean the same in every order."""


Claim = Callable[[str], AbstractContextManager[bool]]
"""Prefix to a context: entered when nobody else is training that prefix; whether nobody has trained it meanwhile."""


@contextmanager
def unclaimed(prefix: str) -> Iterator[bool]:
    """The claim of a runner that is alone."""
    yield True


@dataclass(kw_only=True)
class _Scores:
    """One evaluation: rows of test and validation accuracy, hits and items per class, and a hash of the answers."""

    rows: Rows = field(default_factory=dict)
    validation: Rows = field(default_factory=dict)
    hits: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    answers: str = ""


@dataclass(kw_only=True)
class _Stage:
    """Everything known after k tasks; saved with the state."""

    scores: _Scores
    curve: dict[str, Any]
    timings_s: dict[str, float]
    memory: dict[str, int | None]
    state: str


class StreamRunner:
    """Drives one method over a stream.

    Args:
        stream: the built stream (only the runner holds it).
        make_method: context to method.
        build_model: draws a model; called inside random scopes of the runner's.
        settings: the method's resolved hyper-parameters.
        training: the resolved training protocol.
        init_seed: drives all of the method's randomness.
        identity: everything that determines the result besides the tasks; part of every prefix key.
        past_views: whether the method declared that it needs the views of earlier tasks.
        on_task: called with the number of tasks learnt, for progress.
    """

    def __init__(
        self,
        stream: TaskStream,
        make_method: Callable[[MethodContext], Method],
        build_model: Callable[[], Any],
        *,
        settings: dict[str, Any],
        training: TrainingSpec,
        init_seed: int,
        identity: str,
        past_views: bool = False,
        device: str = "cpu",
        on_task: Callable[[int], None] = lambda k: None,
    ) -> None:
        self.stream, self.training, self.init_seed, self.identity = stream, training, init_seed, identity
        self.past_views, self.on_task, self.clock, self.build_model = past_views, on_task, Clock(), build_model
        self.prefixes = self._chain(self.identity, len(stream), stream.n_outputs, stream.spec.memory_budget)
        # Draws are named by the tasks alone, so that a change of the code that changes no arithmetic changes no number.
        self.draw_names = self._chain(len(stream), stream.n_outputs)
        self._draws = Draws(init_seed, self.draw_names[0])
        self.problem, self.method = equip(stream, make_method, build_model, settings, training, self._draws, device)
        self._scorer = adapter(stream, training, device)  # what a method does to its own adapter has no part in scores
        if stream.spec.head == "growing":  # a head that cannot grow is refused before anything is learnt
            redraw_outputs(self.method.model, self.method.model, torch.zeros_like(stream.task_outputs[0]))
        self.optimizer: torch.optim.Optimizer | None = None
        self.norms = NormStatistics(training.norm_statistics)

    def _chain(self, *start: Any) -> list[str]:
        """One key per number of learnt tasks, from ``start`` and the content of the tasks so far."""
        chain = [digest(start)]
        for facts in self.stream.tasks:
            chain.append(digest([chain[-1], facts.content]))
        return chain

    # --- the run ---------------------------------------------------------------------------------------------------------------

    def run(self, checkpoints: Checkpoints | None = None, *, keep: int = 0, last: bool = True, claim: Claim = unclaimed) -> RunResult:
        """Learn every task that no checkpoint covers, and return all rows.

        Args:
            keep: with how many of its first tasks other orders begin too: the states after each of these are kept; else only the latest.
            last: keep the state after the last task too, which only serves those who want more than the result.
            claim: keeps two runners off one of these tasks.
        """
        stages = [self._first_stage()]
        stages += self._resume(checkpoints) if checkpoints is not None else []
        resumed = len(stages) - 1
        trained: list[int] = []
        self.on_task(resumed)
        while (k := len(stages) - 1) < len(self.stream):
            with claim(self.prefixes[k + 1]) if k < keep else unclaimed("") as mine:
                theirs = [] if mine or checkpoints is None else self._resume(checkpoints, k)
                if theirs:
                    stages[1:] = theirs
                else:
                    stages.append(self._task(k, stages[-1]))
                    trained.append(k)
                    if checkpoints is not None and (last or k < keep or k + 1 < len(self.stream)):
                        checkpoints.save(self.prefixes[k + 1], {"state": self._state(), "stages": [asdict(s) for s in stages[1:]]})
            if checkpoints is not None and k > keep:
                checkpoints.drop(self.prefixes[k])
            self.on_task(len(stages) - 1)
        return self._result(stages, resumed, trained)

    def _first_stage(self) -> _Stage:
        _, scores = self._asked(0)
        return _Stage(scores=scores, curve={}, timings_s=self.clock.reading(), memory={}, state="")

    def _task(self, k: int, before: _Stage) -> _Stage:
        started = self.clock.reading()
        prefix = self._draws.prefix = self.draw_names[k + 1]
        view = self._view(k)
        self._arrive(view)
        if self.stream.spec.head == "growing" and k > 0:
            self._grow(k, prefix)
        with scope(self.init_seed, "learn", prefix):
            curve, learnt = self._learn(view)
        self.stream.forget()
        fingerprint, scores = self._asked(k + 1) if learnt else ("", _Scores())
        now = self.clock.reading()
        return _Stage(
            scores=scores,
            curve={"task": k + 1, **asdict(curve)},
            timings_s={s: before.timings_s.get(s, 0.0) + now[s] - started[s] for s in now},
            memory=self.method.memory.usage(),
            state=fingerprint,
        )

    def _arrive(self, view: TaskView) -> None:
        self.problem.arrive(view)
        self._scorer.arrive(view)

    def _grow(self, k: int, prefix: str) -> None:
        """Draw the outputs that arrive with task ``k``; the optimiser, made afterwards, holds them like all others."""
        table = self.stream.task_outputs
        with scope(self.init_seed, "head", prefix):
            arriving = table[k] & ~table[:k].any(dim=0)
            redraw_outputs(self.method.model, self.build_model(), arriving, self.optimizer)

    def _asked(self, learnt: int) -> tuple[str, _Scores]:
        """The fingerprint of the method's state, and its scores; being asked must not have changed the state."""
        with method_state.untouched(self.method) as fingerprint:
            scores = self._evaluate(learnt)
        return fingerprint, scores

    def _view(self, k: int) -> TaskView:
        view = self.stream.view(k)
        return replace(view, past=tuple(self.stream.view(j, k) for j in range(k))) if self.past_views else view

    def _learn(self, view: TaskView) -> tuple[Curve, bool]:
        """The curve, and whether the task was learnt at all: a method without a phase for it passes it by, and is not asked after it."""
        method, clock = self.method, self.clock
        with clock.section("method"):
            method.model.train()
            method.before_task(view)
            self.norms.begin(method.model)
        views = method.training_views(view)
        # Draws of their own: all methods meet the same batches, whatever else they draw.
        batches = self.problem.epochs(views, generator(self.init_seed, "batches", self._draws.prefix))
        curve, rounds = Curve(), 0
        for phase in method.phases(view):
            rounds += 1
            self.optimizer = self._optimizer()
            monitor = self._monitor(views) if self.training.monitor != "none" else None
            epochs = math.ceil(phase.share * self.training.epochs)
            with clock.section("training"):
                part = fit(
                    method,
                    batches,
                    self.training,
                    self.optimizer,
                    epochs=epochs,
                    monitor=monitor,
                    clock=clock,
                    train_mode=self.norms.train,
                )
            curve = Curve(loss=curve.loss + part.loss, monitor=curve.monitor + part.monitor, best_epoch=len(curve.loss) + part.best_epoch)
        with clock.section("method"):
            method.model.eval()
            self.norms.end(view.position, method.model)
            method.after_task(view)
        return curve, rounds > 0

    def _optimizer(self) -> torch.optim.Optimizer:
        """The optimiser carried over where the protocol says so and its parameters are still the model's; else a fresh one."""
        if self.training.carry_optimizer and self.optimizer is not None:
            held = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
            if held == {id(p) for p in self.method.model.parameters() if p.requires_grad}:
                return self.optimizer
        return make_optimizer(self.method.model, self.training)

    def _monitor(self, views: Sequence[TaskView]) -> Callable[[], float]:
        """What the schedule minimises, as one scalar: the validation loss of the views' tasks, or minus their validation performance."""
        (batch,) = self.problem.batches(views, "validation")
        tokens = [self.stream.validation_token(v.position) for v in views]
        measured = self.validation_loss if self.training.monitor == "validation-loss" else self.validation_cost

        @torch.no_grad()
        def value() -> float:
            self.method.model.eval()
            return measured(tokens, batch, self.method.forward(batch))

        return value

    def validation_loss(self, tokens: Sequence[str], batch: Batch, logits: Tensor) -> float:
        """The loss of ``logits`` (float32 [n, C]) on the validation items of ``tokens``; their labels stay with the oracle."""
        return self.stream.oracle.monitor(tokens, lambda y: self._scorer.loss(logits, replace(batch, y=y, cache={})))

    def validation_cost(self, tokens: Sequence[str], batch: Batch, logits: Tensor) -> float:
        """Minus the performance of ``logits`` on the validation items of ``tokens``."""
        return -self.stream.oracle.performance(tokens, self._scorer.decode(logits, batch.allowed), batch.allowed)

    # --- evaluation ------------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _evaluate(self, learnt: int) -> _Scores:
        """Ask the queries that can be asked after ``learnt`` tasks, in one pass per message graph."""
        with self.clock.section("evaluation"):
            groups = self.stream.make_queries(learnt)
            if not groups:
                return _Scores()
            answers = self._answers(groups, learnt)
            tested, validated = self.stream.oracle.grade(answers, {g.token: g.query.allowed for g in groups})
            blob = b"".join(a.cpu().numpy().tobytes() for a in answers.values())
        return _Scores(
            rows={self.stream.tasks[j].content: s.accuracy for j, s in tested.items()},
            validation={self.stream.tasks[j].content: s.accuracy for j, s in validated.items()},
            hits=torch.stack([s.hits for s in tested.values()]).sum(0).tolist(),
            counts=torch.stack([s.counts for s in tested.values()]).sum(0).tolist(),
            answers=hashlib.sha256(blob).hexdigest(),
        )

    @torch.no_grad()
    def answers(self) -> list[tuple[QueryGroup, Tensor]]:
        """The query groups after the last task and the decoded answers of the method as it is now; for the analysis of finished runs."""
        groups = self.stream.make_queries(len(self.stream))
        given = self._answers(groups, len(self.stream))
        return [(g, given[g.token]) for g in groups]

    def _answers(self, groups: Sequence[QueryGroup], learnt: int) -> dict[str, Tensor]:
        self.method.model.eval()
        with scope(self.init_seed, "predict", self.draw_names[learnt]):
            return {g.token: answers_of(self._scorer, self.method, self._predicted(g.query), g.query) for g in groups}

    def _predicted(self, query: Batch) -> Tensor:
        """The method's outputs for a query, each item under the batch norm's statistics that are its own."""
        if query.tasks is None or not self.norms.of_task:
            return self.method.predict(query)
        out = torch.empty(len(query), self.stream.n_outputs, device=self.problem.device)
        for k in query.tasks.unique().tolist():
            chosen = (query.tasks == k).nonzero().flatten()
            allowed = query.allowed if query.allowed.dim() == 1 else query.allowed[chosen]
            part = replace(query, ids=query.ids[chosen], tasks=query.tasks[chosen], allowed=allowed, cache={})
            with self.norms.used(k, self.method.model):
                out[chosen] = self.method.predict(part)
        return out

    # --- checkpoints -----------------------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        carried = self.optimizer.state_dict() if self.training.carry_optimizer and self.optimizer is not None else None
        return {"method": method_state.collect(self.method), "optimizer": carried, "norms": self.norms.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        method_state.restore(self.method, state["method"])
        self.norms.restore(state["norms"], self.problem.device)
        if state["optimizer"] is not None:
            self.optimizer = make_optimizer(self.method.model, self.training)
            self.optimizer.load_state_dict(state["optimizer"])

    def _resume(self, checkpoints: Checkpoints, beyond: int = 0) -> list[_Stage]:
        """The stages of the longest prefix of more than ``beyond`` tasks that checkpoints cover in full."""
        for learnt in range(len(self.stream), beyond, -1):
            payload = checkpoints.load(self.prefixes[learnt])
            if payload is not None and (stages := self._completed(payload, learnt, checkpoints)) is not None:
                return stages
        return []

    def _completed(self, payload: dict[str, Any], learnt: int, checkpoints: Checkpoints) -> list[_Stage] | None:
        """The payload's stages with the rows that this order asks and the one that saved them did not, and the method in the payload's
        state; ``None``, and the method as it was, where that needs a state that was not kept."""
        stages = [_Stage(**{**s, "scores": _Scores(**s["scores"])}) for s in payload["stages"]]
        states, lacking = {learnt: payload["state"]}, set[int]()
        for j in range(1, learnt + 1):
            asked = {self.stream.tasks[t].content for g in self.stream.make_queries(j) for t in g.tasks}
            if not asked <= set(stages[j - 1].scores.rows):
                lacking.add(j)
                if j not in states:
                    if (saved := checkpoints.load(self.prefixes[j])) is None:
                        return None
                    states[j] = saved["state"]
        for j in range(1, learnt + 1):
            self._arrive(self.stream.view(j - 1))
            self.stream.forget()
            if j in states:
                self._restore(states.pop(j))
            if j in lacking:
                stages[j - 1] = replace(stages[j - 1], scores=self._evaluate(j))
        return stages

    def _result(self, stages: list[_Stage], resumed: int, trained: Sequence[int]) -> RunResult:
        contents = [facts.content for facts in self.stream.tasks]
        last = stages[-1]
        return RunResult(
            matrix=[[s.scores.rows.get(c, math.nan) for c in contents] for s in stages],
            validation_matrix=[[s.scores.validation.get(c, math.nan) for c in contents] for s in stages],
            per_class=[h / n if n else math.nan for h, n in zip(last.scores.hits, last.scores.counts, strict=True)],
            curves=[s.curve for s in stages[1:]],
            timings_s=last.timings_s,
            memory=last.memory,
            parameters={
                "model": sum(p.numel() for p in self.method.model.parameters()),
                "method": numbers_in(method_state.collect(self.method)["attributes"]),
            },
            fingerprints=[{"state": s.state, "answers": s.scores.answers} for s in stages[1:]],
            resumed_from_task=resumed,
            trained_tasks=len(trained),
            trained_s=math.fsum(stages[k + 1].timings_s["total"] - stages[k].timings_s["total"] for k in trained),
            counters=dict(self.method.counters()),
        )
