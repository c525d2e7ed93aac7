"""What changes in folders, seen from outside: also what Python does not open."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cglsuite.testing.judge import sandbox as outside
from cglsuite.testing.judge.sandbox import changed, places_of, snapshot_of


def _database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create table t(k)")


WAYS: dict[str, Callable[[Path], object]] = {
    "torch.save": lambda path: torch.save(torch.zeros(2), str(path)),
    "torch.from_file": lambda path: torch.from_file(str(path), shared=True, size=8, dtype=torch.uint8),
    "sqlite3": _database,
    "mkdir": lambda path: os.mkdir(path),
    "symlink": lambda path: os.symlink("nowhere", path),
    "link": lambda path: os.link(path.parent / "there", path),
    "touch": lambda path: os.utime(path.parent / "there", (1, 1)),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_was_written_is_seen(way: str, tmp_path: Path) -> None:
    folder = tmp_path / "below"
    folder.mkdir()
    (folder / "there").write_text("")
    places = {str(tmp_path): 3}
    before = snapshot_of(places, [])
    assert changed(before, snapshot_of(places, [])) == {}
    WAYS[way](folder / "new")
    ((place, paths),) = changed(before, snapshot_of(places, [])).items()
    assert place == str(tmp_path)
    assert {Path(path).name for path in paths} <= {"new", "there"}
    assert snapshot_of(places, [str(folder)])[str(tmp_path)].keys() == set()


def test_large_folders_are_looked_at_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is nearer comes first, and what is deeper than the depth does not come."""
    monkeypatch.setattr(outside, "_MAX_ENTRIES", 5)
    for name in ("a", "b", "c"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "deeper").write_text("")
    seen = {os.path.relpath(path, tmp_path) for path in snapshot_of({str(tmp_path): 2}, [])[str(tmp_path)]}
    assert {"a", "b", "c"} < seen < {"a", "b", "c", "a/deep", "b/deep", "c/deep"}


def test_what_was_not_looked_at_before_is_not_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry less lets the look reach further; a new folder is new with all that it holds."""
    monkeypatch.setattr(outside, "_MAX_ENTRIES", 4)
    places = {str(tmp_path): 4}
    for name in ("a", "b", "c"):
        (tmp_path / name / "deep").mkdir(parents=True)
    (tmp_path / "d").write_text("")
    before = snapshot_of(places, [])
    assert not any(path.endswith("deep") for path in before[str(tmp_path)])
    (tmp_path / "d").unlink()
    assert any(path.endswith("deep") for path in snapshot_of(places, [])[str(tmp_path)])
    assert changed(before, snapshot_of(places, [])) == {}
    monkeypatch.undo()
    before = snapshot_of(places, [])
    (tmp_path / "new" / "below").mkdir(parents=True)
    (tmp_path / "a" / "deep" / "new").mkdir()
    found = {os.path.relpath(path, tmp_path) for path in changed(before, snapshot_of(places, []))[str(tmp_path)]}
    assert found == {"new", "new/below", "a/deep/new"}


def test_the_places_of_a_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder, that of its module, which is not imported, and what processes share."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "own_method.py").write_text("raise SystemExit")
    places = places_of("own_method:Method", [str(tmp_path)])
    assert places[str(tmp_path)] == places[str(tmp_path / "here")] > places["/tmp"]
    assert str(tmp_path) not in places_of("absent:Method", [str(tmp_path)])
