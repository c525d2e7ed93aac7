"""The plain loops themselves, one function per method, for task-IL as :mod:`plain` has it. Gradients are written by hand.

Every function takes the tasks, the number of outputs and of epochs, and the cell's resolved settings of the method, and returns a
:class:`plain.Run`. Memories have the cell's sizes; which items are drawn and how weights start may differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse
import torch
from plain import Adam, Pass, Run, Task, add_product, attention, multiply, pair, product, task_slope, weights_of, where_positive
from torch import Tensor

__all__ = ["LOOPS"]


def task_gradient(task: Task, w1: Tensor, w2: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of the task loss."""
    made = Pass.of(task, w1, w2)
    return made.back(task, w2, task_slope(task, made.out))


def bare(tasks: list[Task], n_outputs: int, epochs: int, hyperparameters: dict) -> Run:
    """Fine-tuning on each task in turn."""
    weights, run = weights_of(tasks, n_outputs), Run()
    optimizer = Adam(weights)
    for k, task in enumerate(tasks):
        for _ in range(epochs):
            optimizer.step(task_gradient(task, *weights))
        run.evaluate(tasks[: k + 1], weights)
    return run


def joint(tasks: list[Task], n_outputs: int, epochs: int, hyperparameters: dict) -> Run:
    """New weights for every task, learnt from the disjoint union of all subgraphs so far."""
    run = Run()
    for k in range(len(tasks)):
        weights, union = weights_of(tasks, n_outputs), Union(tasks[: k + 1], n_outputs)
        optimizer = Adam(weights)
        for _ in range(epochs):
            optimizer.step(union.gradient(*weights))
        run.evaluate(tasks[: k + 1], weights)
    return run


