"""Pure functions for the orders of classes and tasks: native, random, explicit, all possible orders, or a balanced subset."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.specs import TASK_ORDERS, ScenarioSpec, order_count


def ordered_tasks(rule: str, classes: Tensor, seed: int, split: Callable[[Tensor], list[Tensor]]) -> list[Tensor]:
    """Return the classes of each task (int64), in order of arrival.

    Designs over tasks permute the tasks of the native order regardless of their sizes, so in every order the same classes are left out or
    join the last task of the native order. All other rules order the classes (see :func:`class_order`) before splitting them into tasks.

    Args:
        rule: the value of ``scenario.class_order``. classes: int64 [C], ascending. seed: the order seed.
        split: divides the ordered classes into tasks.

    Raises:
        SpecError: an order is not a permutation, or the seed exceeds the design's number of orders.
    """
    if rule not in TASK_ORDERS:
        return split(class_order(rule, classes, seed))
    tasks = split(classes)
    return [tasks[k] for k in row(rule, len(tasks), seed)]


def class_order(rule: str, classes: Tensor, seed: int) -> Tensor:
    """Return the classes (int64 [C]) in order of arrival.

    ``native`` keeps ascending ids, ``random`` is ``torch.randperm`` with ``seed``, and ``latin-classes`` is row ``seed`` of a balanced
    Latin square. Otherwise ``rule`` lists the ids, as in ``"3,1,2,0"``, or several orders, as in ``"3,1,2,0 | 0,1,2,3"``, selected by
    ``seed`` modulo their number.

    Raises:
        SpecError: an explicit order is not a permutation of ``classes``; the message names the offending element.
    """
    if rule == "native":
        return classes
    if rule == "random":
        return classes[torch.randperm(classes.numel(), generator=torch.Generator().manual_seed(seed))]
    if rule == "latin-classes":
        return classes[torch.tensor(row(rule, classes.numel(), seed))]
    explicit = _explicit(rule, seed)
    known, seen = set(classes.tolist()), set[int]()
    for c in explicit:
        if c not in known:
            raise SpecError(f"scenario.class_order: {c} is not a class of this scenario; expected a permutation of {sorted(known)}")
        if c in seen:
            raise SpecError(f"scenario.class_order: {c} appears twice; expected a permutation of {sorted(known)}")
        seen.add(c)
    if missing := sorted(known - seen):
        raise SpecError(f"scenario.class_order: class {missing[0]} is missing; expected a permutation of {sorted(known)}")
    return torch.tensor(explicit)


def _explicit(rule: str, seed: int) -> list[int]:
    orders = [order for order in rule.split("|") if order.strip()] or [rule]
    try:
        return [int(part) for part in orders[seed % len(orders)].split(",")]
    except ValueError:
        designs = ", ".join(("native", "random", *TASK_ORDERS, "latin-classes"))
        raise SpecError(f"scenario.class_order = {rule!r}: expected one of {designs}, or class ids such as 3,1,2,0") from None


def row(design: str, n: int, seed: int) -> list[int]:
    """Return order ``seed`` of a design over ``n`` tasks or classes, a permutation of ``0 .. n - 1``.

    Raises:
        SpecError: the seed exceeds the design's number of orders, which the message states.
    """
    count = order_count(design, n)
    if count is None:
        return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()
    if not 0 <= seed < count:
        items = f"{n} {'classes' if design == 'latin-classes' else 'tasks'}"
        raise SpecError(
            f"seeds.order = {seed}: scenario.class_order = {design} has only {count} orders of {items}; expected 0 to {count - 1}"
        )
    return nth_permutation(n, seed) if design == "all-tasks" else latin_row(n, seed)


def nth_permutation(n: int, index: int) -> list[int]:
    """Return permutation ``index`` (``0 .. n! - 1``) of ``0 .. n - 1`` in lexicographic order, from the factorial digits of ``index``."""
    left, permutation = list(range(n)), []
    for k in range(n - 1, -1, -1):
        digit, index = divmod(index, math.factorial(k))
        permutation.append(left.pop(digit))
    return permutation


def latin_row(n: int, index: int) -> list[int]:
    """Return row ``index`` of a Williams design over ``0 .. n - 1``, which has ``n`` rows for even ``n`` and ``2 n`` for odd ``n``.

    Every item occurs equally often at every position, and every item follows every other item equally often (once for even ``n``, twice for
    odd ``n``), so carry-over effects between successive tasks are balanced. The first row is ``0, 1, n - 1, 2, n - 2, ...``, in which all
    steps modulo ``n`` are different. Row r adds r modulo ``n``. For odd ``n``, some steps are equal, and the second half of the rows is the
    first half reversed.

    E. J. Williams: Experimental designs balanced for the estimation of residual effects of treatments. Australian Journal of Scientific
    Research A 2, 1949.
    """
    first = [(k + 1) // 2 if k % 2 else (n - k // 2) % n for k in range(n)]
    shifted = [(item + index) % n for item in first]
    return shifted if index < n else shifted[::-1]


def foreseen(spec: ScenarioSpec, seed: int) -> tuple[str, ...] | None:
    """Return a name for every task in order of arrival if they are known without the data, otherwise ``None``.

    If the names of two cells of a scenario share a prefix, the cells share the corresponding tasks; the converse need not hold. Orders of
    tasks require the number of tasks (``scenario.n_tasks``), and random classes require the data. The names are only used for planning, so
    invalid orders are reported when the stream is built.
    """
    rule, n = spec.class_order, spec.n_tasks
    try:
        if rule == "native" or rule in TASK_ORDERS:
            return None if n is None else tuple(str(k) for k in (range(n) if rule == "native" else row(rule, n, seed)))
        if rule in ("random", "latin-classes"):
            return None
        classes = _explicit(rule, seed)
    except SpecError:
        return None
    size = 1 if spec.setting == "domain-il" else spec.classes_per_task or max(1, len(classes) // (n or len(classes)))
    base = spec.base_classes or 0
    starts = [*([0] if base else ()), *range(base, len(classes), size)]
    return tuple(",".join(map(str, classes[a:b])) for a, b in zip(starts, [*starts[1:], len(classes)], strict=True))
