"""Embeddings of texts, encoded once and cached in parts, so that an interrupted encoding resumes with the same bits.

A part holds up to :data:`ROWS` consecutive texts and is an entry of the cache of derived arrays (:meth:`DataRoot.derived`): written
atomically, checked when read, and encoded by one process at a time. Its key is a hash of its texts and of the encoder's identity. An
encoder gets all texts of a part at once, so batches do not depend on where an earlier encoding stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.base.hashing import digest

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

ROWS = 1024
"""The number of texts in a part. A different number gives different keys."""


@dataclass(frozen=True)
class Embeddings:
    """Embeddings of texts, with their digest.

    Attributes:
        x: float16 [N, d], one row per text; a sparse matrix has the same values as float32.
        sha256: hash (hex) of shape and values, for records.
        encoded: the number of texts that were encoded now, because the cache did not have them.
    """

    x: Any
    sha256: str
    encoded: int


def embed(
    root: DataRoot,
    texts: Sequence[str],
    encoder: Mapping[str, Any],
    make_encode: Callable[[], Callable[[list[str]], Any]],
    *,
    fitted: bool = False,
) -> Embeddings:
    """Return the embeddings of ``texts``, from the cache as far as it has them.

    Args:
        root: its cache stores the parts (16-bit numbers, 2 N d bytes).
        texts: N texts, N > 0.
        encoder: everything that determines the vectors (name, revision, maximum number of tokens), as JSON types.
        make_encode: loads the encoder, if texts are to be encoded. It returns a function that encodes the m texts of a part as finite
            numbers, float [m, d], dense or scipy.sparse, and does not depend on earlier calls.
        fitted: pass all texts at once, and use no cache; the result may be sparse only then.

    Raises:
        DataError: there are no texts, the vectors have a wrong shape or change their length, or values are not finite as float16.
    """
    import numpy as np
    from tqdm import tqdm

    if not texts:
        raise DataError(f"encoder {encoder}: no texts to encode")
    encode = cache(make_encode)
    encoded = 0

    def build(part: list[str]) -> Any:
        nonlocal encoded
        rows = encoded_rows(encode()(part), len(part), encoder, sparse=fitted)
        encoded += len(part)
        return rows

    def built(part: list[str]) -> dict[str, Array]:
        return {"x": build(part)}

    x: Any
    if fitted:
        x = build(list(texts))
    else:
        parts: list[Array] = []
        for start in tqdm(range(0, len(texts), ROWS), desc=f"encoding {len(texts):,} texts", unit="part", disable=None):
            part = list(texts[start : start + ROWS])
            key = {"encoder": dict(encoder), "texts": digest(part)}
            parts.append(root.derived("embeddings", key, partial(built, part))["x"])
            if parts[-1].shape[1] != parts[0].shape[1]:
                raise DataError(f"encoder {encoder}: vectors have {parts[-1].shape[1]} dimensions, but earlier ones {parts[0].shape[1]}")
        x = np.concatenate(parts)
    content = hashlib.sha256(f"{list(x.shape)}".encode())
    for array in (x.indptr.astype(np.int64), x.indices.astype(np.int64), x.data) if hasattr(x, "tocsr") else (x,):
        content.update(array.tobytes())
    return Embeddings(x, content.hexdigest(), encoded)


def encoded_rows(rows: Any, n: int, encoder: Mapping[str, Any], *, sparse: bool) -> Any:
    """Return an encoder's vectors of ``n`` texts as float16 [n, d]; if they may be ``sparse``, a sparse matrix has these values as float32.

    Raises:
        DataError: the vectors have a wrong shape, or values are not finite as float16.
    """
    import numpy as np

    sparse = sparse and hasattr(rows, "tocsr")
    rows = rows.tocsr() if sparse else np.asarray(rows)
    if rows.ndim != 2 or rows.shape[0] != n:
        raise DataError(f"encoder {encoder}: vectors have shape {list(rows.shape)}; expected [{n}, d]")
    with np.errstate(over="ignore"):
        values = (rows.data if sparse else rows).astype(np.float16)
    if not np.isfinite(values).all():
        raise DataError(f"encoder {encoder}: {int((~np.isfinite(values)).sum())} values are NaN, infinite or too large for float16")
    if not sparse:
        return values
    rows.data = values.astype(np.float32)  # scipy.sparse has no float16
    return rows
