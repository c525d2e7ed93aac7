"""The page shown in place of a failed report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nbformat.v4 import new_code_cell, new_notebook, new_output

from cglsuite.base.markup import element, join
from cglsuite.reports.kit.text import plain_text
from cglsuite.reports.rendering.page import Page, page_html

if TYPE_CHECKING:
    from cglsuite.reports.rendering.job import Outcome

__all__ = ["failure_html"]


def failure_html(title: str, notebook: str, outcome: Outcome) -> str:
    """A page that cannot be mistaken for a report: what failed, why, and the failing cell in plain text."""
    details = element("pre", plain_text(outcome.details), class_="error", tabindex=0) if outcome.details else None
    lines = element("p", element("strong", "This report failed.")), element("p", plain_text(outcome.reason))
    notice = element("div", *lines, class_="notice bad", role="alert")
    output = new_output("display_data", {"text/html": join([element("h1", title), notice, details]).source})  # type: ignore[no-untyped-call]
    page = new_notebook(cells=[new_code_cell("", outputs=[output])])  # type: ignore[no-untyped-call]
    stamp = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return page_html(page, Page(title=f"FAILED: {title}", status="failed", footer=(f"Notebook {notebook}; failed {stamp}.",)))