class Union:
    """Items of several tasks in one graph, each among the columns of its own task."""

    def __init__(self, tasks: list[Task], n_outputs: int) -> None:
        offsets = np.cumsum([0] + [t.scipy[0].shape[0] for t in tasks])
        edges = all(t.a is not None for t in tasks)
        self.graph = Task(
            x=pair(scipy.sparse.vstack([t.scipy[0] for t in tasks], format="csr")),
            a=pair(scipy.sparse.block_diag([t.scipy[1] for t in tasks], format="csr")) if edges else None,
            columns=torch.arange(n_outputs),
            train=torch.cat([t.train + int(o) for t, o in zip(tasks, offsets, strict=False)]),
            y=torch.cat([t.columns[t.y] for t in tasks]),
            weight=torch.empty(0),
            asked=torch.empty(0),
            asked_y=torch.empty(0),
        )
        weight = 1.0 / torch.bincount(self.graph.y, minlength=n_outputs).clamp(min=1)
        allowed = torch.zeros(len(tasks), n_outputs, dtype=torch.bool)
        for row, task in zip(allowed, tasks, strict=True):
            row[task.columns] = True
        self.forbidden = ~allowed.repeat_interleave(torch.tensor([len(t.y) for t in tasks]), dim=0)
        self.share = weight[self.graph.y][:, None]
        self.share /= self.share.sum()
        self.rows = torch.arange(len(self.graph.y))

    def gradient(self, w1: Tensor, w2: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        """The gradient of the weighted loss of all items."""
        made = Pass.of(self.graph, w1, w2)
        chosen = made.out[self.graph.train].masked_fill_(self.forbidden, -torch.inf).softmax(dim=1)
        chosen[self.rows, self.graph.y] -= 1
        slope = torch.zeros_like(made.out)
        slope[self.graph.train] = chosen * (self.share * scale)
        return made.back(self.graph, w2, slope)


# --- penalties --------------------------------------------------------------------------------------------------------------------


class Penalty:
    """``λ Σ (F w² - 2 V w)``, its gradient added in pieces that fit the processor's cache."""

    def __init__(self, weights: Sequence[Tensor], strength: float) -> None:
        self.weights, self.strength = weights, strength
        self.importance, self.weighted = ([torch.zeros_like(w) for w in weights] for _ in range(2))

    def pull(self, gradients: Sequence[Tensor]) -> None:
        """Add the gradient of the penalty."""
        for whole in zip(self.weights, gradients, self.importance, self.weighted, strict=True):
            for w, g, f, v in zip(*(t.split(512) for t in whole), strict=True):
                g.add_(torch.addcmul(v, f, w, value=-1), alpha=-2 * self.strength)

    def add(self, importance: Sequence[Tensor]) -> None:
        """One more anchor, at the weights as they are."""
        for w, f, v, new in zip(self.weights, self.importance, self.weighted, importance, strict=True):
            f += new
            v.addcmul_(new, w)


def ewc(tasks: list[Task], n_outputs: int, epochs: int, hyperparameters: dict) -> Run:
    """Running sums of squared batch gradients, and of them times the weights."""
    weights, run = weights_of(tasks, n_outputs), Run()
    optimizer, penalty = Adam(weights), Penalty(weights, hyperparameters["lambda"])
    for k, task in enumerate(tasks):
        for _ in range(epochs):
            gradients = task_gradient(task, *weights)
            if k:
                penalty.pull(gradients)
            optimizer.step(gradients)
        penalty.add([g.pow_(2) for g in task_gradient(task, *weights)])
        run.evaluate(tasks[: k + 1], weights)
    return run


def mas(tasks: list[Task], n_outputs: int, epochs: int, hyperparameters: dict) -> Run:
    """Squared gradients of the mean of squared outputs, averaged over tasks by their items; one anchor."""
    weights, run, items = weights_of(tasks, n_outputs), Run(), 0
    optimizer, penalty = Adam(weights), Penalty(weights, hyperparameters["lambda"])
    for k, task in enumerate(tasks):
        for _ in range(epochs):
            gradients = task_gradient(task, *weights)
            if k:
                penalty.pull(gradients)
            optimizer.step(gradients)
        made = Pass.of(task, *weights)
        slope, places = torch.zeros_like(made.out), (task.train[:, None], task.columns)
        slope[places] = made.out[places] * (2 / (len(task.y) * len(task.columns)))
        items += len(task.y)
        for w, o, v, g in zip(weights, penalty.importance, penalty.weighted, made.back(task, weights[1], slope), strict=True):
            o.lerp_(g.pow_(2), len(task.y) / items)
            torch.mul(o, w, out=v)
        run.evaluate(tasks[: k + 1], weights)
    return run


def twp(tasks: list[Task], n_outputs: int, epochs: int, hyperparameters: dict) -> Run:
    """Importance for the loss and for attention, and the 1-norm of the gradient by one product with the Hessian."""
    weights, run, beta = weights_of(tasks, n_outputs), Run(), hyperparameters["beta"]
    optimizer, penalty = Adam(weights), Penalty(weights, 1.0)
    for k, task in enumerate(tasks):
        for _ in range(epochs):
            gradients = _flattened(task, *weights, beta)
            if k:
                penalty.pull(gradients)
            optimizer.step(gradients)
        of_loss, of_topology = task_gradient(task, *weights), _topology(task, *weights)
        added = [hyperparameters["lambda_l"] * g.pow_(2) for g in of_loss]
        added[0].add_(of_topology.pow_(2), alpha=hyperparameters["lambda_t"])
        penalty.add(added)
        run.evaluate(tasks[: k + 1], weights)
    return run


def _flattened(task: Task, w1: Tensor, w2: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """``g + β H sign(g)`` with the Hessian H: forward and backward, and the tangents of both.

    Every product with the graph or the features occurs twice as often as for ``g`` alone: the tangents start from ``sign(g)``, so none of
    them can be merged with a product that ``g`` itself needs.
    """
    (a, at), (x, xt), places = task.a, task.x, (task.train[:, None], task.columns)
    made = Pass.of(task, w1, w2)
    slope = product(at, task_slope(task, made.out))
    g1, g2 = product(xt, product(at, where_positive(slope @ w2.T, made.hidden))), made.hidden.T @ slope
    s1, s2 = g1.sign(), g2.sign()
    hidden = where_positive(product(a, product(x, s1)), made.hidden)
    moved = product(a, torch.addmm(hidden @ w2, made.hidden, s2))[places]
    chosen, share = made.out[places].softmax(dim=1), task.weight[task.y]
    tangent = torch.zeros_like(made.out)
    tangent[places] = chosen * (moved - (chosen * moved).sum(dim=1, keepdim=True)) * (share / share.sum())[:, None]
    tangent = product(at, tangent)
    inner = where_positive(torch.addmm(tangent @ w2.T, slope, s2.T), made.hidden)
    g2.addmm_(hidden.T, slope, alpha=beta).addmm_(made.hidden.T, tangent, alpha=beta)
    return add_product(g1, xt, product(at, inner), beta), g2


@torch.enable_grad()
def _topology(task: Task, w1: Tensor, w2: Tensor) -> Tensor:
    """The gradient of the squared attention over edges and self-loops for the first weight."""
    weight = w1.clone().requires_grad_()
    edges = task.scipy[1].tocoo()
    target, source = torch.from_numpy(edges.row.astype(np.int64)), torch.from_numpy(edges.col.astype(np.int64))
    found = attention(multiply.apply(*task.x, weight), source, target)
    return torch.autograd.grad(found.pow(2).sum(), weight)[0]


def lwf(tasks: list[Task], n_outputs: int, epochs: int, hyperparameters: dict) -> Run:
    """The teacher answers once per task; all past tasks' outputs are distilled side by side."""
    weights, run = weights_of(tasks, n_outputs), Run()
    optimizer, temperature = Adam(weights), hyperparameters["temperature"]
    for k, task in enumerate(tasks):
        if k:
            places = (task.train[:, None], torch.cat([t.columns for t in tasks[:k]]))
            shape = (len(task.y), k, -1)
            target = (Pass.of(task, *weights).out[places].view(shape) / temperature).softmax(dim=2)
            scale = hyperparameters["lambda"] / (temperature * len(task.y))
        for _ in range(epochs):
            made = Pass.of(task, *weights)
            slope = task_slope(task, made.out)
            if k:
                new = (made.out[places].view(shape) / temperature).softmax(dim=2)
                slope[places] = new.sub_(target).mul_(scale).flatten(1)
            optimizer.step(made.back(task, weights[1], slope))
        run.evaluate(tasks[: k + 1], weights)
    return run


# --- memories ---------------------------------------------------------------------------------------------------------------------


def _alone(task: Task, chosen: Tensor) -> Task:
    """Training items of a task as nodes without edges."""
    x, y = task.scipy[0][task.train[chosen].numpy()], task.y[chosen]
    weight = 1.0 / torch.bincount(y, minlength=len(task.columns)).clamp(min=1)
    return Task(pair(x), None, task.columns, torch.arange(len(y)), y, weight, task.asked, task.asked_y, (x, None))


def er_gnn(tasks: list[Task], n_outputs: int, epochs: int, hyperparameters: dict) -> Run:
    """Coverage maximisation per class, and one weighted loss of all kept nodes."""
    weights, run, kept = weights_of(tasks, n_outputs), Run(), []
    optimizer = Adam(weights)
    for k, task in enumerate(tasks):
        memory = Union(kept, n_outputs) if kept else None
        share = 1.0 if memory is None else len(memory.graph.y) / (len(memory.graph.y) + len(task.y))
        for _ in range(epochs):
            made = Pass.of(task, *weights)
            gradients = made.back(task, weights[1], task_slope(task, made.out, share))
            if memory is not None:
                for total, part in zip(gradients, memory.gradient(*weights, 1 - share), strict=True):
                    total.add_(part)
            optimizer.step(gradients)
        points = torch.from_numpy(task.scipy[0][task.train.numpy()].toarray())
        for c in range(len(task.columns)):
            candidates = (task.y == c).nonzero().flatten()
            candidates = candidates[torch.randperm(len(candidates))[: hyperparameters["candidates"]]]
            crowd = (torch.cdist(points[candidates], points[task.y != c]) < hyperparameters["distance"]).sum(dim=1)
            kept.append(_alone(task, candidates[crowd.argsort(stable=True)[: hyperparameters["per_class"]]]))
        run.evaluate(tasks[: k + 1], weights)
    return run


def gem(tasks: list[Task], n_outputs: int, epochs: int, hyperparameters: dict) -> Run:
    """One gradient per memory and step, rows of one matrix; a quadratic program where a step conflicts with one of them."""
    weights, run, kept = weights_of(tasks, n_outputs), Run(), []
    optimizer, sizes = Adam(weights), [w.numel() for w in weights]
    rows = torch.empty(len(tasks), sum(sizes))

    def write(row: int, gradients: Sequence[Tensor]) -> None:
        for place, gradient in zip(rows[row].split(sizes), gradients, strict=True):
            place.copy_(gradient.view(-1))

    def projected(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        write(0, gradients)
        for s, memory in enumerate(kept):
            write(s + 1, task_gradient(memory, *weights))
        current, past = rows[0], rows[1 : len(kept) + 1]
        products = past @ current
        if not (products < 0).any():
            return gradients
        quadratic, linear = (past @ past.T).double().numpy() + 1e-3 * np.eye(len(kept)), products.double().numpy()
        try:
            factor = np.linalg.cholesky(quadratic)
            target = scipy.linalg.solve_triangular(factor, linear + hyperparameters["margin"] * quadratic.sum(axis=1), lower=True)
            found = scipy.optimize.nnls(factor.T, -target)[0] + hyperparameters["margin"]
        except (np.linalg.LinAlgError, RuntimeError):
            return gradients
        current.addmv_(past.T, torch.from_numpy(found).float())
        return [piece.view_as(w) for w, piece in zip(weights, current.split(sizes), strict=True)]

    for k, task in enumerate(tasks):
        for _ in range(epochs):
            gradients = task_gradient(task, *weights)
            optimizer.step(projected(gradients) if kept else gradients)
        run.evaluate(tasks[: k + 1], weights)
        kept.append(_alone(task, torch.randperm(len(task.y))[: hyperparameters["per_task"]]))
    return run


LOOPS = {"bare": bare, "joint": joint, "ewc": ewc, "lwf": lwf, "mas": mas, "twp": twp, "er-gnn": er_gnn, "gem": gem}
