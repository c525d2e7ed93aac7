"""The tidy table: a row per record, honest pairing with joint, and files that read back."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_cells
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from cglsuite.base.errors import UnknownNameError
from cglsuite.base.hashing import digest
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.records.frame import Compared, compared_metrics, long_frame, render_frame, results_frame, write_frame
from cglsuite.cells.records.record import Record
from cglsuite.specs import Seeds
from cglsuite.stats.metrics import excess_forgetting

JOINT = {"intransigence": Compared("joint", fake_cells.intransigence)}


def record(method: str = "bare", scenario: str = "toy/task-il@begin-1", seed: int = 0, lr: float = 1e-3, **changes: Any) -> Record:
    request = CellRequest(scenario=scenario, method=method, overrides={"training.lr": lr}, seeds=Seeds(order=seed, init=seed))
    planned = plan_cell(request, fake_cells.FakeCatalogue())
    return fake_cells.make_record(planned.cell, **changes)


def test_one_row_per_record_with_everything_named() -> None:
    """Identity, metrics, times with units, memory, parameters, settings."""
    frame = results_frame([record("ewc", seed=1), record("ewc", status="failed", reason="boom"), record("bare")])
    assert list(frame["method"]) == ["bare", "ewc", "ewc"]
    assert list(frame["status"]) == ["done", "failed", "done"]
    last = frame.iloc[2]
    assert (last["scenario"], last["dataset"], last["setting"], last["protocol"]) == ("toy/task-il@begin-1", "toy", "task-il", "begin-1")
    assert (last["order_seed"], last["split_seed"], last["init_seed"]) == (1, 0, 1)
    assert last["training_s"] == 0.8
    assert last["total_s"] == 1.0
    assert last["peak_bytes"] == 10**8
    assert last["memory_items"] == 0
    assert last["model_parameters"] == 100
    assert last["configuration.method.lambda"] == 1.0
    assert frame["configuration.method.lambda"].isna().tolist() == [True, False, False]
    assert math.isnan(frame.loc[1, "average_performance"])
    assert frame["key"].is_unique
    assert last["average_performance"] == record("ewc", seed=1).metrics["average_performance"]
    assert last["validation_average_performance"] == record("ewc", seed=1).validation_average_performance()


def test_the_long_table_has_a_row_per_stage_and_task() -> None:
    """As far as tasks were evaluated; stages of a task-free stream are steps; unfinished records have no rows."""
    matrix = [[0.5, None], [0.9, None], [0.25, 0.75]]
    stepwise = record("ewc", matrix=matrix)
    stepwise = dataclasses.replace(
        stepwise, provenance={**stepwise.provenance, "stream": {"evaluations": [0, 40, 80], "delivered": [[0, 0], [4, 0], [4, 4]]}}
    )
    frame = long_frame([record(seed=3, matrix=matrix), stepwise, record("joint", status="failed", reason="x", matrix=[])])
    assert list(frame.columns) == [
        *("key", "preset", "method", "backbone", "order_seed", "split_seed", "init_seed", "stage", "task", "performance")
    ]
    assert frame[["method", "stage", "task", "performance"]].to_numpy().tolist() == [
        *(["bare", *row] for row in ([0, 1, 0.5], [1, 1, 0.9], [2, 1, 0.25], [2, 2, 0.75])),
        *(["ewc", *row] for row in ([0, 1, 0.5], [40, 1, 0.9], [80, 1, 0.25], [80, 2, 0.75])),
    ]
    assert set(frame["init_seed"]) == {3, 0}


def test_trials_of_searches_carry_their_role() -> None:
    trial, other = record("ewc", seed=1), record("ewc", seed=2)
    assert results_frame([trial, other], trials={trial.key})["role"].tolist() == ["trial", "final"]


def test_a_record_that_is_given_twice_has_one_row() -> None:
    """Or means over the table would count it twice."""
    one, other = record("ewc", seed=1), record("ewc", seed=2)
    assert list(results_frame([one, other, one])["init_seed"]) == [1, 2]


def test_an_empty_store_gives_an_empty_table_with_columns() -> None:
    """Nothing run yet is no error."""
    frame = results_frame([], compared=JOINT)
    assert frame.empty
    assert {"scenario", "method", "status", "key"} <= set(frame.columns)
    assert render_frame(frame, "json") == b"[]\n"


def test_intransigence_pairs_with_joint_of_the_same_scenario_and_seeds() -> None:
    """By hand: mean over tasks of the joint diagonal less the own one; NaN where there is no such joint record."""
    own = record("bare", matrix=[[0.5, 0.5], [0.75, 0.5], [0.25, 0.5]])
    upper = record("joint", lr=5e-3, matrix=[[0.5, 0.5], [1.0, 0.5], [1.0, 0.75]])
    frame = results_frame([own, upper, record("bare", seed=1), record("ewc", scenario="toy/class-il@begin-1")], compared=JOINT)
    by = frame.set_index(["scenario", "method", "order_seed"])["intransigence"]
    assert by["toy/task-il@begin-1", "bare", 0] == ((1.0 - 0.75) + (0.75 - 0.5)) / 2
    assert by["toy/task-il@begin-1", "joint", 0] == 0
    assert math.isnan(by["toy/task-il@begin-1", "bare", 1])
    assert math.isnan(by["toy/class-il@begin-1", "ewc", 0])


def test_each_metric_pairs_with_its_own_reference() -> None:
    """Forgetting beyond a method that cannot forget, beside intransigence: each has the record of its method, or no value."""
    metrics = JOINT | {"excess_forgetting": Compared("frozen-ncm", excess_forgetting)}
    own = record("bare", matrix=[[0.5, 0.5], [0.75, 0.5], [0.25, 0.5]])
    frozen = record("ewc", matrix=[[0.5, 0.5], [0.5, 0.5], [0.375, 0.5]])
    frozen = dataclasses.replace(frozen, cell=frozen.cell | {"method": "frozen-ncm"})
    frame = results_frame([own, frozen, record("ewc", seed=1)], compared=metrics).set_index("method")
    assert frame.loc[["bare", "frozen-ncm"], "excess_forgetting"].tolist() == [(0.75 - 0.25) - (0.5 - 0.375), 0.0]
    assert math.isnan(frame.loc["ewc", "excess_forgetting"])
    assert frame["intransigence"].isna().all()


def test_pairing_prefers_the_same_training_and_refuses_to_guess(caplog: pytest.LogCaptureFixture) -> None:
    """Two joint records of unlike training: the one trained alike if there is one, else none, and the log says so."""
    own = record("bare", lr=1e-3)
    same, other, third = record("joint", lr=1e-3), record("joint", lr=5e-3), record("joint", lr=1e-2)
    frame = results_frame([own, same, other], compared=JOINT).set_index(["method", "configuration.training.lr"])["intransigence"]
    assert frame["bare", 1e-3] == 0
    assert not caplog.records
    frame = results_frame([own, other, third], compared=JOINT).set_index(["method", "configuration.training.lr"])["intransigence"]
    assert math.isnan(frame["bare", 1e-3])
    assert "several joint records (2) match toy/task-il@begin-1 × bare" in caplog.text


def test_rows_that_several_joint_records_match_are_counted_in_one_warning_per_scenario(caplog: pytest.LogCaptureFixture) -> None:
    uppers = [record("joint", lr=5e-3), record("joint", lr=1e-2), record("joint", lr=2e-2, scenario="toy/class-il@begin-1")]
    rows = [record(method, lr=1e-3) for method in ("bare", "ewc", "packnet")]
    results_frame([*uppers, *rows, record("bare", scenario="toy/class-il@begin-1")], compared=JOINT)
    (warning,) = caplog.messages
    assert warning.startswith("toy/task-il@begin-1: several joint records (2) match each of 3 rows, the first toy/task-il@begin-1 × bare ")


def test_joint_on_other_data_is_no_partner() -> None:
    """Settings of the dataset are part of what two records must share."""

    def on(features: str, made: Record) -> Record:
        cell = {**made.cell, "configuration": {**made.cell["configuration"], "dataset.features": features}}
        return dataclasses.replace(made, key=digest([made.key, features]), cell=cell)

    upper, other = (
        record("joint", matrix=[[0.5, 0.5], [1.0, 0.5], [1.0, 1.0]]),
        record("joint", matrix=[[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]),
    )
    own = record("bare", matrix=[[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    frame = results_frame([on("atoms", own), on("atoms", upper), on("degrees", other)], compared=JOINT).set_index("method")
    assert frame.loc["bare", "intransigence"] == 0.5
    assert math.isnan(
        results_frame([on("atoms", own), on("degrees", other)], compared=JOINT).set_index("method").loc["bare", "intransigence"]
    )


def test_joint_of_other_code_or_unfinished_is_no_partner() -> None:
    """Results of unlike versions never mix silently."""
    other_code = {"plugins": [], "core": {"version": "9", "source": "1" * 64}, "resumed_from_task": 0}
    for joint in (record("joint", provenance=other_code), record("joint", status="failed", reason="boom")):
        frame = results_frame([record("bare"), joint], compared=JOINT).set_index("method")
        assert math.isnan(frame.loc["bare", "intransigence"])


def test_records_that_the_code_of_now_would_make_again_are_of_one_code() -> None:
    """Both must be, and on one class of machine; a partner whose core has the same digest comes first."""
    more = {"plugins": [], "core": {"version": "0.1.0", "source": "c" * 64}, "resumed_from_task": 0}
    own, upper = record("bare", provenance=more), record("joint", matrix=[[0.5, 0.5], [1.0, 0.5], [1.0, 1.0]])

    def paired(joint: Record, *others: Record, current: Sequence[Record]) -> float:
        frame = results_frame([own, joint, *others], compared=JOINT, current={one.key for one in current})
        return float(frame.set_index("method").loc["bare", "intransigence"])

    assert paired(upper, current=[own, upper]) == JOINT["intransigence"].function(own.performance(), upper.performance())
    assert math.isnan(paired(upper, current=[own]))
    assert math.isnan(paired(upper, current=[upper]))
    elsewhere = dataclasses.replace(upper, environment=upper.environment | {"torch": "1.0"})
    assert math.isnan(paired(elsewhere, current=[own, elsewhere]))
    same = record("joint", lr=5e-3, matrix=own.matrix, provenance=more)
    assert paired(upper, same, current=[own, upper, same]) == 0


def test_a_joint_metric_that_fails_or_writes_costs_its_own_column_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The bug: it ended the table."""

    def sorts(matrix: Any, joint: Any) -> float:
        joint[-1].sort()
        return 0.0

    records = [record("bare"), record("joint")]
    frame = results_frame(records, compared={"sorts": Compared("joint", sorts), **JOINT}).set_index("method")
    assert frame["sorts"].isna().all()
    assert not math.isnan(frame.loc["bare", "intransigence"])
    assert "metric sorts failed: ValueError: sort array is read-only" in caplog.text


