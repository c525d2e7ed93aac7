"""``cglsuite show code``: the modules that made a record, and how those of two differ."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from stored_records import record

from cglsuite.cells.storage.store import Store
from cglsuite.cli import main
from cglsuite.host.frozen import Bundle

FIRST, SECOND = {"mine": "import helper\nSCALE = 1\n", "helper": "x = 1\n"}, {"mine": "import helper\nSCALE = 2\n", "helper": "x = 1\n"}


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of three records: two by users' code, of which the store has the sources, and one without."""
    monkeypatch.setenv("CGLSUITE_STORE", str(tmp_path))
    store, found = Store(tmp_path), []
    for number, files in enumerate((FIRST, SECOND, {})):
        bundle = Bundle.keep({name: (Path(f"{name}.py"), text.encode()) for name, text in files.items()}, tmp_path)
        code = {name: one.sha256 for name, one in bundle.modules.items()}
        made = record(number)
        store.put(dataclasses.replace(made, provenance={**made.provenance, **({"code": code} if code else {})}))
        found.append(made.key)
    return found


def test_the_modules_of_a_record_are_printed(keys: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["show", "code", keys[0]]) == 0
    out = capsys.readouterr().out
    assert "import helper\nSCALE = 1\n" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("# ")] == ["helper", "mine"]


def test_two_records_are_compared(keys: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["show", "code", *keys[:2]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")] == ["-SCALE = 1", "+SCALE = 2"]
    assert main.run(["show", "code", keys[0], keys[0]]) == 0
    assert capsys.readouterr().out == "both records have the same user code\n"


def test_a_source_that_is_not_kept_is_told_by_its_digest(keys: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (tmp_path / "code").glob("??/*"):
        file.write_text("changed")
    assert main.run(["show", "code", keys[0]]) == 0
    assert f"(the source of mine is not in {tmp_path}: its digest is " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (lambda keys: [keys[2]], "has no user code"),
        (lambda keys: ["f" * 64], "found 0: `cglsuite results` lists the keys"),
        (lambda keys: [""], "an argument is empty"),
        (lambda keys: [keys[0], keys[1], keys[2]], "expected [KIND] NAME"),
    ],
)
def test_what_cannot_be_shown_is_named(keys: list[str], capsys: pytest.CaptureFixture[str], words: object, said: str) -> None:
    assert main.run(["show", "code", *words(keys)]) == 2  # type: ignore[operator]
    assert said in capsys.readouterr().err
