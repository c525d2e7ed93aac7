"""Records: exact round trips, clear refusals, digests and bounds, and the golden files of both schemas."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.base.errors import StoreError
from cglsuite.cells.records.record import Curves, NewerSchemaError, NoCurvesError, Record, _may_be_long, shared

DATA = Path(__file__).parents[1] / "data"
GOLDEN, FORMER = DATA / "record-schema-4.json", DATA / "record-schema-3.json"


def golden() -> dict[str, Any]:
    """The golden record without its digest."""
    return {name: value for name, value in json.loads(GOLDEN.read_text()).items() if name != "digest"}


def read(data: dict[str, Any]) -> Record:
    """The record of that content, whose digest is right."""
    content = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return Record.from_json(data | {"digest": hashlib.sha256(content.encode()).hexdigest()})


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """JSON of records of any shape that the schema allows, with and without numbers."""
    n = draw(st.integers(1, 4))
    number = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**40), 2**40))
    amount = st.one_of(st.none(), st.floats(0, 1e300), st.integers(0, 2**40))
    performance = st.one_of(st.none(), st.floats(0, 1), st.integers(0, 1))
    text = st.text(max_size=20)
    value = st.recursive(st.one_of(number, text, st.booleans()), lambda inner: st.lists(inner, max_size=3), max_leaves=4)
    matrix = st.lists(st.lists(performance, min_size=n, max_size=n), min_size=n + 1, max_size=n + 1)
    status = draw(st.sampled_from(["done", "failed", "diverged", "timeout", "oom", "skipped", "unclean"]))
    counts = st.integers(0, 10**6)
    data = golden() | {
        "status": status,
        "reason": None if status == "done" else draw(st.text(min_size=1, max_size=30)),
        "matrix": draw(matrix) if status == "done" else draw(st.one_of(matrix, st.just([]))),
        "validation_matrix": draw(st.one_of(matrix, st.just([]))),
        "per_class": draw(st.lists(st.lists(performance, max_size=5), max_size=1)),
        "tasks": [{"classes": [j], "n_train": draw(counts), "n_validation": 0, "n_test": 1} for j in range(n)],
        "metrics": draw(st.dictionaries(text, number, max_size=3)),
        "timings_s": draw(st.dictionaries(text, amount, max_size=3)),
        "memory": draw(st.dictionaries(text, amount, max_size=3)),
    }
    data["cell"]["configuration"] = draw(st.dictionaries(text, value, max_size=4))
    return data


@settings(max_examples=80, deadline=None)
@given(records())
def test_round_trip_is_exact(data: dict[str, Any]) -> None:
    """Text and objects both come back as they were, byte for byte and field for field."""
    record = read(data)
    assert record.to_json() == data | {"digest": record.digest}
    assert Record.from_json(record.to_json()) == record
    assert Record.from_json(record.to_text()) == record
    assert Record.from_json(record.to_text().encode()).to_text() == record.to_text()


def test_the_name_of_a_file_that_is_not_text_is_read_as_it_was_written() -> None:
    """Python gives its bytes as lone surrogates, which not every parser of JSON takes."""
    data = golden()
    data["cell"]["configuration"]["method.log"] = "caf\udce9.log"
    record = read(data)
    assert Record.from_json(record.to_text()) == Record.from_json(record.to_text().encode()) == record


def test_the_golden_file_is_read_and_written_as_it_is() -> None:
    """A change of the schema needs a new number and a new golden file. The digest is that of the file without it."""
    record = Record.from_json(GOLDEN.read_bytes())
    assert record.done
    assert record.cell["method"] == "ewc"
    assert record.to_text() == GOLDEN.read_text()
    assert record.digest == json.loads(GOLDEN.read_text())["digest"] == "6107a6c4c7211325044b4d9e323aa0cb8603a1b5826d455d99f246e9a4a9244e"
    np.testing.assert_array_equal(record.performance(), [[0.5, 0.25], [1.0, np.nan], [0.75, 0.875]])
    assert record.validation_average_performance() == (0.5 + 0.75) / 2


CURVES = [
    {"task": 1, "loss": [0.7, 0.6], "monitor": [0.8, 0.7], "best_epoch": 2},
    {"task": 2, "loss": [0.5, None], "monitor": [], "best_epoch": 1},
]


def test_the_golden_file_of_schema_3_is_read() -> None:
    """It held its curves. Read, it is what schema 4 holds, and the curves stand beside it."""
    record = Record.from_json(FORMER.read_bytes())
    assert json.loads(FORMER.read_text())["digest"] == "cfc6e5a25cb8fdd4de05197423695fd71eb72eb028941f52194d0002fb26898d"
    assert record == Record.from_json(GOLDEN.read_bytes())
    assert record.to_text() == GOLDEN.read_text()
    assert record.training_curves() == CURVES
    assert record.fingerprints() == []
    assert [(t["task"], t["epochs"], t["best_epoch"], t["first_loss"], t["last_loss"]) for t in record.training["tasks"]] == [
        (1, 2, 2, 0.7, 0.6),
        (2, 2, 1, 0.5, None),
    ]


def former(prints: list[dict[str, str]] | None = None, curves: Any = CURVES) -> dict[str, Any]:
    """A record of schema 3 with these curves and fingerprints."""
    data = {name: value for name, value in json.loads(FORMER.read_text()).items() if name != "digest"}
    held = {} if prints is None else {"fingerprints": prints}
    return data | {"curves": curves, "provenance": data["provenance"] | held}


def test_fingerprints_of_schema_3_are_taken_out_too() -> None:
    prints = [{"state": "0" * 64, "answers": "1" * 64}]
    record = read(former(prints))
    assert (record.fingerprints(), record.training_curves()) == (prints, CURVES)
    assert "fingerprints" not in record.provenance
    assert Record.from_json(record.to_json()) == record
    assert read(former(prints, [])).training == {"digest": Curves(fingerprints=prints).digest, "tasks": []}
    assert read(former(None, [])).training == {}
    with pytest.raises(StoreError, match=r"curves\[0\]\.best_epoch"):
        read(former(prints, [{"task": 1, "loss": [], "monitor": []}]))


def test_the_digest_is_that_of_all_exact_values() -> None:
    """One bit of one loss, and one digit of one fingerprint."""
    prints = [{"state": "0" * 64, "answers": "1" * 64}]
    whole = Curves.of(CURVES, prints)
    content = json.dumps({"curves": CURVES, "fingerprints": prints}, sort_keys=True, separators=(",", ":"))
    assert whole.digest == hashlib.sha256(content.encode()).hexdigest()
    other = copy.deepcopy(CURVES)
    other[0]["loss"][1] = math.nextafter(0.6, 1)
    monitored = copy.deepcopy(CURVES)
    monitored[0]["monitor"][0] = math.nextafter(0.8, 1)
    other_print = [{**prints[0], "state": "2" * 64}]
    unlike = [Curves.of(*parts) for parts in ((other, prints), (monitored, prints), (CURVES, other_print), (CURVES, []))]
    assert len({whole.digest, *(one.digest for one in unlike)}) == 5
    assert Curves.of([{"loss": [math.nan, np.float64(0.5)]}], []).trainings == [{"loss": [None, 0.5]}]


def test_what_a_record_says_of_its_training_follows_from_its_curves() -> None:
    """Who makes a record gives these; nothing else can be said beside them."""
    fields = {name: value for name, value in golden().items() if name != "schema"}
    record = Record(**fields | {"training": {"digest": "0" * 64, "tasks": []}, "beside": Curves(trainings=CURVES)})
    assert record == Record.from_json(GOLDEN.read_bytes())
    assert record.training_curves() == CURVES
    assert dataclasses.replace(record, beside=None, training={}).training_curves() == []
    assert record.with_parts(per_class=[]).beside is None


def test_curves_that_are_not_there_are_named() -> None:
    record = Record.from_json(GOLDEN.read_bytes())
    with pytest.raises(NoCurvesError, match="record abababababab: its curves are not stored with it"):
        record.training_curves()
    assert Record.from_json(GOLDEN.read_bytes()).to_text() == GOLDEN.read_text()


def test_another_layout_of_the_file_is_the_same_content() -> None:
    """The digest is that of the content: a file that was reformatted is still good."""
    data = json.loads(GOLDEN.read_text())
    assert Record.from_json(json.dumps(dict(reversed(data.items())), indent=3)) == Record.from_json(GOLDEN.read_bytes())


@pytest.mark.parametrize(
    ("part", "value"), [("matrix", [[0.5, 0.25], [1.0, None], [0.75, 0.876]]), ("key", "12" * 32), ("reason", "because"), ("digest", "")]
)
def test_content_that_is_not_that_of_its_digest_is_refused(part: str, value: Any) -> None:
    """Whatever part it is, and however plausible its new value."""
    data = json.loads(GOLDEN.read_text()) | {part: value}
    with pytest.raises(StoreError, match="digest: .* damaged or edited after it was written"):
        Record.from_json(json.dumps(data))


def test_a_digest_is_not_missing() -> None:
    with pytest.raises(StoreError, match="digest: missing"):
        Record.from_json(golden())


@pytest.mark.parametrize("schema", [1, 2])
def test_schemas_before_the_first_release_are_refused(schema: int) -> None:
    with pytest.raises(StoreError, match=f"schema: {schema}; expected 3 or 4"):
        read(golden() | {"schema": schema})


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_file_is_never_read_with_another_content(data: st.DataObject) -> None:
    """Bytes changed anywhere, or cut off: the record is refused, or it is exactly the one that was written."""
    text = bytearray(GOLDEN.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.one_of(st.just(len(text)), st.integers(0, len(text))))
    try:
        record = Record.from_json(bytes(text[:length]))
    except StoreError:
        return
    assert record.to_text() == GOLDEN.read_text()


def test_every_flipped_bit_is_found() -> None:
    """Each bit of the file on its own; what is still read is what was written (a space for the last line's end, say)."""
    whole = GOLDEN.read_bytes()
    same = 0
    for place in range(len(whole)):
        for bit in range(8):
            text = bytearray(whole)
            text[place] ^= 1 << bit
            try:
                record = Record.from_json(bytes(text))
            except StoreError:
                continue
            same += 1
            assert record.to_text() == GOLDEN.read_text()
    assert same < 20


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
    assert read(shuffled).to_text() == read(data).to_text()


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("key",), "../../etc/passwd", "key"),
        (("status",), "finished", "status"),
        (("status",), "failed", "reason: missing, but the status is failed"),
        (("matrix",), [], "matrix: empty, but the status is done"),
        (("matrix",), [[1.0, 1.0]], "expected 3 rows"),
        (("matrix", 1), [1.0], "expected 3 rows"),
        (("matrix", 0, 0), "1.0", "matrix[0][0]: expected a number"),
        (("matrix", 0, 0), True, "matrix[0][0]: expected a number"),
        (("matrix", 2, 0), 7.5, "matrix: an entry of 7.5; expected 0 to 1 for performance"),
        (("matrix", 1, 0), -0.001, "matrix: an entry of -0.001"),
        (("validation_matrix", 1, 0), 2, "validation_matrix: an entry of 2"),
        (("per_class", 0, 1), 1.01, "per_class: an entry of 1.01"),
        (("matrix", 0, 0), 1 + 1e-12, None),
        (("cell", "seeds", "init"), 2.0, "cell.seeds.init"),
        (("cell", "seeds", "init"), True, "cell.seeds.init"),
        (("timings_s", "total"), -1.0, "timings_s.total"),
        (("timings_s", "total"), True, "timings_s.total"),
        (("memory", "items"), -1, "memory.items"),
        (("parameters", "model"), -1, "parameters.model"),
        (("metrics", "average_performance"), False, "metrics.average_performance"),
        (("provenance", "trained_s"), -0.5, "provenance.trained_s"),
        (("provenance", "resumed_from_task"), True, "provenance.resumed_from_task"),
        (("validation_matrix",), [[None] * 3] * 4, "validation_matrix"),
        (("cell", "seeds", "order"), "0", "cell.seeds.order"),
        (("cell", "threads"), 0, "cell.threads"),
        (("tasks", 0, "n_train"), -1, "tasks[0].n_train: expected at least 0 (given: -1)"),
        (("tasks",), [], None),
        (("provenance", "core"), {}, "provenance.core.version"),
        (("metrics",), [0.5], "metrics"),
        (("environment",), None, "environment"),
        (("environment", "arithmetic"), "0123456789abcdef", None),
        (("environment", "arithmetic"), "a CPU", "environment.arithmetic"),
        (("training", "digest"), None, "training.digest: missing, but there are trainings"),
        (("training", "digest"), "x", "training.digest"),
        (("training", "tasks", 0, "epochs"), -1, "training.tasks[0].epochs"),
        (("training", "tasks", 0, "first_loss"), "0.7", "training.tasks[0].first_loss"),
        (("training",), {}, None),
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
        read(data)
        return
    with pytest.raises(StoreError, match=re.escape(says)):
        read(data)


