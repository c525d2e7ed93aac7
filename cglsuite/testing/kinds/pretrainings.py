"""Conformance of pre-training: at every declared level it lowers its loss, changes only the body, is repeatable, and leaves a trainable
model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch

from cglsuite.backbones import Backbone
from cglsuite.cells.run import build_stream, make_runner
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.host import Catalogue, Entry, load_catalogue
from cglsuite.learning.pretraining.weights import Pretrained, pretrain
from cglsuite.learning.reproducibility.randomness import scope
from cglsuite.testing.apart import same_everywhere
from cglsuite.testing.findings import Check, CheckFailed, CheckReport, Seen, examined
from cglsuite.testing.judge.session import digest_of
from cglsuite.testing.kinds.backbones import LEVEL_STREAMS
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.runs import disturb_randomness
from cglsuite.testing.streams import FINE_TUNING, tiny_catalogue

_EPOCHS = 30


def check_pretraining(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a pre-training scheme of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every failed check and its fix.
        UnknownNameError: there is no such scheme.
    """
    examine_pretraining(name, catalogue).raise_failures()


def examine_pretraining(
    name: str, catalogue: Catalogue | None = None, *, seen: Seen | None = None, only: Sequence[str] = ()
) -> CheckReport:
    """The findings of all checks of a scheme, or of those in ``only``; ``seen`` receives each immediately."""
    whole = tiny_catalogue(catalogue or load_catalogue())
    entry = whole.get("pretraining", name)
    return examined(entry, _checks(whole, entry), seen, only)


def _checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    spec: Any = entry.spec
    yield from entry_checks(catalogue, entry, spec.hyperparameters)
    yield Check(name="declaration", action=partial(_declared, spec))
    for level in spec.levels:
        trial, where = _Trial(catalogue, entry, level), LEVEL_STREAMS[level]
        for name, action in _OF_A_LEVEL.items():
            yield Check(name=name, action=partial(action, trial), where=where, after="factory" if name == "runs" else "runs")
    yield Check(name="processes", action=partial(same_everywhere, catalogue, entry, outcomes), after="repeatable")


def outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """The pre-trained weights at each level, to compare between processes."""
    spec: Any = entry.spec
    for level in spec.levels:
        yield f"the weights at level {level}", digest_of(dict(_Trial(catalogue, entry, level).run().state))


def _declared(spec: Any) -> None:
    if not spec.levels:
        raise CheckFailed("it declares no level", 'declare what it can be used on: levels=("NC",), for example')


@dataclass
class _Trial:
    """A scheme on the first task of a tiny stream at one of its levels."""

    catalogue: Catalogue
    entry: Entry
    level: str

    @cached_property
    def cell(self) -> CellSpec:
        """A cell of plain fine-tuning that starts from the scheme's weights."""
        overrides = {"pretraining.scheme": self.entry.name, "training.epochs": _EPOCHS}
        return resolve_cell(self.catalogue, LEVEL_STREAMS[self.level], FINE_TUNING, overrides=overrides)

    def run(self) -> Pretrained:
        """A new run of the scheme; returns its weights."""
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
        """The weights from the scheme, computed once."""
        return self.run()

    def model(self) -> Backbone:
        """A model before pre-training."""
        stream = build_stream(self.cell, self.catalogue)
        factory: Callable[..., Backbone] = self.catalogue.resolve(self.catalogue.get("backbone", self.cell.backbone))
        with scope(self.cell.seeds.init, "weights"):
            return factory(stream.n_features, stream.n_outputs, **self.cell.backbone_arguments)


def _runs(trial: _Trial) -> None:
    """The scheme trains, and a method can continue from its weights."""
    losses = trial.pretrained.curve.loss
    if not all(map(math.isfinite, losses)):
        raise CheckFailed(f"the loss is {losses[-1]}", "guard logarithms and divisions")
    result = make_runner(trial.cell, trial.catalogue, build_stream(trial.cell, trial.catalogue)).run()
    if not result.matrix:
        raise CheckFailed("fine-tuning after it gave no result", "leave the model as a module that can be trained")


def _learns(trial: _Trial) -> None:
    """The best loss is below the first one."""
    losses = trial.pretrained.curve.loss
    if not min(losses) < losses[0]:
        raise CheckFailed(
            f"the loss never falls below that of the first epoch, {losses[0]:.3g}", "check that loss(batch) reaches the model"
        )


def _changes_only_body(trial: _Trial) -> None:
    """Weights of the body change and those of the head do not, since it will be trained with labels."""
    tags = {name: tag for tag, name, _ in trial.model().tagged_parameters()}
    changed = {tags.get(name, "statistics") for name in trial.pretrained.state}
    if "body" not in changed:
        raise CheckFailed("no weight of the body has changed", "compute the loss from self.items.embed(self.model, batch)")
    if "head" in changed:
        raise CheckFailed("it has changed the head, whose outputs have no meaning before there are labels", "use embeddings, not outputs")


def _repeatable(trial: _Trial) -> None:
    """The weights are the same in every bit, whatever the global random state."""
    disturb_randomness()
    again = trial.run().state
    unlike = [name for name, value in trial.pretrained.state.items() if name not in again or not torch.equal(again[name], value)]
    if unlike or len(again) != len(trial.pretrained.state):
        raise CheckFailed(f"a second run gives different weights ({', '.join(unlike[:3])})", "draw from self.generator")


_OF_A_LEVEL: dict[str, Callable[[_Trial], None]] = {
    "runs": _runs,
    "learns": _learns,
    "changes": _changes_only_body,
    "repeatable": _repeatable,
}
"""The checks on a tiny stream of each level."""
