"""Pre-training: what is trained, what is taken over, what a method then sees, and that no label is in reach."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cglsuite import Hyperparameter, PretrainingSpec
from cglsuite.base.errors import NotApplicable, PluginError, SpecError, UnknownNameError
from cglsuite.cells import Store, run_cell
from cglsuite.cells.keys import cell_key, design_key
from cglsuite.cells.run import build_stream, make_runner
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.host import Catalogue, Entry
from cglsuite.learning import Pretraining
from cglsuite.learning.pretraining.weights import pretrain
from cglsuite.specs import Seeds
from cglsuite.streams import Batch
from cglsuite.testing import examine, tiny_catalogue
from cglsuite.testing.streams import FINE_TUNING

NODES, GRAPHS = "testing-nodes/class-il@testing-1", "testing-graphs/class-il@testing-1"
SEEN: list[Batch] = []


class Pulls(Pretraining):
    """Pulls embeddings to 1."""

    def loss(self, batch: Batch) -> Tensor:
        SEEN.append(batch)
        return (self.items.embed(self.model, batch) - 1).square().mean()


class OfTheHead(Pretraining):
    """Trains the head."""

    def loss(self, batch: Batch) -> Tensor:
        out: Tensor = self.model(batch.graph).square().mean()
        return out


class Chance(Pretraining):
    """Draws from a generator of its own."""

    def loss(self, batch: Batch) -> Tensor:
        noise = torch.rand((), generator=GENERATOR)
        return (self.items.embed(self.model, batch) - noise).square().mean()


class Idle(Pretraining):
    """Trains nothing but itself."""

    def setup(self) -> None:
        self.weight = nn.Parameter(torch.ones(()))

    def loss(self, batch: Batch) -> Tensor:
        return self.weight.square()


GENERATOR = torch.Generator().manual_seed(1)


def nothing(context: Any) -> str:
    """Not a scheme."""
    return "x"


def spec(name: str, factory: str, **more: Any) -> PretrainingSpec:
    given = {"summary": "s", "citation": "c", "levels": ("NC", "GC")} | more
    return PretrainingSpec(name=name, factory=f"{__name__}:{factory}", **given)


SPECS = [
    spec("pulls", "Pulls", hyperparameters=(Hyperparameter(name="strength", default=1.0, doc="d"),)),
    *(spec(name, factory) for name, factory in {"of-the-head": "OfTheHead", "chance": "Chance", "idle": "Idle", "odd": "nothing"}.items()),
]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    tiny = tiny_catalogue()
    record = tiny.records[0]
    kinds = ("dataset", "scenario", "backbone", "method", "metric", "measure", "schedule")
    entries = [entry for kind in kinds for entry in tiny.entries(kind)]
    return Catalogue(tiny.records, [*entries, *(Entry(kind="pretraining", name=s.name, spec=s, record=record) for s in SPECS)])


def cell(catalogue: Catalogue, scheme: str | None, scenario: str = NODES, **overrides: Any) -> CellSpec:
    asked = {name.replace("__", "."): value for name, value in overrides.items()}
    given = {"training.epochs": 5, **asked} | ({} if scheme is None else {"pretraining": scheme})
    return resolve_cell(catalogue, scenario, FINE_TUNING, overrides=given)


def trained(catalogue: Catalogue, chosen: CellSpec) -> Any:
    return pretrain(
        build_stream(chosen, catalogue),
        catalogue.resolve(catalogue.get("pretraining", chosen.pretraining)),
        catalogue.resolve(catalogue.get("backbone", chosen.backbone)),
        backbone_hyperparameters=chosen.backbone_hyperparameters,
        hyperparameters=chosen.pretraining_hyperparameters,
        training=chosen.scenario.training,
        init_seed=chosen.seeds.init,
    )


def test_without_a_scheme_design_and_key_are_as_ever(catalogue: Catalogue) -> None:
    plain, none = cell(catalogue, None), cell(catalogue, "none")
    assert plain.configuration == none.configuration
    assert design_key(plain) == design_key(none)
    assert cell_key(plain, catalogue) == cell_key(none, catalogue)
    assert not any(key.startswith("pretraining") for key in plain.configuration)


def test_scheme_settings_and_source_are_in_the_key(catalogue: Catalogue) -> None:
    cells = [cell(catalogue, "pulls"), cell(catalogue, "pulls", pretraining__strength=2.0), cell(catalogue, "idle")]
    cells += [cell(catalogue, "pulls", pretraining__transfer="frozen"), cell(catalogue, None)]
    assert len({cell_key(c, catalogue) for c in cells}) == len(cells)
    assert cells[0].configuration["pretraining.scheme"] == "pulls"


def test_no_label_is_given_to_a_scheme(catalogue: Catalogue) -> None:
    for scenario in (NODES, GRAPHS):
        SEEN.clear()
        trained(catalogue, cell(catalogue, "pulls", scenario))
        assert len(SEEN) == 5
        assert all(batch.y is None and batch.tasks is None for batch in SEEN)


def test_nodes_that_are_not_to_be_labelled_take_part_and_isolated_ones_do_not(catalogue: Catalogue) -> None:
    SEEN.clear()
    chosen = cell(catalogue, "pulls")
    trained(catalogue, chosen)
    graph = build_stream(chosen, catalogue).view(0).graph
    assert torch.equal(SEEN[0].ids.sort().values, graph.edge_index.unique())
    assert len(SEEN[0]) > len(build_stream(chosen, catalogue).view(0).train)


def test_what_has_changed_is_taken_over_and_the_head_is_not(catalogue: Catalogue) -> None:
    chosen = cell(catalogue, "pulls")
    weights = trained(catalogue, chosen)
    assert weights.state
    assert not any(name.startswith("head") for name in weights.state)
    pre, plain = (make_runner(c, catalogue, build_stream(c, catalogue)).method.model for c in (chosen, cell(catalogue, None)))
    before = plain.state_dict()
    for name, value in pre.state_dict().items():
        assert torch.equal(value, weights.state.get(name, before[name])), name
        assert name not in weights.state or not torch.equal(value, before[name])


def test_frozen_weights_stay_and_the_head_learns(catalogue: Catalogue) -> None:
    chosen = cell(catalogue, "pulls", pretraining__transfer="frozen")
    assert chosen.scenario.training.norm_statistics == "frozen"
    weights = trained(catalogue, chosen).state
    runner = make_runner(chosen, catalogue, build_stream(chosen, catalogue))
    head = {n: p.clone() for n, p in runner.method.model.named_parameters() if n.startswith("head")}
    runner.run()
    after = runner.method.model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in weights.items())
    assert all(not torch.equal(after[name], value) for name, value in head.items())


def test_fine_tuning_moves_them(catalogue: Catalogue) -> None:
    chosen = cell(catalogue, "pulls")
    weights = trained(catalogue, chosen).state
    runner = make_runner(chosen, catalogue, build_stream(chosen, catalogue))
    runner.run()
    after = runner.method.model.state_dict()
    assert any(not torch.equal(after[name], value) for name, value in weights.items())


def test_weights_follow_the_seed_and_nothing_random_outside(catalogue: Catalogue) -> None:
    chosen = cell(catalogue, "pulls")
    first = trained(catalogue, chosen).state
    torch.rand(7)
    again = trained(catalogue, chosen).state
    assert all(torch.equal(again[name], value) for name, value in first.items())
    other = trained(catalogue, dataclasses.replace(chosen, seeds=Seeds(init=1))).state
    assert any(not torch.equal(other[name], value) for name, value in first.items())


def test_epochs_are_a_share_of_the_protocols(catalogue: Catalogue) -> None:
    assert len(trained(catalogue, cell(catalogue, "pulls", pretraining__share=0.5)).curve.loss) == 3
    assert len(trained(catalogue, cell(catalogue, "pulls", pretraining__share=2)).curve.loss) == 10


def test_a_record_says_what_was_done(catalogue: Catalogue, tmp_path: Path) -> None:
    store = Store(tmp_path)
    record = run_cell(cell(catalogue, "pulls"), catalogue, store)
    facts = record.provenance["pretraining"]
    assert record.done
    assert (facts["scheme"], facts["epochs"]) == ("pulls", 5)
    assert facts["loss"][1] < facts["loss"][0]
    assert "pretraining" in {plugin["role"] for plugin in record.provenance["plugins"]}
    plain = run_cell(cell(catalogue, None), catalogue, store)
    assert "pretraining" not in plain.provenance
    assert plain.matrix != record.matrix


def test_a_second_method_takes_the_same_weights_without_training_them(catalogue: Catalogue) -> None:
    SEEN.clear()
    first, second = (cell(catalogue, "pulls", training__lr=0.0123) for _ in range(2))
    for chosen in (first, second):
        make_runner(chosen, catalogue, build_stream(chosen, catalogue))
    assert len(SEEN) == 5


def test_what_cannot_be_is_refused(catalogue: Catalogue) -> None:
    with pytest.raises(SpecError, match=r"pretraining.transfer: no pre-training scheme is selected; select one"):
        cell(catalogue, None, pretraining__transfer="frozen")
    with pytest.raises(UnknownNameError, match="pulls"):
        cell(catalogue, "pull")
    with pytest.raises(NotApplicable, match="'pulls' supports only NC, GC, but 'testing-links/class-il@testing-1' is LC"):
        cell(catalogue, "pulls", "testing-links/class-il@testing-1")
    with pytest.raises(NotApplicable, match="a stream without tasks"):
        cell(catalogue, "pulls", "testing-nodes/task-free@testing-1")
    with pytest.raises(PluginError, match=r"returned str; expected a cglsuite.learning.Pretraining"):
        trained(catalogue, cell(catalogue, "odd"))
    with pytest.raises(SpecError, match="'none' is reserved for no pre-training"):
        spec("none", "Pulls")
    with pytest.raises(SpecError, match="'transfer' is already used by one that all schemes share"):
        spec("x", "Pulls", hyperparameters=(Hyperparameter(name="transfer", default=1, doc="d"),))


@pytest.mark.parametrize(
    ("name", "failed"), [("of-the-head", {"changes"}), ("chance", {"repeatable"}), ("idle", {"changes"}), ("odd", {"runs"})]
)
def test_the_check_finds_what_is_wrong(catalogue: Catalogue, name: str, failed: set[str]) -> None:
    report = examine("pretraining", name, catalogue)
    assert {finding.check for finding in report.failed} - {"listing", "learns", "factory", "documentation"} == failed


def test_the_check_passes_an_honest_one(catalogue: Catalogue) -> None:
    report = examine("pretraining", "pulls", catalogue, only=("runs", "learns", "changes", "repeatable"))
    assert not report.failed
