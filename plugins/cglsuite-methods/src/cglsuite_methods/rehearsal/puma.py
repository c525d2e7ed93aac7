"""PUMA: condensation with unlabelled items and wide encoders, and a model trained from scratch on the condensed items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.graphs import uploaded
from cglsuite.learning import Phase
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.cat import CaT, _shorten
from cglsuite_methods.rehearsal.condensed import optimised, propagated
from cglsuite_methods.single_labels import check_single_labels

_ROWS = 8192  # items encoded at a time: width times as many floats are held


class PUMA(CaT):
    """Extend CaT with pseudo-labels, wide encoders and training from scratch (Liu et al., PUMA: Efficient Continual Graph Learning for Node
    Classification with Graph Condensation, TKDE 2024).

    A task is condensed as in :class:`~cglsuite_methods.rehearsal.cat.CaT`, with the same number of items per class, for the encoder ``f(X)
    = ReLU(S^k X W)``: the features are propagated once (k = ``hops``), and one layer of ``width`` units is redrawn ``encoders`` times, each
    time for ``steps`` steps. A new model, trained on the condensed items of all tasks, labels the unlabelled items of the task; those with
    a softmax output of at least ``confidence`` count as items of their class when the task is condensed again. Another new model is then
    trained on all condensed items, which have no edges.

    Unlabelled items are the nodes of the task's graph that are not training items; for pairs of nodes, they are the validation items,
    because no others are available. If a graph keeps the nodes of earlier tasks, these nodes are among them. If the task is known, only its
    outputs compete, so such nodes are treated as the task's; otherwise the outputs of all classes so far compete, and other classes are
    left out. The authors' code labels only the test nodes; here, a view does not reveal which nodes these are.

    Design choices: rows of X keep their initial length, as in CaT; ``confidence`` is 0, as in the authors' script, so every unlabelled item
    counts. Adam is reset with each encoder, as in their code.

    A backbone with batch norm is fitted to isolated items and then applied to a graph, as in CaT.

    Cost: two condensations of ``encoders × steps`` steps, each with ``encoders`` passes of one layer over the task's items, and two
    trainings on the condensed items per task; ``per_task`` vectors of F floats.
    """

    def setup(self) -> None:
        """Initialise without any condensed items.

        Raises:
            NotApplicable: items have several labels, so that they do not fall into classes.
        """
        check_single_labels(self, "puma condenses class by class")
        super().setup()

    def before_task(self, view: TaskView) -> None:
        """Initialise a new model."""
        if not view.first:
            self.model = self.context.build_model()

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Condense, train, pseudo-label, condense again, and train from scratch."""
        items, _ = self._start(view)
        features, y = propagated(view.train, self.hyperparameters.hops), self.problem.labels(view.train)
        yield from self._condense(view, items, features, y)
        yield Phase(name="train for pseudo-labels")
        found, labels = self._pseudo_labelled(view)
        if not len(found):
            return
        more = propagated(found, self.hyperparameters.hops)
        yield from self._condense(view, items, torch.cat([features, more]), torch.cat([y, labels]))
        self.model = self.context.build_model()
        yield Phase()

    def _condense(self, view: TaskView, items: MemoryItems, features: Tensor, y: Tensor) -> Iterator[Phase]:
        """Condense real items (propagated features float32 [n, F], labels int64 [n]) into ``items``, and store these in the memory."""
        x = nn.Parameter(self.problem.features(self.problem.recall(items)).clone())
        lengths = x.detach().norm(dim=1, keepdim=True)
        classes = items.y.unique()
        own, made = _averages(y, classes), _averages(items.y, classes)
        weights = means = x.new_empty(0)
        steps = self.hyperparameters.steps

        def distance(taken: int) -> Tensor:
            nonlocal weights, means
            _shorten(x, lengths)
            if taken % steps == 0:
                weights = self._encoder_weights(features.shape[1])
                with torch.no_grad():
                    means = class_means(own, features, weights)
            return (means - class_means(made, x, weights)).square().sum()

        lr, total = self.hyperparameters.feature_lr, steps * self.hyperparameters.encoders
        yield optimised(x, distance, lr=lr, steps=total, epochs=self.context.epochs, restart=steps)
        _shorten(x, lengths)
        self.memory.put(f"task-{view.position}", replace(items, x=x.detach().cpu()))
        self.condensed = self.problem.recall(self.problem.join(self.memory.all()))

    def _encoder_weights(self, n_features: int) -> Tensor:
        """A layer with new random weights: float32 [F, width]. Its scale is irrelevant, as embeddings are normalised."""
        drawn = torch.rand(n_features, self.hyperparameters.width, generator=self.context.generator("encoders"))
        return uploaded(2.0 * drawn - 1.0, self.problem.device)

    def _pseudo_labelled(self, view: TaskView) -> tuple[Batch, Tensor]:
        """The unlabelled items that are assigned to the task's classes, as a query; and these classes: int64 [m]."""
        query = unlabelled(view)
        query = replace(query, allowed=view.task_outputs if self.problem.task_ids else self.problem.current)
        self.model.eval()
        with torch.no_grad():
            outputs = self.forward(query)
        chosen, labels = confident(outputs, query.allowed, self.hyperparameters.confidence)
        of_task = torch.isin(labels, self.problem.labels(view.train))
        return replace(query, ids=query.ids[chosen[of_task]], tasks=None, cache={}), labels[of_task]

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss on the condensed items of all tasks."""
        if self.condensed is None:
            return super().loss(batch)
        return self.problem.loss(self.forward(self.condensed), self.condensed)


def unlabelled(view: TaskView) -> Batch:
    """Return the unlabelled items of a view: all nodes of its graph except the training items, or the validation items for pairs."""
    if view.train.ids.dim() == 2:
        return view.validation
    others = torch.ones(view.graph.n_nodes, dtype=torch.bool, device=view.train.ids.device).index_fill(0, view.train.ids, False)
    return Batch(graph=view.graph, ids=others.nonzero().flatten(), allowed=view.seen_outputs)


def confident(outputs: Tensor, allowed: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """Select the items whose largest softmax output among ``allowed`` (bool [C]) is at least ``least``, given raw outputs (float32 [n, C]).

    Returns:
        Their positions and the outputs in question: int64 [m] both.
    """
    confidence, labels = functional.softmax(outputs.masked_fill(~allowed, -torch.inf), dim=1).max(dim=1)
    chosen = (confidence >= least).nonzero().flatten()
    return chosen, labels[chosen]


def class_means(averages: Tensor, x: Tensor, weights: Tensor) -> Tensor:
    """Compute the class means of ``norm ReLU(x W)``, where ``norm`` divides each row by its length.

    Args:
        averages: float32 [K, n], 1 / n_c at the items of class c. x: propagated features, float32 [n, F]. weights: W, float32 [F, width].

    Returns:
        float32 [K, width].
    """
    parts = zip(averages.split(_ROWS, dim=1), x.split(_ROWS), strict=True)
    means = [share @ functional.normalize(functional.relu(rows @ weights), dim=1) for share, rows in parts]
    return torch.stack(means).sum(dim=0)


def _averages(y: Tensor, classes: Tensor) -> Tensor:
    """The matrix that takes rows of items (labels ``y``, int64 [n]) to means of the classes (int64 [K]): float32 [K, n]."""
    members = (classes[:, None] == y).float()
    return members / members.sum(dim=1, keepdim=True)
