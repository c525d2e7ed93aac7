"""Published protocols that several distributions follow, one package per paper. Importing the packages does not import torch.

A package has the paper's citation, training, hyper-parameters, networks, split files, and a function per problem level that builds a preset
for any dataset. A protocol that one distribution follows lives there (AGALE in cglsuite-node, DRIFT and skeletons in their own).

A separate distribution for protocols was considered and rejected: plugins would import plugins, and the suite would have a second list of
public names with a separate version. It would be worthwhile for a paper with a dependency that the core does not have.
"""

from __future__ import annotations

from cglsuite.protocols.shared import TOPOLOGY_NOTE, trained_outputs

__all__ = ["TOPOLOGY_NOTE", "trained_outputs"]
