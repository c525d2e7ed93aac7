"""The base class for self-supervised pre-training schemes, which define a loss on unlabelled items. Importing it does not import torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from cglsuite.backbones.base import Backbone
    from cglsuite.learning.method import Hyperparameters
    from cglsuite.problems import Problem
    from cglsuite.problems.unlabelled import Unlabelled
    from cglsuite.streams import Batch


@dataclass(frozen=True, kw_only=True)
class PretrainingContext:
    """Everything that the constructor of a pre-training scheme receives.

    Args:
        problem: the adapter of the problem level.
        model: the model to train, initialised like a method's model.
        hyperparameters: the scheme's resolved hyperparameters.
        generator: a CPU generator for drawing corruptions and subgraphs.
        example: all unlabelled items of the view, for example to derive layer sizes.
    """

    problem: Problem
    model: Backbone
    hyperparameters: Hyperparameters
    generator: torch.Generator
    example: Batch

    @cached_property
    def items(self) -> Unlabelled:
        """Helpers for unlabelled items that work at every problem level."""
        from cglsuite.problems.unlabelled import Unlabelled

        return Unlabelled(self.problem)


class Pretraining:
    """Base class for pre-training schemes. A scheme never sees labels, because its batches contain none.

    Modules and parameters that :meth:`setup` assigns to ``self`` are trained together with the model and then discarded.
    """

    def __init__(self, context: PretrainingContext) -> None:
        self.context, self.items, self.model = context, context.items, context.model
        self.hyperparameters, self.generator = context.hyperparameters, context.generator
        self.setup()

    def setup(self) -> None:
        """Create the scheme's layers and read its hyperparameters."""

    def loss(self, batch: Batch) -> Tensor:
        """Compute the scalar loss to minimise on a batch of unlabelled items."""
        raise NotImplementedError(f"{type(self).__name__} must implement loss(batch)")

    def width(self) -> int:
        """Return the embedding dimension d."""
        import torch

        self.model.eval()
        with torch.no_grad():
            width = int(self.items.embed(self.model, self.context.example).shape[1])
        self.model.train()
        return width

    def own(self) -> Iterator[tuple[str, nn.Module | nn.Parameter]]:
        """Iterate over (name, value) for the modules and parameters assigned to the scheme, except the model."""
        from torch import nn

        for name, value in vars(self).items():
            if isinstance(value, nn.Module | nn.Parameter) and value is not self.model:
                yield name, value

    def parameters(self) -> Iterator[nn.Parameter]:
        """Iterate over the scheme's parameters, excluding those of the model."""
        from torch import nn

        for _, value in self.own():
            yield from [value] if isinstance(value, nn.Parameter) else value.parameters()
