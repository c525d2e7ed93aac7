"""Pure functions that assign classes to tasks, items to training, validation and test, and edges to tasks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.base.errors import DataError, SpecError
from cglsuite.graphs.data import NodeData
from cglsuite.graphs.sparse import sorted_csr

_PIECE = 2**24
"""The number of edges renumbered at a time."""


def keep_classes(y: Tensor, n_classes: int, min_size: int) -> Tensor:
    """Return the classes (int64, ascending) with at least ``min_size`` items in ``y`` (int64 [N], -1 = none; or bool [N, C])."""
    counts = y.sum(dim=0) if y.dim() == 2 else torch.bincount(y[y >= 0], minlength=n_classes)
    return (counts >= max(min_size, 1)).nonzero().flatten()


def split_into_tasks(order: Tensor, per_task: int | None, leftover: str, n_tasks: int | None, *, drop_last: bool = False) -> list[Tensor]:
    """Divide classes into consecutive groups of ``per_task`` (``None``: evenly over ``n_tasks``).

    An incomplete last group is dropped or joins the last task.

    Args:
        drop_last: whether classes may be dropped. They may always be dropped if both numbers are given, since these fix the number of
            classes.

    Raises:
        SpecError: there are too few classes for the requested tasks, neither number is given, or classes would be dropped although
            ``drop_last`` is false.
    """
    total = order.numel()
    if per_task is None:
        if n_tasks is None:
            raise SpecError("scenario.classes_per_task = none requires scenario.n_tasks, the number of tasks to divide the classes into")
        if n_tasks > total:
            raise SpecError(f"scenario.n_tasks = {n_tasks}, but {total} classes form at most {total} tasks")
        size, full = total // n_tasks, n_tasks  # remaining classes may suffice for further tasks, but belong to none
    else:
        size, full = per_task, total // per_task
    if full == 0:
        raise SpecError(
            f"{total} classes are too few for a task with {size} classes: lower scenario.classes_per_task or scenario.min_class_size"
        )
    if n_tasks is not None and n_tasks > full:
        raise SpecError(f"scenario.n_tasks = {n_tasks}, but {total} classes form at most {full} tasks of {size}")
    left = total - full * size
    if left and leftover == "drop" and not drop_last and (per_task is None or n_tasks is None):
        raise SpecError(_left_over(total, per_task, n_tasks, left))
    tasks = list(order[: full * size].split(size))
    if leftover == "join-last" and left:
        tasks[-1] = torch.cat([tasks[-1], order[full * size :]])
    return tasks[:n_tasks]


def _left_over(total: int, per_task: int | None, n_tasks: int | None, left: int) -> str:
    given = f"classes_per_task = {per_task}" if per_task is not None else f"n_tasks = {n_tasks}"
    divisors = ", ".join(str(d) for d in range(1, total + 1) if total % d == 0)
    return (
        f"scenario.{given}: of {total} classes {left} would fill no task and be left out; expected a divisor of {total} ({divisors}), "
        "scenario.drop_last=true to leave them out, or scenario.leftover=join-last to have the last task take them"
    )


def random_split(n: int, ratio: tuple[float, float, float], seed: int) -> Tensor:
    """Split ``n`` items at random regardless of their classes: int8 [n] (0 training, 1 validation, 2 test)."""
    shuffled = torch.randperm(n, generator=torch.Generator().manual_seed(class_seed(seed, 0)))
    train, validation = int(n * ratio[0] + 1e-9), int(n * ratio[1] + 1e-9)
    out = torch.full((n,), 2, dtype=torch.int8)
    out[shuffled[:train]], out[shuffled[train : train + validation]] = 0, 1
    return out


def replicated(data: NodeData, copies: int) -> NodeData:
    """Build the disjoint union of ``copies`` copies of a graph, for scaling studies. Node i of copy c is node ``c * N + i``."""
    if copies == 1:
        return data
    offsets = torch.arange(copies).repeat_interleave(data.edge_index.shape[1]) * data.n_nodes
    x = data.x
    if x.layout == torch.sparse_csr:
        steps = torch.arange(copies).repeat_interleave(data.n_nodes) * x.values().numel()
        rows = torch.cat([x.crow_indices()[:1], x.crow_indices()[1:].repeat(copies) + steps])
        x = torch.sparse_csr_tensor(
            rows,
            x.col_indices().repeat(copies),
            x.values().repeat(copies),
            (copies * data.n_nodes, data.n_features),
            check_invariants=False,
        )
    else:
        x = x.repeat(copies, 1)
    return NodeData(
        x=x,
        edge_index=data.edge_index.repeat(1, copies) + offsets,
        y=data.y.repeat(copies, *[1] * (data.y.dim() - 1)),
        n_classes=data.n_classes,
        official_split=None if data.official_split is None else data.official_split.repeat(copies),
        keys={name: value.repeat(copies, *[1] * (value.dim() - 1)) for name, value in data.keys.items()},
        name=f"{data.name} x{copies}",
    )


def with_base(order: Tensor, base: int | None, split: Callable[[Tensor], list[Tensor]]) -> list[Tensor]:
    """Return the first ``base`` classes of ``order`` as a task, followed by the tasks of ``split``. If ``base`` is ``None``, return only
    the latter.

    Raises:
        SpecError: no class is left for a second task.
    """
    if base is None:
        return split(order)
    if base >= order.numel():
        raise SpecError(f"scenario.base_classes = {base} leaves none of the {order.numel()} classes for a second task; expected fewer")
    return [order[:base], *split(order[base:])]


def few_shots(split: Tensor, y: Tensor, classes: Tensor, shots: int, seed: int) -> Tensor:
    """Limit ``split`` (int8 [N]) to ``shots`` training items in each of ``classes``, drawn with ``seed``; the others become -1.

    Each class has its own generator, so its items do not depend on which classes arrive late.
    """
    out = split.clone()
    for c in classes.tolist():
        members = ((y == c) & (split == 0)).nonzero().flatten()
        generator = torch.Generator().manual_seed(class_seed(seed, c) ^ 1)
        out[members[torch.randperm(members.numel(), generator=generator)[shots:]]] = -1
    return out


def official_split(split: Tensor | None, dataset: str) -> Tensor:
    """Return the dataset's official split (int8 [N]: 0 training, 1 validation, 2 test, -1 unused).

    Raises:
        SpecError: the dataset has no official split.
    """
    if split is None:
        raise SpecError(f"scenario.split = official, but the dataset {dataset!r} has no official split; use scenario.split=per-class")
    return split


def per_class_split(y: Tensor, classes: Tensor, ratio: tuple[float, float, float], seed: int) -> Tensor:
    """Split each class at random: int8 [N] (0 training, 1 validation, 2 test, -1 other).

    The training and validation sets get ``floor(n·r)`` items each, and the test set gets the rest. Each class has its own generator, so its
    split does not depend on the scenario's other classes.

    Raises:
        DataError: a class has too few items for one in every part with a positive share.
    """
    out = torch.full_like(y, -1, dtype=torch.int8)
    for c in classes.tolist():
        members = (y == c).nonzero().flatten()
        n = members.numel()
        train, validation = int(n * ratio[0] + 1e-9), int(n * ratio[1] + 1e-9)
        sizes = (train, validation, n - train - validation)
        if any(size == 0 and share > 0 for size, share in zip(sizes, ratio, strict=True)):
            raise DataError(
                f"class {c} has {n} items, too few for a {ratio[0]:g}/{ratio[1]:g}/{ratio[2]:g} split with an item in every part: "
                f"raise scenario.min_class_size above {n} to remove the class, or change scenario.split_ratio"
            )
        shuffled = members[torch.randperm(n, generator=torch.Generator().manual_seed(class_seed(seed, c)))]
        out[shuffled[:train]], out[shuffled[train : train + validation]], out[shuffled[train + validation :]] = 0, 1, 2
    return out


def class_seed(seed: int, c: int) -> int:
    """Derive the seed of class ``c``'s generator from the split seed ``seed``: a 63-bit integer."""
    return int(np.random.SeedSequence([seed & 0xFFFFFFFF, c]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def symmetrised(edge_index: Tensor, n_nodes: int) -> Tensor:
    """Return every edge in both directions, without duplicates and self-loops, sorted by (source, target): int64 [2, E'].

    The result is ``edge_index`` itself if it already has this form.
    """
    forward = sorted_csr(edge_index, n_nodes)
    given = forward is not None
    if forward is None:
        source, target = edge_index.numpy()
        proper = source != target
        if not proper.all():
            source, target = source[proper], target[proper]
        # SciPy sorts by counting, in linear time; the transpose of a matrix comes out in order.
        forward = scipy.sparse.csr_matrix((np.ones(len(source), np.bool_), (source, target)), (n_nodes, n_nodes))
    backward = forward.T.tocsr()
    if np.array_equal(forward.indptr, backward.indptr) and np.array_equal(forward.indices, backward.indices):
        if given:
            return edge_index
    else:
        forward = forward + backward
    del backward
    out = torch.empty(2, forward.nnz, dtype=torch.int64)
    out[0] = torch.repeat_interleave(torch.arange(n_nodes), torch.from_numpy(np.diff(forward.indptr)).long(), output_size=forward.nnz)
    out[1] = torch.from_numpy(forward.indices)
    return out


def induced_subgraph(edge_index: Tensor, nodes: Tensor, n_nodes: int) -> Tensor:
    """Return the edges among ``nodes`` (int64 [n]), renumbered to positions in ``nodes``: int64 [2, E']."""
    position = torch.full((n_nodes,), -1, dtype=torch.int64)
    position[nodes] = torch.arange(nodes.numel())
    parts = []
    for edges in edge_index.split(_PIECE, dim=1) if edge_index.shape[1] else [edge_index]:
        renumbered = position[edges]
        parts.append(renumbered[:, (renumbered >= 0).all(dim=0)])
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
