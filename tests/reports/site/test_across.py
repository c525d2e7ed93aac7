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
    """Within a scenario, ties sharing their mean rank; the mean is over the scenarios in which a method has a score."""
    found = {one.name: one for one in standings(made)}
    for board in made:
        scored = [row for row in board.rows if board.first.name in row.scores]
        ranks = stats.rankdata([-row.scores[board.first.name].mean for row in scored])
        for row, rank in zip(scored, ranks, strict=True):
            one = found.get(row.group.label) or found[f"{row.group.label} × {row.group.backbone}"]
            assert one.ranks[board.preset] == rank
    for one in found.values():
        assert one.mean_rank == pytest.approx(sum(one.ranks.values()) / len(one.ranks))
    means = [one.mean_rank for one in standings(made)]
    assert means == sorted(means)


def test_the_table_has_every_score_and_says_where_one_is_missing(made: list[Board]) -> None:
    shown = across(made)
    assert shown is not None
    page = page_with(shown)
    assert texts(page, ".across tbody th") == [one.name for one in standings(made)]
    partial = [one for one in standings(made) if len(one.ranks) < len(made)]
    assert partial
    assert all(f"({len(one.ranks)} of {len(made)})" in " ".join(texts(page, ".across td")) for one in partial)
    assert all(texts(page, f".across td.shade-{SHADES - 1}"))


@pytest.mark.nightly
def test_one_scenario_has_no_such_table(made: list[Board]) -> None:
    assert across(made[:1]) is None
