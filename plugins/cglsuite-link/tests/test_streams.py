"""Every preset is built: task counts as published, message graphs without what is asked about, on real data where it is there."""

from __future__ import annotations

import csv
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from cglsuite_link.datasets.specs import DATASETS
from cglsuite_link.protocols import link_presets
from link_files import write_all

from cglsuite import ScenarioSpec, Seeds
from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import LinkData
from cglsuite.graphs.splits.negatives import pair_keys
from cglsuite.specs import switches, with_switches
from cglsuite.streams.layout import Layout, layout_of
from cglsuite.streams.links import build_link_stream
from cglsuite.streams.stream import TaskStream

PRESETS = {preset.name: preset for preset in link_presets()}
#: The datasets whose raw files the folder of real data has.
REAL = ("bitcoin-otc", "bitcoin-alpha", "facebook-7", "math-overflow", "college-msg")
#: Name in BeGin's table 2 to ours.
PUBLISHED = {
    "Bitcoin": "bitcoin-otc",
    "ogbl-collab": "ogbl-collab",
    "Wiki-CS": "wiki-cs",
    "Ask-Ubuntu": "ask-ubuntu",
    "Facebook": "facebook",
    "Gowalla": "gowalla",
    "MovieLens": "movielens",
}
STAND_INS = {"facebook-7": 7, "math-overflow": 78, "college-msg": 7}


def data_of(preset: ScenarioSpec, root: DataRoot) -> LinkData:
    (spec,) = (spec for spec in DATASETS if spec.name == preset.dataset)
    module, _, factory = spec.factory.partition(":")
    data: LinkData = getattr(importlib.import_module(module), factory)(root, **dict(preset.dataset_hyperparameters))
    return data


def published_counts() -> dict[str, int]:
    """Scenario without its protocol to number of tasks, from the table that the suite carries."""
    table = Path(importlib.import_module("cglsuite.campaigns.reference").__file__ or "").parent / "dataset_statistics.csv"
    with table.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["paper"] == "BeGin" and row["problem"] in ("LC", "LP")]
    return {f"{PUBLISHED[row['dataset']]}/{row['setting'].lower()}": int(row["n_tasks"]) for row in rows}


def expected_tasks(name: str) -> int:
    scenario = name.partition("@")[0]
    dataset, _, setting = scenario.partition("/")
    own = {
        "bitcoin-alpha": {"time-il": 7},
        "synthetic-signed-links": {"time-il": 5},
        "synthetic-temporal-links": {"time-il": 5, "domain-il": 6},
    }
    if dataset in own:
        return own[dataset].get(setting, 3)
    return STAND_INS[dataset] if dataset in STAND_INS else published_counts()[scenario]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return write_all(tmp_path_factory.mktemp("tiny"))


def stream_of(preset: ScenarioSpec, data: LinkData, seeds: Seeds) -> TaskStream:
    return build_link_stream(preset, data, seeds)


def fitting(preset: ScenarioSpec) -> ScenarioSpec:
    """The preset with as few pairs without a link as tiny graphs have room for."""
    return with_switches(preset, {"negatives": 150}, "scenario") if preset.level == "LP" else preset


def carried(graph: Any, data: LinkData, undirected: bool) -> torch.Tensor:
    """The keys of the pairs of nodes along which messages pass."""
    return pair_keys(graph.edges_with_loops[:, : -data.n_nodes].cpu(), data.n_nodes, undirected).unique()


