"""Tables of measurements in the documentation are those of the records in the gallery."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup

from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store

ROOT = Path(__file__).parents[2]
PROTOCOLS = ROOT / "docs" / "protocols"
SEEDS = [(s, s, s) for s in range(5)]
METHODS = ("bare", "lwf", "gem", "twp", "ewc", "mas", "er-gnn", "joint")


@cache
def cora() -> dict[tuple[str, str, str, str, tuple[int, int, int]], Record]:
    """Finished records of Cora by scenario, method, grouping of queries, initialisation and seeds (order, split, init)."""
    found = {}
    for record in Store(ROOT / "reports" / "gallery" / "records").records():
        if record.done and record.cell["scenario"].startswith("cora/"):
            cell, seeds = record.cell, record.cell["seeds"]
            switches = cell["configuration"]
            place = (
                cell["scenario"],
                cell["method"],
                switches.get("scenario.query_grouping", "task"),
                switches.get("backbone.init", "glorot"),
            )
            found[(*place, (seeds["order"], seeds["split"], seeds["init"]))] = record
    return found


def values(scenario: str, method: str, metric: str, *, grouping: str = "task", init: str = "", n: int = 3) -> np.ndarray:
    """In percent, one per repetition."""
    own = init or ("glorot" if scenario.endswith("@cglb-1") else "fan-in-normal" if method == "lwf" else "linear")
    return np.array([100 * cora()[scenario, method, grouping, own, seeds].metrics[metric] for seeds in SEEDS[:n]])


def text(some: np.ndarray) -> str:
    return f"{some.mean():.1f} ± {some.std(ddof=1):.1f}"


def row(method: str, cells: Iterable[str]) -> str:
    return f"| `{method}` | " + " | ".join(cells) + " |"


@pytest.mark.parametrize("method", METHODS)
def test_cora_under_both_versions(method: str) -> None:
    page = (PROTOCOLS / "published-code.md").read_text(encoding="utf-8")
    columns = [(setting, metric) for setting in ("class", "task") for metric in ("average_performance", "backward_transfer")]
    shown = [" to ".join(text(values(f"cora/{s}-il@cglb-{v}", method, metric)) for v in (1, 2)) for s, metric in columns]
    assert row(method, shown) in page


def test_what_the_initialisation_of_lwf_does() -> None:
    page = " ".join((PROTOCOLS / "published-code.md").read_text(encoding="utf-8").split())
    ap = {
        init: values("cora/task-il@cglb-2", "lwf", "average_performance", init=init, n=5) for init in ("glorot", "linear", "fan-in-normal")
    }
    words = f"AP is {text(ap['glorot'])} with Glorot, {text(ap['linear'])} with torch's linear default, {text(ap['fan-in-normal'])} with"
    assert words in page
    moved = sorted(np.round(abs(ap["fan-in-normal"] - ap["glorot"]), 1))
    assert f"four repetitions move by {moved[0]:.1f} to {moved[3]:.1f} points, the fifth by {moved[4]:.1f}" in page
    difference = (ap["fan-in-normal"] - ap["glorot"]).mean()
    assert f"difference of the last to Glorot is {difference:.1f}" in page


@pytest.mark.parametrize("method", ["bare", "er-gnn", "twp", "joint"])
def test_the_same_models_asked_in_three_ways(method: str) -> None:
    own, twin = "cora/class-il@cglb-2", "cora/class-il@global-1"
    shown = [text(values(own, method, "average_performance", grouping=grouping)) for grouping in ("task", "pooled")]
    metrics = ("average_performance", "pooled_accuracy", "pooled_accuracy_mean")
    shown += [text(values(twin, method, metric, grouping="pooled")) for metric in metrics]
    assert row(method, shown) in (PROTOCOLS / "queries.md").read_text(encoding="utf-8")
    for seeds in SEEDS[:3]:
        apart, pooled = (cora()[own, method, grouping, "linear", seeds] for grouping in ("task", "pooled"))
        assert (apart.matrix, apart.validation_matrix, apart.per_class) == (pooled.matrix, pooled.validation_matrix, pooled.per_class)


@cache
def sensitivity_of_ucla() -> dict[str, dict[str, Any]]:
    """AOPD and MOPD of all task orders of N-UCLA under the second version, by method."""
    from cglsuite.reports import load_pooled_results
    from cglsuite.reports.studies.orders.compute import sensitivity
    from cglsuite.reports.studies.orders.pooling import pool

    results = load_pooled_results(str(ROOT / "reports" / "ucla-skeleton-2.toml"), [], str(ROOT / "reports" / "gallery" / "records"))
    frame = sensitivity(pool(results))
    frame = frame[frame["unit"] == "task"]
    return {row["method"]: row for row in frame.to_dict(orient="records")}


@cache
def first_version_of_ucla() -> dict[str, tuple[str, str]]:
    """AOPD and MOPD on the gallery's page of the first version, whose records were not kept."""
    page = BeautifulSoup((ROOT / "reports" / "gallery" / "ucla-task-orders.html").read_text(encoding="utf-8"), "html.parser")
    shown = next(t for t in page.find_all("table") if "AOPD published" in t.get_text(" ", strip=True))
    header = [cell.get_text(" ", strip=True) for cell in shown.find_all("th")]
    places = [header.index(name) for name in ("AOPD", "MOPD")]
    cells = [[cell.get_text(" ", strip=True) for cell in line.find_all(["th", "td"])] for line in shown.find_all("tr")[1:]]
    return {one[0]: (one[places[0]], one[places[1]]) for one in cells}


@pytest.mark.plugins
@pytest.mark.parametrize("method", ["bare", "ewc", "mas", "twp", "lwf", "gem", "replay"])
def test_order_sensitivity_under_the_second_version(method: str) -> None:
    found = sensitivity_of_ucla()[method]
    assert (found["n_orders"], found["n_repeats"]) == (120, 1)
    shown = []
    for name, first in zip(("AOPD", "MOPD"), first_version_of_ucla()[method], strict=True):
        shown += [first, f"{100 * found[name.lower()]:.1f}", found["published"][name]["printed"]]
    assert row(method, shown) in (PROTOCOLS / "published-code.md").read_text(encoding="utf-8")


@pytest.mark.plugins
def test_the_second_version_is_nearer_to_print() -> None:
    apart: list[tuple[float, float]] = []
    for method, (first, _) in first_version_of_ucla().items():
        found = sensitivity_of_ucla()[method]
        printed = found["published"]["AOPD"]["mean"]
        apart.append((abs(float(first) - printed), abs(100 * found["aopd"] - printed)))
    before, after = np.mean(apart, axis=0)
    words = f"distance of the seven AOPD from print falls from {before:.1f} to {after:.1f} points"
    assert words in " ".join((PROTOCOLS / "published-code.md").read_text(encoding="utf-8").split())
