"""Verifying: metrics against matrices, by the code that computed them and by no other."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cglsuite import Catalogue, load_catalogue
from cglsuite.cells.records.describe import metric_providers
from cglsuite.cells.records.metric_values import metric_values
from cglsuite.cells.records.record import Record
from cglsuite.cells.records.verify import Check, damaged, verify
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main

GOLDEN = Path(__file__).parents[1] / "data" / "record-schema-3.json"
MATRIX = [[0.5, 0.25], [1.0, 0.5], [0.75, 0.875]]
VALUES = {"average_performance": 0.8125, "backward_transfer": -0.25, "forgetting_from_diagonal": 0.25, "forgetting_max": 0.25}

pytestmark = pytest.mark.plugins


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


def record(values: Mapping[str, float | None] | None = None, **changes: Any) -> Record:
    """A finished record whose metrics today's code computed from :data:`MATRIX`, by hand."""
    values = VALUES if values is None else values
    old = Record.from_json(GOLDEN.read_bytes())
    made = metric_providers(catalogue(), [name for name, value in values.items() if value is not None])
    facts: dict[str, Any] = {"matrix": MATRIX, "metrics": values, "provenance": {**old.provenance, "metrics": made}}
    return dataclasses.replace(old, **(facts | changes))


def checks(*records: Record) -> dict[str, Check]:
    return {check.check: check for check in verify(records, catalogue())}


def test_metrics_agree_with_the_matrix() -> None:
    """All that have a value, and the digest; a metric without one (intransigence) is nobody's to check."""
    found = checks(record(VALUES | {"intransigence": None}))
    assert {name: check.verdict for name, check in found.items()} == dict.fromkeys(["digest", *VALUES], "agrees")
    assert {name: found[name].computed for name in VALUES} == VALUES


def test_a_metric_that_is_not_that_of_the_matrix_differs() -> None:
    """Whoever changed it: the record says both numbers."""
    found = checks(record(VALUES | {"average_performance": 0.9}))
    assert found["average_performance"].verdict == "differs"
    assert found["average_performance"].reason == "recorded 0.9, but the matrix gives 0.8125"
    assert (found["average_performance"].recorded, found["average_performance"].computed) == (0.9, 0.8125)
    assert found["forgetting_max"].verdict == "agrees"


def test_the_last_bit_is_not_a_difference() -> None:
    """Sums in another order."""
    assert checks(record(VALUES | {"average_performance": 0.8125 + 2e-16}))["average_performance"].verdict == "agrees"


@pytest.mark.parametrize(
    ("maker", "says"),
    [
        ({"version": "0.0.9"}, r"computed by cglsuite-metrics 0\.0\.9 \(.{8}\), now cglsuite-metrics"),
        ({"source": "0" * 64}, r"\(00000000\), now cglsuite-metrics"),
        ({"distribution": "elsewhere"}, r"computed by elsewhere .*, now cglsuite-metrics"),
        (None, "does not name the code"),
    ],
)
def test_what_other_code_computed_is_not_checked(maker: dict[str, str] | None, says: str) -> None:
    """However wrong it is: another version may define it otherwise."""
    wrong = record({"average_performance": 0.9})
    made = None if maker is None else [wrong.provenance["metrics"][0] | maker]
    found = checks(dataclasses.replace(wrong, provenance={**wrong.provenance, "metrics": made or []}))
    check = found["average_performance"]
    assert (check.verdict, check.computed) == ("unchecked", None)
    assert re.search(says, check.reason), check.reason


def test_a_metric_that_is_not_installed_is_not_checked() -> None:
    """It is named with its distribution."""
    made = [{"distribution": "gone", "version": "1.0", "source": "ab" * 32, "names": ["lost"]}]
    old = record({})
    found = checks(dataclasses.replace(old, metrics={"lost": 1.0}, provenance={**old.provenance, "metrics": made}))
    assert found["lost"].reason == "computed by gone 1.0 (abababab), which is not installed"


def test_metrics_of_a_task_free_stream_are_computed_with_the_stream() -> None:
    """Evaluations and deliveries come from the record's provenance."""
    old = record()
    tasks = [{**task, "n_train": 4} for task in old.tasks]
    stream = {"evaluations": [0, 2, 4], "delivered": [[0, 0], [4, 0], [4, 4]]}
    values = metric_values(catalogue(), {"setting": "task-free"}, MATRIX, stream={**stream, "tasks": tasks})
    assert values["a_auc"] is not None
    made = metric_providers(catalogue(), [name for name, value in values.items() if value is not None])
    free = dataclasses.replace(
        old,
        metrics=values,
        tasks=tasks,
        validation_matrix=[],
        scenario={**old.scenario, "setting": "task-free"},
        provenance={**old.provenance, "stream": stream, "metrics": made},
    )
    verdicts = {name: check.verdict for name, check in checks(free).items()}
    assert verdicts == dict.fromkeys(["digest", *(name for name, value in free.metrics.items() if value is not None)], "agrees")


