"""Gradient episodic memory (GEM)."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import SpecError
from cglsuite.graphs import uploaded
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.replay_items import keep_at_random, share_of

_log = logging.getLogger(__name__)
_RIDGE, _ATTEMPTS = 1e-3, 10


class GEM(Method):
    """Prevent steps that increase the loss on the memory of any past task, to first order (Lopez-Paz & Ranzato 2017).

    Let g be the gradient of the task's loss, and let the rows of G be the gradients g_s of the losses on the memories of past tasks s. If
    any ``<g, g_s> < 0``, the step is along ``g + Gᵀv``, where v solves ``min ½ vᵀ(G Gᵀ + εI)v + (G g)ᵀv, v ≥ margin``.

    Memory losses cover all outputs seen so far or, with ``memory_outputs=until-task`` as implemented by CGLB, those seen up to the memory's
    task.

    As in the published implementations, memory losses are computed in training mode: dropout applies, and batch norm uses the memory's
    statistics and updates its running statistics. Memories that share a graph share one forward pass.

    ``qp_failures`` counts failed attempts to solve the quadratic program, which are repeated with ε multiplied by ten. ``unprojected``
    counts steps along g because no attempt succeeded. Both are logged after each task in which they increased.
    """

    state = ("qp_failures", "unprojected")

    def setup(self) -> None:
        """Initialise the counters."""
        self.qp_failures = 0
        self.unprojected = 0
        self._memories: list[tuple[Batch, list[Batch]]] = []
        self._rows = torch.empty(0, 0)
        self._failed_before = 0

    def before_task(self, view: TaskView) -> None:
        """Group the memories into one batch per graph and allocate one gradient per memory."""
        by_graph: dict[int, list[Batch]] = {}
        for items in self.memory.all():
            batch = self._as_learnt(self.problem.recall(items, view))
            by_graph.setdefault(id(batch.graph), []).append(batch)
        self._memories = [(self.problem.merge(group), group) for group in by_graph.values()]
        self._failed_before = self.qp_failures
        width = sum(p.numel() for p in self._parameters())
        if self._memories and self._rows.shape != (self.context.n_tasks, width):
            self._rows = torch.empty(self.context.n_tasks, width, device=self.problem.device)

    def _as_learnt(self, batch: Batch) -> Batch:
        """Return the memory of one task. With ``memory_outputs=until-task`` (class-IL), only the outputs seen up to that task compete."""
        if self.problem.task_ids or self.hyperparameters.get("memory_outputs", "seen") == "seen":
            return batch
        if batch.tasks is None:
            raise SpecError("memory_outputs = 'until-task' requires the task of each memory item, but this memory does not record it")
        known = self.problem.task_outputs[: int(batch.tasks[0]) + 1].any(dim=0)
        return replace(batch, allowed=known, cache={})

    def _parameters(self) -> list[torch.nn.Parameter]:
        return list(self.problem.parameters(self.model).values())

    def before_step(self) -> None:
        """Project the gradient if it conflicts with the gradient on any memory."""
        if not self._memories:
            return
        parameters = self._parameters()
        self._write(0, parameters, [p.grad for p in parameters])
        past = self._remember(parameters)
        current = self._rows[0]
        products = (past @ current).cpu()  # the program is solved there: a GPU is waited for here, and for the products of a conflict
        if not bool((products < 0).any()):
            return
        weights, failures = solve_dual(past @ past.T, products, self.hyperparameters.margin)
        self.qp_failures += failures
        if weights is None:
            self.unprojected += 1
            return
        current.addmv_(past.T, uploaded(weights, past.device))
        self._apply(parameters)

    def _remember(self, parameters: list[torch.nn.Parameter]) -> Tensor:
        """Compute the gradients of the memory losses at the current weights: float32 [past tasks, P], in a reused buffer."""
        row = 0
        for together, group in self._memories:
            outputs = self.forward(together).split([len(batch) for batch in group])
            for i, batch in enumerate(group):
                loss = self.problem.loss(outputs[i], batch)
                row += 1
                gradients = torch.autograd.grad(loss, parameters, retain_graph=i + 1 < len(group), allow_unused=True)
                self._write(row, parameters, list(gradients))
        return self._rows[1 : row + 1]

    def _write(self, row: int, parameters: list[torch.nn.Parameter], gradients: list[Tensor | None]) -> None:
        """Concatenate a gradient into a row; parameters without a gradient count as zeros."""
        for place, gradient in zip(self._rows[row].split([p.numel() for p in parameters]), gradients, strict=True):
            if gradient is None:
                place.zero_()
            else:
                place.copy_(gradient.reshape(-1))

    def _apply(self, parameters: list[torch.nn.Parameter]) -> None:
        """Set the parameter gradients from row 0; a parameter that no loss depends on keeps ``None``."""
        for p, piece in zip(parameters, self._rows[0].split([p.numel() for p in parameters]), strict=True):
            if p.grad is not None:
                p.grad.copy_(piece.view_as(p))
            elif bool(piece.any()):
                p.grad = piece.view_as(p).clone()

    def counters(self) -> dict[str, int]:
        """Return the numbers of failed attempts and of steps that were not projected."""
        return {"qp_failures": self.qp_failures, "unprojected": self.unprojected}

    def after_task(self, view: TaskView) -> None:
        """Store items of the task and log failures."""
        self._memories = []
        fraction = self.hyperparameters.fraction
        keep_at_random(self, view, self.hyperparameters.per_task if fraction is None else share_of(view, fraction))
        if self.qp_failures > self._failed_before:
            _log.warning(
                "gem: %d attempts to solve a projection failed in task %d (%d so far) and were repeated with a larger ε; "
                "%d steps so far were not projected",
                self.qp_failures - self._failed_before,
                view.position + 1,
                self.qp_failures,
                self.unprojected,
            )


def solve_dual(gram: Tensor, products: Tensor, margin: float) -> tuple[Tensor | None, int]:
    """Solve ``argmin_{v ≥ margin} ½ vᵀ(gram + εI)v + productsᵀv``, starting at ε = 1e-3 and multiplying ε by ten after every failure.

    Args:
        gram: float32 [t, t], ``G Gᵀ``. products: float32 [t], ``G g``.

    Returns:
        v, shaped like ``products`` (``None`` if no attempt succeeded), and the number of failed attempts.
    """
    quadratic, linear = gram.double().cpu().numpy(), products.double().cpu().numpy()
    if not (np.isfinite(quadratic).all() and np.isfinite(linear).all()):
        return None, 1
    identity = np.eye(len(linear))
    quadratic = (quadratic + quadratic.T) / 2
    for failures in range(_ATTEMPTS):
        try:
            solution = bounded_minimum(quadratic + _RIDGE * 10**failures * identity, linear, margin)
        except (np.linalg.LinAlgError, RuntimeError):  # not positive definite, or too many iterations
            continue
        if np.isfinite(solution).all():
            return torch.as_tensor(solution, dtype=products.dtype, device=products.device), failures
    return None, _ATTEMPTS


def bounded_minimum(quadratic: NDArray[np.float64], linear: NDArray[np.float64], margin: float) -> NDArray[np.float64]:
    """Solve ``argmin_{v ≥ margin} ½ vᵀQv + linearᵀv`` for a positive definite Q.

    With ``Q = L Lᵀ`` and ``u = v - margin`` this is non-negative least squares: ``min_{u ≥ 0} ‖Lᵀu + L⁻¹(linear + margin Q 1)‖``.

    Raises:
        numpy.linalg.LinAlgError: Q is not positive definite.
        RuntimeError: the solver reached its maximum number of iterations.
    """
    factor = np.linalg.cholesky(quadratic)
    target = solve_triangular(factor, linear + margin * quadratic.sum(axis=1), lower=True)
    solution: NDArray[np.float64] = nnls(factor.T, -target)[0] + margin
    return solution
