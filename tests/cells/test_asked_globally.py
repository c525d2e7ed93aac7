"""The twins of published presets train as these do, and are asked about all tasks at once; few-shot streams are asked so too."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed import installed

from cglsuite import ScenarioSpec
from cglsuite.campaigns.reference import leak_of, leaks, queries_note
from cglsuite.cells.diagnostics import measure_leak
from cglsuite.cells.run import build_scenario, run_cell
from cglsuite.cells.spec import resolve_cell, resolve_scenario
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds, switches

pytestmark = pytest.mark.plugins
PARENTS = {"global-1": "cglb-2", "global-agale-1": "agale-2"}
ASKED = {"query_grouping": "pooled", "query_edges": "seen"}
PERFORMANCE = {"single": "micro", "multi": "average-precision"}


def twins() -> list[ScenarioSpec]:
    return [spec for spec in installed().specs(ScenarioSpec).values() if spec.protocol in PARENTS]


def test_twins_differ_from_their_parents_in_what_is_asked() -> None:
    catalogue = installed()
    assert len(twins()) == 18
    for twin in twins():
        parent = catalogue.scenario(f"{twin.dataset}/class-il@{PARENTS[twin.protocol]}")
        mine, theirs = switches(twin, implicit=True), switches(parent, implicit=True)
        asked = ASKED | {"performance": PERFORMANCE[twin.labels]}
        assert {name: mine[name] for name in mine if mine[name] != theirs[name]}.items() <= asked.items()
        assert all(mine[name] == value for name, value in asked.items())
        assert (twin.training, twin.method_defaults) == (parent.training, parent.method_defaults)


@pytest.mark.parametrize("name", ["synthetic-csbm/class-il@global-1", "synthetic-csbm-edges/class-il@global-agale-1"])
@pytest.mark.parametrize("method", ["bare", "er-gnn"])
def test_twins_train_the_same_models(name: str, method: str, tmp_path: Path) -> None:
    """The state of the method after every task is the same in every bit; what is answered is not."""
    catalogue, store = installed(), Store(tmp_path)
    parent = name.replace("@global-agale-1", "@agale-2").replace("@global-1", "@cglb-2")
    records = [run_cell(resolve_cell(catalogue, n, method, overrides={"training.epochs": 3}), catalogue, store) for n in (parent, name)]
    assert [record.status for record in records] == ["done", "done"]
    asked_apart, asked_globally = (record.fingerprints() for record in records)
    assert [part["state"] for part in asked_apart] == [part["state"] for part in asked_globally]
    assert [part["answers"] for part in asked_apart][1:] != [part["answers"] for part in asked_globally][1:]
    assert records[1].metrics["pooled_accuracy"] is not None


def test_few_shot_streams_have_five_items_per_later_class() -> None:
    catalogue = installed()
    scenario = resolve_scenario(catalogue, "synthetic-csbm/class-il@few-shot-1", {})
    stream = build_scenario(catalogue, scenario.spec, scenario.dataset_hyperparameters, Seeds(order=1, split=0))
    assert [len(task.classes) for task in stream.tasks] == [4, 2, 2, 2]
    assert [task.n_train for task in stream.tasks[1:]] == [10, 10, 10]
    assert stream.tasks[0].n_train > 100


def test_the_committed_leaks_are_of_known_presets_and_can_be_measured_again() -> None:
    catalogue = installed()
    found = leaks().set_index("scenario")
    assert set(found.index) <= set(catalogue.names("scenario"))
    assert {"synthetic-csbm/class-il@cglb-2", "synthetic-csbm/class-il@global-1"} <= set(found.index)
    for name in ("synthetic-csbm-edges/class-il@agale-2", "synthetic-csbm-edges/class-il@global-agale-1"):
        scenario = resolve_scenario(catalogue, name, {})
        leak = measure_leak(build_scenario(catalogue, scenario.spec, scenario.dataset_hyperparameters, Seeds(order=0, split=0)))
        assert leak.leak == pytest.approx(found.loc[name, "leak"], abs=0.005)
        assert leak.by_task == (found.loc[name, "group"] == "task")


def test_no_stream_that_is_asked_globally_leaks() -> None:
    """The interval of the difference that groups make contains 0, or at most one point of it."""
    found = leaks().set_index("scenario")
    for name in found.index[found.index.str.contains("@global|@few-shot")]:
        assert found.loc[name, "low"] < 0.01, name


def test_groups_of_one_task_tell_what_nodes_of_several_tasks_do_not() -> None:
    found = leaks().set_index("scenario")
    for dataset in ("pcg", "blogcatalog", "humango", "dblp-multilabel"):
        apart, once = found.loc[f"{dataset}/class-il@agale-2"], found.loc[f"{dataset}/class-il@global-agale-1"]
        assert apart["low"] > 0.15
        assert apart["grouped"] > 0.9
        assert abs(once["leak"]) < 0.02
    row = found.loc["blogcatalog/class-il@agale-2"]
    assert [round(100 * row["alone"]), round(100 * row["grouped"])] == [41, 99]  # as docs/protocols/queries.md says
    assert round(1 / row["chance"]) == 18


def test_a_card_says_what_queries_reveal() -> None:
    assert "with the mean of its query group: +" in leak_of("synthetic-csbm/class-il@cglb-2")
    assert leak_of("synthetic-csbm/task-il@cglb-2") == ""


SWITCHES = {"level": "NC", "setting": "class-il", "edge_policy": "none"}


@pytest.mark.parametrize(
    ("preset", "switches", "told"),
    [
        ("cora/class-il@cglb-1", {}, ["+19.0 points [+8.7, +28.3]", "Compare with pooled queries: cora/class-il@global-1, or scenario."]),
        ("cora/class-il@cglb-2+3e009e45", {}, ["+19.0 points", "cora/class-il@global-1"]),
        ("blogcatalog/class-il@agale-consistent-1", {}, ["+60.1 points", "blogcatalog/class-il@global-agale-1"]),
        ("mine/class-il@cglb-1", {}, ["`cglsuite scenarios audit mine/class-il@cglb-1` measures how well", "mine/class-il@global-1"]),
        ("mine/domain-il@own-1", {"setting": "domain-il"}, ["Compare with pooled queries: scenario.query_grouping=pooled"]),
        ("cora/class-il@global-1", {"query_grouping": "pooled", "query_edges": "seen"}, []),
        ("cora/class-il@begin-1", {"edge_policy": "full"}, []),
        ("cora/task-il@cglb-1", {"setting": "task-il"}, []),
        ("molecules/class-il@cglb-1", {"level": "GC"}, []),
    ],
)
def test_what_is_said_where_a_query_graphs_size_tells_the_task(preset: str, switches: dict[str, str], told: list[str]) -> None:
    note = queries_note(preset, SWITCHES | switches)
    assert bool(note) == bool(told)
    assert all(text in note for text in told)
