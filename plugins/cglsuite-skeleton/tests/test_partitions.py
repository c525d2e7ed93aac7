"""Partition strategies against loops written from the formulas of Yan et al. (2018), and by hand on a small skeleton."""

from __future__ import annotations

import pytest
import torch
from cglsuite_skeleton.layouts import LAYOUTS, Layout, layout_of
from cglsuite_skeleton.partitions import PARTITIONS, adjacency_stack
from torch import Tensor

from cglsuite.base.errors import SpecError, UnknownNameError

TREE = "0-1,1-2,2-3,4-1,5-4,6-4;centre=1"
CYCLE = "0-1,1-2,2-3,3-4,4-0;centre=0"
SKELETONS = (*LAYOUTS, TREE, CYCLE)


def label(layout: Layout, strategy: str, max_hop: int, v: int, w: int) -> int:
    """The subset of w's neighbours that v belongs to."""
    hops = layout.hops().tolist()
    if strategy == "uniform":
        return 0
    if strategy == "distance":
        return int(hops[v][w])
    if v == w:
        return 0
    radius = hops[layout.centre]
    if strategy == "spatial":
        return 2 if radius[v] < radius[w] else 1
    near = [r if r <= max_hop else max_hop + 1 for r in radius]
    return 2 * int(hops[v][w]) - (0 if near[v] < near[w] else 1)


def slowly(layout: Layout, strategy: str, max_hop: int) -> Tensor:
    """Joint by joint: one over the number of its neighbours, in the matrix of each neighbour's subset."""
    n, hops = layout.n_joints, layout.hops().tolist()
    subsets = {"uniform": 1, "distance": max_hop + 1, "spatial": 3, "spatial-truncated": 2 * max_hop + 1}[strategy]
    out = torch.zeros(subsets, n, n)
    for w in range(n):
        neighbours = [v for v in range(n) if hops[v][w] <= max_hop]
        for v in neighbours:
            out[label(layout, strategy, max_hop, v, w), v, w] = 1 / len(neighbours)
    return out


@pytest.mark.sampled(20)
@pytest.mark.parametrize("max_hop", [1, 2, 3])
@pytest.mark.parametrize("strategy", PARTITIONS)
@pytest.mark.parametrize("skeleton", SKELETONS)
def test_stacks_equal_a_loop_over_joints(skeleton: str, strategy: str, max_hop: int) -> None:
    found = adjacency_stack(layout_of(skeleton), strategy, max_hop)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, slowly(layout_of(skeleton), strategy, max_hop))


@pytest.mark.parametrize("strategy", PARTITIONS)
@pytest.mark.parametrize("skeleton", SKELETONS)
def test_subsets_are_disjoint_and_columns_sum_to_one(skeleton: str, strategy: str) -> None:
    layout = layout_of(skeleton)
    found = adjacency_stack(layout, strategy)
    assert ((found > 0).sum(dim=0) <= 1).all()
    torch.testing.assert_close(found.sum(dim=0).sum(dim=0), torch.ones(layout.n_joints))
    assert torch.equal(found.sum(dim=0) > 0, (layout.adjacency() + torch.eye(layout.n_joints)) > 0)


def test_by_hand() -> None:
    """The path 0 - 1 - 2 with its centre at one end: joint 1 has three neighbours, the ends have two."""
    self, farther, closer = adjacency_stack(layout_of("0-1,1-2;centre=0"), "spatial")
    third, half = 1 / 3, 1 / 2
    torch.testing.assert_close(self, torch.diag(torch.tensor([half, third, half])))
    torch.testing.assert_close(farther, torch.tensor([[0, 0, 0], [half, 0, 0], [0, third, 0]]))  # 0 hears 1, 1 hears 2
    torch.testing.assert_close(closer, torch.tensor([[0, third, 0], [0, 0, half], [0, 0, 0]]))  # 1 hears 0, 2 hears 1


def test_distance_parts_self_from_the_others() -> None:
    self, others = adjacency_stack(layout_of(TREE), "distance")
    uniform = adjacency_stack(layout_of(TREE), "uniform")[0]
    assert torch.equal(self, torch.diag(uniform.diagonal()))
    assert torch.equal(self + others, uniform)


@pytest.mark.parametrize("name", LAYOUTS)
def test_full_distances_give_every_bone_a_direction_and_truncated_ones_do_not(name: str) -> None:
    """As the paper's code has it, bones whose joints both lie more than one hop from the centre are in the second subset both ways."""
    layout = layout_of(name)
    full, truncated = adjacency_stack(layout, "spatial"), adjacency_stack(layout, "spatial-truncated")
    radius = layout.hops()[layout.centre]
    assert full.shape == truncated.shape == (3, layout.n_joints, layout.n_joints)
    for child, parent in layout.edges:
        assert full[1, child, parent] > 0
        assert full[2, parent, child] > 0
        assert truncated[1, child, parent] > 0
        assert truncated[2 if radius[parent] <= 1 else 1, parent, child] > 0
    assert not torch.equal(full, truncated)


def test_equally_far_neighbours_count_as_farther() -> None:
    """The ring of five has one bone between joints at the same distance from its centre."""
    stack = adjacency_stack(layout_of(CYCLE), "spatial")
    assert stack[1, 2, 3] == stack[1, 3, 2] == pytest.approx(1 / 3)
    assert not stack[2, 2, 3]


def test_what_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown partition 'spacial'. Did you mean 'spatial'"):
        adjacency_stack(layout_of(TREE), "spacial")
    with pytest.raises(SpecError, match="max_hop = 0: expected at least 1"):
        adjacency_stack(layout_of(TREE), "uniform", 0)
