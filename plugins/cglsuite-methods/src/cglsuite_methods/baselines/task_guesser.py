"""A baseline that guesses the task of a query from the graph structure alone and then predicts one of that task's classes."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.graphs import MessageGraph
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.baselines.frozen_ncm import FrozenNCM
from cglsuite_methods.single_labels import check_single_labels

_BELOW = 5.0  # more than outputs differ among classes: from -4 to 0


class TaskGuesser(FrozenNCM):
    """Guess the task of a query from node degrees, then predict the nearest class mean of that task with an untrained network.

    The view of a node consists of its log-degree and the means of log-degrees over 1 to ``hops`` hops. For every task, the method stores
    the mean view m_t of its training nodes, and it stores the pooled variance s² of views within tasks. The guess is the task that
    minimises ``Σ_j (q_j - m_tj)² / s_j²``, where q is the mean view of all nodes in the graph in which the query arrives (``evidence =
    graph``), or the view of the item itself (``item``). Features and labels are not used. Classes of other tasks rank below those of the
    guessed task, whose classes are predicted as by ``frozen-ncm``.

    What it measures: the encoder and the means are those of ``frozen-ncm``, so a higher score shows what the structure around a query
    reveals about its task. If every task is queried in a separate graph, ``graph`` is right when the degrees of the tasks differ by more
    than the degrees of training nodes and all nodes. If the items of all tasks share a graph, every item gets the same guess, which is
    right for one of T tasks, and the score is below that of ``frozen-ncm``. A class-IL score close to that of this baseline does not show
    that a method can tell classes apart. ``cglsuite scenarios audit`` measures the same leak with a trained probe that also sees features;
    it reports an accuracy for the task, and this method one for the classes.

    Training nodes represent a task because the mean over all of its nodes would identify the graph itself: test items are queried in the
    graph of training, however similar the tasks are. The graph represents a query because a statistic of the queried items would make a
    prediction depend on the other items in the query.

    Cost: that of ``frozen-ncm``, plus two vectors of ``hops + 1`` numbers per task.
    """

    state = (*FrozenNCM.state, "views", "spread", "seen", "outputs")  # type: ignore[assignment]

    def setup(self) -> None:
        """Initialise without any tasks.

        Raises:
            NotApplicable: items do not have a single class each.
        """
        check_single_labels(self, "task-guesser answers by means of classes")
        super().setup()
        d = self.hyperparameters.hops + 1
        self.views: list[Tensor] = []
        """The mean view of each task's training nodes: float32 [d]."""
        self.outputs: list[Tensor] = []
        """The outputs of each task: bool [C]."""
        self.spread = torch.zeros(d, device=self.problem.device)
        """Summed squared deviations of views from their task's mean: float32 [d], of ``seen`` nodes."""
        self.seen = 0

    def after_task(self, view: TaskView) -> None:
        """Add the items of the task to the class means and store the mean degree view of the task."""
        super().after_task(view)
        own = degree_views(view.train.graph, self.hyperparameters.hops)[view.train.ids]
        self.views = [*self.views, own.mean(dim=0)]
        self.outputs = [*self.outputs, view.task_outputs]
        self.spread = self.spread + (own - own.mean(dim=0)).square().sum(dim=0)
        self.seen += len(own)

    def guessed(self, query: Batch) -> Tensor:
        """Return the guessed task of each item: int64 [n]. Ties go to the earlier task."""
        views = degree_views(query.graph, self.hyperparameters.hops)
        views = views[query.ids] if self.hyperparameters.evidence == "item" else views.mean(dim=0).expand(len(query), -1)
        variance = (self.spread / max(self.seen, 1)).clamp(min=1e-6)
        gaps = [((views - mean).square() / variance).sum(dim=1) for mean in self.views]
        return torch.stack(gaps, dim=1).argmin(dim=1)

    def predict(self, query: Batch) -> Tensor:
        """Return the outputs of ``frozen-ncm``, lowered by 5 for classes outside the guessed task."""
        outputs = super().predict(query)
        if not self.views:
            return outputs
        return torch.where(torch.stack(self.outputs)[self.guessed(query)], outputs, outputs - _BELOW)


def degree_views(graph: MessageGraph, hops: int) -> Tensor:
    """Compute log-degrees and their means over the neighbourhoods of 1 to ``hops`` hops: float32 [N, hops + 1].

    A node's degree counts incoming edges and the node itself, and each hop is a mean over a node and its in-neighbours.
    """
    degree = graph.propagate("sum-self", torch.ones(graph.n_nodes, 1, device=graph.device))
    columns = [degree.log()]
    for _ in range(hops):
        columns.append(graph.propagate("sum-self", columns[-1]) / degree)
    return torch.cat(columns, dim=1)
