"""A cell whose inputs have changed trains again under a second key; the old record stays, and is found again."""

from __future__ import annotations

import logging
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cglsuite as cgl
from cglsuite.base.errors import UsageError
from cglsuite.cells import Store
from cglsuite.cells.code.inputs import Reading, present, second_key
from cglsuite.cells.plan import CellRequest, PlannedCell, with_inputs
from cglsuite.cells.storage.layout import INPUTS, Inputs, copy_inputs, noted_keys, read_inputs, write_inputs

CODE = """
    import json, os
    from pathlib import Path
    import cglsuite as cgl

    SCALE = json.loads(Path(__file__).with_name("factor.json").read_text())

    class Scaled(cgl.Method):
        def loss(self, batch):
            mode = -1.0 if os.environ.get("SIGN") == "minus" else 1.0
            return super().loss(batch) * SCALE * mode
"""
A, B = "a" * 64, "b" * 64


def arrays(nodes: int = 80, classes: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(nodes) % classes
    return {"x": (np.eye(classes)[y] + rng.normal(0, 0.5, (nodes, classes))).astype("float32"), "y": y, "edge_index": np.array([[0], [1]])}


@pytest.mark.plugins
def test_changed_files_and_variables_train_again_beside_the_old_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "scaled_by_a_file.py").write_text(textwrap.dedent(CODE))
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(factor: float, sign: str) -> Any:
        (tmp_path / "factor.json").write_text(str(factor))
        monkeypatch.setenv("SIGN", sign)
        caplog.clear()
        module = __import__("scaled_by_a_file")
        study = cgl.run(module.Scaled, arrays(), overrides={"training.epochs": 3}, name="photo", progress=False, store=tmp_path / "store")
        assert study.outcome.counts == {"done": 1}
        second = (
            "but its inputs (SIGN, scaled_by_a_file:factor.json) have changed since they were first read, so it has a second key"
            in study.why()
        )
        assert second == ("first_key" in study.records[0].provenance["inputs"])
        return study.records[0]

    first = run(1.0, "plus")
    inputs = first.provenance["inputs"]
    assert list(inputs["files"]) == ["scaled_by_a_file:factor.json"]
    assert inputs["variables"] == ["SIGN"]
    assert "first_key" not in inputs
    edited = run(-50.0, "plus")
    assert "factor.json has changed since a cell read it: trained again; old results are kept" in caplog.text
    assert edited.provenance["inputs"]["first_key"] == first.key
    assert edited.matrix != first.matrix
    other = run(1.0, "minus")
    assert "environment variable SIGN has changed" in caplog.text
    assert len({first.key, edited.key, other.key}) == 3
    assert other.matrix != first.matrix
    assert run(1.0, "plus") == first
    assert "changed" not in caplog.text


def test_a_second_key_is_of_names_without_folders() -> None:
    assert second_key(A, {"/here/c.json": B}) == second_key(A, {"/there/c.json": B})
    different = [{"/here/c.json": B}, {"/here/d.json": B}, {"/here/c.json": A}, {"/here/c.json": None}, {"$c.json": B}, {}]
    assert len({second_key(A, asked) for asked in different}) == len(different)


def test_what_was_read_is_noted_by_key_and_damage_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read_inputs(tmp_path, A) == []
    write_inputs(tmp_path, A, A, {}, {"/c.json": A})
    write_inputs(tmp_path, A, B, {"/c.json": B}, {"/c.json": B})
    assert {one.key: (one.asked, one.read) for one in read_inputs(tmp_path, A)} == {
        A: ({}, {"/c.json": A}),
        B: ({"/c.json": B}, {"/c.json": B}),
    }
    assert noted_keys(tmp_path, [A, B]) == {A}
    copy_inputs(tmp_path, tmp_path / "other")
    assert read_inputs(tmp_path / "other", A) == read_inputs(tmp_path, A)
    path = tmp_path / INPUTS / "aa" / A / f"{B}.json"
    path.write_text("{}")
    with caplog.at_level(logging.WARNING):
        assert [one.key for one in read_inputs(tmp_path, A)] == [A]
    assert str(path) in caplog.text


def test_a_file_that_is_absent_here_changes_nothing_and_a_variable_does() -> None:
    noted = Inputs(key=A, asked={}, read={"/c.json": A, "/new.json": None, "$MODE": B}, written_ns=0)
    assert noted.changes({"/c.json": None, "/new.json": None, "$MODE": B}) == []
    assert noted.changes({"/c.json": B, "/new.json": A, "$MODE": None}) == ["/c.json", "/new.json", "$MODE"]


def test_a_result_of_a_files_absence_comes_before_those_whose_file_is_absent(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.json")
    write_inputs(tmp_path, A, A, {}, {gone: None})
    write_inputs(tmp_path, A, B, {gone: B}, {gone: B})
    cell = PlannedCell(request=CellRequest(scenario="s", method="m"), state="ready", key=A)
    store = SimpleNamespace(path=tmp_path, read=[], cached=lambda key: key)
    assert with_inputs([cell], store, None, to_run=True) == [cell]  # type: ignore[arg-type]


def test_results_of_other_inputs_than_now_are_read_and_it_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As where a file was edited while a campaign trained: some of its cells have read it before, and some after."""
    file = tmp_path / "c.json"
    file.write_text("1")
    write_inputs(tmp_path, A, A, {}, {str(file): present(str(file))})
    cells = [PlannedCell(request=CellRequest(scenario="s", method="m"), state="ready", key=A)]
    store = SimpleNamespace(path=tmp_path, read=[], cached=lambda key: key)
    for content, told in (("1", ""), ("22", f"{file} has changed since a cell read it: the results predate the change")):
        file.write_text(content)
        assert with_inputs(cells, store, None, to_run=False) == cells  # type: ignore[arg-type]
        assert told in caplog.text
        assert bool(told) == bool(caplog.text)


def test_a_result_made_before_a_file_was_declared_does_not_depend_on_it_yet() -> None:
    noted = Inputs(key=A, asked={}, read={"/c.json": A}, written_ns=0)
    assert noted.changes({"/c.json": A, "/new.bin": B}, ["/new.bin"]) == ["/new.bin"]


def test_a_state_made_with_other_inputs_is_not_continued(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text("1")
    reading = Reading({}, A)
    reading._before = {str(file): present(str(file))}
    payload = reading.packed({"state": 1})
    assert Reading({}, A).unpacked(dict(payload)) == {"state": 1}
    assert Reading({}, None).unpacked(dict(payload)) == {"state": 1}
    file.write_text("22")
    assert Reading({}, A).unpacked(dict(payload)) is None


def test_a_cell_planned_with_other_inputs_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text("1")
    Reading({str(file): present(str(file))}, A).check()
    with pytest.raises(UsageError, match="changed after the cells were planned: run the same command again"):
        Reading({str(file): A}, A).check()
    assert Reading({str(file): A}, None).written(tmp_path, B) == {}
    assert not (tmp_path / INPUTS).exists()
    assert Reading({str(file): A}, A).written(tmp_path, B) == {"first_key": A}
    assert [one.key for one in read_inputs(Store(tmp_path).path, A)] == [B]
