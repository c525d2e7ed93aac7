"""Message graphs for streams of links under each edge policy, and streams for link classification."""

from __future__ import annotations

from functools import lru_cache

import scipy.sparse
import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData, MessageGraph
from cglsuite.graphs.linkgraph import DEGREE_FEATURES, degree_features
from cglsuite.graphs.splits.negatives import pair_keys
from cglsuite.graphs.splits.partition import symmetrised
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.assembly import TaskAssembly
from cglsuite.streams.build import NodeGraphs
from cglsuite.streams.layout import Layout

_GRAPHS_KEPT = 8  # number of cached task graphs under the edge policy `none`; others are rebuilt


class LinkGraphs(NodeGraphs, TaskAssembly):
    """Base class for streams of node pairs, which builds their message graphs according to the edge policy."""

    data: LinkData  # type: ignore[assignment]
    keeps_nodes = True

    def __init__(self, spec: ScenarioSpec, data: LinkData, layout: Layout, seeds: Seeds, device: str) -> None:
        super().__init__(spec, data, layout, seeds, device)
        self.policy = spec.edge_policy
        self._graph = lru_cache(maxsize=_GRAPHS_KEPT if self.policy == "none" else 1)(self.message_graph)

    def count_features(self) -> int:
        return super().count_features() if self.spec.node_features == "given" else DEGREE_FEATURES[self.spec.node_features]

    def carriers(self, stage: int) -> Tensor:
        """Return which links carry messages in the graph of ``stage``: bool [M]."""
        everything = torch.ones(self.data.n_items, dtype=torch.bool)
        if self.policy == "full":
            return everything
        if self.policy == "snapshot" and self.layout.arrival is not None:  # guaranteed by the layout
            return self.layout.arrival <= stage
        tasks = self.layout.nodes[stage : stage + 1] if self.policy == "none" else self.layout.nodes[: stage + 1]
        return torch.zeros_like(everything).index_fill(0, torch.cat(tasks), True)

    def base(self) -> Tensor:
        """Return the edges that always carry messages: int64 [2, B]."""
        return self.data.base_edges

    def edges_of(self, stage: int) -> Tensor:
        """Return the edges of the message graph of ``stage``: int64 [2, E]."""
        edges = torch.cat([self.base(), self.data.links[:, self.carriers(stage)]], dim=1)
        if self.spec.undirected:
            return symmetrised(edges, self.data.n_nodes)
        # Sorted, because the order of links in the dataset may reveal their label, task or part.
        return edges[:, pair_keys(edges, self.data.n_nodes, undirected=False).argsort(stable=True)]

    def nodes_with(self, edges: Tensor) -> Tensor | scipy.sparse.csr_matrix:
        """Return the features of all nodes (float32 [N, F]), which may be degrees counted from ``edges`` (int64 [2, E])."""
        kind = self.spec.node_features
        return self.features if kind == "given" else degree_features(edges, self.data.n_nodes, kind)

    def message_graph(self, stage: int) -> MessageGraph:
        """Build the message graph of ``stage``."""
        edges = self.edges_of(stage)
        return MessageGraph(self.nodes_with(edges), edges, self.device)

    def graph_at(self, k: int, stage: int) -> MessageGraph:
        """Return the message graph for items of task ``k`` at ``stage``."""
        return self._graph({"full": 0, "none": k}.get(self.policy, stage))

    def placed(self, ids: Tensor, k: int, stage: int, part: str) -> tuple[MessageGraph, Tensor]:
        return self.graph_at(k, stage), self.data.links[:, ids].T.contiguous()

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[MessageGraph, Tensor]:
        return self.graph_at(stage, stage), self.data.links[:, ids].T.contiguous()


class LinkClassification(LinkGraphs):
    """A link-classification stream. Links of every split carry messages and can be queried once they exist. Labels are never part of the
    graph.
    """

    def __init__(self, spec: ScenarioSpec, data: LinkData, layout: Layout, seeds: Seeds, device: str) -> None:
        super().__init__(spec, data, layout, seeds, device)
        if spec.performance == "roc-auc":
            self._check_both_answers()

    def _check_both_answers(self) -> None:
        for k, parts in enumerate(self.layout.parts):
            for part in ("validation", "test"):
                y = self.data.y[parts[part]][:, self.layout.outputs[k]]
                if not bool((y.any(dim=0) & ~y.all(dim=0)).any()):
                    lacking = "negative" if bool(y.any()) else "positive"
                    raise DataError(
                        f"scenario {self.spec.name!r}: task {k + 1} ({self.layout.names[k]}) has no {lacking} {part} links, so its "
                        "ROC-AUC is undefined; change scenario.split, or merge tasks (scenario.task_bins)"
                    )

    def plan(self, learnt: int) -> list[tuple[tuple[int, ...], int]]:
        tasks = tuple(range(len(self.layout) if self.policy == "full" else learnt))
        if not tasks:
            return []
        return [((k,), k) for k in tasks] if self.policy == "none" else [(tasks, max(learnt - 1, 0))]
