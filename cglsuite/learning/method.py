"""The base class of continual-learning methods. Importing it does not import torch, which keeps listing one-module plugins fast.

A method overrides only the hooks it needs. It accesses tasks through views, and ``self.problem`` provides everything that depends on the
problem level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cglsuite.base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from torch import Tensor, nn

    from cglsuite.backbones.base import Backbone
    from cglsuite.learning.memory import MeteredMemory
    from cglsuite.problems import Problem
    from cglsuite.streams import Batch, TaskView


class Hyperparameters(Mapping[str, Any]):
    """Resolved hyperparameters, accessible as attributes or by key (``hyperparameters["lambda"]``)."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"no hyperparameter {name!r}; declared: {', '.join(self._values) or 'none'}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, kw_only=True)
class MethodContext:
    """Everything that a method's constructor receives.

    Args:
        problem: the adapter of the problem level.
        hyperparameters: the method's resolved hyperparameters.
        build_model: creates a newly initialised model (inside the runner's random scope).
        memory: the metered replay buffer, the only place where a method may store items for replay.
        n_tasks: T, the number of tasks in the stream.
        generator: maps a purpose to a ``torch.Generator`` that depends on the init seed, the purpose and the stream so far. Each purpose
            has one generator, which advances with every draw and is reseeded for every task (task-free: for every batch). ``predict`` uses
            separate generators, which are reseeded for every query.
        epochs: the protocol's number of epochs per task, divided among the phases. If a schedule may end a task early, it is the maximum.
    """

    problem: Problem
    hyperparameters: Hyperparameters
    build_model: Callable[[], Backbone]
    memory: MeteredMemory
    n_tasks: int
    generator: Callable[[str], torch.Generator]
    epochs: int = 1


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One round of optimisation within a task.

    Args:
        share: fraction of the protocol's epochs (1 = all), above 0.
        name: the name of the phase in messages.
        loss: maps a batch to the scalar to minimise. ``None`` = ``method.loss`` with the hooks ``before_epoch``, ``before_step`` and
            ``after_step``. A loss passed here runs without these hooks.
        parameters: parameters to train with a new optimiser, inside or outside the model. ``None`` = ``method.parameter_groups()``.
        monitor: the scalar that controls the plateau schedule, early stopping and the choice of the best epoch: the protocol's monitored
            value, the mean training loss of the epoch, or ``none`` (constant learning rate, weights of the last epoch).
        stop: called after each epoch with its 0-based number and ``{"loss": mean training loss}``. If it returns true, the phase ends. It
            never receives a validation value.

    Raises:
        SpecError: if the share is not above 0, or the monitor is unknown.

    Example:
        >>> Phase(share=0.1, name="warm-up", monitor="none").share
        0.1
    """

    share: float = 1.0
    name: str = "learn"
    loss: Callable[[Batch], Tensor] | None = None
    parameters: Sequence[nn.Parameter] | None = None
    monitor: Literal["protocol", "loss", "none"] = "protocol"
    stop: Callable[[int, Mapping[str, float]], bool] | None = None

    def __post_init__(self) -> None:
        if not self.share > 0:
            raise SpecError(f"phase {self.name!r}: share = {self.share!r}; expected a number above 0 (1 = all epochs of the protocol)")
        if self.monitor not in ("protocol", "loss", "none"):
            raise SpecError(f"phase {self.name!r}: monitor = {self.monitor!r}; expected 'protocol', 'loss' or 'none'")


class Method:
    """Base class for methods. It implements fine-tuning. Subclasses override the hooks they need.

    ``state`` names the attributes to save in checkpoints in addition to the model and the memory. They can be tensors, numbers, strings,
    modules, lists or dicts of those, and objects with ``state()`` and ``load_state(state)`` that ``setup`` creates, such as a
    :class:`cglsuite.learning.Reservoir`.
    """

    state: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: MethodContext) -> None:
        self.context = context
        self.problem = context.problem
        self.hyperparameters = context.hyperparameters
        self.memory = context.memory
        self.model: Backbone = context.build_model()
        self.setup()

    def setup(self) -> None:
        """Create the method's attributes, including all those named in ``state``. Called once, at the end of the constructor."""

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """Return the views to train on in this task: by default, only the task's own view."""
        return (view,)

    def before_task(self, view: TaskView) -> None:
        """Called once before training on a task."""

    def phases(self, view: TaskView) -> Iterable[Phase]:
        """Return the training phases of a task. If this is a generator, it may prune or grow the model between phases.

        A task without phases is skipped: it is neither trained nor evaluated, and its row of the performance matrix is NaN.
        """
        yield Phase()

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Return the parameters to optimise in a task, as parameter groups in the format of ``torch.optim``.

        Register a method's own parameters on ``self.model`` (``register_parameter`` or a submodule), so that checkpoints and the weights of
        the best epoch include them. Options that a group omits (``lr``, ``weight_decay``) come from the protocol. On a plateau, the
        learning rates of all groups are reduced by the same factor.
        """
        yield {"params": [p for p in self.model.parameters() if p.requires_grad]}

    def before_epoch(self, epoch: int) -> None:
        """Called at the start of each epoch."""

    def forward(self, batch: Batch) -> Tensor:
        """Compute the raw outputs of a batch: float32 [n, C]."""
        return self.problem.forward(self.model, batch)

    def loss(self, batch: Batch) -> Tensor:
        """Compute the scalar loss to minimise on a batch. Its value may be read after ``forward`` only once per step."""
        return self.problem.loss(self.forward(batch), batch)

    def before_step(self) -> None:
        """Called after the backward pass and before the optimiser step. Gradients may be changed in place."""

    def after_step(self) -> None:
        """Called after each optimiser step."""

    def before_batch(self, batch: Batch) -> None:
        """Called before training on each batch of a task-free stream."""

    def after_batch(self, batch: Batch) -> None:
        """Called after each batch of a task-free stream, in training mode, for example to fill the memory or detect drift."""

    def after_task(self, view: TaskView) -> None:
        """Called once after training on a task, in evaluation mode. Use it, for example, to consolidate weights or fill the memory."""

    def counters(self) -> dict[str, int]:
        """Return named counts for the record, such as ``{"projected": 12}`` for 12 projected gradients. Called once, after the run."""
        return {}

    def predict(self, query: Batch) -> Tensor:
        """Compute the raw outputs of unlabelled items: float32 [n, C]. Runs in evaluation mode without gradients. Must not change any
        state."""
        return self.forward(query)
