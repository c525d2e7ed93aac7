"""N-UCLA from tiny files in both true formats, and from the real data where they are."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_skeleton.datasets.nw_ucla import nw_ucla

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, SpecError
from cglsuite.graphs import GraphData

NAMES = ("a01_s01_e00_v01", "a01_s10_e02_v03", "a04_s03_e01_v02", "a12_s09_e10_v01")
LABELS = (1, 1, 4, 10)
LENGTHS = (5, 1, 3, 8)


def recordings() -> list[np.ndarray[Any, Any]]:
    draw = np.random.default_rng(0)
    return [draw.normal(size=(length, 20, 3)) for length in LENGTHS]


def root_of(tmp_path: Path, verify: bool = False) -> DataRoot:
    return DataRoot(tmp_path, tmp_path / "cache", offline=True, verify=verify)


def write_json(folder: Path, **changes: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, label, positions in zip(NAMES, LABELS, recordings(), strict=True):
        content = {"file_name": name, "skeletons": positions.tolist(), "label": label}
        (folder / f"{name}.json").write_text(json.dumps(content | (changes if name == NAMES[2] else {})), encoding="utf-8")


def write_npz(folder: Path, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        "coords": np.concatenate(recordings()).astype(np.float32),
        "length": np.array(LENGTHS, dtype=np.int32),
        "label": np.array(LABELS, dtype=np.int8) - 1,
        "subject": np.array([1, 10, 3, 9], dtype=np.int8),
        "view": np.array([1, 3, 2, 1], dtype=np.int8),
        "episode": np.array([0, 2, 1, 10], dtype=np.int8),
        "name": np.array(NAMES),
    }
    np.savez_compressed(folder / "nw_ucla_skeleton.npz", allow_pickle=False, **(arrays | changes))
    return folder / "nw_ucla_skeleton.npz"


@pytest.mark.parametrize("place", ["nw_ucla/all_sqe", "nw_ucla"])
def test_npz_and_json_files_give_equal_content(place: str, tmp_path: Path) -> None:
    write_json(tmp_path / "files" / place)
    write_npz(tmp_path / "archive" / "nw_ucla")
    data = [nw_ucla(root_of(tmp_path / kind)) for kind in ("files", "archive", "files")]  # the third comes from the cache
    assert len({d.content_hash for d in data}) == 1
    first: GraphData = data[0]
    assert (first.n_items, first.n_features, first.n_classes) == (4, 52 * 3, 10)
    assert first.y.tolist() == [0, 0, 3, 9]
    assert {k: v.tolist() for k, v in first.keys.items()} == {"subject": [1, 10, 3, 9], "view": [1, 3, 2, 1], "episode": [0, 2, 1, 10]}
    assert first.notes == {"sequences_of_one_frame": 1}


def test_json_files_are_found_in_any_of_several_data_folders(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    write_json(tmp_path / "second" / "nw_ucla" / "all_sqe")
    root = DataRoot([tmp_path / "first", tmp_path / "second"], tmp_path / "cache", offline=True, verify=False)
    assert len(nw_ucla(root).items) == len(NAMES)


def test_inputs_are_the_files_scaled_and_resampled(tmp_path: Path) -> None:
    write_json(tmp_path / "nw_ucla")
    x = nw_ucla(root_of(tmp_path), frames=4).items.queries(torch.tensor([0, 3]), "cpu").x  # type: ignore[attr-defined]
    for i, raw in ((0, recordings()[0]), (1, recordings()[3])):
        low, high = raw.min(axis=(0, 1)), raw.max(axis=(0, 1))
        expected = ((raw - low) / (high - low) * 2 - 1)[np.linspace(0, len(raw) - 1, 4).astype(int)]
        np.testing.assert_allclose(x[:, i, 0], expected.transpose(1, 0, 2), atol=1e-5)


def test_parameters_reach_the_preparation(tmp_path: Path) -> None:
    write_json(tmp_path / "nw_ucla")
    ids = torch.tensor([0, 3])
    plain = nw_ucla(root_of(tmp_path), frames=4, augmentation="none").items.training(ids, 0, "cpu")
    assert plain.epoch(0) is plain
    drawn = nw_ucla(root_of(tmp_path), frames=4, max_angle=0).items.training(ids, 0, "cpu")
    assert not torch.equal(drawn.epoch(0).features, drawn.features)
    with pytest.raises(SpecError, match="augmentation"):
        nw_ucla(root_of(tmp_path), augmentation="mirror")


def test_degenerate_sequences_are_repaired_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    coords = np.concatenate(recordings()).astype(np.float32)
    coords[6, 2, 0] = np.nan  # first frame of the third sequence: the joint was nowhere yet
    coords[12, 5, 1] = np.inf  # stays where it was in frame 11
    coords[13, 5, 2] = np.nan
    coords[0, 7] = 0
    write_npz(tmp_path / "nw_ucla", coords=coords)
    with caplog.at_level(logging.INFO):
        data = nw_ucla(root_of(tmp_path))
    assert data.notes == {
        "sequences_of_one_frame": 1,
        "sequences_with_joints_at_zero": 2,
        "joints_at_zero": 2,
        "sequences_repaired": 2,
        "joints_repaired": 3,
    }
    (line,) = [r.getMessage() for r in caplog.records if r.name.startswith("cglsuite_skeleton")]
    assert "nw-ucla: sequences of one frame: 1, sequences with joints at zero: 2" in line
    held = coords.copy()
    held[6, 2] = 0
    held[12:14, 5] = coords[11, 5]
    write_npz(tmp_path / "by-hand" / "nw_ucla", coords=held)
    assert nw_ucla(root_of(tmp_path / "by-hand")).content_hash == data.content_hash


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"skeletons": np.zeros((3, 19, 3)).tolist()}, "a04_s03_e01_v02.json has 19 x 3 numbers .* expected 20 joints"),
        ({"skeletons": np.zeros((3, 20, 2)).tolist()}, "a04_s03_e01_v02.json has 20 x 2 numbers"),
        ({"skeletons": []}, "a04_s03_e01_v02.json is empty"),
        ({"skeletons": [[[0, 0, 0]], [[0, 0]]]}, "a04_s03_e01_v02.json cannot be read"),
        ({"skeletons": "none"}, "a04_s03_e01_v02.json cannot be read"),
        ({"label": 11}, "a04_s03_e01_v02.json has label 11; expected 1..10"),
        ({"label": 0}, "has label 0; expected 1..10"),
        ({"label": None}, "a04_s03_e01_v02.json cannot be read"),
    ],
)
def test_bad_json_files_are_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_json(tmp_path / "nw_ucla", **changes)
    with pytest.raises(DataError, match=message):
        nw_ucla(root_of(tmp_path))


def test_unreadable_and_misnamed_json_files(tmp_path: Path) -> None:
    write_json(tmp_path / "nw_ucla")
    file = tmp_path / "nw_ucla" / f"{NAMES[1]}.json"
    file.write_text(file.read_text(encoding="utf-8")[:100], encoding="utf-8")
    with pytest.raises(DataError, match=f"{NAMES[1]}.json cannot be read .*JSONDecodeError"):
        nw_ucla(root_of(tmp_path))
    file.rename(file.with_name("readme.json"))
    with pytest.raises(DataError, match="readme.json: expected a file name such as"):
        nw_ucla(root_of(tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coords": np.zeros((17, 25, 3), dtype=np.float32)}, "sequence 0 has 25 x 3 numbers .* expected 20 joints"),
        ({"coords": np.zeros((16, 20, 3), dtype=np.float32)}, "length sums to 17"),
        ({"length": np.array([5, 0, 4, 8], dtype=np.int32)}, "sequence 1 is empty"),
        ({"label": np.array([0, 0, 3, 10], dtype=np.int8)}, "sequence 3 has label 10; expected 0..9"),
        ({"label": np.array([0, 0, 3], dtype=np.int8)}, "one entry for each of 4 sequences"),
    ],
)
def test_bad_npz_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_npz(tmp_path / "nw_ucla", **changes)
    with pytest.raises(DataError, match=message):
        nw_ucla(root_of(tmp_path))


def test_an_npz_runs_nothing_that_it_names(tmp_path: Path) -> None:
    """An array of objects is a pickle: it is not opened."""
    ran = tmp_path / "ran"

    class Runs:
        def __reduce__(self) -> Any:
            return Path.touch, (ran,)

    folder = tmp_path / "nw_ucla"
    with np.load(write_npz(folder), allow_pickle=False) as archive:
        arrays = dict(archive)
    np.savez(folder / "nw_ucla_skeleton.npz", **(arrays | {"label": np.array([Runs()] * 4, dtype=object)}))
    with pytest.raises(DataError, match="nw_ucla_skeleton.npz cannot be read"):
        nw_ucla(root_of(tmp_path))
    assert not ran.exists()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_npz_is_named(share: float, tmp_path: Path) -> None:
    path = write_npz(tmp_path / "nw_ucla")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(DataError, match="nw_ucla_skeleton.npz cannot be read"):
        nw_ucla(root_of(tmp_path))


def test_absent_files_say_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nw_ucla/nw_ucla_skeleton.npz(.|\n)*JSON files of the skeleton release"):
        nw_ucla(root_of(tmp_path))
    with pytest.raises(DataError, match="set CGLSUITE_DATA"):
        nw_ucla(DataRoot(None, tmp_path, offline=True))


def test_a_part_of_the_release_is_not_the_dataset(tmp_path: Path) -> None:
    write_json(tmp_path / "nw_ucla")
    with pytest.raises(DataError, match="found 4 sequences, 17 frames.* expected 1,484 sequences, 58,534 frames"):
        nw_ucla(root_of(tmp_path, verify=True))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> GraphData:
    return nw_ucla(DataRoot(DataRoot.from_environment().root, tmp_path_factory.mktemp("cache"), offline=True))


@pytest.mark.realdata
def test_real_counts(real: GraphData) -> None:
    assert (real.n_items, real.n_features, real.n_classes) == (1_484, 156, 10)
    assert real.y.bincount().tolist() == [150, 152, 141, 173, 148, 149, 142, 142, 145, 142]
    assert real.keys["view"].bincount().tolist()[1:] == [516, 504, 464]
    assert (int(real.keys["subject"].min()), int(real.keys["subject"].max())) == (1, 10)
    assert real.notes == {"sequences_of_one_frame": 2, "sequences_with_joints_at_zero": 2, "joints_at_zero": 12}
    lengths = real.items.training(torch.arange(1_484), 0, "cpu").payload()["lengths"]
    assert (int(lengths.sum()), int(lengths.min()), int(lengths.max())) == (58_534, 1, 201)
    assert (lengths == 6).sum() == 2


@pytest.mark.realdata
def test_real_inputs_are_finite_and_fill_the_box(real: GraphData) -> None:
    training = real.items.training(torch.arange(1_484), 0, "cpu")
    for graphs in (training, training.epoch(0), training.epoch(99)):
        x = graphs.features.view(20, 1_484, 52, 3)
        assert torch.isfinite(x).all()
        assert (float(x.min()), float(x.max())) == (-1, 1)


@pytest.mark.nightly
@pytest.mark.realdata
def test_json_files_of_the_real_sequences_give_the_same_content(real: GraphData, tmp_path: Path) -> None:
    """Written with the digits of float32, as the release has more: equal after rounding."""
    path = DataRoot.from_environment().find("nw_ucla/nw_ucla_skeleton.npz")
    assert path is not None
    with np.load(path, allow_pickle=False) as archive:
        parts = np.split(archive["coords"].astype(np.float64), np.cumsum(archive["length"])[:-1])
        names, labels = archive["name"].tolist(), archive["label"].tolist()
    folder = tmp_path / "nw_ucla" / "all_sqe"
    folder.mkdir(parents=True)
    for name, label, part in zip(names, labels, parts, strict=True):
        content = {"file_name": name, "skeletons": part.tolist(), "label": label + 1}
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    assert nw_ucla(root_of(tmp_path, verify=True)).content_hash == real.content_hash
