"""Every preset is built: task counts as published, no graph in two parts, on real data where it is there; what the real files hold."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable

import pytest
import torch
from cglsuite_graph.datasets.molecules.moleculenet import aromaticity, molhiv, sider, tox21
from cglsuite_graph.datasets.molecules.regression import aqsol, zinc_standin
from cglsuite_graph.datasets.specs import DATASETS
from cglsuite_graph.protocols import begin_presets, cglb_presets

from cglsuite import ScenarioSpec, Seeds
from cglsuite.base.datafiles import DataRoot
from cglsuite.campaigns.reference import dataset_statistics
from cglsuite.graphs import GraphData
from cglsuite.streams.graphwise import build_graph_stream
from cglsuite.streams.layout import Layout, layout_of

PRESETS = {preset.name: preset for preset in [*begin_presets(), *cglb_presets()]}
PROTOCOLS = {"BeGin": "begin-1", "CGLB": "cglb-1"}
#: The datasets whose raw files the folder of real data has.
REAL = ("aromaticity", "sider", "tox21", "ogbg-molhiv", "aqsol", "zinc-standin")
OWN = {"zinc-standin": 11, "synthetic-motifs": 5, "synthetic-graph-regression": 5}


def late_unless(name: str, by_day: bool) -> object:
    return name if by_day else pytest.param(name, marks=pytest.mark.nightly)


def published() -> dict[str, int]:
    """Preset to number of tasks, from the table that the suite carries."""
    table = dataset_statistics()
    table = table[table["problem"].isin(["GC", "GR"]) & table["paper"].isin(list(PROTOCOLS))]
    names = table["dataset"].str.lower().str.replace(r"-(til|cl)$", "", regex=True)
    keys = names + "/" + table["setting"].str.lower() + "@" + table["paper"].map(PROTOCOLS)
    return dict(zip(keys, table["n_tasks"].astype(int), strict=True))


def expected_tasks(name: str) -> int:
    """As published; later versions of a preset have the tasks of the first."""
    return OWN.get(PRESETS[name].dataset) or published()[re.sub(r"-\d+$", "-1", name)]


def data_of(preset: ScenarioSpec, root: DataRoot) -> GraphData:
    (spec,) = (spec for spec in DATASETS if spec.name == preset.dataset)
    module, _, factory = spec.factory.partition(":")
    data: GraphData = getattr(importlib.import_module(module), factory)(root, **settings_of(preset))
    return data


def settings_of(preset: ScenarioSpec) -> dict[str, object]:
    """The preset's settings of the dataset, with as few posts as the tiny file has."""
    return dict(preset.dataset_hyperparameters) | ({"posts": 10} if preset.dataset == "sentiment140" else {})


def check_parts(layout: Layout, official: torch.Tensor | None) -> None:
    """No graph in two parts, within a task or across tasks, and every part where an official split has it."""
    for part, others in (("train", ("validation", "test")), ("validation", ("test",))):
        for parts in layout.parts:
            for other in others:
                asked = torch.cat([p[other] for p in layout.parts])
                assert not torch.isin(parts[part], asked).any(), f"a graph of {part} is one of {other}"
                if official is not None:
                    assert official[parts[part]].unique().tolist() == [{"train": 0, "validation": 1}[part]]


def check_stream(preset: ScenarioSpec, data: GraphData, seeds: Seeds) -> None:
    layout = layout_of(preset, data, seeds)
    check_parts(layout, data.official_split if preset.split == "official" else None)
    stream = build_graph_stream(preset, data, seeds)
    assert len(stream.tasks) == expected_tasks(preset.name)
    view = stream.view(0)
    assert len(view.train) == len(layout.parts[0]["train"])
    assert len(view.train.graph) == len(view.train), "a view holds its training graphs and nothing else"
    assert view.train.graph.n_features == data.n_features
    if (edge_features := dict(preset.backbone_hyperparameters).get("edge_features")) is not None:
        assert view.train.graph.n_edge_features == edge_features, "the backbone takes the features that edges have"


@pytest.mark.parametrize("name", [late_unless(name, not name.startswith(("nyc-taxi/", "zinc-standin/"))) for name in PRESETS])
def test_every_preset_is_built(name: str, tiny: DataRoot, chain: object) -> None:
    preset = PRESETS[name]
    check_stream(preset, data_of(preset, tiny), Seeds())


@pytest.mark.nightly
def test_hours_of_new_york_are_weekdays_or_weekends(tiny: DataRoot) -> None:
    """1 January 2018 was a Monday; its first hour has the one trip of the month, from zone 4 to zone 7."""
    data = data_of(PRESETS["nyc-taxi/time-il@begin-1"], tiny)
    assert data.y[:192].tolist() == [0] * 5 * 24 + [1] * 2 * 24 + [0] * 24
    assert data.keys["quarter"].unique(return_counts=True)[1][:2].tolist() == [90 * 24, 91 * 24]
    assert data.notes == {"hours_without_trips": 35_064 - 48}
    graphs = data.items.queries(torch.tensor([0, 1]), "cpu")
    assert graphs.edges_with_loops[:, : graphs.n_edges].tolist() == [[3], [6]]
    assert graphs.edge_features.tolist() == [[2]]


