"""The records of campaigns on orders, pooled into tidy frames: one row per cell, and one per final accuracy of a task or class.

Campaigns are pooled if they differ only in orders and seeds: task orders with class orders, all orders with one order
over many seeds. Values are fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite.base.errors import UsageError
from cglsuite.base.hashing import digest
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.results.orders import order_of, tasks_of
from cglsuite.reports.results.performance import is_fraction, performance_bounds, performance_name
from cglsuite.reports.results.variants import value_as_text
from cglsuite.stats import metrics

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.reports.results.results import CampaignResults, Group

__all__ = ["Design", "OrderStudy", "pool"]

_ORDER = "scenario.class_order"
_SAME = 1e-12


@dataclass(frozen=True, kw_only=True)
class Design:
    """What comparable records share: the scenario except for its orders, and the backbone.

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
        """Identifies the design."""
        return f"{self.name} × {self.backbone}"

    @property
    def title(self) -> str:
        """The design in words, for headings and figures."""
        return f"{scenario_words(self.name)}{self.mark} × {self.backbone}"

    @property
    def changes_text(self) -> str:
        """All changes as text: ``n_tasks = 5, ...``."""
        return ", ".join(f"{name} = {value_as_text(value)}" for name, value in self.changes.items())


@dataclass(frozen=True, kw_only=True)
class OrderStudy:
    """The pooled records of campaigns.

    Args:
        results: of every campaign. designs: by key.
        cells: one row per record: design, method, order, partition, seed, order_seed, split_seed, init_seed, aa, af, n_tasks, source, key.
            ``order`` is the sequence of tasks in words, ``partition`` the same tasks in no order.
        finals: one row per record and task or class: design, method, order, partition, seed, unit, item, value (NaN: not scored).
        repeated: further records of a cell that already has one. contradicting: those of them whose results differ.
    """

    results: tuple[CampaignResults, ...]
    designs: Mapping[str, Design]
    cells: pd.DataFrame
    finals: pd.DataFrame
    repeated: int = 0
    contradicting: int = 0

    @cached_property
    def methods(self) -> list[str]:
        """The methods in the campaigns' order, which fixes their colours."""
        return list(dict.fromkeys(self.cells["method"]))

    def of(self, design: str) -> pd.DataFrame:
        """The cells of a design."""
        return self.cells[self.cells["design"] == design]


def pool(results: Sequence[CampaignResults]) -> OrderStudy:
    """The records of all campaigns in one study; a shared record counts once, and so does a cell that was run twice.

    Raises:
        UsageError: a record of a task-free stream.
    """
    designs: dict[str, Design] = {}
    cells: list[dict[str, Any]] = []
    finals: list[dict[str, Any]] = []
    seen: dict[tuple[str, ...], Record] = {}
    repeated = differing = 0
    for owner, group, record in [(one, g, r) for one in results for g in one.groups for r in g.records]:
        if record.stream:
            raise UsageError(f"{group.preset} is a task-free stream: its latent tasks have no order; see the notebook task_free_dynamics")
        design = _design(group, record, owner)
        cell = _identity(group, record, design)
        place = (cell["design"], cell["method"], cell["order"], cell["seed"])
        if place in seen:
            repeated += seen[place].key != record.key
            differing += _differ(seen[place], record)
            continue
        seen[place], designs[design.key] = record, designs.get(design.key, design)
        cells.append(cell | _scores(record))
        shared = {name: cell[name] for name in ("design", "method", "order", "partition", "seed")}
        finals += [shared | {"unit": unit, "item": item, "value": value} for unit, item, value in _final(record)]
    return OrderStudy(
        results=tuple(results),
        designs=_marked(designs),
        cells=pd.DataFrame(cells, columns=_CELLS),
        finals=pd.DataFrame(finals, columns=["design", "method", "order", "partition", "seed", "unit", "item", "value"]),
        repeated=repeated,
        contradicting=differing,
    )


_CELLS = ["design", "method", "order", "partition", "seed", "order_seed", "split_seed", "init_seed", "source", "key", "aa", "af", "n_tasks"]


def _design(group: Group, record: Record, results: CampaignResults) -> Design:
    variant = results.variants.get(group.preset)
    changes = {name: value for name, value in (variant.changes if variant else {}).items() if name != _ORDER}
    base = str(record.cell["scenario"])
    name = f"{base}+{digest(changes)[:8]}" if changes else base
    measured: dict[str, Any] = {
        "percent": is_fraction(record),
        "performance": performance_name(record.scenario),
        "bounds": performance_bounds(record),
    }
    return Design(name=name, base=base, backbone=group.backbone, changes=changes, **measured)


def _marked(designs: Mapping[str, Design]) -> dict[str, Design]:
    titles = Counter(design.title for design in designs.values())
    marks = {key: f" ({one.name.rpartition('+')[2][:4]})" if titles[one.title] > 1 else "" for key, one in designs.items()}
    return {key: replace(one, mark=marks[key]) for key, one in designs.items()}


def _identity(group: Group, record: Record, design: Design) -> dict[str, Any]:
    seeds, tasks = record.cell["seeds"], tasks_of(record)
    source = f"{record.provenance['core']['source']}/{record.environment.get('torch')}"
    return {
        "design": design.key,
        "method": group.label,
        "order": order_of(record),
        "partition": " | ".join(sorted(item for _, item in tasks)),
        "seed": f"{seeds['split']}/{seeds['init']}",
        **{f"{axis}_seed": seeds[axis] for axis in ("order", "split", "init")},
        "source": source,
        "key": record.key,
    }


def _scores(record: Record) -> dict[str, Any]:
    matrix = record.performance()
    return {"aa": metrics.average_performance(matrix), "af": metrics.forgetting_max(matrix), "n_tasks": matrix.shape[1]}


def _final(record: Record) -> list[tuple[str, str, float]]:
    """Unit, item and accuracy after the last task; tasks by their content, classes by their global id."""
    last = record.performance()[-1]
    by_task = [("task", item, float(value)) for (_, item), value in zip(tasks_of(record), last, strict=True)]
    by_class = record.per_class[-1] if record.per_class else []
    arriving = {c for task in record.tasks for c in task["classes"]}
    return by_task + [
        ("class", str(c), np.nan if v is None else float(v)) for c, v in enumerate(by_class) if c in arriving or v is not None
    ]


def _differ(one: Record, other: Record) -> bool:
    first, second = one.performance(), other.performance()
    return first.shape != second.shape or not np.allclose(first, second, rtol=0.0, atol=_SAME, equal_nan=True)
