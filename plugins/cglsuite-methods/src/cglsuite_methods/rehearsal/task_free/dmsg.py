"""Diversified memory selection and generation (DMSG)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.base.errors import NotApplicable
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch
from cglsuite_methods.rehearsal.task_free.memory import MEMORY, Rehearsing


class DMSG(Rehearsing):
    """Select a memory for diversity and replay it as synthesised embeddings (Qiao et al. 2025): ``L(B) + L(M_B) + λ_r L_rec + λ_kl KL + λ_a
    L_adv``.

    **Selection.** After every batch the memory is reselected from itself and the batch, item by item, always from the class with the fewest
    selected items (ties in random order). The selected item adds most to

        mean over the class's items i of max_{chosen j} cos(i, j)  +  ``inter`` · (1 - max over items of other classes u of cos(j, u)),

    The first term covers the class, the second keeps away from other classes; cosines are between embeddings.

    **Generation.** A drawn item with embedding μ is replayed as ``h = μ + ε softplus(s)``, ε ~ N(0, I), s a linear map of μ. L(M_B) is the
    loss on the head's outputs for h. L_rec is the binary cross-entropy of ``σ(h hᵀ)`` to whether two items share a class, KL that of
    N(μ, softplus(s)²) to N(0, I) (mean over coordinates), and L_adv the cross-entropy of a discriminator that tells h from μ: the
    discriminator minimises it, and everything before it receives the reversed gradient. Map and discriminator are parts of the model, so
    the optimiser trains them and checkpoints contain them.

    Items are stored with their features. Predictions use μ.

    As benchmarked (DRIFT): weights of 1, ``replay_weight=20``, ``kl_unit=bits`` (the sum over coordinates / ln 2) and
    ``selection=max-min``: half of each batch is picked, first the item with the largest outputs, then always the item whose softmax outputs
    are furthest from the nearest pick; the picks go to a reservoir.
    """

    def setup(self) -> None:
        """Add the generation layer to the model.

        Raises:
            NotApplicable: the head's input width is unknown.
        """
        super().setup()
        width = next((w for m in self.model.head.modules() if (w := getattr(m, "in_features", None))), None)
        if width is None:
            raise NotApplicable(f"dmsg needs the embedding width, but the head of {type(self.model).__name__} has no in_features")
        self.model.generation = Generation(width).to(self.problem.device)
        self._reservoir = self.hyperparameters.get("selection", "diverse") == "max-min"
        if self._reservoir:  # part of the checkpoint, like the generation layer
            self.model.generation.register_buffer("picked", torch.zeros((), dtype=torch.int64, device=self.problem.device))

    def sampled(self, batch: Batch, chosen: Tensor) -> MemoryItems:
        """Return the items at positions ``chosen`` (int64 [m]) with their features."""
        return self.problem.sample(batch, chosen, "item")

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss on the batch plus the four terms for the replayed items."""
        current = super().loss(batch)
        replay = self.draw(batch, len(batch))
        return current if replay is None else current + self._generated(replay)

    def _generated(self, replay: Batch) -> Tensor:
        generation: Any = self.model.generation
        mean = self.problem.embed(self.model, replay)
        spread = generation.spread(mean)
        made = mean + torch.randn_like(mean) * spread
        terms = {
            "replay": self.problem.loss(self.model.readout(made, replay.graph, None), replay),
            "reconstruction": same_class_loss(made, self._shares_class(replay)),
            "kl": self._divergence(mean, spread),
            "adversarial": generation.adversarial(made, mean),
        }
        replayed = self.hyperparameters.get("replay_weight", 1.0) * terms["replay"]
        total: Tensor = replayed + sum(self.hyperparameters[name] * terms[name] for name in ("reconstruction", "kl", "adversarial"))
        return total

    def _divergence(self, mean: Tensor, spread: Tensor) -> Tensor:
        divergence = kl_to_standard(mean, spread)
        in_bits = self.hyperparameters.get("kl_unit", "mean") == "bits"
        return divergence * (mean.shape[1] / math.log(2)) if in_bits else divergence

    def _classes(self, batch: Batch) -> Tensor:
        """Class membership of items among the competing outputs: bool [n, c]."""
        outputs = self.problem.current.nonzero().flatten().tolist()
        return torch.stack([self.problem.has_output(batch, c) for c in outputs], dim=1)

    def _shares_class(self, batch: Batch) -> Tensor:
        """Whether items share a class: float32 [n, n] of 0 and 1."""
        carried = self._classes(batch).float()
        return (carried @ carried.T > 0).float()

    @torch.no_grad()
    def after_batch(self, batch: Batch) -> None:
        """Reselect the memory, or add the selected items of the batch to the reservoir."""
        if self._reservoir:
            self._add_picks(batch)
            return
        items, before = self.sampled(batch, torch.arange(len(batch))), self.kept()
        pool = items if before is None else self.problem.join([before, items])
        if len(pool) > self.capacity:
            training = self.model.training
            self.model.eval()
            asked = self.problem.recall(pool, batch)
            points = functional.normalize(self.problem.embed(self.model, asked), dim=1)
            self.model.train(training)
            carried = self._classes(asked).cpu()
            order = torch.randperm(carried.shape[1], generator=self.context.generator("classes"))
            cosines = (points @ points.T).double().cpu().numpy()
            chosen = diverse(cosines, carried[:, order].numpy(), self.capacity, self.hyperparameters.inter)
            pool = pool.take(torch.from_numpy(chosen))
        self.memory.put(MEMORY, pool)

    def _add_picks(self, batch: Batch) -> None:
        training = self.model.training
        self.model.eval()
        outputs = self.problem.forward(self.model, batch)
        self.model.train(training)
        picks = furthest_apart(outputs, max(1, self.problem.batch_size // 2 if self.problem.batch_size else len(batch) // 2))
        items, before = self.sampled(batch, picks), self.kept()
        count: Any = self.model.generation.picked  # type: ignore[union-attr]
        pool = items if before is None else self.problem.join([before, items])
        places = list(range(len(pool) - len(items)))
        for newcomer in range(len(pool) - len(items), len(pool)):
            if len(places) < self.capacity:
                places.append(newcomer)
            else:
                drawn = int(torch.randint(int(count), (1,), generator=self.context.generator("reservoir")))
                if drawn < self.capacity:
                    places[drawn] = newcomer
            count += 1
        self.memory.put(MEMORY, pool.take(torch.tensor(places)))


def furthest_apart(outputs: Tensor, n: int) -> Tensor:
    """Select ``n`` rows of outputs (float32 [m, C]), starting with the row of largest norm. Each further row is the one whose softmax has
    the largest Euclidean distance to its nearest selected row. Returns int64 [min(n, m)] in order of selection, on the CPU.
    """
    points, picks = functional.softmax(outputs, dim=1), [int(outputs.norm(dim=1).argmax())]
    nearest = torch.cdist(points[picks], points)[0]
    while len(picks) < min(n, len(outputs)):
        nearest[picks] = -1.0
        picks.append(int(nearest.argmax()))
        nearest = torch.minimum(nearest, torch.cdist(points[picks[-1:]], points)[0])
    return torch.tensor(picks)


def diverse(cosines: NDArray[np.float64], carried: NDArray[np.bool_], n: int, inter: float) -> NDArray[np.int64]:
    """Greedily select ``n`` items and return their positions in ascending order: int64 [≤ n].

    Args:
        cosines: float64 [m, m]. carried: bool [m, c], class membership of each item; ties go to the earlier column.
        inter: weight of the distance to other classes.
    """
    m, c = carried.shape
    shared = (carried.astype(np.float64) @ carried.T) > 0
    away = inter * (1.0 - np.where(shared, -1.0, cosines).max(axis=1))
    cover = np.full((c, m), -1.0)  # per class: cosine of each item to the nearest selected item
    free, taken = np.ones(m, dtype=np.bool_), np.zeros(c, dtype=np.int64)
    for _ in range(min(n, m)):
        left = (carried & free[:, None]).any(axis=0)
        if not left.any():
            break
        k = int(np.where(left, taken, m + 1).argmin())
        members, candidates = carried[:, k], np.flatnonzero(carried[:, k] & free)
        gain = np.maximum(cosines[np.ix_(candidates, members)] - cover[k, members], 0.0).mean(axis=1) + away[candidates]
        best = candidates[int(gain.argmax())]
        free[best] = False
        taken += carried[best]
        cover[carried[best]] = np.maximum(cover[carried[best]], cosines[best])
    return np.flatnonzero(~free)


class Generation(nn.Module):
    """Generation layer: predicts the spread of synthesised embeddings and discriminates between synthesised and real ones, both float32 [n,
    width].
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Linear(width, width)
        self.discriminator = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def spread(self, mean: Tensor) -> Tensor:
        """Return the standard deviation of each coordinate: float32 [n, width]."""
        return functional.softplus(self.scale(mean))

    def adversarial(self, made: Tensor, true: Tensor) -> Tensor:
        """Return the mean discriminator loss, a scalar, with reversed gradients for its inputs."""
        answers = self.discriminator(reversed_gradient(torch.cat([made, true]))).squeeze(1)
        target = torch.cat([answers.new_zeros(len(made)), answers.new_ones(len(true))])
        return functional.binary_cross_entropy_with_logits(answers, target)


class _Reversal(torch.autograd.Function):
    """The identity with a negated gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return -gradient


def reversed_gradient(x: Tensor) -> Tensor:
    """Return x unchanged, with its gradient multiplied by -1 (Ganin & Lempitsky 2015)."""
    out: Tensor = _Reversal.apply(x)  # type: ignore[no-untyped-call]
    return out


def same_class_loss(made: Tensor, same: Tensor) -> Tensor:
    """Compute the mean binary cross-entropy between ``σ(h hᵀ)`` (h float32 [n, d]) and ``same`` (float32 [n, n]): a scalar."""
    return functional.binary_cross_entropy_with_logits(made @ made.T, same)


def kl_to_standard(mean: Tensor, spread: Tensor) -> Tensor:
    """Compute ``KL(N(mean, spread²) ‖ N(0, 1))``, averaged over items and coordinates (float32 [n, d] both): a scalar."""
    return 0.5 * (mean.pow(2) + spread.pow(2) - 1 - 2 * spread.log()).mean()
