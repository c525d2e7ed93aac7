"""The page on porting a method names every hook, in the order in which the runner calls them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from cglsuite import Method
from cglsuite.learning import loop, task_runner

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "port-a-method.md").read_text(encoding="utf-8")
HOOKS = {name for name, value in vars(Method).items() if inspect.isfunction(value) and not name.startswith("_")}


def test_every_hook_has_its_row() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    assert named >= HOOKS
    assert named - HOOKS <= {"memory", "state", "Phase"}


def test_the_order_is_that_of_the_runner() -> None:
    """In the sources of the runner's task and of its step; predict comes last."""
    block = PAGE.partition("```text\n")[2].partition("```")[0]
    shown = [name for name in re.findall(r"(\w+)\(", block) if name in HOOKS]
    task = inspect.getsource(task_runner.TaskRunner._learn)
    inner = inspect.getsource(loop.fit) + inspect.getsource(loop.train_step)
    called = re.findall(
        r"method\.(\w+)\(", task.replace("self._optimizer(phase)", "method.parameter_groups()").replace("part = fit(", inner)
    )
    expected = [name for name in dict.fromkeys(called) if name in HOOKS]
    assert [name for name in shown if name not in ("forward", "predict")] == expected
    assert shown[-1] == "predict"
