"""Subgraph episodic memory (SEM), sparsified by curvature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cglsuite.graphs import MessageGraph, Ranking
from cglsuite_methods.rehearsal.task_free import curvature
from cglsuite_methods.rehearsal.task_free.ssm import SSM


class SEM(SSM):
    """Store sparsified subgraphs in which every node keeps the ``fan_out`` edges with the highest Ricci curvature (Zhang et al. 2023).

    Edges of high curvature are inside communities, and edges of low curvature are between them. ``forman`` is a closed form of degrees and
    triangles; ``ollivier`` uses exact optimal transport and costs about a hundred times as much. Everything else is the same as in SSM.

    As benchmarked (DRIFT): ``curvature=overlap-with-larger`` instead of a curvature, and ``centres_only`` with ten centres in total.
    ``overlap`` is the Jaccard index of the two neighbourhoods.
    """

    def setup(self) -> None:
        """Initialise the memory.

        Raises:
            NotApplicable: the library that a curvature needs is not installed.
        """
        super().setup()
        if self.hyperparameters.curvature == "ollivier":
            curvature.transport_solver()

    def ranking(self) -> Ranking:
        """Return a ranking that puts edges with the highest curvature first."""
        of_edges = {
            "forman": curvature.forman,
            "ollivier": curvature.ollivier,
            "overlap": curvature.overlap,
            "overlap-with-larger": curvature.overlap_with_larger,
        }[self.hyperparameters.curvature]

        def rank(graph: MessageGraph, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
            # The curvature of an edge that several centres reach is computed once.
            pairs, of = np.unique(source * graph.n_nodes + target, return_inverse=True)
            values: NDArray[np.float64] = -of_edges(graph.neighbourhood, pairs // graph.n_nodes, pairs % graph.n_nodes)[of.reshape(-1)]
            return values

        return rank
