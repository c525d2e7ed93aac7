"""Tables of measurements in the documentation are those of the records in the gallery."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from doc_tool import tool
from scipy.stats import ttest_1samp, ttest_rel
from statsmodels.stats.multitest import multipletests

from cglsuite.campaigns.reference import published_results
from cglsuite.campaigns.reference.values import known_about
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import load_catalogue
from cglsuite.reports import load_campaign_results
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.studies.comparison.compute import study

ROOT = Path(__file__).parents[2]
PROTOCOLS = ROOT / "docs" / "protocols"
SEEDS = [(s, s, s) for s in range(5)]
SHARES = (None, 0.1, 0.25, 0.5, 0.75, 0.9)
"""PackNet's ``keep``; without one, the share that leaves all tasks equally many weights."""
THRESHOLDS = (1e-3, 5e-3, 1e-2, 5e-2, 0.1)
METHODS = ("bare", "lwf", "gem", "twp", "ewc", "mas", "er-gnn", "joint")
pytestmark = pytest.mark.nightly


@cache
def finished() -> tuple[Record, ...]:
    """All finished records of the gallery."""
    return tuple(record for record in Store(ROOT / "reports" / "gallery" / "records").records() if record.done)


@cache
def under_cglb() -> dict[tuple[str, str, str, str, tuple[int, int, int]], Record]:
    """Records of Cora and the Amazon graph by scenario, method, grouping of queries, initialisation and seeds (order, split, init)."""
    found = {}
    for record in finished():
        cell, seeds = record.cell, record.cell["seeds"]
        if cell["scenario"].startswith(("cora/", "amazon-clothing20/")):
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
    return np.array([100 * under_cglb()[scenario, method, grouping, own, seeds].metrics[metric] for seeds in SEEDS[:n]])


def text(some: np.ndarray) -> str:
    return f"{some.mean():.1f} ± {some.std(ddof=1):.1f}"


def prose() -> str:
    """The page on published code, without its line breaks."""
    return " ".join((PROTOCOLS / "published-code.md").read_text(encoding="utf-8").split())


def row(method: str, cells: Iterable[str]) -> str:
    return f"| `{method}` | " + " | ".join(cells) + " |"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scenarios", [("cora/class-il", "cora/task-il"), ("amazon-clothing20/class-il",)], ids=["cora", "amazon"])
def test_streams_under_both_versions(scenarios: tuple[str, ...], method: str) -> None:
    page = (PROTOCOLS / "published-code.md").read_text(encoding="utf-8")
    columns = [(scenario, metric) for scenario in scenarios for metric in ("average_performance", "backward_transfer")]
    shown = [" to ".join(text(values(f"{scenario}@cglb-{v}", method, metric)) for v in (1, 2)) for scenario, metric in columns]
    assert row(method, shown) in page


def effect(scenario: str, method: str, *sides: dict[str, Any]) -> str:
    """What a switch does, over the orders that both sides finished: AP and AF from one side to the other."""

    def of(side: dict[str, Any]) -> dict[int, Record]:
        chosen = [r for r in finished() if r.cell["scenario"] == scenario and r.cell["method"] == method]
        return {r.cell["seeds"]["order"]: r for r in chosen if all(r.cell["configuration"].get(k) == v for k, v in side.items())}

    both = [of(side) for side in sides]
    orders = sorted(set(both[0]) & set(both[1]))
    metrics = (("AP", "average_performance"), ("AF", "backward_transfer"))
    told = [" to ".join(text(np.array([100 * side[o].metrics[metric] for o in orders])) for side in both) for _, metric in metrics]
    return f"{('', '', 'two', 'three')[len(orders)]} orders: " + ", ".join(f"{n} {t}" for (n, _), t in zip(metrics, told, strict=True))


@pytest.mark.parametrize(
    ("switch", "sides"),
    [
        (
            "attention_from=degree-normalised",
            (
                {"method.attention_from": None, "method.lambda_t": 1000},
                {"method.attention_from": "degree-normalised", "method.lambda_t": 1000},
            ),
        ),
        (
            "lambda_t=1000",
            tuple({"method.attention_from": "degree-normalised", "method.lambda_t": weight} for weight in (100, 1000)),
        ),
    ],
)
def test_what_two_switches_of_twp_do(switch: str, sides: tuple[dict[str, Any], ...]) -> None:
    told = "; ".join(f"{setting}-IL, {effect(f'cora/{setting.lower()}-il@begin-2', 'twp', *sides)}" for setting in ("class", "task"))
    assert f"`method.{switch}` (twp)" in row_of(told.replace("class-IL", "Cora, class-IL", 1))


@pytest.mark.parametrize(
    ("method", "key", "own", "published"),
    [
        ("ewc", "method.fisher", "items", "last-step"),
        ("mas", "method.importance", "items", "batch-squared"),
        ("evolve-gcn", "method.start", None, "drawn"),  # a cell says what is not the method's default
    ],
)
def test_what_the_code_of_agale_does(method: str, key: str, own: str | None, published: str) -> None:
    told = "PCG, " + effect("pcg/class-il@agale-2", method, {key: own}, {key: published})
    assert f"`{key}={published}` ({method})" in row_of(told)


@pytest.mark.plugins
def test_values_beside_those_of_agale() -> None:
    """Every row of the table, with the printed value in brackets, and the agreement that the text speaks of."""
    from cglsuite.reports.studies.ledger.compute import load_ledger

    rows = load_ledger({"paper": "AGALE", "dataset": "PCG"}, ROOT / "reports" / "gallery" / "records", extras=False).rows
    page = (PROTOCOLS / "agale.md").read_text(encoding="utf-8")
    told: dict[str, list[str]] = {}
    for method, some in rows.groupby("method_here", sort=False):
        for setting in ("task-IL", "class-IL"):
            for metric in ("AP", "AF"):
                one = some[(some["setting"] == setting) & (some["metric"] == metric)].to_dict(orient="records")
                shown = f"{round(one[0]['our_mean'], 1) + 0.0:.1f} ± {one[0]['our_std']:.1f} ({one[0]['shown']})" if one else "–"
                told.setdefault(str(method), []).append(shown)
    for method, cells in told.items():
        assert row(method, cells) in page
    counts = rows["verdict"].value_counts().to_dict()
    assert f"Of the {len(rows)} published values of PCG, {counts['published artefact']} have a known artefact" in page


def latin(method: str, backbone: str, epochs: int, metric: str) -> np.ndarray:
    """A metric in percent, in the ten Latin orders of N-UCLA in turn; empty where not all have been run."""
    some = [r for r in finished() if (r.cell["method"], r.cell["backbone"]) == (method, backbone)]
    some = [r for r in some if r.cell["scenario"] == "nw-ucla/class-il@skeleton-2" and "latin" in str(r.cell["configuration"])]
    found = {r.cell["seeds"]["order"]: r for r in some if r.cell["configuration"]["training.epochs"] == epochs}
    return 100 * np.array([found[order].metrics[metric] for order in sorted(found)]) if len(found) == 10 else np.array([])


