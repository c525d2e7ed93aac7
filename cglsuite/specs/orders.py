"""Orders of tasks and classes: the values of ``scenario.class_order``."""

from __future__ import annotations

import math
import re

NAMED_ORDERS = ("native", "random", "all-tasks", "random-tasks", "latin-tasks", "latin-classes")
WRITTEN_ORDERS = re.compile(r" *[0-9]{1,9} *(, *[0-9]{1,9} *)*(\| *[0-9]{1,9} *(, *[0-9]{1,9} *)*)*")

TASK_ORDERS = ("all-tasks", "random-tasks", "latin-tasks")
"""The values of ``scenario.class_order`` that keep the tasks of the native order and change only their sequence."""


def order_count(design: str, n: int) -> int | None:
    """The number of orders of ``n`` tasks (or classes) for a value of ``scenario.class_order``; ``None``: one per seed."""
    if design == "all-tasks":
        return math.factorial(n)
    if design in ("latin-tasks", "latin-classes"):
        return n if n % 2 == 0 else 2 * n
    return None
