"""Values of one setting side by side: means, deviations and changes by hand, and what the page shows of them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from page_elements import texts
from report_lab import Elements, assert_harmless, page_with

from cglsuite.reports.results.measures import TASK_FREE_MEASURES
from cglsuite.reports.studies.sweep import Sweep
from cglsuite.reports.studies.task_free import page as task_free_page
from cglsuite.reports.studies.task_free.compute import contrast

BATCH, SIGMA = "training.batch_size", "schedule.sigma"
DESIGN = "corafull/gaussian@drift-1 × gcn"
#: Method, batch, σ, seed, A_AUC, AF_s.
CELLS = [
    ("bare", 10, 5.0, "1/1", 0.10, -0.6),
    ("bare", 10, 5.0, "2/2", 0.20, -0.8),
    ("bare", 20, 5.0, "1/1", 0.25, -0.5),
    ("bare", 20, 5.0, "2/2", 0.25, -0.3),
    ("er", 10, 5.0, "1/1", 0.50, -0.2),
    ("er", 10, 9.0, "1/1", 0.70, -0.1),
]


def made(cells: list[tuple[Any, ...]] = CELLS, axes: tuple[str, ...] = (BATCH, SIGMA)) -> Sweep:
    frame = pd.DataFrame(cells, columns=["label", BATCH, SIGMA, "seed", "a_auc", "af"])
    frame = frame.assign(design=DESIGN, method=frame["label"], own="{}", order="0", aa=0.5, parameters=7)
    return Sweep(
        results=(),
        axes=axes,
        cells=frame,
        measures=TASK_FREE_MEASURES,
        percent={DESIGN: True},
        bounds={DESIGN: (0.0, 1.0)},
        performance={DESIGN: "accuracy"},
        methods=tuple(dict.fromkeys(frame["label"])),
    )


def test_means_and_changes_by_hand() -> None:
    """σ = 9 has one batch size, and no row; ER lacks the larger batch, and has no change."""
    frame = contrast(made(), BATCH)
    assert set(frame["rest"]) == {"sigma = 5"}
    found: Any = frame.set_index(["label", "measure", "value"]).sort_index()
    assert len(found) == 2 * 2 + 2
    assert found.loc[("bare", "a_auc", "10"), ["mean", "std", "n"]].tolist() == pytest.approx([0.15, 0.1 / 2**0.5, 2])
    assert found.loc[("bare", "a_auc", "20"), ["mean", "std", "n"]].tolist() == pytest.approx([0.25, 0.0, 2])
    assert found.loc[("bare", "af", "20"), "mean"] == pytest.approx(-0.4)
    assert found.loc[("bare", "a_auc"), "change"].tolist() == pytest.approx([0.1] * 2)
    assert found.loc[("bare", "af"), "change"].tolist() == pytest.approx([0.3] * 2)
    assert found.loc[("er", "a_auc"), "change"].isna().all()


def test_the_setting_with_one_value_has_no_rows() -> None:
    assert contrast(made(), "stream.draw").empty
    assert contrast(made(CELLS[:2], axes=(BATCH,)), BATCH).empty
    page = page_with(task_free_page.contrast(made(CELLS[:2], axes=(BATCH,)), BATCH))
    assert texts(page, "p.quiet") == [f"{BATCH} has only one value among the finished cells of each scenario."]


def test_the_table() -> None:
    page = page_with(task_free_page.contrast(made(), BATCH))
    assert_harmless(page)
    shown = {float(str(a["data-value"])) for _, a in Elements(page).found if a.get("data-value")}
    assert {0.15, 0.25, -0.4} <= {round(v, 12) for v in shown}
    for text in ("A_AUC ↑, batch_size = 10", "A_AUC: 20 − 10", "15.0 ± 7.1", "sigma = 5", "n from 1 to 2"):
        assert [shown for shown in texts(page, "figcaption, th, td") if text in shown]
