"""The splits of a stream as arrays, npz bytes and files that are checked when they are read back."""

from __future__ import annotations

import hashlib
import io
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_streams import tiny_stream

from cglsuite.base.errors import DataError, UnknownNameError
from cglsuite.streams.exported import FORMAT, PARTS, describe_arrays, npz_bytes, read_export, stream_arrays

ARRAYS = {"train_0": np.array([3, 1, 2], dtype="<i8"), "task_outputs": np.array([[True, False], [False, True]])}


def written(folder: Path, **changes: Any) -> Path:
    """An export of :data:`ARRAYS` as files; ``changes`` go over what the description says."""
    content = npz_bytes(ARRAYS)
    metadata = {"format": FORMAT, "arrays": describe_arrays(ARRAYS), "file": {"sha256": hashlib.sha256(content).hexdigest()}}
    (folder / "x.1.npz").write_bytes(content)
    (folder / "x.1.json").write_text(json.dumps(metadata | changes))
    return folder / "x.1.npz"


def test_the_arrays_of_a_stream() -> None:
    stream = tiny_stream()
    arrays = stream_arrays(stream)
    n = len(stream)
    assert set(arrays) == {"task_outputs"} | {f"{name}_{k}" for k in range(n) for name in ("classes", *PARTS)}
    assert arrays["task_outputs"].dtype == np.bool_
    assert torch.equal(torch.from_numpy(arrays["task_outputs"]), stream.task_outputs)
    for k, facts in enumerate(stream.tasks):
        assert arrays[f"classes_{k}"].tolist() == list(facts.classes)
        sizes = (facts.n_train, facts.n_validation, facts.n_test)
        for part, size in zip(PARTS, sizes, strict=True):
            ids = arrays[f"{part}_{k}"]
            assert ids.dtype.str == "<i8"
            assert ids.shape == (size,)
            assert ids.tolist() == stream.members(k, part).tolist()
    everything = np.concatenate([arrays[f"{part}_{k}"] for k in range(n) for part in PARTS])
    assert len(set(everything.tolist())) == everything.size  # single labels: no item is in two parts or two tasks


def test_equal_arrays_give_equal_bytes_at_any_time_and_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first = npz_bytes(ARRAYS)
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    monkeypatch.setattr(zipfile.sys, "platform", "win32")
    assert npz_bytes(dict(reversed(ARRAYS.items()))) == first
    assert npz_bytes(ARRAYS | {"train_0": np.array([3, 1, 4], dtype="<i8")}) != first


def test_numpy_reads_it_without_pickles() -> None:
    with np.load(io.BytesIO(npz_bytes(ARRAYS)), allow_pickle=False) as archive:
        assert {name: archive[name].tolist() for name in archive.files} == {name: a.tolist() for name, a in ARRAYS.items()}
    with pytest.raises(ValueError, match="allow_pickle"):
        npz_bytes({"x": np.array([{}, None], dtype=object)})


def test_a_hash_is_that_of_the_values() -> None:
    described = describe_arrays(ARRAYS)["train_0"]
    assert described == {"dtype": "<i8", "shape": [3], "sha256": hashlib.sha256(np.array([3, 1, 2], dtype="<i8").tobytes()).hexdigest()}


@pytest.mark.parametrize("ending", [".npz", ".json", ""])
def test_reading_back(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path)
    found = read_export(path.with_name(f"x.1{ending}"))
    assert len(found) == 2
    assert found.members(0, "train").tolist() == [3, 1, 2]
    assert found.task_outputs.tolist() == [[True, False], [False, True]]
    assert found.metadata["format"] == FORMAT
    with pytest.raises(UnknownNameError, match="Did you mean 'train'"):
        found.members(0, "training")
    with pytest.raises(UnknownNameError, match="Known: 0, 1"):
        found.classes(2)


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b"\x03\x00\x00\x00\x00\x00\x00\x00\x01")] = 4
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (damage, "changed or damaged"),
        (lambda path: path.unlink(), "No such file"),
        (lambda path: path.with_suffix(".json").unlink(), "No such file"),
        (lambda path: path.with_suffix(".json").write_text("{"), "is not an export"),
        (lambda path: path.with_suffix(".json").write_text("[]"), "is not an export"),
        (lambda path: written(path.parent, format=99), "format 99, but this version reads format 1"),
        (lambda path: written(path.parent, file={}), "is not an export"),
        (lambda path: written(path.parent, arrays={}), "task_outputs, train_0 do not match the description"),
        (
            lambda path: written(path.parent, arrays=describe_arrays(ARRAYS | {"test_0": ARRAYS["train_0"]})),
            "test_0 do not match the description",
        ),
        (
            lambda path: written(path.parent, arrays=describe_arrays(ARRAYS | {"train_0": np.array([3, 1])})),
            "train_0 do not match the description",
        ),
    ],
)
def test_whatever_is_not_as_it_was_written_is_an_error(tmp_path: Path, change: Callable[[Path], Any], message: str) -> None:
    path = written(tmp_path)
    change(path)
    with pytest.raises(DataError, match=message):
        read_export(path)


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_an_export_that_describes_its_own_pickle_runs_no_code(tmp_path: Path) -> None:
    """Whoever can write the file can write its hash."""
    path, mark = written(tmp_path), tmp_path / "ran"
    buffer = io.BytesIO()
    np.savez(buffer, evil=np.array([Evil(mark)], dtype=object))
    path.write_bytes(buffer.getvalue())
    described = json.loads(path.with_suffix(".json").read_text()) | {"file": {"sha256": hashlib.sha256(buffer.getvalue()).hexdigest()}}
    path.with_suffix(".json").write_text(json.dumps(described))
    with pytest.raises((ValueError, DataError)):
        read_export(path)
    assert not mark.exists()
