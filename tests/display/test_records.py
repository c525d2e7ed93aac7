"""What records and stores show of themselves."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from html_shape import EVIL, EVIL_SHOWN, Shape

from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds


@pytest.fixture
def record() -> Record:
    """A finished record of a fake cell."""
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides={}, seeds=Seeds(order=1, split=2, init=3))
    planned = plan_cell(request, fake_cells.FakeCatalogue())
    return fake_cells.make_record(planned.cell)


def changed(record: Record, **changes: Any) -> Record:
    return dataclasses.replace(record, **changes)


def test_a_record_shows_what_was_run_and_whose_code_ran_it(record: Record) -> None:
    made = {"distribution": "plug", "version": "1.2", "source": "c" * 64}
    provenance = {
        **record.provenance,
        "plugins": [{**made, "role": "method", "name": "bare"}],
        "metrics": [{**made, "names": ["ap", "af"]}],
    }
    shown = Shape(changed(record, provenance=provenance, metrics={"ap": 0.25, "af": None})._repr_html_()).text
    title = f"{record.label}: done"
    for message in (
        title,
        record.key,
        "gcn",
        "cpu, 1 threads",
        "method\nbare\nplug\n1.2\ncccccccccccc",
        "metric\nap, af\nplug",
        "ap\n0.25\n",
    ):
        assert message in shown
    assert f"after task\n{''.join(f'task {j + 1}' + chr(10) for j in range(len(record.matrix[0])))}none\n" in shown
    assert "af\n" not in shown.replace("ap, af\n", "")
    assert repr(record) == f"<Record {record.key[:12]} of {title}>"


def test_performance_comes_first_and_the_key_is_folded(record: Record) -> None:
    percent = changed(record, matrix=[[0.5, None], [0.9, None], [0.25, 0.75]])
    source = percent._repr_html_()
    before, _, folded = source.partition("<details>")
    assert "average accuracy" in before
    assert "50%" in before
    assert record.key not in before
    assert record.key in folded


def test_texts_in_a_record_are_only_ever_text(record: Record) -> None:
    plugins = [{"role": EVIL, "name": EVIL, "distribution": EVIL, "version": EVIL, "source": EVIL}]
    bad = changed(record, status="failed", reason=EVIL, provenance={**record.provenance, "plugins": plugins}, matrix=[], metrics={})
    shape = Shape(bad._repr_html_())
    assert "img" not in shape.tags
    assert shape.text.count(EVIL_SHOWN) == 5
    assert "performance" not in shape.text


def test_a_long_stream_is_no_flood(record: Record) -> None:
    n = 400
    tasks = [{"classes": [k], "n_train": 1, "n_validation": 1, "n_test": 1} for k in range(n)]
    long = changed(record, matrix=[[0.5] * n] * (n + 1), validation_matrix=[], tasks=tasks)
    assert len(long._repr_html_()) < 5000
    assert len(repr(long)) < 200


def test_a_store_counts_what_lies_there_and_reads_nothing(tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "a <b> folder")
    assert "records\n0\nsearches\n0\ncheckpoints\n0\n" in Shape(store._repr_html_()).text
    store.put(record)
    store.put_search("d" * 64, {"scores": []})
    (store.path / "cells" / ("e" * 64 + ".json")).write_text("{")
    assert len(list(store.records())) == 1
    monkeypatch.setattr(Store, "_read", lambda *a: pytest.fail("read"))
    shown = Shape(store._repr_html_()).text
    assert f"Store {store.path}" in shown
    assert "records\n1\nsearches\n1\ncheckpoints\n0\nunreadable, set aside\n1\n" in shown
