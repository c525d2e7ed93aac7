"""The embedded motions: the same bits everywhere, and classes that can be told apart, but not at a glance."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_skeleton.datasets.specs import MOTION_HYPERPARAMETERS
from cglsuite_skeleton.datasets.synthetic import sample_motion, synthetic_motion
from cglsuite_skeleton.layouts import layout_of

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.graphs import GraphData


def make(**parameters: Any) -> GraphData:
    return synthetic_motion(DataRoot(None, Path("never-made"), offline=True), **parameters)


def sample(layout: str = "nw-ucla", **parameters: Any) -> dict[str, Any]:
    return sample_motion(layout_of(layout), **({"n_classes": 10, "per_class": 30, "noise": 1.0, "seed": 0} | parameters))


def fingerprint(arrays: dict[str, Any]) -> str:
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(f"{name}{array.shape}{array.dtype}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, "86d365fd11e63d9cc7a6169a4241cd4608527fc1111a65564ae76944e9b58548"),
        (
            {"layout": "openpose-18", "n_classes": 3, "per_class": 4, "noise": 0.5, "seed": 7},
            "6200ba0c5779d72f144f747195d681ae0f7e7ecbf003e42a01df4f1d85745fa1",
        ),
    ],
)
def test_content_is_pinned(parameters: dict[str, Any], expected: str) -> None:
    """Results rest on these bits: a change here needs a new dataset name."""
    assert fingerprint(sample(**parameters)) == expected


def test_default_dataset() -> None:
    data = make()
    assert (data.n_items, data.n_classes, data.n_features) == (300, 10, 32 * 3)
    assert data.y.bincount().tolist() == [30] * 10
    assert data.notes == {}
    lengths = data.items.training(torch.arange(300), 0, "cpu").payload()["lengths"]
    assert (int(lengths.min()), int(lengths.max()), lengths.unique().numel()) == (16, 48, 33)
    assert data.content_hash == make().content_hash != make(seed=1).content_hash
    assert not Path("never-made").exists()


@pytest.mark.parametrize("layout", ["nw-ucla", "ntu-rgbd", "openpose-18", "0-1,1-2,2-3,3-0;centre=1"])
def test_any_layout_moves_about_its_centre(layout: str) -> None:
    shape = layout_of(layout)
    arrays = sample(layout, noise=0.0, per_class=2)
    assert arrays["coordinates"].shape[1:] == (1, shape.n_joints, 3)
    assert not arrays["coordinates"][:, 0, shape.centre].any()
    assert make(layout=layout, per_class=2).items.queries(torch.arange(4), "cpu").n_nodes == 4 * shape.n_joints


def nearest_mean(train: torch.Tensor, y: torch.Tensor, test: torch.Tensor) -> torch.Tensor:
    means = torch.stack([train[y == c].mean(dim=0) for c in range(10)])
    return torch.cdist(test, means).argmin(dim=1)


def accuracy(noise: float) -> float:
    """A nearest class mean, which sees each sequence as one vector."""
    data = make(noise=noise)
    ids = torch.arange(300)
    train, test = ids[ids % 3 > 0], ids[ids % 3 == 0]
    x = data.items.queries(ids, "cpu").x.transpose(0, 1).flatten(1)  # type: ignore[attr-defined]
    return float((nearest_mean(x[train], data.y[train], x[test]) == data.y[test]).float().mean())


def test_classes_can_be_told_apart_but_not_at_a_glance() -> None:
    easy, usual, hard = accuracy(0.1), accuracy(1.0), accuracy(4.0)
    assert easy > 0.6
    assert 0.2 < usual < 0.6  # chance: 0.1
    assert hard < 0.2


def test_parameters_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="per_class"):
        make(per_clas=3)
    with pytest.raises(UnknownNameError, match="nw-ucla"):
        make(layout="nw-ucl")
    with pytest.raises(SpecError, match="joint"):
        make(layout="0-1;centre=5")
    with pytest.raises(SpecError, match="noise"):
        make(noise=-1)
    assert {h.name for h in MOTION_HYPERPARAMETERS} >= {
        "frames",
        "augmentation",
        "max_angle",
        "n_classes",
        "per_class",
        "layout",
        "noise",
        "seed",
    }
