"""Measure how much results depend on the order of tasks or classes, and compute the tables of a study.

:mod:`cglsuite.reports.studies.orders.page` formats them. Values are fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.base.errors import UsageError
from cglsuite.base.hashing import digest
from cglsuite.cells.records.record import Record
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.results.measures import TASK_MEASURES, is_fraction, performance_bounds, performance_name, value_of
from cglsuite.reports.results.published import published_sensitivity
from cglsuite.reports.results.results import CampaignResults, Group
from cglsuite.reports.results.tables import mean_interval, mean_std
from cglsuite.reports.results.variants import changes_as_text, order_of, tasks_of

UNITS = {"task": "task orders", "class": "class orders"}
"""The units for which OPDs are computed, and the orders each is taken over."""
_HALF_RANGE = (0.05, 0.95)


# --- order-normalised performance disparity --------------------------------------------------------------------------------------


def sensitivity(study: OrderStudy) -> pd.DataFrame:
    """Compute the AOPD and MOPD of every design, unit (task or class) and method, with interval, null and published values.

    Returns:
        Columns design, unit, method; n_orders, n_repeats, seeds_shared (False: every order has a seed of its own, so that OPD counts seed
        noise in full); aopd, aopd_std, aopd_low, aopd_high and the same for mopd: mean over repeats, sample standard deviation,
        interval; aopd_refused, mopd_refused: why there is none; half_low, half_high: 5 to 95% of AOPD over random halves of the orders; k,
        aopd_k, mopd_k: expected over k of the orders, null_aopd, null_mopd: over k seeds of one same order, null_seeds, null_orders;
        no_null: why there is none; published: the published rows by metric, none for a changed preset; refused: why there is no OPD at all.
    """
    rows = []
    for design, unit, method, part in _parts(study):
        row: dict[str, Any] = {"design": design.key, "unit": unit, "method": method, **dict.fromkeys(_REASONS, "")}
        try:
            row |= _sensitivity(part)
        except stats.Refused as refusal:
            row["refused"] = str(refusal)
        published = {} if design.changes else published_sensitivity(design.base, method, design.backbone, unit)
        rows.append(row | {"published": published})
    return pd.DataFrame(rows, columns=_SENSITIVITY)


def repeat_totals(study: OrderStudy) -> pd.DataFrame:
    """Compute the AOPD and MOPD of every repeat. A repeat is a seed with which all orders were run.

    Returns:
        Columns design, unit, method, seed, aopd, mopd, refused; one row with the reason where there is no OPD.
    """
    rows: list[dict[str, Any]] = []
    for design, unit, method, part in _parts(study):
        place = {"design": design.key, "unit": unit, "method": method}
        try:
            totals = _totals(part)[0]
        except stats.Refused as refusal:
            rows.append(place | {"refused": str(refusal)})
            continue
        rows += [place | {"seed": row["seed"], "aopd": row["aopd"], "mopd": row["mopd"], "refused": ""} for row in as_rows(totals)]
    return pd.DataFrame(rows, columns=["design", "unit", "method", "seed", "aopd", "mopd", "refused"])


_REASONS = ("aopd_refused", "mopd_refused", "no_null", "refused")
_SENSITIVITY = ["design", "unit", "method", "n_orders", "n_repeats", "seeds_shared"]
_SENSITIVITY += [f"{what}{part}" for what in ("aopd", "mopd") for part in ("", "_std", "_low", "_high", "_refused")]
_SENSITIVITY += ["half_low", "half_high", "k", "aopd_k", "mopd_k", "null_aopd", "null_mopd", "null_seeds", "null_orders"]
_SENSITIVITY += ["no_null", "published", "refused"]


def _parts(study: OrderStudy) -> Iterable[tuple[Design, str, str, pd.DataFrame]]:
    """The final accuracies of every design, unit and method; tasks only over orders of the same tasks."""
    for key, design in study.designs.items():
        finals = study.finals[study.finals["design"] == key]
        for unit in UNITS:
            part = finals[finals["unit"] == unit]
            if unit == "task" and len(part):
                try:
                    part, _ = stats.task_orders(part)
                except stats.Refused:
                    part = part.iloc[:0]
            for method in study.methods:
                mine = part[part["method"] == method]
                if len(mine):
                    yield design, unit, method, mine


def _totals(part: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """AOPD and MOPD per repeat, the items scored in every order, and the complete repeats."""
    scored, _ = stats.common_items(part)
    if scored.empty:
        raise stats.Refused("no item was scored in every order")
    repeats, _ = stats.repeats(scored)
    return stats.opd_totals(stats.opd(repeats)), scored, repeats


def _sensitivity(part: pd.DataFrame) -> dict[str, Any]:
    totals, scored, repeats = _totals(part)
    shared = totals["seed"].iloc[0] != stats.UNSHARED
    n_orders = int(totals["n_orders"].min())
    row: dict[str, Any] = {"n_orders": n_orders, "n_repeats": len(totals), "seeds_shared": shared}
    for what in ("aopd", "mopd"):
        row |= _mean(totals[what].to_numpy(dtype=np.float64), what)
    if n_orders >= 4:
        halves = stats.subset_opd(repeats, n_orders // 2)["aopd"]
        row |= dict(zip(("half_low", "half_high"), map(float, halves.quantile(list(_HALF_RANGE))), strict=True))
    return row | _null(scored, repeats, n_orders)


def _mean(values: np.ndarray[Any, Any], quantity: str) -> dict[str, Any]:
    numbers = mean_std(values)
    row = {quantity: numbers["mean"], f"{quantity}_std": numbers["std"]}
    if full := int((values >= 1.0).sum()):
        return row | {f"{quantity}_refused": f"{full} of {values.size} repeats are at 100 points, the largest possible value"}
    interval = mean_interval(values, bounds=(0.0, 1.0), unit="repeats")
    refused = interval["interval"] if np.isnan(interval["low"]) else ""
    return row | {f"{quantity}_low": interval["low"], f"{quantity}_high": interval["high"], f"{quantity}_refused": refused}


def _null(scored: pd.DataFrame, repeats: pd.DataFrame, n_orders: int) -> dict[str, Any]:
    """OPDs over orders and over seeds for the same number of draws."""
    try:
        k = min(n_orders, stats.null_opd(scored).n_seeds)
        null = stats.null_opd(scored, k)
    except stats.Refused as refusal:
        return {"no_null": str(refusal)}
    orders = stats.subset_opd(repeats, k)["mopd"].mean() if k < n_orders else stats.opd_totals(stats.opd(repeats))["mopd"].mean()
    expected = {"k": k, "aopd_k": float(stats.expected_opd(repeats, k)["opd"].mean()), "mopd_k": float(orders)}
    of_null = {"null_aopd": null.aopd, "null_mopd": null.mopd, "null_seeds": null.n_seeds, "null_orders": len(null.orders)}
    return expected | of_null


def items(study: OrderStudy) -> pd.DataFrame:
    """Compute the order-preference difference (OPD) of each task or class.

    Returns:
        Columns design, unit, method, item, opd (mean over repeats), std, null (over null_k seeds of one same order; NaN where there is
        no null), opd_k (over as many orders), null_k, n_orders.
    """
    rows: list[dict[str, Any]] = []
    for design, unit, method, part in _parts(study):
        scored, _ = stats.common_items(part)
        try:
            repeats, _ = stats.repeats(scored)
            ranges = stats.opd(repeats)
        except stats.Refused:
            continue
        identity = {"design": design.key, "unit": unit, "method": method}
        nulls = _item_nulls(scored, repeats, int(ranges["n_orders"].min()))
        for item, values in ranges.groupby("item", sort=False):
            mean, std = float(values["opd"].mean()), float(values["opd"].std(ddof=1))
            rows.append(identity | {"item": item, "opd": mean, "std": std, "n_orders": int(values["n_orders"].min())} | nulls.get(item, {}))
    frame = pd.DataFrame(rows, columns=["design", "unit", "method", "item", "opd", "std", "null", "opd_k", "null_k", "n_orders"])
    return frame.sort_values(["design", "unit", "method", "item"], key=_natural_order, kind="stable").reset_index(drop=True)


def _natural_order(column: pd.Series) -> pd.Series:
    """Sort items by number, and everything else in its present order."""
    if column.name != "item":
        return pd.Series(pd.factorize(column)[0], index=column.index)
    parts = [tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in str(item).split(",")) for item in column]
    place = {value: i for i, value in enumerate(sorted(set(parts)))}
    return pd.Series([place[part] for part in parts], index=column.index)


def _item_nulls(scored: pd.DataFrame, repeats: pd.DataFrame, n_orders: int) -> dict[Any, dict[str, Any]]:
    try:
        k = min(n_orders, stats.null_opd(scored).n_seeds)
        null = stats.null_opd(scored, k).items.set_index("item")["opd"]
    except stats.Refused:
        return {}
    expected = stats.expected_opd(repeats, k).groupby("item", sort=False)["opd"].mean()
    return {item: {"null": float(null[item]), "opd_k": float(expected[item]), "null_k": k} for item in null.index}


# --- average accuracy over orders ------------------------------------------------------------------------------------------------


def order_scores(study: OrderStudy, design: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the AA of every method in every order, averaged over seeds on the complete block of a design, and the cells outside the block.

    Returns:
        Columns method, order, value, n_seeds; and rows of :attr:`OrderStudy.cells` with a column reason.

    Raises:
        Refused: if there is no complete block of at least two orders.
    """
    block, outside = _block(study.of(design))
    scores = stats.order_means(block)
    if scores["order"].nunique() < 2:
        raise stats.Refused(f"{scores['order'].nunique()} complete order: the spread over orders needs at least 2")
    return scores, outside


