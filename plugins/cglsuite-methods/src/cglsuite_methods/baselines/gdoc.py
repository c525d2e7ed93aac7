"""gDOC: one-vs-rest classifiers with a rejection threshold per class."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from cglsuite.streams import Batch, TaskView
from cglsuite_methods.baselines.replay import Replay
from cglsuite_methods.single_labels import check_single_labels


class GDOC(Replay):
    """Sigmoid outputs trained with weighted binary cross-entropy; an item is rejected if no seen class exceeds its threshold.

    The loss is ``mean_{i,c} -[w_c y_ic log σ(z_ic) + (1 - y_ic) log(1 - σ(z_ic))]`` over the competing classes c, with
    ``w_c = negatives / positives`` of the batch (Galke et al., Neural Networks 164, 2023); without ``weighted``, ``w_c = 1`` (DOC, Shu et
    al., EMNLP 2017). After each task, the threshold of each of its classes becomes ``t_c = max(0.5, 1 - α s_c)``, where s_c is the standard
    deviation of σ(z_c) on the class's training items, mirrored about 1. Like :class:`Replay`, it stores a share of every task's items.

    Outside an open world its predictions are those of the largest ``σ(z_c) - t_c``.
    """

    state = ("thresholds",)

    def setup(self) -> None:
        """Start with the smallest threshold for every class.

        Raises:
            NotApplicable: if items have several labels, or real targets.
        """
        check_single_labels(self, "gdoc trains one classifier per class")
        self.thresholds = torch.full((self.problem.n_outputs,), 0.5, device=self.problem.device)

    def loss(self, batch: Batch) -> Tensor:
        """Compute the binary cross-entropy over the competing classes."""
        logits, y = self.forward(batch), self.problem.labels(batch)
        target = functional.one_hot(y, self.problem.n_outputs).to(logits.dtype)
        competing = batch.allowed.expand(len(batch), -1).to(logits.dtype)
        weight = None
        if self.hyperparameters.weighted:
            positives = (target * competing).sum(dim=0)
            weight = torch.where(positives > 0, (competing.sum(dim=0) - positives) / positives.clamp(min=1), 1.0)
        each = functional.binary_cross_entropy_with_logits(logits, target, pos_weight=weight, reduction="none")
        return (each * competing).sum() / competing.sum()

    @torch.no_grad()
    def after_task(self, view: TaskView) -> None:
        """Set the thresholds of the task's classes, and store its sample."""
        batch = self.problem.batch([view])
        probability, y = self.forward(batch).sigmoid(), self.problem.labels(batch)
        own = functional.one_hot(y, self.problem.n_outputs)
        # Points p and their mirror images 2 - p have mean 1, so the variance is the mean of (1 - p)².
        variance = (own * (1 - probability).square()).sum(dim=0) / own.sum(dim=0).clamp(min=1)
        fitted = (1 - self.hyperparameters.alpha * variance.sqrt()).clamp(min=0.5)
        self.thresholds = torch.where(own.any(dim=0), fitted, self.thresholds)
        super().after_task(view)

    def predict(self, query: Batch) -> Tensor:
        """Each class's probability above its threshold; infinite for unseen classes, which decides whether an item is rejected."""
        margin = self.forward(query).sigmoid() - self.thresholds
        best = margin.masked_fill(~query.allowed, -torch.inf).amax(dim=1, keepdim=True)
        verdict = torch.where(best < 0, torch.inf, -torch.inf)
        return torch.where(query.allowed, margin, verdict)