@pytest.mark.parametrize(
    ("rule", "entry", "says"),
    [
        ("micro", 1.5, "expected 0 to 1 for micro"),
        ("macro", -0.5, "expected 0 to 1 for macro"),
        ("average-precision", 1.5, "expected 0 to 1"),
        ("roc-auc", 1.5, "expected 0 to 1"),
        ("hits", 1.5, "expected 0 to 1"),
        ("negative-mae", 0.5, "expected at most 0 for negative-mae"),
        ("negative-mae", -1234.5, None),
    ],
)
def test_bounds_follow_from_what_performance_is(rule: str, entry: float, says: str | None) -> None:
    """Errors of real targets have no lower bound, everything else is a share."""
    data = golden()
    data["scenario"]["performance"] = rule
    data |= {"matrix": [[None, None], [entry, None], [entry, None]], "validation_matrix": [], "per_class": []}
    if says is None:
        assert read(data).matrix[1][0] == entry
        return
    with pytest.raises(StoreError, match=f"matrix: an entry of {entry:g}; {says}"):
        read(data)


@pytest.mark.parametrize("place", ["configuration", "seeds"])
def test_numbers_beyond_all_floats_are_refused(place: str) -> None:
    """JSON allows 1e999, which Python reads as infinite."""
    text = GOLDEN.read_text().replace(f'"{place}":{{', f'"{place}":{{"a":1e999,')
    with pytest.raises(StoreError):
        Record.from_json(text)


