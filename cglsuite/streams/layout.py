"""Compute the content of each task (a set of classes, a domain or a time step): its outputs, items and splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from cglsuite.base.errors import DataError, SpecError
from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.graphs.data import label_kind, labelled_items
from cglsuite.graphs.splits import multilabel, orders, partition
from cglsuite.specs import ScenarioSpec, Seeds

Data: TypeAlias = "NodeData | LinkData | GraphData"  # a string, so that runs do not depend on the data classes of other levels

PARTS = {"train": 0, "validation": 1, "test": 2}


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The content of a stream's tasks, before any graph is built.

    Args:
        outputs: bool [T, C], the outputs of each task.
        classes: for each task, the global ids of its outputs (int64), in order of arrival.
        nodes: for each task, the ascending ids of its items (int64). In multi-label data, an item may belong to several tasks.
        parts: for each task, maps ``train``, ``validation`` and ``test`` to the ascending ids of its items (int64).
        names: for each task, its display name.
        arrival: int64 [N], the position of the task with which each node joins the graph (T = never). Only set in time-IL.
    """

    outputs: Tensor
    classes: list[Tensor]
    nodes: list[Tensor]
    parts: list[dict[str, Tensor]]
    names: list[str]
    arrival: Tensor | None = None

    def __len__(self) -> int:
        return len(self.parts)


def layout_of(spec: ScenarioSpec, data: Data, seeds: Seeds) -> Layout:
    """Compute the layout of a scenario for a dataset. It depends only on (data, spec, seeds.order, seeds.split).

    Raises:
        SpecError: if switches are inconsistent with each other or with the data.
        DataError: if a class or task is too small, a class has no training items, or the dataset lacks a key.
    """
    if spec.edge_policy == "snapshot" and spec.setting != "time-il":
        raise SpecError(f"scenario.edge_policy = 'snapshot', but {spec.setting} has no time steps; expected 'none', 'inter-task' or 'full'")
    classes_arrive = spec.setting in ("task-il", "class-il") or (spec.setting == "task-free" and spec.task_key is None)
    if classes_arrive and label_kind(data.y) == "real":
        raise SpecError(
            f"scenario.setting = {spec.setting!r}, but the dataset {spec.dataset!r} has no classes; expected 'domain-il' or 'time-il'"
        )
    layout = _by_classes(spec, data, seeds) if classes_arrive else _by_key(spec, data, seeds)
    _check(spec, data, layout)
    return layout


# --- classes arrive ------------------------------------------------------------------------------------------------------------


def _by_classes(spec: ScenarioSpec, data: Data, seeds: Seeds) -> Layout:
    kept = partition.keep_classes(data.y, data.n_classes, spec.min_class_size)
    base, later = spec.base_classes, spec.n_tasks
    if base is not None and later is not None:
        later -= 1

    def split_classes(order: Tensor) -> list[Tensor]:
        return partition.split_into_tasks(order, spec.classes_per_task, spec.leftover, later, drop_last=spec.drop_last)

    tasks = orders.ordered_tasks(spec.class_order, kept, seeds.order, lambda order: partition.with_base(order, base, split_classes))
    outputs = torch.zeros(len(tasks), data.n_classes, dtype=torch.bool)
    for k, classes in enumerate(tasks):
        outputs[k, classes] = True
    names = [f"classes {', '.join(map(str, classes.tolist()))}" for classes in tasks]
    if data.multi_label or spec.split in ("task-wise", "node-consistent"):
        nodes, parts = _overlapping(spec, data, tasks, seeds.split)
    else:
        of_class = torch.full((data.n_classes + 1,), -1, dtype=torch.int64)  # the last entry is for the label -1
        for k, classes in enumerate(tasks):
            of_class[classes] = k
        split = _split(spec, data, torch.cat(tasks).sort().values, seeds.split)
        if spec.shots is not None and len(tasks) > 1:
            split = partition.few_shots(split, data.y, torch.cat(tasks[1:]), spec.shots, seeds.split)
        nodes, parts = _disjoint(of_class[data.y], split, len(tasks))
    return Layout(outputs=outputs, classes=tasks, nodes=nodes, parts=parts, names=names)


