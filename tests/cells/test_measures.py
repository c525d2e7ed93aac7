"""Measures of performance as plugins: what they are given, what reaches the record and the key, and what is refused."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plugin_sites import SOURCES, Site, site
from sklearn.metrics import f1_score

from cglsuite import Catalogue, MeasureSpec, ScenarioSpec
from cglsuite.base.errors import PluginError, SpecError, UnknownNameError
from cglsuite.cells import resolve_cell, run_cell
from cglsuite.cells.keys import cell_key, design_key
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import build_stream
from cglsuite.cells.spec import CellSpec
from cglsuite.cells.storage.store import Store
from cglsuite.host import Entry, PluginRecord
from cglsuite.reports.results.measures import is_fraction, performance_name
from cglsuite.streams import Answered
from cglsuite.streams.oracle import Oracle
from cglsuite.testing import check_measure, examine, tiny_catalogue
from cglsuite.testing.streams import FINE_TUNING, with_specs

__all__ = ["site"]

NODES, LINKS = "testing-nodes/class-il@testing-1", "testing-interactions/domain-il@testing-1"
RECORD = PluginRecord(distribution="odd-measures", version="1.0", entry_point="m", module="cglsuite.testing", status="ok")


@pytest.fixture
def packages(site: Site, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """The tiny streams beside two packages of third parties."""
    monkeypatch.syspath_prepend(str(site.folder))
    found = site.add("macro-f1").add("mrr").catalogue()
    assert [record.status for record in found.records] == ["ok", "ok"]
    tiny = tiny_catalogue(Catalogue([], []))
    backbones = tiny_catalogue()
    entries: list[Entry] = [e for kind in ("dataset", "scenario", "method", "schedule") for e in tiny.entries(kind)]
    entries += [*backbones.entries("backbone"), *found.entries("measure")]
    return Catalogue([*found.records], entries)


def cell(catalogue: Catalogue, scenario: str, measure: str | None, **overrides: Any) -> CellSpec:
    given = {"training.epochs": 2, **overrides} | ({"scenario.performance": measure} if measure else {})
    return resolve_cell(catalogue, scenario, FINE_TUNING, overrides=given)


def ran(catalogue: Catalogue, scenario: str, measure: str | None, folder: Path) -> Record:
    record = run_cell(cell(catalogue, scenario, measure), catalogue, Store(folder))
    assert record.done, record.reason
    return record


def test_the_packages_are_small_and_conform(packages: Catalogue) -> None:
    """At most 30 lines each, and every check of the kind holds."""
    for name in ("macro-f1", "mrr"):
        assert len((SOURCES / f"{name.replace('-', '_')}.py").read_text().splitlines()) <= 30
        check_measure(name, packages)


def test_macro_f1_of_a_run(packages: Catalogue, tmp_path: Path) -> None:
    """The same answers as under accuracy, scored by scikit-learn's F1; the record says by what, and reports need no plugin for it."""
    plain, scored = ran(packages, NODES, None, tmp_path / "a"), ran(packages, NODES, "macro-f1", tmp_path / "b")
    assert [f["answers"] for f in scored.fingerprints()] == [f["answers"] for f in plain.fingerprints()]
    assert scored.matrix != plain.matrix
    assert scored.per_class == plain.per_class
    assert scored.scenario["measure"] == {"label": "macro-F1", "direction": "up", "range": [0.0, 1.0], "unit": ""}
    assert "measure" not in plain.scenario
    assert performance_name(scored.scenario) == "macro-F1"
    assert is_fraction(scored)
    (maker,) = [part for part in scored.makers if part.get("role") == "measure"]
    assert (maker["name"], maker["distribution"]) == ("macro-f1", "macro-f1")


