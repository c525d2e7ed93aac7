"""Texts are encoded once, whatever interrupts it, and always to the same bits."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from cglsuite.base import embeddings
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.embeddings import embed
from cglsuite.base.errors import DataError

Array = np.ndarray[Any, Any]
TEXTS = [f"text {i}" for i in range(22)]
ENCODER = {"name": "hash", "revision": "1", "tokens": 64}

# Encodes parts of five texts; in its third part it makes the sign and never returns.
ENDLESS = """
import sys, time
from pathlib import Path
from cglsuite.base import embeddings
from cglsuite.base.datafiles import DataRoot
sys.path.insert(0, {tests!r})
from test_embeddings import ENCODER, TEXTS, hashed

calls = 0

def encode(texts):
    global calls
    calls += 1
    if calls == 3:
        Path({sign!r}).touch()
        time.sleep(600)
    return hashed(texts)

embeddings.ROWS = 5
embeddings.embed(DataRoot(cache=Path({cache!r})), TEXTS, ENCODER, lambda: encode)
"""


def hashed(texts: list[str]) -> Array:
    """Three numbers per text that also depend on the other texts of the call, as an encoder's padding may."""
    return np.array([[b / 7 for b in hashlib.sha256(f"{text} of {len(texts)}".encode()).digest()[:3]] for text in texts])


@pytest.fixture(autouse=True)
def _parts_of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "ROWS", 5)


def test_encoded_once(tmp_path: Path) -> None:
    root = DataRoot(cache=tmp_path)
    first, again = (embed(root, TEXTS, ENCODER, lambda: hashed) for _ in range(2))
    assert (first.encoded, again.encoded) == (22, 0)
    assert (first.x.dtype, first.x.shape) == (np.float16, (22, 3))
    expected = np.concatenate([hashed(TEXTS[k : k + 5]) for k in range(0, 22, 5)]).astype(np.float16)
    np.testing.assert_array_equal(first.x, expected)
    np.testing.assert_array_equal(again.x, expected)
    assert first.sha256 == again.sha256
    assert embed(root, TEXTS[::-1], ENCODER, lambda: hashed).sha256 != first.sha256


def test_only_changed_parts_are_encoded_again(tmp_path: Path) -> None:
    root = DataRoot(cache=tmp_path)
    embed(root, TEXTS, ENCODER, lambda: hashed)
    assert embed(root, [*TEXTS[:7], "new", *TEXTS[8:]], ENCODER, lambda: hashed).encoded == 5
    assert embed(root, [*TEXTS, "more"], ENCODER, lambda: hashed).encoded == 3  # the last, shorter part


@pytest.mark.parametrize("change", [{"name": "other"}, {"revision": "2"}, {"tokens": 128}])
def test_every_part_of_the_encoders_identity_counts(tmp_path: Path, change: dict[str, Any]) -> None:
    root = DataRoot(cache=tmp_path)
    embed(root, TEXTS, ENCODER, lambda: hashed)
    assert embed(root, TEXTS, ENCODER | change, lambda: hashed).encoded == 22


def test_a_killed_encoding_resumes_with_the_same_bits(tmp_path: Path) -> None:
    sign, cache = tmp_path / "sign", tmp_path / "killed"
    code = ENDLESS.format(tests=str(Path(__file__).parent), sign=str(sign), cache=str(cache))
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        end = time.monotonic() + 60
        while not sign.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    assert sign.exists()
    assert process.returncode == -signal.SIGKILL
    resumed = embed(DataRoot(cache=cache), TEXTS, ENCODER, lambda: hashed)
    assert resumed.encoded == 12  # two parts of five were complete
    assert resumed.sha256 == embed(DataRoot(cache=tmp_path / "whole"), TEXTS, ENCODER, lambda: hashed).sha256


def test_a_damaged_part_is_encoded_again(tmp_path: Path) -> None:
    root = DataRoot(cache=tmp_path)
    first = embed(root, TEXTS, ENCODER, lambda: hashed)
    files = {path: path.read_bytes() for path in (tmp_path / "derived/embeddings").glob("*.npz")}
    (path,) = (path for path, content in files.items() if first.x[:5].tobytes() in content)
    content = bytearray(files[path])
    content[content.index(first.x[:5].tobytes())] ^= 1
    path.write_bytes(content)
    again = embed(root, TEXTS, ENCODER, lambda: hashed)
    assert again.encoded == 5
    assert again.sha256 == first.sha256


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda texts: np.zeros((len(texts) + 1, 3)), r"vectors have shape \[6, 3\]; expected \[5, d\]"),
        (lambda texts: np.zeros(len(texts)), r"vectors have shape \[5\]; expected \[5, d\]"),
        (lambda texts: np.full((len(texts), 2), 1e6), "10 values are NaN, infinite or too large for float16"),
        (lambda texts: np.zeros((len(texts), len(texts[0]))), "vectors have 7 dimensions, but earlier ones 6"),
    ],
)
def test_bad_vectors(tmp_path: Path, encode: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"encoder .*hash.*{message}"):
        embed(DataRoot(cache=tmp_path), TEXTS, ENCODER, lambda: encode)


def test_no_texts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no texts to encode"):
        embed(DataRoot(cache=tmp_path), [], ENCODER, lambda: hashed)


def test_an_encoder_is_loaded_only_to_encode(tmp_path: Path) -> None:
    root, loads = DataRoot(cache=tmp_path), []

    def load() -> Any:
        loads.append(1)
        return hashed

    for _ in range(2):
        embed(root, TEXTS, ENCODER, load)
    assert len(loads) == 1


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_a_fitted_encoder_gets_all_texts_and_uses_no_cache(tmp_path: Path, form: Any) -> None:
    root = DataRoot(cache=tmp_path)
    first, again = (embed(root, TEXTS, ENCODER, lambda: lambda texts: form(hashed(texts)), fitted=True) for _ in range(2))
    x = first.x.toarray() if form is not np.asarray else first.x
    np.testing.assert_array_equal(x, hashed(TEXTS).astype(np.float16))
    assert (first.encoded, again.encoded) == (22, 22)
    assert first.sha256 == again.sha256
    assert not list(tmp_path.rglob("*.npz"))


def test_sparse_vectors_of_parts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"vectors have shape \[\]"):
        embed(DataRoot(cache=tmp_path), TEXTS, ENCODER, lambda: lambda texts: scipy.sparse.csr_matrix(hashed(texts)))
