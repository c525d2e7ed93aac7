"""Task streams of multi-label graphs in which a task contains only graphs with at least one of its labels (AGALE's Algorithm 1)."""

from __future__ import annotations

import dataclasses

from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.graphwise import build_graph_stream
from cglsuite.streams.stream import TaskStream

__all__ = ["build_labelled_graph_stream"]


def build_labelled_graph_stream(spec: ScenarioSpec, data: GraphData, seeds: Seeds, device: str = "cpu") -> TaskStream:
    """Partition ``data`` into a stream of tasks as :func:`cglsuite.streams.graphwise.build_graph_stream` does, except for a task's graphs.

    There, a task contains all graphs whose label in the task is known, whether it is true or not.

    Raises:
        SpecError: as for other streams of graphs.
        DataError: if a label is unknown, because the tasks of its graph are then unknown too, or as for other streams of graphs.
    """
    if data.known is not None and not bool(data.known.all()):
        item, label = (~data.known).nonzero()[0].tolist()
        raise DataError(
            f"scenario {spec.name!r}: a task contains the graphs that have one of its labels, but label {label} of graph {item} is unknown "
            f"({int((~data.known).sum())} unknown labels in total); expected data whose labels are all known, or a protocol such as CGLB's "
            "in which a task contains the graphs whose label is known"
        )
    return build_graph_stream(spec, dataclasses.replace(data, known=None), seeds, device)