def test_macro_f1_is_that_of_scikit_learn(packages: Catalogue) -> None:
    """Task by task, of every group of queries."""
    made = cell(packages, NODES, "macro-f1")
    stream = build_stream(made, packages)
    groups = stream.make_queries(len(stream))
    generator = torch.Generator().manual_seed(3)
    answers = {g.token: torch.randint(0, 6, (len(g.query),), generator=generator) for g in groups}
    tested, _ = stream.oracle.grade(answers, {g.token: g.query.allowed for g in groups})
    for k, score in tested.items():
        y, given = [], []
        for g in groups:
            asked = stream.asked(g.token)
            rows = asked.test & (asked.tasks == k)
            y, given = [*y, *asked.y[rows].tolist()], [*given, *answers[g.token][rows].tolist()]
        assert score.performance == pytest.approx(f1_score(y, given, labels=sorted(set(y)), average="macro", zero_division=0.0))


@pytest.mark.parametrize("kind", ["measure", "method", "inside a measure"])
def test_a_library_that_draws_while_it_loads_is_no_fault_of_the_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """As rich does, which scikit-learn loads where it is installed: imports leave Python's random state as it was."""
    name = f"draws_while_it_loads_{kind.replace(' ', '_')}"
    (tmp_path / f"{name}_library.py").write_text("import random\nrandom.random()\n")
    base = {"method": "cglsuite import Method"}.get(kind, "cglsuite.streams.measures.classes import micro")
    inside = f"def scored(answered):\n    import {name}_library\n    return micro(answered)\n"
    (tmp_path / f"{name}.py").write_text(f"from {base}\n{inside if kind == 'inside a measure' else f'import {name}_library'}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    tiny = tiny_catalogue()
    spec: Any = tiny.method(FINE_TUNING) if kind == "method" else tiny.measure("micro")
    attribute = {"method": "Method", "measure": "micro"}.get(kind, "scored")
    catalogue = with_specs(tiny, [dataclasses.replace(spec, name="drawn", factory=f"{name}:{attribute}")], RECORD)
    switches: dict[str, Any] = {"training.epochs": 1} | ({} if kind == "method" else {"scenario.performance": "drawn"})
    method = "drawn" if kind == "method" else FINE_TUNING
    finders = list(sys.meta_path)
    record = run_cell(resolve_cell(catalogue, NODES, method, overrides=switches), catalogue, Store(tmp_path / "store"))
    assert f"{name}_library" in sys.modules
    assert record.done, record.reason
    assert sys.meta_path == finders


def test_mrr_by_hand() -> None:
    """Three links, ranked 1, 3 (a tie counts against it) and 2 of two pairs without a link."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("mrr_by_hand", SOURCES / "mrr.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    y = torch.tensor([[True], [True], [True], [False], [False]])
    scores = torch.tensor([[0.9], [0.2], [0.5], [0.2], [0.7]])
    value = module.mrr(Answered(y=y, answers=scores, outputs=torch.ones(1, dtype=torch.bool)))
    assert value == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)


def test_mrr_of_a_run(packages: Catalogue, tmp_path: Path) -> None:
    """Links of every task are ranked against the pairs of all."""
    record = ran(packages, LINKS, "mrr", tmp_path)
    values = np.array([v for row in record.performance()[1:] for v in row])
    assert ((values > 0) & (values <= 1)).all()
    assert performance_name(record.scenario) == "MRR"


def test_the_key_holds_the_measure_and_its_source(packages: Catalogue, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another measure, another design; another source of the same one, another key."""
    micro, scored = cell(packages, NODES, None), cell(packages, NODES, "macro-f1")
    assert design_key(micro) != design_key(scored)
    before = cell_key(scored, packages)
    module = site.folder / "macro_f1.py"
    module.write_text(module.read_text().replace("zero_division=0.0", "zero_division=1.0"))
    assert cell_key(scored, packages) != before
    assert cell_key(micro, packages) == cell_key(cell(packages, NODES, None), packages)


def test_what_does_not_fit_is_refused(packages: Catalogue) -> None:
    """Labels, levels and names, each with who provides the measure and what it is for."""
    with pytest.raises(SpecError, match=r"a measure of macro-f1 1.0: it scores labels single; testing-interactions/.* has multi"):
        cell(packages, LINKS, "macro-f1")
    with pytest.raises(SpecError, match=r"it scores level LP; testing-label-sets/class-il@testing-1 has NC"):
        cell(packages, "testing-label-sets/class-il@testing-1", "mrr")
    with pytest.raises(UnknownNameError, match=r"unknown measure 'macro-f2'. Did you mean 'macro-f1'"):
        cell(packages, NODES, "macro-f2")
    unresolved = dataclasses.replace(packages.scenario(NODES), performance="macro-f1")
    with pytest.raises(SpecError, match="was not resolved"):
        build_stream(dataclasses.replace(cell(packages, NODES, None), scenario=unresolved), packages).oracle._measure  # noqa: B018


# --- what a measure may return --------------------------------------------------------------------------------------------------


def odd(name: str, **more: Any) -> MeasureSpec:
    given: dict[str, Any] = {"summary": "s", "citation": "Nobody, 2026", "labels": ("single",)} | more
    return MeasureSpec(name=name.replace("_", "-"), factory=f"odd_measures:{name}", **given)


def graded(spec: MeasureSpec) -> Any:
    scenario = dataclasses.replace(tiny_catalogue(Catalogue([], [])).scenario(NODES), measure=spec)
    oracle = Oracle.of(scenario, 3)
    oracle.deposit("a", torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 0, 1]), torch.tensor([True, True, False, True]))
    return oracle.grade({"a": torch.tensor([0, 2, 1, 2])}, {"a": torch.tensor([True, True, True])})


