"""Pre-train on the first task without labels and start models from the resulting weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from cglsuite.backbones.base import Backbone
from cglsuite.base.errors import PluginError
from cglsuite.learning.clock import Clock
from cglsuite.learning.equipment import adapter
from cglsuite.learning.loop import Curve, fit, make_optimizer
from cglsuite.learning.method import Hyperparameters, Method, Phase
from cglsuite.learning.pretraining.scheme import Pretraining, PretrainingContext
from cglsuite.learning.reproducibility.randomness import generator, scope
from cglsuite.problems.unlabelled import Unlabelled
from cglsuite.specs import TrainingSpec
from cglsuite.streams import TaskStream


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """The result of pre-training: weights, training curve and time.

    Args:
        state: the parameters and buffers that pre-training changed, by name, on the CPU.
        curve: the mean loss of each epoch, and the epoch whose weights are used.
        seconds: wall-clock time in seconds.
    """

    state: Mapping[str, Tensor]
    curve: Curve
    seconds: float


class _Carrier(Method):
    """The part of a method's interface that the loop uses when a phase has its own loss."""

    def __init__(self, model: Backbone) -> None:
        self.model = model


def pretrain(
    stream: TaskStream,
    make_pretraining: Callable[[PretrainingContext], Pretraining],
    make_backbone: Callable[..., Any],
    *,
    backbone_hyperparameters: Mapping[str, Any],
    hyperparameters: Mapping[str, Any],
    training: TrainingSpec,
    init_seed: int,
    device: str = "cpu",
) -> Pretrained:
    """Pre-train a model on the first task's view without labels, using the protocol's optimiser and schedule.

    The schedule monitors the mean training loss of an epoch. The result depends only on the model, the init seed, the first view and the
    training protocol, not on the method.

    Raises:
        PluginError: if the factory does not return a :class:`Pretraining`.
        DivergenceError: if a loss is not finite.
        NotApplicable: if the scheme does not support the items or the backbone.
    """
    clock = Clock()
    with clock.section("training"):
        problem, view = adapter(stream, training, device), stream.view(0)
        problem.arrive(view)
        name = stream.tasks[0].content
        with scope(init_seed, "weights"):
            model = make_backbone(stream.n_features, stream.n_outputs, **backbone_hyperparameters).to(device)
        before = {key: value.clone() for key, value in model.state_dict().items()}
        values, unlabelled = Hyperparameters(hyperparameters), Unlabelled(problem)
        batch = unlabelled.items(view)
        with scope(init_seed, "pretraining", name):
            batches = unlabelled.passes(batch, generator(init_seed, "batches of pre-training", name))
            draws = generator(init_seed, "pretraining draws", name)
            scheme = make_pretraining(
                PretrainingContext(problem=problem, model=model, hyperparameters=values, generator=draws, example=batch)
            )
            if not isinstance(scheme, Pretraining):
                raise PluginError(f"the pre-training factory returned {type(scheme).__name__}; expected a cglsuite.learning.Pretraining")
            for key, part in list(scheme.own()):
                setattr(scheme, key, part.to(device) if isinstance(part, nn.Module) else nn.Parameter(part.to(device)))
            groups = [{"params": [p for p in (*model.parameters(), *scheme.parameters()) if p.requires_grad]}]
            curve = fit(
                _Carrier(model),
                batches,
                training,
                make_optimizer(groups, training),
                epochs=math.ceil(values["share"] * training.epochs),
                monitor=None,
                clock=clock,
                phase=Phase(name="pre-training", loss=scheme.loss, monitor="loss"),
            )
        stream.forget()
        after = model.state_dict()
        state = {key: value.detach().cpu().clone() for key, value in after.items() if not torch.equal(value, before[key])}
    return Pretrained(state=state, curve=curve, seconds=clock.seconds["training"])


def transferred(make_backbone: Callable[..., Any], pretrained: Pretrained, *, frozen: bool) -> Callable[..., Any]:
    """Return a model factory whose models start from the pre-trained weights. If ``frozen``, those weights are not trained further."""

    def make(in_features: int, outputs: int, **hyperparameters: Any) -> Any:
        model = make_backbone(in_features, outputs, **hyperparameters)
        model.load_state_dict({**model.state_dict(), **pretrained.state})
        if frozen:
            for name, parameter in model.named_parameters():
                if name in pretrained.state:
                    parameter.requires_grad_(False)
        return model

    return make
