"""For tests of reports: a small campaign with hand-made records, notebooks made on the spot, and a reader of pages.

Two scenarios (one named like a published one), four methods, and a hostile string wherever a plugin may put one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import approved
import fakes
import numpy as np

from cglsuite.base.hashing import digest, plain
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.keys import design_key, torch_version
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, Entry, PluginRecord
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.specs import (
    BackboneSpec,
    DatasetSpec,
    Hyperparameter,
    MethodSpec,
    MetricSpec,
    NotebookSpec,
    PluginSpec,
    ScenarioSpec,
    Seeds,
    switches,
)

__all__ = [
    "CAMPAIGN",
    "EVIL",
    "Elements",
    "Notebooks",
    "Tables",
    "ToyCells",
    "assert_harmless",
    "assert_holds_together",
    "catalogue_of",
    "page_of",
    "page_with",
    "raised_results",
    "record_of",
    "shifted",
    "with_toy_cells",
]

EVIL = '<script>alert("x")</script>'
PLUGIN = PluginRecord(distribution="toy-plugin", version="1.2", entry_point="toy", module="toy", status="ok")
CAMPAIGN: dict[str, Any] = {
    "name": "toy",
    "title": f"A toy campaign {EVIL}",
    "description": "Two scenarios & four methods.",
    "grid": {"scenarios": ["cora/task-il@begin-1", "toy/class-il@cglb-1"], "methods": ["bare", "ewc", "joint", "packnet"]},
    "seeds": {"order": [0, 1, 2], "init": [0, 1, 2]},
    "run": {"device": "cpu"},
}
MATRIX = [[0.5, 0.5, 0.5], [0.9, 0.5, 0.5], [0.8, 0.9, 0.5], [0.7, 0.8, 0.9]]


def _metric(name: str, label: str, direction: Any, **more: Any) -> MetricSpec:
    return MetricSpec(
        name=name,
        summary=f"{name} {EVIL}",
        formula="f(M)",
        label=label,
        direction=direction,
        factory=f"cglsuite.stats.metrics:{name}",
        **more,
    )


def catalogue_of(*extra: tuple[str, PluginSpec], source: str = "a" * 64) -> Catalogue:
    """The toy plugin's catalogue, and ``extra`` entries, over code with this hash."""
    gcn = BackboneSpec(name="gcn", summary="gcn", factory="json:loads")
    strength = Hyperparameter(name="lambda", default=1.0, doc="strength")
    specs: list[tuple[str, PluginSpec]] = [
        ("scenario", ScenarioSpec(name="cora/task-il@begin-1", summary="Cora", dataset="cora", setting="task-il")),
        ("scenario", ScenarioSpec(name="toy/class-il@cglb-1", summary="toy", dataset="toy", setting="class-il", edge_policy="none")),
        ("dataset", DatasetSpec(name="cora", summary="Cora", factory="json:loads")),
        ("dataset", DatasetSpec(name="toy", summary="toy", factory="json:loads")),
        ("backbone", gcn),
        ("method", MethodSpec(name="bare", summary="bare", factory="json:loads")),
        ("method", MethodSpec(name="ewc", summary=EVIL, factory="json:loads", hyperparameters=(strength,))),
        ("method", MethodSpec(name="joint", summary="joint", factory="json:loads")),
        ("method", MethodSpec(name="packnet", summary="packnet", factory="json:loads", settings=("task-il",))),
        ("metric", _metric("average_performance", "AP", "up")),
        ("metric", _metric("forgetting_from_diagonal", "AF (BeGin)", "down", quantity="forgetting")),
        ("metric", _metric("backward_transfer", "AF (CGLB)", "up")),
        ("metric", _metric("intransigence", "INT", "down", needs_joint=True, quantity="intransigence")),
        *extra,
    ]
    entries = [Entry(kind=kind, name=spec.name, spec=spec, record=PLUGIN) for kind, spec in specs]
    return with_toy_cells(Catalogue([PLUGIN], entries), ToyCells(source))


