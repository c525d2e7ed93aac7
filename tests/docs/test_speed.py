"""The page on speed names the goals that the benchmarks print, and files that there are."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

import pytest
from doc_blocks import ROOT

TEXT = (ROOT / "docs" / "contributing" / "speed.md").read_text(encoding="utf-8")
GOALS = dict(re.findall(r"^\| `python tests/benchmarks/(\w+)\.py[^`]*` \| .+? \| (.+?) \|$", TEXT, re.MULTILINE))


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark whose loops, table and targets are of whole methods."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "benchmarks"))
    return importlib.import_module("overhead")


def test_goals_are_those_that_the_commands_print(benchmark: ModuleType) -> None:
    printed = {name: importlib.import_module(name) for name in ("evaluation", "skeleton", "task_free", "startup")}
    assert float(GOALS["evaluation"]) == printed["evaluation"].LIMIT == benchmark.EVALUATION_LIMIT
    assert re.findall(r"(evaluation|memory) (\d\.\d)", GOALS["overhead"]) == [
        ("evaluation", str(benchmark.EVALUATION_LIMIT)),
        ("memory", str(benchmark.MEMORY_LIMIT)),
    ]
    assert float(GOALS["skeleton"]) == printed["skeleton"].LIMIT
    assert ("loop", float(GOALS["task_free"])) == printed["task_free"].LIMITS["bare"]
    assert float(GOALS["startup"].removesuffix(" s")) == printed["startup"].LIMIT_S


def test_every_method_has_its_goal(benchmark: ModuleType) -> None:
    """`bare` 1.10, `ewc` and `er-gnn` 1.15; `twp` 2.0 x `bare`: the names before each number have it as their limit."""
    stated = {}
    for names, number, against in re.findall(r"((?:`[\w-]+`(?: and )?)+) (\d\.\d+)(?: x `(bare)`)?", GOALS["overhead"]):
        stated |= {name: (float(number), against or "loop") for name in re.findall(r"`([\w-]+)`", names)}
    assert stated == {name: (target.limit, target.against) for name, target in benchmark.TARGETS.items()}


@pytest.mark.nightly
def test_every_file_exists() -> None:
    named = re.findall(r"`?((?:plugins|tests)/[\w/.*-]+)`?", TEXT)
    assert len(named) >= 10
    assert [path for path in named if not list(ROOT.glob(path))] == []