def _nested(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


UNHOLDABLE: list[tuple[str, Any, str]] = [
    ("memory.peak_bytes", 2**200, r"memory\.peak_bytes: expected a whole number of at most 64 bits"),
    ("timings_s.total", 10**400, "timings_s.total: expected a whole number of at most 64 bits"),
    ("metrics.average_performance", -(2**63) - 1, "metrics.average_performance: expected a whole number"),
    ("cell.configuration.training.epochs", 2**64, "epochs: expected a whole number of at most 64 bits"),
    ("cell.configuration.training.epochs", _nested(300), "nested"),
    ("cell.seeds.order", 2**63, "expected a whole number"),
    ("cell.seeds.order", -1, "cell.seeds.order: expected at least 0"),
    ("cell.threads", 2**53, "expected at most"),
    ("cell.preset", "\ud800", "cell.preset: expected Unicode text"),
    ("cell.preset", "x" * 100_001, "expected at most 100000 characters"),
    ("metrics.\ud800", 1.0, "expected Unicode text"),
    ("cell.configuration", {"\ud800": 1}, "expected Unicode text"),
    ("cell.configuration", dict.fromkeys(map(str, range(5000)), 1), "expected at most 4096 item"),
    ("provenance.inputs", [[1]], "provenance.inputs: expected"),
    ("provenance.resumed_from_task", 2**60, "expected at most 9007199254740991"),
    ("provenance.trained_tasks", None, "trained_tasks: expected a whole number"),
    ("provenance.core.version", 3, "expected text"),
    ("environment.torch", ["2.9"], "environment.torch: expected text"),
    ("scenario.dataset", ["cora"], "scenario.dataset: expected text"),
    ("scenario.measure", {}, "scenario.measure.range: missing"),
    ("scenario.measure", {"range": [0]}, "expected at least 2 item"),
]


@pytest.mark.parametrize(("place", "value", "says"), UNHOLDABLE, ids=lambda value: str(value)[:30] if isinstance(value, str) else "")
def test_what_no_table_or_index_can_hold_is_refused(place: str, value: Any, says: str) -> None:
    """From a file, from decoded JSON and of a record that is made here: whoever reads many records never meets it."""
    data = golden()
    part, *names = place.split(".")
    inner = data[part]
    while len(names) > 1 and names[0] in inner:
        inner = inner[names.pop(0)]
    inner[".".join(names)] = value
    content = json.dumps(data, sort_keys=True, separators=(",", ":"))
    data["digest"] = hashlib.sha256(content.encode()).hexdigest()
    for content in (data, json.dumps(data), json.dumps(data, sort_keys=True, separators=(",", ":"))):
        with pytest.raises(StoreError, match=says):
            Record.from_json(content)
    with pytest.raises(StoreError):
        Record(**{name: part for name, part in data.items() if name != "digest"})


def test_an_infinite_time_is_refused() -> None:
    """In a text; of a record that is made here, what is no number becomes null."""
    text = GOLDEN.read_text().replace('"resumed_from_task":', '"trained_s":1e999,"resumed_from_task":')
    with pytest.raises(StoreError, match="provenance.trained_s: expected a finite number"):
        Record.from_json(text)


def test_absent_and_foreign_parts_are_named() -> None:
    """A part too few and a part too many."""
    data = golden()
    del data["matrix"]
    with pytest.raises(StoreError, match="colour: not a field of a record; matrix: missing"):
        read(data | {"colour": "red"})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"schema": NaN}', "\x80\x04K\x01.", GOLDEN.read_text()[:-40], '{"schema": true}', "[" * 5000]
)
def test_what_is_no_record_is_refused(text: str) -> None:
    """Truncated files, other JSON, pickles: refused, never run."""
    with pytest.raises(StoreError):
        Record.from_json(text)


