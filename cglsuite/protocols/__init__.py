"""Published protocols that are shared by several distributions, with one package per paper. Importing them does not import torch.

A package contains the paper's citation, training protocol, hyperparameters, networks and split files, and for each problem level a
function that builds a preset for any dataset. A protocol used by only one distribution is part of that distribution (AGALE in
cglsuite-node, DRIFT and skeletons in distributions of their own).

A separate distribution for protocols was considered and rejected, because plugins would import plugins, and the suite would have a second
list of public names with a separate version. It would be worthwhile for a paper with a dependency that the core does not have.
"""

from __future__ import annotations

from cglsuite.protocols.shared import TOPOLOGY_NOTE, trained_outputs

__all__ = ["TOPOLOGY_NOTE", "trained_outputs"]