def _overlapping(spec: ScenarioSpec, data: Data, tasks: list[Tensor], seed: int) -> tuple[list[Tensor], list[dict[str, Tensor]]]:
    """Return the items and splits of tasks that may share nodes. Task-wise and node-consistent splits use AGALE's Algorithm 2."""
    if spec.split not in ("task-wise", "node-consistent", "official") and not (spec.split == "random" and data.known is not None):
        also = ", random" if data.known is not None else ""
        raise SpecError(
            f"scenario.split = {spec.split}: the dataset {spec.dataset!r} is multi-label; expected task-wise (no node in two parts of a "
            f"task), node-consistent (no node in two parts of any tasks){also} or official"
        )
    nodes = [multilabel.task_members(data.y if data.known is None else data.known, classes) for classes in tasks]
    if spec.split == "task-wise":
        splits = [multilabel.task_split(data.y, c, n, spec.split_ratio, seed) for c, n in zip(tasks, nodes, strict=True)]
    elif spec.split == "node-consistent":
        splits = [multilabel.node_consistent_split(data.y, torch.cat(tasks), spec.split_ratio, seed)] * len(tasks)
    elif spec.split == "random":
        splits = [partition.random_split(data.n_items, spec.split_ratio, seed)] * len(tasks)
    else:
        splits = [partition.official_split(data.official_split, spec.dataset)] * len(tasks)
    parts = [{p: n[s[n] == code] for p, code in PARTS.items()} for n, s in zip(nodes, splits, strict=True)]
    return nodes, parts


def _split(spec: ScenarioSpec, data: Data, classes: Tensor, seed: int) -> Tensor:
    """Return the part of every item: int8 [N]."""
    if spec.split == "official":
        return partition.official_split(data.official_split, spec.dataset)
    if spec.split == "random":
        return partition.random_split(data.n_items, spec.split_ratio, seed)
    if label_kind(data.y) != "single" or spec.split != "per-class":
        raise SpecError(f"scenario.split = {spec.split}: this scenario can be split by official or random" + _also(data))
    return partition.per_class_split(data.y, classes, spec.split_ratio, seed)


def _also(data: Data) -> str:
    return ", or per-class" if label_kind(data.y) == "single" else ""


# --- domains or time steps arrive ----------------------------------------------------------------------------------------------


def _by_key(spec: ScenarioSpec, data: Data, seeds: Seeds) -> Layout:
    """Create one task per value of ``spec.task_key`` (domains) or per bin of it (time). Every class is an output of every task."""
    key = _key(spec, data)
    labelled = labelled_items(data.y, data.known)
    if spec.setting == "time-il":
        place, names = _time_steps(spec, key, key[labelled].unique())
    else:
        known = key[labelled].unique()
        domains = orders.ordered_tasks(spec.class_order, known, seeds.order, lambda order: list(order[: spec.n_tasks].split(1)))
        place, names = _domains(spec, key, torch.cat(domains))
    limit = spec.n_tasks or len(names)
    if limit > len(names):
        raise SpecError(
            f"scenario.n_tasks = {limit}: {spec.task_key} defines only {len(names)} tasks; lower n_tasks, or set it to none to use "
            "all of them"
        )
    place = place.clamp(max=limit)
    task = torch.where(labelled & (place < limit), place, -1)
    real = label_kind(data.y) == "real"
    everything = torch.arange(data.n_classes) if real else partition.keep_classes(data.y, data.n_classes, 1)
    outputs = torch.zeros(limit, data.n_classes, dtype=torch.bool)
    outputs[:, everything] = True
    nodes, parts = _disjoint(task, _split(spec, data, everything, seeds.split), limit)
    arrival = place if spec.setting == "time-il" else None
    return Layout(outputs=outputs, classes=[everything] * limit, nodes=nodes, parts=parts, names=names[:limit], arrival=arrival)