def test_a_later_schema_is_told_from_a_corrupt_file() -> None:
    """A newer suite's record is not for this one to read, nor to throw away."""
    with pytest.raises(NewerSchemaError, match="schema 5"):
        read(golden() | {"schema": 5, "future": 1})


def test_things_that_are_no_data_are_refused() -> None:
    """A record holds no objects."""
    data = golden()
    del data["schema"]
    with pytest.raises(StoreError, match="lists and mappings: PosixPath has no canonical form"):
        Record(**(data | {"environment": {"where": Path("/")}}))


def bounded(measure: tuple[float | None, float | None] | None, rule: str | None = None) -> dict[str, Any]:
    """A record without numbers, of this range of a plugin's measure or this rule of the core."""
    data = golden() | {"matrix": [[None] * 2] * 3, "validation_matrix": [], "per_class": []}
    data["scenario"] = {name: value for name, value in data["scenario"].items() if name not in {"performance", "measure"}}
    if measure is not None:
        data["scenario"]["measure"] = {"label": "x", "direction": "up", "range": list(measure), "unit": ""}
    if rule is not None:
        data["scenario"]["performance"] = rule
    return data


ROUNDING = 1e-9


@pytest.mark.parametrize("name", ["matrix", "validation_matrix", "per_class"])
@pytest.mark.parametrize(
    ("measure", "rule", "low", "high", "low_of_classes", "high_of_classes"),
    [
        (None, None, 0.0, 1.0, 0.0, 1.0),
        (None, "micro", 0.0, 1.0, 0.0, 1.0),
        (None, "of-no-release", 0.0, 1.0, 0.0, 1.0),
        ((-2.0, 3.0), None, -2.0, 3.0, -2.0, 3.0),
        ((0.25, 0.5), None, 0.25, 0.5, 0.0, 1.0),
        ((2.0, 3.0), "micro", 2.0, 3.0, 0.0, 3.0),
        ((-3.0, -2.0), None, -3.0, -2.0, -3.0, 1.0),
    ],
)
def test_both_ends_of_the_range_are_within_it(
    name: str, measure: Any, rule: str | None, low: float, high: float, low_of_classes: float, high_of_classes: float
) -> None:
    """An accuracy per class beside a measure of a plugin is a share, whatever the measure's range is."""
    if name == "per_class":
        low, high = low_of_classes, high_of_classes

    def with_entry(value: float) -> dict[str, Any]:
        rows = [[low, value]] if name == "per_class" else [[None] * 2, [low, None], [value, None]]
        return bounded(measure, rule) | {name: rows}

    for inside in (low, high, low - ROUNDING / 2, high + ROUNDING / 2):
        read(with_entry(inside))
    for outside in (low - 1.5 * ROUNDING, high + 1.5 * ROUNDING, low - 1, high + 1):
        with pytest.raises(StoreError) as error:
            read(with_entry(outside))
        assert f"{name}: an entry of {outside:g}; expected {low:g} to {high:g} for {rule or 'performance'}" in str(error.value)


