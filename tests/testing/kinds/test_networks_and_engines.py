"""Checks of backbones, schedules, notebooks and executors: the good pass, and each fault is named by the check that it breaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from cglsuite import BackboneSpec, Catalogue, ExecutorSpec, NotebookSpec, load_catalogue
from cglsuite.cells import keys
from cglsuite.host import PluginRecord
from cglsuite.specs import Hyperparameter, ScheduleSpec
from cglsuite.testing import check_backbone, check_schedule, examine, tiny_catalogue
from cglsuite.testing.kinds.executors import examine_executor
from cglsuite.testing.kinds.notebooks import examine_notebook
from cglsuite.testing.streams import with_specs

RECORD = PluginRecord(distribution="faulty", version="1.0", entry_point="faulty", module="cglsuite.testing", status="ok")


def dashed(name: str) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).strip("-").replace("_", "-")


def backbone(name: str, **more: Any) -> BackboneSpec:
    given: dict[str, Any] = {"summary": "goes wrong", "citation": "Nobody, 2026"} | more
    return BackboneSpec(name=dashed(name), factory=f"faulty_networks:{name}", **given)


def schedule(name: str) -> ScheduleSpec:
    return ScheduleSpec(name=dashed(name), summary="goes wrong", citation="Nobody, 2026", factory=f"faulty_networks:{name}")


def executor(name: str, **more: Any) -> ExecutorSpec:
    return ExecutorSpec(name=dashed(name), summary="goes wrong", factory=f"faulty_networks:{name}", **more)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    networks = ["Fine", "Narrow", "AllItems", "Headless", "Unused", "AlwaysDrops", "SeedsItself", "SharesLayer", "LooseTensor"]
    schedules = ["one_row", "never_second", "negative", "restless", "global_draws", "as_lists"]
    specs = [
        *(backbone(name) for name in (*networks, "OnlyDense", "StiffHead", "not_a_backbone")),
        *(schedule(name) for name in schedules),
        executor("Runless"),
        executor("Forgetful"),
        executor("Twice"),
        ExecutorSpec(
            name="takes-nothing",
            summary="takes no option",
            factory="faulty_networks:Forgetful",
            options=(Hyperparameter(name="hours", default=1.0, doc="the time"),),
        ),
    ]
    return with_specs(tiny_catalogue(), specs, RECORD)


@pytest.mark.parametrize(
    ("name", "check", "message"),
    [
        ("narrow", "shape", "for 24 items and 7 outputs; expected [24, 7]"),
        ("all-items", "shape", "returns [144, 6] for 24 items"),
        ("headless", "builds", "does not set self.head"),
        ("not-a-backbone", "builds", "returns a Linear; expected a cglsuite.backbones.Backbone"),
        ("unused", "gradients", "the parameters spare.weight, spare.bias of"),
        ("always-drops", "deterministic", "two calls of"),
        ("seeds-itself", "initialisation", "models initialised from two different seeds are equal"),
        ("shares-layer", "initialisation", "two models initialised from the same seed differ"),
        ("loose-tensor", "state", "scale of LooseTensor"),
        ("only-dense", "sparse features", "fails on sparse features: TypeError"),
    ],
)
def test_a_backbone_is_named_by_the_check_that_it_breaks(catalogue: Catalogue, name: str, check: str, message: str) -> None:
    report = examine("backbone", name, catalogue, only=(check,))
    found = [f for f in report.failed if f.check == check]
    assert found, [f for f in report if f.status != "ok"]
    assert message in found[0].message
    assert found[0].fix
    assert "faulty_networks.py:" in report.source


def test_a_head_that_cannot_grow_is_told(catalogue: Catalogue) -> None:
    (skipped,) = [f for f in examine("backbone", "stiff-head", catalogue, only=("growing head",)) if f.check == "growing head"]
    assert skipped.status == "skipped"
    assert "a Sequential head cannot initialise outputs one by one" in skipped.message


def test_a_good_backbone_conforms(catalogue: Catalogue) -> None:
    check_backbone("fine", catalogue)


@pytest.mark.nightly
def test_good_backbones_of_every_level_conform(catalogue: Catalogue) -> None:
    """Of the core: nodes, links, whole graphs."""
    for name in ("gcn", "graph-gcn", "link-gcn"):
        report = examine("backbone", name, catalogue)
        assert report.passed, report.failed
        levels = catalogue.backbone(name).levels
        assert len([f for f in report if f.check == "gradients" and f.status == "ok"]) == len(levels)


@pytest.mark.parametrize(
    ("name", "check", "message"),
    [
        ("one-row", "weights", "returns an array [1, 2]; expected [12, 2]"),
        ("as-lists", "weights", "returns a list; expected a NumPy array [12, 2]"),
        ("never-second", "weights", "latent task 2 of 2 has weight 0 at all 12 steps"),
        ("negative", "weights", "expected finite values ≥ 0, not all 0"),
        ("restless", "pure", "two calls with the same arguments give different weights"),
        ("global-draws", "pure", "draws from global random states"),
    ],
)
def test_a_schedule_is_named_by_the_check_that_it_breaks(catalogue: Catalogue, name: str, check: str, message: str) -> None:
    found = [f for f in examine("schedule", name, catalogue, only=("weights", "pure")).failed if f.check == check]
    assert found
    assert message in found[0].message
    assert found[0].fix


@pytest.mark.nightly
def test_a_good_schedule_conforms_and_its_stream_is_resumed(catalogue: Catalogue) -> None:
    check_schedule("testing-overlap", catalogue)


# Notebooks


def notebook(folder: Path, cells: list[tuple[str, tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch, text: bool = True) -> Catalogue:
    """A package in ``folder`` with one notebook of these cells (source, tags)."""
    import jupytext

    package = folder / "noted"
    package.mkdir()
    (package / "__init__.py").touch()
    made = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}})
    made.cells = [nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)} if tags else {}) for source, tags in cells]
    nbformat.write(made, package / "page.ipynb")
    if text:
        jupytext.write(made, package / "page.py", fmt="py:percent")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(__import__("sys").modules, "noted", raising=False)
    return with_specs(load_catalogue(), [NotebookSpec(name="noted", summary="a page", path="noted:page.ipynb")], RECORD)


GOOD = [('title = "hello"', ("parameters",)), ("print(title)", ())]


@pytest.mark.parametrize(
    ("cells", "text", "check", "message"),
    [
        ([("title = 1", ()), ("title", ())], True, "parameters", "has 0 code cells tagged 'parameters'"),
        ([*GOOD, ("title = 2", ("parameters",))], True, "parameters", "has 2 code cells tagged 'parameters'"),
        ([("a = 1\nb = a + 1", ("parameters",)), ("a + b", ())], True, "parameters", "the default of b is computed"),
        ([("a = 1\nb = 2", ("parameters",)), ("a", ())], True, "parameters", "no cell uses the parameter b"),
        (GOOD, False, "text form", "page.py is missing"),
    ],
)
def test_a_notebook_is_named_by_the_check_that_it_breaks(
    cells: list[Any], text: bool, check: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = notebook(tmp_path, cells, monkeypatch, text)
    (found,) = examine_notebook("noted", whole, only=("text form", "parameters")).failed
    assert (found.check, message in found.message, bool(found.fix)) == (check, True, True), found


@pytest.mark.nightly
def test_a_notebook_that_raises_is_told_with_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = examine_notebook("noted", notebook(tmp_path, [*GOOD, ("1 / 0", ())], monkeypatch), only=("runs",))
    (found,) = report.failed
    assert "cell 3: ZeroDivisionError: division by zero" in found.message


@pytest.mark.nightly
@pytest.mark.plugins
def test_a_notebook_on_a_tiny_campaign_conforms() -> None:
    report = examine_notebook("campaign_report", load_catalogue())
    assert report.passed, report.failed


# Executors


def test_an_executor_without_run_is_told(catalogue: Catalogue) -> None:
    (found,) = examine_executor("runless", catalogue, only=("interface",)).failed
    assert "returns a Runless without run; expected an executor" in found.message
    (found,) = examine_executor("takes-nothing", catalogue, only=("interface",)).failed
    assert "does not accept the declared options (hours)" in found.message


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "check", "message"),
    [("forgetful", "runs", "2 of 3 cells have no result after run()"), ("twice", "once", "3 of 3 cells were run more than once")],
)
def test_an_executor_is_named_by_the_check_that_it_breaks(catalogue: Catalogue, name: str, check: str, message: str) -> None:
    (found,) = examine_executor(name, catalogue, only=("runs", "once")).failed
    assert (found.check, found.message[: len(message)]) == (check, message), found.message
    assert found.fix


@pytest.mark.nightly
def test_the_local_executor_conforms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are real, some die and hang, and it is interrupted: this takes about a minute.

    It is judged by the keys of its own process: whatever the calling one has imported or patched, records are looked up as the run has
    planned them.
    """
    monkeypatch.setattr(keys, "_version", lambda distribution: "0")
    report = examine_executor("local")
    report.raise_failures()
    assert {f.check for f in report if f.status == "ok"} >= {"runs", "once", "same bits", "keeps", "failures", "interrupt"}
