"""The embedded graph whose nodes have real targets: the same bits everywhere, and the properties that its parameters promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from cglsuite_node.datasets.targets import synthetic_node_targets

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.graphs import NodeTargetData


def make(**parameters: Any) -> NodeTargetData:
    return synthetic_node_targets(DataRoot(None, Path("never-made"), offline=True), **parameters)


def test_content_is_pinned() -> None:
    """Published results rest on these bits: a change here needs a new dataset name."""
    assert make().content_hash == "0c10c9e28f4d202ff349a96c96a7430d9893b390546408609badc8c604f8598f"


def test_nodes_join_over_the_years_and_communities_belong_to_domains() -> None:
    data = make(n_nodes=6000)
    year, domain, (source, target) = data.keys["year"], data.keys["domain"], data.edge_index
    assert year.bincount().tolist() == pytest.approx([1000] * 6, rel=0.1)
    assert domain.bincount().tolist() == pytest.approx([1200] * 5, rel=0.01)
    degree = source.bincount(minlength=6000).double()
    assert float(degree[year >= 3].mean()) > 2 * float(degree[year < 3].mean())
    assert float((domain[source] == domain[target]).double().mean()) > 0.6
    assert torch.equal(data.edge_index.unique(dim=1), data.edge_index.flip(0).unique(dim=1))


def propagated(data: NodeTargetData) -> torch.Tensor:
    """The mean of the features of a node and of its neighbours that joined no later, by a loop over nodes."""
    year, (source, target) = data.keys["year"], data.edge_index
    rows = []
    for node in range(data.n_nodes):
        neighbours = source[(target == node) & (year[source] <= year[node])]
        rows.append(torch.cat([data.x[neighbours], data.x[node : node + 1]]).double().mean(dim=0))
    return torch.stack(rows)


def coefficients(data: NodeTargetData, chosen: torch.Tensor, largest: float) -> torch.Tensor:
    """The coefficients w by least squares from z, the solution of y = z + z² / 4 above -2, where no z can be below."""
    h, root = propagated(data), data.n_features**0.5
    chosen = chosen & (h.abs().sum(dim=1) * largest / root < 2)
    z = -2 + 2 * (1 + data.y[chosen].double()).sqrt()
    found: Any = torch.linalg.lstsq(h[chosen], z)
    assert float((h[chosen] @ found.solution - z).abs().max()) < 1e-4
    solution: torch.Tensor = found.solution[:, 0] * root
    return solution


def test_without_drift_and_noise_one_function_gives_all_targets() -> None:
    data = make(n_nodes=400, communities=5, drift=0.0, noise=0.0, n_features=4)
    found = coefficients(data, torch.ones(400, dtype=torch.bool), 1.0)
    assert found.abs().tolist() == pytest.approx([1.0] * 4, abs=1e-3)


def test_coefficients_differ_between_domains_and_grow_over_the_years_by_the_drift() -> None:
    data = make(n_nodes=600, communities=4, years=3, domains=2, drift=0.25, noise=0.0, n_features=3, avg_degree=4.0)
    year, domain = data.keys["year"], data.keys["domain"]
    found = {(d, t): coefficients(data, (domain == d) & (year == t), 1.5) for d in range(2) for t in range(3)}
    for d in range(2):
        assert (found[d, 2] - found[d, 0]).abs().tolist() == pytest.approx([0.25] * 3, abs=1e-3)
        assert (found[d, 1] - found[d, 0]).abs().tolist() == pytest.approx([0.125] * 3, abs=1e-3)
    apart = (found[1, 0] - found[0, 0]).abs()
    assert all(min(abs(float(v) - size) for size in (0.0, 0.5)) < 1e-3 for v in apart)
    assert float(apart.max()) > 0.4


def test_noise_is_added_to_the_same_targets() -> None:
    sizes: dict[str, Any] = {"n_nodes": 4000}
    added = make(**sizes, noise=0.5).y - make(**sizes, noise=0.0).y
    assert float(added.std()) == pytest.approx(0.5, rel=0.05)
    assert float(added.mean()) == pytest.approx(0.0, abs=0.03)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [({"year": 3}, UnknownNameError, "year"), ({"years": 0}, SpecError, "years"), ({"noise": -1}, SpecError, "noise")],
)
def test_parameters_are_checked(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**given)
