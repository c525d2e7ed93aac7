"""Gradient-based sample selection (GSS)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch
from cglsuite_methods.gradients.products import gradient_similarity, products_of
from cglsuite_methods.rehearsal.task_free.memory import MEMORY, Rehearsing


class GSS(Rehearsing):
    """Train on ``L(B) + L(M_B)`` with a memory of items whose gradients point in different directions (Aljundi et al. 2019, greedy:
    Algorithm 2).

    An arriving item has the score ``c = 1 + max_j cos(g, g_j)`` over up to ``compared`` random memory items j. It is stored while there is
    room. Once the memory is full, an item with c < 1 is a candidate: a victim i is drawn in proportion to the scores C, and the candidate
    replaces it with probability ``C_i / (C_i + c)``. The first batch has nothing to compare with, so its items have a score of 1 (a cosine
    of 0).

    All items of a batch are compared with the same memory items and draw different victims. All gradients are computed for items in their
    stored form, at the current weights and in evaluation mode, so that they are comparable.

    As benchmarked (DRIFT): with ``compared_batches=5``, items are compared with the mean gradients of five random memory batches. All items
    of a batch are candidates if its mean gradient has a negative cosine with each of these; otherwise none are. Victims are drawn in
    proportion to ``C - min C``, and the first batch has a score of 1.1. With ``separate_steps``, steps alternate between the batch and the
    replayed items, one per pass, so ``training.epochs=2`` makes one step on each (without a memory, the second step has no gradient).
    """

    state = ("scores", "replaced")

    def setup(self) -> None:
        """Initialise the scores."""
        super().setup()
        self.scores = torch.empty(0)
        self.replaced = 0
        self._in_turn: bool = self.hyperparameters.get("separate_steps", False)
        self._batches: int | None = self.hyperparameters.get("compared_batches")
        self._passes = 0

    def before_batch(self, batch: Batch) -> None:
        """Reset the number of passes over the batch."""
        super().before_batch(batch)
        self._passes = 0

    def loss(self, batch: Batch) -> Tensor:
        """Return the sum of the losses on the batch and the replayed items, or alternate between the two with ``separate_steps``."""
        self._passes += 1
        if not self._in_turn:
            return self.replayed_loss(batch)
        if self._passes % 2:
            return super().loss(batch)
        replay = self.draw(batch, len(batch))
        return 0.0 * super().loss(batch) if replay is None else self.problem.loss(self.forward(replay), replay)

    def after_batch(self, batch: Batch) -> None:
        """Score the batch, add its items to the memory, and replace memory items if the memory is full.

        Raises:
            SpecError: steps are separate, but there is only one per batch.
        """
        if self._in_turn and self._passes < 2:
            raise SpecError(
                "method.separate_steps = true: each batch is trained for only 1 pass, so memory items are never replayed; set "
                "training.epochs = 2"
            )
        items = self.sampled(batch, torch.arange(len(batch)))
        before = self.kept()
        candidate = True
        if before is None:
            scores = torch.full((len(batch),), 1.0 if self._batches is None else 1.1)
        elif self._batches is None:
            scores = self._scored(batch, items, before)
        else:
            scores, candidate = self._scored_by_batches(batch, items, before, self._batches)
        free = self.capacity - (0 if before is None else len(before))
        together = items if before is None else self.problem.join([before, items])
        scores = torch.cat([self.scores.cpu(), scores])
        full = min(len(together), self.capacity)
        places = torch.arange(full)
        if len(batch) > free and candidate:
            drawn = self.context.generator("victims")
            victims, newcomers = replacements(scores[:full], scores[full:], drawn, of_batch=self._batches is not None)
            places[victims] = full + newcomers
            self.replaced += len(victims)
        if free > 0 or bool((places >= full).any()):
            self.scores = scores[places]
            self.memory.put(MEMORY, together.take(places))

    def _scored(self, batch: Batch, items: MemoryItems, memory: MemoryItems) -> Tensor:
        """The score ``1 + max_j cos(g, g_j)`` of every item: float32 [m], on the CPU."""
        drawn = torch.randperm(len(memory), generator=self.context.generator("compared"))[: self.hyperparameters.compared]
        return 1 + self._similarity(batch, memory.take(drawn), items, lambda losses: (losses, len(drawn))).amax(dim=1).cpu()

    def _scored_by_batches(self, batch: Batch, items: MemoryItems, memory: MemoryItems, batches: int) -> tuple[Tensor, bool]:
        """The score from mean gradients of random memory batches, and whether the batch's mean gradient has only negative cosines."""
        size = min(len(batch), len(memory))
        n = min(batches, len(memory) // size)
        drawn = torch.randperm(len(memory), generator=self.context.generator("compared"))[: n * size]

        def means(losses: Tensor) -> tuple[Tensor, int]:
            mine = losses[n * size :]
            return torch.cat([losses[: n * size].view(n, size).mean(dim=1), mine, mine.mean().unsqueeze(0)]), n

        best = self._similarity(batch, memory.take(drawn), items, means).amax(dim=1).cpu()
        return 1 + best[:-1], bool(best[-1] < 0)

    def _similarity(self, batch: Batch, drawn: MemoryItems, items: MemoryItems, values: Callable[[Tensor], tuple[Tensor, int]]) -> Tensor:
        """Cosines of gradients: float32 [m, references].

        Args:
            values: maps the losses of drawn items and ``items`` to the values to differentiate and the number of leading references.
        """
        training = self.model.training
        self.model.eval()
        asked = self.problem.recall(self.problem.join([drawn, items]), batch)
        with products_of(self.model) as products:
            losses, references = values(self.problem.loss(self.forward(asked), asked, "none"))
        parameters = list(self.problem.parameters(self.model).values())
        similarity = gradient_similarity(losses, references, parameters, self.hyperparameters.chunk, products)
        self.model.train(training)
        return similarity

    def counters(self) -> dict[str, int]:
        """Return the number of memory items replaced so far."""
        return {"replaced": self.replaced}


def replacements(scores: Tensor, arriving: Tensor, generator: torch.Generator, *, of_batch: bool = False) -> tuple[Tensor, Tensor]:
    """Select the memory items to replace and the arriving items that replace them: two tensors of positions, both int64 [m].

    Args:
        scores: float32 [M], scores of the memory. arriving: float32 [n]; only scores below 1 (a negative cosine) are candidates.
        of_batch: all arrivals are candidates, and victims are drawn in proportion to the excess over the lowest score.
    """
    candidates = (torch.arange(len(arriving)) if of_batch else (arriving < 1).nonzero().flatten())[: len(scores)]
    if not candidates.numel():
        return candidates, candidates
    # A score of 0 (an exactly opposite gradient) must be drawable if fewer scores are positive than victims are needed.
    weights = scores.double() + 1e-9
    drawn_by = weights - weights.min() + 1e-9 if of_batch else weights
    victims = torch.multinomial(drawn_by, len(candidates), replacement=False, generator=generator)
    odds = weights[victims] / (weights[victims] + arriving[candidates])
    wins = torch.rand(len(candidates), dtype=torch.float64, generator=generator) < odds
    return victims[wins], candidates[wins]
