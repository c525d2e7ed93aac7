"""Curves over settings: what is held fixed, what the units are, and what the page shows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_elements import texts
from report_lab import CAMPAIGN, Elements, assert_harmless, catalogue_of, page_with, record_of

from cglsuite import stats
from cglsuite.base.errors import UnknownNameError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.storage.store import Store
from cglsuite.reports.results.results import load_pooled_results
from cglsuite.reports.studies import sweep as show_sweep
from cglsuite.reports.studies.sweep import Sweep, sweep, sweep_curves, unevenly_filled
from cglsuite.specs import BackboneSpec, Hyperparameter, MethodSpec

WIDTHS, DEPTHS = [32, 64, 128], [1, 2]
NET = BackboneSpec(
    name="net",
    summary="net",
    factory="json:loads",
    hyperparameters=(Hyperparameter(name="width", default=64, doc="width"), Hyperparameter(name="layers", default=2, doc="depth")),
)
GRID = {"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "ewc"], "backbones": ["net"]}
SEEDS = {"order": [0, 1, 2], "init": [0, 1, 2]}


def accuracy(method: str, width: int, layers: int, seed: int) -> float:
    return 0.2 + 0.1 * ["bare", "ewc"].index(method) + 0.001 * width + 0.05 * layers + 0.01 * seed**2


Make = Callable[..., Sweep]


@pytest.fixture
def sweep_of(tmp_path: Path) -> Make:
    """The sweep of campaigns with other axes."""

    def make(*axes: dict[str, list[int]], seeds: dict[str, Any] = SEEDS, chosen: str | tuple[str, ...] = (), keep: Any = None) -> Sweep:
        catalogue, store = catalogue_of(("backbone", NET)), Store(tmp_path / "store")
        given = [CAMPAIGN | {"name": f"toy-{n}", "grid": GRID | {"axes": one}, "seeds": seeds} for n, one in enumerate(axes)]
        for planned in (p for one in given for p in plan_campaign(Campaign.parse(one), catalogue)):
            assert planned.cell is not None
            overrides, drawn = planned.cell.configuration, planned.request.seeds
            last = accuracy(planned.request.method, overrides["backbone.width"], overrides["backbone.layers"], drawn.init)
            matrix = [[0.5, 0.5], [0.9, 0.5], [last, last]]
            if keep is None or keep(planned):
                tasks = [
                    {"classes": [(drawn.order + k) % 7], "n_train": 1, "n_validation": 1, "n_test": 1, "name": str(k)} for k in range(2)
                ]
                store.put(
                    record_of(planned, matrix=matrix, tasks=tasks, parameters={"model": overrides["backbone.width"] * 10, "method": 0})
                )
        return sweep(load_pooled_results(given[0], given[1:], store, catalogue=catalogue), chosen)

    return make


def test_curves_hold_the_other_axis_fixed(sweep_of: Make) -> None:
    """Three widths at two depths: a curve of each at every value of the other; means, intervals and parameters by hand."""
    study = sweep_of({"backbone.width": WIDTHS, "backbone.layers": DEPTHS})
    assert study.axes == ("backbone.layers", "backbone.width")
    frame = sweep_curves(study)
    curves = set(frame[["axis", "rest"]].itertuples(index=False, name=None))
    assert curves == {("backbone.width", f"layers = {d}") for d in DEPTHS} | {("backbone.layers", f"width = {w}") for w in WIDTHS}
    by = frame.set_index(["axis", "rest", "label", "value"])
    for method, width, layers in itertools.product(("bare", "ewc"), WIDTHS, DEPTHS):
        row = by.loc[("backbone.width", f"layers = {layers}", method, str(width))]
        values = [accuracy(method, width, layers, s) for s in range(3)]
        expected = stats.mean_interval(values)
        assert (row["mean"], row["std"], row["n"]) == pytest.approx((np.mean(values), np.std(values, ddof=1), 3))
        assert (row["low"], row["high"], row["interval"]) == (pytest.approx(expected.low), pytest.approx(expected.high), "t")
        assert (row["unit"], row["parameters"], row["place"]) == ("orders", 10 * width, WIDTHS.index(width))
    af = sweep_curves(study, "af").set_index(["axis", "rest", "label", "value"])
    assert af.loc[("backbone.layers", "width = 32", "bare", "1"), "mean"] == pytest.approx(
        0.9 - np.mean([accuracy("bare", 32, 1, s) for s in range(3)])
    )


def test_widths_and_depths_of_two_campaigns(sweep_of: Make) -> None:
    """They share a point, which counts once; axes with a single value beside the rest have no curve."""
    study = sweep_of({"backbone.width": WIDTHS}, {"backbone.layers": DEPTHS})
    assert len(study.cells) == 2 * 3 * (3 + 2 - 1)
    frame = sweep_curves(study)
    assert set(frame[["axis", "rest"]].itertuples(index=False, name=None)) == {
        ("backbone.width", "layers = 2"),
        ("backbone.layers", "width = 64"),
    }


def test_seeds_are_the_units_where_there_is_one_order(sweep_of: Make) -> None:
    """And two of them have no interval."""
    study = sweep_of({"backbone.width": WIDTHS}, seeds={"order": [0], "init": [0, 1]})
    frame = sweep_curves(study)
    assert set(frame["unit"]) == {"seeds"}
    assert set(frame["interval"]) == {"2 seeds: an interval needs at least 3"}
    assert any("Too few units for intervals." in text for text in texts(page_with(show_sweep.curves(study)), "figcaption"))


def test_several_seeds_of_an_order_are_averaged(sweep_of: Make) -> None:
    """Three orders with two seeds each: the unit is the order, its value the mean of its seeds."""
    study = sweep_of({"backbone.width": WIDTHS}, seeds={"order": [0, 1, 2], "init": [0, 3], "design": "cross"})
    row = sweep_curves(study).set_index(["label", "value"]).loc[("bare", "64")]
    assert (row["n"], row["unit"]) == (3, "orders")
    assert row["mean"] == pytest.approx(np.mean([accuracy("bare", 64, 2, s) for s in (0, 3)]))
    assert row["std"] == pytest.approx(0.0, abs=1e-12)


def test_gaps_are_told(sweep_of: Make) -> None:
    """A point that rests on fewer cells than the others of its curve."""
    study = sweep_of(
        {"backbone.width": WIDTHS},
        keep=lambda p: not (p.cell.configuration["backbone.width"] == 128 and p.request.seeds.init == 2 and p.request.method == "ewc"),
    )
    (message,) = unevenly_filled(sweep_curves(study))
    assert message.endswith("width, ewc: from 2 to 3 orders per point")
    page = page_with(show_sweep.overview(study), show_sweep.points(study))
    assert "The points of these curves have different numbers of repetitions:" in texts(page, "div.notice > p")
    assert "± 0.7 (n=2)" in texts(page, "td.number > span.sd")


def test_axes_may_be_chosen(sweep_of: Make) -> None:
    """Those that are not drawn along tell designs apart; an unknown one is refused."""
    study = sweep_of({"backbone.width": WIDTHS, "backbone.layers": DEPTHS}, chosen=("backbone.width",))
    assert study.axes == ("backbone.width",)
    assert study.cells["design"].nunique() == 2
    alone = sweep_of({"backbone.width": WIDTHS, "backbone.layers": DEPTHS}, chosen="backbone.width")  # as papermill's `-p axes` gives it
    assert alone.axes == study.axes
    with pytest.raises(UnknownNameError, match="backbone.width"):
        sweep_of({"backbone.width": WIDTHS}, chosen=("backbone.widht",))


@pytest.mark.nightly
def test_the_page(sweep_of: Make) -> None:
    """Every number has its exact value behind it; one figure per curve."""
    study = sweep_of({"backbone.width": WIDTHS, "backbone.layers": DEPTHS})
    parts = [getattr(show_sweep, name)(study) for name in ("curves", "overview", "points", "problems", "provenance")]
    page = page_with(*parts, show_sweep.curves(study, "af"), show_sweep.points(study, "af"))
    assert_harmless(page)
    shown = {float(str(a["data-value"])) for _, a in Elements(page).found if a.get("data-value")}
    assert set(sweep_curves(study)["mean"]) | set(sweep_curves(study, "af")["mean"]) <= shown
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 2 * (2 + 3)


HAS_MARGIN = MethodSpec(
    name="bounded",
    summary="bounded",
    factory="json:loads",
    settings=("class-il",),
    hyperparameters=(
        Hyperparameter(name="margin", default=None, kind=float, optional=True, minimum=0, doc="margin"),
        Hyperparameter(name="steps", default=2, doc="steps"),
    ),
)


@pytest.fixture
def of_methods(tmp_path: Path) -> Sweep:
    """A campaign whose axes are hyperparameters of one of its two methods, one of them with ``none`` among its values."""
    catalogue, store = catalogue_of(("backbone", NET), ("method", HAS_MARGIN)), Store(tmp_path / "store")
    grid = GRID | {"methods": ["bounded", "bare"], "axes": {"method.margin": [0.5, "none", 0.1], "method.steps": [2, 4]}}
    given = CAMPAIGN | {"name": "toy", "title": "Two of its own", "grid": grid, "seeds": {"order": [0, 1, 2]}}
    for planned in plan_campaign(Campaign.parse(given), catalogue):
        overrides = planned.cell.configuration
        last = 0.3 + 0.1 * float(overrides.get("method.margin") or 0) + 0.01 * overrides.get("method.steps", 0)
        tasks = [
            {"classes": [(planned.request.seeds.order + k) % 7], "n_train": 1, "n_validation": 1, "n_test": 1, "name": str(k)}
            for k in range(2)
        ]
        store.put(record_of(planned, matrix=[[0.5, 0.5], [0.9, 0.5], [last, last]], tasks=tasks, parameters={"model": 10, "method": 3}))
    return sweep(load_pooled_results(given, [], store, catalogue=catalogue))


def test_hyper_parameters_of_a_method_are_axes_for_that_method_alone(of_methods: Sweep) -> None:
    assert of_methods.axes == ("method.margin", "method.steps")
    assert of_methods.methods == ("bounded", "bare"), "values on an axis are no configurations to number"
    frame = sweep_curves(of_methods)
    assert set(frame["label"]) == {"bounded"}
    curve = frame[(frame["axis"] == "method.margin") & (frame["rest"] == "steps = 4")].sort_values("place")
    assert list(curve["value"]) == ["0.1", "0.5", "none"]
    assert list(curve["mean"]) == pytest.approx([0.35, 0.39, 0.34])
    assert set(frame[frame["axis"] == "method.steps"]["rest"]) == {"margin = 0.1", "margin = 0.5", "margin = none"}


def test_the_title_names_the_axes_and_equal_sizes_are_not_listed(of_methods: Sweep) -> None:
    page = page_with(show_sweep.overview(of_methods), show_sweep.points(of_methods))
    assert texts(page, "p.lead") == ["Sensitivity to method.margin and method.steps: Two of its own"]
    assert "parameters of the model" not in page


def test_no_axis(sweep_of: Make) -> None:
    """Nothing varies, nothing is drawn."""
    study = sweep_of({})
    assert study.axes == ()
    page = page_with(show_sweep.curves(study), show_sweep.points(study))
    assert texts(page, "p.quiet").count("No setting on the axes of the campaigns has two values among the finished cells.") == 2


def test_uneven_curves_are_named_in_the_order_of_the_table() -> None:
    """The page lists them as its figures come, not by the alphabet; even ones are not named."""
    rows = [(label, n) for label, counts in (("zeta", (3, 5)), ("even", (4, 4)), ("alpha", (2, 4))) for n in counts]
    frame = pd.DataFrame(
        [{"design": "d", "axis": "training.lr", "rest": "", "label": label, "n": n, "unit": "orders"} for label, n in rows]
    )
    assert [note.partition(", ")[2].split(", ", 1)[1] for note in unevenly_filled(frame)] == [
        "zeta: from 3 to 5 orders per point",
        "alpha: from 2 to 4 orders per point",
    ]
