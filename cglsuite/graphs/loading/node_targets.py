"""Datasets from files named by the user whose items are nodes with real targets (:mod:`cglsuite.graphs.files.node_targets`)."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs.files.given import READER, file_with_content
from cglsuite.graphs.files.node_targets import form_of_node_targets
from cglsuite.graphs.files.options import FileOptions
from cglsuite.graphs.files.tables import read_arrays
from cglsuite.graphs.loading.given import assembled
from cglsuite.graphs.targets import NodeTargetData


def given_node_targets(root: DataRoot, content: str, options: str = "{}", reader: int = READER) -> NodeTargetData:
    """Load the nodes of the user's file whose content has the SHA-256 hash ``content``. For the parameters, see
    :func:`cglsuite.graphs.loading.given.given_data`.

    Raises:
        DataError: no named file has that content, or its arrays are inconsistent.
        UsageError: an unknown option.
    """
    del root, reader
    path = file_with_content(content)
    said = FileOptions.of(json.loads(options), str(path))
    form = form_of_node_targets(path, read_arrays(path, said), said)
    nodes = assembled(path, replace(form, level="NC", y=np.zeros(form.n_nodes, dtype=np.int64), labels="single"))
    return NodeTargetData(**vars(nodes) | {"y": torch.from_numpy(form.y), "n_classes": form.n_classes})
