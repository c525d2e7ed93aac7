"""Methods across scenarios: ranks within scenarios, never an average of scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_records import made_results
from page_elements import texts
from report_lab import page_with
from scipy import stats

from cglsuite.reports.site.boards import SHADES, Board, across, boards, standings


@pytest.fixture
def made(tmp_path: Path) -> list[Board]:
    return boards(*made_results(tmp_path))


def test_ranks_are_those_of_scipy(made: list[Board]) -> None:
    """Within each shared scenario and among the methods that share them; ties share their mean rank."""
    ranked = [one for one in standings(made) if one.ranks]
    shared = list(ranked[0].ranks)
    assert shared
    assert all(list(one.ranks) == shared for one in ranked)
    for board in made:
        if board.preset in shared:
            rows = [one.families[board.preset].selected for one in ranked]
            assert all(row is not None and row.section == 0 for row in rows)
            means = [-row.scores[board.first.name].mean for row in rows if row is not None]
            assert [one.ranks[board.preset] for one in ranked] == stats.rankdata(means).tolist()
    means = [one.mean_rank for one in ranked]
    assert means == sorted(means)


def test_references_stand_below_without_a_rank(made: list[Board]) -> None:
    shown = across(made)
    assert shown is not None
    page = page_with(shown)
    found = standings(made)
    names = texts(page, ".across tbody th.name")
    assert names == [one.name for one in found]
    references = [one for one in found if one.reference]
    assert [one.method for one in references] == ["joint"] * len(references)
    assert references
    assert found[-len(references) :] == references
    assert not any(one.ranks for one in references)
    assert all(texts(page, f".across td.shade-{SHADES - 1}"))


@pytest.mark.nightly
def test_one_scenario_has_no_such_table(made: list[Board]) -> None:
    assert across(made[:1]) is None