class ToyCells:
    """Real resolving; keys follow from the design, ``source``, the hash of the code, and the device. Nothing can be trained."""

    def __init__(self, source: str = "a" * 64) -> None:
        self.source = source

    def sources(self, cell: Any, _: Any) -> dict[str, dict[str, str]]:
        return {"core": {"name": "core", "distribution": "cglsuite", "version": "0.1.0", "source": self.source}}

    def cell_key(self, cell: Any, _: Any) -> str:
        return digest(["key", design_key(cell), self.source, *(() if cell.device == "cpu" else (cell.device,))])

    def seeded_keys(self, cell: Any, _: Any) -> Callable[[Seeds], str]:
        return lambda seeds: self.cell_key(replace(cell, seeds=seeds), _)

    def prefix_keys(self, cell: Any, _: Any) -> list[str]:
        return []

    def planned_code(self, cells: Any, _: Any) -> dict[str, Any]:
        return {}

    def run_cell(self, *_: Any, **__: Any) -> Record:
        raise AssertionError("nothing is trained in these tests")


def with_toy_cells(catalogue: Catalogue, cells: ToyCells | None = None) -> Catalogue:
    """The catalogue, whose cells are toys from now on (:mod:`fakes`)."""
    vars(catalogue)["fakes"] = cells or ToyCells()
    return catalogue


def record_of(planned: PlannedCell, source: str = "a" * 64, **changes: Any) -> Record:
    """A finished record of a planned cell."""
    from cglsuite.stats import metrics

    cell = planned.cell
    assert cell is not None
    matrix = np.array(changes.pop("matrix", MATRIX))
    names = ("average_performance", "forgetting_from_diagonal", "backward_transfer")
    facts: dict[str, Any] = {
        "key": planned.key,
        "design": design_key(cell),
        "status": "done",
        "cell": {
            "scenario": cell.scenario.name,
            "preset": cell.preset,
            "method": cell.method,
            "backbone": cell.backbone,
            "seeds": plain(cell.seeds),
            "configuration": plain(cell.configuration),
            "threads": cell.threads,
            "device": cell.device,
            "dtype": cell.dtype,
        },
        "scenario": plain({**switches(cell.scenario), "training": switches(cell.scenario.training)}),
        "matrix": matrix,
        "metrics": {name: getattr(metrics, name)(matrix) for name in names} | {"intransigence": None},
        "timings_s": {"training": 8.0, "method": 1.0, "evaluation": 0.5, "framework": 0.5, "total": 10.0},
        "memory": {"peak_bytes": 10**8, "items": 0, "edges": 0, "bytes": 0, "budget_items": None},
        "parameters": {"model": 100, "method": 0},
        "provenance": {
            "plugins": [{"role": "method", "name": cell.method, "distribution": "toy-plugin", "version": "1.2", "source": "b" * 64}],
            "core": {"version": "0.1.0", "source": source},
            "resumed_from_task": 0,
        },
        "environment": {"python": "3.11", "torch": torch_version(), "platform": "Linux", "cpu": EVIL, "cuda": None},
    }
    if changes.get("status", "done") != "done":
        facts |= {"matrix": [], "metrics": {}}
    return Record(**(facts | changes))


NOISE = (-0.012, 0.0, 0.007, 0.004, -0.003)


def raised_results(
    path: Path,
    by: Mapping[str, float],
    orders: int = len(NOISE),
    lambdas: Sequence[float] = (),
    validated: bool = False,
    axes: Mapping[str, Sequence[Any]] | None = None,
    scenarios: Sequence[str] = ("toy/class-il@cglb-1",),
    **wobble: float,
) -> CampaignResults:
    """Results with matrices raised by method, over as many orders as :data:`NOISE` has values unless told otherwise.

    Args:
        lambdas, axes: a sweep; a larger lambda is better on test data and, where ``validated``, worse on validation.
    """
    seeds = {"order": list(range(orders)), "init": list(range(orders))}
    over = {**({"method.lambda": list(lambdas)} if lambdas else {}), **(axes or {})}
    content = CAMPAIGN | {"grid": {"scenarios": list(scenarios), "methods": list(by), "axes": over}, "seeds": seeds}
    catalogue = catalogue_of()
    store = Store(path)
    base = np.array(MATRIX) - 0.2  # the mean of its last row is 60%
    for place, planned in enumerate(plan_campaign(Campaign.parse(content), catalogue, store=store)):
        order, method = planned.request.seeds.order, planned.request.method
        own = wobble.get(method, 0.002) * np.cos(7.0 * place)
        weight = planned.request.overrides.get("method.lambda", 0.0)
        matrix = base + by[method] + NOISE[order] + own + 0.01 * weight
        kept = {"validation_matrix": (matrix - 0.02 * weight).tolist()} if validated else {}
        store.put(record_of(planned, matrix=matrix.tolist(), **kept))
    return load_campaign_results(content, store, catalogue=catalogue)


