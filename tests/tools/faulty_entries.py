"""Datasets, scenarios and metrics that break a promise, each in one way, beside some that keep theirs."""

from __future__ import annotations

import os
import random
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import GraphData, NodeData
from cglsuite.streams import Batch, QueryGroup, TaskStream, TaskView
from cglsuite.streams.build import build_task_stream
from cglsuite.testing.kinds import cases


def plain(root: DataRoot) -> NodeData:
    """Nodes, and nothing wrong with them."""
    return cases.nodes()


def no_licence(root: DataRoot) -> NodeData:
    """The same."""
    return cases.nodes()


def not_data(root: DataRoot) -> Any:
    """A dictionary instead of data."""
    return {"x": cases.nodes().x}


def restless(root: DataRoot) -> NodeData:
    """Other features every time."""
    nodes = cases.nodes()
    return replace(nodes, x=nodes.x + random.SystemRandom().random())


def hashed(root: DataRoot) -> NodeData:
    """Nodes in the order of a set of texts."""
    nodes = cases.nodes()
    return replace(nodes, x=nodes.x + hash("features") % 1000)


def seeds_globally(root: DataRoot) -> NodeData:
    """Seeds what belongs to all."""
    torch.manual_seed(0)
    return cases.nodes()


def leaves_files(root: DataRoot) -> NodeData:
    """Keeps a cache where it stands."""
    Path("cache.bin").write_bytes(b"kept")
    return cases.nodes()


def wrong_level(root: DataRoot) -> NodeData:
    """Nodes where graphs were declared."""
    return cases.nodes()


def real_classes(root: DataRoot) -> GraphData:
    """Real targets where classes were declared."""
    return cases.targets()


def needs_a_file(root: DataRoot) -> NodeData:
    """Reads a raw file first."""
    root.file("needs-a-file/nodes.csv")
    return cases.nodes()


def mean_of_last(matrix: Any, joint: Any = None) -> float:
    """Mean of the last row."""
    return float(np.nanmean(np.asarray(matrix, dtype=float)[-1]))


def out_of_range(matrix: Any, joint: Any = None) -> float:
    """In percent, although a share was declared."""
    return 100 * mean_of_last(matrix)


def writes_to_matrix(matrix: Any, joint: Any = None) -> float:
    """Sets the last row to its mean, in place."""
    matrix[-1] = [mean_of_last(matrix)] * len(matrix[-1])
    return mean_of_last(matrix)


def unsure(matrix: Any, joint: Any = None) -> float:
    """Of no matrix a value."""
    return float("nan")


def backwards(matrix: Any, joint: Any = None) -> float:
    """More is better, whatever is declared."""
    return mean_of_last(matrix)


def unwritten_formula(matrix: Any, joint: Any = None) -> float:
    """Mean of the last row, which nobody wrote down."""
    return mean_of_last(matrix)


def restless_stream(spec: Any, given: Any, seeds: Any, device: str = "cpu") -> TaskStream:
    """Another split every time."""
    return build_task_stream(spec, given, replace(seeds, split=random.SystemRandom().randrange(2**31)), device)


def labelled_queries(spec: Any, given: Any, seeds: Any, device: str = "cpu") -> TaskStream:
    """Queries that bring labels along."""
    stream = build_task_stream(spec, given, seeds, device)
    made = stream.make_queries

    def with_labels(learnt: int) -> list[QueryGroup]:
        return [replace(g, query=replace(g.query, y=stream.asked(g.token).y)) for g in made(learnt)]

    stream.make_queries = with_labels  # type: ignore[method-assign]
    return stream


def overlapping_parts(spec: Any, given: Any, seeds: Any, device: str = "cpu") -> TaskStream:
    """Trains on test items."""
    stream = build_task_stream(spec, given, seeds, device)
    members = stream.members
    stream.members = lambda k, part: members(k, "test" if part == "train" else part)  # type: ignore[method-assign]
    return stream


def leads_to_the_oracle(spec: Any, given: Any, seeds: Any, device: str = "cpu") -> TaskStream:
    """Views in whose cache the oracle is."""
    stream = build_task_stream(spec, given, seeds, device)
    make = stream.make_view

    def open_view(position: int, stage: int) -> TaskView:
        view = make(position, stage)
        train: Batch = replace(view.train, cache={"keys": [stream.oracle]})
        return replace(view, train=train)

    stream.make_view = open_view  # type: ignore[method-assign]
    return stream


def sharing_classes(spec: Any, given: Any, seeds: Any, device: str) -> TaskStream:
    """The first class belongs to the second task too."""
    stream = build_task_stream(spec, given, seeds, device)
    stream.task_outputs[:2, 0] = True
    return stream


def hashed_value(matrix: Any, joint: Any = None) -> float:
    """A value that follows from a text's hash."""
    return (hash("value") % 1000) / 1000


def exits(matrix: Any, joint: Any = None) -> float:
    """No value."""
    os._exit(0)


def exits_in_order(matrix: Any, joint: Any = None) -> float:
    """No value, as a program ends."""
    sys.exit(0)


def killed(matrix: Any, joint: Any = None) -> float:
    """No value, and no end in order."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0
