"""The runner of a member of a company: a :class:`TaskRunner` whose training on a task is computed with the other members.

The loop, the schedule, the method's hooks and its own losses are the member's own; passes over the message graph, the cross-entropy of a
method without a loss of its own, the optimiser's step and the validation loss are the company's. A task whose items lie in a graph of the
method's making (stored items beside those of the task) is trained by the ordinary loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from cglsuite.backbones.convolutional import ConvolutionalBackbone
from cglsuite.errors import DivergenceError, PluginError
from cglsuite.graphs import MessageGraph
from cglsuite.learning import launch
from cglsuite.learning.batched.company import BACKWARD, FORWARD, LEARN, MONITOR, UPDATE, Lesson, Member, member
from cglsuite.learning.batched.stacked import Items, Parts, Pass, masks_of, shape_of
from cglsuite.learning.loop import Curve, _Schedule, fit
from cglsuite.learning.method import Method, MethodContext, Phase
from cglsuite.learning.reproducibility.randomness import generator
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch, TaskStream, TaskView

__all__ = ["BatchedTaskRunner", "SeatedBackbone", "make_runner"]


def make_runner(
    stream: TaskStream, make_method: Callable[[MethodContext], Method], make_backbone: Callable[..., Any], **settings: Any
) -> TaskRunner:
    """:func:`cglsuite.learning.launch.make_runner` for the member that runs now.

    Raises:
        RuntimeError: no member runs now, or the stream has no tasks.
    """
    runner = launch.make_runner(stream, make_method, _seated(make_backbone), **settings)
    if type(runner) is not TaskRunner:
        raise RuntimeError(f"{type(runner).__name__} has no batched form")
    runner.__class__ = BatchedTaskRunner
    clock = _member().clock
    clock.seconds = runner.clock.seconds
    runner.clock = clock
    return runner


def _member() -> Member:
    current = member()
    if current is None:
        raise RuntimeError("a batched cell is trained in a company")
    return current


def _seated(make_backbone: Callable[..., Any]) -> Callable[..., Any]:
    def make(*sizes: int, **hyperparameters: Any) -> Any:
        model = make_backbone(*sizes, **hyperparameters)
        if isinstance(model, ConvolutionalBackbone):
            base: Any = type(model)
            model.__class__ = _class_with(base)
            vars(model)["_seat"] = _Seat()
        return model

    return make


@cache
def _class_with(base: Any) -> Any:
    """``base`` with :class:`SeatedBackbone` in front of it, under its own name."""
    return type(base.__name__, (SeatedBackbone, base), {"__module__": base.__module__})


class _Seat:
    """Marks the models that a method trains. A copy, such as a teacher, has none. It refers to nothing."""

    __slots__ = ()

    def __copy__(self) -> None:
        return None

    def __deepcopy__(self, memo: Any) -> None:
        return None


class SeatedBackbone(ConvolutionalBackbone):
    """In front of a backbone's class: while a method computes its own loss, passes over the task's graph are the company's."""

    _seat: _Seat | None

    def forward(self, graph: Any, ids: Tensor | None = None) -> Tensor:
        """See :meth:`Backbone.forward`."""
        together = None if self._seat is None else _outputs(self, graph, ids, head=True)
        return super().forward(graph, ids) if together is None else together

    def encode(self, graph: Any) -> Tensor:
        """See :meth:`Backbone.encode`."""
        together = None if self._seat is None else _outputs(self, graph, None, head=False)
        return super().encode(graph) if together is None else together


def _outputs(model: ConvolutionalBackbone, graph: Any, ids: Tensor | None, *, head: bool) -> Tensor | None:
    """The model's outputs (without ``head``: embeddings) of the nodes ``ids``; ``None`` if it is to compute them by itself."""
    current = _member()
    step: _Step | None = current.step
    if step is None or step.lesson.parts.model is not model or graph is not step.graph or not torch.is_grad_enabled():
        return None
    done: Pass = current.ask(kind=FORWARD, lesson=step.lesson, masks=step.masks(), head=head)
    call = _Call(done, ids)
    step.calls.append(call)
    some = next(iter(step.lesson.parts.parameters.values()))
    observed: Tensor = _Observed.apply(done.rows(current.slot, ids), some, call)  # type: ignore[no-untyped-call]
    return observed


class _Call:
    """A pass whose gradient is still to come: of the outputs of the nodes ``ids``."""

    def __init__(self, done: Pass, ids: Tensor | None) -> None:
        self.done, self.ids, self.visits = done, ids, 0
        self.gradient: Tensor | None = None


