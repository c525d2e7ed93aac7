"""Run a method on a task-free stream in one pass over the batches. Each evaluation ends a stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from cglsuite.base.errors import DivergenceError, NotApplicable
from cglsuite.base.hashing import digest
from cglsuite.graphs import GraphSet
from cglsuite.graphs.sampling import sample_neighbours
from cglsuite.learning.loop import fit, make_optimizer, train_step
from cglsuite.learning.reproducibility.randomness import generator, scope
from cglsuite.learning.result import Checkpoints, RunResult, Stage
from cglsuite.learning.runner import Claim, Runner, unclaimed
from cglsuite.streams import Batch, QueryGroup, TaskFreeStream
from cglsuite.streams.views import on_host


class TaskFreeRunner(Runner[TaskFreeStream]):
    """Runs one method on a task-free stream. See :class:`~cglsuite.learning.runner.Runner` for the arguments.

    The method takes ``training.epochs`` optimiser steps on each batch. With ``past_views`` (an upper bound), it instead trains offline on
    all training items for ``offline_epochs`` epochs, before the first evaluation.
    """

    def _equip(self) -> None:
        self.optimizer = make_optimizer(self.method.parameter_groups(), self.training)

    def _prefix_keys(self) -> list[str]:
        key = [self.identity, self.stream.content, self.stream.spec.memory_budget]
        return [digest([*key, made]) for made in self.stream.evaluations]

    def _draw_names(self) -> list[str]:
        return [f"step {made}" for made in self.stream.evaluations]

    def _first_draws(self) -> str:
        return "start"

    def _tasks(self, k: int) -> int:
        """Return the number of latent tasks that corresponds to evaluation ``k``, because callers count in tasks."""
        return k * len(self.stream) // max(1, len(self.stream.evaluations) - 1)

    def _queries(self, k: int) -> list[QueryGroup]:
        return self.stream.make_queries(self.stream.evaluations[k])

    def run(
        self,
        checkpoints: Checkpoints | None = None,
        *,
        keep: int = 0,
        last: bool = True,
        claim: Claim = unclaimed,
        every_s: float = 0.0,
    ) -> RunResult:
        """Train the stages that no checkpoint covers, and return the results of all stages.

        All saved states are removed at the end, because no other stream shares these steps and a finished stream has no further queries.
        """
        return super().run(checkpoints, last=False, every_s=every_s)

    # --- steps -----------------------------------------------------------------------------------------------------------------

    def _advance(self, k: int) -> tuple[dict[str, Any], bool]:
        return {"loss": [] if self.past_views else self._steps(self.stream.evaluations[k], self.stream.evaluations[k + 1])}, True

    def _steps(self, start: int, stop: int) -> list[float]:
        """Train on the batches from ``start`` to ``stop`` (exclusive) and return the mean loss of each step."""
        method, losses = self.method, []
        neighbours = generator(self.init_seed, "neighbours", str(start))
        with scope(self.init_seed, "learn", f"step {start}"), self.clock.section("training"):
            method.model.train()
            for step in range(start, stop):
                self._draws.begin(f"step {step}")
                batch = self._arrived(self.stream.make_batch(step), neighbours)
                with self.clock.section("method"):
                    method.before_batch(batch)
                taken = [train_step(method, batch, self.optimizer, self.clock) for _ in range(self.training.epochs)]
                losses.append(float(taken[0] if len(taken) == 1 else torch.stack(taken).mean()))
                if not math.isfinite(losses[-1]):
                    raise DivergenceError(f"the loss became {losses[-1]} at step {step + 1}: lower training.lr or the method's weights")
                with self.clock.section("method"):
                    method.after_batch(batch)
                self.on_epoch(losses[-1], None)
        return losses

    def _arrived(self, batch: Batch, neighbours: torch.Generator) -> Batch:
        """Return the batch as the method receives it: in its sampled neighbourhood, or with graphs that the dataset has augmented."""
        self.problem.current = batch.allowed
        if isinstance(batch.graph, GraphSet):
            self.problem.like = batch.graph.epoch(0)
            return replace(batch, graph=self.problem.like)
        if not self.training.fan_out:
            return batch
        graph, ids = sample_neighbours(batch.graph, on_host(batch, batch.ids), self.training.fan_out, neighbours)
        return replace(batch, graph=graph, ids=ids)

    def _learn_offline(self) -> None:
        """Train on all items for several epochs, as a single task."""
        hyperparameters = self.method.hyperparameters
        if "offline_epochs" not in hyperparameters:
            raise NotApplicable(
                f"{type(self.method).__name__} trains offline on all data, so it must declare the hyperparameter offline_epochs"
            )
        batch = self.stream.everything()
        self.problem.current = batch.allowed
        draws = generator(self.init_seed, "batches", "offline")
        batches = self.problem.passes(batch, hyperparameters["offline_batch"], draws)
        with scope(self.init_seed, "learn", "offline"), self.clock.section("training"):
            fit(
                self.method,
                batches,
                self.training,
                self.optimizer,
                epochs=hyperparameters["offline_epochs"],
                monitor=None,
                clock=self.clock,
                on_epoch=self.on_epoch,
            )

    # --- checkpoints and the result --------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"optimizer": self.optimizer.state_dict()}

    def _restore(self, state: dict[str, Any]) -> None:
        if isinstance(graph := self.stream.make_batch(0).graph, GraphSet):
            self.problem.like = graph.epoch(0)  # stored items are rebuilt as they were seen in training
        super()._restore(state)
        self.optimizer = make_optimizer(self.method.parameter_groups(), self.training)
        self.optimizer.load_state_dict(state["optimizer"])

    def _begin(self, checkpoints: Checkpoints | None) -> list[Stage]:
        covered = self._covered(checkpoints, 0) if checkpoints is not None else []
        if checkpoints is not None and covered:
            for prefix in self.prefixes[: len(covered) - 1]:  # checkpoints of an interrupted run
                checkpoints.drop(prefix)
        elif self.past_views:
            self._learn_offline()
        return covered or [self._first_stage()]

    def _covered(self, checkpoints: Checkpoints, beyond: int) -> list[Stage]:
        for k in range(len(self.prefixes) - 1, beyond, -1):
            if (payload := checkpoints.load(self.prefixes[k])) is not None:
                self._restore(payload["state"])
                return [Stage.from_payload(s) for s in payload["stages"]]
        return []

    def _result(self, stages: Sequence[Stage], resumed: int, trained: Sequence[int]) -> RunResult:
        result, offline_s = super()._result(stages, resumed, trained), stages[0].timings_s["total"] if self.past_views else 0.0
        if self.past_views:  # trained before the first stage, here or in the interrupted run
            result = replace(result, resumed_from_task=len(self.stream) if resumed else 0, trained_tasks=0 if resumed else len(self.stream))
        return replace(
            result,
            trained_s=result.trained_s + (0.0 if resumed else offline_s),
            curves=[
                {
                    "task": 1,
                    "loss": [loss for stage in stages[1:] for loss in stage.curve["loss"]],
                    "monitor": [],
                    "best_epoch": self.stream.n_steps - 1,
                }
            ],
            stream={
                "evaluations": list(self.stream.evaluations),
                "delivered": self.stream.delivered(),
                "exposure": self.stream.exposure(),
                "content": self.stream.content,
                "resumed_from_evaluation": resumed,
            },
        )