@pytest.mark.parametrize(("low", "high", "refused"), [(None, 2.0, 2.5), (1.5, None, 1.0), (None, None, None)])
def test_a_range_may_be_open(low: float | None, high: float | None, refused: float | None) -> None:
    """``null`` in a measure's range is no bound at all."""
    taken = (1e300 if high is None else high, -1e300 if low is None else low)
    read(bounded((low, high)) | {"matrix": [[None] * 2, [taken[0], None], [taken[1], None]]})
    if refused is not None:
        expected = "expected at most 2" if low is None else "expected 1.5 to inf"
        with pytest.raises(StoreError, match=f"an entry of {refused:g}; {expected} for performance"):
            read(bounded((low, high)) | {"matrix": [[None] * 2, [refused, None], [taken[0], None]]})


def test_the_rows_of_a_task_free_matrix_are_its_evaluations() -> None:
    """Not its tasks plus one."""
    stream = {"evaluations": [0, 5], "delivered": [[0, 0], [3, 1]]}
    data = golden()
    data["provenance"] = data["provenance"] | {"stream": stream}
    data |= {"matrix": [[0.5, 0.5], [1.0, 0.5]], "validation_matrix": []}
    assert read(data).stream == stream
    with pytest.raises(StoreError, match=r"matrix: 3 rows of \[2\] entries; expected 2 rows \(the first before training\) of 2 tasks"):
        read(data | {"matrix": [[0.5, 0.5]] * 3})


