"""Create a method with its context (problem adapter, model, metered memory, random generators) and decode its outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from cglsuite.base.errors import DivergenceError, PluginError, SpecError
from cglsuite.learning.memory import MeteredMemory
from cglsuite.learning.method import Hyperparameters, Method, MethodContext
from cglsuite.learning.reproducibility.randomness import Draws, scope
from cglsuite.problems import Problem, problem_class
from cglsuite.specs import TrainingSpec
from cglsuite.streams import Batch
from cglsuite.streams.stream import Stream


def adapter(stream: Stream, training: TrainingSpec, device: str) -> Problem:
    """Create the problem adapter for a stream, before any task has arrived."""
    return problem_class(stream.spec.level, stream.spec.labels)(
        n_outputs=stream.n_outputs,
        n_tasks=len(stream),
        task_ids=stream.spec.task_ids_at_test,
        class_balanced=training.class_balanced,
        batch_size=training.batch_size,
        fan_out=training.fan_out,
        device=device,
    )


def answers_of(scorer: Problem, method: Method, outputs: torch.Tensor, query: Batch) -> torch.Tensor:
    """Decode a method's outputs for a query into predictions, using an adapter that the method cannot access.

    Args:
        outputs: the result of the method's ``predict``, float32 [n, C].

    Raises:
        PluginError: if the outputs have a different shape. DivergenceError: if an output is NaN.
    """
    expected = (len(query), scorer.n_outputs)
    if tuple(outputs.shape) != expected:
        name = type(method).__name__
        raise PluginError(
            f"{name}.predict returned outputs of shape {tuple(outputs.shape)}; expected {expected}, one row per item in the query"
        )
    if outputs.numel() and bool(outputs.max().isnan()):  # the maximum of anything with NaN is NaN
        raise DivergenceError(f"{type(method).__name__}.predict returned NaN: lower training.lr, or guard logarithms and divisions")
    return scorer.decode(outputs, query.allowed)


def equip(
    stream: Stream,
    make_method: Callable[[MethodContext], Method],
    build_model: Callable[[], Any],
    hyperparameters: dict[str, Any],
    training: TrainingSpec,
    draws: Draws,
    device: str,
) -> tuple[Problem, Method]:
    """Create the problem adapter and the method for a run, and initialise the model from the init seed.

    Raises:
        SpecError: if the fan-out does not have one number per layer of the model.
    """
    problem = adapter(stream, training, device)
    context = MethodContext(
        problem=problem,
        hyperparameters=Hyperparameters(hyperparameters),
        build_model=build_model,
        memory=MeteredMemory(stream.spec.memory_budget),
        n_tasks=len(stream) if stream.spec.task_free is None else 1,
        generator=draws,
        epochs=training.epochs,
    )
    with scope(draws.seed, "weights"):
        method = make_method(context)
    hops = getattr(method.model, "hops", None)
    if training.fan_out and hops not in (None, len(training.fan_out)):
        raise SpecError(
            f"training.fan_out = {training.fan_out!r}: the backbone passes messages over {hops} hops; expected {hops} numbers, one per hop"
        )
    return problem, method
