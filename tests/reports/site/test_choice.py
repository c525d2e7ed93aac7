"""Which notebooks report on a campaign, and what their pages are called."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_lab import Notebooks, catalogue_of

from cglsuite.campaigns.campaign import Campaign, Report
from cglsuite.reports.site.index import _page_names, _rendered_reports
from cglsuite.specs import NotebookSpec

TEXT = 'name = "x"\n[grid]\nscenarios = ["s"]\nmethods = ["m"]\n'


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Notebooks with and without a parameter ``campaign``, one that only people run, and one whose file is broken."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Notebooks(tmp_path)
    for name in ("campaign_report", "of_campaigns", "for_people"):
        made.add(name, parameters="campaign = ''")
    made.add("of_records", parameters="record = ''")
    made.add("broken")
    (made.folder / "broken.ipynb").write_text("{")
    specs = [
        NotebookSpec(name=name, summary=name, path=f"toy_notebooks:{name}.ipynb", interactive=name == "for_people") for name in made.names
    ]
    yield catalogue_of(*(("notebook", spec) for spec in specs))
    monkeypatch.delitem(__import__("sys").modules, "toy_notebooks", raising=False)


def chosen(books: Any, text: str, every: bool) -> list[str]:
    return [report.notebook for report in _rendered_reports(Campaign.parse(tomllib.loads(TEXT + text)), books, every)]


def test_the_reports_of_a_campaign(books: Any) -> None:
    """Those that it names, else one; with all others that take a campaign, each once. A broken one is rendered to show its fault."""
    assert chosen(books, "", False) == ["campaign_report"]
    two = '[[report]]\nnotebook = "of_campaigns"\n[[report]]\nnotebook = "of_campaigns"\n'
    assert chosen(books, two, False) == ["of_campaigns", "of_campaigns"]
    assert chosen(books, "", True) == ["campaign_report", "broken", "of_campaigns"]
    assert chosen(books, two, True) == ["of_campaigns", "of_campaigns", "broken", "campaign_report"]


def test_names_of_pages() -> None:
    """Of a notebook that is rendered several times, the later ones are numbered; signs that no file should have are replaced."""
    given = ["a", "b/c d", "a", "..a", "...", "a", "a-2"]
    names = _page_names([Report(notebook=name) for name in given])
    assert names == ["a.html", "b-c-d.html", "a-2.html", "a-3.html", "report.html", "a-4.html", "a-2-2.html"]