class _Observed(torch.autograd.Function):
    """Passes rows on and keeps their gradient. It depends on a parameter, so that whoever differentiates for parameters comes by."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, parameter: Tensor, call: _Call) -> Tensor:
        ctx.call = call
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        call: _Call = ctx.call
        call.visits += 1
        call.gradient = gradient.detach()
        return None, None, None


class _Step:
    """A step whose loss the method computes itself.

    Args:
        graph: the task's, as the method knows it.
    """

    def __init__(self, lesson: Lesson, graph: MessageGraph) -> None:
        self.lesson, self.graph = lesson, graph
        self.calls: list[_Call] = []

    def masks(self) -> Any:
        """The dropout of a pass."""
        model = self.lesson.parts.model
        return masks_of(model, self.lesson.graph) if model.training else None

    def gradients(self) -> list[tuple[Pass, Tensor | None, Tensor]]:
        """What the loss's differentiation has left.

        Raises:
            PluginError: the method has differentiated its outputs itself.
        """
        if any(call.visits > 1 for call in self.calls):
            raise PluginError(
                "the method differentiates its outputs itself, besides the loop: such gradients of parameters cannot be batched"
            )
        return [(call.done, call.ids, call.gradient) for call in self.calls if call.gradient is not None]


class BatchedTaskRunner(TaskRunner):
    """A :class:`TaskRunner` that trains with the company that runs now."""

    def _learn(self, view: TaskView) -> tuple[Curve, bool]:
        method, clock = self.method, self.clock
        with clock.section("method"):
            method.model.train()
            method.before_task(view)
            self.norms.begin(method.model)
        views = method.training_views(view)
        batches = self.problem.epochs(views, generator(self.init_seed, "batches", self._draws.prefix))
        curve, rounds = Curve(), 0
        for phase in method.phases(view):
            rounds += 1
            optimizer = self._optimizer(phase)
            monitor = self._monitor(views, view.position) if self.training.monitor != "none" else None
            epochs = math.ceil(phase.share * self.training.epochs)
            with clock.section("training"):
                together = self._together(view, views, batches, optimizer, phase)
                if together is None:
                    part = fit(
                        method,
                        batches,
                        self.training,
                        optimizer,
                        epochs=epochs,
                        monitor=monitor,
                        clock=clock,
                        train_mode=self.norms.train,
                        on_epoch=self.on_epoch,
                        phase=phase,
                    )
                else:
                    part = together.fit(epochs, monitor)
            curve = Curve(loss=curve.loss + part.loss, monitor=curve.monitor + part.monitor, best_epoch=len(curve.loss) + part.best_epoch)
        with clock.section("method"):
            method.model.eval()
            self.norms.end(view.position, method.model)
            method.after_task(view)
        return curve, rounds > 0

    def _together(
        self, view: TaskView, views: Sequence[TaskView], batches: Any, optimizer: torch.optim.Optimizer, phase: Phase
    ) -> _Together | None:
        """The phase's training with the company; ``None`` if it has no stacked form. That depends on nothing but this run."""
        model: Any = self.method.model
        batch = batches[0] if isinstance(batches, list) and len(batches) == 1 else None
        graph = view.train.graph
        if batch is None or batch.graph is not graph or type(graph) is not MessageGraph or graph.n_nodes < 2:
            return None
        if phase.loss is not None or phase.parameters is not None or type(self.method).parameter_groups is not Method.parameter_groups:
            return None
        if not isinstance(model, SeatedBackbone) or isinstance(shape_of(model), str) or model.gates:
            return None
        return _Together(self, view, views, batch, optimizer, phase)


