"""The base class of continual-learning methods. Importing it imports no torch, so that a one-module plugin lists quickly.

A method overrides only the hooks it needs. It sees tasks through views, and everything that depends on the problem level
through ``self.problem``.
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
    """Resolved hyper-parameters, by attribute or by key (``hyperparameters["lambda"]``)."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"no hyper-parameter {name!r}; declared: {', '.join(self._values) or 'none'}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, kw_only=True)
class MethodContext:
    """The inputs of a method's constructor.

    Args:
        problem: the adapter of the problem level.
        hyperparameters: the method's resolved hyper-parameters.
        build_model: draws a new model (inside the runner's random scope).
        memory: the metered buffer, the only place for replayed items.
        n_tasks: T, the number of tasks of the stream.
        generator: purpose to a ``torch.Generator`` that depends on the init seed, the purpose and the stream so far. Every purpose has one
            generator, which continues from draw to draw and is reseeded for every task (task-free: for every batch). In ``predict`` it is
            a different one, reseeded for every query.
        epochs: the protocol's passes over a task, of which a phase has its share; at most, where a schedule may end a task earlier.
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
        share: of the protocol's epochs (1 = all), above 0.
        name: what the round is for, in messages.
        loss: batch to the scalar to minimise; ``None`` = ``method.loss`` with the hooks ``before_epoch``, ``before_step`` and
            ``after_step``. A loss given here runs without these hooks.
        parameters: what to optimise, with a new optimiser; they may lie outside the model. ``None`` = ``method.parameter_groups()``.
        monitor: the scalar that steers the plateau schedule, the end of training and the best epoch: that of the protocol, the mean
            training loss of the epoch, or ``none`` (constant rate, last epoch kept).
        stop: called after each epoch with its 0-based number and ``{"loss": mean training loss}``; true ends the round. It never gets
            a validation value.

    Raises:
        SpecError: a share or a monitor that does not exist.

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
            raise SpecError(f"phase {self.name!r}: monitor = {self.monitor!r}; expected protocol, loss or none")


class Method:
    """Fine-tuning, with hooks that subclasses override.

    ``state`` names the attributes that belong to a checkpoint besides the model and the memory: tensors, numbers, strings, modules,
    lists or dicts of those, and objects with ``state()`` and ``load_state(state)`` that ``setup`` creates, such as a
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
        """Initialise every attribute named in ``state``."""

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """The views whose training items make up this task's batches."""
        return (view,)

    def before_task(self, view: TaskView) -> None:
        """Called once before training on a task."""

    def phases(self, view: TaskView) -> Iterable[Phase]:
        """The rounds of optimisation of a task; a generator may prune or grow the model between them.

        A task without phases is skipped: no training and no evaluation (its row of the performance matrix is NaN).
        """
        yield Phase()

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """The optimiser's parameters for a task: one group per set of options, as in ``torch.optim``.

        A method's own parameters belong on ``self.model`` (``register_parameter`` or a submodule): then the best epoch and checkpoints
        include them. Options that a group leaves out are the protocol's (``lr``, ``weight_decay``); on a plateau the rates of all groups
        are cut by the same factor.
        """
        yield {"params": [p for p in self.model.parameters() if p.requires_grad]}

    def before_epoch(self, epoch: int) -> None:
        """Called before each pass over the batches."""

    def forward(self, batch: Batch) -> Tensor:
        """Raw outputs of a batch: float32 [n, C]."""
        return self.problem.forward(self.model, batch)

    def loss(self, batch: Batch) -> Tensor:
        """The scalar to minimise on a batch; it may be read after ``forward`` only once per step."""
        return self.problem.loss(self.forward(batch), batch)

    def before_step(self) -> None:
        """Called between the backward pass and the optimiser's step; gradients may be changed in place."""

    def after_step(self) -> None:
        """Called after the optimiser's step."""

    def before_batch(self, batch: Batch) -> None:
        """Called before training on each batch of a task-free stream."""

    def after_batch(self, batch: Batch) -> None:
        """Called after each batch of a task-free stream, in training mode: fill the memory, detect a change."""

    def after_task(self, view: TaskView) -> None:
        """Called once after training on a task, in evaluation mode: consolidate, fill the memory."""

    def counters(self) -> dict[str, int]:
        """The method's counters for the record, by name: ``{"projected": 12}`` if 12 gradients were projected. Read once, at the end."""
        return {}

    def predict(self, query: Batch) -> Tensor:
        """Raw outputs of unlabelled items: float32 [n, C]. Runs without gradients in evaluation mode and changes no state."""
        return self.forward(query)
