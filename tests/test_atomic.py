"""Files that are written whole or not at all: what is there afterwards, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cglsuite.base.atomic import write_atomic


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_as_a_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a" / "b.json"
    assert write_atomic(path, b"one", durable=durable)
    assert write_atomic(path, b"two", durable=durable, permit=lambda: True)
    assert path.read_bytes() == b"two"
    assert [one.name for one in path.parent.iterdir()] == ["b.json"]


def test_without_permission_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """One that is not there is written; either way nothing else is left in the folder, and the answer says which it was."""
    path = tmp_path / "b.json"
    assert write_atomic(path, b"one", permit=lambda: False) is True
    assert write_atomic(path, b"two", permit=lambda: False) is False
    assert path.read_bytes() == b"one"
    assert [one.name for one in tmp_path.iterdir()] == ["b.json"]