def test_functions_come_from_the_metric_plugins() -> None:
    """Only metrics that declare that they need joint."""
    assert compared_metrics(fake_cells.FakeCatalogue()) == JOINT


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_files_read_back(form: str, tmp_path: Path) -> None:
    """Numbers to 15 digits or exactly, NaN as what the format has for it, different settings in one column as text."""
    mixed = record("bare")
    mixed = dataclasses.replace(mixed, cell={**mixed.cell, "configuration": {"a.list": [1, 2], "a.flag": True, "a.any": "x"}})
    plain = record("ewc", seed=1)
    plain = dataclasses.replace(plain, cell={**plain.cell, "configuration": {"a.list": None, "a.flag": None, "a.any": 0.5}})
    frame = results_frame([mixed, plain], compared=JOINT)
    path = tmp_path / f"out.{form}"
    write_frame(frame, form, path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    read = {"csv": pd.read_csv, "json": lambda p: pd.DataFrame(json.loads(p.read_text())), "parquet": pd.read_parquet}[form](path)
    assert list(read.columns) == list(frame.columns)
    text = [float(f"{value:.15g}") for value in frame["average_performance"]]
    np.testing.assert_array_equal(read["average_performance"], frame["average_performance"] if form == "parquet" else text)
    assert read["intransigence"].isna().all()
    assert list(read["key"]) == list(frame["key"])
    if form == "json":
        assert json.loads(path.read_text())[0]["configuration.a.list"] == [1, 2]
    else:
        assert list(read["configuration.a.any"].astype(str)) == ["x", "0.5"]
        assert read["configuration.a.list"][0] == "[1,2]"


@pytest.mark.parametrize("form", ["csv", "json"])
def test_text_has_no_noise_of_binary_fractions(form: str) -> None:
    shown = render_frame(pd.DataFrame({"difference": [0.390 - 0.395, 0.1 + 0.2, math.inf - math.inf]}), form).decode()
    assert "-0.005" in shown
    assert "0.3" in shown
    assert "000000" not in shown


def test_a_whole_table_of_unfinished_cells_is_written_too() -> None:
    """Columns without any number are numbers still."""
    frame = results_frame([record(status="oom", reason="full", timings_s={"total": None})])
    assert frame["total_s"].dtype == np.float64
    assert "oom" in render_frame(frame, "csv").decode()
    assert pd.read_parquet(io.BytesIO(render_frame(frame, "parquet"))).loc[0, "reason"] == "full"


def test_an_unknown_format_suggests_the_nearest() -> None:
    """Like every unknown name."""
    with pytest.raises(UnknownNameError, match="parquet"):
        render_frame(results_frame([]), "parket")


def changed(made: Record, *, scenario: dict[str, Any] | None = None, **parts: Any) -> Record:
    """The record with other entries in its cell, its scenario, its environment or its provenance, and a key of its own."""
    news: dict[str, Any] = {name: {**getattr(made, name), **value} for name, value in parts.items() if isinstance(value, dict)}
    plain = {name: value for name, value in parts.items() if not isinstance(value, dict)}
    news["scenario"] = {**made.scenario, **(scenario or {})}
    return dataclasses.replace(
        made, key=digest([made.key, sorted(map(repr, news.items())), sorted(map(repr, plain.items()))]), **news, **plain
    )


def test_every_column_of_a_row() -> None:
    """Each fact stands in the column that is named after it."""
    made = record(
        "ewc",
        seed=3,
        matrix=[[0.5, 0.5], [0.75, 0.5], [0.25, 1.0]],
        validation_matrix=[[None] * 2, [0.5, None], [0.25, 0.75]],
        timings_s={"training": 1.5, "total": 2},
        memory={"peak_bytes": 12, "items": 3, "bytes": None},
        parameters={"model": 8, "method": 9, "method_bytes": 10},
        metrics={"average_performance": 0.625},
    )
    made = changed(
        made,
        scenario={"dataset": "toys", "setting": "task-free"},
        cell={"preset": "small", "threads": 7, "device": "cuda", "dtype": "float64", "seeds": {"order": 3, "split": 4, "init": 5}},
        environment={"torch": "9.8"},
        provenance={"core": {"version": "7.6", "source": "0" * 64}, "resumed_from_task": 1},
    )
    row = {name: None if value is pd.NA or value != value else value for name, value in results_frame([made]).iloc[0].items()}
    assert {name: value for name, value in row.items() if not str(name).startswith("configuration.")} == {
        "scenario": "toy/task-il@begin-1",
        "preset": "small",
        "dataset": "toys",
        "setting": "task-free",
        "protocol": "begin-1",
        "method": "ewc",
        "backbone": "gcn",
        "order_seed": 3,
        "split_seed": 4,
        "init_seed": 5,
        "role": "final",
        "status": "done",
        "reason": None,
        "n_tasks": 2,
        "validation_average_performance": 0.5,
        "average_performance": 0.625,
        "total_s": 2,
        "training_s": 1.5,
        "memory_bytes": None,
        "memory_items": 3,
        "peak_bytes": 12,
        "method_parameters": 9,
        "method_bytes": 10,
        "model_parameters": 8,
        "threads": 7,
        "device": "cuda",
        "dtype": "float64",
        "core_version": "7.6",
        "torch": "9.8",
        "resumed_from_task": 1,
        "design": made.design,
        "key": made.key,
    }
    assert {
        str(name).removeprefix("configuration."): value for name, value in row.items() if str(name).startswith("configuration.")
    } == dict(made.cell["configuration"])


def test_older_records_are_named_by_their_scenario() -> None:
    """Where the switches do not say data set and setting, the parts of the name ``dataset/setting@protocol`` do."""
    made = record()
    bare = {name: value for name, value in made.scenario.items() if name not in {"dataset", "setting"}}
    older = dataclasses.replace(made, scenario=bare, cell={**made.cell, "scenario": "photo/class-il@cglb-1"}, environment={})
    row = results_frame([older]).iloc[0]
    assert (row["dataset"], row["setting"], row["protocol"]) == ("photo", "class-il", "cglb-1")
    assert row["torch"] is None


def test_the_number_of_tasks_without_a_matrix_is_that_of_the_tasks() -> None:
    """A cell that failed has no matrix; one that failed before its tasks were known has none."""
    failed = record(status="failed", reason="boom")
    unknown = record(status="failed", reason="boom", seed=1, tasks=[])
    assert results_frame([failed, unknown])["n_tasks"].tolist() == [2, 0]


def test_columns_of_whole_numbers_are_integers_and_others_floats() -> None:
    """Counts and bytes stay exact beyond 2^53, and an absent one is no zero."""
    many = 2**53 + 1
    one = record(memory={"items": many, "bytes": 1, "edges": None, "graphs": 1})
    other = record(seed=1, memory={"items": None, "bytes": 0.5, "edges": None})
    frame = results_frame([one, other])
    types = {name: str(frame[f"memory_{name}"].dtype) for name in ("items", "bytes", "edges", "graphs")}
    assert types == {"items": "Int64", "bytes": "float64", "edges": "float64", "graphs": "Int64"}
    assert frame["memory_items"][0] == many
    assert frame["memory_items"].isna().tolist() == [False, True]
    assert frame["memory_graphs"].isna().tolist() == [False, True]
    assert frame["memory_bytes"].tolist() == [1.0, 0.5]
    assert json.loads(render_frame(frame, "json"))[0]["memory_items"] == many
    assert json.loads(render_frame(frame, "json"))[1]["memory_items"] is None


def test_rows_are_sorted_by_name_and_seed() -> None:
    """Scenario, preset, method, backbone, then the seeds of order, split and initialisation as numbers."""
    base = record()
    first = {"scenario": "a", "preset": "a", "method": "a", "backbone": "a", "seeds": {"order": 2, "split": 2, "init": 2}}
    rising = [
        first,
        {**first, "seeds": {"order": 2, "split": 2, "init": 10}},
        {**first, "seeds": {"order": 2, "split": 10, "init": 0}},
        {**first, "seeds": {"order": 10, "split": 0, "init": 0}},
        {**first, "backbone": "b", "seeds": {"order": 0, "split": 0, "init": 0}},
        {**first, "method": "b", "backbone": "A"},
        {**first, "preset": "b", "method": "A"},
        {**first, "scenario": "b", "preset": "A"},
    ]
    made = [changed(base, cell=cell) for cell in rising]
    frame = results_frame(made[::-1])
    assert frame["key"].tolist() == [one.key for one in made]


UPPER = [[0.5, 0.5], [1.0, 0.5], [1.0, 1.0]]
OWN = [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]


def gap(own: Record, *others: Record) -> float:
    """Intransigence of a record among others."""
    frame = results_frame([own, *others], compared=JOINT)
    return float(frame["intransigence"][frame["key"] == own.key].iloc[0])


@pytest.mark.parametrize(
    ("difference", "pairs"),
    [
        ({}, True),
        ({"scenario": {"training": {"epochs": 3}}}, True),
        ({"scenario": {"backbone_hyperparameters": {"width": 3}}}, True),
        ({"cell": {"threads": 5}}, True),
        ({"scenario": {"n_tasks": 3}}, False),
        ({"cell": {"scenario": "other/task-il@begin-1"}}, False),
        ({"cell": {"backbone": "gat"}}, False),
        ({"cell": {"seeds": {"order": 1, "split": 0, "init": 0}}}, False),
        ({"cell": {"seeds": {"order": 0, "split": 1, "init": 0}}}, False),
        ({"cell": {"seeds": {"order": 0, "split": 0, "init": 1}}}, False),
        ({"cell": {"device": "cuda"}}, False),
        ({"cell": {"dtype": "float64"}}, False),
        ({"environment": {"torch": "1.0"}}, False),
        ({"environment": {"python": "3.99"}}, True),
        ({"provenance": {"core": {"version": "0.1.0", "source": "1" * 64}}}, False),
        ({"provenance": {"resumed_from_task": 1}}, True),
        ({"cell": {"method": "ewc"}}, False),
    ],
)
def test_what_joint_must_share_with_a_record(difference: dict[str, Any], pairs: bool) -> None:
    """Everything that makes the two comparable, and nothing else."""
    joint = changed(record("joint", matrix=UPPER), **difference)
    assert gap(record("bare", matrix=OWN), joint) == (0.5 if pairs else pytest.approx(math.nan, nan_ok=True))


def test_settings_that_are_not_of_the_data_may_differ() -> None:
    """Hyper-parameters of the method and of the backbone are searched for each method."""
    joint = record("joint", matrix=UPPER)
    other = changed(joint, cell={"configuration": {**joint.cell["configuration"], "backbone.width": 99, "method.lambda": 9.0}})
    assert gap(record("bare", matrix=OWN), other) == 0.5


def test_among_several_joint_records_the_one_with_as_many_threads_comes_first() -> None:
    """Fewer unlike conditions, a better pair; the same matrix twice is no doubt at all."""
    own, upper = record("bare", matrix=OWN), record("joint", matrix=UPPER)
    worse = changed(upper, cell={"threads": 5}, matrix=OWN)
    assert gap(own, upper, worse) == gap(own, worse, upper) == 0.5
    assert gap(changed(own, cell={"threads": 5}), upper, worse) == 0.0
    assert gap(own, upper, changed(upper, scenario={"training": {"epochs": 3}}, matrix=OWN)) == 0.5
    assert gap(own, *(changed(upper, scenario={"training": {"epochs": n}}) for n in (3, 4))) == 0.5
    assert math.isnan(gap(own, *(changed(upper, scenario={"training": {"epochs": n}}, matrix=m) for n, m in ((3, UPPER), (4, OWN)))))


def test_among_joint_records_of_a_sweep_the_one_at_equal_settings_is_the_partner() -> None:
    """Of the backbone's widths; a width that no joint record has leaves a choice, and none is made."""

    def of_width(method: str, width: int, matrix: Any) -> Record:
        made = record(method, matrix=matrix)
        return changed(made, cell={"configuration": {**made.cell["configuration"], "backbone.width": width}})

    joints = [of_width("joint", 8, UPPER), of_width("joint", 16, OWN)]
    assert gap(of_width("bare", 8, OWN), *joints) == 0.5
    assert gap(of_width("bare", 16, OWN), *joints) == 0.0
    assert math.isnan(gap(of_width("bare", 32, OWN), *joints))


def test_joint_of_another_number_of_tasks_is_no_partner() -> None:
    """Rows are compared one by one."""
    shorter = record(
        "joint", matrix=[[0.5], [1.0]], validation_matrix=[], tasks=[{"classes": [0], "n_train": 1, "n_validation": 0, "n_test": 1}]
    )
    assert math.isnan(gap(record("bare"), shorter))


def test_an_unfinished_or_task_free_record_has_no_partner() -> None:
    """Of neither is there a performance after each task."""
    upper = record("joint", matrix=UPPER)
    assert math.isnan(gap(record("bare", status="failed", reason="boom"), upper))
    stream = {"evaluations": [0, 5, 9], "delivered": [[0, 0], [3, 1], [4, 4]]}
    free = [changed(one, provenance={"stream": stream}) for one in (record("bare", matrix=OWN), upper)]
    assert math.isnan(gap(free[0], free[1], upper))
    assert math.isnan(gap(record("bare", matrix=OWN), free[1]))


def table(**columns: list[Any]) -> pd.DataFrame:
    """Columns of objects, as those of settings are."""
    return pd.DataFrame({name: pd.Series(values, dtype="object") for name, values in columns.items()})


MIXED = table(
    text=["=1+1", None, "x"],
    flag=[True, None, False],
    whole=[1, None, 2],
    number=[1, 0.5, math.nan],
    any=[1, "x", None],
    truth=[True, 1, 2.5],
    list=[[1, 2], {"b": 1, "a": [None]}, "-1"],
)


def test_cells_of_a_csv_file() -> None:
    """Text that a spreadsheet would run has an apostrophe in front; numbers stay numbers, a missing value is empty."""
    frame = MIXED.rename(columns={"text": "@text"})
    lines = [
        "'@text,flag,whole,number,any,truth,list",
        '\'=1+1,True,1.0,1.0,1,true,"[1,2]"',
        ',,,0.5,x,1,"{""a"":[null],""b"":1}"',
        "x,False,2.0,,,2.5,'-1",
    ]
    assert render_frame(frame, "csv").decode().splitlines() == lines
    assert frame.loc[0, "@text"] == "=1+1"  # the table itself is as it was


def test_values_of_a_json_file() -> None:
    """As they are, an array of objects; a missing value is null."""
    rows = json.loads(render_frame(MIXED, "json"))
    assert [row["list"] for row in rows] == [[1, 2], {"b": 1, "a": [None]}, "-1"]
    assert [row["number"] for row in rows] == [1, 0.5, None]
    assert [row["flag"] for row in rows] == [True, None, False]
    assert [row["text"] for row in rows] == ["=1+1", None, "x"]


def test_a_setting_that_only_some_records_have_keeps_its_type() -> None:
    """A whole number beside an absent one is no float."""
    some = changed(record("ewc"), cell={"configuration": {"method.k": 3, "method.flag": True}})
    none = changed(record("bare"), cell={"configuration": {"method.k": None}})
    rows = json.loads(render_frame(results_frame([some, none]), "json"))
    assert [(type(row["configuration.method.k"]), type(row["configuration.method.flag"])) for row in rows] == [
        (type(None), type(None)),
        (int, bool),
    ]


def test_types_of_a_parquet_file() -> None:
    """A column of one type keeps it; one of several is text, each value as JSON but for text itself."""
    read = pd.read_parquet(io.BytesIO(render_frame(MIXED, "parquet")))
    assert [None if value is None or value != value else value for value in read["number"]] == [1, 0.5, None]
    assert read["number"].dtype == read["whole"].dtype == np.float64
    assert read["flag"].tolist() == [True, None, False]
    assert read["text"].fillna("").tolist() == ["=1+1", "", "x"]
    assert read["any"].fillna("").tolist() == ["1", "x", ""]
    assert read["truth"].tolist() == ["true", "1", "2.5"]
    assert pq.read_schema(io.BytesIO(render_frame(MIXED, "parquet"))).names == list(MIXED.columns)  # no column of row numbers
    assert read["list"].tolist() == ["[1,2]", '{"a":[null],"b":1}', "-1"]
