"""AGALE beyond nodes: tasks, splits, message graphs and answers of its presets for links and whole graphs, on embedded and on real data."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import own_data_lab as lab
import pytest
import torch

from cglsuite import Seeds, load_catalogue
from cglsuite.base.errors import DataError, SpecError
from cglsuite.cells.run import build_stream, run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.splits import multilabel
from cglsuite.host.catalogue import derive
from cglsuite.protocols import agale
from cglsuite.streams.labelled_graphs import build_labelled_graph_stream
from cglsuite.streams.stream import TaskStream

pytestmark = pytest.mark.plugins
SEEDS = Seeds(order=0, split=0, init=0)
LABELS = lab.graphs(160, y=(np.arange(160)[:, None] >> np.arange(5)) % 2)


def stream_of(scenario: str, **overrides: object) -> TaskStream:
    return build_stream(resolve_cell(load_catalogue(), scenario, "bare", overrides=overrides, seeds=SEEDS), load_catalogue())


def check_tasks(stream: TaskStream) -> None:
    """Algorithm 1: a task's items have one of its classes, two by two, the odd one last. Algorithm 2: its parts, which are disjoint."""
    spec, layout, data = stream.spec, stream.layout, stream.data  # type: ignore[attr-defined]
    assert (spec.split, spec.head, spec.leftover) == ("task-wise", "growing", "join-last")
    assert {len(classes) for classes in layout.classes[:-1]} == {2}
    for k, classes in enumerate(layout.classes):
        members = multilabel.task_members(data.y, classes)
        assert torch.equal(layout.nodes[k], members)
        split = multilabel.task_split(data.y, classes, members, (0.6, 0.1, 0.3), 0)
        assert [torch.equal(ids, (split == part).nonzero().flatten()) for part, ids in enumerate(layout.parts[k].values())] == [True] * 3


def trained(scenario: str, method: str, folder: Path, **overrides: object) -> list[list[float]]:
    cell = resolve_cell(load_catalogue(), scenario, method, overrides={"training.epochs": 15, **overrides}, seeds=SEEDS)
    record = run_cell(cell, load_catalogue(), Store(folder))
    assert record.status == "done", record.reason
    return record.matrix[1:]  # type: ignore[no-any-return]


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_links_pass_messages_within_their_task_alone(setting: str) -> None:
    stream = stream_of(f"synthetic-signed-links/{setting}@agale-2")
    check_tasks(stream)
    for k, members in enumerate(stream.layout.nodes):  # type: ignore[attr-defined]
        links = stream.data.links[:, members]  # type: ignore[attr-defined]
        pairs = {frozenset(pair) for pair in links.T.tolist()}
        assert {frozenset(pair) for pair in stream.view(k).train.graph.edge_index.T.tolist()} == pairs


def test_a_graph_is_in_the_tasks_of_its_labels() -> None:
    single = stream_of("synthetic-motifs/class-il@agale-2")
    check_tasks(single)
    with lab.own_data(LABELS) as catalogue:
        cell = resolve_cell(catalogue, "mine/class-il@agale-2", "bare", seeds=SEEDS)
        several = build_stream(cell, catalogue)
        check_tasks(several)
        labels = several.view(0).train.y
    seen = several.layout.classes[0].tolist()  # type: ignore[attr-defined]
    hidden = [c for c in range(several.n_outputs) if c not in seen]
    assert labels[:, seen].any()
    assert not labels[:, hidden].any(), "labels of later tasks are not known yet"


def test_unknown_labels_leave_tasks_undefined() -> None:
    with lab.own_data(LABELS) as catalogue:
        stream = build_stream(resolve_cell(catalogue, "mine/task-il@cglb-2", "bare", seeds=SEEDS), catalogue)
        spec = catalogue.scenario("mine/class-il@agale-2")
    data = stream.data  # type: ignore[attr-defined]
    known = torch.ones_like(data.y)
    known[4, 1] = False
    with pytest.raises(DataError, match=r"have one of its labels, but label 1 of graph 4 is unknown \(1 unknown"):
        build_labelled_graph_stream(spec, dataclasses.replace(data, known=known), SEEDS)


def test_levels_without_classes_are_refused_with_the_reason() -> None:
    catalogue = load_catalogue()
    for dataset in ("synthetic-temporal-links", "synthetic-node-targets", "synthetic-graph-regression"):
        with pytest.raises(SpecError, match="whose items have no classes that could arrive, but class-il@agale-2 is of level GC, LC, NC"):
            derive(f"{dataset}/class-il@agale-2", catalogue.dataset(dataset), lab.presets())


def test_derived_links_have_their_own_features_and_the_papers_numbers() -> None:
    made = load_catalogue().derivation("bitcoin-otc/class-il@agale-2")
    assert made is not None
    assert made.parent.name == "synthetic-signed-links/class-il@agale-2"
    assert made.spec.node_features == "degrees"
    assert made.left_out == ("the node features of synthetic-signed-links (scenario.node_features = degrees)",)
    assert made.spec.method_defaults["ewc"] == {"method.lambda": 1e4, "method.fisher": "last-step"}


def test_a_dataset_of_a_third_party_gets_a_preset() -> None:
    for preset in (
        agale.node_preset("mine", "class-il", multi=False, version=2),
        agale.link_preset("mine", "class-il"),
        agale.graph_preset("mine", "class-il", multi=True),
    ):
        assert preset.name == "mine/class-il@agale-2"
        assert (preset.citation, preset.split_ratio, preset.training.epochs) == (agale.CITATION, (0.6, 0.1, 0.3), 999)


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", ["synthetic-signed-links/task-il@agale-2", "synthetic-motifs/task-il@agale-2"])
def test_tasks_are_learnt(scenario: str, tmp_path: Path) -> None:
    own = [row[k] for k, row in enumerate(trained(scenario, "bare", tmp_path))]
    assert sum(own) / len(own) > 0.6, "chance is 0.5"


@pytest.mark.realdata
@pytest.mark.nightly
@pytest.mark.parametrize("method", ["ewc", "er-gnn"])
def test_bitcoin(method: str, tmp_path: Path) -> None:
    """35,592 ratings of six classes: three tasks, each in the subgraph of its ratings."""
    scenario = "bitcoin-otc/class-il@agale-2"
    check_tasks(stream_of(scenario))
    matrix = trained(scenario, method, tmp_path)
    assert len(matrix) == 3
    assert matrix[0][0] > 0.6
