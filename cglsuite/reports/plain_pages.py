"""The pages that are not made from a notebook: the index of a campaign's reports, and what stands in the place of a failed one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from nbformat.v4 import new_code_cell, new_notebook, new_output

from cglsuite.reports.markup import Content, element, join
from cglsuite.reports.page import Page, page_html
from cglsuite.reports.text import plain_text

if TYPE_CHECKING:
    from cglsuite.cells.campaign import Campaign
    from cglsuite.reports.job import Outcome
    from cglsuite.reports.render import RenderedReport

__all__ = ["failure_html", "index_html"]


def failure_html(title: str, notebook: str, outcome: Outcome) -> str:
    """A page that cannot be taken for a report: what failed, why, and the failing cell in plain text."""
    details = element("pre", plain_text(outcome.details), class_="error", tabindex=0) if outcome.details else None
    told = element("p", element("strong", "This report failed.")), element("p", plain_text(outcome.reason))
    notice = element("div", *told, class_="notice bad", role="alert")
    return _page(f"FAILED: {title}", "failed", element("h1", title), notice, details, footer=(f"Notebook {notebook}; failed {_now()}.",))


def index_html(campaign: Campaign, reports: Sequence[RenderedReport]) -> str:
    """Links to the reports of a campaign, with what became of each."""
    rows = [
        element(
            "tr",
            element("th", element("a", report.path.stem, href=report.path.name), scope="row", class_="name"),
            element("td", element("span", report.status, class_=f"badge {'good' if report.done else 'bad'}")),
            element("td", f"{report.seconds:.0f} s", class_="number"),
            element("td", plain_text(report.reason), class_="long"),
        )
        for report in reports
    ]
    head = element("tr", *(element("th", text, scope="col") for text in ("report", "state", "rendered in", "reason")))
    table = element("div", element("table", element("thead", head), element("tbody", *rows)), class_="scroll", tabindex=0)
    title = campaign.title or campaign.name
    status: Literal["done", "failed"] = "done" if all(report.done for report in reports) else "failed"
    parts = [element("h1", title), element("p", campaign.description) if campaign.description else None, table]
    return _page(title, status, *parts, footer=(f"Campaign {campaign.name}; written {_now()}.",))


def _page(title: str, status: Literal["done", "failed"], *parts: Content, footer: tuple[str, ...]) -> str:
    output = new_output("display_data", {"text/html": join(parts).source})  # type: ignore[no-untyped-call]
    notebook = new_notebook(cells=[new_code_cell("", outputs=[output])])  # type: ignore[no-untyped-call]
    return page_html(notebook, Page(title=title, status=status, footer=footer))


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