@pytest.mark.parametrize("status", ["failed", "diverged", "timeout", "oom", "skipped", "unclean"])
def test_what_a_record_needs_follows_from_its_status(status: str) -> None:
    """A result has a matrix; all else has a reason, and may have a matrix."""
    unfinished = golden() | {"status": status, "reason": "because", "matrix": [], "validation_matrix": [], "per_class": []}
    assert not read(unfinished).done
    assert not read(unfinished | {"tasks": []}).done
    assert read(golden() | {"status": status, "reason": "because"}).matrix == golden()["matrix"]
    for reason in (None, ""):
        with pytest.raises(StoreError, match=f"reason: missing, but the status is {status}"):
            read(unfinished | {"reason": reason})
    with pytest.raises(StoreError, match="tasks: 1 entries for a matrix of 2 tasks"):
        read(golden() | {"tasks": golden()["tasks"][:1]})
    with pytest.raises(StoreError, match="matrix: empty, but the status is done"):
        read(golden() | {"matrix": [[]], "validation_matrix": [], "tasks": []})


@pytest.mark.parametrize(
    ("path", "least"),
    [
        (("cell", "threads"), 1),
        (("tasks", 0, "n_train"), 0),
        (("tasks", 0, "n_validation"), 0),
        (("tasks", 0, "n_test"), 0),
        (("timings_s", "total"), 0),
        (("memory", "items"), 0),
        (("parameters", "model"), 0),
        (("provenance", "resumed_from_task"), 0),
        (("provenance", "trained_tasks"), 0),
        (("provenance", "trained_s"), 0),
        (("provenance", "covered_s"), 0),
        (("provenance", "counters", "steps"), 0),
    ],
)
def test_the_least_of_every_count(path: tuple[Any, ...], least: int) -> None:
    """Read as it is at its least, refused below."""
    for value, good in ((least, True), (least - 1, False)):
        data = copy.deepcopy(golden())
        data["provenance"]["counters"] = {}
        place = data
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value
        if good:
            assert read(data)._content() == data
        else:
            with pytest.raises(StoreError, match=f"{path[-1]}: expected at least {least}"):
                read(data)


