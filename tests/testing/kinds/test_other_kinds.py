"""Checks of datasets, scenarios and metrics: the good pass, and each fault is named by the check that it breaks."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite import Catalogue, DatasetSpec, MetricSpec, ScenarioSpec
from cglsuite.host import PluginRecord
from cglsuite.testing import CheckFailed, check_dataset, check_metric, check_scenario, examine, tiny_catalogue, tiny_scenarios
from cglsuite.testing.apart import Examiner
from cglsuite.testing.kinds import metrics as metric_checks
from cglsuite.testing.streams import with_specs

RECORD = PluginRecord(distribution="faulty", version="1.0", entry_point="faulty", module="cglsuite.testing", status="ok")


def dataset(name: str, **more: Any) -> DatasetSpec:
    given: dict[str, Any] = {"summary": "goes wrong", "licence": "CC0-1.0", "embedded": True, "factory": f"faulty_entries:{name}"} | more
    return DatasetSpec(name=name.replace("_", "-"), **given)


def metric(name: str, **more: Any) -> MetricSpec:
    given: dict[str, Any] = {"summary": "goes wrong", "citation": "Nobody, 2026", "formula": "M", "direction": "up", "range": (0, 1)} | more
    return MetricSpec(name=name.replace("_", "-"), factory=f"faulty_entries:{name}", settings=("task-il",), **given)


def scenario(name: str, **more: Any) -> ScenarioSpec:
    plain = next(s for s in tiny_scenarios() if s.name == "testing-nodes/task-il@testing-1")
    return replace(plain, name=f"testing-nodes/{name}@faulty-1", **more)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    specs = [
        dataset("plain"),
        dataset("no_licence", licence="not stated"),
        dataset("not_data"),
        dataset("restless"),
        dataset("seeds_globally"),
        dataset("leaves_files"),
        dataset("wrong_level", levels=("GC",)),
        dataset("real_classes", levels=("GC",)),
        dataset("hashed"),
        metric("mean_of_last"),
        *(metric(name) for name in ("hashed_value", "exits", "exits_in_order", "killed")),
        metric("out_of_range"),
        metric("writes_to_matrix"),
        metric("unsure"),
        replace(metric("unsure", undefined="it has no opinion"), name="known-to-be-unsure"),
        metric("backwards", direction="down"),
        metric("unwritten_formula", formula=" "),
        scenario("fine"),
        scenario("restless", builder="faulty_entries:restless_stream"),
        scenario("labelled-queries", builder="faulty_entries:labelled_queries"),
        scenario("overlapping-parts", builder="faulty_entries:overlapping_parts"),
        scenario("leads-to-the-oracle", builder="faulty_entries:leads_to_the_oracle"),
        scenario("no-such-backbone", training=replace(scenario("x").training, backbone="no-such")),
        replace(scenario("x"), name="photo/class-il@faulty-1"),
    ]
    return with_specs(tiny_catalogue(), specs, RECORD)


@pytest.mark.parametrize(
    ("kind", "name", "check", "message"),
    [
        ("dataset", "no-licence", "licence", "states neither the licence"),
        ("dataset", "not-data", "form", "the factory returns a dict"),
        ("dataset", "restless", "repeatable", "two loads differ"),
        ("dataset", "seeds-globally", "repeatable", "changes global random states"),
        ("dataset", "leaves-files", "writes nothing", "loading writes to cache.bin"),
        ("dataset", "wrong-level", "form", "the spec declares GC, but a NodeData is for NC"),
        ("dataset", "real-classes", "form", "if and only if the level is NR or GR"),
        ("dataset", "hashed", "processes", "its content differs between processes"),
        ("metric", "hashed-value", "processes", "its value in task-il differs between processes"),
        ("metric", "out-of-range", "value", "its range (0, 1)"),
        ("metric", "writes-to-matrix", "pure", "modifies its input matrix"),
        ("metric", "unsure", "value", "NaN for a complete matrix of 2 tasks"),
        ("metric", "backwards", "direction", "direction='down'"),
        ("metric", "unwritten-formula", "formula", "no formula"),
        ("scenario", "testing-nodes/restless@faulty-1", "repeatable", "two builds of the stream differ"),
        ("scenario", "testing-nodes/labelled-queries@faulty-1", "queries", "a query contains labels"),
        ("scenario", "testing-nodes/overlapping-parts@faulty-1", "parts", "parts of task 1 overlap"),
        ("scenario", "testing-nodes/leads-to-the-oracle@faulty-1", "no way to answers", "Oracle"),
        ("scenario", "testing-nodes/no-such-backbone@faulty-1", "names", "no-such"),
        ("scenario", "photo/class-il@faulty-1", "names", "the name starts with photo, but the data set is testing-nodes"),
    ],
)
def test_named_by_the_check_that_it_breaks(
    catalogue: Catalogue, kind: str, name: str, check: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = Path.cwd()
    found = [f for f in examine(kind, name, catalogue, only=(check,)).failed if f.check == check]
    assert found
    assert message in found[0].message
    assert found[0].fix
    assert Path.cwd() == here


def test_the_end_of_a_process_is_a_finding(catalogue: Catalogue) -> None:
    """The next entry is checked as if nothing had happened."""
    ends = {"exits": "exit status 0", "exits-in-order": "exit status 0", "killed": "signal SIGKILL"}
    with Examiner() as examiner:
        for name, how in ends.items():
            report = examiner.examine(catalogue.get("metric", name), catalogue, only=("value",))
            assert [(f.check, f.message) for f in report.failed] == [("process", f"metric {name!r} ends its process ({how})")]
        report = examiner.examine(catalogue.get("metric", "mean-of-last"), catalogue, only=("value", "formula"))
    assert report.passed
    assert [f.check for f in report] == ["formula", "value"]
    assert "processes" in report.checks


def test_what_is_in_order_passes(catalogue: Catalogue) -> None:
    check_dataset("plain", catalogue)
    check_metric("mean-of-last", catalogue)
    check_metric("known-to-be-unsure", catalogue)
    check_scenario("testing-nodes/fine@faulty-1", catalogue)


@pytest.mark.parametrize("given", [True, False])
def test_absent_files_are_skipped_in_one_line(monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue, tmp_path: Path, given: bool) -> None:
    """Whether or not there is a folder of data: one finding with a one-line reason, for a dataset and for a scenario over it."""
    monkeypatch.delenv("CGLSUITE_DATA", raising=False)
    if given:
        monkeypatch.setenv("CGLSUITE_DATA", str(tmp_path))
    absent = dataset("needs_a_file", embedded=False, citation="Nobody, 2026")
    over = replace(scenario("over", dataset="needs-a-file", citation="Nobody, 2026"), name="needs-a-file/over@faulty-1")
    whole = with_specs(catalogue, [absent, over], RECORD)
    for kind, name, check in (("dataset", "needs-a-file", "loads"), ("scenario", over.name, "builds")):
        report = examine(kind, name, whole)
        assert report.passed, report.failed
        (skipped,) = [f for f in report if f.status == "skipped"]
        assert skipped.check == check
        assert skipped.message.startswith("the raw files of needs-a-file are not on this machine (")
        assert "CGLSUITE_DATA" in skipped.message
        assert "\n" not in skipped.message


def test_a_failure_names_who_provides_it(catalogue: Catalogue) -> None:
    with pytest.raises(CheckFailed, match=r"dataset 'not-data' of faulty 1.0 \(.*faulty_entries.py:\d+\) does not conform"):
        check_dataset("not-data", catalogue)


def test_importing_the_kit_imports_no_torch() -> None:
    import subprocess
    import sys

    code = "import cglsuite.testing, cglsuite.testing.pytest_plugin, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_a_metric_that_compares_with_another_method_is_given_its_matrix(setting: str) -> None:
    """One that learns everything and forgets nothing, of the same shape and setting; others get none."""
    given: list[Any] = []
    catalogue: Any = SimpleNamespace(resolve=lambda entry: lambda matrix, joint: given.append(joint) or 0.5)
    for needs in ("joint", ""):
        entry: Any = SimpleNamespace(spec=SimpleNamespace(reference=needs, needs_tasks=False))
        assert metric_checks._value(catalogue, entry, setting, metric_checks._matrix(setting, 3, reached=0.5, lost=0.2)) == 0.5
    joint, nothing = given
    assert nothing is None
    best = metric_checks._JOINT
    before = None if setting == "class-il" else metric_checks._CHANCE
    expected = [[best if k > j else before for j in range(3)] for k in range(4)]
    assert [[None if math.isnan(v) else v for v in row] for row in joint] == expected
