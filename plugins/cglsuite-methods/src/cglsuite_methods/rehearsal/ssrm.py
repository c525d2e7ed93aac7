"""SSRM: experience replay with a penalty that preserves the distribution of the representations of stored nodes when the graph grows."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cglsuite.graphs import MessageGraph
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.rehearsal.er_gnn import ERGNN

_RATES = (1.0, 0.1, 0.001)  # of the three Gaussians in the authors' code


class SSRM(ERGNN):
    """Extend ER-GNN with structural shift risk mitigation (Su et al., Towards Robust Graph Incremental Learning on Evolving Graphs, ICML
    2023).

    The loss is ``L_ER + λ MMD²(φ(B, G'), φ(B, G))``, where φ are the embeddings, under the current model, of the stored nodes B in the
    graph G' of the previous task and in the current graph G. Arriving nodes change the neighbourhoods of old ones, and the penalty favours
    a representation whose distribution does not change with them. If the graph does not grow (edge policy ``full``), or old nodes are not
    in it (``none``), there is no shift and the method is ER-GNN.

    G' is the part of G among the nodes that were there before, which keep their ids, so only the number of nodes is stored. Stored nodes
    are embedded in both graphs for the penalty, regardless of the form in which they are replayed.

    The method is derived from the paper's statement of the idea. Design choices where the paper is open:

    - MMD² is the biased estimate, which is zero for equal samples. Its kernel is a Gaussian whose bandwidth is the median distance within
      both samples together. The authors' code adds up three Gaussians ``exp(-γ d²)`` with γ = 1, 0.1 and 0.001
      (``kernel = three-gaussians``). The penalty is switched off in the released code, which leaves open its samples and its weight.
    - Both samples are embedded in training mode, as the task's items are, and gradients flow through both.
    - Links and whole graphs are left out: the paper is about nodes. Links between old nodes may come later, so that G' could not be read
      off G, and whole graphs do not grow.

    Cost: two more passes per step over graphs of the size of G' and G, and the distances between 2|B| embeddings.
    """

    state = ("n_before",)

    def setup(self) -> None:
        """Initialise without a previous graph."""
        super().setup()
        self.n_before = 0
        self._shifted: tuple[Batch, Batch] | None = None

    def before_task(self, view: TaskView) -> None:
        """Collect the memory for replay and, if the graph has grown, also in the graphs before and after the growth."""
        super().before_task(view)
        grown = view.keeps_nodes and 0 < self.n_before < view.graph.n_nodes
        self._shifted = self._laid_out(view, self.problem.join(self.memory.all())) if grown and len(self.memory) else None

    def _laid_out(self, view: TaskView, items: MemoryItems) -> tuple[Batch, Batch]:
        items = replace(items, x=None)
        before = replace(view.train, graph=_first_nodes(view.graph, self.n_before), cache={})
        return self.problem.recall(items, before), self.problem.recall(items, view)

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss of ER-GNN plus the weighted penalty."""
        loss = super().loss(batch)
        weight: float = self.hyperparameters["lambda"]
        if self._shifted is None or weight == 0:
            return loss
        before, now = (self.problem.embed(self.model, items) for items in self._shifted)
        return loss + weight * squared_mmd(before, now, self.hyperparameters.kernel, self.hyperparameters.bandwidth)

    def after_task(self, view: TaskView) -> None:
        """Store nodes of the task and the number of nodes so far."""
        super().after_task(view)
        self._shifted, self.n_before = None, int(view.graph.n_nodes)


def _first_nodes(graph: MessageGraph, n: int) -> MessageGraph:
    """The subgraph of the first ``n`` nodes."""
    source, target = graph.edge_index
    return MessageGraph(
        graph.rows(torch.arange(n, device=source.device)), graph.edge_index[:, (source < n) & (target < n)].cpu(), graph.device
    )


def squared_mmd(x: Tensor, y: Tensor, kernel: str = "gaussian", bandwidth: float | None = None) -> Tensor:
    """Compute the biased estimate of the squared maximum mean discrepancy, ``mean k(x, x') + mean k(y, y') - 2 mean k(x, y)``.

    Args:
        x: float32 [n, d]. y: float32 [m, d].
        kernel: ``gaussian``: ``exp(-d² / 2σ²)``; ``three-gaussians``: the sum of ``exp(-γ d²)`` for γ = 1, 0.1, 0.001.
        bandwidth: σ; ``None`` = the median distance between different rows of x and y together, their mean if that is 0.

    Returns:
        A scalar, differentiable in x and y; the bandwidth counts as a constant.
    """
    n = len(x)
    both = torch.cat([x, y])
    squares = torch.cdist(both, both, compute_mode="donot_use_mm_for_euclid_dist").square()
    if kernel == "three-gaussians":
        rates = [squares.new_tensor(rate) for rate in _RATES]
    else:
        variance = _typical(squares.detach()) if bandwidth is None else squares.new_tensor(bandwidth**2)
        rates = [1 / (2 * variance)]
    values = torch.stack([torch.exp(-rate * squares) for rate in rates]).sum(dim=0)
    return values[:n, :n].mean() + values[n:, n:].mean() - 2 * values[:n, n:].mean()


def _typical(squares: Tensor) -> Tensor:
    """A typical squared distance: the squared median of distances, their squared mean if it is 0, or 1 if that is 0 too."""
    row, column = torch.triu_indices(len(squares), len(squares), offset=1, device=squares.device)
    distances = squares[row, column].sqrt()
    median, mean = distances.median(), distances.mean()
    typical = torch.where(median > 0, median, mean).square()
    return torch.where(typical > 0, typical, torch.ones_like(typical))