def test_the_published_scenarios_are_all_there() -> None:
    rows = published()
    assert len([name for name in rows if name.endswith("@begin-1")]) == 12
    assert {name: n for name, n in rows.items() if name.endswith("@cglb-1")} == {
        "sider/task-il@cglb-1": 27,
        "tox21/task-il@cglb-1": 12,
        "aromaticity/task-il@cglb-1": 15,
        "aromaticity/class-il@cglb-1": 15,
    }
    assert set(rows) <= set(PRESETS)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("synthetic-")])
def test_no_test_graph_in_any_view(name: str, tiny: DataRoot) -> None:
    """By the graphs' own bits: what a view holds at any stage is no graph that is asked about."""
    preset = PRESETS[name]
    data = data_of(preset, tiny)
    layout = layout_of(preset, data, Seeds(order=1, split=2))
    stream = build_graph_stream(preset, data, Seeds(order=1, split=2))
    asked = torch.cat([data.items.queries(p["test"], "cpu").mean_features() for p in layout.parts])
    for k, parts in enumerate(layout.parts):
        view = stream.view(k)
        for batch, part in ((view.train, "train"), (view.validation, "validation")):
            assert torch.equal(batch.graph.mean_features(), data.items.queries(parts[part], "cpu").mean_features())
        assert view.validation.y is None
    own = torch.cat([data.items.queries(p["train"], "cpu").mean_features() for p in layout.parts])
    assert len(own) + len(asked) < data.n_items


# --- real files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.realdata
@pytest.mark.parametrize(
    "name", [late_unless(name, preset.dataset == "sider") for name, preset in PRESETS.items() if preset.dataset in REAL]
)
def test_real_data(name: str, real: DataRoot) -> None:
    preset = PRESETS[name]
    check_stream(preset, data_of(preset, real), Seeds())


@pytest.mark.realdata
def test_real_aromaticity(real: DataRoot) -> None:
    data = aromaticity(real, split_source="begin")
    counts = sorted(data.keys["aromatic_atoms"].unique().tolist())
    assert counts == [0, 4, 5, 6, *range(8, 34)]
    assert (data.n_items, data.n_classes, int(data.y.bincount().min())) == (3_868, 30, 29)
    everything = data.items.queries(torch.arange(data.n_items), "cpu")
    assert (everything.n_nodes, everything.n_edges) == (115_061, 253_018)


@pytest.mark.realdata
@pytest.mark.parametrize(("load", "nodes", "edges"), [(sider, 33.64, 70.72), (tox21, 18.57, 38.58)])
def test_real_moleculenet(load: Callable[..., GraphData], nodes: float, edges: float, real: DataRoot) -> None:
    """Means of the graphs that RDKit accepts, as PyG gives them; in Tox21 eight more are recovered."""
    data = load(real)
    graphs = data.items.queries(torch.arange(data.n_items), "cpu")
    assert graphs.n_nodes / data.n_items == pytest.approx(nodes, abs=0.02)
    assert graphs.n_edges / data.n_items == pytest.approx(edges, abs=0.05)
    assert data.known is not None
    assert int(data.known.sum()) == {"sider": 1_427 * 27, "tox21": 77_946}[data.name]
    assert data.name == "sider" or int(data.y.sum()) == 5_862


@pytest.mark.nightly
@pytest.mark.realdata
def test_rows_of_hiv_csv_are_the_graphs_of_molhiv(real: DataRoot) -> None:
    """BeGin's domains of ogbg-molhiv, applied by row: all graphs of a Murcko scaffold lie in one, as they were made."""
    data = molhiv(real)
    assert (int(data.y.sum()), data.n_items) == (1_443, 41_127)
    assert data.keys["row"].tolist() == list(range(41_127))
    scaffolds = data.keys["scaffold"]
    often = scaffolds.bincount()[scaffolds] > 1
    assert len(scaffolds[often].unique()) == 4_783
    pairs = torch.stack([scaffolds[often], data.keys["domain"][often]]).unique(dim=1)
    assert pairs.shape[1] == len(scaffolds[often].unique())


@pytest.mark.nightly
@pytest.mark.realdata
def test_real_regression(real: DataRoot) -> None:
    soluble, zinc = aqsol(real), zinc_standin(real)
    graphs = soluble.items.queries(torch.arange(soluble.n_items), "cpu")
    assert soluble.official_split is not None
    assert soluble.official_split.bincount().tolist() == [7_836, 998, 999]
    assert graphs.n_nodes / soluble.n_items == pytest.approx(17.58, abs=0.005)
    assert graphs.n_edges / soluble.n_items == pytest.approx(35.80, abs=0.005)
    domain, scaffold = soluble.keys["domain"], soluble.keys["scaffold"]
    sizes = domain.bincount()
    *others, largest = sizes.sort().values.tolist()
    assert others[-1] - others[0] < 10, "domains are of nearly equal size"
    alone = scaffold[domain == int(sizes.argmax())]
    assert largest == len(alone)
    assert len(alone.unique()) == 1, "but for that of the molecules without a ring, which no split by scaffold can divide"
    assert zinc.items.queries(torch.arange(zinc.n_items), "cpu").n_nodes / zinc.n_items == pytest.approx(23.18, abs=0.005)
