"""Run one method over a task-free stream: one pass over the batches, evaluations along the way."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from cglsuite.errors import DivergenceError, NotApplicable
from cglsuite.graphs import GraphSet
from cglsuite.graphs.sampling import sample_neighbours
from cglsuite.hashing import digest
from cglsuite.learning import state as method_state
from cglsuite.learning.clock import Clock
from cglsuite.learning.equipment import Draws, adapter, answers_of, equip
from cglsuite.learning.loop import fit, make_optimizer, train_step
from cglsuite.learning.method import Method, MethodContext
from cglsuite.learning.randomness import generator, scope
from cglsuite.learning.result import Checkpoints, RunResult, numbers_in
from cglsuite.specs import TrainingSpec
from cglsuite.streams import Batch, BatchStream

__all__ = ["OnlineRunner"]


@dataclass(kw_only=True)
class _Stage:
    """What was known after an evaluation: scores by latent task, loss per step so far, times, memory, fingerprints."""

    row: list[float]
    hits: list[float]
    counts: list[float]
    loss: list[float]
    timings_s: dict[str, float]
    memory: dict[str, int | None]
    state: str
    answers: str
    validation: list[float] = field(default_factory=list)
    """After the last step only."""


class OnlineRunner:
    """Drives one method over a stream of batches; the arguments are those of :class:`cglsuite.learning.runner.StreamRunner`.

    Every batch is learnt for ``training.epochs`` steps. A method that declared the need ``past-views`` (an upper bound) learns all
    training items offline before the first evaluation, for as many passes as its ``offline_epochs`` says.
    """

    def __init__(
        self,
        stream: BatchStream,
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
        self.stream, self.training, self.init_seed = stream, training, init_seed
        self.offline, self.on_task, self.clock = past_views, on_task, Clock()
        self._draws = Draws(init_seed, "start")
        self.problem, self.method = equip(stream, make_method, build_model, settings, training, self._draws, device)
        self._scorer = adapter(stream, training, device)  # no method holds it
        self.optimizer = make_optimizer(self.method.model, training)
        key = [identity, stream.content, stream.spec.memory_budget]
        self.prefixes = [digest([*key, made]) for made in stream.evaluations]

    # --- the run ---------------------------------------------------------------------------------------------------------------

    def run(self, checkpoints: Checkpoints | None = None, **_: Any) -> RunResult:
        """Learn what no checkpoint covers, and return the curve."""
        stages = self._resume(checkpoints) if checkpoints is not None else []
        if not stages:
            if self.offline:
                self._learn_offline()
            stages.append(self._stage(0, None, []))
        resumed = len(stages) - 1
        self._report(resumed)
        for e in range(resumed + 1, len(self.stream.evaluations)):
            loss = [] if self.offline else self._segment(self.stream.evaluations[e - 1], self.stream.evaluations[e])
            stages.append(self._stage(e, stages[-1], loss))
            if checkpoints is not None:
                payload = {"method": method_state.collect(self.method), "optimizer": self.optimizer.state_dict()}
                checkpoints.save(self.prefixes[e], {"state": payload, "stages": [asdict(s) for s in stages]})
                checkpoints.drop(self.prefixes[e - 1])
            self._report(e)
        if checkpoints is not None:
            checkpoints.drop(self.prefixes[-1])
        return self._result(stages, resumed)

    def _report(self, evaluation: int) -> None:
        """Progress in units of latent tasks, which is what a caller counts in."""
        self.on_task(evaluation * len(self.stream) // max(1, len(self.stream.evaluations) - 1))

    def _segment(self, start: int, stop: int) -> list[float]:
        """Learn the batches from ``start`` up to ``stop``; the mean loss of each step."""
        method, losses = self.method, []
        neighbours = generator(self.init_seed, "neighbours", str(start))
        with scope(self.init_seed, "learn", f"step {start}"), self.clock.section("training"):
            method.model.train()
            for step in range(start, stop):
                self._draws.prefix = f"step {step}"
                batch = self._arrived(self.stream.make_batch(step), neighbours)
                with self.clock.section("method"):
                    method.before_batch(batch)
                taken = [train_step(method, batch, self.optimizer, self.clock) for _ in range(self.training.epochs)]
                losses.append(float(taken[0] if len(taken) == 1 else torch.stack(taken).mean()))
                if not math.isfinite(losses[-1]):
                    raise DivergenceError(f"the loss became {losses[-1]} at step {step + 1}: lower training.lr or the method's weights")
                with self.clock.section("method"):
                    method.after_batch(batch)
        return losses

    def _arrived(self, batch: Batch, neighbours: torch.Generator) -> Batch:
        """The batch as the method meets it: in its sampled neighbourhood, or with graphs augmented where the dataset says so."""
        self.problem.current = batch.allowed
        if isinstance(batch.graph, GraphSet):
            self.problem.like = batch.graph
            return replace(batch, graph=batch.graph.epoch(0))
        if not self.training.fan_out:
            return batch
        graph, ids = sample_neighbours(batch.graph, batch.ids, self.training.fan_out, neighbours)
        return replace(batch, graph=graph, ids=ids)

    def _learn_offline(self) -> None:
        """All training items, again and again, as one task."""
        settings = self.method.settings
        if "offline_epochs" not in settings:
            raise NotApplicable(f"{type(self.method).__name__} needs all data and does not say how it learns them offline (offline_epochs)")
        batch = self.stream.everything()
        self.problem.current = batch.allowed
        draws = generator(self.init_seed, "batches", "offline")
        batches = self.problem.passes([batch], settings["offline_batch"], draws)
        with scope(self.init_seed, "learn", "offline"), self.clock.section("training"):
            fit(self.method, batches, self.training, self.optimizer, epochs=settings["offline_epochs"], monitor=None, clock=self.clock)

    # --- evaluation ------------------------------------------------------------------------------------------------------------

    def _stage(self, evaluation: int, before: _Stage | None, loss: list[float]) -> _Stage:
        with method_state.untouched(self.method) as fingerprint:
            scored = self._evaluate(self.stream.evaluations[evaluation])
        return _Stage(
            **scored,
            loss=[*(before.loss if before else []), *loss],
            timings_s=self.clock.reading(),
            memory=self.method.memory.usage(),
            state=fingerprint,
        )

    @torch.no_grad()
    def _evaluate(self, made: int) -> dict[str, Any]:
        with self.clock.section("evaluation"):
            groups = self.stream.make_queries(made)
            self.method.model.eval()
            with scope(self.init_seed, "predict", f"step {made}"):
                answers: dict[str, Tensor] = {
                    g.token: answers_of(self._scorer, self.method, self.method.predict(g.query), g.query) for g in groups
                }
            tested, validated = self.stream.oracle.grade(answers, {g.token: g.query.allowed for g in groups})
            blob = b"".join(a.cpu().numpy().tobytes() for a in answers.values())
        tasks = range(len(self.stream))
        return {
            "row": [tested[k].accuracy if k in tested else math.nan for k in tasks],
            "validation": [validated[k].accuracy if k in validated else math.nan for k in tasks] if validated else [],
            "hits": torch.stack([s.hits for s in tested.values()]).sum(0).tolist(),
            "counts": torch.stack([s.counts for s in tested.values()]).sum(0).tolist(),
            "answers": hashlib.sha256(blob).hexdigest(),
        }

    # --- checkpoints and the result --------------------------------------------------------------------------------------------

    def _resume(self, checkpoints: Checkpoints) -> list[_Stage]:
        """The stages up to the last evaluation that a checkpoint covers."""
        for e in range(len(self.prefixes) - 1, 0, -1):
            payload = checkpoints.load(self.prefixes[e])
            if payload is not None:
                if isinstance((first := self.stream.make_batch(0)).graph, GraphSet):
                    self.problem.like = first.graph
                method_state.restore(self.method, payload["state"]["method"])
                self.optimizer = make_optimizer(self.method.model, self.training)
                self.optimizer.load_state_dict(payload["state"]["optimizer"])
                stages = [_Stage(**s) for s in payload["stages"]]
                self.clock.seconds |= {k: v for k, v in stages[-1].timings_s.items() if k != "total"}
                for prefix in self.prefixes[:e]:  # what an interrupted run left behind
                    checkpoints.drop(prefix)
                return stages
        return []

    def _result(self, stages: list[_Stage], resumed: int) -> RunResult:
        last = stages[-1]
        return RunResult(
            matrix=[s.row for s in stages],
            validation_matrix=[*([math.nan] * len(self.stream) for _ in stages[1:]), last.validation],
            per_class=[h / n if n else math.nan for h, n in zip(last.hits, last.counts, strict=True)],
            curves=[{"task": 1, "loss": last.loss, "monitor": [], "best_epoch": self.stream.n_steps - 1}],
            timings_s=last.timings_s,
            memory=last.memory,
            parameters={
                "model": sum(p.numel() for p in self.method.model.parameters()),
                "method": numbers_in(method_state.collect(self.method)["attributes"]),
            },
            fingerprints=[{"state": s.state, "answers": s.answers} for s in stages[1:]],
            resumed_from_task=0,
            trained_tasks=len(self.stream),
            stream={
                "evaluations": list(self.stream.evaluations),
                "delivered": self.stream.delivered(),
                "exposure": self.stream.exposure(),
                "content": self.stream.content,
                "resumed_from_evaluation": resumed,
            },
            counters=dict(self.method.counters()),
        )