def _block(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The complete block of methods, orders and seeds; seeds confounded with orders count as one repeat."""
    frame = cells.assign(value=cells["aa"])
    undefined = frame["value"].isna()
    lost = frame[undefined].assign(reason="AA is undefined")
    frame = frame[~undefined]
    if frame["order"].nunique() > 1 and frame.groupby("seed")["order"].nunique().max() == 1:
        frame = frame.assign(seed=stats.UNSHARED)
    block, outside = stats.complete_block(frame)
    return block, pd.concat([outside, lost]) if len(lost) else outside


def comparisons(study: OrderStudy, design: str) -> pd.DataFrame:
    """Compare methods over orders by their mean AA with its interval, their spread, their mean rank and how often they rank first.

    Returns:
        Columns method, n_orders, mean, std, low, high, interval (kind, or the reason for its absence), lowest, highest, rank, first.

    Raises:
        Refused: as :func:`order_scores`.
    """
    scores, _ = order_scores(study, design)
    several = scores["method"].nunique() > 1
    ranked = stats.ranks(scores) if several else None
    rows = []
    for method, part in scores.groupby("method", sort=False):
        values = part["value"].to_numpy(dtype=np.float64)
        row: dict[str, Any] = {"method": method, "n_orders": values.size, "mean": float(values.mean()), "std": float(values.std(ddof=1))}
        row |= {"lowest": float(values.min()), "highest": float(values.max())}
        row |= mean_interval(values, unit="orders", bounds=study.designs[design].bounds)
        if ranked is not None:
            row |= {"rank": float(ranked[method].mean()), "first": float((ranked[method] == ranked.min(axis=1)).mean())}
        rows.append(row)
    return pd.DataFrame(
        rows, columns=["method", "n_orders", "mean", "std", "low", "high", "interval", "lowest", "highest", "rank", "first"]
    )


def win_tables(study: OrderStudy) -> dict[str, pd.DataFrame]:
    """Return, per design, the share of orders in which the row's method beats the column's. Designs without enough data are omitted."""
    tables = {}
    for design in study.designs:
        with suppress(stats.Refused):
            tables[design] = stats.win_shares(order_scores(study, design)[0])
    return tables


def concordance(study: OrderStudy, design: str) -> float:
    """Compute Kendall's W over the orders of a design.

    Raises:
        Refused: as :func:`order_scores` and :func:`cglsuite.stats.kendalls_w`.
    """
    return stats.kendalls_w(order_scores(study, design)[0])


def components(study: OrderStudy) -> dict[str, stats.VarianceComponents | stats.Refused]:
    """Compute the variance components of AA for every design, or give the reason for a refusal."""
    fits: dict[str, stats.VarianceComponents | stats.Refused] = {}
    for design in study.designs:
        try:
            block, _ = _block(study.of(design))
            if set(block["seed"]) == {stats.UNSHARED}:
                raise stats.Refused("every order has its own seed, so order and seed effects cannot be separated")
            fits[design] = stats.variance_components(block[["method", "order", "seed", "value"]])
        except stats.Refused as refusal:
            fits[design] = refusal
    return fits


def bound_checks(study: OrderStudy) -> pd.DataFrame:
    """Check the bound on forgetting in every cell. Columns: those of :func:`cglsuite.stats.check_bound`, and design, method and key.

    Cells whose performance is not a fraction have no bound.
    """
    checked = stats.check_bound(study.cells[["design", "method", "key", "aa", "af", "n_tasks"]])
    for key, design in study.designs.items():
        if not design.percent:
            mine = checked["design"] == key
            checked.loc[mine, ["bound", "slack"]] = np.nan
            checked.loc[mine, "obeys"] = None
            checked.loc[mine, "reason"] = "performance is no fraction"
    return checked


def left_out(study: OrderStudy) -> pd.DataFrame:
    """List the records that tables leave out. Columns: design, methods (tuple), what (tuple of tables), reason.

    These are repeats with fewer orders than the others, items that were not scored everywhere, and orders that another method lacks.
    """
    excluded: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for design, what, method, reason in [*_outside_opd(study), *_outside_blocks(study)]:
        methods, tables = excluded.setdefault((design, reason), ({}, {}))
        methods[method], tables[what] = None, None
    rows = [(design, tuple(methods), tuple(tables), reason) for (design, reason), (methods, tables) in excluded.items()]
    return pd.DataFrame(rows, columns=["design", "methods", "what", "reason"])


def _outside_opd(study: OrderStudy) -> Iterable[tuple[str, str, str, str]]:
    for design, unit, method, part in _parts(study):
        place = (design.key, f"OPD per {unit}", method)
        scored, unscored = stats.common_items(part)
        yield from ((*place, f"{unit} {row['item']}: {row['reason']}") for row in as_rows(unscored))
        try:
            _, partial = stats.repeats(scored)
        except stats.Refused:
            continue  # the table of OPDs shows this refusal
        for reason, seeds in partial.groupby("reason", sort=False)["seed"]:
            yield (*place, f"{_list_of_seeds('seed', list(seeds))}: run with {reason}, which may serve as a null")


def _outside_blocks(study: OrderStudy) -> Iterable[tuple[str, str, str, str]]:
    what = "AA over orders, ranks, variance components"
    for key in study.designs:
        try:
            _, outside = order_scores(study, key)
        except stats.Refused:
            continue  # the table of comparisons shows this refusal
        for (method, reason), part in outside.groupby(["method", "reason"], sort=False):
            axis = "seed" if "seed" in str(reason) else "order"
            yield key, what, str(method), f"{_list_of_seeds(axis, list(part[axis].drop_duplicates()))}: {reason}"


def _list_of_seeds(axis: str, names: Sequence[str]) -> str:
    """A short list of seeds: ``seed 0/3``, ``7 seeds (0/3; 0/4 and 5 more)``; seeds are split/init."""
    shown = "; ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
    return f"{axis} {shown}" if len(names) == 1 else f"{len(names)} {axis}s ({shown})"


# The records of campaigns on orders, pooled into tidy frames: one row per cell, and one per final accuracy of a task or class.
# Campaigns are pooled if they differ only in orders and seeds: task orders with class orders, all orders with one order over many seeds.
# Values are fractions.

_ORDER = "scenario.class_order"
_SAME = 1e-12


@dataclass(frozen=True, kw_only=True)
class Design:
    """The settings that comparable records share: the scenario (apart from its orders) and the backbone.

    Args:
        name: the preset, with a hash if more than the order was overridden. base: the preset. changes: what was overridden.
        percent: whether performance is a fraction. performance: name of the measure. bounds: of performance, where it is a fraction.
        mark: part of the hash, where another design of the study would have the same title.
    """

    name: str
    base: str
    backbone: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    percent: bool = True
    performance: str = "accuracy"
    bounds: tuple[float, float] | None = (0.0, 1.0)
    mark: str = ""

    @property
    def key(self) -> str:
        """A tuple that identifies the design."""
        return f"{self.name} × {self.backbone}"

    @property
    def title(self) -> str:
        """The design in words, for headings and figures."""
        return f"{scenario_words(self.name)}{self.mark} × {self.backbone}"

    @property
    def changes_text(self) -> str:
        """All overrides as text, such as ``n_tasks = 5, ...``."""
        return changes_as_text(self.changes)

    @property
    def unit(self) -> tuple[int, float]:
        """The number of digits and the scale of performance on a page. Fractions are shown in percent."""
        return (1, 100.0) if self.percent else (4, 1.0)

    @property
    def scale(self) -> float:
        """The factor from stored to displayed values."""
        return self.unit[1]


@dataclass(frozen=True, kw_only=True)
class OrderStudy:
    """The pooled records of campaigns, by design.

    Args:
        results: those of every campaign. designs: by key.
        cells: one row per record: design, method, order, partition, seed, order_seed, split_seed, init_seed, aa, af, n_tasks, source, key.
            ``order`` is the sequence of tasks in words, ``partition`` the same tasks in no order.
        finals: one row per record and task or class: design, method, order, partition, seed, unit, item, value (NaN: not scored).
        repeated: further records of a cell that already has one. contradicting: repeated records whose results differ.
    """

    results: tuple[CampaignResults, ...]
    designs: Mapping[str, Design]
    cells: pd.DataFrame
    finals: pd.DataFrame
    repeated: int = 0
    contradicting: int = 0

    @cached_property
    def methods(self) -> list[str]:
        """The methods in campaign order, which determines their colours."""
        return list(dict.fromkeys(self.cells["method"]))

    def of(self, design: str) -> pd.DataFrame:
        """Return the cells of a design."""
        return self.cells[self.cells["design"] == design]


def pool(results: Sequence[CampaignResults]) -> OrderStudy:
    """Pool the records of all campaigns in one study. Shared records and cells that were run twice count once.

    Raises:
        UsageError: if a record is from a task-free stream.
    """
    designs: dict[str, Design] = {}
    cells: list[dict[str, Any]] = []
    finals: list[dict[str, Any]] = []
    seen: dict[tuple[str, ...], Record] = {}
    repeated = contradicting = 0
    for owner, group, record in [(result, g, r) for result in results for g in result.groups for r in g.records]:
        if record.stream:
            raise UsageError(f"{group.preset} is a task-free stream: its latent tasks have no order; see the notebook task_free_dynamics")
        design = _design(group, record, owner)
        cell = _identifying_columns(group, record, design)
        place = (cell["design"], cell["method"], cell["order"], cell["seed"])
        if place in seen:
            repeated += seen[place].key != record.key
            first, again = seen[place].performance(), record.performance()
            contradicting += first.shape != again.shape or not np.allclose(first, again, rtol=0.0, atol=_SAME, equal_nan=True)
            continue
        seen[place], matrix = record, record.performance()
        designs.setdefault(design.key, design)
        forgetting = TASK_MEASURES["af"]
        scores = {"aa": value_of(TASK_MEASURES["aa"], record), "af": forgetting.loss(value_of(forgetting, record))}
        cells.append(cell | scores | {"n_tasks": matrix.shape[1]})
        shared = {name: cell[name] for name in ("design", "method", "order", "partition", "seed")}
        finals += [shared | {"unit": unit, "item": item, "value": value} for unit, item, value in _final(record)]
    return OrderStudy(
        results=tuple(results),
        designs=_marked(designs),
        cells=pd.DataFrame(cells, columns=_CELLS),
        finals=pd.DataFrame(finals, columns=["design", "method", "order", "partition", "seed", "unit", "item", "value"]),
        repeated=repeated,
        contradicting=contradicting,
    )


_CELLS = ["design", "method", "order", "partition", "seed", "order_seed", "split_seed", "init_seed", "source", "key", "aa", "af", "n_tasks"]


def _design(group: Group, record: Record, results: CampaignResults) -> Design:
    variant = results.variants.get(group.preset)
    changes = {name: value for name, value in (variant.changes if variant else {}).items() if name != _ORDER}
    base = str(record.cell["scenario"])
    name = f"{base}+{digest(changes)[:8]}" if changes else base
    measured: dict[str, Any] = {"performance": performance_name(record.scenario), "bounds": performance_bounds(record)}
    return Design(name=name, base=base, backbone=group.backbone, changes=changes, percent=is_fraction(record), **measured)


def _marked(designs: Mapping[str, Design]) -> dict[str, Design]:
    titles = Counter(design.title for design in designs.values())
    marks = {key: f" ({design.name.rpartition('+')[2][:4]})" if titles[design.title] > 1 else "" for key, design in designs.items()}
    return {key: replace(design, mark=marks[key]) for key, design in designs.items()}


def _identifying_columns(group: Group, record: Record, design: Design) -> dict[str, Any]:
    seeds, tasks = record.cell["seeds"], tasks_of(record)
    source = f"{record.provenance['core']['source']}/{record.environment.get('torch')}"
    place = {"design": design.key, "method": group.label, "order": order_of(record), "seed": f"{seeds['split']}/{seeds['init']}"}
    place |= {f"{axis}_seed": seeds[axis] for axis in ("order", "split", "init")}
    return place | {"partition": " | ".join(sorted(item for _, item in tasks)), "source": source, "key": record.key}


def _final(record: Record) -> list[tuple[str, str, float]]:
    """Unit, item and accuracy after the last task; tasks are identified by content, classes by global id."""
    last = record.performance()[-1]
    by_task = [("task", item, float(value)) for (_, item), value in zip(tasks_of(record), last, strict=True)]
    by_class = record.per_class[-1] if record.per_class else []
    arriving = {c for task in record.tasks for c in task["classes"]}
    return by_task + [
        ("class", str(c), np.nan if v is None else float(v)) for c, v in enumerate(by_class) if c in arriving or v is not None
    ]
