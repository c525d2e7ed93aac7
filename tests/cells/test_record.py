"""Records: exact round trips, clear refusals, and the golden file of schema 1."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.cells.record import NewerSchemaError, Record
from cglsuite.errors import StoreError

GOLDEN = Path(__file__).parent / "data" / "record-schema-1.json"


def golden() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(GOLDEN.read_text())
    return data


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """JSON of records of any shape that the schema allows, with and without numbers."""
    n = draw(st.integers(1, 4))
    number = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**40), 2**40))
    text = st.text(max_size=20)
    value = st.recursive(st.one_of(number, text, st.booleans()), lambda inner: st.lists(inner, max_size=3), max_leaves=4)
    matrix = st.lists(st.lists(number, min_size=n, max_size=n), min_size=n + 1, max_size=n + 1)
    status = draw(st.sampled_from(["done", "failed", "diverged", "timeout", "oom", "skipped"]))
    counts = st.integers(0, 10**6)
    data = golden() | {
        "status": status,
        "reason": None if status == "done" else draw(st.text(min_size=1, max_size=30)),
        "matrix": draw(matrix) if status == "done" else draw(st.one_of(matrix, st.just([]))),
        "validation_matrix": draw(st.one_of(matrix, st.just([]))),
        "per_class": draw(st.lists(st.lists(number, max_size=5), max_size=1)),
        "tasks": [{"classes": [j], "n_train": draw(counts), "n_validation": 0, "n_test": 1} for j in range(n)],
        "metrics": draw(st.dictionaries(text, number, max_size=3)),
        "timings_s": draw(st.dictionaries(text, number, max_size=3)),
        "memory": draw(st.dictionaries(text, number, max_size=3)),
    }
    data["cell"]["settings"] = draw(st.dictionaries(text, value, max_size=4))
    return data


@settings(max_examples=80, deadline=None)
@given(records())
def test_round_trip_is_exact(data: dict[str, Any]) -> None:
    """Text and objects both come back as they were, byte for byte and field for field."""
    record = Record.from_json(data)
    assert record.to_json() == data
    assert Record.from_json(record.to_text()) == record
    assert Record.from_json(record.to_text().encode()).to_text() == record.to_text()


def test_golden_file_of_schema_1_is_read_and_written_as_it_is() -> None:
    """What schema 1 wrote stays readable; a change of the schema needs a new number and a new golden file."""
    record = Record.from_json(GOLDEN.read_bytes())
    assert record.done
    assert record.cell["method"] == "ewc"
    assert record.to_text() == GOLDEN.read_text()
    np.testing.assert_array_equal(record.performance(), [[0.5, 0.25], [1.0, np.nan], [0.75, 0.875]])
    assert record.validation_average_performance() == (0.5 + 0.75) / 2


def test_arrays_and_nan_become_plain_lists_and_null() -> None:
    """Whoever makes a record may give NumPy; what is stored has no NaN in it."""
    data = golden()
    matrix = np.array([[0.5, math.nan], [1.0, math.inf], [0.25, 0.5]])
    del data["schema"]
    record = Record(**(data | {"matrix": matrix, "metrics": {"x": np.float64("nan"), "y": np.float32(0.5)}}))
    assert record.matrix == [[0.5, None], [1.0, None], [0.25, 0.5]]
    assert record.metrics == {"x": None, "y": 0.5}
    assert "NaN" not in record.to_text()


def test_keys_are_sorted() -> None:
    """The file's text does not depend on the order in which parts were given."""
    data = golden()
    shuffled = dict(reversed(data.items())) | {"cell": dict(reversed(data["cell"].items()))}
    assert Record.from_json(shuffled).to_text() == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("key",), "../../etc/passwd", "key"),
        (("status",), "finished", "status"),
        (("status",), "failed", "reason: none, although the status is failed"),
        (("matrix",), [], "matrix: empty, although the status is done"),
        (("matrix",), [[1.0, 1.0]], "expected 3 rows"),
        (("matrix", 1), [1.0], "expected 3 rows"),
        (("matrix", 0, 0), "1.0", "matrix.0.0"),
        (("matrix", 0, 0), True, "matrix.0.0"),
        (("validation_matrix",), [[None] * 3] * 4, "validation_matrix"),
        (("cell", "seeds", "order"), "0", "cell.seeds.order"),
        (("cell", "threads"), 0, "cell.threads"),
        (("tasks", 0, "n_train"), -1, "tasks.0.n_train"),
        (("tasks",), [], None),
        (("provenance", "core"), {}, "provenance.core.version"),
        (("metrics",), [0.5], "metrics"),
        (("environment",), None, "environment"),
    ],
)
def test_what_is_wrong_is_named(path: tuple[Any, ...], value: Any, says: str | None) -> None:
    """Every refusal names the part."""
    data = copy.deepcopy(golden())
    place = data
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    if says is None:
        Record.from_json(data)
        return
    with pytest.raises(StoreError, match=says.replace(".", r"\.")):
        Record.from_json(data)


def test_absent_and_foreign_parts_are_named() -> None:
    """A part too few and a part too many."""
    data = golden()
    del data["matrix"]
    with pytest.raises(StoreError, match="colour: not a part of a record; matrix: absent"):
        Record.from_json(data | {"colour": "red"})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"schema": NaN}', "\x80\x04K\x01.", GOLDEN.read_text()[:-40], '{"schema": true}', "[" * 5000]
)
def test_what_is_no_record_is_refused(text: str) -> None:
    """Truncated files, other JSON, pickles: refused, never run."""
    with pytest.raises(StoreError):
        Record.from_json(text)


def test_a_later_schema_is_told_from_a_corrupt_file() -> None:
    """A newer suite's record is not for this one to read, nor to throw away."""
    with pytest.raises(NewerSchemaError, match="schema 2"):
        Record.from_json(golden() | {"schema": 2, "future": 1})


def test_things_that_are_no_data_are_refused() -> None:
    """A record holds no objects."""
    data = golden()
    del data["schema"]
    with pytest.raises(StoreError, match="not PosixPath"):
        Record(**(data | {"environment": {"where": Path("/")}}))
