"""Plain PyTorch loops: the arithmetic of a cell and nothing else. The yardstick that the suite's overhead is measured against.

Everything is written out for one protocol (full batch, two layers of un-normalised sums, no inter-task edges, class-balanced loss, Adam
carried over); tasks are prepared once; nothing is checked, timed, stored or hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["Task", "bare", "task_of"]


class _Multiply(torch.autograd.Function):
    """``S @ H`` in CSR with a stored transpose for the backward pass."""

    @staticmethod
    def forward(ctx, matrix, transpose, dense):
        ctx.transpose = transpose
        return matrix @ dense

    @staticmethod
    def backward(ctx, gradient):
        return None, None, ctx.transpose @ gradient


@dataclass
class Task:
    """One task's subgraph: features and A + I as (CSR, transpose), labels as columns, class weights, and the parts' positions."""

    x: tuple[Tensor, Tensor]
    a: tuple[Tensor, Tensor]
    columns: Tensor
    train: Tensor
    y: Tensor
    weight: Tensor
    asked: Tensor
    answers: Tensor


def _pair(matrix) -> tuple[Tensor, Tensor]:
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
    return Task(_pair(x), _pair(a), columns, torch.from_numpy(train), local, weight, torch.from_numpy(asked), torch.from_numpy(answers))


def _forward(task: Task, w1: Tensor, w2: Tensor) -> Tensor:
    hidden = torch.relu(_Multiply.apply(*task.a, _Multiply.apply(*task.x, w1)))
    return _Multiply.apply(*task.a, hidden @ w2)


def _weights(n_features: int, n_outputs: int, width: int = 256) -> tuple[Tensor, Tensor]:
    w1, w2 = torch.empty(n_features, width), torch.empty(width, n_outputs)
    torch.nn.init.xavier_uniform_(w1)
    torch.nn.init.xavier_uniform_(w2)
    return w1.requires_grad_(), w2.requires_grad_()


def _adam(weights) -> torch.optim.Optimizer:
    return torch.optim.Adam(weights, lr=5e-3, weight_decay=5e-4, fused=True)


def _learn(task: Task, weights, optimizer, epochs: int) -> None:
    for _ in range(epochs):
        optimizer.zero_grad(set_to_none=True)
        logits = _forward(task, *weights)[task.train][:, task.columns]
        functional.cross_entropy(logits, task.y, weight=task.weight).backward()
        optimizer.step()


@torch.no_grad()
def _evaluate(tasks: list[Task], weights) -> list[float]:
    row = []
    for task in tasks:
        logits = _forward(task, *weights)[task.asked][:, task.columns]
        right = (task.columns[logits.argmax(dim=1)] == task.answers).double()
        row.append(float(torch.stack([right[task.answers == c].mean() for c in task.columns]).mean()))
    return row


def bare(tasks: list[Task], n_outputs: int, epochs: int) -> list[list[float]]:
    """Fine-tuning on each task in turn, task-IL; after each task every task so far is evaluated."""
    weights = _weights(tasks[0].x[0].shape[1], n_outputs)
    optimizer, matrix = _adam(weights), []
    for k, task in enumerate(tasks):
        _learn(task, weights, optimizer, epochs)
        matrix.append(_evaluate(tasks[: k + 1], weights))
    return matrix