def shifted(planned: PlannedCell) -> list[list[float]]:
    """A matrix that differs by method and seed, with an entry that could not be asked."""
    method = {"bare": 0.0, "ewc": 0.02, "joint": 0.05, "packnet": 0.01}[planned.request.method]
    matrix = np.array(MATRIX) + method + 0.01 * planned.request.seeds.init
    matrix[1, 2] = np.nan
    return matrix.tolist()


class Notebooks:
    """A package of notebooks on ``sys.path``, and a catalogue that holds them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "toy_notebooks"
        self.folder.mkdir()
        (self.folder / "__init__.py").write_text("")
        self.names: list[str] = []

    def add(self, name: str, *cells: str, parameters: str = "x = 1") -> str:
        """A notebook with a parameters cell and these code cells."""
        import nbformat
        from nbformat.v4 import new_code_cell, new_notebook

        first = new_code_cell(parameters, metadata={"tags": ["parameters"]})
        notebook = new_notebook(cells=[first, *map(new_code_cell, cells)])
        nbformat.write(notebook, self.folder / f"{name}.ipynb")
        self.names.append(name)
        return name

    @property
    def catalogue(self) -> Catalogue:
        """The toy catalogue with these notebooks."""
        specs = [NotebookSpec(name=n, summary=n, path=f"toy_notebooks:{n}.ipynb") for n in self.names]
        return catalogue_of(*(("notebook", spec) for spec in specs))


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


class Tables(HTMLParser):
    """The tables of a page: rows of (text, value) pairs, value being the exact number behind the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.captions: list[str] = []
        self.tables: list[list[list[tuple[str, float | None]]]] = []
        self._text: list[str] | None = None
        self._value: float | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th", "figcaption"}:
            self._text, given = [], dict(attrs).get("data-value")
            self._value = None if given is None else float(given)

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"} and self._text is not None:
            self.tables[-1][-1].append(("".join(self._text), self._value))
        elif tag == "figcaption" and self._text is not None:
            self.captions.append("".join(self._text))
        if tag in {"td", "th", "figcaption"}:
            self._text = None


def page_of(results: Any, *sections: str) -> str:
    """A page with these sections, as a notebook would give them."""
    from cglsuite.reports.results import runs, summary
    from cglsuite.reports.results import summary as overview
    from cglsuite.reports.studies import campaign as page

    homes = (page, summary, overview, runs)
    return page_with(*(next(getattr(home, section) for home in homes if hasattr(home, section))(results) for section in sections))


def page_with(*shown: Any) -> str:
    """A page with these outputs of cells."""
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    from cglsuite.reports.rendering.page import Page, page_html

    bundles = [one._repr_mimebundle_() if hasattr(one, "_repr_mimebundle_") else {"text/html": one._repr_html_()} for one in shown]
    outputs = [new_output("display_data", bundle) for bundle in bundles]
    page = page_html(new_notebook(cells=[new_code_cell("", outputs=outputs)]), Page(title="t"))
    assert_holds_together(page)
    approved.note(page)
    return page


