"""Adapters for open-world streams, whose queries also contain items of classes that have not arrived yet."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from cglsuite.problems.base import Problem
from cglsuite.problems.graphwise import GraphProblem
from cglsuite.problems.link import LinkProblem
from cglsuite.problems.node import NodeProblem


class OpenOutputs(Problem):
    """Mixin for queries that may belong to an unseen class, to list before the class of a level. Training is that of single-label items.

    Any method can be evaluated: by default its confidence in an item is the largest softmax probability over the seen classes (Hendrycks
    and Gimpel, ICLR 2017), and the scenario rejects items below a threshold. A method with its own rule returns infinite outputs for
    *all* unseen classes: ``inf`` rejects the item, ``-inf`` accepts it. Its confidence is then its largest output of a seen class.
    """

    def decode(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """Return the predicted seen class, the confidence, and the method's own decision for each item: float32 [n, 3].

        The decision is 1 to accept, 0 to reject, and NaN if the method leaves it to the scenario.
        """
        seen = logits.masked_fill(~allowed, -torch.inf)
        best = seen.max(dim=1)
        unseen = logits.masked_fill(allowed, 0.0)
        decided = (unseen.isinf() | allowed).all(dim=1) & ~allowed.all(dim=-1)
        confidence = torch.where(decided, best.values, functional.softmax(seen, dim=1).amax(dim=1))
        accepted = torch.where(decided, (unseen.amax(dim=1) <= 0).to(logits.dtype), torch.nan)
        return torch.stack([best.indices.to(logits.dtype), confidence, accepted], dim=1)


class OpenNodeProblem(OpenOutputs, NodeProblem):
    """Adapter for nodes, some of an unseen class."""


class OpenLinkProblem(OpenOutputs, LinkProblem):
    """Adapter for links, some of an unseen class."""


class OpenGraphProblem(OpenOutputs, GraphProblem):
    """Adapter for whole graphs, some of an unseen class."""
