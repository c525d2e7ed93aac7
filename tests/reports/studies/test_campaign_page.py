"""What is on the page is what was computed: every shown number is parsed back, and names from plugins are only ever text."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from page_elements import text_of, texts
from report_lab import Tables, assert_harmless, page_of

from cglsuite.reports.kit.tables import number_text
from cglsuite.reports.results import published, tables
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.results.summary import ordered_metrics, overview
from cglsuite.reports.studies import campaign as show
from cglsuite.specs import MethodSpec, ScenarioSpec

SECTIONS = (
    "overview",
    "progress",
    "summary",
    "definitions",
    "published",
    "curves",
    "matrices",
    "problems",
    "searches",
    "configurations",
    "resources",
    "provenance",
)


def test_summary_numbers_equal_the_computed_ones(results: CampaignResults) -> None:
    """Exact values behind the text, and the text their rounding in percent."""
    page = Tables(page_of(results, "summary"))
    computed = tables.summary(results)
    assert [caption.split(" – ")[0] for caption in page.captions] == [
        f"{results.preset_title(preset)} {preset}" for preset in dict.fromkeys(computed.preset)
    ]
    seen = 0
    for preset, table in zip(dict.fromkeys(computed.preset), page.tables, strict=True):
        names = [name for name in ordered_metrics(results.metrics) if name in set(computed[computed.preset == preset].metric)]
        assert [text.endswith(name) for (text, _), name in zip(table[0][2:], names, strict=True)] == [True] * len(names)
        for (method, _), _n, *cells in table[1:]:
            for (text, value), name in zip(cells, names, strict=True):
                row = computed[(computed.preset == preset) & (computed.method == method) & (computed.metric == name)]
                if row.empty:
                    assert (text, value) == ("–", None)
                    continue
                seen += 1
                assert value == float(row["mean"].iloc[0])
                assert text.startswith(number_text(100 * row["mean"].iloc[0], 1))
                spread = row["std"].iloc[0]
                assert (f"± {100 * spread:.1f}" in text) if spread == spread else ("±" not in text)
    assert seen == len(computed) > 10


def test_published_numbers_equal_the_computed_ones(results: CampaignResults) -> None:
    """Ours, the printed value, the difference and the verdict, row by row."""
    (table,) = Tables(page_of(results, "published")).tables
    rows = [row for row in table[1:] if len(row) > 1]
    computed = published.compare(results)
    assert len(rows) == len(computed) > 3
    for shown, row in zip(rows, computed.to_dict(orient="records"), strict=True):
        assert shown[0][0].split()[0] == row["method"]
        assert shown[2][1] == row["mean"]
        assert shown[4] == (row["printed"].replace("-", "−"), row["published"])
        assert shown[5][1] == row["difference"]
        assert shown[7][1] is None if math.isnan(row["smallest_margin"]) else shown[7][1] == row["smallest_margin"]
        assert shown[8][0] == row["verdict"].removeprefix("published ")


def test_footnotes_of_published_values(finished: Any) -> None:
    """Numbers in the source column lead to the list below; rows with an artefact are not counted, and Joint has no verdict."""
    spec = ScenarioSpec(
        name="pcg/task-il@agale-1", summary="pcg", dataset="toy", setting="task-il", labels="multi", performance="average-precision"
    )
    lwf = MethodSpec(name="lwf", summary="lwf", factory="json:loads")
    chosen = {"scenarios": [spec.name], "methods": ["bare", "joint", "ewc", "lwf"]}
    page = page_of(finished(("scenario", spec), ("method", lwf), grid=chosen), "published")
    (table,), (caption,) = Tables(page).tables, Tables(page).captions
    rows = {(cells[0][0], cells[1][0].split()[-1]): cells for cells in table[1:] if len(cells) > 1}
    assert {cells[9][0] for (method, _), cells in rows.items() if method == "bare"} == {"AGALE, table 3 1, 6"}
    assert {cells[9][0] for (method, _), cells in rows.items() if method == "ewc"} == {"AGALE, table 3 3, 4, 5, 6"}
    assert rows["lwf", "average_performance"][9][0] == "AGALE, table 3 4, 6"
    assert rows["lwf", "average_performance"][4] == ("58.12 ± 5", 58.12)
    assert rows["lwf", "backward_transfer"][4] == ("−2.84 ± 2", -2.84)
    assert [cell[0] for cell in rows["joint", "average_performance"][4:10]] == [
        "22.47 ± 0.47",
        "–",
        "–",
        "–",
        "not comparable",
        "AGALE, table 3 2",
    ]
    assert "Of 2 means: 2 no verdict; " in caption
    assert "AGALE's standard deviations are assumed to be over 3 orders of classes, each with its own initialisation." in caption
    assert "5 published values are not counted, for the reasons in the footnotes" in caption
    notes = re.findall(r"<li>AGALE: (.*?)\.</li>", page)
    artefacts, remarks, unit = ("new head", "static graph", "one of the model"), ("arriving classes", "Fisher information"), "(times 100)"
    assert all(told in note for told, note in zip((*artefacts, *remarks, unit), notes, strict=True))


def test_methods_of_a_preset_stand_together(finished: Any) -> None:
    """Whatever the order of the grid: a title per preset."""
    results = finished(grid={"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "ewc"], "axes": {"training.epochs": [3, 4]}})
    groups = [picture.group for picture in show.matrices(results).pictures]
    assert groups == sorted(groups, key=groups.index)
    assert len(dict.fromkeys(groups)) == 2
    assert [a == b for a, b in itertools.pairwise(groups)] == [True, False, True]


@pytest.mark.nightly
def test_nothing_hostile_gets_through(results: CampaignResults) -> None:
    """Title, summaries, reasons and machine names hold a script; the page holds its text."""
    page = page_of(results, *SECTIONS)
    assert_harmless(page)
    assert page.count("&lt;script&gt;alert(") > 5


def test_empty_results_say_so(load: Any, tmp_path: Any) -> None:
    """A campaign of which nothing has run makes a page, not an error."""
    from cglsuite.cells.storage.store import Store

    page = page_of(load(store=Store(tmp_path / "empty")), *SECTIONS)
    assert "No cell of this campaign is finished yet." in texts(page, "p.quiet")
    assert text_of(page, "div.notice > p", "not finished").startswith("This campaign is not finished: 21 missing.")


def test_stale_and_unfinished_are_told_first(load: Any) -> None:
    """Before any number a reader learns that other code made the records, and that some are missing."""
    shown = str(overview(load(source="c" * 64)))
    assert "18 of 18 records are stale" in shown
    assert "not finished: 1 missing" in shown


def test_importing_reports_is_light() -> None:
    """Neither the package nor its command loads what only rendering needs."""
    heavy = "{'torch', 'pandas', 'pydantic', 'papermill', 'nbconvert', 'matplotlib', 'nbformat', 'numpy'}"
    code = f"import sys, cglsuite.reports, cglsuite.cli.commands.report, cglsuite.reports.plugin; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("values", "percent", "bounds"),
    [
        ([[-3.0, np.nan], [-1.5, -2.0]], False, (-3.0, -1.5)),
        ([[2.0, 2.0]], False, (2.0, 2.0)),
        ([[np.nan, np.nan]], False, (0.0, 1.0)),
        ([[0.2, np.nan], [0.5, 0.7]], True, (0.0, 1.0)),
    ],
)
@pytest.mark.parametrize("stream", [{}, {"evaluations": [0, 3], "delivered": [[0, 0], [3, 1]]}])
def test_colours_span_the_values_of_a_matrix(
    monkeypatch: pytest.MonkeyPatch, stream: dict[str, Any], values: Any, percent: bool, bounds: tuple[float, float]
) -> None:
    """Shares from 0 to 1; errors and counts from the least to the most."""
    asked: list[Any] = []
    for name in ("stream_matrix_figure", "matrix_figure"):
        monkeypatch.setattr(show, name, lambda *given, percent, bounds: asked.append((percent, bounds)))
    monkeypatch.setattr(show, "picture", lambda draw, *given, **more: draw(None))
    rows = values if not stream or len(values) == 2 else values * 2
    show._matrix_picture(np.array(rows), "t", "a", percent, "g", stream)
    assert asked == [(percent, bounds)]
