"""Conformance checks for backbones and pre-training schemes.

At every declared level, a backbone must return outputs of the right shape and provide gradients, and its checkpoints must be complete.
Pre-training must lower its loss, change only the body, be repeatable, and leave a trainable model.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import scipy.sparse
import torch
from torch import Tensor

from cglsuite.backbones import Backbone
from cglsuite.backbones.growth import redraw_outputs
from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.cells.run import build_stream, make_runner
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.graphs import MessageGraph
from cglsuite.host import Catalogue, Entry
from cglsuite.learning.isolation import along
from cglsuite.learning.pretraining.weights import Pretrained, pretrain
from cglsuite.learning.reproducibility.randomness import scope
from cglsuite.specs import Seeds
from cglsuite.streams import Batch
from cglsuite.testing.apart import same_everywhere
from cglsuite.testing.findings import Check, CheckFailed
from cglsuite.testing.judge.session import digest_of
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.streams import FINE_TUNING, disturb_randomness

LEVEL_STREAMS = {
    "NC": "testing-nodes/task-il@testing-1",
    "NR": "testing-node-targets/domain-il@testing-1",
    "GC": "testing-graphs/task-il@testing-1",
    "GR": "testing-targets/domain-il@testing-1",
    "LC": "testing-links/task-il@testing-1",
    "LP": "testing-interactions/domain-il@testing-1",
}
"""A tiny stream for each level."""
_OUTPUTS = 6
_CLOSE = 1e-4


def checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    """Yield the checks of a backbone."""
    spec: Any = entry.spec
    yield from entry_checks(catalogue, entry, spec.hyperparameters)
    yield Check(name="declaration", action=partial(_declared, spec))
    yield Check(name="processes", action=partial(same_everywhere, catalogue, entry, outcomes), after="factory")
    for level in spec.levels:
        trial, where = _Trial(catalogue, entry, level), LEVEL_STREAMS[level]
        yield Check(name="builds", action=partial(_builds, trial), where=where, after="factory")
        for name, action in _OF_A_LEVEL.items():
            yield Check(name=name, action=partial(action, trial), where=where, after="builds" if name == "shape" else "shape")


def outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the backbone's weights and outputs at each level, so that two processes can be compared."""
    spec: Any = entry.spec
    for level in spec.levels:
        trial = _Trial(catalogue, entry, level)
        try:
            model = trial.build(3)
        except SpecError:
            continue
        yield f"a model at level {level}", digest_of(dict(model.state_dict()))
        yield f"the outputs of a model at level {level}", digest_of(trial.outputs(model))
        trial.trained(model)
        yield f"a trained model at level {level}", digest_of(dict(model.state_dict()))


def _declared(spec: Any) -> None:
    if not spec.levels:
        raise CheckFailed("it declares no level", 'declare the levels that it supports, such as levels=("NC",)')


@dataclass
class _Trial:
    """A backbone applied to the first task of a tiny stream at one of its levels."""

    catalogue: Catalogue
    entry: Entry
    level: str

    @cached_property
    def _stream(self) -> Any:
        cell = resolve_cell(self.catalogue, LEVEL_STREAMS[self.level], FINE_TUNING, seeds=Seeds())
        return build_stream(cell, self.catalogue)

    @property
    def n_outputs(self) -> int:
        """The number of outputs of the stream, C."""
        return int(self._stream.n_outputs)

    @cached_property
    def batch(self) -> Batch:
        """The training items of the first task."""
        train: Batch = self._stream.view(0).train
        return train

    @cached_property
    def model(self) -> Any:
        """A model initialised from a fixed seed."""
        return self.build()

    def build(self, seed: int = 0, outputs: int | None = None) -> Any:
        """Build a model initialised from ``seed``, with ``outputs`` outputs (default: the stream's number).

        Raises:
            CheckFailed: the factory does not return a Backbone.
        """
        spec: Any = self.entry.spec
        factory: Callable[..., Any] = self.catalogue.resolve(self.entry)
        values = {h.name: h.default for h in spec.hyperparameters if not h.implicit}
        with scope(seed, "check"):
            model = factory(self._stream.n_features, outputs or self.n_outputs, **values)
        if not isinstance(model, Backbone):
            raise CheckFailed(
                f"{_place(factory)} returns a {type(model).__name__}; expected a cglsuite.backbones.Backbone",
                "subclass Backbone, set self.head, and implement encode(graph) -> [N, d]",
            )
        if not isinstance(getattr(model, "head", None), torch.nn.Module):
            raise CheckFailed(
                f"{_place(type(model))} does not set self.head; expected a module that maps encodings [n, d] to outputs [n, C]",
                "end __init__ with self.head = nn.Linear(width, outputs)",
            )
        return model

    def outputs(self, model: Any, graph: Any = None, ids: Tensor | None = None, *, training: bool = False) -> Tensor:
        """Return a model's outputs for the batch, in evaluation mode unless ``training``."""
        model.train(training)
        with torch.set_grad_enabled(training), scope(1, "check"):
            out: Tensor = model(self.batch.graph if graph is None else graph, self.batch.ids if ids is None else ids)
        return out

    def trained(self, model: Any) -> None:
        """Train the model for one step, changing its parameters and running statistics."""
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        self.outputs(model, training=True).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def _place(code_object: Any) -> str:
    """Return the name, file and line of a class or function."""
    name = getattr(code_object, "__qualname__", type(code_object).__name__)
    try:
        return f"{name} ({inspect.getsourcefile(code_object)}:{inspect.getsourcelines(code_object)[1]})"
    except (OSError, TypeError):
        return str(name)


