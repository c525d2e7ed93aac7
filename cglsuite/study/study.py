"""Run a study in one call: methods × scenarios × seeds, in worker processes. Show the results as tables, plots, tests or a report."""

from __future__ import annotations

import contextlib
import json
import logging
import operator
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.inputs import quoted
from cglsuite.base.markup import displayed
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.executors.campaign_run import CampaignOutcome, run_campaign
from cglsuite.cells.observing import Observer
from cglsuite.cells.records.record import shown_reason
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.files.given import data_warnings
from cglsuite.graphs.files.named import named
from cglsuite.host import load_catalogue
from cglsuite.learning import Method
from cglsuite.specs import DatasetSpec, metric_named
from cglsuite.study.classes import MethodFile, as_plugin_file, unsent_changes
from cglsuite.study.data import LIBRARIES, as_data_file, options_by_name

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.cells.portable import NumericsChoice
    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue
    from cglsuite.reports import CampaignResults, RenderedReport
    from cglsuite.reports.kit.pictures import ShownFigure
    from cglsuite.reports.site.downloads import ResultsTable
    from cglsuite.reports.studies.comparison.compute import Comparison


logger = logging.getLogger(__name__)

_WRITTEN = "# Written by cglsuite.Study.report, which replaces this file.\n"
_ANSWER = ("first", "second", "verdict", "estimate", "low", "high", "p_adjusted", "n", "scenario")
"""The columns of :meth:`Study.compare` shown by default."""