def _time_steps(spec: ScenarioSpec, key: Tensor, times: Tensor) -> tuple[Tensor, list[str]]:
    """Return the step at which each node arrives (int64 [N], the number of steps if after the last step), and the names of the steps.

    Without bins, the steps are the ``times`` of labelled nodes. A node whose time is between two steps arrives with the later one.
    """
    if spec.class_order != "native":
        raise SpecError(f"scenario.class_order = {spec.class_order!r}, but time steps have a fixed order; expected 'native'")
    if not spec.task_bins:
        return torch.searchsorted(times, key), [f"{spec.task_key} {time}" for time in times.tolist()]
    names = [f"{spec.task_key} {a} to {b}" for a, b in zip(("start", *spec.task_bins), (*spec.task_bins, "end"), strict=True)]
    return torch.bucketize(key, torch.tensor(spec.task_bins), right=True), names


def _domains(spec: ScenarioSpec, key: Tensor, domains: Tensor) -> tuple[Tensor, list[str]]:
    """Return the position of each node's domain in ``domains`` (int64 [N], ``len(domains)`` if not listed), and the names of the
    domains."""
    if spec.task_bins:
        raise SpecError(
            f"scenario.task_bins = {spec.task_bins!r}: only time steps can be binned; expected () unless the setting is time-il"
        )
    place = torch.full_like(key, len(domains))
    for k, domain in enumerate(domains.tolist()):
        place[key == domain] = k
    return place, [f"{spec.task_key} {domain}" for domain in domains.tolist()]


def _key(spec: ScenarioSpec, data: Data) -> Tensor:
    if spec.task_key is None:
        raise SpecError(f"scenario.task_key is not set: {spec.setting} requires the name of the node attribute that defines the tasks")
    if spec.task_key not in data.keys:
        known = ", ".join(sorted(data.keys)) or "none"
        raise DataError(
            f"scenario {spec.name!r}: the dataset {spec.dataset!r} has no attribute {spec.task_key!r} (it has: {known}); "
            "set scenario.task_key to one of those, or add the attribute to the data's keys in the loader"
        )
    return data.keys[spec.task_key]


# --- both ----------------------------------------------------------------------------------------------------------------------


def _disjoint(task: Tensor, split: Tensor, n_tasks: int) -> tuple[list[Tensor], list[dict[str, Tensor]]]:
    """Return the nodes and splits of tasks that share no nodes. ``task`` (int64 [N]) is the task of each node, or -1 for none."""
    code = task * 4 + split.long() % 4  # the part -1 becomes 3
    order = torch.argsort(torch.where(task >= 0, code, 4 * n_tasks), stable=True)
    counts = torch.bincount(code[task >= 0], minlength=4 * n_tasks)
    groups = order[: int(counts.sum())].split(counts.tolist())
    parts = [{p: groups[4 * k + c] for p, c in PARTS.items()} for k in range(n_tasks)]
    nodes = [torch.cat(groups[4 * k : 4 * k + 4]).sort().values for k in range(n_tasks)]
    return nodes, parts


def _check(spec: ScenarioSpec, data: Data, layout: Layout) -> None:
    for k, parts in enumerate(layout.parts):
        for part, ids in parts.items():
            if ids.numel() == 0:
                raise DataError(
                    f"scenario {spec.name!r}: task {k + 1} ({layout.names[k]}) has no {part} items; "
                    "change scenario.split or scenario.split_ratio"
                )
        if spec.setting in ("task-il", "class-il", "task-free"):
            y = data.y[parts["train"]]
            learnt = y.any(dim=0) if data.multi_label else torch.bincount(y, minlength=data.n_classes) > 0
            if never := (layout.outputs[k] & ~learnt).nonzero().flatten().tolist():
                raise DataError(
                    f"scenario {spec.name!r}: class {never[0]} of task {k + 1} has no training items and cannot be learnt; "
                    "raise scenario.min_class_size to leave out small classes, or change scenario.split"
                )