def test_damaged_files_are_told(tmp_path: Path) -> None:
    """What could not be read is a difference of the file itself."""
    store = Store(tmp_path)
    store.put(record())
    path = store.record_path(record().key)
    path.write_text(path.read_text().replace("0.8125", "0.9125"))
    assert list(verify(store.records(), catalogue())) == []
    (check,) = damaged(store.problems)
    assert (check.key, check.check, check.verdict) == (record().key, "file", "differs")
    assert "digest" in check.reason
    assert "corrupt" in check.reason


def call(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capfd.readouterr()
    status = main.run(words)
    out, err = capfd.readouterr()
    return status, out, err


def test_the_command_prints_what_agrees_and_what_differs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Counts by check; differences on stderr and exit status 1; rows for programs."""
    store = Store(tmp_path / "store")
    store.put(record())
    store.put(record(key="12" * 32))
    words = ("results", "--verify", "--store", str(store.path))
    status, out, err = call(capfd, *words)
    assert (status, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()[:3]] == [["CHECK", "AGREES"], ["digest", "2"], ["average_performance", "2"]]
    store.put(record({"average_performance": 0.9}, key="34" * 32))
    damaged_path = store.record_path("56" * 32)
    damaged_path.parent.mkdir()
    damaged_path.write_text("{")
    status, out, err = call(capfd, *words)
    assert status == 1
    assert "343434343434" in err
    assert "average_performance: recorded 0.9, but the matrix gives 0.8125" in err
    assert "565656565656 file: not a JSON file" in err
    assert out.splitlines()[2].split() == ["average_performance", "2", "1"]
    status, out, _ = call(capfd, *words, "--format", "json")
    rows = json.loads(out)
    assert status == 1
    assert [row["reason"] for row in rows if row["verdict"] == "differs"] == ["recorded 0.9, but the matrix gives 0.8125"]
    assert {row["key"] for row in rows} == {record().key, "12" * 32, "34" * 32}


def rewritten(path: Path, **changes: Any) -> None:
    """The record of a file with other parts, and the digest of these."""
    content = json.loads(path.read_text()) | changes
    content.pop("digest")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["digest"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"memory": {"peak_bytes": 2**200}}, "memory.peak_bytes: expected a whole number of at most 64 bits"),
        ({"parameters": {"model": 10**400}}, "parameters.model: expected a whole number"),
        ({"scenario": {"measure": {}}}, "scenario.measure.range: missing"),
    ],
)
def test_one_bad_record_hides_no_other(tmp_path: Path, capfd: pytest.CaptureFixture[str], changes: dict[str, Any], says: str) -> None:
    """It is named, the others are listed, verified and published, and the exit status is 1."""
    store = Store(tmp_path / "store")
    store.put(record())
    store.put(record(key="34" * 32))
    rewritten(store.record_path("34" * 32), **changes)
    for words in (("results", "--format", "json"), ("results", "--verify", "--format", "json"), ("publish", str(tmp_path / "public"))):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        copy = shutil.copytree(store.path, tmp_path / "copy")
        where = (words[0], str(copy), *words[1:], "-q") if words[0] == "publish" else (*words, "--store", str(copy))
        status, out, err = call(capfd, *where)
        assert status == 1, (words, out, err)
        assert says in err
        assert {row["key"] for row in json.loads(out)} - {"34" * 32} == {record().key} if "json" in words else "1 record in 1 shard" in out


def test_a_record_with_metrics_and_no_matrix_is_named_and_the_next_one_verified(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The bug: verifying ended."""
    store = Store(tmp_path)
    store.put(record())
    store.put(record(key="34" * 32))
    rewritten(store.record_path("34" * 32), status="failed", reason="x", matrix=[])
    found = list(verify(store.records(), catalogue()))
    assert {check.key for check in found if check.verdict == "differs"} == {"34" * 32}
    assert all(check.reason.endswith(", but the record has no matrix") for check in found if check.verdict == "differs")
    assert not caplog.records
    assert {check.check for check in found if check.key == record().key and check.verdict == "agrees"} == {"digest", *VALUES}


def test_verifying_imports_no_torch(tmp_path: Path) -> None:
    """It is a matter of seconds for thousands of records."""
    store = Store(tmp_path)
    store.put(record())
    code = "import sys; from cglsuite.cli.main import run; status = run(sys.argv[1:]); assert 'torch' not in sys.modules; sys.exit(status)"
    ended = subprocess.run([sys.executable, "-c", code, "results", "--verify", "--store", str(tmp_path)], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