def check_no_leak(preset: ScenarioSpec, data: LinkData, stream: TaskStream, layout: Layout, stages: range) -> None:
    """What carries messages at every stage, by its own count: no link that is asked about, and in time-IL none of later.

    In time-IL two people who worked together may do so again: what passes between them is the earlier link, if that was before any that is
    asked about.
    """
    time, keys = preset.setting == "time-il", pair_keys(data.links, data.n_nodes, preset.undirected)
    arrival = torch.full((data.n_items,), len(layout))
    for k, nodes in enumerate(layout.nodes):
        arrival[nodes] = k
    asked, trained = (torch.cat([parts[part] for parts in layout.parts for part in of]) for of in (("validation", "test"), ("train",)))
    pair = keys.unique(return_inverse=True)[1]
    first = torch.full((len(pair),), len(layout)).scatter_reduce(0, pair[asked], arrival[asked], "amin")  # by pair: when it is asked first
    past = trained[arrival[trained] < first[pair[trained]]] if time else trained[:0]
    for stage in stages:
        graph = stream.view(stage).train.graph
        found = carried(graph, data, preset.undirected)
        if preset.node_features != "given":
            counts = [torch.bincount(ends, minlength=data.n_nodes) for ends in graph.edge_index.flip(0)]
            shown = graph.features if preset.node_features == "degrees" else graph.features[:, 1:].expm1().round()
            assert torch.equal(shown.long(), torch.stack(counts, dim=1))
        there = arrival == stage if preset.edge_policy == "none" else arrival <= (stage if time else len(layout))
        if preset.level == "LC":
            assert torch.isin(found, keys[there]).all()
            continue
        assert graph.hides_targets == switches(preset)["exclude_targets"]
        assert torch.isin(found, keys[trained[there[trained]]]).all()
        leaked = torch.isin(found, keys[asked]) & ~torch.isin(found, keys[past])
        assert not leaked.any(), f"stage {stage}: {int(leaked.sum())} validation or test links carry messages"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_built(name: str, tiny: DataRoot) -> None:
    preset = fitting(PRESETS[name])
    data = data_of(preset, tiny)
    stream = stream_of(preset, data, Seeds())
    assert len(stream.tasks) == expected_tasks(name)
    for stage in {0, len(stream.tasks) - 1}:
        check_no_leak(preset, data, stream, layout_of(preset, data, Seeds()), range(stage, stage + 1))


def test_the_published_scenarios_are_all_there() -> None:
    scenarios = {name.partition("@")[0] for name in PRESETS}
    assert len(published_counts()) == 9
    assert set(published_counts()) <= scenarios


def test_the_table_of_what_is_tested_on_what() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").partition("| dataset | tested on |")[2]
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \|$", text, re.MULTILINE))
    assert set(rows) == {spec.name for spec in DATASETS}
    on_real = {name for name, tested in rows.items() if "real data" in tested}
    assert on_real == {PRESETS[name].dataset for name in PRESETS if name.partition("/")[0] in REAL}
    assert {name for name, tested in rows.items() if tested == "itself"} == {spec.name for spec in DATASETS if spec.embedded}


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("synthetic-")])
def test_no_leak_at_any_stage(name: str, tiny: DataRoot) -> None:
    preset = PRESETS[name]
    for seeds in (Seeds(), Seeds(order=1, split=2)):
        data = data_of(preset, tiny)
        layout = layout_of(preset, data, seeds)
        check_no_leak(preset, data, stream_of(preset, data, seeds), layout, range(len(layout)))


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith(("gowalla", "movielens"))])
def test_users_are_paired_with_what_users_are_linked_to(name: str, tiny: DataRoot) -> None:
    preset = fitting(PRESETS[name])
    data = data_of(preset, tiny)
    assert data.node_types is not None
    view = stream_of(preset, data, Seeds()).view(len(layout_of(preset, data, Seeds())) - 1)
    links = set(map(tuple, data.links.T.tolist()))
    for batch in (view.train, view.validation):
        assert data.node_types[batch.ids].sort(dim=1).values.tolist() == [[0, 1]] * len(batch)
    asked = [tuple(sorted(pair)) in links for pair in view.validation.ids.tolist()]
    assert 0 < sum(asked) < len(asked)


@pytest.mark.realdata
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if name.startswith(("facebook-7/", "math-overflow/")) else [])
        for name in PRESETS
        if name.partition("/")[0] in REAL
    ],
)
def test_real_data(name: str, tmp_path: Path) -> None:
    preset = PRESETS[name]
    data = data_of(preset, DataRoot(DataRoot.from_environment().root, tmp_path, offline=True))
    layout = layout_of(preset, data, Seeds())
    stream = stream_of(preset, data, Seeds())
    assert len(stream.tasks) == len(layout) == expected_tasks(name)
    for stage in {0, len(layout) // 2, len(layout) - 1}:
        check_no_leak(preset, data, stream, layout, range(stage, stage + 1))
