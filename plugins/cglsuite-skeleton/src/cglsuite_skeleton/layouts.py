"""Skeleton layouts, which define joints, bones and the centre joint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cglsuite.base.errors import SpecError, UnknownNameError

if TYPE_CHECKING:
    from torch import Tensor


_FORM = "a layout is a name or an edge list such as '0-1,1-2,2-3;centre=1' (0-based joints)"


@dataclass(frozen=True)
class Layout:
    """A skeleton, represented as a connected graph over ``n_joints`` joints.

    Args:
        name: name of the layout; an edge list is its own name.
        n_joints: number of joints V.
        edges: bones as 0-based pairs (child, parent); in the named layouts every bone points towards the centre, so only the centre is not
            a child. Graphs treat bones as undirected.
        centre: the joint from which the spatial partition measures distances.

    Raises:
        SpecError: a joint out of range, a self-loop, a duplicate bone, or joints that no bone reaches.
    """

    name: str
    n_joints: int
    edges: tuple[tuple[int, int], ...]
    centre: int

    def __post_init__(self) -> None:
        if self.n_joints < 1:
            raise self._wrong(f"{self.n_joints} joints; expected at least 1")
        if not 0 <= self.centre < self.n_joints:
            raise self._wrong(f"centre={self.centre} is out of range: {self._range()}")
        seen = set()
        for child, parent in self.edges:
            bone = f"bone {child}-{parent}"
            for joint in (child, parent):
                if not 0 <= joint < self.n_joints:
                    raise self._wrong(f"{bone}: joint {joint} is out of range: {self._range()}")
            if child == parent:
                raise self._wrong(
                    f"{bone} joins a joint to itself; expected two different joints. Models add self-loops where they need them"
                )
            if frozenset((child, parent)) in seen:
                raise self._wrong(
                    f"{bone} is listed twice. Bones are undirected, so {child}-{parent} and {parent}-{child} are the same bone"
                )
            seen.add(frozenset((child, parent)))
        apart = sorted(set(range(self.n_joints)) - self._reached())
        if apart:
            raise self._wrong(
                f"no path of bones leads from the centre {self.centre} to joint{'s' * (len(apart) > 1)} {', '.join(map(str, apart))}"
            )

    def _wrong(self, what: str) -> SpecError:
        return SpecError(f"layout {self.name!r}: {what}")

    def _range(self) -> str:
        return f"expected 0..{self.n_joints - 1}, as there are {self.n_joints} joints"

    def _reached(self) -> set[int]:
        """The joints that are connected to the centre."""
        reached, before = {self.centre}, 0
        while len(reached) > before:
            before = len(reached)
            reached |= {joint for bone in self.edges if not reached.isdisjoint(bone) for joint in bone}
        return reached

    def adjacency(self) -> Tensor:
        """Return the bones as a symmetric 0/1 matrix without loops: float32 [V, V]."""
        import torch

        matrix = torch.zeros(self.n_joints, self.n_joints)
        for child, parent in self.edges:
            matrix[child, parent] = matrix[parent, child] = 1
        return matrix

    def hops(self) -> Tensor:
        """Count the bones on the shortest path between any two joints: int64 [V, V]."""
        import torch

        step = self.adjacency() + torch.eye(self.n_joints)
        reach = torch.eye(self.n_joints)
        hops = torch.zeros(self.n_joints, self.n_joints, dtype=torch.int64)
        for _ in range(self.n_joints - 1):
            hops += reach == 0  # add one for every pair not yet connected by paths of that length
            reach = ((reach @ step) > 0).float()
        return hops


def _one_based(*bones: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple((child - 1, parent - 1) for child, parent in bones)


_KINECT_LIMBS = (
    *((6, 5), (7, 6), (8, 7)),  # left arm
    *((10, 9), (11, 10), (12, 11)),  # right arm
    *((13, 1), (14, 13), (15, 14), (16, 15)),  # left leg
    *((17, 1), (18, 17), (19, 18), (20, 19)),  # right leg
)

LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        # Kinect 1: hip centre, spine, shoulder centre, head, then the limbs. All bones of the published list lead to the shoulder centre,
        # which is the centre also of the two layouts below, as ST-GCN has them.
        Layout("nw-ucla", 20, _one_based((1, 2), (2, 3), (4, 3), (5, 3), (9, 3), *_KINECT_LIMBS), centre=2),
        # Kinect 2: the shoulder centre ("spine shoulder") is joint 21, and every hand has a tip and a thumb.
        Layout(
            "ntu-rgbd",
            25,
            _one_based((1, 2), (2, 21), (3, 21), (4, 3), (5, 21), (9, 21), *_KINECT_LIMBS, (22, 23), (23, 8), (24, 25), (25, 12)),
            centre=20,
        ),
        # OpenPose, 18 joints of COCO: nose 0, neck 1, right arm 2-4, left arm 5-7, right leg 8-10, left leg 11-13, eyes 14 and 15, ears
        # 16 and 17. Hips are attached to the shoulders, as in ST-GCN.
        Layout(
            "openpose-18",
            18,
            (
                *((0, 1), (14, 0), (15, 0), (16, 14), (17, 15)),
                *((2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (7, 6)),
                *((8, 2), (9, 8), (10, 9), (11, 5), (12, 11), (13, 12)),
            ),
            centre=1,
        ),
    )
}


def layout_of(text: str) -> Layout:
    """Return the layout that ``text`` names or describes.

    Args:
        text: ``nw-ucla``, ``ntu-rgbd``, ``openpose-18``; or an edge list, ``"0-1,1-2,2-3;centre=1"``: 0-based bones, the centre joint,
            and optionally ``joints=4``, to check the number of joints (default: the highest joint plus one).

    Raises:
        UnknownNameError: unknown name.
        SpecError: an edge list that cannot be parsed or is not a skeleton; see :class:`Layout`.
    """
    text = re.sub(r"\s+", "", text)
    if text in LAYOUTS:
        return LAYOUTS[text]
    bones, *options = text.split(";")
    if not re.match(r"-?\d", text):
        raise UnknownNameError("layout", text, LAYOUTS, _FORM[0].upper() + _FORM[1:] + ".")
    edges = tuple(_bone(text, bone) for bone in bones.split(","))
    given = _options(text, options)
    if "centre" not in given:
        raise SpecError(f"layout {text!r}: the centre is missing; {_FORM}")
    n_joints = given.get("joints", 1 + max(joint for bone in edges for joint in bone))
    return Layout(text, n_joints, edges, given["centre"])


def _bone(text: str, bone: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)-(\d+)", bone)
    if match is None:
        raise SpecError(f"layout {text!r}: cannot parse the bone {bone!r}; {_FORM}")
    return int(match[1]), int(match[2])


def _options(text: str, options: Sequence[str]) -> dict[str, int]:
    """The options after the bones, such as ``centre=1`` and ``joints=4``, by name."""
    given: dict[str, int] = {}
    for option in options:
        match = re.fullmatch(r"(centre|joints)=(\d+)", option)
        if match is None or match[1] in given:
            raise SpecError(f"layout {text!r}: cannot parse {option!r}; expected centre=<joint> and optionally joints=<number>, once each")
        given[match[1]] = int(match[2])
    return given