def _builds(trial: _Trial) -> None:
    """Check that the factory accepts the numbers of features and outputs and the hyperparameters, and returns a backbone with a head.

    Raises:
        NotApplicable: the backbone rejects data of this form with one of the suite's errors.
    """
    try:
        trial.build()
    except SpecError as error:
        raise NotApplicable(f"the backbone rejects the tiny data of this level: {error}") from error


def _shape(trial: _Trial) -> None:
    """Check that outputs are finite float32 [n, C], with one row per item of the batch, in order and independent of other items."""
    n, ids = len(trial.batch), trial.batch.ids
    what = f"the model of {_place(type(trial.model))}"
    for outputs in (trial.n_outputs, _OUTPUTS + 1):
        out = trial.outputs(trial.build(outputs=outputs))
        if not isinstance(out, Tensor) or tuple(out.shape) != (n, outputs):
            came = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
            advice = "give the head `outputs` outputs (the argument of the factory), and return one row per item of ids from readout()"
            raise CheckFailed(f"{what} returns {came} for {n} items and {outputs} outputs; expected [{n}, {outputs}]", advice)
    if out.dtype != torch.float32:
        raise CheckFailed(f"{what} returns {out.dtype}; expected torch.float32", "compute in float32, and do not cast features")
    out = trial.outputs(trial.model)
    if not bool(torch.isfinite(out).all()):
        raise CheckFailed(f"{what} returns values that are not finite", "guard divisions and logarithms; nodes may have no neighbours")
    turned = torch.arange(n).flip(0)[: max(1, n // 2)]
    if not torch.allclose(trial.outputs(trial.model, ids=ids[turned]), out[turned], rtol=_CLOSE, atol=_CLOSE):
        raise CheckFailed(
            f"{what} returns different outputs for an item depending on the other items",
            "in readout(), select rows by ids: self.head(hidden[ids])",
        )


def _gradients(trial: _Trial) -> None:
    """Check that every parameter with ``requires_grad`` receives a gradient from a loss."""
    model = trial.build()
    parameters = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if not parameters:
        raise CheckFailed(
            "the backbone has no parameter with requires_grad", "register layers as modules (nn.ModuleList instead of a list)"
        )
    trial.outputs(model, training=True).square().mean().backward()
    if missed := [name for name, p in parameters if p.grad is None]:
        raise CheckFailed(
            f"the parameters {', '.join(missed[:5])} of {_place(type(model))} receive no gradient",
            "use the parameters in encode() or readout(), without detach() or no_grad(), or remove them",
        )


def _deterministic(trial: _Trial) -> None:
    """Check that two calls in evaluation mode return equal outputs, change nothing, and draw no random numbers."""
    model = trial.build()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.eval()
    with torch.no_grad():
        first = model(trial.batch.graph, trial.batch.ids)
        two = model(trial.batch.graph, trial.batch.ids)
    if not torch.equal(first, two):
        raise CheckFailed(
            f"two calls of {_place(type(model))} after eval() return different outputs",
            "apply dropout only while self.training: functional.dropout(x, p, self.training), or nn.Dropout",
        )
    if changed := [name for name, value in model.state_dict().items() if not torch.equal(value, before[name])]:
        raise CheckFailed(f"a call after eval() changes {', '.join(changed[:5])}", "update buffers only while self.training")


def _drawn(trial: _Trial) -> None:
    """Check that the same seed gives the same model regardless of previously built models, and another seed gives another model."""
    first, same, other = ({name: value.clone() for name, value in trial.build(seed).state_dict().items()} for seed in (3, 3, 4))
    if first.keys() != same.keys() or any(not torch.equal(value, same[name]) for name, value in first.items()):
        raise CheckFailed(
            "two models initialised from the same seed differ",
            "draw weights with torch's global generator (nn.init), which the suite seeds, and do not share modules between models",
        )
    if all(torch.equal(value, other[name]) for name, value in first.items()):
        raise CheckFailed(
            "models initialised from two different seeds are equal",
            "do not seed generators in the factory; the suite seeds torch's global one",
        )


def _restored(trial: _Trial) -> None:
    """Check that a new model with a trained model's state_dict returns the same outputs, so that the state contains everything learnt."""
    model, fresh = trial.build(0), trial.build(5)
    trial.trained(model)
    if loose := _loose_tensors(model):
        raise CheckFailed(
            f"{loose} is a plain tensor, which checkpoints and .to(device) do not include",
            'make it a parameter (nn.Parameter) or a buffer: self.register_buffer("name", tensor)',
        )
    fresh.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
    if not torch.equal(trial.outputs(model), trial.outputs(fresh)):
        raise CheckFailed(
            f"a new model loaded with the state_dict of a trained {_place(type(model))} returns different outputs",
            "store everything that training changes in parameters and buffers, not in plain attributes",
        )


def _loose_tensors(model: torch.nn.Module) -> str:
    """Describe the first tensor that a module stores outside its parameters and buffers; an empty string if there is none."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            held = value if isinstance(value, list | tuple) else [value]
            if not name.startswith("_") and any(isinstance(item, Tensor) for item in held):
                return f"{path + '.' if path else ''}{name} of {_place(type(module))}"
    return ""


def _sparse(trial: _Trial) -> None:
    """Check that sparse features, such as bags of words, give the same outputs as dense features."""
    graph = trial.batch.graph
    if not isinstance(graph, MessageGraph):
        raise NotApplicable("the features of the tiny graphs are always dense")
    features = torch.relu(graph.dense)
    dense = MessageGraph(features, graph.edge_index)
    sparse = MessageGraph(scipy.sparse.csr_matrix(features.numpy()), graph.edge_index)
    advice = "apply FeatureLinear (cglsuite.backbones.layers) to graph.features, or use graph.dense for layers without sparse support"
    wanted = trial.outputs(trial.model, dense)
    try:
        came = trial.outputs(trial.model, sparse)
    except Exception as error:
        raise CheckFailed(f"{_place(type(trial.model))} fails on sparse features: {type(error).__name__}: {error}", advice) from error
    if not torch.allclose(wanted, came, rtol=_CLOSE, atol=_CLOSE):
        raise CheckFailed("sparse features give different outputs from the same features in dense form", advice)


def _grows(trial: _Trial) -> None:
    """Check that the outputs for a new class are initialised and no other outputs change (scenario.head = growing)."""
    model, fresh = trial.build(0), trial.build(6)
    arriving = torch.zeros(trial.n_outputs, dtype=torch.bool)
    arriving[-1] = True
    before = trial.outputs(model)
    advice = "set self.head to an nn.Linear (or FeatureLinear, GCNConv, GINConv) in which row c affects only output c"
    try:
        redraw_outputs(model, fresh, arriving)
    except NotApplicable as error:
        raise NotApplicable(f"{error}; to support a growing head, {advice}") from None
    after = trial.outputs(model)
    if not torch.allclose(before[:, ~arriving], after[:, ~arriving], rtol=_CLOSE, atol=_CLOSE):
        raise CheckFailed("initialising the outputs for a new class changes the outputs for other classes", advice)
    if torch.equal(before[:, arriving], after[:, arriving]):
        raise CheckFailed("initialising the outputs for a new class does not change them, so the head does not grow", advice)


def _units(trial: _Trial) -> None:
    """Check that the backbone's hidden units are written, read and gated as they are declared."""
    model = trial.build()
    check_units(model, lambda: trial.outputs(model))


def _devices(trial: _Trial) -> None:
    """Check that outputs on a GPU are nearly equal to those on the CPU."""
    if not torch.cuda.is_available():
        raise NotApplicable("this machine has no GPU")
    stream = build_stream(
        resolve_cell(trial.catalogue, LEVEL_STREAMS[trial.level], FINE_TUNING, seeds=Seeds(), device="cuda"), trial.catalogue
    )
    batch: Any = stream.view(0).train
    model = trial.build().to("cuda").eval()
    with torch.no_grad():
        there = model(batch.graph, batch.ids)
    if there.device.type != "cuda" or not torch.allclose(there.cpu(), trial.outputs(trial.build()), rtol=1e-3, atol=1e-3):
        raise CheckFailed(
            "outputs on the GPU differ from those on the CPU", "create tensors on graph.device, and register constants as buffers"
        )


_OF_A_LEVEL: dict[str, Callable[[_Trial], object]] = {
    "shape": _shape,
    "gradients": _gradients,
    "deterministic": _deterministic,
    "initialisation": _drawn,
    "state": _restored,
    "sparse features": _sparse,
    "growing head": _grows,
    "units": _units,
    "device": _devices,
}
"""The checks that run at each level declared by a backbone."""


# Check a backbone's declaration of its hidden units: which parameter entries write and read each unit, and that gates scale them.


def check_units(model: Backbone, outputs: Callable[[], Tensor]) -> None:
    """Check that a gate of 0 removes the influence of all parameters that write or read a unit, and that gates of 1 change nothing.

    Args:
        model: the model to check. Its parameters are restored.
        outputs: a function that returns the model's outputs in evaluation mode, float32 [n, C].

    Raises:
        CheckFailed: a parameter or size does not match the model, a gate is not applied, or an entry belongs to another unit.
        NotApplicable: the backbone does not declare its units.
    """
    units, parameters = model.units(), dict(model.named_parameters())
    advice = "in units(), list every parameter with the axis of its units, and apply self.gated(name, hidden) in encode()"
    for u in units:
        wires = [*u.writers, *u.readers]
        if missing := [w.parameter for w in wires if w.parameter not in parameters]:
            raise CheckFailed(f"units {u.name} are declared with {', '.join(missing)}, but the model has no such parameter", advice)
        for w in wires:
            shape = parameters[w.parameter].shape
            size = parameters[w.parameter].numel() if w.axis is None else shape[w.axis]
            if size != u.width * w.tile or u.width % u.together:
                raise CheckFailed(f"{w.parameter} has {size} entries for the {u.width} units {u.name}; expected {u.width * w.tile}", advice)
    plain = outputs()
    model.gates = {u.name: torch.ones(u.width) for u in units}
    if not torch.equal(plain, outputs()):
        raise CheckFailed("gates of 1 change the outputs", advice)
    for u in units:
        model.gates = {u.name: torch.zeros(u.width)}
        if torch.equal(outputs(), plain):
            raise CheckFailed(f"a gate of 0 on all units of {u.name} does not change any output", advice)
        closed = torch.arange(u.width) >= u.width - u.together
        model.gates = {u.name: (~closed).float()}
        before = outputs()
        for w in (*u.writers, *u.readers):
            _unmoved(parameters[w.parameter], along(w, parameters[w.parameter], closed), outputs, before, f"{w.parameter} of {u.name}")
    model.gates = {}
    if not torch.equal(outputs(), plain):
        raise CheckFailed("removing the gates does not restore the outputs", "do not store values from self.gates between calls")


@torch.no_grad()
def _unmoved(parameter: Tensor, entries: Tensor, outputs: Callable[[], Tensor], before: Tensor, quantity: str) -> None:
    copy = parameter.clone()
    parameter.add_(entries.to(parameter.dtype))
    after = outputs()
    parameter.copy_(copy)
    if not torch.equal(before, after):
        raise CheckFailed(
            f"the gate of a unit is 0, but changing its entries in {quantity} still changes outputs",
            "declare the axis of the units, and `together` if consecutive units depend on each other",
        )


_EPOCHS = 30


def pretraining_checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    """Yield the checks of a pre-training scheme."""
    spec: Any = entry.spec
    yield from entry_checks(catalogue, entry, spec.hyperparameters)
    yield Check(name="declaration", action=partial(_declared_schemes, spec))
    for level in spec.levels:
        trial, where = _PretrainingTrial(catalogue, entry, level), LEVEL_STREAMS[level]
        for name, action in _PRETRAINING_OF_A_LEVEL.items():
            yield Check(name=name, action=partial(action, trial), where=where, after="factory" if name == "runs" else "runs")
    yield Check(name="processes", action=partial(same_everywhere, catalogue, entry, pretraining_outcomes), after="repeatable")


def pretraining_outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the pre-trained weights at each level, so that two processes can be compared."""
    spec: Any = entry.spec
    for level in spec.levels:
        yield f"the weights at level {level}", digest_of(dict(_PretrainingTrial(catalogue, entry, level).run().state))


def _declared_schemes(spec: Any) -> None:
    if not spec.levels:
        raise CheckFailed("it declares no level", 'declare the levels that it can be used for, such as levels=("NC",)')


@dataclass
class _PretrainingTrial:
    """A scheme applied to the first task of a tiny stream at one of its levels."""

    catalogue: Catalogue
    entry: Entry
    level: str

    @cached_property
    def cell(self) -> CellSpec:
        """A cell of plain fine-tuning that starts from the scheme's weights."""
        overrides = {"pretraining.scheme": self.entry.name, "training.epochs": _EPOCHS}
        return resolve_cell(self.catalogue, LEVEL_STREAMS[self.level], FINE_TUNING, overrides=overrides)

    def run(self) -> Pretrained:
        """Run the scheme from scratch and return its weights."""
        return pretrain(
            build_stream(self.cell, self.catalogue),
            self.catalogue.resolve(self.entry),
            self.catalogue.resolve(self.catalogue.get("backbone", self.cell.backbone)),
            backbone_hyperparameters=self.cell.backbone_arguments,
            hyperparameters=self.cell.pretraining_hyperparameters,
            training=self.cell.scenario.training,
            init_seed=self.cell.seeds.init,
        )

    @cached_property
    def pretrained(self) -> Pretrained:
        """The scheme's weights, computed once."""
        return self.run()

    def model(self) -> Backbone:
        """A model before pre-training."""
        stream = build_stream(self.cell, self.catalogue)
        factory: Callable[..., Backbone] = self.catalogue.resolve(self.catalogue.get("backbone", self.cell.backbone))
        with scope(self.cell.seeds.init, "weights"):
            return factory(stream.n_features, stream.n_outputs, **self.cell.backbone_arguments)


def _runs(trial: _PretrainingTrial) -> None:
    """Check that the scheme trains, and that a method can continue from its weights."""
    losses = trial.pretrained.curve.loss
    if not all(map(math.isfinite, losses)):
        raise CheckFailed(f"the loss is {losses[-1]}", "guard logarithms and divisions")
    result = make_runner(trial.cell, trial.catalogue, build_stream(trial.cell, trial.catalogue)).run()
    if not result.matrix:
        raise CheckFailed("fine-tuning after pre-training gave no result", "leave the model in a trainable state")


def _learns(trial: _PretrainingTrial) -> None:
    """Check that the best loss is below the first one."""
    losses = trial.pretrained.curve.loss
    if not min(losses) < losses[0]:
        raise CheckFailed(
            f"the loss never falls below its value in the first epoch, {losses[0]:.3g}", "check that loss(batch) reaches the model"
        )


def _changes_only_body(trial: _PretrainingTrial) -> None:
    """Check that the weights of the body change and those of the head, which will be trained with labels, do not."""
    tags = {name: tag for tag, name, _ in trial.model().tagged_parameters()}
    changed = {tags.get(name, "statistics") for name in trial.pretrained.state}
    if "body" not in changed:
        raise CheckFailed("the weights of the body do not change", "compute the loss from self.items.embed(self.model, batch)")
    if "head" in changed:
        raise CheckFailed("pre-training changes the head, which has no meaning until there are labels", "use embeddings instead of outputs")


def _repeatable(trial: _PretrainingTrial) -> None:
    """Check that the weights are bit-identical regardless of the global random state."""
    disturb_randomness()
    again = trial.run().state
    unlike = [name for name, value in trial.pretrained.state.items() if name not in again or not torch.equal(again[name], value)]
    if unlike or len(again) != len(trial.pretrained.state):
        raise CheckFailed(f"a second run gives different weights ({', '.join(unlike[:3])})", "draw from self.generator")


_PRETRAINING_OF_A_LEVEL: dict[str, Callable[[_PretrainingTrial], None]] = {
    "runs": _runs,
    "learns": _learns,
    "changes": _changes_only_body,
    "repeatable": _repeatable,
}
"""The checks that run on a tiny stream of each level."""
