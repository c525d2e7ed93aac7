"""The key ``orders`` of a campaign: which orders of tasks or classes its cells have, as ``scenario.class_order`` with order seeds.

============================= ======================================================================= ==============================
``orders``                    the cells' orders                                                       ``scenario.class_order``
============================= ======================================================================= ==============================
``"all-tasks"``               every order of the native tasks, T!                                     ``all-tasks``
``"random-tasks:30"``         30 drawn orders of the native tasks (one may be drawn twice)            ``random-tasks``
``"latin-tasks"``             the rows of a balanced Latin square over the tasks, T, or 2 T if T odd  ``latin-tasks``
``"random-classes:100"``      100 drawn orders of the classes                                         ``random``
``"latin-classes:10"``        the first 10 rows of such a square over the classes                     ``latin-classes``
``"native"``                  the native order                                                        ``native``
``[[3, 1, 2, 0], [...]]``     exactly these orders of the classes                                     ``3,1,2,0 | ...``
``["all-tasks", ...]``        several of these, one after the other
============================= ======================================================================= ==============================

T is ``scenario.n_tasks`` of the preset or the campaign. An order that is part of two designs is two cells.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.inputs import quoted, whole_number
from cglsuite.specs import ScenarioSpec, order_count

ORDERS_LIMIT = CELLS_AT_MOST = 50_000
_MOST_TASKS = 100_000
"""More than the orders of any allowed design, and few enough to count quickly."""
_RULES = {
    "all-tasks": "all-tasks",
    "latin-tasks": "latin-tasks",
    "random-tasks": "random-tasks",
    "random-classes": "random",
    "latin-classes": "latin-classes",
    "native": "native",
}
_COUNTED = ("random-tasks", "random-classes", "latin-classes")


@dataclass(frozen=True)
class Order:
    """One order of a cell: the value of ``scenario.class_order`` and the order seed."""

    rule: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class OrderDesign:
    """One design: a value of ``scenario.class_order``, and its number of order seeds (``None``: determined by the number of tasks).

    ``classes``: the number of classes in explicit orders.
    """

    rule: str
    count: int | None
    classes: int = 0

    def orders(self, spec: ScenarioSpec, n_tasks: int | None) -> list[Order]:
        """The orders for one scenario; see :meth:`number`."""
        return [Order(self.rule, seed) for seed in range(self.number(spec, n_tasks))]

    def number(self, spec: ScenarioSpec, n_tasks: int | None) -> int:
        """The number of orders for one scenario.

        Args:
            n_tasks: the number of its tasks, if known.

        Raises:
            UsageError: the design needs the number of tasks and it is unknown, or there are too many orders.
        """
        if spec.setting == "time-il":
            raise UsageError(f"seeds.orders: the tasks of {spec.name!r} arrive in the order of time; leave orders out")
        count = self.count
        if count is None:
            if n_tasks is None:
                raise UsageError(f'seeds.orders = "{self.rule}": the number of tasks of {spec.name!r} is unknown; set scenario.n_tasks')
            count = order_count(self.rule, min(n_tasks, _MOST_TASKS)) or 0
        if count > ORDERS_LIMIT:
            detail = f" of {n_tasks} tasks" if self.rule == "all-tasks" else ""
            number = f"{count} orders{detail}" if count < 10**30 else f"all orders{detail}"
            raise UsageError(
                f'seeds.orders = "{self.rule}": {number} are too many to run; expected at most {ORDERS_LIMIT}, '
                'for example "random-tasks:100" or "latin-tasks"'
            )
        if self.classes and n_tasks is not None and self.classes < n_tasks:
            raise UsageError(f"seeds.orders: {self.classes} classes cannot form the {n_tasks} tasks of {spec.name!r}")
        return count


def order_designs(value: Any) -> list[OrderDesign]:
    """The designs that the key ``orders`` names.

    Raises:
        UsageError: an unknown design, a missing or superfluous number, explicit orders that are not permutations of each other, a
            repeated design or order.
    """
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts:
        raise UsageError(
            f'expected a design such as "all-tasks", or a list of designs or of orders such as [3, 1, 2, 0] (given: {value!r})'
        )
    explicit = [part for part in parts if not isinstance(part, str)]
    designs: list[OrderDesign] = []
    for part in parts:
        if isinstance(part, str):
            designs.append(_design(part))
        elif part is explicit[0]:
            designs.append(_explicit_orders(explicit))
    _refuse("repeated design", [design.rule for design in designs])
    return designs


def too_many_error(where: str, cells: int, most: int, why: str = "") -> UsageError:
    """The error for a design with too many cells, naming its place in the campaign."""
    number = f"{cells:,}" if cells < 10**15 else f"more than {10**15:,}"
    advice = "narrow it, or set cells_at_most in [run] to a higher number"
    return UsageError(f"{where}: the design has {number} cells{why}; at most {most:,} are planned: {advice}")


def _design(text: str) -> OrderDesign:
    name, colon, number = (part.strip() for part in text.partition(":"))
    if name not in _RULES:
        raise UnknownNameError("design", name, _RULES)
    if name not in _COUNTED:
        if colon:
            raise UsageError(f'"{text}": the number of orders of {name} is fixed; expected "{name}"')
        return OrderDesign(rule=_RULES[name], count=1 if name == "native" else None)
    try:
        return OrderDesign(rule=_RULES[name], count=whole_number(number, 1))
    except ValueError:
        raise UsageError(f'"{quoted(text)[1:-1]}": expected a number of orders, for example "{name}:30"') from None


def _explicit_orders(orders: Sequence[Any]) -> OrderDesign:
    """All explicit orders as one value of ``scenario.class_order``; the order seed selects one."""
    for order in orders:
        if not isinstance(order, list) or not order or any(isinstance(c, bool) or not isinstance(c, int) for c in order):
            raise UsageError(f"{order!r}: expected the class ids in order, for example [3, 1, 2, 0]")
    known = set(orders[0])
    for order in orders:
        if len(set(order)) < len(order):
            twice = next(c for place, c in enumerate(order) if c in order[:place])
            raise UsageError(f"{order}: class {twice} appears twice; expected every class once")
        if differing := sorted(known ^ set(order)):
            difference = f"class {differing[0]} is missing" if differing[0] in known else f"class {differing[0]} is not in the first order"
            raise UsageError(f"{order}: {difference}; expected a permutation of {sorted(known)}")
    _refuse("repeated order", orders)
    rule = " | ".join(",".join(map(str, order)) for order in orders)
    return OrderDesign(rule=rule, count=len(orders), classes=len(known))


def _refuse(what: str, values: Sequence[Any]) -> None:
    try:
        refuse_repeats(what, values)
    except ValueError as error:
        raise UsageError(str(error)) from error


# Repeated entries of a campaign (a seed, a value of an axis, a method): their cells would count twice in means.


def refuse_repeats(what: str, values: Iterable[Any]) -> None:
    """Check that all ``values`` differ, regardless of spelling: ``1`` equals ``1.0``, and ``"0,1"`` equals ``"0, 1"``.

    Raises:
        ValueError: two are equal; the message says ``what`` they are, and both spellings.
    """
    seen: dict[Hashable, str] = {}
    for value in values:
        form, spelled = _form(value), repr(value)
        if form in seen:
            repeated = f"{spelled} is given twice" if seen[form] == spelled else f"{seen[form]} and {spelled} are the same"
            raise ValueError(f"{what}: {repeated}; list each once, since a cell counts once")
        seen[form] = spelled


def _form(value: Any) -> Hashable:
    """A canonical form that equal values share; numbers and truth values differ."""
    if isinstance(value, str):
        return "".join(value.split())
    if isinstance(value, (list, tuple)):
        return tuple(_form(v) for v in value)
    return (type(value) is bool, value)
