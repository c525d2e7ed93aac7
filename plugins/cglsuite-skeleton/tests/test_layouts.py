"""Layouts: the published skeletons, edge lists of users, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from cglsuite_skeleton.layouts import LAYOUTS, Layout, layout_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from cglsuite.base.errors import SpecError, UnknownNameError


def test_nw_ucla_has_the_published_bones() -> None:
    """Child and parent, 1-based, as the protocol prints them."""
    published = """(1,2) (2,3) (4,3) (5,3) (6,5) (7,6) (8,7) (9,3) (10,9) (11,10) (12,11) (13,1) (14,13) (15,14) (16,15) (17,1) (18,17)
    (19,18) (20,19)"""
    bones = {tuple(int(j) - 1 for j in pair.strip("()").split(",")) for pair in published.split()}
    assert set(layout_of("nw-ucla").edges) == bones
    assert len(bones) == 19


def test_ntu_has_the_joints_of_kinect_two() -> None:
    layout = layout_of("ntu-rgbd")
    hops = layout.hops()
    assert (layout.n_joints, len(layout.edges), layout.centre) == (25, 24, 20)
    assert {int(v) for v in layout.adjacency()[20].nonzero()} == {1, 2, 4, 8}  # spine, neck, both shoulders
    assert {int(v) for v in (layout.adjacency().sum(0) == 1).nonzero()} == {3, 15, 19, 21, 23}  # head, feet, hand tips
    assert hops[3, 20] == 2  # the head hangs on the neck
    assert hops[21, 20] == hops[23, 20] == 6  # tips of the hands, beyond shoulder, elbow, wrist, hand and thumb, as the list has it


def test_openpose_has_the_joints_of_coco() -> None:
    layout = layout_of("openpose-18")
    assert (layout.n_joints, len(layout.edges), layout.centre) == (18, 17, 1)
    assert {int(v) for v in layout.adjacency()[1].nonzero()} == {0, 2, 5}  # nose, both shoulders
    assert layout.hops()[10, 1] == layout.hops()[13, 1] == 4  # ankles, as hips hang on shoulders


@pytest.mark.parametrize("name", LAYOUTS)
def test_named_layouts_are_trees_whose_bones_lead_to_the_centre(name: str) -> None:
    layout = layout_of(name)
    assert layout.name == name
    assert len(layout.edges) == layout.n_joints - 1
    assert {child for child, _ in layout.edges} == set(range(layout.n_joints)) - {layout.centre}
    radius = layout.hops()[layout.centre]
    assert all(radius[child] == radius[parent] + 1 for child, parent in layout.edges)


def test_an_edge_list() -> None:
    layout = layout_of(" 0-1, 1-2, 2-3 ; centre=1")
    assert layout == Layout("0-1,1-2,2-3;centre=1", 4, ((0, 1), (1, 2), (2, 3)), 1)
    assert layout_of(layout.name) == layout
    expected = torch.tensor([[0.0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
    assert torch.equal(layout.adjacency(), expected)
    assert layout.adjacency().dtype == torch.float32
    assert torch.equal(layout.hops(), torch.tensor([[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]))
    assert layout.hops().dtype == torch.int64
    assert layout_of("0-1;joints=2;centre=0").n_joints == 2
    assert layout_of("0-1,1-2,2-0;centre=0").hops().max() == 1  # cycles are welcome


@st.composite
def skeletons(draw: st.DrawFn) -> Layout:
    """A random tree, and perhaps some bones more."""
    n = draw(st.integers(1, 9))
    bones = {(v, draw(st.integers(0, v - 1))) for v in range(1, n)}
    extra = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3))
    bones |= {(max(b), min(b)) for b in extra if b[0] != b[1]}
    return Layout("drawn", n, tuple(sorted(bones)), draw(st.integers(0, n - 1)))


@given(skeletons())
def test_hops_are_shortest_paths(layout: Layout) -> None:
    assert torch.equal(layout.hops(), torch.from_numpy(shortest_path(layout.adjacency().numpy(), unweighted=True)).long())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-1,1-2", "the centre is missing; a layout is a name or an edge list such as"),
        ("0-1,1-4;centre=0;joints=4", r"bone 1-4: joint 4 is out of range: expected 0\.\.3, as there are 4 joints"),
        ("0-1,1-2,0-1;centre=0", "bone 0-1 is listed twice"),
        ("0-1,1-0;centre=0", "bone 1-0 is listed twice"),
        ("0-1,1-1;centre=0", "bone 1-1 joins a joint to itself"),
        ("0-1,2-3,3-4;centre=0", "no path of bones leads from the centre 0 to joints 2, 3, 4"),
        ("0-1,1-2;centre=0;joints=4", "no path of bones leads from the centre 0 to joint 3"),
        ("0-1,1-2;centre=3", r"centre=3 is out of range: expected 0\.\.2"),
        ("0-1,1-2;centre=x", "cannot parse 'centre=x'"),
        ("0-1;centre=0;centre=1", "cannot parse 'centre=1'; expected centre=<joint> and optionally joints=<number>, once each"),
        ("0-1,,1-2;centre=0", "cannot parse the bone ''"),
        ("-1-0;centre=0", "cannot parse the bone '-1-0'"),
        ("0-1,1;centre=0", "cannot parse the bone '1'"),
    ],
)
def test_what_is_no_skeleton_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        layout_of(text)
    assert f"layout {text!r}" in str(caught.value)


def test_a_layout_checks_itself() -> None:
    with pytest.raises(SpecError, match=r"bone -1-0: joint -1 is out of range"):
        Layout("odd", 2, ((-1, 0),), 0)
    with pytest.raises(SpecError, match="0 joints; expected at least 1"):
        Layout("none", 0, (), 0)
    assert Layout("one", 1, (), 0).hops().tolist() == [[0]]


@pytest.mark.parametrize("text", ["nw-ulca", "NW-UCLA", "ucla"])
def test_an_unknown_name_suggests_the_nearest(text: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown layout '{text}'.*nw-ucla.*A layout is a name or an edge list"):
        layout_of(text)


def test_listing_imports_no_torch() -> None:
    code = "import sys, cglsuite_skeleton.layouts as l, cglsuite_skeleton.backbones as b; b.backbones(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"