def test_lower_values_make_lower_performance() -> None:
    """Performance is minus the value, so that higher is better everywhere; hits and items per class stay counts."""
    tested, validated = graded(odd("errors", direction="down", range=(0.0, math.inf), unit="items"))
    assert [tested[k].performance for k in (0, 1)] == [-1.0, 0.0]
    assert validated[0].performance == 0.0
    assert tested[0].hits.tolist() == [1, 0, 0]
    assert tested[0].counts.tolist() == [1, 1, 0]
    assert odd("errors", direction="down", range=(0.0, math.inf)).performance_range == (-math.inf, 0.0)


def test_a_value_per_output_is_averaged_over_those_that_count() -> None:
    tested, _ = graded(odd("per_output"))
    assert tested[0].performance == 0.5


@pytest.mark.parametrize(
    ("name", "expected"), [("words", "returned 'good': expected a float"), ("beyond", "returned a performance of 1.5")]
)
def test_a_value_that_is_none_names_the_measure(name: str, expected: str) -> None:
    with pytest.raises(PluginError, match=f"the measure odd_measures:{name} {expected}"):
        graded(odd(name))


@pytest.mark.parametrize(
    ("name", "check", "message"),
    [
        ("words", "value", "expected a float"),
        ("beyond", "value", "returned a performance of 1.5"),
        ("counts_places", "order", "a different order of items gives"),
        ("writes", "pure", "modifies its arguments"),
        ("upside_down", "direction", "for guesses, with direction='up'"),
    ],
)
def test_a_fault_is_named_by_the_check_that_it_breaks(name: str, check: str, message: str) -> None:
    whole = with_specs(tiny_catalogue(Catalogue([], [])), [odd(name)], RECORD)
    (found,) = [f for f in examine("measure", name.replace("_", "-"), whole, only=(check,)).failed if f.check == check]
    assert message in found.message
    assert found.fix


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["micro", "macro", "average-precision", "roc-auc", "hits", "negative-mae", "negative-rmse"])
def test_the_measures_of_the_core_conform(name: str) -> None:
    """In every catalogue, with or without plugins."""
    empty = Catalogue([], [])
    assert empty.names("measure") == []
    check_measure(name, empty)


def test_a_spec_checks_itself() -> None:
    with pytest.raises(UnknownNameError, match="kind of labels of measure 'errors' 'singl'"):
        odd("errors", labels=("singl",))
    with pytest.raises(SpecError, match="expected two ascending bounds"):
        odd("errors", range=(1.0, 0.0))
    assert isinstance(tiny_catalogue(Catalogue([], [])).scenario(NODES), ScenarioSpec)