@pytest.mark.parametrize("epochs", [100, 20])
def test_the_benchmarks_network_beside_st_gcn(epochs: int) -> None:
    page = (PROTOCOLS / "skeleton.md").read_text(encoding="utf-8")
    columns = [(backbone, metric) for backbone in ("graph-gcn", "st-gcn") for metric in ("average_performance", "backward_transfer")]
    for method in ("bare", "ewc", "lwf", "replay", "joint"):
        cells = [latin(method, backbone, epochs, metric) for backbone, metric in columns]
        assert row(method, [text(some) if some.size else "not run" for some in cells]) in page


def test_which_network_is_better_depends_on_the_method() -> None:
    """ST-GCN beside the GCN at full length: paired over ten orders, Holm over five methods."""
    page = " ".join((PROTOCOLS / "skeleton.md").read_text(encoding="utf-8").split())
    methods = ["bare", "ewc", "lwf", "replay", "joint"]
    gcn, st_gcn = ({m: latin(m, backbone, 100, "average_performance") for m in methods} for backbone in ("graph-gcn", "st-gcn"))
    gains = {m: st_gcn[m].mean() - gcn[m].mean() for m in methods}
    adjusted = multipletests([ttest_rel(st_gcn[m], gcn[m]).pvalue for m in methods], method="holm")[1]
    p = {m: f"(p = {one:.1g})" for m, one in zip(methods, adjusted, strict=True)}
    assert (
        f"ST-GCN gains {gains['replay']:.1f} points of AP with replay {p['replay']} and loses {-gains['ewc']:.1f} with EWC {p['ewc']} and "
        f"{-gains['lwf']:.1f} with LwF {p['lwf']}. For fine-tuning and joint training, the networks differ by no more than "
        f"{max(abs(gains['bare']), abs(gains['joint'])):.1f} points {p['bare']}"
    ) in page
    assert p["bare"] == p["joint"]
    ahead = {name: found["ewc"] - found["bare"] for name, found in (("gcn", gcn), ("st-gcn", st_gcn))}
    assert [int((one > 0).sum()) for one in ahead.values()] == [10, 4]
    words = f"on the GCN, by {ahead['gcn'].mean():.1f} points on average, but only in four on ST-GCN, by {ahead['st-gcn'].mean():.1f}."
    assert words in page
    assert all(
        latin(m, "st-gcn", 20, "average_performance").mean() < latin(m, "graph-gcn", 20, "average_performance").mean() for m in methods[:4]
    )


def row_of(told: str) -> str:
    """The row of the table of disagreements that says this."""
    page = (PROTOCOLS / "published-code.md").read_text(encoding="utf-8").splitlines()
    return next((line for line in page if told in line), f"no row says: {told}")


def test_what_the_initialisation_of_lwf_does() -> None:
    page = prose()
    ap = {
        init: values("cora/task-il@cglb-2", "lwf", "average_performance", init=init, n=5) for init in ("glorot", "linear", "fan-in-normal")
    }
    words = (
        f"AP is {text(ap['glorot'])} with Glorot, {text(ap['linear'])} with torch's linear default, and {text(ap['fan-in-normal'])} with"
    )
    assert words in page
    moved = sorted(np.round(abs(ap["fan-in-normal"] - ap["glorot"]), 1))
    assert f"four repetitions change by {moved[0]:.1f} to {moved[3]:.1f} points, and the fifth by {moved[4]:.1f}" in page
    difference = (ap["fan-in-normal"] - ap["glorot"]).mean()
    assert f"difference between CGLB's initialisation and Glorot is {difference:.1f}" in page


@pytest.mark.parametrize("method", ["bare", "er-gnn", "twp", "joint"])
def test_the_same_models_asked_in_three_ways(method: str) -> None:
    own, twin = "cora/class-il@cglb-2", "cora/class-il@global-1"
    shown = [text(values(own, method, "average_performance", grouping=grouping)) for grouping in ("task", "pooled")]
    metrics = ("average_performance", "pooled_accuracy", "pooled_accuracy_mean")
    shown += [text(values(twin, method, metric, grouping="pooled")) for metric in metrics]
    assert row(method, shown) in (PROTOCOLS / "queries.md").read_text(encoding="utf-8")
    for seeds in SEEDS[:3]:
        apart, pooled = (under_cglb()[own, method, grouping, "linear", seeds] for grouping in ("task", "pooled"))
        assert (apart.matrix, apart.validation_matrix, apart.per_class) == (pooled.matrix, pooled.validation_matrix, pooled.per_class)


@cache
def orders_under_the_second_version() -> Any:
    """The study of all task orders of N-UCLA."""
    from cglsuite.reports import load_pooled_results
    from cglsuite.reports.studies.orders.compute import pool

    return pool(
        load_pooled_results(str(ROOT / "reports" / "skeleton" / "ucla-skeleton-2.toml"), [], str(ROOT / "reports" / "gallery" / "records"))
    )


@cache
def sensitivity_of_ucla() -> dict[str, dict[str, Any]]:
    """AOPD and MOPD of all task orders of N-UCLA under the second version, by method."""
    from cglsuite.reports.studies.orders.compute import sensitivity

    frame = sensitivity(orders_under_the_second_version())
    frame = frame[frame["unit"] == "task"]
    return {row["method"]: row for row in frame.to_dict(orient="records")}


@pytest.mark.plugins
@pytest.mark.parametrize("method", ["bare", "ewc", "mas", "twp", "lwf", "gem", "replay"])
def test_order_sensitivity_under_the_second_version(method: str) -> None:
    found = sensitivity_of_ucla()[method]
    assert (found["n_orders"], found["n_repeats"]) == (120, 3)
    shown = []
    for name in ("AOPD", "MOPD"):
        ours = f"{100 * found[name.lower()]:.1f} ± {100 * found[name.lower() + '_std']:.1f}"
        shown += [ours, found["published"][name]["printed"]]
    assert row(method, shown) in (PROTOCOLS / "published-code.md").read_text(encoding="utf-8")


@pytest.mark.plugins
def test_orders_matter_and_seeds_do_not() -> None:
    from cglsuite.reports.studies.orders.compute import components
    from cglsuite.stats import VarianceComponents

    (fit,) = components(orders_under_the_second_version()).values()
    assert isinstance(fit, VarianceComponents)
    shares = dict(fit.shares)
    rest, order = shares.pop("rest"), shares.pop("order") + shares.pop("method_order")
    assert (
        f"the order and its interaction with the method account for {100 * order:.0f}% of the variance of AA, and the init seed and its "
        f"interactions for {100 * (1 - rest - order):.0f}%"
    ) in prose()


@pytest.mark.plugins
def test_the_distance_of_order_sensitivity_from_print() -> None:
    found = {method: (100 * one["aopd"], one["published"]["AOPD"]["mean"]) for method, one in sensitivity_of_ucla().items()}
    apart = [abs(ours - printed) for ours, printed in found.values()]
    assert len(apart) == 7
    assert f"The AOPD of the seven methods differs from the published values by {np.mean(apart):.1f} points on average" in prose()
    assert sorted(found, key=lambda method: found[method][0])[:2] == ["replay", "lwf"]
    assert "depends less on the order than any method except replay" in prose()


