"""Explore a study in a notebook. Choose the scenario, the methods and the seeds, and view matrices, curves and tables."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import CglsuiteError, UsageError
from cglsuite.cells.observing import Epoch, ObservedCell, Observer
from cglsuite.study.study import Study, run

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.cells.records.record import Record
    from cglsuite.learning import Method
    from cglsuite.reports.kit.pictures import Gallery


VIEWS = ("matrices", "curves", "numbers")
_MAX_SEEDS = 20
_COLUMNS = ("method", "order_seed", "init_seed", "average_performance", "forgetting_max", "total_s")


def explore(
    scenario: str = "synthetic-csbm/class-il@example-1",
    methods: str | type[Method] | Sequence[str | type[Method]] = ("bare", "er-gnn", "joint"),
    *,
    data: Any = None,
    orders: int = 1,
    seeds: int = 1,
    backbone: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
) -> Explorer:
    """Run methods on a scenario and explore the results in a notebook, with controls for the scenario, the methods and the seeds.

    The controls need ``cglsuite[jupyter]``. Without it, and in static pages or front ends without widgets, only the figures appear.

    Args:
        scenario: see ``cglsuite list scenarios``; with ``data``, the part after the slash. methods: one or more names or classes.
        data, orders, seeds, backbone, overrides, store: see :func:`cglsuite.run`.

    Raises:
        UsageError: see :func:`cglsuite.run`.
        DataError: the data is inconsistent.
    """
    names = [methods] if isinstance(methods, (str, type)) else list(methods)
    fixed = {"data": data, "backbone": backbone, "overrides": overrides, "store": store}
    return Explorer(scenario, names, orders=orders, seeds=seeds, fixed=fixed)


class Explorer:
    """The result of :func:`explore`: a study with controls.

    Attributes:
        study: the study that is shown. choice: its scenario, methods, orders and seeds. fixed: settings without a control.
    """

    def __init__(self, scenario: str, methods: Sequence[str | type[Method]], *, orders: int, seeds: int, fixed: Mapping[str, Any]) -> None:
        self.fixed = dict(fixed)
        self.classes = {method.__name__: method for method in methods if not isinstance(method, str)}
        self.panel: Any = None
        self.study = self._run(scenario, methods, orders, seeds)
        self.choice: dict[str, Any] = {"scenario": scenario, "methods": list(methods), "orders": orders, "seeds": seeds}

    def __repr__(self) -> str:
        return repr(self.study)

    def choose(self, **choices: Any) -> Explorer:
        """Run a different choice and display it here.

        Args:
            choices: ``scenario``, ``methods`` (a list), ``orders``, ``seeds``; anything left out stays as it is.

        Raises:
            UsageError: an unknown name; see also :func:`cglsuite.run`.
        """
        if unknown := sorted(set(choices) - set(self.choice)):
            raise UsageError(f"unknown options of the explorer: {', '.join(unknown)}; expected any of {', '.join(self.choice)}")
        wanted = {**self.choice, **choices}
        self.study = self._run(wanted["scenario"], wanted["methods"], wanted["orders"], wanted["seeds"])
        self.choice = wanted
        return self

    def _run(self, scenario: str, methods: Sequence[str | type[Method]], orders: int, seeds: int) -> Study:
        watching = [] if self.panel is None else [self.panel.progress]
        fixed = {name: value for name, value in self.fixed.items() if name != "data"}
        return run(methods, self.fixed["data"], scenario, orders=orders, seeds=seeds, progress=False, observers=watching, **fixed)

    # --- what is shown -----------------------------------------------------------------------------------------------------------

    @property
    def frame(self) -> pd.DataFrame:
        """The main columns of the study's data frame, one row per cell."""
        frame = self.study.frame
        return frame[[name for name in _COLUMNS if name in frame.columns]]

    def figures(self) -> Gallery:
        """Draw the study's matrices, then its curves."""
        from cglsuite.reports.kit.pictures import Gallery

        shown = [gallery for gallery in (self.study.matrices(), self.study.curves()) if isinstance(gallery, Gallery)]
        return Gallery(tuple(picture for gallery in shown for picture in gallery.pictures))

    def view(self, name: str) -> str:
        """Render one of :data:`VIEWS` as HTML."""
        if name == "numbers":
            return self.study._repr_html_()
        gallery = self.study.matrices() if name == "matrices" else self.study.curves()
        bundle = getattr(gallery, "_repr_mimebundle_", None)
        return str(bundle()["text/html"] if bundle else gallery)

    def status(self) -> str:
        """Count the cells in each state, and explain why some have no result."""
        states = self.study.outcome.counts
        total = sum(states.values())
        counts = f"{total:,} cell{'' if total == 1 else 's'}: {', '.join(f'{n:,} {state}' for state, n in states.items())}"
        return ". ".join([counts, *self.study.reasons])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the controls for front ends that support widgets, and figures for all others."""
        figures = self.figures()
        if figures.pictures:
            static = figures._repr_mimebundle_()
            static["text/html"] = f"{static['text/html']}{self.view('numbers')}"
        else:
            static = {"text/plain": self.status(), "text/html": f"<p>{html.escape(self.status())}</p>"}
        if (widgets := _widgets()) is None:
            return static
        if self.panel is None:
            self.panel = _Panel(self, widgets)
        controls = self.panel.box._repr_mimebundle_() or {}
        return static | {kind: content for kind, content in controls.items() if kind.startswith("application/")}


def _widgets() -> Any:
    """Return the module ``ipywidgets``, or ``None`` if it is not installed."""
    try:
        import ipywidgets
    except ImportError:
        return None
    return ipywidgets


class _Panel:
    """The controls and the current view. Callbacks run in the kernel's main thread, one at a time."""

    def __init__(self, explorer: Explorer, widgets: Any) -> None:
        self.explorer = explorer
        choice, catalogue = explorer.choice, explorer.study.catalogue
        own_data = explorer.fixed["data"] is not None
        self.names = sorted({name.partition("/")[2] if own_data else name for name in catalogue.names("scenario")})
        at_first = [method if isinstance(method, str) else method.__name__ for method in choice["methods"]]
        offered = list(dict.fromkeys([*at_first, *explorer.classes, *catalogue.names("method")]))  # selected ones first
        wide = widgets.Layout(width="32rem", max_width="100%")
        counted = {"min": 1, "max": _MAX_SEEDS, "layout": widgets.Layout(width="11rem")}
        self.scenario = widgets.Text(
            value=choice["scenario"], description="scenario", layout=wide, tooltip="filter the scenarios below by words, or type a name"
        )
        self.found = widgets.Select(options=self.names, value=None, rows=6, description=" ", layout=wide)
        self._filter()
        self.scenario.observe(lambda _: self._filter(), names="value")
        self.found.observe(self._on_search, names="value")
        self.methods = widgets.SelectMultiple(
            value=at_first,
            options=offered,
            rows=8,
            description="methods",
            layout=wide,
            tooltip="hold Ctrl or Shift to choose several",
        )
        self.orders = widgets.BoundedIntText(value=choice["orders"], description="orders", **counted)
        self.seeds = widgets.BoundedIntText(value=choice["seeds"], description="seeds", **counted)
        self.button = widgets.Button(description="Run", button_style="primary", tooltip="train missing cells and show the results")
        self.views = widgets.ToggleButtons(options=VIEWS, value=VIEWS[0])
        self.said = widgets.HTML()
        self.shown = widgets.HTML()
        self.progress = _Progress(self.said)
        self.button.on_click(self._on_run)
        self.views.observe(lambda _: self._show(), names="value")
        row = widgets.HBox([self.orders, self.seeds, self.button], layout=widgets.Layout(flex_flow="row wrap"))
        self.box = widgets.VBox([self.scenario, self.found, self.methods, row, self.said, self.views, self.shown])
        self._show()

    def _show(self) -> None:
        self.said.value = html.escape(self.explorer.status())
        self.shown.value = self.explorer.view(self.views.value)

    def _filter(self) -> None:
        """List the scenarios that contain every typed word; if the text is a full name, list all scenarios and select that one."""
        typed = self.scenario.value.strip()
        known = typed in self.names
        self.filtering = True  # new options briefly select the first entry
        self.found.options = [name for name in self.names if known or all(word in name for word in typed.split())]
        self.found.value = typed if known else None
        self.filtering = False

    def _on_search(self, change: Any) -> None:
        if change["new"] is not None and not self.filtering:
            self.scenario.value = change["new"]

    def _on_run(self, _: Any) -> None:
        """Run the choice; if it cannot run, keep the current results on screen and say why."""
        self.button.disabled = True
        self.said.value = "Reading the data ..."
        try:
            methods = [self.explorer.classes.get(name, name) for name in self.methods.value]
            self.explorer.choose(scenario=self.scenario.value.strip(), methods=methods, orders=self.orders.value, seeds=self.seeds.value)
            self._show()
        except CglsuiteError as error:
            self.said.value = f"<b>Not run.</b> {html.escape(str(error))}"
        finally:
            self.button.disabled = False


class _Progress(Observer):
    """Show training progress in a widget."""

    changes_nothing = True

    def __init__(self, message: Any) -> None:
        super().__init__()
        self.said = message

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        """Show the latest epoch."""
        last = epochs[-1]
        self.said.value = html.escape(f"{cell.label}: {cell.position(last.task, last.epoch)}")

    def cell_ended(self, cell: ObservedCell, record: Record | None) -> None:
        """Show the cell's status."""
        self.said.value = html.escape(f"{cell.label}: {'interrupted' if record is None else record.status}")
