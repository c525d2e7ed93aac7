"""The embedded graph that grows and drifts: the same bits everywhere, and the properties that its parameters promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from cglsuite_node.datasets.growing import synthetic_growing

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.graphs import NodeData


def make(**parameters: Any) -> NodeData:
    return synthetic_growing(DataRoot(None, Path("never-made"), offline=True), **parameters)


def test_content_is_pinned() -> None:
    """Published results rest on these bits: a change here needs a new dataset name."""
    assert make().content_hash == "fa583e2b7404ab47822f9597d26f1dacf66e7bbb4810656bfbb61717c9ea614e"
    assert (
        make(features="gaussian", n_features=16, n_nodes=300, years=4, domains=2, drift=1.0).content_hash
        == "069bf5c1eb04abf209f5d3d65362682bfd7cdc5e8b09575c21bb590414538232"
    )


def test_years_bring_nodes_classes_and_edges() -> None:
    """The first classes are there at once and the last halfway, and the later half of the years has more edges per node."""
    data = make(n_nodes=6000)
    year, (source, target) = data.keys["year"], data.edge_index
    assert [int(year[data.y == c].min()) for c in range(10)] == [c * 6 // 20 for c in range(10)]
    assert all(set(year[data.y == c].tolist()) == set(range(c * 6 // 20, 6)) for c in range(10))
    degree = source.bincount(minlength=6000).double()
    assert float(degree[year >= 3].mean()) > 2 * float(degree[year < 3].mean())
    assert float(degree.mean()) == pytest.approx(8, rel=0.02)  # a few edges are drawn twice
    assert float((data.y[source] == data.y[target]).double().mean()) == pytest.approx(0.6, abs=0.01)
    assert torch.equal(data.keys["domain"].unique(), torch.arange(5))


@pytest.mark.parametrize("features", ["binary", "gaussian"])
@pytest.mark.parametrize("drift", [0.0, 0.5, 1.0])
def test_what_a_class_looks_like_moves_by_the_drift(features: str, drift: float) -> None:
    """Its mean in another domain is as far from that in the first as drift says; in the last year the domains are alike again."""
    sizes: dict[str, Any] = {"n_nodes": 12000, "n_classes": 2, "features": features, "n_features": 60, "words": 10.0, "signal": 1.0}
    data = make(**sizes, years=3, domains=3, drift=drift)
    x = data.x.to_dense() if data.x.layout == torch.sparse_csr else data.x

    def mean(domain: int, year: int) -> torch.Tensor:
        return x[(data.y == 0) & (data.keys["domain"] == domain) & (data.keys["year"] == year)].mean(dim=0)

    def between(a: tuple[int, int], b: tuple[int, int]) -> float:
        return float((mean(*a) - mean(*b)).norm() / mean(0, 0).norm())

    whole = {"binary": 1.0, "gaussian": 1.4}[features]
    assert between((0, 0), (1, 0)) == pytest.approx(drift * whole, abs=0.3)
    assert between((0, 0), (0, 2)) == pytest.approx(drift * whole, abs=0.3)
    assert between((0, 2), (1, 2)) == pytest.approx(drift * (1 - drift) * whole, abs=0.2)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [({"year": 3}, UnknownNameError, "year"), ({"years": 0}, SpecError, "years"), ({"drift": 2}, SpecError, "drift")],
)
def test_parameters_are_checked(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**given)
