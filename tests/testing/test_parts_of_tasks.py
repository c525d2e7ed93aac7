"""Tasks of a scenario that are checked: every fault of their parts is found and says which task has it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.kinds.scenarios import _parts

SOUND = [{"train": [0, 1], "validation": [2], "test": [3]}, {"train": [4], "validation": [], "test": [5, 6]}]


class Members:
    def __init__(
        self, tasks: list[dict[str, list[int]]], setting: str = "task-il", outputs: tuple[list[int], ...] = ([0, 1], [2, 3])
    ) -> None:
        self.tasks = tasks
        self.spec = SimpleNamespace(setting=setting)
        self.task_outputs = torch.zeros(len(tasks), 4, dtype=torch.bool)
        for row, columns in zip(self.task_outputs, outputs, strict=True):
            row[columns] = True

    def __len__(self) -> int:
        return len(self.tasks)

    def members(self, k: int, part: str) -> torch.Tensor:
        return torch.tensor(self.tasks[k][part], dtype=torch.int64)


@pytest.mark.parametrize(
    ("task", "changes", "said"),
    [
        (0, {"train": []}, "task 1 of 2 has no train items"),
        (1, {"test": []}, "task 2 of 2 has no test items"),
        (0, {"validation": [1]}, "parts of task 1 overlap"),
        (1, {"test": [5, 4]}, "the parts of task 2 overlap"),
        (0, {"test": [3, 3]}, "parts of task 1 overlap"),
        (1, {"test": [5, 0, 1]}, "2 test items of task 2 are training items of another task"),
        (0, {"test": [4]}, "1 test items of task 1 are training items of another task"),
    ],
)
def test_faults_of_the_parts(task: int, changes: dict[str, list[int]], said: str) -> None:
    tasks = [dict(parts) for parts in SOUND]
    tasks[task] |= changes
    stream: Any = Members(tasks)
    with pytest.raises(CheckFailed, match=said):
        _parts(stream)


@pytest.mark.parametrize("shared", [[], [2], [3]])
def test_sound_parts(shared: list[int]) -> None:
    """Validation may be empty; what one task validates or tests may be validated or tested by another."""
    stream: Any = Members([SOUND[0], SOUND[1] | {"validation": shared}])
    _parts(stream)


def test_a_class_of_two_tasks_is_a_fault_where_tasks_are_classes() -> None:
    """In domain-IL every task has all classes."""
    overlapping: Any = ([0, 1], [1, 2])
    with pytest.raises(CheckFailed, match=r"class 1 is in 2 tasks \(1, 2\); expected every class in a single task for class-il"):
        _parts(Members(SOUND, "class-il", overlapping))  # type: ignore[arg-type]
    _parts(Members(SOUND, "domain-il", overlapping))  # type: ignore[arg-type]
