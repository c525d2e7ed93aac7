"""Plain PyTorch loops over all task orders of a graph-level class-incremental stream: the same inputs and arithmetic as the
suite's cells, prefixes of orders shared by recursion, and nothing else. For tests/benchmarks/skeleton.py."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
import torch
from plain import Adam
from torch import Tensor
from torch.nn import functional

__all__ = ["METHODS", "Plain", "PlainTask", "run_orders"]


@dataclass(kw_only=True)
class PlainTask:
    """One task: training graphs (with ``epoch(e)`` for augmented inputs), labels, classes, and its test graphs with labels."""

    train: Any
    y: Tensor
    classes: Tensor
    test: Any
    y_test: Tensor


@dataclass
class Plain:
    """Fine-tuning; subclasses add what their method adds. An object is the state after some tasks, copied where orders part."""

    model: torch.nn.Module
    hyperparameters: dict[str, Any]
    seen: list[int] = field(default_factory=list)
    past: list[Any] = field(default_factory=list)
    optimizer: Adam | None = None

    def task(self, task: PlainTask, epochs: int, lr: float) -> None:
        """Learn one more task."""
        self.seen += task.classes.tolist()
        self.columns = torch.tensor(sorted(self.seen))
        self.place = torch.full((int(self.columns.max()) + 1,), -1)
        self.place[self.columns] = torch.arange(len(self.columns))
        if self.optimizer is None:  # its moments outlive a task
            self.optimizer = Adam(self.model.parameters(), lr=lr, weight_decay=0.0)
        graphs, y = self.items(task)
        y = self.place[y]
        self.before()
        for e in range(epochs):
            self.model.train()
            now = graphs.epoch(e)
            for parameter in self.optimizer.weights:
                parameter.grad = None
            loss, outputs = self.ce(now, y)
            self.backward(loss, outputs, now)
            self.optimizer.step([parameter.grad for parameter in self.optimizer.weights])
        self.model.eval()
        self.after(task)

    def ce(self, graphs: Any, y: Tensor, reduction: str = "mean") -> tuple[Tensor, Tensor]:
        """Cross-entropy among the classes seen, weighed by 1 / count of the class, and all outputs."""
        outputs = self.model(graphs)
        weight = None if reduction == "none" else 1.0 / torch.bincount(y, minlength=len(self.columns)).clamp(min=1)
        return functional.cross_entropy(outputs[:, self.columns], y, weight=weight, reduction=reduction), outputs

    def items(self, task: PlainTask) -> tuple[Any, Tensor]:
        """What is trained on."""
        return task.train, task.y

    def before(self) -> None:
        """Before the first epoch."""

    def backward(self, loss: Tensor, outputs: Tensor, now: Any) -> None:
        """From the loss to gradients."""
        loss.backward()

    def after(self, task: PlainTask) -> None:
        """After the last epoch."""


def per_item(values: Tensor, parameters: list[Tensor], chunk: int = 16) -> Iterator[list[Tensor]]:
    """Gradients of each value, a chunk at a time."""

    def one(direction: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(values, parameters, direction, retain_graph=True)

    for rows in torch.eye(len(values)).split(chunk):
        yield list(torch.func.vmap(one)(rows))


class PlainPenalty(Plain):
    """Quadratic penalties with running sums, written into the gradients."""

    strength = 1.0

    def before(self) -> None:
        self.weights, self.anchors = self.past or (None, None)

    def backward(self, loss: Tensor, outputs: Tensor, now: Any) -> None:
        loss.backward()
        self.pull()

    def pull(self) -> None:
        """Add the penalty's gradient."""
        if self.past:
            with torch.no_grad():
                for p, w, v in zip(self.model.parameters(), *self.past, strict=True):
                    p.grad = torch.zeros_like(p) if p.grad is None else p.grad
                    p.grad.addcmul_(w, p, value=2 * self.strength).sub_(v, alpha=2 * self.strength)

    def add(self, importance: list[Tensor], replace_anchor: bool = False) -> None:
        """One more task's importance, at the weights as they are."""
        parameters = [p.detach() for p in self.model.parameters()]
        old = self.past or ([torch.zeros_like(p) for p in parameters], [torch.zeros_like(p) for p in parameters])
        weights = [w + i for w, i in zip(old[0], importance, strict=True)]
        anchors = [w * p for w, p in zip(weights, parameters, strict=True)] if replace_anchor else None
        self.past = [weights, anchors or [v + i * p for v, i, p in zip(old[1], importance, parameters, strict=True)]]


