"""Plain PyTorch: the arithmetic of a cell and nothing else. The yardstick that the suite's overhead is measured against.

What the loops of :mod:`plain_methods` share, written out for one protocol (full batch, two layers of un-normalised sums, no inter-task
edges, class-balanced loss, Adam carried over, the task known at test time); tasks are prepared once; nothing is checked, stored or hidden.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn import functional

__all__ = [
    "Adam",
    "Pass",
    "Run",
    "Task",
    "add_product",
    "attention",
    "multiply",
    "pair",
    "product",
    "task_of",
    "task_slope",
    "weights_of",
    "where_positive",
]


class multiply(torch.autograd.Function):
    """``S @ H`` in CSR with a stored transpose for the backward pass."""

    @staticmethod
    def forward(ctx, matrix, transpose, dense):
        ctx.transpose = transpose
        return product(matrix, dense)

    @staticmethod
    def backward(ctx, gradient):
        return None, None, product(ctx.transpose, gradient)


def product(matrix: Tensor, dense: Tensor) -> Tensor:
    """``S @ H``; torch.mm would fill its output with zeros and copy it."""
    out = dense.new_empty(matrix.shape[0], dense.shape[1])
    return torch.addmm(out, matrix, dense, beta=0, out=out)


def add_product(total: Tensor, matrix: Tensor, dense: Tensor, scale: float) -> Tensor:
    """``total + scale S @ H``, in place."""
    return torch.addmm(total, matrix, dense, alpha=scale, out=total)


@dataclass
class Task:
    """One task's subgraph: features and A + I as (CSR, transpose), labels as columns, class weights, and the parts' positions.

    ``a`` is ``None`` for nodes without edges; ``scipy`` holds features and A + I to make memories and unions of.
    """

    x: tuple[Tensor, Tensor]
    a: tuple[Tensor, Tensor] | None
    columns: Tensor
    train: Tensor
    y: Tensor
    weight: Tensor
    asked: Tensor
    asked_y: Tensor
    scipy: tuple = ()


def pair(matrix) -> tuple[Tensor, Tensor]:
    """A SciPy matrix and its transpose as torch CSR."""

    def csr(m):
        m = scipy.sparse.csr_matrix(m, dtype=np.float32)
        parts = (torch.from_numpy(m.indptr.astype(np.int64)), torch.from_numpy(m.indices.astype(np.int64)), torch.from_numpy(m.data))
        return torch.sparse_csr_tensor(*parts, size=m.shape)

    return csr(matrix), csr(matrix.T)


def task_of(x, edges: np.ndarray, train: np.ndarray, y: np.ndarray, asked: np.ndarray, answers: np.ndarray, classes: list[int]) -> Task:
    """A task from SciPy features, an edge list, and positions with global labels."""
    n = x.shape[0]
    a = scipy.sparse.csr_matrix((np.ones(edges.shape[1], np.float32), (edges[1], edges[0])), (n, n)) + scipy.sparse.identity(n, np.float32)
    columns = torch.tensor(sorted(classes))
    place = {c: i for i, c in enumerate(sorted(classes))}
    local = torch.tensor([place[c] for c in y.tolist()])
    weight = 1.0 / torch.bincount(local, minlength=len(classes)).clamp(min=1)
    asked_y = torch.tensor([place[c] for c in answers.tolist()])
    parts = (torch.from_numpy(train), local, weight, torch.from_numpy(asked), asked_y)
    return Task(pair(x), pair(a), columns, *parts, (x, a))


def weights_of(tasks: list[Task], n_outputs: int, width: int = 256) -> tuple[Tensor, Tensor]:
    """New weights of both layers."""
    w1, w2 = torch.empty(tasks[0].x[0].shape[1], width), torch.empty(width, n_outputs)
    torch.nn.init.xavier_uniform_(w1)
    torch.nn.init.xavier_uniform_(w2)
    return w1, w2


class Adam:
    """The protocol's optimiser: torch's kernel and nothing around it."""

    def __init__(self, weights, lr: float = 5e-3, weight_decay: float = 5e-4) -> None:
        self.weights, self.lr, self.weight_decay = list(weights), lr, weight_decay
        self.means, self.squares = ([torch.zeros_like(w) for w in self.weights] for _ in range(2))
        self.steps = [torch.zeros(()) for _ in self.weights]

    @torch.no_grad()
    def step(self, gradients) -> None:
        """One step."""
        torch._foreach_add_(self.steps, 1)
        given = (self.weights, list(gradients), self.means, self.squares, [], self.steps)
        constant = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "amsgrad": False, "maximize": False}
        torch._fused_adam_(*given, lr=self.lr, weight_decay=self.weight_decay, **constant)


@dataclass
class Pass:
    """A forward pass: hidden values [N, width] and all outputs [N, C]."""

    hidden: Tensor
    out: Tensor

    @classmethod
    def of(cls, task: Task, w1: Tensor, w2: Tensor) -> Pass:
        """Without autograd."""
        hidden = product(task.x[0], w1)
        hidden = (hidden if task.a is None else product(task.a[0], hidden)).relu_()
        out = hidden @ w2
        return cls(hidden, out if task.a is None else product(task.a[0], out))

    def back(self, task: Task, w2: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of both weights from that of the outputs, float32 [N, C]."""
        slope = slope if task.a is None else product(task.a[1], slope)
        inner = where_positive(slope @ w2.T, self.hidden)
        inner = inner if task.a is None else product(task.a[1], inner)
        return product(task.x[1], inner), self.hidden.T @ slope


def where_positive(values: Tensor, hidden: Tensor) -> Tensor:
    """``values`` where ``hidden`` is positive, else 0: what a ReLU does to gradients and to tangents."""
    return torch.ops.aten.threshold_backward(values, hidden, 0)


def task_slope(task: Task, out: Tensor, scale: float = 1.0) -> Tensor:
    """The gradient of the class-balanced cross-entropy among the task's columns: float32 [N, C]."""
    chosen = out[task.train[:, None], task.columns].softmax(dim=1)
    chosen[torch.arange(len(task.y)), task.y] -= 1
    share = task.weight[task.y]
    slope = torch.zeros_like(out)
    slope[task.train[:, None], task.columns] = chosen * (share * (scale / share.sum()))[:, None]
    return slope


def attention(hidden: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """``softmax_j LeakyReLU_0.2(<h_j, tanh(h_i)>)`` over the edges j → i (both int64 [E]), differentiable: float32 [E]."""
    score = functional.leaky_relu((hidden[source] * hidden.tanh()[target]).sum(dim=1), 0.2)
    largest = torch.full((len(hidden),), -torch.inf).index_reduce_(0, target, score.detach(), "amax")
    raised = (score - largest[target]).exp()
    return raised / torch.zeros(len(hidden)).index_add_(0, target, raised)[target]


@dataclass
class Run:
    """The matrix so far, and how long asking for it took."""

    matrix: list[list[float]] = field(default_factory=list)
    evaluation_s: float = 0.0
    now: Callable[[], float] = time.process_time

    @torch.no_grad()
    def evaluate(self, tasks: list[Task], weights) -> None:
        """One row: every task so far."""
        started = self.now()
        row = []
        for task in tasks:
            out = Pass.of(task, *weights).out
            answers = out[task.asked[:, None], task.columns].argmax(dim=1)
            counts = torch.bincount(task.asked_y, minlength=len(task.columns))
            hits = torch.bincount(task.asked_y[answers == task.asked_y], minlength=len(task.columns))
            row.append(float((hits / counts).mean()))
        self.matrix.append(row)
        self.evaluation_s += self.now() - started
