"""Splits in which items of one group, such as the packages built from one source, are never in two parts."""

from __future__ import annotations

import numpy as np

from cglsuite_node.datasets.arrays import Array


def grouped_split(y: Array, group: Array, shares: tuple[float, float, float], seed: int) -> Array:
    """Split items class by class without dividing any group between parts.

    A group belongs to the class that most of its items have (of several, the one with the lowest id). The groups of each class are lined up
    at random, and a group goes to the part in which the middle of its items falls. If every item is a group by itself, every class has its
    shares up to one item; larger groups make the shares of a class vary.

    Args:
        y: class ids, int64 [N].
        group: group ids in ``0..G-1`` with no gaps, int64 [N].
        shares: the shares of training, validation and test, of sum 1.
        seed: the seed of the order of groups.

    Returns:
        int8 [N]: 0 training, 1 validation, 2 test.

    Example:
        >>> grouped_split(np.zeros(10, dtype=np.int64), np.arange(10) // 2, (0.6, 0.2, 0.2), seed=0).tolist()
        [0, 0, 1, 1, 0, 0, 2, 2, 0, 0]
    """
    n_classes = int(y.max()) + 1
    table = np.bincount(group * n_classes + y, minlength=(int(group.max()) + 1) * n_classes).reshape(-1, n_classes)
    size, home = table.sum(axis=1), table.argmax(axis=1)
    draws = np.random.Generator(np.random.PCG64(seed)).random(len(size))
    order = np.lexsort((draws, home))
    total = np.bincount(home, size, minlength=n_classes)
    first = np.cumsum(total) - total
    middle = np.cumsum(size[order]) - size[order] / 2 - first[home[order]]
    part = np.empty(len(size), dtype=np.int8)
    part[order] = np.searchsorted(np.cumsum(shares[:2]), middle / total[home[order]], side="right")
    return part[group]