class PlainEWC(PlainPenalty):
    """Squared gradients: of the batch's loss, or the mean over items."""

    def task(self, task: PlainTask, epochs: int, lr: float) -> None:
        self.strength = self.hyperparameters["lambda"]
        super().task(task, epochs, lr)

    def after(self, task: PlainTask) -> None:
        if self.hyperparameters["fisher"] == "batch":
            loss, _ = self.ce(task.train, self.place[task.y])
            self.add([g.pow(2) for g in torch.autograd.grad(loss, list(self.model.parameters()))])
            return
        losses, _ = self.ce(task.train, self.place[task.y], "none")
        total = [torch.zeros_like(p) for p in self.model.parameters()]
        for rows in per_item(losses, list(self.model.parameters())):
            total = [t + r.pow(2).sum(0) for t, r in zip(total, rows, strict=True)]
        self.add([t / len(losses) for t in total])


class PlainMAS(PlainEWC):
    """Importance from the gradient of the squared norm of the outputs."""

    def after(self, task: PlainTask) -> None:
        if self.hyperparameters["importance"] == "batch-squared":  # a mean over tasks: the earlier share fades
            mean = self.model(task.train)[:, self.columns].pow(2).mean()
            found = [g.pow(2) for g in torch.autograd.grad(mean, list(self.model.parameters()))]
            share = len(task.classes) / len(self.columns)
            if self.past:
                self.past[0] = [w * (1 - share) for w in self.past[0]]
            self.add([share * f for f in found], replace_anchor=True)
            return
        norms = self.model(task.train)[:, self.columns].pow(2).sum(1)
        total = [torch.zeros_like(p) for p in self.model.parameters()]
        for rows in per_item(norms, list(self.model.parameters())):
            total = [t + r.abs().sum(0) for t, r in zip(total, rows, strict=True)]
        self.add([t / len(norms) for t in total], replace_anchor=True)


class PlainTWP(PlainPenalty):
    """Importance for loss and topology, and the 1-norm of the gradient."""

    def backward(self, loss: Tensor, outputs: Tensor, now: Any) -> None:
        beta = self.hyperparameters["beta"]
        if beta:
            slopes = torch.autograd.grad(loss, list(self.model.parameters()), create_graph=True)
            loss = loss + beta * sum(s.abs().sum() for s in slopes)
        loss.backward()
        self.pull()

    def after(self, task: PlainTask) -> None:
        parameters = list(self.model.parameters())
        loss, _ = self.ce(task.train, self.place[task.y])
        of_loss = torch.autograd.grad(loss, parameters)
        topology = self.model.edge_attention(task.train).pow(2).sum()
        of_topology = torch.autograd.grad(topology, parameters, allow_unused=True, materialize_grads=True)
        a, b = self.hyperparameters["lambda_l"], self.hyperparameters["lambda_t"]
        self.add([a * g.pow(2) + b * t.pow(2) for g, t in zip(of_loss, of_topology, strict=True)])


class PlainLwF(Plain):
    """The last model teaches the outputs it knew."""

    def before(self) -> None:
        self.teacher, self.known = self.past if self.past else (None, None)

    def backward(self, loss: Tensor, outputs: Tensor, now: Any) -> None:
        if self.teacher is not None:
            with torch.no_grad():
                taught = self.teacher(now)[:, self.known]
            tau = self.hyperparameters["temperature"]
            distilled = (functional.softmax(taught / tau, 1) * functional.log_softmax(outputs[:, self.known] / tau, 1)).sum()
            loss = loss - self.hyperparameters["lambda"] * distilled / len(outputs)
        loss.backward()

    def after(self, task: PlainTask) -> None:
        self.past = [copy.deepcopy(self.model).requires_grad_(False).eval(), self.columns]


