"""Build datasets from files specified by the user (:mod:`cglsuite.graphs.files`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs.collection import GraphData
from cglsuite.graphs.data import NodeData
from cglsuite.graphs.files.forms import Form, form_of_arrays
from cglsuite.graphs.files.given import READER, file_with_content
from cglsuite.graphs.files.options import FileOptions
from cglsuite.graphs.files.tables import Array, read_arrays
from cglsuite.graphs.links import LinkData
from cglsuite.graphs.loading.node_arrays import node_arrays, node_data
from cglsuite.graphs.packed import PackedSource
from cglsuite.graphs.weights import WeightedNodeData


def given_data(root: DataRoot, content: str, options: str = "{}", reader: int = READER) -> NodeData | LinkData | GraphData:
    """Load the dataset from the user's file whose content has the SHA-256 hash ``content``.

    Args:
        root: not used; users' files can be anywhere.
        content: see :func:`cglsuite.graphs.files.given.content_of`.
        options: options for the file, in the form of :attr:`cglsuite.graphs.files.options.FileOptions.text`.
        reader: the version of the reader. Only one version exists.

    Raises:
        DataError: none of the user's files has this content, or its arrays are inconsistent.
        UsageError: an option is unknown.
    """
    del root, reader
    path = file_with_content(content)
    said = FileOptions.of(json.loads(options), str(path))
    return assembled(path, form_of_arrays(path, read_arrays(path, said), said))


def assembled(path: Path, form: Form) -> NodeData | LinkData | GraphData:
    """Build a validated dataset from the arrays of a form. The dataset is named after the file."""
    if form.level == "NC":
        arrays = node_arrays(x=form.x, edge_index=form.edges, y=form.y, split=form.split, keys=form.keys)
        data = node_data(path.stem, arrays, form.n_classes)
        return data if form.edge_weight is None else _with_weights(data, form)
    keys = {name: torch.from_numpy(values) for name, values in form.keys.items()}
    split = None if form.split is None else torch.from_numpy(form.split)
    if form.level in ("LC", "LP"):
        y = torch.ones(form.edges.shape[1], 1, dtype=torch.bool) if form.y is None else torch.from_numpy(form.y)
        return LinkData(
            links=torch.from_numpy(form.edges),
            y=y,
            n_classes=form.n_classes,
            n_nodes=form.n_nodes,
            x=None if form.x is None else torch.from_numpy(_dense(form.x)),
            known=None if y.dtype != torch.bool else torch.ones_like(y) if form.known is None else torch.from_numpy(form.known),
            node_types=None if form.node_types is None else torch.from_numpy(form.node_types),
            **({} if form.base_edges is None else {"base_edges": torch.from_numpy(form.base_edges)}),
            official_split=split,
            keys=keys,
            name=path.stem,
        )
    sizes = np.bincount(form.graph)
    edge_attr = None if form.edge_attr is None else torch.from_numpy(form.edge_attr)
    graphs = torch.from_numpy(_dense(form.x)), torch.from_numpy(form.edges), torch.from_numpy(sizes)
    return GraphData(
        items=PackedSource(*graphs, path.stem, edge_attr=edge_attr),
        y=torch.from_numpy(form.y),
        n_classes=form.n_classes,
        known=None if form.labels != "multi" else torch.from_numpy(form.known),
        official_split=split,
        keys=keys,
        name=path.stem,
    )


def _with_weights(data: NodeData, form: Form) -> WeightedNodeData:
    """Add edge weights to the data, whose edges are sorted and unique. The weights of repeated edges are summed."""
    source, target = form.edges
    _, edge = np.unique(source * form.n_nodes + target, return_inverse=True)
    weights = np.bincount(edge, form.edge_weight, minlength=data.edge_index.shape[1]).astype(np.float32)
    return WeightedNodeData(**vars(data), edge_weight=torch.from_numpy(weights))


def _dense(x: Array) -> Array:
    return np.ascontiguousarray(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float32)
