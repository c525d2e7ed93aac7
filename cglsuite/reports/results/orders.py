"""The order of tasks in a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cglsuite.specs import order_count

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record

__all__ = ["order_of", "orders_in_all", "place_of", "tasks_of"]


def order_of(record: Record) -> str:
    """The order in which tasks arrived, as text; equal if and only if the orders are."""
    return " | ".join(name for name, _ in tasks_of(record))


def place_of(record: Record) -> dict[str, str]:
    """The order, split and seed of a record.

    In a stream of tasks the order is the sequence itself, which several seeds may draw. In a task-free stream it is the seed.
    """
    seeds = record.cell["seeds"]
    order = str(seeds["order"]) if record.stream else order_of(record)
    return {"order": order, "split": str(seeds["split"]), "seed": str(seeds["init"])}


def orders_in_all(records: Sequence[Record]) -> int | None:
    """The number of possible orders if the records' scenario has all of them, otherwise ``None``."""
    if any(record.stream or record.scenario.get("class_order") != "all-tasks" for record in records):
        return None
    return order_count("all-tasks", len(records[0].matrix[0])) if records else None


def tasks_of(record: Record) -> list[tuple[str, str]]:
    """For every task in order of arrival: its text in the order, and its identity at any position.

    Both are the task's classes, in order of arrival and sorted; if tasks share their classes (domains), both are its name.
    """
    n_tasks = len(record.matrix[0])
    tasks = list(record.tasks) or [{"classes": [], "name": str(k)} for k in range(n_tasks)]
    sets = [tuple(sorted(task["classes"])) for task in tasks]
    if len(set(sets)) < len(sets):
        names = [str(task.get("name", k)) for k, task in enumerate(tasks)]
        return [(name, name) for name in names]
    return [(_listed(task["classes"]), _listed(classes)) for task, classes in zip(tasks, sets, strict=True)]


def _listed(classes: Iterable[int]) -> str:
    return ",".join(map(str, classes))
