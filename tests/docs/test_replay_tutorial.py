"""The method of the tutorial on replay: as short as it says, and conforming as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import ROOT, blocks

from cglsuite.graphs.files.named import named
from cglsuite.host import load_catalogue
from cglsuite.testing.kinds.methods import examine_method

pytestmark = pytest.mark.plugins
PAGE = ROOT / "docs" / "tutorials" / "replay.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (block,) = (b for b in blocks(PAGE) if b.title)
    path = tmp_path / block.title
    path.write_text(block.text, encoding="utf-8")
    return path


def test_der_takes_sixty_lines_at_most(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.nightly
def test_der_conforms_at_every_level_and_without_tasks(file: Path) -> None:
    """The checks that a memory can break. They take more than five seconds, in six streams and with a process per task; all checks in all
    streams are for ``as_they_stand.py``."""
    with named(plugins=[str(file)]):
        report = examine_method("dark", load_catalogue(), quick=True, only=("runs", "resumable", "memory budget"), seed=20_261)
    assert report.passed, [(f.check, f.message) for f in report.failed]
    covered = {f.where for f in report if f.check == "memory budget"}
    assert {name.partition("/")[2].partition("@")[0] for name in covered} == {"task-il", "class-il", "domain-il", "time-il", "task-free"}
