"""Our means beside printed ones: what is comparable, and what the verdict says."""

from __future__ import annotations

from typing import Any

import pytest

from cglsuite.reference import dataset_statistics, protocols, published_results, welch_begin_fig7
from cglsuite.reports.published import BOUND, _dataset_key, _prepared, compare, published_value
from cglsuite.reports.results import CampaignResults

TABLE = _prepared(published_results())


def test_the_tables_are_complete() -> None:
    """Row counts as the sources have them; notes that say N/A are text."""
    assert (len(published_results()), len(dataset_statistics()), len(protocols()), len(welch_begin_fig7())) == (2656, 61, 390, 15)
    missing = published_results().query("paper == 'BeGin' and method == 'Joint' and metric == 'AF'")
    assert missing.empty or missing.note.str.startswith("N/A").all()


def test_a_known_cell_is_found() -> None:
    """BeGin, table 4: Cora, task-IL, Bare 90.3 ± 1.8; its AF is the one from the diagonal."""
    found = published_value(TABLE, "cora/task-il@begin-1", "bare", "gcn", "average_performance", "full")
    assert found is not None
    assert (found["mean"], found["std"], found["printed"], found["table"]) == (90.3, 1.8, "90.3 ± 1.8", "4")
    forgetting = published_value(TABLE, "cora/task-il@begin-1", "er-gnn", "gcn", "forgetting_from_diagonal", "full")
    assert forgetting is not None
    assert (forgetting["mean"], forgetting["metric"]) == (5.2, "AF")


@pytest.mark.parametrize(
    ("preset", "method", "backbone", "metric"),
    [
        ("cora/task-il@begin-1+12ab34cd", "bare", "gcn", "average_performance"),
        ("cora/task-il@begin-1", "bare", "gcn", "backward_transfer"),
        ("cora/task-il@begin-1", "bare", "gat", "average_performance"),
        ("cora/task-il@cglb-1", "bare", "gcn", "average_performance"),
        ("cora/task-il@mine-1", "bare", "gcn", "average_performance"),
        ("cora/task-il@begin-1", "my-method", "gcn", "average_performance"),
        ("cora/task-il@begin-1", "joint", "gcn", "forgetting_from_diagonal"),
    ],
)
def test_what_is_not_comparable_is_not_compared(preset: str, method: str, backbone: str, metric: str) -> None:
    """An overridden preset, another definition, backbone, protocol or method, and cells that print a dash."""
    assert published_value(TABLE, preset, method, backbone, metric, "full") is None


@pytest.mark.parametrize(("edges", "expected"), [("none", "false"), ("inter-task", "true")])
def test_edges_between_tasks_tell_columns_apart(edges: str, expected: str) -> None:
    """CGLB prints both; the preset's edge policy says which."""
    found = published_value(TABLE, "corafull/task-il@cglb-1", "bare", "gcn", "average_performance", edges)
    assert found is not None
    assert found["variant"] == f"inter-task-edges={expected}"


def test_names_of_data_sets() -> None:
    """One data set, several spellings."""
    assert _dataset_key("CoraFull-CL") == _dataset_key("corafull")
    assert _dataset_key("Arxiv-CL") == _dataset_key("ogbn-arxiv")
    assert _dataset_key("Cora") != _dataset_key("CoraFull")


def test_verdicts(results: CampaignResults) -> None:
    """AP of bare is 81.0 against 90.3 ± 1.8: 5.2 deviations below; AF is 15.0 against 2.6 ± 2.3."""
    frame = compare(results).set_index(["method", "metric"])
    row: Any = frame.loc[("bare", "average_performance")]
    assert row["mean"] == pytest.approx(81.0)
    assert row["difference"] == pytest.approx(-9.3)
    assert row["deviations"] == pytest.approx(-9.3 / 1.8)
    assert row["agrees"] is False
    assert frame.loc[("bare", "intransigence"), "published"] == 0.1
    for agrees, deviations in zip(frame["agrees"], frame["deviations"], strict=True):
        assert agrees is None or agrees == (abs(deviations) <= BOUND + 1e-6)
    assert frame.loc[("packnet", "forgetting_from_diagonal"), "agrees"] is None  # 0.0 ± 0.0: no spread to judge by
    assert not frame.index.get_level_values("method").isin(["toy"]).any()
