"""The gallery can be rendered again from the records that are committed with it, and its numbers are theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from report_lab import assert_holds_together

from cglsuite.cells.records.frame import results_frame
from cglsuite.cells.storage.store import Store

GALLERY = Path(__file__).parents[3] / "reports" / "gallery"
PAGES = sorted(GALLERY.rglob("*.html"))


def records() -> list[object]:
    return list(Store(GALLERY / "records").records())


def test_every_record_can_be_read() -> None:
    files = Store(GALLERY / "records").record_files()
    assert len(records()) == len(files) >= 108


def test_the_page_prints_what_the_records_say() -> None:
    frame = results_frame(records())  # type: ignore[arg-type]
    frame = frame[frame.setting == "task-free"]
    assert set(frame.status) == {"done"}
    text = re.sub(r"<[^>]+>", "", (GALLERY / "drift-sigma" / "campaign_report.html").read_text(encoding="utf-8"))
    text = " ".join(text.split())
    groups = frame.groupby(["scenario", "configuration.schedule.sigma", "method"]).a_auc
    assert len(groups) == 36
    missing = [key for key, values in groups if f"{100 * values.mean():.1f} ± {100 * values.std():.1f}" not in text]
    assert not missing


def test_isolation_forgets_nothing_on_real_data() -> None:
    """BeGin keeps the whole graph, so answers to an old task keep their bits: AF is 0 in every run, not only in the mean."""
    frame = results_frame(records())  # type: ignore[arg-type]
    frame = frame[(frame.protocol == "begin-1") & (frame.setting == "task-il") & (frame.status == "done")]
    isolated = frame[frame.method.isin(["packnet", "piggyback", "pi-gnn"])]
    assert set(isolated.method) == {"packnet", "piggyback", "pi-gnn"}
    assert set(isolated["configuration.scenario.edge_policy"]) == {"full"}
    assert (isolated.forgetting_from_diagonal == 0).all()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(GALLERY)))
def test_pages_are_self_contained(page: Path) -> None:
    content = page.read_text(encoding="utf-8")
    assert content.rstrip().endswith("</html>")
    assert not re.search(r"""<(?:script|link|img)[^>]+(?:src|href)=["']https?:""", content)
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users)/", content)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(GALLERY)))
def test_tables_hold_together(page: Path) -> None:
    assert_holds_together(page.read_text(encoding="utf-8"))
