"""A page's reading order: results first, sections without content left out by name, code and logs at the end."""

from __future__ import annotations

from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from page_elements import texts

from cglsuite.reports.kit.pictures import Gallery
from cglsuite.reports.kit.tables import empty
from cglsuite.reports.rendering.page import Page, arrange, page_html


def shown(html: str) -> Any:
    return new_output("display_data", {"text/html": html})


NOTHING = shown(empty("No cell has a result & more.").source)
NO_FIGURES = new_output("display_data", dict(Gallery(())._repr_mimebundle_()))
TABLE = shown("<table><tr><td>1</td></tr></table>")
LOG = new_output("stream", name="stderr", text="training 3 cells")


def code(source: str, *outputs: Any, tags: tuple[str, ...] = ()) -> Any:
    return new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)} if tags else {})


def page_of(*cells: Any) -> str:
    return page_html(new_notebook(cells=list(cells)), Page(title="t"))


def test_results_come_first_and_code_last() -> None:
    """No code, parameters or logs stand before the last result; their folded blocks carry the titles of their sections."""
    cells = [new_markdown_cell("# Report"), code("a = 1", tags=("parameters",)), code("a = 2", tags=("injected-parameters",))]
    page = page_of(*cells, code("draw()", LOG, TABLE), new_markdown_cell("## Second\n\nText."), code("more()", TABLE))
    last_table, made = page.rindex("</table>"), page.index('id="how-this-page-was-made"')
    assert last_table < made < page.index('<details class="source"')
    summaries = texts(page, "section.made summary")
    assert summaries[0] == "The code of this page, in the order of its sections"
    assert summaries[1:] == ["default parameters", "parameters of this page", "Report", "Second", "log 1, Report"]
    assert texts(page, 'a[href="#log-1"]') == ["log 1"]
    assert "training 3 cells" in texts(page, "#log-1 pre")[0]


def test_a_table_of_a_cell_tagged_fold_is_folded() -> None:
    """However short it is; a sentence that there is nothing to show is not."""
    open_table, folded = (page_of(new_markdown_cell("# Report"), code("draw()", TABLE, tags=tags)) for tags in ((), ("fold",)))
    assert texts(folded, "details.output > summary") == ["Table, 1 row"]
    assert texts(open_table, "details.output > summary") == []


HEAD = "<thead><tr><th>method</th><th>AP</th></tr></thead>"
ROW = f"<table>{HEAD}<tbody><tr><td>1</td></tr></tbody></table>"


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (f"<table>{HEAD}<tbody>{'<tr><td>1</td></tr>' * 40}</tbody></table>", "Table by method, 40 rows"),
        (
            "".join(
                f"<figure><figcaption><strong>{name}</strong>: AP</figcaption>{ROW}</figure>" for name in ("task-IL", "class-IL", "time-IL")
            ),
            "3 tables: task-IL; class-IL; and 1 more",
        ),
        (
            "".join(
                f"<details><summary><strong>{name}</strong>: 2 pairs differ</summary>{TABLE.data['text/html']}</details>"
                for name in range(40)
            ),
            "0; 1; and 38 more",
        ),
    ],
)
def test_a_fold_says_what_it_holds(content: str, title: str) -> None:
    folded = page_of(new_markdown_cell("# Report"), code("draw()", shown(content), tags=("fold",)))
    assert texts(folded, "details.output > summary") == [title]


@pytest.mark.parametrize(
    ("outputs", "kept"),
    [
        ((NOTHING,), False),
        ((NOTHING, LOG), False),
        ((NOTHING, NO_FIGURES, NOTHING), False),
        ((), False),
        ((NOTHING, TABLE), True),
        ((new_output("stream", name="stdout", text="printed"),), True),
        ((new_output("error", ename="E", evalue="v", traceback=["t"]),), True),
    ],
)
def test_a_section_without_content_is_left_out_with_its_reason(outputs: tuple[Any, ...], kept: bool) -> None:
    """Tables, prints and errors keep a section; empty-result notes and logs do not. What is left out is listed."""
    section = [new_markdown_cell("## Shown\n\ntext"), code("f()", *outputs)]
    page = page_of(new_markdown_cell("# R"), *section, new_markdown_cell("## Text only"))
    assert ("Shown" in " ".join(texts(page, "h2"))) is kept
    assert "Text only" in " ".join(texts(page, "h2"))
    listed = texts(page, "section.made li")
    assert bool(listed) is not kept
    if NOTHING in outputs and not kept:
        assert listed == ["Shown: No cell has a result & more."]


def test_a_heading_stays_for_the_sake_of_its_subsections() -> None:
    """An empty section with a subsection that shows something keeps its heading; an empty subsection goes alone."""
    cells = [new_markdown_cell("## Above"), code("f()", NOTHING), new_markdown_cell("### Full"), code("g()", TABLE)]
    arranged = arrange([*cells, new_markdown_cell("### Hollow"), code("h()", NOTHING), new_markdown_cell("## Next"), code("i()", TABLE)])
    assert [section.title for section in arranged.left_out] == ["Hollow"]


def test_hidden_code_stays_hidden() -> None:
    """A cell tagged ``hide-input`` is in no list of sources."""
    assert arrange([code("secret()", TABLE, tags=("hide-input",))]).sources == ()
