"""A closed-form ridge classifier computed from sums over all items so far."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import SpecError
from cglsuite.graphs import GraphSet, MessageGraph, uploaded
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch
from cglsuite_methods.closed_form.first_task import FirstTask
from cglsuite_methods.rehearsal.condensed import propagated
from cglsuite_methods.single_labels import check_single_labels

_ROWS = 4096
"""Rows that are added to the sums at a time."""
_UPDATED = 256
"""Rows that update an inverse at a time."""
_SHELF = "rows"


class AnalyticRidge(FirstTask):
    """Fit a ridge regression from features to classes in closed form, using all training items so far.

    Let h be the features of an item in the graph at its time, and y its target, a vector of C numbers. Then

        G = Σ h hᵀ,  C = Σ h yᵀ,  W = (G + λI)⁻¹ C,  z = hᵀW.

    Sums do not depend on the order of items, so nothing is forgotten: on a graph that does not change, W after the last task equals the
    solution on all items at once, up to rounding. The AF of this method measures competition, in which a new class takes items from earlier
    ones. Targets are one-hot. For items with several labels, they are 1 and -1 where the label is known and 0 where it is not. A class
    without items has output 0.

    ``features`` selects the input: ``propagated`` is S^kX with ``S = D^-1/2 (A + I) D^-1/2`` and k = ``hops`` (both endpoints concatenated
    for pairs of nodes, the mean over nodes for graphs). ``encoder`` is the embedding by the backbone with random weights, or with
    pre-trained ones if the cell names a scheme (``pretraining.scheme``). ``first-task`` is the embedding by the backbone after training on
    the first task. ``normalisation`` is applied next: ``unit`` scales rows to length 1; ``centred`` subtracts the mean of all items so far
    from features and targets, computed exactly from the sums (a ridge with an intercept that is not penalised). A ``projection`` of d > 0
    then computes ``ReLU(Ph)``, where P has d rows of standard normal numbers that are drawn once. With ``neighbours=training``, features
    propagate to the training items of a task only from each other, so no validation or test node enters the sums; queries use the graph
    that they arrive in.

    ``solver`` selects one of three forms of the same solution. ``sums`` stores G and C. ``dual`` stores the rows h, which count towards the
    scenario's budget, and solves a system with one equation per item; use it if there are fewer items than features. ``woodbury`` stores R
    = (G + λI)⁻¹ and W and updates both with each block of m items H and targets Y, ``K = RHᵀ(I + HRHᵀ)⁻¹, W ← W + K(Y - HW), R ← R - KHR``.
    In task-free streams this is an update of rank m per batch instead of a solution per evaluation. ``balance`` weights items by 1 /
    (number of items of their class so far) and stores one G per class (Fang et al. 2024).

    ACIL (Zhuang et al. 2022) is ``features=first-task projection=8192 solver=woodbury normalisation=none`` with λ fixed beforehand. If
    tasks share no class, as in class-IL and task-IL, the generalised form of ACIL (GACL, Zhuang et al. 2024) gives the same numbers.

    With ``features=propagated`` and ``projection=0``, the method is deterministic and does not use the init seed, so runs that differ only
    in that seed have no spread. All sums and solutions are float64.

    Cost: one pass without gradients and a system of F equations per task; F (F + C) float64 numbers, with C times as many for G under
    ``balance``.
    """

    state = ("gram", "cross", "drawn", "inverse", "weights")  # type: ignore[assignment]

    @property
    def tunes(self) -> bool:
        """Whether the encoder is trained on the first task."""
        return bool(self.hyperparameters.features == "first-task")

    def setup(self) -> None:
        """Initialise without any items.

        Raises:
            SpecError: settings that exclude each other. NotApplicable: ``balance`` where items do not have a single class each.
        """
        settings = self.hyperparameters
        if settings.solver == "woodbury" and (settings.balance or settings.normalisation == "centred"):
            raise SpecError(
                "method.solver=woodbury cannot be used here: later items change the weights or means of earlier ones, which cannot be "
                "undone in the inverse; set method.balance=false and a method.normalisation other than centred, or method.solver=sums"
            )
        if settings.balance:
            check_single_labels(self, "analytic-ridge with method.balance weighs items by their class")
        super().setup()
        self.gram: dict[int, Tensor] = {}
        """G of the rows (h, 1), for all items (key 0) or by class: float64 [F + 1, F + 1]."""
        self.cross: dict[int, Tensor] = {}
        """C of the rows (h, 1), with the same keys: float64 [F + 1, C]."""
        self.drawn: list[Tensor] = []
        """The transpose of the projection P, once it is drawn: float32 [F, d]."""
        self.inverse: list[Tensor] = []
        """R, if it is updated: float64 [F, F]."""
        self.weights: list[Tensor] = []
        """W, if it is updated: float64 [F, C]."""
        self._solved: tuple[Tensor, Tensor] | None = None

    # --- features and targets ---------------------------------------------------------------------------------------------------

    def _features(self, batch: Batch) -> Tensor:
        """Compute the features before the projection: float32 [n, F]."""
        if self.hyperparameters.features != "propagated":
            rows = self.problem.embed(self.model, batch)
        elif isinstance(batch.graph, GraphSet):
            rows = batch.graph.dense
            for _ in range(self.hyperparameters.hops):
                rows = batch.graph.propagate("sym", rows)
            rows = batch.graph.pool(rows, "mean")[batch.ids]
        else:
            rows = propagated(batch, self.hyperparameters.hops)
        return functional.normalize(rows, dim=1) if self.hyperparameters.normalisation == "unit" else rows

    def _rows(self, features: Tensor) -> Tensor:
        """Compute the features after the projection: float64 [n, F']."""
        return (functional.relu(features @ self.drawn[0]) if self.drawn else features).double()

    def targets(self, y: Tensor, allowed: Tensor) -> Tensor:
        """Convert labels to regression targets: float64 [n, C].

        Args:
            y: int64 [n], or bool [n, C] for items with several labels. allowed: which of these are known, bool [C] or [n, C].
        """
        if y.dim() == 1:
            return functional.one_hot(y, self.problem.n_outputs).double()
        return torch.where(allowed, 2.0 * y.double() - 1.0, 0.0)

    # --- accumulation -----------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _add(self, batch: Batch) -> None:
        alone = self.hyperparameters.neighbours == "training" and self.hyperparameters.features == "propagated"
        features, y = self._features(among_themselves(batch) if alone else batch), self.problem.labels(batch)
        if self.hyperparameters.projection and not self.drawn:
            shape = features.shape[1], self.hyperparameters.projection
            self.drawn = [uploaded(torch.randn(*shape, generator=self.context.generator("projection")), features.device)]
        self._solved = None
        targets = self.targets(y, batch.allowed)
        if self.hyperparameters.solver == "dual":
            self._store(batch, features)
        elif self.hyperparameters.solver == "woodbury":
            for part, target in zip(features.split(_UPDATED), targets.split(_UPDATED), strict=True):
                self._update(self._rows(part), target)
        elif self.hyperparameters.balance:
            for c in y.unique().tolist():
                self._accumulate(c, features[y == c], targets[y == c])
        else:
            self._accumulate(0, features, targets)

    def _accumulate(self, key: int, features: Tensor, targets: Tensor) -> None:
        for part, target in zip(features.split(_ROWS), targets.split(_ROWS), strict=True):
            rows = functional.pad(self._rows(part), (0, 1), value=1.0)
            for sums, added in ((self.gram, rows.T @ rows), (self.cross, rows.T @ target)):
                sums[key] = sums[key] + added if key in sums else added

    def _store(self, batch: Batch, features: Tensor) -> None:
        items = self.problem.sample(batch, torch.arange(len(batch)), "reference")
        items = replace(items, x=self._rows(features).float().cpu())
        self.memory.put(_SHELF, self.problem.join([self.memory[_SHELF], items] if _SHELF in self.memory else [items]))

    def _update(self, rows: Tensor, targets: Tensor) -> None:
        if not self.inverse:
            width = rows.shape[1]
            self.inverse = [torch.eye(width, dtype=rows.dtype, device=rows.device) / self.hyperparameters["lambda"]]
            self.weights = [rows.new_zeros(width, self.problem.n_outputs)]
        (inverse,), (weights,) = self.inverse, self.weights
        reach = rows @ inverse
        gain = solved(reach @ rows.T, reach, 1.0).T
        self.weights = [weights + gain @ (targets - rows @ weights)]
        self.inverse = [inverse - gain @ reach]

    # --- the solution -----------------------------------------------------------------------------------------------------------

    def solution(self) -> tuple[Tensor, Tensor] | None:
        """Return W, float64 [F, C], and the intercept, float64 [C], or ``None`` before the first item."""
        if self._solved is None:
            if self.weights:
                self._solved = self.weights[0], self.weights[0].new_zeros(self.problem.n_outputs)
            elif self.gram:
                self._solved = self._from_sums()
            elif self.memory:
                self._solved = self._from_rows(self.memory[_SHELF])
        return self._solved

    def _from_sums(self) -> tuple[Tensor, Tensor]:
        weighed = [(1 / sums[-1, -1] if self.hyperparameters.balance else 1.0, key) for key, sums in self.gram.items()]
        gram, cross = (sum((weight * sums[key] for weight, key in weighed), torch.zeros(())) for sums in (self.gram, self.cross))
        products, answers, total, number = gram[:-1, :-1], cross[:-1], gram[-1, :-1], gram[-1, -1]
        if self.hyperparameters.normalisation != "centred":
            return solved(products, answers, self.hyperparameters["lambda"]), torch.zeros_like(cross[-1])
        mean = total / number
        weights = solved(products - torch.outer(total, mean), answers - torch.outer(mean, cross[-1]), self.hyperparameters["lambda"])
        return weights, cross[-1] / number - mean @ weights

    def _from_rows(self, items: MemoryItems) -> tuple[Tensor, Tensor]:
        stored: Any = items.x
        rows = uploaded(stored, self.problem.device).double()
        targets = self.targets(items.y, self.problem.allowed(items.tasks))
        weight = 1 / torch.bincount(items.y)[items.y].double() if self.hyperparameters.balance else rows.new_ones(len(items))
        mean, intercept = torch.zeros_like(rows[0]), torch.zeros_like(targets[0])
        if self.hyperparameters.normalisation == "centred":
            mean, intercept = (weight @ part / weight.sum() for part in (rows, targets))
        scale = weight.sqrt()[:, None]
        rows, targets = scale * (rows - mean), scale * (targets - intercept)
        weights = rows.T @ solved(rows @ rows.T, targets, self.hyperparameters["lambda"])
        return weights, intercept - mean @ weights

    def predict(self, query: Batch) -> Tensor:
        """Return the outputs of the regression, which are 0 before the first item."""
        found = self.solution()
        if found is None:
            return torch.zeros(len(query), self.problem.n_outputs, device=self.problem.device)
        weights, intercept = found
        return (self._rows(self._features(query)) @ weights + intercept).float()


def among_themselves(batch: Batch) -> Batch:
    """Drop all edges except those between items of the batch; whole graphs are returned unchanged."""
    graph = batch.graph
    if isinstance(graph, GraphSet):
        return batch
    inside = torch.zeros(graph.n_nodes, dtype=torch.bool, device=graph.device)
    inside[batch.ids.flatten()] = True
    kept = inside[graph.edge_index].all(dim=0)
    return replace(batch, graph=MessageGraph(graph.features, graph.edge_index[:, kept], graph.device), cache={})


def solved(products: Tensor, answers: Tensor, ridge: float) -> Tensor:
    """Solve ``(products + ridge I)⁻¹ answers`` by Cholesky decomposition: float64 [F, C] from a positive semi-definite [F, F] matrix and
    [F, C] targets.
    """
    system = products + ridge * torch.eye(len(products), dtype=products.dtype, device=products.device)
    return torch.cholesky_solve(answers, torch.linalg.cholesky(system))
