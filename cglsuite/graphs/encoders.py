"""The core's encoders of texts, which need no language model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot

TERMS, COLUMNS, RANDOM_COLUMNS = 5_000, 2**12, 384
Encode = Callable[[list[str]], Any]


def tf_idf(root: DataRoot) -> Encode:
    """Compute TF-IDF features of the 5,000 most frequent terms (see :func:`tfidf`)."""
    return lambda texts: tfidf(texts, TERMS)


def tfidf(texts: list[str], terms: int) -> Any:
    """Compute TF-IDF features with unit rows (smoothed idf, lower-case words of two or more characters).

    The terms are those with the most occurrences in all texts. Of terms with the same number, the first in the alphabet are used, so the
    result does not depend on the processor's order of equal numbers, as it does with ``TfidfVectorizer(max_features=...)``.

    Args:
        texts: N texts.
        terms: the maximum number F of terms.

    Returns:
        scipy.sparse CSR, float64 [N, F], with columns in alphabetical order.

    Raises:
        ValueError: no text has a word.
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    counts = CountVectorizer(dtype=np.int64).fit_transform(texts)  # columns in alphabetical order
    often = np.argsort(-np.asarray(counts.sum(axis=0)).ravel(), kind="stable")[:terms]
    return TfidfTransformer().fit_transform(counts[:, np.sort(often)])


def hashing(root: DataRoot) -> Encode:
    """Hash the words of each text to 4,096 columns with signs (Weinberger et al. 2009): unit rows, independent of all other texts."""
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=COLUMNS).transform  # type: ignore[no-any-return]


def random(root: DataRoot) -> Encode:
    """Draw 384 standard normal numbers per item, whatever its text, always with the same seed."""
    return lambda texts: np.random.Generator(np.random.PCG64(0)).standard_normal((len(texts), RANDOM_COLUMNS))
