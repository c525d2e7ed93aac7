"""Batched cells beside those that trained by themselves: pooled where a test says that they are equivalent, else apart."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup
from made_records import CAMPAIGN, made_results

from cglsuite.hashing import digest
from cglsuite.reports.results.results import CampaignResults, ReportedCell, group_cells
from cglsuite.reports.site.boards import boards
from cglsuite.reports.site.leaderboard import board_table
from cglsuite.stats import MeanEstimate, agreement


@pytest.fixture
def made(tmp_path: Path) -> tuple[CampaignResults, Any]:
    """Six repetitions of one method in one scenario."""
    seeds = {"order": list(range(6)), "init": list(range(6))}
    return made_results(tmp_path, grid=CAMPAIGN["grid"] | {"methods": ["si"], "backbones": ["gcn"]}, seeds=seeds)


def cells_of(made: tuple[CampaignResults, Any]) -> list[ReportedCell]:
    return [cell for cell in made[0].cells if cell.record is not None and "cora" in cell.record.cell["preset"]]


def batched(cell: ReportedCell, *, shift: float = 0.0, seed: int | None = None, slots: int = 4, stale: str = "") -> ReportedCell:
    """The same cell as trained in a stack: other sources, another key, and a shifted result."""
    record = cell.record
    assert record is not None
    seeds = record.cell["seeds"] | ({} if seed is None else {"order": seed, "init": seed})
    changed = dataclasses.replace(
        record,
        key=digest([record.key, slots, shift, seed]),
        cell=record.cell | {"slots": slots, "seeds": seeds},
        matrix=[list(row) for row in np.asarray(record.matrix) + shift],
        provenance=record.provenance | {"core": {"version": "0.1.0", "source": "c" * 64}},
    )
    return dataclasses.replace(cell, record=changed, stale=stale)


def performances(cells: list[ReportedCell]) -> Any:
    return np.array([np.mean(cell.record.matrix[-1]) for cell in cells if cell.record is not None])


def test_equivalent_ones_are_pooled_and_the_test_is_told(made: tuple[CampaignResults, Any]) -> None:
    """Twelve repetitions, of which six trained in stacks; the interval is that of the two one-sided tests."""
    cells = cells_of(made)
    others = [batched(cell, shift=0.001, seed=10 + n) for n, cell in enumerate(cells)]
    (group,) = group_cells([*cells, *others])
    assert (len(group.records), group.variant) == (12, "")
    ours, theirs = performances(others), performances(cells)
    estimate = MeanEstimate(mean=ours.mean(), error=ours.std(ddof=1) / 6**0.5, df=5.0, spread=ours.std(ddof=1), n=(6,))
    found = agreement(estimate, theirs.mean(), theirs.std(ddof=1), 6, margin=0.02)
    assert found.p_equivalent < 0.05
    assert f"{100 * found.low:+.1f} to {100 * found.high:+.1f}, within ±2 points" in group.pooled
    assert group.pooled.startswith("batched in 4 slots: equivalent")


@pytest.mark.parametrize("shift", [0.03, -0.03])
def test_others_stand_apart(made: tuple[CampaignResults, Any], shift: float) -> None:
    cells = cells_of(made)
    alone, stacked = group_cells([*cells, *(batched(cell, shift=shift, seed=10 + n) for n, cell in enumerate(cells))])
    assert (len(alone.records), alone.label, alone.pooled) == (6, "si", "")
    assert (len(stacked.records), stacked.label, stacked.pooled) == (6, "si (batched in 4 slots)", "")


def test_two_of_them_are_too_few_to_tell(made: tuple[CampaignResults, Any]) -> None:
    cells = cells_of(made)
    groups = group_cells([*cells, *(batched(cell, seed=10 + n) for n, cell in enumerate(cells[:2]))])
    assert [(group.label, len(group.records)) for group in groups] == [("si", 6), ("si (batched in 4 slots)", 2)]


def test_a_repetition_that_was_run_both_ways_counts_once(made: tuple[CampaignResults, Any]) -> None:
    """As the cell that trained by itself."""
    cells = cells_of(made)
    (group,) = group_cells([*(batched(cell, shift=0.001) for cell in cells), *cells])
    assert {record.key for record in group.records} == {cell.record.key for cell in cells if cell.record is not None}


def test_stale_ones_give_way_and_stacks_of_two_sizes_are_told_apart(made: tuple[CampaignResults, Any]) -> None:
    cells = cells_of(made)
    (group,) = group_cells([*cells, *(batched(cell, seed=10 + n, stale="old code") for n, cell in enumerate(cells))])
    assert len(group.records) == 6
    assert group.pooled == ""
    sizes = [batched(cell, shift=0.05 * (slots == 8), slots=slots) for cell in cells for slots in (4, 8)]
    assert [group.label for group in group_cells(sizes)] == ["si (batched in 4 slots)", "si (batched in 8 slots)"]


def test_the_board_says_so(made: tuple[CampaignResults, Any]) -> None:
    results, catalogue = made
    cells = cells_of(made)
    both = (*cells, *(batched(cell, shift=0.001, seed=10 + n) for n, cell in enumerate(cells)))
    (board,) = boards(dataclasses.replace(results, cells=both), catalogue)
    row = BeautifulSoup(str(board_table(board)), "html.parser").select_one("tbody tr th")
    assert row is not None
    assert "with batched cells" in row.text
    assert "within ±2 points" in str(row.select_one("span[title*=batched]"))