class _Together:
    """The loop of one phase (:func:`cglsuite.learning.loop.fit`), with its steps computed by the company."""

    def __init__(
        self, runner: TaskRunner, view: TaskView, views: Sequence[TaskView], batch: Batch, optimizer: torch.optim.Optimizer, phase: Phase
    ) -> None:
        self.runner, self.view, self.views, self.batch, self.optimizer, self.phase = runner, view, views, batch, optimizer, phase
        self.member = _member()
        self.method = runner.method

    def _overrides(self, hook: str) -> bool:
        return getattr(type(self.method), hook) is not getattr(Method, hook) or hook in vars(self.method)

    def _lesson(self, monitored: bool) -> Lesson:
        runner, model, training = self.runner, self.method.model, self.runner.training
        parts, shape = Parts(model), shape_of(model)  # type: ignore[arg-type]
        if isinstance(shape, str):
            raise PluginError(shape)
        name, graph = self.member.company.graph(self.batch.graph)
        own = any(map(self._overrides, ("loss", "forward")))
        watched = self._watched() if monitored and training.monitor == "validation-loss" else None
        hooked = any(map(self._overrides, ("before_step", "after_step")))
        return Lesson(
            shape=shape,
            parts=parts,
            stack=self.member.company.stack(shape, parts),
            graph=graph,
            name=name,
            items=None if own else self._items(self.batch, runner.problem.labels(self.batch)),
            watched=watched,
            rate=lambda: float(self.optimizer.param_groups[0]["lr"]),
            decay=training.weight_decay,
            adam=training.optimizer == "adam",
            alone=not own and not hooked,
        )

    def _items(self, batch: Batch, y: Tensor) -> Items:
        return Items(batch.ids, y, batch.allowed, class_balanced=self.runner.problem.class_balanced)

    def _watched(self) -> Items | None:
        """The validation items; ``None`` if they are in another graph."""
        runner = self.runner
        batch = runner.problem.batch(self.views, "validation")
        if batch.graph is not self.batch.graph:
            return None
        labels: list[Tensor] = []
        tokens = [runner.stream.validation_token(v.position, self.view.position) for v in self.views]

        def seen(y: Tensor) -> Tensor:
            labels.append(y)
            return torch.zeros(())

        runner.stream.oracle.monitor(tokens, seen)
        return self._items(batch, labels[0])

    def fit(self, epochs: int, monitor: Callable[[], float] | None) -> Curve:
        """See :func:`cglsuite.learning.loop.fit`."""
        phase, monitored = self.phase, self.phase.monitor == "protocol" and monitor is not None
        self.member.position = self.view.position
        lesson = self._lesson(monitored)
        lesson.stack.adopt(self.member.slot, lesson.parts)
        self._carry_in(lesson)
        try:
            curve, schedule = Curve(), _Schedule(self.method.model, self.runner.training, self.optimizer)
            self.runner.norms.train(self.method.model)
            for epoch in range(epochs):
                value: float | None = None
                self._epoch(lesson, epoch)
                curve.loss.append(lesson.loss)
                if not math.isfinite(lesson.loss):
                    raise DivergenceError(f"the loss became {lesson.loss} in epoch {epoch + 1}: lower training.lr or the method's weights")
                stopped = phase.stop is not None and phase.stop(epoch, {"loss": lesson.loss})
                if phase.monitor == "loss":
                    value = lesson.loss
                elif monitored and monitor is not None:
                    value = self._monitored(lesson, monitor)
                if value is not None:
                    curve.monitor.append(value)
                self.runner.on_epoch(lesson.loss, value)
                if (value is not None and schedule.finished(value, epoch)) or stopped:
                    break
            curve.best_epoch = schedule.restore(len(curve.loss) - 1)
            self._carry_out(lesson)
            return curve
        finally:
            lesson.stack.release(self.member.slot, lesson.parts)

    def _carry_in(self, lesson: Lesson) -> None:
        """Go on with the moments of an optimiser that is carried over from the last task."""
        for name, (mean, square) in lesson.stack.moments(self.member.slot, lesson.parts).items():
            if known := self.optimizer.state.get(lesson.parts.parameters[name]):
                mean.copy_(known["exp_avg"])
                square.copy_(known["exp_avg_sq"])
                lesson.steps = int(known["step"])

    def _carry_out(self, lesson: Lesson) -> None:
        """Give the optimiser its moments, as if it had made the steps itself, if the next task or a checkpoint asks for them."""
        if not (lesson.adam and lesson.steps and self.runner.training.carry_optimizer):
            return
        for name, moments in lesson.stack.moments(self.member.slot, lesson.parts).items():
            parameter = lesson.parts.parameters[name]
            mean, square = (moment.clone(memory_format=torch.contiguous_format) for moment in moments)
            step = torch.tensor(float(lesson.steps), device=parameter.device)
            self.optimizer.state[parameter] = {"step": step, "exp_avg": mean, "exp_avg_sq": square}

    def _epoch(self, lesson: Lesson, epoch: int) -> None:
        """One step on the batch, up to the parameters' change."""
        method, clock, current = self.method, self.runner.clock, self.member
        current.passes += 1
        lesson.value = None
        if self._overrides("before_epoch"):
            with clock.section("method"):
                method.before_epoch(epoch)
        if lesson.items is not None:
            current.ask(kind=LEARN, lesson=lesson, masks=masks_of(lesson.parts.model, lesson.graph))
            if lesson.alone:
                return
            lesson.stack.own_gradients(current.slot, lesson.parts)
        else:
            lesson.loss = self._own_loss(lesson)
        if self._overrides("before_step"):
            with clock.section("method"):
                method.before_step()
        lesson.stack.taken_gradients(current.slot, lesson.parts)
        current.ask(kind=UPDATE, lesson=lesson)
        if self._overrides("after_step"):
            with clock.section("method"):
                method.after_step()
        for parameter in lesson.parts.parameters.values():
            parameter.grad = None

    def _own_loss(self, lesson: Lesson) -> float:
        current = self.member
        step = _Step(lesson, self.batch.graph)
        current.step = step
        try:
            loss = self.method.loss(self.batch)
        finally:
            current.step = None
        loss.backward()
        current.ask(kind=BACKWARD, lesson=lesson, gradients=step.gradients())
        lesson.stack.own_gradients(current.slot, lesson.parts)
        return float(loss.detach())

    def _monitored(self, lesson: Lesson, monitor: Callable[[], float]) -> float:
        """The monitored value after the step."""
        if lesson.watched is None:
            value = monitor()
            self.runner.norms.train(self.method.model)
            return value
        if lesson.value is None:
            self.member.ask(kind=MONITOR, lesson=lesson)
        return float(lesson.value if lesson.value is not None else math.nan)