def assert_holds_together(page: str) -> None:
    """Rows are as wide as the heads of their tables, numbers are their exact values rounded, ids are unique, and no list is empty.

    Every element is one of HTML, and what a table or a list holds is what may stand in it.
    """
    from bs4 import BeautifulSoup

    found = BeautifulSoup(page, "html.parser")
    assert {one.name for one in found.find_all(True)} <= _ELEMENTS
    for parents, children in _CHILDREN.items():
        for parent in found.find_all(parents.split()):
            assert {one.name for one in parent.find_all(True, recursive=False)} <= set(children.split()), parent
    for table in found.find_all("table"):
        widths = [[sum(int(str(c.get("colspan", 1))) for c in row.find_all(["td", "th"])), row] for row in table.find_all("tr")]
        assert len({width for width, _ in widths}) <= 1, [(width, row.get_text(" ")) for width, row in widths]
    for cell in found.find_all(attrs={"data-value": True}):
        assert _shows(cell.get_text(" "), float(str(cell["data-value"]))), cell
    ids = [str(one["id"]) for one in found.find_all(id=True)]
    assert len(ids) == len(set(ids)), ids
    empty = [one for one in found.find_all(["ol", "ul", "dl"]) if not one.find(["li", "dt"])]
    assert empty == [], empty[0].parent


_TEXT = {"a", "b", "br", "code", "em", "i", "p", "pre", "samp", "small", "span", "strong", "sub", "sup", "time", "u", "wbr"}
_PARTS = {
    "article",
    "body",
    "details",
    "div",
    "footer",
    "head",
    "header",
    "html",
    "main",
    "meta",
    "nav",
    "section",
    "style",
    "summary",
    "title",
}
_HEADS = {"h1", "h2", "h3", "h4", "h5", "h6", "hr"}
_TABLES = {"caption", "col", "colgroup", "dd", "dl", "dt", "li", "ol", "table", "tbody", "td", "th", "thead", "tr", "ul"}
_PICTURES = {"button", "figcaption", "figure", "img", "label", "picture", "source"}
_FORMS = {"circle", "input", "line", "option", "polyline", "rect", "script", "select", "svg", "text"}
_ELEMENTS = _TEXT | _PARTS | _HEADS | _TABLES | _PICTURES | _FORMS
_CHILDREN = {"tr": "th td", "ul ol": "li", "thead tbody": "tr", "table": "caption colgroup thead tbody tr", "dl": "dt dd div"}


def _shows(text: str, value: float) -> bool:
    """Whether a number of a text is the value, in percent, thousands or millions perhaps, to the digits that are shown, or below it."""
    numbers = re.findall(r"(<\s*)?([+−-]?)(\d[\d,]*)(?:\.(\d+))?(?:e([+−-]?\d+))?", text)
    if not np.isfinite(value):
        return not numbers
    for less, sign, whole, decimals, power in numbers:
        unit = 10.0 ** int((power or "0").replace("−", "-"))
        shown = float(whole.replace(",", "") + "." + (decimals or "0")) * unit * (-1 if sign in ("−", "-") else 1)
        half = 0.5000001 * unit * 10.0 ** -len(decimals) + 1e-12 * abs(shown)
        if (sign != "+" or value >= 0) and any(abs(scale * value - shown) <= half for scale in (1.0, 100.0, 1e-3, 1e-6)):
            return True
        if less and value < shown:
            return True
    return False


def assert_harmless(page: str) -> None:
    """No script but that of figures, no handler, no style from elsewhere, and nothing that a browser would fetch."""
    from bs4 import BeautifulSoup

    from cglsuite.reports.rendering.page import asset

    assert [script.get_text() for script in BeautifulSoup(page, "html.parser").find_all("script")] in ([], [asset("figures.js")])
    for tag, attributes in Elements(page).found:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form", "svg", "audio", "video"}, tag
        assert not [name for name in attributes if name.startswith("on") or name == "style"], attributes
        for name in ("src", "srcset"):
            assert (attributes.get(name) or "data:image/").startswith("data:image/"), attributes
        assert not (attributes.get("href") or "").lower().startswith("javascript"), attributes
        if tag == "meta":
            assert attributes.get("http-equiv") in {None, "Content-Security-Policy"}
    styles = page.split("<style>")[1:]
    assert len(styles) == 1
    assert "@import" not in styles[0].split("</style>")[0]
    assert "url(" not in styles[0].split("</style>")[0]


fakes.install()
