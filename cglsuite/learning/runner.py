"""Run a method on any kind of stream: train, predict, score predictions with the oracle and save checkpoints."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from time import monotonic
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from cglsuite.base.hashing import digest
from cglsuite.graphs import MessageGraph
from cglsuite.learning.clock import Clock
from cglsuite.learning.equipment import adapter, answers_of, equip
from cglsuite.learning.loop import OnEpoch, unheard
from cglsuite.learning.method import Method, MethodContext
from cglsuite.learning.reproducibility import state as method_state
from cglsuite.learning.reproducibility.randomness import Draws, scope
from cglsuite.learning.result import Checkpoints, RunResult, Scores, Size, Stage, bytes_in, numbers_in
from cglsuite.specs import TrainingSpec
from cglsuite.streams import Batch, QueryGroup
from cglsuite.streams.stream import Stream

S = TypeVar("S", bound=Stream)
_LARGEST_PASS = 2**20
"""Maximum number of nodes plus edges per batched pass. Passes of this size keep an accelerator busy, and larger ones use more memory."""

Claim = Callable[[str], AbstractContextManager[bool]]
"""Maps a prefix to a context manager that waits until no other runner is training it, and yields whether it still needs training."""


@contextmanager
def unclaimed(prefix: str) -> Iterator[bool]:
    """Grant every claim. This is for a runner that shares no tasks with others."""
    yield True


class Runner(ABC, Generic[S]):
    """Runs one method on a stream in stages. Each stage ends with an evaluation, and the first stage precedes all training.

    Args:
        stream: the stream, which only the runner can access.
        make_method: creates the method from its context.
        build_model: creates a model with random weights. Called within the runner's random scopes.
        hyperparameters: the method's resolved hyperparameters.
        training: the resolved training protocol.
        init_seed: the seed of all the method's randomness.
        identity: identifies everything that determines the result, except the stream's content. It is part of every prefix key.
        past_views: whether the method declared that it needs earlier views.
        on_task: called with the number of tasks learnt, to report progress.
    """

    def __init__(
        self,
        stream: S,
        make_method: Callable[[MethodContext], Method],
        build_model: Callable[[], Any],
        *,
        hyperparameters: dict[str, Any],
        training: TrainingSpec,
        init_seed: int,
        identity: str,
        past_views: bool = False,
        device: str = "cpu",
        on_task: Callable[[int], None] = lambda k: None,
    ) -> None:
        self.stream, self.training, self.init_seed, self.identity = stream, training, init_seed, identity
        self.past_views, self.on_task, self.clock, self.build_model = past_views, on_task, Clock(), build_model
        self.on_epoch: OnEpoch = unheard
        """Called after every epoch. For task-free streams, called after every step and every epoch of an upper bound's offline training."""
        self.prefixes = self._prefix_keys()
        """The key of each stage's state."""
        self.draw_names = self._draw_names()
        """The name of each stage's random draws. It depends only on the stream's content, not on code or hyperparameters."""
        self._draws = Draws(init_seed, self._first_draws())
        sizes = list[Size]()
        """The sizes of the models as built. Parameters that a method adds later count as the method's."""

        def measured() -> Any:  # closes over no runner: a method holds it
            model = build_model()
            sizes[:] = [Size.of(model)]
            return model

        self._sizes = sizes
        self._query_names = dict[tuple[int, ...], str]()
        self.problem, self.method = equip(stream, make_method, measured, hyperparameters, training, self._draws, device)
        self._scorer = adapter(stream, training, device)  # separate, so that methods cannot affect scores
        self._equip()

    # --- differences between kinds of streams -----------------------------------------------------------------------------------

    @abstractmethod
    def _prefix_keys(self) -> list[str]:
        """See :attr:`prefixes`."""

    @abstractmethod
    def _draw_names(self) -> list[str]:
        """See :attr:`draw_names`."""

    def _first_draws(self) -> str:
        """Return the name of the draws that a method makes before the stream starts."""
        return self.draw_names[0]

    @abstractmethod
    def _equip(self) -> None:
        """Create the remaining components needed for training."""

    @abstractmethod
    def _advance(self, k: int) -> tuple[dict[str, Any], bool]:
        """Train from stage ``k`` to ``k + 1``. Return the training curve and whether to evaluate afterwards."""

    @abstractmethod
    def _queries(self, k: int) -> list[QueryGroup]:
        """Return the queries of stage ``k``."""

    @abstractmethod
    def _begin(self, checkpoints: Checkpoints | None) -> list[Stage]:
        """Return the first stage and the stages covered by checkpoints, and restore the method's state after the last one."""

    @abstractmethod
    def _covered(self, checkpoints: Checkpoints, beyond: int) -> list[Stage]:
        """Return the stages up to the last one after ``beyond`` that checkpoints fully cover, and restore the method's state after it.

        If there is no such stage, return an empty list and leave the method unchanged.
        """

    @abstractmethod
    def _tasks(self, k: int) -> int:
        """Return the number of tasks at stage ``k``, for progress reports."""

    def _predicted(self, query: Batch) -> Tensor:
        """Compute the method's outputs for a query: float32 [n, C]."""
        return self.method.predict(query)

    # --- the run ---------------------------------------------------------------------------------------------------------------

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

        Args:
            keep: length of the task prefix shared with other orders. The states after these tasks are all kept. Of the later states, only
                the latest is kept.
            last: also keep the state after the last task, for further analyses.
            claim: prevents two runners from training the same shared task.
            every_s: minimum time between saved states beyond the shared prefix, in seconds. A state is saved after the first stage that
                ends this long after the previous save, which limits the work lost if the run is interrupted. 0 = after every stage.
        """
        saved_at = monotonic()  # before an upper bound's offline training
        stages = self._begin(checkpoints)
        end, resumed, trained = len(self.prefixes) - 1, len(stages) - 1, list[int]()
        self.on_task(self._tasks(resumed))
        held = resumed  # the last stage with a saved state
        while (k := len(stages) - 1) < end:
            with claim(self.prefixes[k + 1]) if k < keep else unclaimed("") as mine:
                theirs = [] if mine or checkpoints is None else self._covered(checkpoints, k)
                if theirs:
                    stages[1:] = theirs[1:]
                    latest = len(stages) - 1
                else:
                    stages.append(self._stage(k, stages[-1]))
                    trained.append(k)
                    due = k < keep or (last if k + 1 == end else monotonic() - saved_at >= every_s)
                    if checkpoints is not None and due:
                        self._save(checkpoints, stages)
                    latest = k + 1 if due else held
            if latest != held:
                saved_at = monotonic()
            if checkpoints is not None and held > keep and (latest != held or len(stages) > end):
                checkpoints.drop(self.prefixes[held])
            held = latest
            self.on_task(self._tasks(len(stages) - 1))
        return self._result(stages, resumed, trained)

    def _save(self, checkpoints: Checkpoints, stages: Sequence[Stage]) -> None:
        """Save the state after the last of ``stages``. The time for saving counts towards that stage."""
        before = self.clock.seconds["checkpoints"]
        with self.clock.section("checkpoints"):
            checkpoints.save(self.prefixes[len(stages) - 1], {"state": self._state(), "stages": [s.payload() for s in stages]})
        spent, timings = self.clock.seconds["checkpoints"] - before, stages[-1].timings_s
        timings |= {name: timings[name] + spent for name in ("checkpoints", "total")}

    def _first_stage(self) -> Stage:
        fingerprint, scores = self._asked(0)
        return Stage(scores=scores, curve={}, timings_s=self.clock.reading(), memory=self.method.memory.usage(), state=fingerprint)

    def _stage(self, k: int, before: Stage) -> Stage:
        """Advance from stage ``k`` to the next one."""
        started = self.clock.reading()
        curve, learnt = self._advance(k)
        fingerprint, scores = self._asked(k + 1) if learnt else ("", Scores())
        now = self.clock.reading()
        return Stage(
            scores=scores,
            curve=curve,
            timings_s={s: before.timings_s.get(s, 0.0) + now[s] - started[s] for s in now},
            memory=self.method.memory.usage(),
            state=fingerprint,
        )

    # --- evaluation ------------------------------------------------------------------------------------------------------------

    def _asked(self, k: int) -> tuple[str, Scores]:
        """Return the fingerprint of the method's state and the scores of stage ``k``, and check that evaluation does not change the
        state."""
        with method_state.untouched(self.method, self._draws) as fingerprint:
            scores = self._evaluate(k)
        return fingerprint, scores

    @torch.no_grad()
    def _evaluate(self, k: int) -> Scores:
        """Score the method's predictions for the queries of stage ``k``."""
        with self.clock.section("evaluation"):
            groups = self._queries(k)
            if not groups:
                return Scores()
            answers = self._answers(groups, k)
            tested, validated = self.stream.oracle.grade(answers, {g.token: g.query.allowed for g in groups})
            blob = torch.cat(list(answers.values())).cpu().numpy().tobytes()
        contents = [facts.content for facts in self.stream.tasks]
        return Scores(
            rows={contents[j]: s.performance for j, s in tested.items()},
            validation={contents[j]: s.performance for j, s in validated.items()},
            hits=torch.stack([s.hits for s in tested.values()]).sum(0).tolist(),
            counts=torch.stack([s.counts for s in tested.values()]).sum(0).tolist(),
            answers=hashlib.sha256(blob).hexdigest(),
        )

    @torch.no_grad()
    def answers(self) -> list[tuple[QueryGroup, Tensor]]:
        """Return the final query groups with the method's decoded predictions, for analysing finished runs."""
        end = len(self.prefixes) - 1
        groups = self._queries(end)
        given = self._answers(groups, end)
        return [(g, given[g.token]) for g in groups]

    def _answers(self, groups: Sequence[QueryGroup], k: int) -> dict[str, Tensor]:
        self.method.model.eval()
        answers, met = dict[str, Tensor](), dict[str, int]()
        with scope(self.init_seed, "predict", self.draw_names[k]):
            for group, *others in self._passes(groups):
                if others:
                    answers |= self._answers_together([group, *others])
                    continue
                asked = self._query_name(group.tasks)
                met[asked] = met.get(asked, 0) + 1
                with self._draws.predicting(self.draw_names[k], asked, str(met[asked])):
                    outputs = self._predicted(group.query)
                answers[group.token] = answers_of(self._scorer, self.method, outputs, group.query)
        return answers

    def _passes(self, groups: Sequence[QueryGroup]) -> list[list[QueryGroup]]:
        """Assign the groups to forward passes. On an accelerator, small graphs share a pass if this cannot change a prediction.

        This requires that outputs depend only on a node's neighbourhood. On a CPU, batching gains little or is slower, and the rounding of
        a matrix product may depend on its number of rows.
        """
        if self.problem.device.type == "cpu" or len(groups) < 2 or not self._answers_by_model():
            return [[group] for group in groups]
        passes, size = list[list[QueryGroup]](), 0
        for group in groups:
            graph = group.query.graph
            own = graph.n_nodes + graph.n_edges if type(graph) is MessageGraph else _LARGEST_PASS
            if passes and size + own <= _LARGEST_PASS:
                passes[-1].append(group)
                size += own
            else:
                passes.append([group])
                size = own
        return passes

    def _answers_by_model(self) -> bool:
        """Return whether predictions are the model's plain outputs, which do not depend on the other queries."""
        method = self.method
        own = {"predict", "forward"} & vars(method).keys()
        plain = type(method).predict is Method.predict and type(method).forward is Method.forward and not own
        return plain and getattr(method.model, "hops", None) is not None

    def _answers_together(self, groups: Sequence[QueryGroup]) -> dict[str, Tensor]:
        """Predict several groups in one pass. Return the predictions by token."""
        query = self.problem.together([group.query for group in groups])
        given = answers_of(self._scorer, self.method, self._predicted(query), query)
        return dict(zip((group.token for group in groups), given.split([len(group.query) for group in groups]), strict=True))

    def _query_name(self, tasks: tuple[int, ...]) -> str:
        """Name a query by its content rather than its position, so that a method's draws do not depend on future tasks."""
        if tasks not in self._query_names:
            self._query_names[tasks] = digest(sorted(self.stream.tasks[j].content for j in tasks))
        return self._query_names[tasks]

    # --- checkpoints and the result --------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {
            "method": method_state.collect(self.method),
            "draws": {"prefix": self._draws.prefix, "generators": self._draws.state()},
        }

    def _restore(self, state: dict[str, Any]) -> None:
        method_state.restore(self.method, state["method"])
        self._draws.load_state(state["draws"]["prefix"], state["draws"]["generators"])

    def _parameters(self) -> dict[str, int]:
        attributes, whole = method_state.collect(self.method)["attributes"], Size.of(self.method.model)
        built = self._sizes[0] if self._sizes else whole
        return {
            "model": built.parameters,
            "method": numbers_in(attributes) + max(0, whole.parameters - built.parameters),
            "method_bytes": bytes_in(attributes) + max(0, whole.bytes - built.bytes),
        }

    def _result(self, stages: Sequence[Stage], resumed: int, trained: Sequence[int]) -> RunResult:
        contents = [facts.content for facts in self.stream.tasks]
        last = stages[-1]
        trained_s = math.fsum(stages[k + 1].timings_s["total"] - stages[k].timings_s["total"] for k in trained)
        return RunResult(
            matrix=[[s.scores.rows.get(c, math.nan) for c in contents] for s in stages],
            validation_matrix=[[s.scores.validation.get(c, math.nan) for c in contents] for s in stages],
            per_class=[h / n if n else math.nan for h, n in zip(last.scores.hits, last.scores.counts, strict=True)],
            curves=[s.curve for s in stages[1:]],
            timings_s=last.timings_s,
            memory=last.memory,
            parameters=self._parameters(),
            fingerprints=[{"state": s.state, "answers": s.scores.answers} for s in stages[1:]],
            resumed_from_task=self._tasks(resumed),
            trained_tasks=sum(self._tasks(k + 1) - self._tasks(k) for k in trained),
            trained_s=trained_s,
            covered_s=max(0.0, last.timings_s["total"] - trained_s) if resumed else 0.0,
            counters=dict(self.method.counters()),
        )
