"""PackNet: pruning assigns a set of weights to each task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from cglsuite import Method
from cglsuite.learning import Phase
from cglsuite.learning.isolation import Held, along, by_task, output_wires, swapped
from cglsuite.streams import Batch, TaskView


class PackNet(Method):
    """Assign every weight of the body to one task or leave it free (Mallya & Lazebnik, CVPR 2018).

    Task t trains the free weights for a ``share`` of the epochs. It then keeps the share κ with the largest magnitude among the free
    weights of each tensor; the others are set to 0 and stay free. The kept weights are trained again and never change afterwards. Items of
    task k are predicted with ``W ⊙ [o ≤ k]``, so what a task has learnt cannot be forgotten. ``κ = 1 - (1/T)^(1/(T-1))`` leaves every task
    except the last the same number of weights, as in BeGin; the last task keeps all remaining weights. The paper prunes a fixed 50 or 75%
    (``keep`` = .5 or .25).

    Biases and normalisation layers belong to no task: they are trained in the first task, as in the paper, and their statistics are frozen
    after it. In the head, a task changes only its own outputs. Masks restrict the updates of the optimiser, so weight decay and moments
    change nothing either.

    Cost: the time of fine-tuning plus ``share``; one int16 per weight of the body.

    ``as_begin``: normalisation statistics are frozen before the first task trains its kept weights again. BeGin's code ignores any tensor
    that cannot be pruned; this is a bug and is not reproduced.
    """

    state = ("owner", "learnt")

    def setup(self) -> None:
        """Mark all weights as free."""
        tagged = [(tag, name, p) for tag, name, p in self.model.tagged_parameters()]
        self.wires = output_wires(self.model.head)
        self.shared = [name for tag, name, p in tagged if tag == "norm" or (tag == "body" and p.dim() < 2)]
        self.owner: dict[str, Tensor] = {
            name: torch.full_like(p, self.context.n_tasks, dtype=torch.int16) for tag, name, p in tagged if tag == "body" and p.dim() > 1
        }
        self.learnt = 0
        self.held = Held(self.model)
        self.masks: dict[str, Tensor] = {}
        self.retraining = False

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Train the free weights, prune them, then retrain the remaining ones."""
        t, free = view.position, self.context.n_tasks
        common = self._common(view)
        open_ = {} if view.first else {name: owner == free for name, owner in self.owner.items()}
        self.masks, self.retraining = common | open_, False
        yield Phase(share=self.hyperparameters.share, name="train")
        self._prune(t)
        self.masks, self.retraining = common | {name: owner == t for name, owner in self.owner.items()}, True
        yield Phase(name="retrain")

    def _common(self, view: TaskView) -> dict[str, Tensor]:
        """Parameters trained in both phases apart from the body's weights: the task's outputs and, in the first task, all shared ones."""
        parameters = dict(self.model.named_parameters())
        masks = {} if view.first else {name: torch.zeros_like(parameters[name], dtype=torch.bool) for name in self.shared}
        return masks | {w.parameter: along(w, parameters[w.parameter], view.task_outputs) for w in self.wires}

    @torch.no_grad()
    def _prune(self, t: int) -> None:
        parameters, free, n_tasks = dict(self.model.named_parameters()), self.context.n_tasks, self.context.n_tasks
        for name, owner in self.owner.items():
            weight, places = parameters[name], (owner.flatten() == free).nonzero().flatten()
            kept = round(share_kept(self.hyperparameters.keep, t, n_tasks) * len(places))
            largest = weight.flatten()[places].abs().argsort(descending=True, stable=True)[:kept]
            owner.view(-1)[places[largest]] = t
            weight.mul_(owner != free)

    def before_epoch(self, epoch: int) -> None:
        """With ``as_begin``, freeze the normalisation statistics while the remaining weights are retrained."""
        if self.hyperparameters.as_begin and self.retraining:
            for module in self.model.modules():
                if isinstance(module, nn.BatchNorm1d):
                    module.eval()

    def before_step(self) -> None:
        """Save the weights owned by other tasks."""
        self.held.before(self.masks)

    def after_step(self) -> None:
        """Restore the weights owned by other tasks."""
        self.held.after()

    def after_task(self, view: TaskView) -> None:
        """Mark the task as learnt, so that queries can refer to it."""
        self.learnt = view.position + 1

    def predict(self, query: Batch) -> Tensor:
        """Return the raw outputs of each item with the weights of its task and earlier tasks."""
        return by_task(self, query, self._of_task, self.learnt)

    def _of_task(self, k: int) -> AbstractContextManager[None]:
        if k < 0:
            return nullcontext()
        parameters = dict(self.model.named_parameters())
        return swapped(self.model, {name: parameters[name].detach() * (owner <= k) for name, owner in self.owner.items()})

    def counters(self) -> dict[str, int]:
        """Return the number of weights that no task owns at the end."""
        return {"free_weights": sum(int((owner == self.context.n_tasks).sum()) for owner in self.owner.values())}


def share_kept(keep: float | None, t: int, n_tasks: int) -> float:
    """Return the share of the free weights that task ``t`` (0-based) of ``n_tasks`` keeps; the last task keeps all of them.

    Args:
        keep: ``None`` = ``1 - (1/T)^(1/(T-1))``.
    """
    if t + 1 >= n_tasks:
        return 1.0
    return 1 - (1 / n_tasks) ** (1 / (n_tasks - 1)) if keep is None else keep