class PlainReplay(Plain):
    """A random part of every past task beside the current one."""

    def items(self, task: PlainTask) -> tuple[Any, Tensor]:
        if not self.past:
            return task.train, task.y
        return task.train.merged([g for g, _ in self.past]), torch.cat([task.y, *(y for _, y in self.past)])

    def after(self, task: PlainTask) -> None:
        chosen = torch.randperm(len(task.y))[: round(self.hyperparameters["fraction"] * len(task.y))]
        self.past = [*self.past, (task.train.take(chosen), task.y[chosen])]


class PlainGEM(PlainReplay):
    """Projected gradients; every memory has a forward pass of its own, and so its own batch statistics."""

    def items(self, task: PlainTask) -> tuple[Any, Tensor]:
        return task.train, task.y

    def before(self) -> None:
        if self.past:
            self.memories = [(graphs, self.place[y]) for graphs, y in self.past]

    def backward(self, loss: Tensor, outputs: Tensor, now: Any) -> None:
        from scipy.linalg import solve_triangular
        from scipy.optimize import nnls

        loss.backward()
        if not self.past:
            return
        parameters = list(self.model.parameters())
        flat = torch.cat([p.grad.flatten() for p in parameters])
        rows = []
        for graphs, y in self.memories:
            got = torch.autograd.grad(self.ce(graphs, y)[0], parameters)
            rows.append(torch.cat([g.flatten() for g in got]))
        past = torch.stack(rows)
        products = past @ flat
        if not bool((products < 0).any()):
            return
        q = (past @ past.T).double().numpy() + 1e-3 * np.eye(len(rows))
        margin, factor = self.hyperparameters["margin"], np.linalg.cholesky(q)
        target = solve_triangular(factor, products.double().numpy() + margin * q.sum(1), lower=True)
        weights = torch.as_tensor(nnls(factor.T, -target)[0] + margin, dtype=torch.float32)
        flat = flat + past.T @ weights
        for p, piece in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            p.grad.copy_(piece.view_as(p))


METHODS: dict[str, type[Plain]] = {
    "bare": Plain,
    "ewc": PlainEWC,
    "mas": PlainMAS,
    "twp": PlainTWP,
    "lwf": PlainLwF,
    "gem": PlainGEM,
    "replay": PlainReplay,
}


def run_orders(
    method: str,
    tasks: Sequence[PlainTask],
    n_orders: int,
    make_model: Callable[[], Any],
    hyperparameters: dict[str, Any],
    epochs: int,
    lr: float,
) -> tuple[dict[tuple[int, ...], list[float]], int]:
    """The first ``n_orders`` task orders in lexicographic order: final macro accuracy per task by order, and task trainings."""
    orders = list(permutations(range(len(tasks))))[:n_orders]
    states: dict[tuple[int, ...], Plain] = {(): METHODS[method](make_model(), hyperparameters)}
    results, trainings = {}, 0
    together = tasks[0].test.merged([t.test for t in tasks[1:]])
    for order in orders:
        known = max(k for k in range(len(order) + 1) if order[:k] in states)
        for k in range(known, len(order)):
            state = copy.deepcopy(states[order[:k]])
            state.task(tasks[order[k]], epochs, lr)
            scores(state, tasks, together)
            states[order[: k + 1]] = state
            trainings += 1
        results[order] = scores(states[order], tasks, together)
        following = orders[orders.index(order) + 1] if order != orders[-1] else ()
        states = {prefix: s for prefix, s in states.items() if prefix == following[: len(prefix)]}
    return results, trainings


@torch.no_grad()
def scores(state: Plain, tasks: Sequence[PlainTask], together: Any) -> list[float]:
    """Macro accuracy on every task among the classes seen."""
    answers = state.columns[state.model(together)[:, state.columns].argmax(1)].split([len(t.y_test) for t in tasks])
    out = []
    for task, given in zip(tasks, answers, strict=True):
        out.append(float(np.mean([float((given[task.y_test == c] == c).float().mean()) for c in task.classes.tolist()])))
    return out
