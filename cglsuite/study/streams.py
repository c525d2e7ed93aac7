"""Data sets and streams by name, for a look around or a training loop of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cglsuite.base.datafiles import DataRoot
from cglsuite.cells.run import build_scenario
from cglsuite.cells.spec import resolve_scenario
from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.graphs.files.named import named
from cglsuite.host import load_catalogue
from cglsuite.specs import Seeds
from cglsuite.streams import TaskFreeStream, TaskStream
from cglsuite.study.data import as_data_file

__all__ = ["build_stream", "load_dataset"]


def load_dataset(name: str, **hyperparameters: Any) -> NodeData | LinkData | GraphData:
    """The data set of that name (``cglsuite list datasets``).

    Args:
        hyperparameters: the data set's own, such as ``n_nodes=400``.

    Raises:
        UnknownNameError: no plugin provides it. DataError: its files are absent or damaged.
    """
    catalogue = load_catalogue()
    data: NodeData | LinkData | GraphData = catalogue.resolve(catalogue.get("dataset", name))(
        DataRoot.from_environment(), **hyperparameters
    )
    return data


def build_stream(
    scenario: str,
    data: Any = None,
    *,
    order: int = 0,
    split: int = 0,
    overrides: Mapping[str, Any] | None = None,
    name: str = "",
) -> TaskStream | TaskFreeStream:
    """The stream of a scenario: ``for k in range(len(stream)): stream.view(k)`` gives what a method sees of each task.

    Args:
        scenario: a preset such as ``"cora/class-il@cglb-1"``; with ``data`` the part after the slash is enough.
        data: data of your own (see :func:`cglsuite.run`).
        order: seed of the order of classes or tasks. split: seed of the split.
        overrides: switches and the data set's hyper-parameters by dotted name.
        name: the name of ``data``.

    Raises:
        UsageError: the scenario is unknown or an override does not fit.
    """
    files = [] if data is None else [as_data_file(data, name)]
    with named(data=files):
        catalogue = load_catalogue()
        if files and "/" not in scenario:
            scenario = f"{next(r.provides['dataset'][0] for r in catalogue.records if r.source == files[0])}/{scenario}"
        resolved, seeds = resolve_scenario(catalogue, scenario, dict(overrides or {})), Seeds(order=order, split=split)
        return build_scenario(catalogue, resolved.spec, resolved.dataset_hyperparameters, seeds)
