"""Class prototypes on an encoder that is fixed after the first task: SimpleCIL and TEEN, which calibrates new prototypes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import uploaded
from cglsuite.problems import Problem
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.closed_form.first_task import FirstTask
from cglsuite_methods.single_labels import check_single_labels


class SimpleCIL(FirstTask):
    """Predict the class whose mean embedding has the highest cosine similarity to the item (Zhou, Cai, Ye, Zhan, Liu: Revisiting
    Class-Incremental Learning with Pre-Trained Models: Generalizability and Adaptivity Are All You Need, IJCV 2025).

    ``z_c = cos(h, μ_c)``, where h is the embedding by the backbone's body and μ_c is the mean over all training items of class c so far; a
    class without items has output -1. The class extends ``frozen-ncm`` but averages embeddings instead of unit embeddings, and compares
    angles instead of distances. The encoder has random weights, or is pre-trained if the cell names a scheme (``pretraining.scheme``).

    LLM4GCL (Cheng et al. 2025) trains the encoder on the first task (``tune``) and averages a random sample of 20 items per task
    (``per_task``), so a class without a sampled item is never predicted.

    The result is deterministic for a given encoder: with ``per_task=none``, the init seed affects only the encoder's weights.

    Cost: one pass without gradients per task, plus the training of the first task with ``tune``; one vector and one count per class.
    """

    name: ClassVar[str] = "simple-cil"

    @property
    def tunes(self) -> bool:
        """Whether the encoder is trained on the first task."""
        return bool(self.hyperparameters.tune)

    def setup(self) -> None:
        """Initialise without any prototypes.

        Raises:
            NotApplicable: items do not have a single class each.
        """
        check_single_labels(self, f"{self.name} compares means of classes")
        super().setup()
        self.sums: list[Tensor] = []
        """Once there are items, the sum of the embeddings of each class: float32 [C, d]."""
        self.counts = torch.zeros(self.problem.n_outputs, device=self.problem.device)

    def _embedded(self, batch: Batch) -> Tensor:
        return self.problem.embed(self.model, batch)

    def after_task(self, view: TaskView) -> None:
        """Freeze the encoder and add the items of the task, or a random sample of them, to the class means."""
        sample = self.hyperparameters.get("per_task")
        if sample is not None and sample < len(view.train):
            chosen = torch.randperm(len(view.train), generator=self.context.generator("prototypes"))[:sample]
            view = replace(view, train=taken(view.train, chosen))
        super().after_task(view)

    def prototypes(self) -> Tensor:
        """Return one prototype per class: float32 [C, d], with zeros for classes without items."""
        return self.sums[0] / self.counts.clamp(min=1).unsqueeze(1)

    def predict(self, query: Batch) -> Tensor:
        """Return the cosine similarity to every prototype, computed class by class so that the result for an item does not depend on the
        other items.
        """
        embedded = functional.normalize(self._embedded(query), dim=1)
        if not self.sums:
            return embedded.new_full((len(query), self.problem.n_outputs), -1.0)
        unit = functional.normalize(self.prototypes(), dim=1)
        cosines = torch.stack([(embedded * prototype).sum(dim=1) for prototype in unit], dim=1)
        return torch.where(self.counts > 0, cosines, -1.0)


class TEEN(SimpleCIL):
    """Train on a large first task, then move the prototypes of later classes towards those of the first task (Wang, Zhou, Zhang, Zhan, Ye:
    Few-shot Class-Incremental Learning via Training-free Prototype Calibration, NeurIPS 2023).

    The encoder is trained on the first task and then frozen. With unit means p_c of all classes and B the classes of the first task, the
    prototype of a later class is

        (1 - α) p_c + α d_c / ‖d_c‖,  d_c = Σ_{b in B} softmax_b(τ cos(p_c, p_b)) p_b,

    α = ``alpha``, τ = ``temperature``. Outputs are cosines, as in ``simple-cil``. As in the authors' code, d_c has unit length. Means of
    few items are biased towards classes that the encoder knows; the calibration exploits this bias instead of correcting it.

    The method needs a base session: if a later task has as many classes as the first, it is refused.

    Cost: the training of the first task, then one pass without gradients per task; one vector, one count and one flag per class.
    """

    name = "teen"
    state = (*SimpleCIL.state, "base")  # type: ignore[assignment]

    @property
    def tunes(self) -> bool:
        """Always true: the encoder is trained on the first task."""
        return True

    def setup(self) -> None:
        """Initialise without any prototypes.

        Raises:
            NotApplicable: items do not have a single class each.
        """
        super().setup()
        self.base = torch.zeros(self.problem.n_outputs, dtype=torch.bool, device=self.problem.device)
        """The classes of the first task: bool [C]."""

    def before_task(self, view: TaskView) -> None:
        """Store which classes belong to the base session.

        Raises:
            NotApplicable: a later task has at least as many classes as the first.
        """
        if view.first:
            self.base = view.task_outputs.clone()
        elif len(view.classes) >= int(self.base.sum()):
            raise NotApplicable(
                f"teen needs a base session with more classes than any later task: the first task has {int(self.base.sum())} classes, "
                f"but task {view.position + 1} has {len(view.classes)}; expected fewer, as with scenario.base_classes"
            )
        super().before_task(view)

    def prototypes(self) -> Tensor:
        """Return unit-length means for the classes of the base session and calibrated prototypes for later classes: float32 [C, d]."""
        alpha, temperature = self.hyperparameters.alpha, self.hyperparameters.temperature
        return calibrated(super().prototypes(), self.base, alpha=alpha, temperature=temperature)


def calibrated(means: Tensor, base: Tensor, *, alpha: float, temperature: float) -> Tensor:
    """Compute the prototypes of TEEN: float32 [C, d].

    Args:
        means: of each class, float32 [C, d]. base: which classes keep their own, bool [C].
    """
    unit = functional.normalize(means, dim=1)
    anchors = unit[base]
    mixed = functional.normalize(functional.softmax(temperature * unit @ anchors.T, dim=1) @ anchors, dim=1)
    return torch.where(base[:, None], unit, (1 - alpha) * unit + alpha * mixed)


def taken(batch: Batch, chosen: Tensor) -> Batch:
    """Select the items at positions ``chosen`` (int64 [m], on the CPU) from a labelled batch. The graph is unchanged."""
    there = uploaded(chosen, batch.ids.device)
    allowed = batch.allowed if batch.allowed.dim() == 1 else batch.allowed[there]
    tasks = None if batch.tasks is None else batch.tasks[there]
    return replace(batch, ids=batch.ids[there], y=Problem.labels(batch)[there], tasks=tasks, allowed=allowed, cache={})