@pytest.mark.parametrize("name", ["scenario", "preset", "method", "backbone", "device", "dtype"])
def test_no_name_is_empty(name: str) -> None:
    """Every record says what it is of."""
    data = golden()
    data["cell"] = data["cell"] | {name: ""}
    with pytest.raises(StoreError, match=f"cell.{name}"):
        read(data)


@pytest.mark.parametrize(("length", "good"), [(15, False), (16, True), (128, True), (129, False)])
def test_keys_are_16_to_128_hexadecimal_digits(length: int, good: bool) -> None:
    """They are names of files."""
    for name in ("key", "design"):
        data = golden() | {name: "a" * length}
        if good:
            assert getattr(read(data), name) == "a" * length
        else:
            with pytest.raises(StoreError, match=name):
                read(data)


def test_parts_may_gain_names_but_a_record_may_not() -> None:
    """A later version of the same schema says more about a cell, its tasks and its code."""
    data = golden()
    for part in ("cell", "provenance"):
        data[part] = data[part] | {"later": 1}
    data["tasks"] = [task | {"later": 1} for task in data["tasks"]]
    data["cell"]["seeds"] = data["cell"]["seeds"] | {"later": 1}
    assert read(data)._content() == data


def training(task: int, *loss: float | None) -> dict[str, Any]:
    return {"task": task, "loss": list(loss), "monitor": [], "best_epoch": 0}


def test_trainings_that_move_nothing_are_said() -> None:
    """Equal to five digits in every epoch; of two epochs nobody expects more."""
    moving = [training(1, 1.5, 1.5, 1.4999), training(2, 7e29, 7e29), training(3)]
    assert Curves(trainings=moving).warnings == []
    [said] = Curves(trainings=[*moving, training(4, 1.386294, 1.386296, 1.386299)]).warnings
    assert said.startswith("the loss of task 4 (1.3863) stays the same to five digits in every epoch: nothing was learnt; check")
    [said] = Curves(trainings=[training(k, 7e29, 7e29, 7e29) for k in range(1, 13)]).warnings
    assert said.startswith("the loss of tasks 1 (7e+29), 2 (7e+29), ")
    assert "10 (7e+29) ... stays" in said
    assert "(NaN)" in Curves(trainings=[training(1, None, None, None)]).warnings[0]


def test_records_share_equal_parts_when_they_are_read() -> None:
    """Thousands of records of a campaign take the memory of one configuration; what differs stays with each."""
    first, second = (read(golden() | {"key": key * 64}) for key in "ab")
    for part in ("scenario", "environment", "tasks"):
        assert getattr(first, part) is getattr(second, part), part
    for part in ("configuration", "seeds"):
        assert first.cell[part] is second.cell[part], part
    assert first.provenance["plugins"] is second.provenance["plugins"]
    assert first.cell is not second.cell
    data = golden()
    other = read(data | {"cell": data["cell"] | {"seeds": {"order": 7, "split": 0, "init": 0}}})
    assert other.cell["seeds"] == {"order": 7, "split": 0, "init": 0}
    assert first.cell["seeds"] == data["cell"]["seeds"]


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, False])
def test_values_that_only_compare_equal_are_not_shared(zero: object) -> None:
    kept = [shared({"a": value}) for value in (0, 0.0, -0.0, False)]
    assert repr(shared({"a": zero})) == repr({"a": zero})
    assert len(set(map(repr, kept))) == 4


@given(
    st.lists(st.one_of(st.integers(-(10**25), 10**25), st.floats(allow_nan=False, allow_infinity=False), st.text("0123456789abcdefE+.")))
)
def test_no_text_with_a_long_number_is_taken_for_one_without(values: list[Any]) -> None:
    """The reading of a record looks closer where the quick search says so, so the search may err on one side alone."""
    text = json.dumps(values)
    long = re.compile(r"(?<![0-9.])[0-9]{19}|[:,\[]-?[0-9.]+[eE]\+?[0-9]{3}")
    assert _may_be_long(text.encode()) or not long.search(text)


def test_a_long_mantissa_is_no_way_round_the_search() -> None:
    assert _may_be_long(b'{"a":0.' + b"1" * 100 + b"e400}")
    assert not _may_be_long(b'{"a":0.1234567890123456789,"b":1e-300,"c":"12e400f","d":123456789012345678}')
