"""NTU RGB+D from tiny files in both true formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_skeleton.datasets.ntu_rgbd import TRAINING_SUBJECTS, ntu_rgbd
from cglsuite_skeleton.datasets.ntu_skeleton_files import energy, read_skeleton

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData

Array = np.ndarray[Any, Any]
MAIN, OTHER, THIRD = "72057594037931101", "72057594037931102", "72057594037931103"  # equal as float64
LISTED = "NTU_RGBD_samples_with_missing_skeletons.txt"


def positions(seed: int, size: float = 1.0) -> Array:
    return (np.random.default_rng(seed).normal(size=(25, 3)) * size).round(6).astype(np.float32)


def skeleton_text(frames: Sequence[Mapping[str, Array]]) -> str:
    """The format of the release: counts, a line per body, a line of twelve fields per joint."""
    lines = [str(len(frames))]
    for bodies in frames:
        lines.append(str(len(bodies)))
        for body, joints in bodies.items():
            lines += [f"{body} 0 1 1 0 0 0 -0.2133 0.0274 2", str(len(joints))]
            lines += [" ".join(f"{v:.6f}" for v in joint) + " 277.4 191.8 1036.2 519.7 -0.2 0.03 0.97 -0.02 2" for joint in joints]
    return "\r\n".join(lines) + "\r\n"


def write(folder: Path, name: str, frames: Sequence[Mapping[str, Array]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.skeleton"
    path.write_bytes(skeleton_text(frames).encode("ascii"))
    return path


def load(root: Path, **parameters: Any) -> GraphData:
    return ntu_rgbd(DataRoot(root, root / "cache", offline=True, verify=False), **parameters)


def kept(data: GraphData) -> dict[str, Array]:
    return {k: v.numpy() for k, v in data.items.training(torch.arange(data.n_items), 0, "cpu").payload().items()}


# --- one file --------------------------------------------------------------------------------------------------------------------


def test_bodies_are_followed_by_their_ids_and_those_who_move_most_come_first(tmp_path: Path) -> None:
    still, lively, faint = positions(0, 0.5), [positions(i, 2.0) for i in range(1, 5)], positions(9, 0.01)
    frames = [
        {MAIN: still, OTHER: lively[0]},
        {},
        {OTHER: lively[1], MAIN: still, THIRD: faint},
        {THIRD: faint},
        {OTHER: lively[2]},
    ]
    found = read_skeleton(write(tmp_path, "S", frames), 25, 2)
    assert (found.shape, found.dtype) == ((3, 2, 25, 3), np.float32)  # frames without the two chosen are left out
    np.testing.assert_array_equal(found[:, 0], np.stack(lively[:3]))
    np.testing.assert_array_equal(found[:2, 1], np.stack([still, still]))
    assert not found[2, 1].any()


def test_one_body_and_none(tmp_path: Path) -> None:
    found = read_skeleton(write(tmp_path, "S", [{MAIN: positions(0)}, {MAIN: positions(1)}]), 25, 2)
    np.testing.assert_array_equal(found[:, 0], np.stack([positions(0), positions(1)]))
    assert not found[:, 1].any()
    for frames in ([], [{}, {}]):
        assert read_skeleton(write(tmp_path, "S", frames), 25, 2).shape == (0, 2, 25, 3)


def test_energy_is_the_sum_of_deviations() -> None:
    body = np.stack([positions(0), positions(1)])
    assert energy(body) == pytest.approx(sum(body[..., axis].astype(float).std() for axis in range(3)))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: text[: len(text) // 2], "ends after .* truncated"),
        (lambda text: "", "ends after 0 lines"),
        (lambda text: text.replace("\r\n25\r\n", "\r\n24\r\n", 1), "line 4: found 24 joints; expected 25"),
        (lambda text: text.replace("2\r\n1\r\n", "2\r\none\r\n", 1), "line 2: found 'one'; expected a count"),
        (lambda text: text.replace(" 277.4", "", 1), "a joint has 11 fields .*; expected 12"),
        (lambda text: text.replace(" 277.4", " 1.0", 1).replace("0.12", "0,12", 1), "cannot be read .*ValueError"),
        (lambda text: text + "ä", "cannot be read .*UnicodeDecodeError"),
    ],
)
def test_bad_files_are_named(edit: Any, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, "S001C001P001R001A001", [{MAIN: positions(0)}, {MAIN: positions(1)}])
    path.write_bytes(edit(path.read_bytes().decode("ascii")).encode("utf-8"))
    with pytest.raises(DataError, match=rf"S001C001P001R001A001.skeleton.*{message}"):
        read_skeleton(path, 25, 2)


# --- the raw release -------------------------------------------------------------------------------------------------------------


def release(folder: Path) -> None:
    """Two classes wanted, one not; a test subject; a recording without bodies; one that the authors list as incomplete."""
    for i, name in enumerate(
        ("S001C001P001R001A001", "S001C002P038R002A002", "S001C001P003R001A001", "S001C001P001R001A011", "S002C003P008R001A001")
    ):
        write(folder, name, [{MAIN: positions(10 * i + t)} for t in range(3 + i)])
    write(folder, "S001C001P002R001A002", [{}, {}])
    write(folder, "S001C001P004R001A002", [{MAIN: positions(0)}])


@pytest.mark.parametrize("place", ["ntu_rgbd/nturgb+d_skeletons", "ntu_rgbd"])
def test_raw_files_of_training_subjects_and_first_classes(place: str, tmp_path: Path) -> None:
    release(tmp_path / place)
    (tmp_path / "ntu_rgbd" / LISTED).write_text("Names of files\n\nS001C001P004R001A002\n", encoding="ascii")
    for _ in range(2):  # the second time from the cache
        data = load(tmp_path, source="raw")
        assert data.y.tolist() == [0, 1, 0]
        assert {k: v.tolist() for k, v in data.keys.items()} == {"subject": [1, 38, 8], "view": [1, 2, 3], "episode": [1, 2, 1]}
        assert data.notes == {"recordings_without_body": 1}
        assert (data.n_classes, data.n_features) == (10, 2 * 300 * 3)
        assert kept(data)["lengths"].tolist() == [3, 4, 7]
    eleven = load(tmp_path, source="raw", classes=11)
    assert (eleven.y.tolist(), eleven.n_classes) == ([0, 10, 1, 0], 11)
    first = load(tmp_path, source="raw", frames=3).items.queries(torch.tensor([0]), "cpu").x[:, 0]  # type: ignore[attr-defined]
    raw = np.stack([positions(t) for t in range(3)])
    low, high = raw.min(axis=(0, 1)), raw.max(axis=(0, 1))
    np.testing.assert_allclose(first[:, 0], ((raw - low) / (high - low) * 2 - 1).transpose(1, 0, 2), atol=1e-5)
    assert not first[:, 1].any()


def test_no_raw_file_of_interest(tmp_path: Path) -> None:
    write(tmp_path / "ntu_rgbd", "S001C001P003R001A001", [{MAIN: positions(0)}])
    with pytest.raises(DataError, match="no recording of the first 10 classes"):
        load(tmp_path, source="raw")
    write(tmp_path / "ntu_rgbd", "notes", [{MAIN: positions(0)}])
    with pytest.raises(DataError, match="notes.skeleton: expected a file name such as S001C001P001R001A001.skeleton"):
        load(tmp_path, source="raw")


def test_half_of_the_subjects_train() -> None:
    assert len(TRAINING_SUBJECTS) == 20
    assert not TRAINING_SUBJECTS & {3, 6, 7, 10, 11, 12, 20, 21, 22, 23, 24, 26, 29, 30, 32, 33, 36, 37, 39, 40}  # those who test


# --- the prepared npz ------------------------------------------------------------------------------------------------------------


def write_npz(root: Path, n: int = 200, **changes: Any) -> dict[str, Array]:
    """``n`` rows of class ``row % 60``, ``1 + row % 5`` frames each, every third with a second person; padded to 12 frames."""
    draw = np.random.default_rng(0)
    x = np.zeros((n, 12, 150), dtype=np.float32)
    for row in range(n):
        x[row, : 1 + row % 5, : 150 if row % 3 == 0 else 75] = draw.normal(size=(1 + row % 5, 150 if row % 3 == 0 else 75))
    arrays = {"x_train": x, "y_train": np.eye(60)[np.arange(n) % 60], "x_test": x[:2], "y_test": np.eye(60)[:2]} | changes
    (root / "ntu_rgbd").mkdir(parents=True, exist_ok=True)
    np.savez(root / "ntu_rgbd" / "NTU60_CS.npz", **arrays)
    return arrays


def test_the_prepared_npz(tmp_path: Path) -> None:
    arrays = write_npz(tmp_path)
    data = load(tmp_path)
    rows = [row for row in range(200) if row % 60 < 10]
    assert data.y.tolist() == [row % 60 for row in rows]
    lengths = [1 + row % 5 for row in rows]
    assert data.notes == {"sequences_of_one_frame": lengths.count(1)}
    found = kept(data)
    assert found["lengths"].tolist() == lengths
    ends = np.cumsum(lengths)
    for i in (0, 3, 7, len(rows) - 1):
        expected = arrays["x_train"][rows[i], : lengths[i]].reshape(-1, 2, 25, 3)
        there = expected.any(axis=(2, 3), keepdims=True)
        expected = np.where(there, expected - expected[0, 0, 1], 0)
        np.testing.assert_array_equal(found["coordinates"][..., ends[i] - lengths[i] : ends[i]].transpose(3, 2, 1, 0), expected)
    assert load(tmp_path).content_hash == data.content_hash
    assert load(tmp_path, classes=60).n_items == 200


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_train": np.zeros((200, 12, 144), dtype=np.float32)}, "row 0 of x_train is empty"),
        ({"x_train": np.ones((200, 12, 144), dtype=np.float32)}, "row 0 of x_train has 24 x 3 numbers .* expected 25 joints"),
        (
            {"x_train": np.ones((199, 12, 150), dtype=np.float32)},
            r"x_train has type float32 and shape \[199, 12, 150\]; expected a numeric array of shape \[200, T, 150\]",
        ),
        ({"x_train": np.ones((200, 12, 150), dtype=np.int64)}, "x_train has type int64"),
        ({"y_train": np.eye(61)[np.arange(200) % 60]}, r"y_train has shape \[200, 61\]; expected one-hot rows of 60 classes"),
        ({"y_train": np.zeros((200, 60))}, "expected one-hot rows"),
        ({"y_train": np.arange(200) % 60}, "expected one-hot rows"),
        ({"y_train": np.eye(60)[np.full(200, 59)]}, "no sequence of the first 10 classes"),
    ],
)
def test_bad_npz_is_named(changes: dict[str, Array], message: str, tmp_path: Path) -> None:
    write_npz(tmp_path, **changes)
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_a_truncated_npz_and_one_without_its_arrays(tmp_path: Path) -> None:
    write_npz(tmp_path)
    path = tmp_path / "ntu_rgbd" / "NTU60_CS.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="NTU60_CS.npz cannot be read"):
        load(tmp_path)
    np.savez(path, x_train=np.ones(3))
    with pytest.raises(DataError, match="NTU60_CS.npz cannot be read .*y_train"):
        load(tmp_path)


def test_absent_files_say_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ntu_rgbd/NTU60_CS.npz(.|\n)*academic use on request(.|\n)*dataset.source = raw"):
        load(tmp_path)
    with pytest.raises(DataError, match=r"nturgb\+d_skeletons/S001C001P001R001A001.skeleton(.|\n)*academic use on request"):
        load(tmp_path, source="raw")
