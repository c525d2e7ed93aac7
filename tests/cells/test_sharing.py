"""Which cells share the training of their first tasks, in which order they run, and how many trainings there were."""

from __future__ import annotations

import dataclasses
from typing import Any

import fake_cells
import pytest

from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.task_sharing import Family, common_beginning, depth_first, trainings

PATHS: dict[str, Any] = {"a": "xyz", "b": "xzy", "c": "yxz", "d": "xyw", "e": None, "f": None}


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [
        ("xyz", "xyz", 3),
        ("xyz", "xyw", 2),
        ("xyz", "xzy", 1),
        ("xyz", "yxz", 0),
        ("xy", "xyz", 2),
        ("", "x", 0),
        (None, None, 1),
        (None, "x", 0),
    ],
)
def test_common_beginnings(one: Any, other: Any, length: int) -> None:
    """Of tasks that are not known in advance, only the first is worth keeping."""
    assert common_beginning(one, other) == common_beginning(other, one) == length


@pytest.mark.parametrize(
    ("key", "unfinished", "length"),
    [
        ("a", "bcdef", 2),
        ("a", "bcef", 1),
        ("a", "cef", 0),
        ("a", "a", 0),
        ("b", "ad", 1),
        ("c", "abdef", 0),
        ("e", "abcdf", 1),
        ("e", "abcd", 0),
    ],
)
def test_the_longest_beginning_that_somebody_still_needs(key: str, unfinished: str, length: int) -> None:
    """A cell is not asked about itself, and one without a common task not at all."""
    asked: list[str] = []

    def left(other: str) -> bool:
        asked.append(other)
        return other in unfinished

    assert Family(PATHS).shared_tasks(key, left) == length
    assert key not in asked
    assert all(common_beginning(PATHS[key], PATHS[other]) for other in asked)


def test_families_run_depth_first_in_their_own_places() -> None:
    """Along the tree of their orders; cells without a family stay where they are, those of unknown tasks come last."""
    families = {"a": "1", "b": "1", "c": "1", "d": "1", "e": "1", "p": "2", "q": "2"}
    paths = {**PATHS, "p": "b", "q": "a"}
    assert depth_first(["e", "c", "u", "p", "a", "b", "v", "q", "d"], families, paths) == ["d", "a", "u", "q", "b", "c", "v", "p", "e"]
    assert depth_first(["b", "a"], {}, {}) == ["b", "a"]


def test_trainings_of_a_record() -> None:
    """Those that it says; of an older one, all tasks that it was not resumed after."""
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare")
    record = fake_cells.make_record(plan_cell(request, fake_cells.FakeCatalogue()).cell)  # type: ignore[arg-type]
    assert trainings(record) == (2, 2)
    for more, expected in (({"resumed_from_task": 1}, (2, 1)), ({"resumed_from_task": 1, "trained_tasks": 0}, (2, 0))):
        assert trainings(dataclasses.replace(record, provenance={**record.provenance, **more})) == expected
