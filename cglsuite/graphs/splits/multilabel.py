"""Pure functions that divide multi-label nodes into tasks and splits (AGALE's Algorithms 1 and 2; Zhao, Hanjalic, Khosla, TMLR 2024).

Algorithm 1 is ``keep_classes`` and ``split_into_tasks(..., "join-last", ...)`` of ``cglsuite.graphs.splits.partition``, ``class_order`` of
``cglsuite.graphs.splits.orders``, and ``task_members`` here; Algorithm 2 is ``task_split``. Tasks may share nodes, so applying Algorithm 2
to each task separately may put a node in the training set of one task and in the test set of another. ``node_consistent_split`` prevents
this leak by assigning each node to the same part in all tasks. Single labels (int64) are treated as sets of one label.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.splits.partition import class_seed

_PARTS = ("training", "validation", "test")


def label_matrix(y: Tensor, n_classes: int) -> Tensor:
    """Return the label sets as bool [N, C]: ``y`` itself, or sets of one label built from int64 [N] (-1 = the empty set)."""
    if y.dim() == 2:
        return y
    return y[:, None] == torch.arange(n_classes)


def task_members(y: Tensor, classes: Tensor) -> Tensor:
    """Return the ascending int64 ids of the nodes with any of ``classes`` (int64 [K]). ``y``: bool [N, C], or int64 [N] with -1 = none."""
    return _columns(y, classes).any(dim=1).nonzero().flatten()


def task_split(y: Tensor, classes: Tensor, members: Tensor, ratio: tuple[float, float, float], seed: int) -> Tensor:
    """Split one task's members into three disjoint parts, class by class from the smallest to the largest (AGALE's Algorithm 2).

    A class with n members has quotas of ``floor(n·r₀)`` for training, ``floor((n - train)·r₁ / (r₁ + r₂))`` for validation and the rest for
    test. Members already assigned by a smaller class count towards the quotas; the others fill the remainder at random. If the assigned
    members exceed a part's quota, the other parts share the deficit in proportion to what they lack, starting with parts that have no item
    of the class. Classes of equal size are ordered by id, and each class has its own generator.

    Args:
        y: bool [N, C], or int64 [N] with -1 for a node without a label.
        classes: int64 [K], the task's classes; their order does not matter.
        members: int64 ids of nodes with at least one of the classes (``task_members``, or a subset of them).
        ratio: shares of training, validation and test, of sum 1.
        seed: seed of the random draws.

    Returns:
        int8 [N]: 0 training, 1 validation, 2 test, -1 not a member.

    Raises:
        DataError: a class has too few items for one in every part with a positive share, or a member has none of the task's classes.

    Example:
        >>> task_split(torch.zeros(10, dtype=torch.int64), torch.tensor([0]), torch.arange(10), (0.6, 0.1, 0.3), 0).bincount().tolist()
        [6, 1, 3]
    """
    has = _columns(y, classes)[members]
    if not has.any(dim=1).all():
        stray = int(members[~has.any(dim=1)][0])
        raise DataError(f"node {stray} has none of the task's classes {sorted(classes.tolist())}; get the members from task_members")
    part = torch.full((members.numel(),), -1, dtype=torch.int8)
    sizes = has.sum(dim=0).tolist()
    for size, c, column in sorted(zip(sizes, classes.tolist(), range(len(sizes)), strict=True)):
        quotas = _quotas(c, size, ratio)
        mine = has[:, column].nonzero().flatten()
        free = mine[part[mine] < 0]
        placed = torch.bincount(part[mine][part[mine] >= 0].long(), minlength=3).tolist()
        counts = _fill(quotas, placed, free.numel())
        shuffled = free[torch.randperm(free.numel(), generator=torch.Generator().manual_seed(class_seed(seed, c)))]
        for code, chosen in enumerate(shuffled.split(counts)):
            part[chosen] = code
        _check_parts(c, size, quotas, [p + n for p, n in zip(placed, counts, strict=True)], ratio)
    out = torch.full((y.shape[0],), -1, dtype=torch.int8)
    out[members] = part
    return out


def node_consistent_split(y: Tensor, classes: Tensor, ratio: tuple[float, float, float], seed: int) -> Tensor:
    """Assign each node to one part for all tasks by running Algorithm 2 once over all classes.

    A task uses the parts of its own members. No node is test data in one task and training data in another, and each task has items of each
    of its classes in every part. If a class shares nodes with smaller classes, its shares deviate randomly from ``ratio``.

    Args:
        y: bool [N, C], or int64 [N] with -1 for a node without a label.
        classes: int64 [K], all classes of the scenario; their order does not matter.
        ratio: shares of training, validation and test, of sum 1.
        seed: seed of the random draws.

    Returns:
        int8 [N]: 0 training, 1 validation, 2 test, -1 if a node has none of the classes.

    Raises:
        DataError: a class has no item for a part with a positive share.
    """
    return task_split(y, classes, task_members(y, classes), ratio, seed)


def _columns(y: Tensor, classes: Tensor) -> Tensor:
    """Return which of ``classes`` each node belongs to: bool [N, K]."""
    return y[:, classes] if y.dim() == 2 else y[:, None] == classes


def _quotas(c: int, n: int, ratio: tuple[float, float, float]) -> list[int]:
    train = int(n * ratio[0] + 1e-9)
    rest = ratio[1] + ratio[2]
    validation = int((n - train) * ratio[1] / rest + 1e-9) if rest > 0 else 0
    quotas = [train, validation, n - train - validation]
    if any(quota == 0 and share > 0 for quota, share in zip(quotas, ratio, strict=True)):
        raise DataError(
            f"class {c} has {n} items, too few for a {ratio[0]:g}/{ratio[1]:g}/{ratio[2]:g} split with an item in every part: "
            f"raise scenario.min_class_size above {n} to remove the class, or change scenario.split_ratio"
        )
    return quotas


def _fill(quotas: list[int], placed: list[int], free: int) -> list[int]:
    """Divide the ``free`` items between the parts so that ``placed`` comes as close to ``quotas`` as possible."""
    lacking = [max(quota - have, 0) for quota, have in zip(quotas, placed, strict=True)]
    if sum(lacking) == free:  # no part is overfilled
        return lacking
    counts = [0, 0, 0]
    by_size = sorted(range(3), key=lambda part: -lacking[part])
    for part in by_size:
        if placed[part] == 0 and lacking[part] > 0 and sum(counts) < free:
            counts[part] = 1
    while sum(counts) < free:  # next is the part with the largest relative deficit
        part = min((p for p in by_size if counts[p] < lacking[p]), key=lambda p: (counts[p] + 1) / lacking[p])
        counts[part] += 1
    return counts


def _check_parts(c: int, n: int, quotas: list[int], counts: list[int], ratio: tuple[float, float, float]) -> None:
    for name, quota, count in zip(_PARTS, quotas, counts, strict=True):
        if quota > 0 and count == 0:
            raise DataError(
                f"class {c} has {n} items, but smaller classes that share them left none for {name}: raise scenario.min_class_size above "
                f"{n} to remove the class, change scenario.split_ratio ({ratio[0]:g}/{ratio[1]:g}/{ratio[2]:g}), or use another split seed"
            )