def run(
    methods: str | type[Method] | Sequence[str | type[Method]],
    data: Any = None,
    protocol: str | Sequence[str] = "class-il@cglb-1",
    *,
    orders: int = 1,
    seeds: int = 1,
    backbone: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    name: str = "",
    workers: int = 1,
    device: str = "auto",
    numerics: NumericsChoice = "auto",
    store: str | Path | None = None,
    read: Sequence[str | Path] = (),
    progress: bool = True,
    observers: Sequence[str | Observer | type[Observer]] = (),
    **data_options: Any,
) -> Study:
    """Run methods on data under one or several protocols. Cells that already have a result in the store are not run again.

    Args:
        methods: one or several names of methods (``cglsuite list methods``) or classes derived from :class:`cglsuite.Method`.
        data: the name of a data set; a path to an npz, a folder of CSV tables or a saved PyG ``Data``; or in-memory data: a PyG
            ``Data``, a list of them, a PyG dataset, a :class:`cglsuite.graphs.NodeData`, ``LinkData`` or ``GraphData``, or a dict of
            arrays. If ``None``, ``protocol`` must be the full name of a scenario.
        protocol: one or several of ``"<setting>@<protocol>"``.
        orders: number of repetitions, each with a different class or task order and a different initialisation. If the protocol fixes the
            order, repetitions differ only in initialisation. seeds: initialisations per order; more than one are crossed with the orders.
        backbone: replaces the protocol's backbone.
        overrides: values by dotted name, such as ``{"training.epochs": 50, "method.lambda": 1e3}``; each applies to cells that declare it.
        name: a name for data that has none.
        workers: number of worker processes. device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        numerics: ``"portable"`` gives bit-identical results on every x86-64 processor with AVX2 (see :mod:`cglsuite.cells.portable`).
            ``"native"`` uses the kernels that the libraries choose. ``"auto"`` is portable on a CPU with AVX2, otherwise native.
        store: the folder of records; default ``$CGLSUITE_STORE``, or else ``./.cglsuite``. read: further stores whose results are reused;
            they are opened read-only. Default ``$CGLSUITE_READ``.
        progress: whether to show progress on a terminal or in a notebook.
        observers: notified of epochs and tasks during runs: objects or classes derived from :class:`cglsuite.cells.Observer`, or names as
            in ``--watch`` (``"csv"``, ``"tensorboard=logs"``). They run in this process.
        data_options: how to read what the data does not specify: ``id``, ``labels``, ``unlabelled``, ``time_unit``, ``keys`` (see
            :class:`cglsuite.graphs.files.options.FileOptions`).

    Raises:
        UsageError: a name is unknown, or data or methods have a form that is not listed above.
        DataError: the data is inconsistent.

    Example:
        >>> study = run(["bare", "er-gnn"], "synthetic-csbm", "class-il@cglb-1", orders=3)  # doctest: +SKIP
        >>> study.compare()  # doctest: +SKIP
    """
    wanted = _several("methods", methods, (str, type), "the name of a method, a class derived from cglsuite.Method, or a list of them")
    if not wanted:
        raise UsageError("methods is empty: expected at least one name or class")
    protocols = _several("protocol", protocol, str, "text such as 'class-il@cglb-1', or a list of it")
    observing = _several("observers", observers, (str, type, Observer), "an observer, its name, or a list of them")
    orders, seeds, workers = _count("orders", orders), _count("seeds", seeds), _count("workers", workers)
    changes = _overrides(overrides)
    if not isinstance(name, str):
        raise UsageError(f"name = {quoted(name)}: expected text")
    memory: dict[Any, str] = {}
    prepared = [item if isinstance(item, str) else as_plugin_file(item, memory) for item in wanted]
    classes = [item for item in prepared if not isinstance(item, str)]
    if classes and (left := unsent_changes(module for item in classes for module in item.modules)):
        logger.warning(
            "workers load the current files and will not see these changes: %s. Reload edited modules to see here what is trained, and "
            "move your changes into the method or a module that it imports",
            ", ".join(left),
        )
    names = [item if isinstance(item, str) else item.name for item in prepared]
    plugins = [item.path for item in classes]
    folders = list(dict.fromkeys(folder for item in classes for folder in item.folders))
    known = isinstance(data, str) and not data.startswith(LIBRARIES) and not Path(data).exists()
    files = [] if data is None or known else [as_data_file(data, name)]
    options = options_by_name(files, data_options)
    with _registered_files(files, plugins, folders, options):
        catalogue = load_catalogue()
        for warning in data_warnings(catalogue.specs(DatasetSpec).values()):
            logger.warning("%s", warning)
        if data is None:
            scenarios = protocols
        else:
            dataset = data if known else next(r.provides["dataset"][0] for r in catalogue.records if r.source == files[0])
            scenarios = [f"{dataset}/{p}" for p in protocols]
        content = {
            "name": "study",
            "title": f"{', '.join(names)} on {', '.join(scenarios)}",
            "plugins": [str(path) for path in plugins],
            "data": [str(path) for path in files],
            "data_options": options,
            "grid": {"scenarios": scenarios, "methods": names, "backbones": [backbone] if backbone else []},
            "seeds": _seeds(orders, seeds),
            "set": changes,
            "run": {"workers": workers, "device": device} | ({} if numerics == "auto" else {"numerics": numerics}),
            "report": [{"notebook": "method_comparison"}],
        }
        campaign, records = Campaign.parse(content), Store(store, read=read or None)
        outcome = run_campaign(campaign, catalogue, records, progress=progress, watch=observing)
    return Study(
        content=content,
        campaign=campaign,
        catalogue=catalogue,
        store=records,
        outcome=outcome,
        folders=tuple(folders),
        classes=tuple(classes),
    )


def _several(name: str, value: Any, item_type: type | tuple[type, ...], expected: str) -> list[Any]:
    """Return ``value`` as a list: a single item, or several in a list, tuple or similar sequence."""
    if isinstance(value, item_type):
        return [value]
    if not isinstance(value, Iterable) or isinstance(value, (Mapping, bytes)):
        raise UsageError(f"{name} = {quoted(value)}: expected {expected}")
    return list(value)