OVER_CLASSES = ("bare", "ewc", "mas", "twp", "lwf", "gem", "replay")


def orders_over_classes_of_ucla() -> tuple[Any, Any]:
    """AOPD and MOPD of every seed on a CPU, by unit and method: of the orders of tasks alone, and of all orders of the campaign."""
    from cglsuite.reports.studies.orders.compute import pool, repeat_totals

    campaign = ROOT / "reports" / "skeleton" / "ucla-class-orders.toml"
    every = load_campaign_results(campaign, ROOT / "reports" / "gallery" / "records", device="cpu", same_device=True)
    assert {cell.planned.request.method for cell in every.cells} == set(OVER_CLASSES)
    cells = [cell for cell in every.cells if cell.planned.cell is not None and cell.planned.cell.scenario.class_order == "all-tasks"]
    assert len(every.cells) == len(OVER_CLASSES) * 660
    assert len(cells) == len(OVER_CLASSES) * 360
    found = [repeat_totals(pool([one])) for one in (replace(every, cells=tuple(cells)), every)]
    tasks, both = (one.groupby(["unit", "method"])[["aopd", "mopd"]].agg(lambda values: list(100 * values)) for one in found)
    return tasks, both


@pytest.mark.plugins
def test_order_sensitivity_over_classes() -> None:
    """Nothing but the AOPD of GEM and replay can tell two implementations apart; devices are compared over tasks."""
    from cglsuite.reports.studies.ledger.compute import load_ledger

    page = (PROTOCOLS / "published-code.md").read_text(encoding="utf-8")
    wanted = {"paper": "SkeletonCGL", "dataset": "UCLA-CIL"}
    rows = load_ledger(wanted, ROOT / "reports" / "gallery" / "records", extras=False).rows
    over = {unit: rows[rows["variant"] == f"order={unit}"].set_index(["method_here", "metric"]) for unit in ("task", "class (aggregated)")}
    ledger = over["class (aggregated)"]
    tasks, every = orders_over_classes_of_ucla()
    for method in OVER_CLASSES:
        both, printed = every.loc["class", method], [ledger.loc[(method, name), "printed"] for name in ("AOPD", "MOPD")]
        ours = {name: np.array(both[name.lower()]) for name in ("AOPD", "MOPD")}
        assert {len(one) for one in ours.values()} == {3}
        assert all(ledger.loc[(method, name), "our_mean"] == pytest.approx(one.mean()) for name, one in ours.items())
        cells = [text(np.array(tasks.loc["class", method]["aopd"])), text(ours["AOPD"]), printed[0], text(ours["MOPD"]), printed[1]]
        assert row(method, cells) in page
    verdicts = ledger.loc[list(OVER_CLASSES), "verdict"]
    assert sorted(verdicts) == ["different"] * 2 + ["no verdict"] * 6 + ["published artefact"] * 6
    assert rows["reason"].str.startswith("neither value has spread").sum() == 2, "AOPD of fine-tuning and EWC over classes"
    at_bound = rows[rows["reason"].str.contains("repetitions are at 100 points, the bound of a maximum")]
    assert set(at_bound["metric"]) == {"MOPD"}
    assert sorted(at_bound["method_here"]) == ["bare", "bare", "ewc", "ewc", "gem", "gem", "replay"]
    verdicts = {method: over["task"].loc[(method, "AOPD"), "verdict"] for method in OVER_CLASSES}
    assert {verdicts.pop(method) for method in ("mas", "twp", "lwf")} == {"published artefact"}
    assert verdicts == {"bare": "different", "ewc": "different", "gem": "different", "replay": "different"}
    short = [[f"{-one.loc[(method, 'AOPD'), 'difference']:.1f}" for method in ("gem", "replay")] for one in (ledger, over["task"])]
    words = (
        "the AOPD of GEM is {} points below the published value and that of replay {} points. Over tasks, it is lower by {} and {} points. "
    )
    words += "No mechanism is confirmed for these differences"
    assert words.format(*short[0], *short[1]) in prose()
    of_lwf = [f"{-one.loc[('lwf', 'AOPD'), 'points']:.1f}" for one in (ledger, over["task"])]
    assert "LwF, which can differ too, is {} points below the published value over classes and {} over tasks".format(*of_lwf) in prose()
    full = [method for method in OVER_CLASSES if set(every.loc["class", method]["aopd"]) == {100.0}]
    assert full == ["bare", "ewc", "twp"], "every class recognised in full after one order and not at all after another"
    here = {method: np.array(tasks.loc["task", method]["aopd"]) for method in OVER_CLASSES}
    each = [f"{text(one)} with `{method}`" for method, one in here.items()]
    told = f"AOPD over tasks of {', '.join(each[:-1])} and {each[-1]}"
    furthest = max(abs(one.mean() - 100 * sensitivity_of_ucla()[method]["aopd"]) for method, one in here.items())
    assert f"{told}. All of them are within {np.ceil(10 * furthest) / 10:.1f} points of the GPU values in the table above" in prose()


def aopd(rows: Iterable[dict[int, float]]) -> float:
    """The mean over five tasks of the range of their last accuracies, in percent; a row per order."""
    last = np.array([[one[task] for task in range(5)] for one in rows])
    return float(100 * (last.max(axis=0) - last.min(axis=0)).mean())


