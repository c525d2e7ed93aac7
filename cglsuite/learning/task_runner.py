"""Run a method on a stream of tasks. Supports states shared between task orders, growing heads and per-task norm statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from cglsuite.backbones.growth import redraw_outputs
from cglsuite.base.hashing import digest
from cglsuite.learning.loop import Curve, fit, make_optimizer
from cglsuite.learning.method import Phase
from cglsuite.learning.norms import NormStatistics
from cglsuite.learning.reproducibility.randomness import generator, scope
from cglsuite.learning.result import Checkpoints, Stage
from cglsuite.learning.runner import Runner
from cglsuite.streams import Batch, QueryGroup, TaskStream, TaskView


class TaskRunner(Runner[TaskStream]):
    """Runs one method on a stream of tasks. See :class:`~cglsuite.learning.runner.Runner` for the arguments.

    With ``past_views``, every view contains the views of all earlier tasks.
    """

    def _equip(self) -> None:
        self.optimizer: torch.optim.Optimizer | None = None
        self.norms = NormStatistics(self.training.norm_statistics)
        if self.stream.spec.head == "growing":  # raise now, before training, if the head cannot grow
            redraw_outputs(self.method.model, self.method.model, torch.zeros_like(self.stream.task_outputs[0]))

    def _prefix_keys(self) -> list[str]:
        return self._chain(self.identity, len(self.stream), self.stream.n_outputs, self.stream.spec.memory_budget)

    def _draw_names(self) -> list[str]:
        return self._chain(len(self.stream), self.stream.n_outputs)

    def _chain(self, *start: Any) -> list[str]:
        """Return a key for each number of learnt tasks, derived from ``start`` and the content of those tasks."""
        chain = [digest(start)]
        for facts in self.stream.tasks:
            chain.append(digest([chain[-1], facts.content]))
        return chain

    def _tasks(self, k: int) -> int:
        return k

    def _queries(self, k: int) -> list[QueryGroup]:
        return self.stream.make_queries(k)

    # --- a task ----------------------------------------------------------------------------------------------------------------

    def _advance(self, k: int) -> tuple[dict[str, Any], bool]:
        prefix = self.draw_names[k + 1]
        self._draws.begin(prefix)
        view = self._view(k)
        self._arrive(view)
        if self.stream.spec.head == "growing" and k > 0:
            self._grow(k, prefix)
        with scope(self.init_seed, "learn", prefix):
            curve, learnt = self._learn(view)
        self.stream.forget()
        return {"task": k + 1, **asdict(curve)}, learnt

    def _view(self, k: int) -> TaskView:
        view = self.stream.view(k)
        return replace(view, past=tuple(self.stream.view(j, k) for j in range(k))) if self.past_views else view

    def _arrive(self, view: TaskView) -> None:
        self.problem.arrive(view)
        self._scorer.arrive(view)

    def _grow(self, k: int, prefix: str) -> None:
        """Initialise the outputs that arrive with task ``k``, before the optimiser is created."""
        table = self.stream.task_outputs
        with scope(self.init_seed, "head", prefix):
            arriving = table[k] & ~table[:k].any(dim=0)
            redraw_outputs(self.method.model, self.build_model(), arriving, self.optimizer)

    def _learn(self, view: TaskView) -> tuple[Curve, bool]:
        """Train on a task. Return the training curve and whether the task was trained. A task that a method skips is not evaluated
        either."""
        method, clock = self.method, self.clock
        with clock.section("method"):
            method.model.train()
            method.before_task(view)
            self.norms.begin(method.model)
        views = method.training_views(view)
        # Separate draws, so that all methods see the same batches.
        batches = self.problem.epochs(views, generator(self.init_seed, "batches", self._draws.prefix))
        curve, rounds = Curve(), 0
        for phase in method.phases(view):
            rounds += 1
            optimizer = self._optimizer(phase)
            monitor = self._monitor(views, view.position) if self.training.monitor != "none" else None
            epochs = math.ceil(phase.share * self.training.epochs)
            with clock.section("training"):
                part = fit(
                    method,
                    batches,
                    self.training,
                    optimizer,
                    epochs=epochs,
                    monitor=monitor,
                    clock=clock,
                    train_mode=self.norms.train,
                    on_epoch=self.on_epoch,
                    phase=phase,
                )
            curve = Curve(loss=curve.loss + part.loss, monitor=curve.monitor + part.monitor, best_epoch=len(curve.loss) + part.best_epoch)
        with clock.section("method"):
            method.model.eval()
            self.norms.end(view.position, method.model)
            method.after_task(view)
        return curve, rounds > 0

    def _optimizer(self, phase: Phase) -> torch.optim.Optimizer:
        """Return the previous optimiser if the protocol keeps it and the method still has the same parameters, or else a new one.

        A phase that defines its own parameters gets a separate optimiser, which is not reused later.
        """
        if phase.parameters is not None:
            return make_optimizer([{"params": list(phase.parameters)}], self.training)
        groups = list(self.method.parameter_groups())
        if self.training.carry_optimizer and self.optimizer is not None:
            held = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
            if held == {id(p) for group in groups for p in group["params"]}:
                return self.optimizer
        self.optimizer = make_optimizer(groups, self.training)
        return self.optimizer

    def _monitor(self, views: Sequence[TaskView], stage: int) -> Callable[[], float]:
        """Return a function that computes the monitored value: the validation loss or the negated validation performance on the views'
        tasks."""
        batch = self.problem.batch(views, "validation")
        tokens = [self.stream.validation_token(v.position, stage) for v in views]
        measured = self.validation_loss if self.training.monitor == "validation-loss" else self.validation_cost

        @torch.no_grad()
        def value() -> float:
            self.method.model.eval()
            return measured(tokens, batch, self.method.forward(batch))

        return value

    def validation_loss(self, tokens: Sequence[str], batch: Batch, logits: Tensor) -> float:
        """Compute the loss of ``logits`` (float32 [n, C]) on the validation items of ``tokens``. Only the oracle accesses the labels."""
        return self.stream.oracle.monitor(tokens, lambda y: self._scorer.loss(logits, replace(batch, y=y, cache={})))

    def validation_cost(self, tokens: Sequence[str], batch: Batch, logits: Tensor) -> float:
        """Compute the negated performance of ``logits`` (float32 [n, C]) on the validation items of ``tokens``."""
        return -self.stream.oracle.performance(tokens, self._scorer.decode(logits, batch.allowed), batch.allowed)

    def _predicted(self, query: Batch) -> Tensor:
        """Compute the method's outputs for a query, normalising each item with the batch-norm statistics of its task."""
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

    def _answers_by_model(self) -> bool:
        return super()._answers_by_model() and not self.norms.of_task

    # --- checkpoints -----------------------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        carried = self.optimizer.state_dict() if self.training.carry_optimizer and self.optimizer is not None else None
        return super()._state() | {"optimizer": carried, "norms": self.norms.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.norms.restore(state["norms"], self.problem.device)
        if state["optimizer"] is not None:
            self.optimizer = make_optimizer(self.method.parameter_groups(), self.training)
            self.optimizer.load_state_dict(state["optimizer"])

    def _begin(self, checkpoints: Checkpoints | None) -> list[Stage]:
        first = self._first_stage()  # of this order, regardless of the run that saved a state
        covered = self._covered(checkpoints, 0) if checkpoints is not None else []
        return [first, *covered[1:]]

    def _covered(self, checkpoints: Checkpoints, beyond: int) -> list[Stage]:
        for learnt in range(len(self.stream), beyond, -1):
            payload = checkpoints.load(self.prefixes[learnt])
            if payload is not None and (stages := self._completed(payload, learnt, checkpoints)) is not None:
                return stages
        return []

    def _completed(self, payload: dict[str, Any], learnt: int, checkpoints: Checkpoints) -> list[Stage] | None:
        """Restore the payload's state and return its stages, adding the rows that only this order evaluates.

        If a required state was not saved, return ``None`` and leave the method unchanged.
        """
        stages = [Stage.from_payload(s) for s in payload["stages"]]
        states, lacking = {learnt: payload["state"]}, set[int]()
        for j in range(1, learnt + 1):
            asked = {self.stream.tasks[t].content for g in self.stream.make_queries(j) for t in g.tasks}
            if not asked <= set(stages[j].scores.rows):
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
                stages[j] = replace(stages[j], scores=self._evaluate(j))
        return stages
