"""Forgetting and drift: how much an old task loses because the graph around it has grown, and how much because weights have changed.

Where edges are ``inter-task`` or ``snapshot``, or queries see the edges between tasks, the graph of an old query grows with every task. A
score can then fall without any change of the model.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from cglsuite.base.errors import NotApplicable
from cglsuite.base.traces import random_state_restored
from cglsuite.cells.run import build_stream, make_runner, numerics
from cglsuite.learning.reproducibility import state as method_state
from cglsuite.specs.scenario import EDGE_POLICIES
from cglsuite.streams import TaskFreeStream

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue
    from cglsuite.specs import ScenarioSpec
    from cglsuite.streams import QueryGroup, TaskStream


@dataclass(frozen=True, kw_only=True, eq=False)
class ForgettingSplit:
    """The forgetting of one cell in two parts, in the unit of its performance; positive = forgetting.

    Args:
        matrix: float64 [T + 1, T], the performance matrix M of the cell; row 0 is the untrained model.
        later: float64 [T, T], ``later[k, j]`` is the performance on task j of the weights after task k in the graph of the queries after
            the last task, among the outputs that competed after task k; NaN for j > k.
    """

    matrix: NDArray[np.float64]
    later: NDArray[np.float64]

    @property
    def by_task(self) -> NDArray[np.float64]:
        """float64 [T - 1]: ``M[j, j] - M[T, j]`` of every task but the last."""
        learnt = self.matrix[1:]
        forgotten: NDArray[np.float64] = (np.diagonal(learnt) - learnt[-1])[:-1]
        return forgotten

    @property
    def drift_by_task(self) -> NDArray[np.float64]:
        """float64 [T - 1]: the old weights in the old graph minus the old weights in the new graph."""
        drift: NDArray[np.float64] = (np.diagonal(self.matrix[1:]) - np.diagonal(self.later))[:-1]
        return drift

    @property
    def weights_by_task(self) -> NDArray[np.float64]:
        """float64 [T - 1]: the old weights in the new graph minus the new weights in the new graph."""
        return self.by_task - self.drift_by_task

    @property
    def forgetting(self) -> float:
        """``mean_{j<T} (M[j, j] - M[T, j])``, the metric ``forgetting_from_diagonal``: the sum of both parts."""
        return float(self.by_task.mean())

    @property
    def drift(self) -> float:
        """The loss due to the graph: the mean of :attr:`drift_by_task`."""
        return float(self.drift_by_task.mean())

    @property
    def weights(self) -> float:
        """The loss due to weights, and in class-IL to newly competing outputs: the mean of :attr:`weights_by_task`."""
        return float(self.weights_by_task.mean())


def why_no_split(spec: ScenarioSpec) -> str:
    """Why all forgetting in a scenario is due to weights; empty if the graph of old queries grows."""
    if spec.task_free is not None:
        return "a task-free stream has one graph, and no task after which weights could be kept"
    unchanged = EDGE_POLICIES[spec.edge_policy].unchanged if spec.query_edges == "own" else ""
    return f"edge_policy is {spec.edge_policy}: {unchanged}, so that forgetting is all due to weights" if unchanged else ""


@random_state_restored()
def split_forgetting(cell: CellSpec, catalogue: Catalogue) -> ForgettingSplit:
    """Train a cell, and evaluate every task once more in the graph of the last one.

    The additional queries change no state of the method: the matrix is that of the cell's record, bit for bit. Nothing is stored.

    Raises:
        NotApplicable: the graph of old queries does not grow (:func:`why_no_split`), or there is only one task.
        CglsuiteError: any error of building the stream or of training.
    """
    if reason := why_no_split(cell.scenario):
        growing = " or ".join(policy.name for policy in EDGE_POLICIES.values() if not policy.unchanged)
        raise NotApplicable(f"{cell.preset}: {reason}; expected edge_policy = {growing}, or query_edges = seen")
    stream = build_stream(cell, catalogue)
    if isinstance(stream, TaskFreeStream) or len(stream) < 2:
        raise NotApplicable(f"{cell.preset}: {len(stream)} task: expected several tasks, of which the first can be forgotten")
    later = np.full((len(stream), len(stream)), np.nan)

    def again(learnt: int) -> None:
        if learnt:
            for j, value in _performance_in_last_graph(runner, stream, learnt).items():
                later[learnt - 1, j] = value

    with numerics(cell):
        runner: Any = make_runner(cell, catalogue, stream, on_task=again)
        matrix = np.asarray(runner.run().matrix, dtype=np.float64)
    return ForgettingSplit(matrix=matrix, later=later)


@torch.no_grad()
def _performance_in_last_graph(runner: Any, stream: TaskStream, learnt: int) -> dict[int, float]:
    """The method's current performance on the tasks learnt so far, by position, in the graph of the last queries."""
    groups = [_competing_among(group, stream, learnt) for group in stream.make_queries(len(stream)) if min(group.tasks) < learnt]
    with method_state.untouched(runner.method, runner._draws):
        answers = runner._answers(groups, learnt)
    tested, _ = stream.oracle.grade(answers, {group.token: group.query.allowed for group in groups})
    return {j: score.performance for j, score in tested.items() if j < learnt}


def _competing_among(group: QueryGroup, stream: TaskStream, learnt: int) -> QueryGroup:
    """A query group in which the outputs of the first ``learnt`` tasks compete; in task-IL, those of each item's task."""
    if group.query.allowed.dim() == 2:
        return group
    competing = stream.task_outputs[:learnt].any(dim=0)
    return dataclasses.replace(group, query=dataclasses.replace(group.query, allowed=competing))