@cache
def orders_of_ucla() -> tuple[
    dict[tuple[str, int], dict[tuple[int, ...], dict[int, float]]], dict[str, list[tuple[int, ...]]], dict[str, Any]
]:
    """Last accuracies by task: by method and seed of all orders with one split, and of drawn orders with a split and a seed each."""
    shared: dict[tuple[str, int], dict[tuple[int, ...], dict[int, float]]] = {}
    drawn: dict[str, list[tuple[int, ...]]] = {}
    own: dict[str, Any] = {}
    for record in finished():
        facts, seeds, method = record.cell["configuration"], record.cell["seeds"], record.cell["method"]
        if record.cell["scenario"] != "nw-ucla/class-il@skeleton-2" or facts["training.epochs"] != 100:
            continue
        order = tuple(task["classes"][0] // 2 for task in record.tasks)
        last = dict(zip(order, record.matrix[-1], strict=True))
        if facts["scenario.class_order"] == "all-tasks" and record.cell["device"] == "cuda":
            shared.setdefault((method, seeds["init"]), {})[order] = last
        elif facts["scenario.class_order"] == "random-tasks" and seeds["order"] == seeds["split"] == seeds["init"]:
            drawn.setdefault(method, []).append(order)
            own.setdefault(method, []).append(last)
    return shared, drawn, own


@pytest.mark.plugins
def test_a_split_and_a_seed_per_order() -> None:
    """The same sixty drawn orders, some of them twice, with one split and seed for all, and with their own."""
    page = (PROTOCOLS / "published-code.md").read_text(encoding="utf-8")
    shared, drawn, own = orders_of_ucla()
    of: dict[str, str] = {}
    for method in ("bare", "replay", "ewc", "gem"):
        assert len(drawn[method]) == 60
        same = np.array([aopd(shared[method, seed][order] for order in drawn[method]) for seed in range(3)])
        every = np.array([aopd(shared[method, seed].values()) for seed in range(3)])
        published = sensitivity_of_ucla()[method]["published"]["AOPD"]
        assert row(method, [text(same), f"{aopd(own[method]):.1f}", text(every), published["printed"]]) in page
        of[method] = f"{aopd(own[method]) - same.mean():.1f} of {published['mean'] - every.mean():.1f}"
    told = prose()
    assert f"For `bare`, this accounts for {of['bare'].replace(' of ', ' of the ')} points by which the published value exceeds" in told
    assert f"it accounts for {of['replay']} points with `replay` and {of['ewc']} with `ewc`, but {of['gem']} with `gem`" in told


def test_a_gpu_and_a_cpu_agree_in_the_mean_over_orders() -> None:
    """One seed of all task orders of N-UCLA, on both."""
    page = " ".join((PROTOCOLS.parent / "contributing" / "speed.md").read_text(encoding="utf-8").split())
    chosen = [r for r in finished() if r.cell["scenario"] == "nw-ucla/class-il@skeleton-2" and r.cell["seeds"]["init"] == 0]
    chosen = [r for r in chosen if r.cell["configuration"]["scenario.class_order"] == "all-tasks"]
    found = {(r.cell["method"], r.cell["device"], r.cell["seeds"]["order"]): r for r in chosen}
    apart: dict[str, list[float]] = {}
    ratios = []
    for method in ["bare", "ewc", "mas", "twp", "lwf", "gem", "replay"]:
        gpu, cpu = ([found[method, device, order] for order in range(120)] for device in ("cuda", "cpu"))
        assert all(a.matrix != b.matrix for a, b in zip(gpu, cpu, strict=True))
        apart[method] = [100 * (a.metrics["average_performance"] - b.metrics["average_performance"]) for a, b in zip(gpu, cpu, strict=True)]
        ratios.append(sum(r.timings_s["total"] for r in cpu) / sum(r.timings_s["total"] for r in gpu))
    assert f"takes {min(ratios):.0f} to {max(ratios):.0f} times as long" in page
    furthest = max(abs(np.mean(one)) for one in apart.values()), max(np.abs(one).max() for one in apart.values())
    words = "differs by at most {:.1f} points in the mean over 120 orders, and by up to {:.1f} points in a single order".format(*furthest)
    assert words in page


@pytest.mark.plugins
def test_forgetting_beside_begin_over_two_data_sets() -> None:
    from cglsuite import load_catalogue
    from cglsuite.reports.studies.ledger.compute import Ledger, load_ledger, offsets
    from cglsuite.reports.studies.papers.compute import checked
    from cglsuite.stats import AGREEMENTS

    def ledger(setting: str, dataset: str) -> Ledger:
        chosen = {"paper": "BeGin", "dataset": dataset, "setting": setting}
        return load_ledger(chosen, ROOT / "reports" / "gallery" / "records", extras=False)

    def by_metric(found: pd.DataFrame) -> dict[str, Any]:
        return {one["metric"]: one for one in found.to_dict(orient="records")}

    def together(one: Ledger, other: Ledger) -> tuple[dict[str, Any], pd.DataFrame]:
        rows = pd.concat([one.rows, other.rows], ignore_index=True)
        values = pd.concat([one.values, other.values.assign(row=other.values["row"] + len(one.rows))], ignore_index=True)
        return by_metric(offsets(rows, values)), rows[(rows["metric"] == "AF") & rows["verdict"].isin(AGREEMENTS)]

    page = prose()
    cora, citeseer = (ledger("class-IL", dataset) for dataset in ("Cora", "CiteSeer"))
    both, rows = together(cora, citeseer)
    af, ap = both["AF"], both["AP"]
    mean, between = f"{af['mean']:.1f} points above the published ones on average", f"{af['low']:.1f} to {af['high']:.1f}"
    words = f"{mean} (joint bootstrap, 95% interval {between}), and {af['higher']} of them are higher"
    assert f"the {af['rows']} values of AF in class-IL are {words}" in page
    assert f"The {ap['rows']} values of AP are {-ap['mean']:.1f} points below on average ({ap['low']:.1f} to {ap['high']:.1f})" in page
    by_method = rows.groupby("method")["difference"].mean()
    assert (by_method.idxmin(), by_method.idxmax()) == ("MAS", "PI-GNN")
    assert [method for method, mean in by_method.items() if mean < 0] == ["MAS"]
    assert f"for every method but MAS ({by_method.min():.1f} points; {by_method.max():.1f} for PI-GNN)" in page
    alone = [by_metric(one.offsets)["AF"] for one in (cora, citeseer)]
    each = [f"{one['mean']:.1f} ({one['low']:.1f} to {one['high']:.1f})" for one in alone]
    assert f"Cora {each[0]}, CiteSeer {each[1]}" in page
    task, _ = together(ledger("task-IL", "Cora"), ledger("task-IL", "CiteSeer"))
    shown = [f"{task[name]['mean']:.1f} ({task[name]['low']:.1f} to {task[name]['high']:.1f})" for name in ("AF", "AP")]
    assert f"the {task['AF']['rows']} values of AF differ by {shown[0]}, and the {task['AP']['rows']} values of AP by {shown[1]}" in page
    store, catalogue = Store(ROOT / "reports" / "gallery" / "records"), load_catalogue()
    checks = pd.concat([checked(one, store, catalogue) for one in (cora, citeseer)]).groupby("mechanism")["state"].agg(list)
    assert checks["rate of the grid"] == ["confirmed"], "joint training's AP"
    assert checks["dropout of the grid"] == ["refuted"] * 8, "AP and AF of two methods on two data sets: too uncertain on five orders"


ALL_ORDERS = range(0, 10_000, 1000)
FIRST, OTHERS = ALL_ORDERS[:5], ALL_ORDERS[5:]
"""Where causes were named, and where they are held against."""
RATES = {5e-4: ALL_ORDERS, 1e-3: ALL_ORDERS, 5e-3: FIRST, 1e-2: FIRST}
"""Learning rates of joint training on CiteSeer in class-IL, and the class orders that have been run."""


def one_setting(name: str, dataset: str, method: str) -> dict[tuple[float, int], Record]:
    """Records under BeGin's second version in class-IL that differ from its preset in one setting, by its value and the class order."""
    mine = [r for r in finished() if (r.cell["scenario"], r.cell["method"]) == (f"{dataset}/class-il@begin-2", method)]
    preset = {"training.lr": 1e-3, "backbone.dropout": 0.5, "training.weight_decay": 0.0}
    preset.pop(name)
    kept = [r for r in mine if all(r.cell["configuration"][other] == value for other, value in preset.items())]
    return {(r.cell["configuration"][name], r.cell["seeds"]["order"]): r for r in kept}


def change(found: dict[tuple[float, int], Record], metric: str, values: tuple[float, float], orders: Iterable[int]) -> tuple[str, str]:
    """By how many points a metric changes from the second value to the first, and the 95% interval."""
    changes = [100 * (found[values[0], o].metrics[metric] - found[values[1], o].metrics[metric]) for o in orders]
    low, high = ttest_1samp(changes, 0).confidence_interval()
    return f"{np.mean(changes):.1f}", f"{low:.1f} to {high:.1f}"


def changed(*of: Any) -> str:
    """:func:`change` over all orders, as the page writes it."""
    return "{} ({})".format(*change(*of, ALL_ORDERS))


def test_the_rate_that_only_citeseers_grid_has() -> None:
    """Joint training by rate and half of the class orders, the validation that would choose, and the epochs whose weights are kept."""
    page, found = prose(), one_setting("training.lr", "citeseer", "joint")
    assert sorted(found) == sorted((rate, order) for rate, orders in RATES.items() for order in orders)
    ap = {place: 100 * r.metrics["average_performance"] for place, r in found.items()}
    validation = {place: 100 * r.validation_average_performance() for place, r in found.items()}

    def mean(of: dict[tuple[float, int], float], rate: float, orders: Iterable[int]) -> str:
        return f"{np.mean([of[rate, order] for order in orders]):.1f}"

    shown = [[mean(of, rate, orders) for rate in (5e-4, 1e-3)] for of in (ap, validation) for orders in (FIRST, OTHERS)]
    assert "{0[0]} at 5·10⁻⁴ and {0[1]} at 10⁻³. On the other five, it is {1[0]} and {1[1]}".format(*shown) in page
    assert "{2[0]} instead of {2[1]} on the first five orders, and {3[0]} instead of {3[1]} on the others".format(*shown) in page
    assert all(float(low) > float(high) for low, high in shown)
    assert "an increase of {} points (95% interval {})".format(*change(found, "average_performance", (5e-4, 1e-3), OTHERS)) in page
    assert f"at 5·10⁻³ and 10⁻², AP on the first five orders is {mean(ap, 5e-3, FIRST)} and {mean(ap, 1e-2, FIRST)}" in page
    kept = {rate: [c["best_epoch"] for o in FIRST for c in found[rate, o].training["tasks"][1:]] for rate in RATES}
    fast, slow = sorted(kept[5e-3] + kept[1e-2]), kept[5e-4] + kept[1e-3]
    early = [epoch for epoch in fast if epoch <= 10]
    assert (
        f"For {len(early)} of the {len(fast)} tasks after the first, the best weights are those of epochs {early[0]} to {early[-1]}" in page
    )
    assert f"epochs {min(slow)} to {max(slow)} at the two lower rates" in page


def test_the_rate_does_not_explain_forgetting() -> None:
    page, found = prose(), one_setting("training.lr", "citeseer", "bare")
    for metric, words in (("average_performance", "AP changes by"), ("forgetting_from_diagonal", "AF by")):
        assert f"{words} {changed(found, metric, (5e-4, 1e-3))}" in page
    before = np.mean([100 * found[1e-3, o].metrics["forgetting_from_diagonal"] for o in ALL_ORDERS])
    assert f"at 10⁻³ the AF of Bare is {before:.1f}, and the published value is 55.0" in page


def test_dropout_explains_a_part_of_forgetting_on_cora() -> None:
    """Every number of the paragraph, and that its two halves of CiteSeer's orders disagree."""
    page = prose()
    af, ap, less = "forgetting_from_diagonal", "average_performance", (0.25, 0.5)
    bare, ewc, other = (one_setting("backbone.dropout", *w) for w in (("cora", "bare"), ("cora", "ewc"), ("citeseer", "bare")))
    means = [np.mean([100 * bare[0.25, o].metrics[metric] for o in ALL_ORDERS]) for metric in (af, ap)]
    assert f"Bare is {means[0]:.1f} (published 56.5) and its AP is {means[1]:.1f} (published 54.1)" in page
    assert f"AF changes by {changed(bare, af, less)} and AP by {changed(bare, ap, less)}" in page
    validation = [np.mean([bare[d, o].validation_average_performance() for o in ALL_ORDERS]) for d in less]
    assert f"Validation AP increases by {100 * (validation[0] - validation[1]):.1f} points" in page
    assert f"AF changes by {changed(ewc, af, less)} and AP by {changed(ewc, ap, less)}" in page
    first, last = (change(other, af, less, orders)[0] for orders in (FIRST, OTHERS))
    assert f"by {first} on the first five orders, by {last} on the other five, and by {changed(other, af, less)} on all ten" in page
    decayed: dict[tuple[str, float], list[float]] = {}
    for run in finished():
        settings = run.cell["configuration"]
        place = run.cell["scenario"], run.cell["method"], settings["training.weight_decay"]
        if place in {(f"{dataset}/class-il@begin-2", "bare", 5e-4) for dataset in ("cora", "citeseer")}:
            decayed.setdefault((place[0], settings["backbone.dropout"]), []).append(100 * run.metrics[af])
    assert [len(values) for values in decayed.values()] == [5] * 6
    lost = [float(np.mean(values)) for values in decayed.values()]
    assert f"at 5·10⁻⁴, AF is {min(lost):.1f} to {max(lost):.1f} on the first five orders" in page


def test_what_slope_and_sparsity_of_hat_do() -> None:
    """Every row of the table, and what the text concludes from it."""
    page = (PROTOCOLS / "begin.md").read_text(encoding="utf-8")
    found: dict[tuple[float, float], list[str]] = {}
    means: dict[tuple[str, float, float], tuple[float, float]] = {}
    for s_max, c in [(25, 0.75), (100, 0.75), (400, 0.75), (800, 0.75), *((400, c) for c in (0.1, 0.25, 1.5, 4))]:
        for dataset in ("cora", "citeseer"):
            runs = varied("hat", "method.s_max", "method.c")[dataset, s_max, c]
            assert len(runs) == 5
            for metric in ("average_performance", "forgetting_max"):
                some = 100 * np.array([run.metrics[metric] for run in runs])
                found.setdefault((s_max, c), []).append(text(some).replace("-0.0 ", "0.0 "))
            ap, af = (100 * np.mean([run.metrics[m] for run in runs]) for m in ("average_performance", "forgetting_max"))
            means[dataset, s_max, c] = float(ap), float(af)
    for (s_max, c), cells in found.items():
        assert f"| s_max {s_max}, c {c} | {' | '.join(cells)} |" in page
    for dataset in ("cora", "citeseer"):
        accuracies, forgotten = zip(*(pair for (name, *_), pair in means.items() if name == dataset), strict=True)
        assert max(accuracies) - min(accuracies) < 1
        assert round(forgotten[0], 1) == 0.4
        assert abs(means[dataset, 800, 0.75][1]) < 0.05


def test_what_packnet_keeps_and_piggyback_masks() -> None:
    """Every row of both tables, and what the text concludes from them; nothing is forgotten anywhere."""
    page = (PROTOCOLS / "begin.md").read_text(encoding="utf-8")
    means: dict[tuple[str, str, Any], float] = {}
    for method, axis, values in (("packnet", "method.keep", SHARES), ("piggyback", "method.threshold", THRESHOLDS)):
        for value in values:
            cells = []
            for dataset in ("cora", "citeseer"):
                runs = varied(method, axis)[dataset, value]
                assert len(runs) == 5
                assert {run.metrics["forgetting_max"] for run in runs} == {0.0}
                some = 100 * np.array([run.metrics["average_performance"] for run in runs])
                means[method, dataset, value] = float(some.mean())
                cells.append(text(some))
            name = "equal shares" if value is None else f"{axis.removeprefix('method.')} {value:g}"
            assert f"| {name} | {' | '.join(cells)} |" in page
    for dataset, loss in (("cora", 4.4), ("citeseer", 3.1)):
        kept = [means["packnet", dataset, share] for share in (0.1, 0.5, 0.9)]
        assert kept[0] > kept[1] - 0.2
        assert round(kept[0] - kept[2], 1) == loss
        assert f"{loss} " in page.partition("Larger shares hurt")[2]
        masked = [means["piggyback", dataset, threshold] for threshold in THRESHOLDS]
        assert max(masked[:3]) - min(masked[:3]) < 1
        assert masked[-1] < min(masked[:3])


def beside_begin(words: str) -> tuple[list[list[str]], np.ndarray]:
    return compared_with_print("begin.md", words)


def compared_with_print(name: str, words: str) -> tuple[list[list[str]], np.ndarray]:
    """The rows of a table that this page about protocols shows, and by how much each AP is above print."""
    assert f"{{{{ beside {words} }}}}" in (PROTOCOLS / name).read_text(encoding="utf-8")
    shown = tool("doc_beside").beside(tool("doc_gallery").gallery_repetitions(), words.split(), load_catalogue())
    cells = [line.strip("| ").split(" | ") for line in shown.replace("\xa0", " ").splitlines()[2:]]
    return cells, above_print(cells, 3)


def above_print(cells: list[list[str]], place: int) -> np.ndarray:
    """By how much our mean, in this column of such rows, is above the printed one, in the next."""
    return np.array([float(line[place].partition(" ")[0]) - float(line[place + 1].partition(" ")[0]) for line in cells])


@pytest.mark.plugins
def test_bitcoin_otc_with_six_trials_beside_print() -> None:
    """How many AP are lower, and by how much, counted in the tables that the page shows."""
    page = " ".join((PROTOCOLS / "begin.md").read_text(encoding="utf-8").split())
    cells, above = beside_begin("task-il @begin-2 bitcoin-otc : bare lwf ewc mas gem twp packnet piggyback hat joint")
    assert [line[2] for line in cells] == ["3"] * 10
    assert (
        f"AP is below the published value for {(above < 0).sum()} of the 10 methods, and by {-above.mean():.1f} points on average over "
        "all ten" in page
    )
    cells, above = beside_begin("class-il @begin-2 bitcoin-otc : bare lwf ewc mas gem twp joint")
    assert [line[2] for line in cells] == ["3"] * 7
    assert f"the seven methods that do not need the task is within {np.abs(above).max():.1f} points of the published values" in page


@pytest.mark.plugins
def test_aromaticity_with_six_trials_beside_print() -> None:
    """How near AP is to print, and that five methods answer nothing but the last task in class-IL."""
    page = " ".join((PROTOCOLS / "begin.md").read_text(encoding="utf-8").split())
    cells, above = beside_begin("task-il @begin-2 aromaticity : bare lwf ewc mas gem twp packnet piggyback hat joint")
    assert [line[2] for line in cells] == ["3"] * 10
    assert {line[5].partition(" ")[0] for line in cells} == {"undecided"}
    apart = f"within {np.abs(above).max():.1f} points of the published values and {-above.mean():.1f} points below them on average"
    assert f"the AP of the ten methods is {apart}" in page
    cells, above = beside_begin("class-il @begin-2 aromaticity : bare lwf ewc mas gem twp joint")
    assert [line[2] for line in cells] == ["5"] + ["3"] * 5 + ["5"] * 2
    apart = f"within {np.abs(above[:-2]).max():.1f} points of the published values. Joint training is {-above[-2]:.1f} points below."
    assert f"the AP of the six continual learning methods is {apart}" in page
    assert f"it is {-above[-1]:.1f} points below" in page
    runs = [run for run in finished() if run.cell["scenario"] == "aromaticity/class-il@begin-2" and run.cell["seeds"]["order"] != 9000]
    runs = [run for run in runs if run.cell["configuration"].get("pretraining.scheme", "none") == "none"]
    earlier: dict[str, list[float]] = {run.cell["method"]: [] for run in runs}
    for run in runs:
        earlier[run.cell["method"]].append(sum(run.matrix[-1][:-1]))
    lost = ["bare", "lwf", "ewc", "mas", "twp"]
    assert [sum(earlier[method]) for method in lost] == [0.0] * 5
    assert f"In all {sum(len(earlier[method]) for method in lost)} runs of Bare, LwF, EWC, MAS and TWP" in page
    assert min(earlier["gem"]) > 0


@pytest.mark.plugins
def test_bitcoin_otc_over_time_beside_print() -> None:
    """How far AP and AF are from print, and that no value has a verdict."""
    page = " ".join((PROTOCOLS / "begin.md").read_text(encoding="utf-8").split())
    cells, above = beside_begin("time-il @begin-2 bitcoin-otc : bare lwf ewc mas gem twp joint")
    assert [line[2] for line in cells] == ["3"] * 7
    assert {line[place] for line in cells for place in (5, 8)} == {"artefact", "none"}
    assert f"the six continual learning methods is within {np.abs(above[:-1]).max():.1f} points of the published values" in page
    assert f"that of joint training is {above[-1]:.1f} points higher" in page
    forgot = dict(zip((line[1].partition(" ")[0] for line in cells[:-1]), above_print(cells[:-1], 6).tolist(), strict=True))
    more = [forgot.pop(method) for method in ("bare", "lwf", "ewc", "gem")]
    assert f"AF of Bare, LwF, EWC and GEM is {min(more):.1f} to {max(more):.1f} points above the published values" in page
    assert max(forgot.values()) < 1


@pytest.mark.plugins
def test_molecules_in_domains_beside_print() -> None:
    """How far AP, AF and FWT are from print, of the methods that have been run."""
    from cglsuite.reports.studies.ledger.compute import load_ledger

    page = " ".join((PROTOCOLS / "begin.md").read_text(encoding="utf-8").split())
    run = ("bare", "lwf", "ewc", "mas", "gem", "twp")
    cells, above = beside_begin(f"domain-il @begin-2 ogbg-molhiv : {' '.join(run)}")
    assert [line[2] for line in cells] == ["3"] * len(run)
    of_mas = run.index("mas")
    near, forgot = np.abs(np.delete(above, of_mas)).max(), np.abs(above_print(cells, 6)).max()
    assert f"AP is within {near:.1f} points of the published values. For all six, AF is within {forgot:.1f} points" in page
    assert f"its AP is {above[of_mas]:.1f} points above the published value" in page
    rows = load_ledger({"paper": "BeGin", "dataset": "ogbg-molhiv"}, ROOT / "reports" / "gallery" / "records", extras=False).rows
    printed = rows[rows["metric"] == "INT"].set_index("method")["published_mean"]
    rows = rows[rows["our_n"].notna()].set_index(["method_here", "metric"])
    assert set(rows.index) == {(method, metric) for method in run for metric in ("AP", "AF", "FWT")}
    verdicts = rows["verdict"].to_dict()
    assert verdicts.pop(("mas", "AF")) == "equivalent"
    assert set(verdicts.values()) == {"undecided"}
    mas = printed.pop("MAS")
    assert f"(INT {mas:.1f}, at most {printed.max():.1f} for the others)" in page
    for method in run:
        fwt = rows.loc[(method, "FWT")]
        assert row(method, [f"{fwt['our_mean']:.1f} ± {fwt['our_std']:.1f}", fwt["printed"]]) in page


@pytest.mark.plugins
def test_sider_and_tox21_beside_print() -> None:
    """On which side of print the AP of each method is, what MAS forgets, and that no value has a verdict."""
    page = " ".join((PROTOCOLS / "cglb.md").read_text(encoding="utf-8").split())
    run = ("bare", "lwf", "ewc", "mas", "twp")
    below, forgotten = {}, []
    for dataset, other in (("sider", "lwf"), ("tox21", "twp")):
        cells, above = compared_with_print("cglb.md", f"task-il @cglb-2 {dataset} : {' '.join(run)}")
        assert [line[2] for line in cells] == ["3"] * 5
        assert {line[place] for line in cells for place in (5, 8)} == {"artefact"}
        distances = -np.delete(above, run.index(other))
        assert distances.min() > 0.0
        below[dataset] = f"{distances.min():.1f} to {distances.max():.1f}"
        assert f"is {above[run.index(other)]:.1f} points above" in page
        forgotten.append(cells[run.index("mas")][6:8])
    assert (
        f"AP is {below['sider']} points below them on SIDER for all methods but LwF, and {below['tox21']} points below them on Tox21 "
        "for all methods but TWP"
    ) in page
    (one, printed_one), (two, printed_two) = ([text.split()[0] for text in line] for line in forgotten)
    said = (
        f"MAS forgets {one.lstrip('-')} points on SIDER and {two.lstrip('-')} on Tox21, but hardly anything in the paper "
        f"(AF {printed_one} and {printed_two})"
    )
    assert said in page


@pytest.mark.plugins
def test_a_pre_trained_body_on_aromaticity() -> None:
    """Every difference from a body that begins at random, paired by class order, and what the text says of AP and of GEM."""
    page = " ".join((PROTOCOLS / "begin.md").read_text(encoding="utf-8").split())
    cells, _ = beside_begin("class-il @begin-2 pretrained aromaticity : bare mas gem")
    assert [line[2] for line in cells] == ["5"] * 3 + ["3"] * 6
    results = load_campaign_results(
        ROOT / "reports/begin/aromaticity-pretraining.toml", ROOT / "reports/gallery/records", train_missing=False
    )
    assert {cell.state for cell in results.cells} == {"done"}
    given = {record.cell["method"]: record.cell["configuration"] for record in results.used}
    alike = ("training.lr", "backbone.dropout", "training.weight_decay")
    values: dict[tuple[str, str], dict[int, np.ndarray]] = {}
    for run in finished():
        settings = run.cell["configuration"]
        if run.cell["scenario"] != "aromaticity/class-il@begin-2" or run.cell["method"] not in given or run.cell["seeds"]["order"] == 9000:
            continue
        if all(settings[name] == given[run.cell["method"]][name] for name in alike):
            place = values.setdefault((run.cell["method"], settings.get("pretraining.scheme", "none")), {})
            place[run.cell["seeds"]["order"]] = 100 * np.array(
                [run.metrics[name] for name in ("average_performance", "forgetting_from_diagonal")]
            )
    assert {place: len(runs) for place, runs in values.items()} == {
        (method, scheme): n for method, n in (("bare", 5), ("mas", 3), ("gem", 3)) for scheme in ("none", "infograph", "graphcl")
    }
    found, others = {}, {}
    for (method, scheme), runs in values.items():
        if scheme != "none":
            for metric, moved in zip(("AP", "AF"), np.array([runs[k] - values[method, "none"][k] for k in sorted(runs)]).T, strict=True):
                test = ttest_1samp(moved, 0.0)
                low, high = test.confidence_interval(0.95)
                found[method, scheme, metric] = f"{moved.mean():.1f}", f"{low:.1f} to {high:.1f}"
                if method == "bare":
                    assert metric == "AF" or abs(moved.mean()) < 0.5
                else:
                    others[method, scheme, metric] = test.pvalue
    (more, interval), (more_graphcl, interval_graphcl) = (found["bare", scheme, "AF"] for scheme in ("infograph", "graphcl"))
    assert f"{more} points more with InfoGraph (95% interval {interval}) and {more_graphcl} with GraphCL ({interval_graphcl})" in page
    assert [place for place, p in others.items() if p < 0.05] == [("gem", "infograph", "AP")]
    assert f"GEM's AP with InfoGraph (+{found['gem', 'infograph', 'AP'][0]}, {found['gem', 'infograph', 'AP'][1]})" in page
    assert len(others) == 8
    assert 8 * min(others.values()) > 0.05
    forgot = [np.mean([run[1] for run in values["gem", scheme].values()]) for scheme in ("none", "infograph", "graphcl")]
    assert "Here, its AF is {:.1f} without pre-training, {:.1f} with InfoGraph and {:.1f} with GraphCL.".format(*forgot) in page
    printed = published_results().query("paper == 'BeGin' and table == '11' and method == 'GEM' and metric == 'AF'")
    values_in_print = dict(zip(printed["variant"].str.lower(), printed["mean"], strict=True))
    assert f"AF {values_in_print['ssl=none']:.1f} instead of 69.4" in page
    assert f"({values_in_print['ssl=infograph']:.1f} and {values_in_print['ssl=graphcl']:.1f}). Here," in page


def test_training_time_of_joint_training_on_aromaticity() -> None:
    """Both means, and the paired difference with its t interval."""
    page = " ".join((PROTOCOLS / "disagreement.md").read_text(encoding="utf-8").split())
    found: dict[bool, dict[int, float]] = {False: {}, True: {}}
    for record in finished():
        cell, order = record.cell, record.cell["seeds"]["order"]
        if (cell["scenario"], cell["method"]) == ("aromaticity/class-il@begin-2", "joint") and order != 9000:
            found[cell["configuration"]["method.warm_start"]][order] = 100 * record.metrics["average_performance"]
    fresh, carried = (np.array([found[warm][order] for order in sorted(found[warm])]) for warm in (False, True))
    assert len(fresh) == len(carried) == 5
    assert f"an AP of {text(carried)} over five class orders, compared with {text(fresh)} for a fresh model" in page
    low, high = ttest_1samp(carried - fresh, 0.0).confidence_interval(0.95)
    assert f"difference is {(carried - fresh).mean():.1f} points (95% interval {low:.1f} to {high:.1f}" in page


@pytest.mark.plugins
def test_epochs_of_aromaticity_under_cglb() -> None:
    """Every value of the table, and to which number of epochs each printed one is nearest."""
    from cglsuite.reports.studies.ledger.compute import load_ledger
    from cglsuite.reports.studies.ledger.page import overview

    page = " ".join((PROTOCOLS / "cglb.md").read_text(encoding="utf-8").split())
    found: dict[tuple[str, str, int], list[float]] = {}
    matrices: dict[str, list[np.ndarray]] = {}
    for record in finished():
        name = record.cell["scenario"]
        if name.startswith("aromaticity/") and name.endswith("@cglb-2"):
            place = record.scenario["setting"], record.cell["method"], record.cell["configuration"]["training.epochs"]
            found.setdefault(place, []).append(100 * record.metrics["backward_transfer"])
            if place[::2] == ("class-il", 100):
                matrices.setdefault(place[1], []).append(100 * np.array(record.matrix, dtype=float))
    assert {len(some) for some in found.values()} == {5}
    assert {len(some) for some in matrices.values()} == {5}
    earlier = [matrix[-1][:-1].mean() for method, some in matrices.items() for matrix in some if method != "joint"]
    assert (
        f"in all {len(earlier)} runs of methods other than joint training, the final accuracy on the earlier tasks is at most "
        f"{max(earlier):.1f}%" in page
    )
    learnt = np.mean([np.diag(matrix[1:]) for matrix in matrices["bare"]])
    assert f"fine-tuning reaches an accuracy of {learnt:.0f}%" in page
    results, nearest = published_results(), []
    results = results[(results["paper"] == "CGLB") & (results["dataset"] == "Aromaticity-CL") & (results["metric"] == "AF")]
    results = results[results["mean"].notna()]
    counted = [row for row in as_rows(results) if not known_about(row).artefacts]
    assert len(counted) == 6
    assert "AF in class-IL is undecided too" in page
    ledger = load_ledger({"paper": "CGLB", "dataset": "Aromaticity"}, ROOT / "reports/gallery/records", extras=False)
    shown = BeautifulSoup(str(overview(ledger)), "html.parser").text
    words = "1 differs and 2 are undecided. The largest difference: Bare is 30.6 points below the printed value in AF (different)"
    assert words in " ".join(shown.split())
    for row in counted:
        ours = {epochs: np.array(found[row["setting"].lower(), row["method"].lower(), epochs]) for epochs in (10, 20, 50, 100)}
        cells = " | ".join(text(some) for some in ours.values())
        assert f"| `{row['method'].lower()}`, {row['setting']} | {cells} | {row['mean']:.1f} ± {row['std']:.1f} |" in page
        nearest.append(min(ours, key=lambda epochs: abs(ours[epochs].mean() - row["mean"])))
    assert [nearest.count(epochs) for epochs in (10, 20, 50, 100)] == [1, 3, 2, 0]
    assert "one is closest to our result with 10 epochs, three with 20, two with 50 and none with 100" in page


@pytest.mark.plugins
def test_five_graphs_under_the_second_version_of_drift() -> None:
    """What the text concludes from all comparisons: which methods differ, and where one is another to the bit."""
    page = " ".join((PROTOCOLS / "drift.md").read_text(encoding="utf-8").split())
    folder = ROOT / "reports"
    results = load_campaign_results(folder / "drift" / "drift-2.toml", folder / "gallery" / "records", train_missing=False)
    compared = study(results)
    assert (len(compared.comparisons), compared.question.metric) == (15, "a_auc")
    pairs = pd.concat([one.tests.assign(scenario=one.preset) for one in compared.comparisons])
    pairs = pairs[(pairs["first"] != "joint") & (pairs["second"] != "joint")]
    differ = pairs[pairs["verdict"].str.endswith(" is better")]
    assert f"Of the {len(pairs)} pairs that exclude joint training, {len(differ)} differ significantly" in page
    worse = differ[differ["scenario"].str.startswith("citationfull-citeseer/") & (differ["verdict"] != "dmsg is better")]
    assert ((worse["first"] == "dmsg") | (worse["second"] == "dmsg")).sum() == 4
    found = {(r.cell["scenario"], r.cell["method"], r.cell["seeds"]["order"]): r for r in results.records}
    same = [place for place, r in found.items() if place[1] == "mas-star" and equal(r, found[place[0], "bare", place[2]])]
    assert len(same) == 18
    assert {place[0].partition("/")[0] for place in same} == {"uai2010", "actor"}


def equal(one: Record, other: Record) -> bool:
    return np.array_equal(one.performance(), other.performance(), equal_nan=True)


def test_what_a_sum_over_neighbours_costs_on_drifts_streams() -> None:
    """Every cell of the table, and joint training at the bottom without normalisation alone."""
    page = (PROTOCOLS / "drift.md").read_text(encoding="utf-8")
    found: dict[tuple[str, str, str], list[float]] = {}
    for record in finished():
        cell = record.cell
        if cell["scenario"].endswith("/gaussian@drift-2"):
            place = cell["scenario"].partition("/")[0], cell["method"], cell["configuration"]["backbone.normalisation"]
            found.setdefault(place, []).append(100 * record.metrics["a_auc"])
    assert {len(some) for some in found.values()} == {3}
    datasets = dict.fromkeys(place[0] for place in found if place[2] == "symmetric")
    assert len(datasets) == 5
    for dataset in datasets:
        sides = [(method, how) for method in ("bare", "er", "joint") for how in ("none", "symmetric")]
        cells = " | ".join(text(np.array(found[dataset, *side])) for side in sides)
        assert f"| {dataset} | {cells} |" in page
    ends = [np.mean(found["uai2010", "joint", how]) for how in ("none", "symmetric")]
    assert ends[0] < 15 < 80 < ends[1]


@cache
def varied(method: str, *axes: str) -> dict[tuple[Any, ...], list[Record]]:
    """Runs in task-IL with learning rate and dropout fixed, by data set and the values of ``axes``; HAT's are as in its paper."""
    wanted = {"training.lr": 1e-3, "backbone.dropout": 0.5}
    wanted |= {"method.as_begin": False, "training.norm_statistics": "per-task"} if method == "hat" else {}
    grouped: dict[tuple[Any, ...], list[Record]] = {}
    for record in finished():
        given = record.cell["configuration"]
        dataset, _, protocol = record.cell["scenario"].partition("/")
        if record.cell["method"] == method and protocol == "task-il@begin-1" and wanted.items() <= given.items():
            grouped.setdefault((dataset, *(given[axis] for axis in axes)), []).append(record)
    return grouped
