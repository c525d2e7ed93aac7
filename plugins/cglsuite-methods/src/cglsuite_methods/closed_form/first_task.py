"""Base class for methods that accumulate item statistics with an encoder that is fixed after the first task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from cglsuite import Method
from cglsuite.base.errors import NotApplicable
from cglsuite.learning import Phase
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.baselines.frozen_ncm import FrozenNCM


class FirstTask(FrozenNCM):
    """Extend ``frozen-ncm`` with an optionally trainable encoder: if ``tunes`` is true, the network is trained on the first task and then
    frozen.

    Subclasses define what is accumulated (``_add``) and how items are predicted (``predict``).
    """

    @property
    def tunes(self) -> bool:
        """Whether the network is trained on the first task."""
        return False

    def setup(self) -> None:
        """Freeze the network."""
        self._trainable = [p for p in self.model.parameters() if p.requires_grad]
        self._tuning = False
        self.model.requires_grad_(False)
        self._idle = nn.Parameter(torch.zeros((), device=self.problem.device))

    def before_task(self, view: TaskView) -> None:
        """Unfreeze the network for the first task if it is to be trained."""
        self._tuning = self.tunes and view.first
        self._release()

    def before_batch(self, batch: Batch) -> None:
        """Raise an error if the network is to be trained on the first task but the stream has no tasks.

        Raises:
            NotApplicable: the network is to be trained on the first task of a task-free stream.
        """
        if self.tunes:
            raise NotApplicable(
                f"{type(self).__name__} trains its network on the first task, but a task-free stream has no tasks; "
                "choose features that need no training"
            )

    def _release(self) -> None:
        for parameter in self._trainable:
            parameter.requires_grad_(self._tuning)

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Return the network parameters if the network is being trained on the first task, otherwise a dummy parameter."""
        return Method.parameter_groups(self) if self._tuning else super().parameter_groups()

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Yield ordinary training on the first task if the network is trained, otherwise a single epoch that has no effect."""
        yield from Method.phases(self, view) if self._tuning else super().phases(view)

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss of the network while it is trained, otherwise 0."""
        return Method.loss(self, batch) if self._tuning else super().loss(batch)

    def after_task(self, view: TaskView) -> None:
        """Freeze the network and add the items of the task to the statistics."""
        self._tuning = False
        self._release()
        super().after_task(view)