def _count(name: str, value: Any) -> int:
    """Return ``value`` as an integer of at least 1; NumPy integers are accepted."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise UsageError(f"{name} = {quoted(value)}: expected a whole number from 1")
    return number


def _overrides(values: Any) -> dict[str, Any]:
    """Return values by dotted name, with NumPy scalars converted to numbers."""
    if not isinstance(values, Mapping | None) or not all(isinstance(name, str) for name in values or {}):
        raise UsageError(f"overrides = {quoted(values)}: expected values by dotted name, such as {{'training.epochs': 50}}")
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in (values or {}).items()}


def _seeds(orders: int, seeds: int) -> dict[str, Any]:
    if seeds == 1:
        return {"order": list(range(orders)), "init": list(range(orders))}
    return {"design": "cross", "order": list(range(orders)), "init": list(range(seeds))}


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """The result of :func:`run`: a campaign and its outcome.

    Attributes:
        campaign: the study as a campaign; :meth:`report` writes it to a file that ``cglsuite run`` accepts.
        store: the store that holds the records.
        outcome: the outcome of every cell.
    """

    content: Mapping[str, Any] = field(repr=False)
    campaign: Campaign
    catalogue: Catalogue = field(repr=False)
    store: Store = field(repr=False)
    outcome: CampaignOutcome = field(repr=False)
    folders: tuple[Path, ...] = field(repr=False, default=())
    classes: tuple[MethodFile, ...] = field(repr=False, default=())

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {state}" for state, n in self.outcome.counts.items())
        return f"<Study of {self.campaign.title}: {counts}>"

    def __str__(self) -> str:
        """Return the findings as text: every method's mean and interval in each scenario, then the pairwise tests.

        Example:
            >>> print(run(["bare", "er-gnn"], "synthetic-csbm", "class-il@cglb-1", orders=5))  # doctest: +SKIP
        """
        from cglsuite.reports.studies.comparison.compute import summary

        found = ["\n".join(summary(comparison)) for comparison in self.comparisons() if comparison.methods] if self.results.used else []
        return "\n\n".join([repr(self)[1:-1], *found, *(["\n".join(self.reasons)] if self.reasons else [])])

    def _repr_html_(self) -> str:
        return displayed("study_card", self)

    @cached_property
    def reasons(self) -> list[str]:
        """Explain, in one line per method and reason, why cells have no result. The list is empty if every cell has one."""
        said = Counter((cell.planned.request.method, cell.reason) for cell in self.results.cells if not cell.done)
        return [f"{method}: {shown_reason(reason)}" + (f" ({n} cells)" if n > 1 else "") for (method, reason), n in said.items() if reason]

    def why(self) -> str:
        """Explain why the cells of method classes were trained again or loaded from the store.

        Lists what changed in each class, its globals and its modules since a class with that name was last used, and which results depend
        on different files or variables than the first.

        Example:
            >>> print(run(MyMethod, "synthetic-csbm").why())  # doctest: +SKIP
            my-method: new key: CFG changed
        """
        if not self.classes:
            return "no method was passed as a class: the keys of installed methods are computed from their sources"
        lines = []
        for file in self.classes:
            lines.append(f"{file.name}: {f'new key: {file.news}' if file.news else 'unchanged, so its key is as it was'}")
            read = [record.provenance.get("inputs", {}) for record in self.records if record.cell["method"] == file.name]
            if second := [inputs for inputs in read if "first_key" in inputs]:
                names = sorted({name for inputs in second for kind in ("files", "variables") for name in inputs.get(kind, ())})
                lines[-1] += f"; but its inputs ({', '.join(names)}) have changed since they were first read, so it has a second key"
        return "\n".join(lines)

    @cached_property
    def results(self) -> CampaignResults:
        """The records in the form that reports use."""
        from cglsuite.reports import load_campaign_results

        with self._files():
            return load_campaign_results(self.campaign, self.store, catalogue=self.catalogue)

    @property
    def records(self) -> list[Record]:
        """The records of finished cells."""
        return self.results.records

    @property
    def frame(self) -> pd.DataFrame:
        """A data frame with one row per cell: names, seeds, status, reason, every metric, seconds, memory and configuration.

        ``status`` is ``done`` for cells with a result. Every other cell also has a row, with a ``reason`` and without metrics.
        """
        import pandas as pd

        from cglsuite.cells.records.frame import results_frame

        done = self.results.frame
        counted = set(done["key"])
        others = [cell for cell in self.results.cells if cell.planned.key not in counted]
        recorded = results_frame([cell.record for cell in others if cell.record is not None])
        planned = [
            {
                "scenario": cell.planned.request.scenario,
                "method": cell.planned.request.method,
                "backbone": cell.planned.backbone,
                **{f"{axis}_seed": getattr(cell.planned.request.seeds, axis) for axis in ("order", "split", "init")},
                "status": cell.state,
                "reason": cell.reason,
                "key": cell.planned.key,
            }
            for cell in others
            if cell.record is None
        ]
        parts = [part for part in (done, recorded, pd.DataFrame(planned)) if len(part)]
        frame = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0] if parts else done
        return frame.assign(reason=frame["reason"].map(shown_reason, na_action="ignore"))

    @property
    def long(self) -> pd.DataFrame:
        """A data frame with one row per finished cell, stage and task, for custom plots and statistics; see
        :func:`cglsuite.cells.records.frame.long_frame`.
        """
        from cglsuite.cells.records.frame import long_frame

        return long_frame(self.records)

    def means(self, metric: str = "average_performance") -> pd.DataFrame:
        """Return the number of units, mean, standard deviation and 95% interval of a metric for each scenario and method.

        Raises:
            UsageError: no cell has a result, or the metric is unknown; the message lists the available metrics.
        """
        import pandas as pd

        from cglsuite.reports.studies.comparison import compute

        return pd.concat(
            [compute.means(comparison).assign(scenario=comparison.name) for comparison in self.comparisons(metric=metric)],
            ignore_index=True,
        )

    def compare(
        self,
        metric: str = "average_performance",
        *,
        against: str = "",
        test: str = "t",
        adjustment: str = "holm",
        details: bool = False,
    ) -> pd.DataFrame:
        """Test every pair of methods over orders, seeds, or orders crossed with seeds, adjusted for the number of comparisons.

        With one seed (or one order), a verdict applies only to that seed (or order) and states this.

        Args:
            metric: the metric's name. against: compare all other methods with this one; empty: compare all pairs.
            test: one of :data:`cglsuite.stats.TESTS`, which gives the verdicts. adjustment: one of :data:`cglsuite.stats.ADJUSTMENTS`.
            details: add the statistic, degrees of freedom, effect size, unadjusted p, design and the reason why a pair could not be tested.
            Columns with the prefix ``beside_`` hold the same quantities for the second test, which does not decide the verdict: Welch's
            test or, if Welch's decides, the test of the design.

        Returns:
            One row per scenario and pair with the verdict, the difference of the means (first minus second), its interval, the adjusted p
            and the number of units.

        Raises:
            Refused: there are too few results to test, such as a single seed. The message states what is missing.
            UsageError: see :meth:`means`.
        """
        import pandas as pd

        options = {"metric": metric, "against": against, "test": test, "adjustment": adjustment}
        table = pd.concat(
            [comparison.both.assign(scenario=comparison.name) for comparison in self.comparisons(**options)], ignore_index=True
        )
        return table[[*_ANSWER, *(name for name in table.columns if details and name not in _ANSWER)]]

    def plot(self, metric: str = "average_performance") -> Figure:
        """Plot a metric by method, one panel per scenario. Every cell is a point, and every method has its mean with a 95% interval.

        A notebook displays the figure if it is the last value of a cell.

        Raises:
            UsageError: see :meth:`means`.
        """
        import matplotlib as mpl
        import seaborn

        from cglsuite.reports.kit.pictures import LIGHT, ShownFigure, house_style, plain_axes, style_of
        from cglsuite.reports.kit.text import scenario_words
        from cglsuite.reports.results.summary import in_percent

        metric, frame = self._metric(metric), self.results.frame
        names = list(dict.fromkeys(frame["scenario"]))
        mean: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 14, "errorbar": ("ci", 95), "seed": 0}
        with mpl.rc_context(house_style(LIGHT)):
            figure = ShownFigure(figsize=(4.6 * max(1, len(names)), 0.5 * frame["method"].nunique() + 1.4), layout="constrained")
            for axes, scenario in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
                part = frame[frame["scenario"] == scenario]
                methods = list(dict.fromkeys(part["method"]))
                colours = {name: style_of(name, methods, LIGHT)["color"] for name in methods}
                seaborn.stripplot(part, x=metric, y="method", hue="method", palette=colours, legend=False, ax=axes, alpha=0.6, jitter=False)
                seaborn.pointplot(part, x=metric, y="method", ax=axes, color=LIGHT.ink, **mean)
                percent = in_percent(self.results, scenario) and not self.results.metrics[metric].unit
                axes.set(ylabel="", xlabel=metric.replace("_", " ") + (", %" if percent else ""))
                if percent:
                    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
                axes.set_title(scenario_words(scenario), fontsize=10.5, fontweight="bold")
                plain_axes(axes, LIGHT, "x")
        return figure

    def matrices(self) -> Any:
        """Draw the mean performance matrix of every method in every scenario as a heat map, for display in a notebook."""
        from cglsuite.reports.studies.campaign import matrices

        return matrices(self.results)

    def curves(self, metric: str = "average_performance") -> Any:
        """Plot a metric after every task, one line per method and one figure per scenario, for display in a notebook.

        Args:
            metric: one of :data:`cglsuite.reports.results.tables.CURVES`.

        Raises:
            UsageError: the metric is none of these.
        """
        from cglsuite.reports.results.tables import CURVES
        from cglsuite.reports.studies.campaign import curves

        if metric not in CURVES:
            raise UsageError(f"there are no curves of {quoted(metric)}; expected one of {', '.join(CURVES)}")
        return curves(self.results, metric)

    def figure(
        self, kind: str, *, style: str = "paper", width: float = 3.3, scenario: str = "", metric: str = "average_performance"
    ) -> ShownFigure:
        """Draw one figure for a paper, using the same code, colours and markers as the pages of a report.

        A notebook displays it. ``savefig`` writes PDF, SVG or PNG, with TrueType fonts (Type 42).

        Args:
            kind: ``"curves"`` (a metric after every task), ``"matrix"`` (mean performance matrices), ``"orders"`` (average performance over
                task orders), ``"forgetting"`` (against average performance) or ``"ranks"`` (critical differences).
            style: ``"paper"``: without a title, with 8-point text; ``"page"``: as on pages. width: in inches, for papers.
            scenario: which scenario to draw, if there are several. metric: for curves and ranks.

        Raises:
            UsageError: a value is unknown (the message lists the known ones), or there are too few results for this figure.

        Example:
            >>> study.figure("curves", width=3.3).savefig("curves.pdf")  # doctest: +SKIP
        """
        from cglsuite.reports.studies.figure import study_figure

        if kind != "curves":
            metric = self._metric(metric)
        return study_figure(self._finished, kind, style=style, width=width, scenario=scenario, metric=metric)

    def table(self, metrics: Sequence[str] = (), *, rows: str = "method", columns: str = "scenario", spread: str = "std") -> ResultsTable:
        """Return the results as one table for a notebook; export it with ``to_latex()``, ``to_csv()`` or ``frame``.

        Args:
            metrics: names, or labels such as ``ap``; default: the leaderboards' first metric. rows, columns: method and scenario, or the
                reverse. spread: what follows ±: ``std``, ``interval`` or ``none``.

        Raises:
            UsageError: there are no results, or a name is unknown.
        """
        from cglsuite.reports.site.downloads import results_table

        with self._files():
            return results_table(self.results, self.catalogue, rows=rows, columns=columns, metrics=metrics, spread=spread)

    def report(self, folder: str | Path, *, notebooks: str | Sequence[str] = ("method_comparison",)) -> list[RenderedReport]:
        """Render reports into a folder, together with a ``study.toml`` from which ``cglsuite run`` repeats the study.

        Pages of an earlier study in the folder are replaced; the new index lists those that remain.

        Args:
            notebooks: one or several names from ``cglsuite list notebooks``.

        Raises:
            UsageError: the path is a file, or the folder cannot be written or has a ``study.toml`` or page that no report wrote; or a
                notebook is unknown.
        """
        from cglsuite.reports import render_campaign

        names = _several("notebooks", notebooks, str, "the name of a notebook, or a list of them")
        for name in names:
            self.catalogue.get("notebook", name)
        target = Path(folder).absolute()
        path = target / "study.toml"
        if path.exists() and not path.read_bytes().startswith(_WRITTEN.encode()):
            raise UsageError(f"{path} was not written by a study and will not be replaced: move it, or choose a different folder")
        try:
            target.mkdir(parents=True, exist_ok=True)
            path.write_text(_WRITTEN + _toml({**self.content, "report": [{"notebook": name} for name in names]}), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write reports to {target}: {error.strerror}: choose a different folder") from error
        with self._files():
            return render_campaign(path, store=self.store, out=target, catalogue=self.catalogue)

    def comparisons(self, metric: str = "average_performance", **question: Any) -> Sequence[Comparison]:
        """Return the comparison of the methods in every scenario, which is the source of :meth:`compare` and of the printed sentences."""
        from cglsuite.reports.studies.comparison.compute import Question, study

        return study(self.results, Question(metric=self._metric(metric), **question)).comparisons

    def _metric(self, word: Any) -> str:
        """Return the name of a metric that these results have.

        Raises:
            UsageError: no cell has a result, or these results do not have the metric.
        """
        frame = self._finished.frame
        metrics = {name: spec for name, spec in self.results.metrics.items() if name in frame and frame[name].notna().any()}
        with contextlib.suppress(UnknownNameError):
            if isinstance(word, str):
                return metric_named(word, metrics).name
        raise UsageError(f"these results have no metric {quoted(word)}: expected one of {', '.join(sorted(metrics))}")

    @property
    def _finished(self) -> CampaignResults:
        """The results after checking that there are some.

        Raises:
            UsageError: no cell has a result; the message gives the reasons.
        """
        if not self.results.used:
            raise UsageError("\n".join(["no cell of this study has a result", *self.reasons]))
        return self.results

    def _files(self) -> contextlib.AbstractContextManager[None]:
        return _registered_files(self.content["data"], self.content["plugins"], self.folders, self.content["data_options"])


@contextlib.contextmanager
def _registered_files(
    data: Sequence[str | Path], plugins: Sequence[str | Path], folders: Sequence[Path], options: Mapping[str, Any]
) -> Iterator[None]:
    """Within the block, register the study's data and plugin files, and let worker processes import the modules of its classes."""
    before = os.environ.get("PYTHONPATH")
    if folders:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [before, *map(str, folders)]))
    try:
        with named(data=data, plugins=plugins, options=options):
            yield
    finally:
        if before is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = before


def _toml(content: Mapping[str, Any]) -> str:
    """Write a campaign's content as TOML: plain keys, a table for each mapping, and ``[[name]]`` for lists of mappings."""
    head, tables = "", ""
    for name, value in content.items():
        if isinstance(value, Mapping):
            tables += f"\n[{_toml_key(name)}]\n{_toml_lines(value)}"
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            tables += "".join(f"\n[[{_toml_key(name)}]]\n{_toml_lines(item)}" for item in value)
        else:
            head += _toml_lines({name: value})
    return head + tables


def _toml_lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_toml_key(name)} = {_toml_value(value)}\n" for name, value in table.items())


def _toml_key(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else _toml_value(name)


def _toml_value(value: Any) -> str:
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, (str, int)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are valid TOML, with this one exception
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(_toml_lines({name: inner}).rstrip() for name, inner in value.items())}}}"
    raise UsageError(f"a campaign file cannot contain {value!r}; expected text, a number, true or false, or lists of them")
