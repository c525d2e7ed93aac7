"""Sentiment140: posts as dependency trees, parsed by spaCy.

Stated in the paper (Ko et al. 2025): 250 positive and 250 negative posts per day from 26 May to 7 July 2009, trees and 300-dimensional
vectors of tokens by spaCy's model en_core_web_lg, 5,500 graphs in 11 tasks by day. Not stated, and chosen here:

- the 11 days are the first in that range with enough posts of each polarity, by the timestamps in the file;
- the posts of a day and polarity are drawn by a generator seeded with (day, polarity);
- edges join a token and its head in both directions, without labels; several sentences of a post are several trees of one graph.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite_graph.datasets.assemble import Array, both_ways, graph_data, reading

_FILE = "Sentiment140/raw/training.1600000.processed.noemoticon.csv"
_FROM, _TO = pd.Timestamp("2009-05-26"), pd.Timestamp("2009-07-07")
_POLARITIES = (0, 4)  # negative and positive in the file
_READER = 1  # part of the cache key: increment it when the reader's output changes


def sentiment140(root: DataRoot, model: str = "en_core_web_lg", days: int = 11, posts: int = 250) -> GraphData:
    """Load posts as dependency trees (see the spec and the choices above).

    Args:
        model: the spaCy model, an installed package.
        days: number of days. posts: number of posts of each polarity per day.

    Raises:
        DataError: spaCy or its model is not installed; the file is missing, damaged, or has too few posts.
    """
    name = "sentiment140"
    versions = _versions(model)
    path = root.file(_FILE, note="It is in trainingandtestdata.zip of http://help.sentiment140.com (latin-1, no header, six columns)")
    key = {"reader": _READER, "sha256": root.sha256(path), "versions": versions, "days": days, "posts": posts}

    def build() -> dict[str, Array]:
        chosen = chosen_posts(path, days, posts)
        arrays = trees(_pipeline(model), chosen["text"].tolist())
        kept = arrays.pop("kept")
        return arrays | {name: chosen[name].to_numpy(dtype=np.int64)[kept] for name in ("y", "day", "row")}

    arrays = root.derived(name, key, build)
    return graph_data(
        name,
        x=arrays["x"],
        edge_index=both_ways(arrays["pairs"]),
        sizes=arrays["sizes"],
        y=arrays["y"],
        n_classes=2,
        keys={"row": arrays["row"], "day": arrays["day"]},
        notes={"posts_without_tokens": 2 * days * posts - len(arrays["y"])},
    )


def chosen_posts(path: Path, days: int, posts: int) -> pd.DataFrame:
    """Sample posts and sort them by day, polarity and row, with the columns ``text``, ``y`` (1 = positive), ``day`` (20090526) and ``row``
    of the file.

    Raises:
        DataError: the file is damaged, or too few days have enough posts of each polarity.
    """
    with reading(path):
        frame = pd.read_csv(path, header=None, names=["polarity", "id", "date", "query", "user", "text"], encoding="latin-1")
        if frame["text"].isna().any():
            raise ValueError(f"row {int(frame['text'].isna().to_numpy().argmax())} is incomplete")
        clock = pd.to_datetime(frame["date"].str.replace(r" [A-Z]{3} ", " ", regex=True), format="%a %b %d %H:%M:%S %Y")
    day = clock.dt.normalize()
    inside = day.between(_FROM, _TO) & frame["polarity"].isin(_POLARITIES)
    counts = pd.crosstab(day[inside], frame["polarity"][inside]).reindex(columns=list(_POLARITIES), fill_value=0)
    enough = counts.index[(counts >= posts).all(axis=1)].sort_values()
    if len(enough) < days:
        raise DataError(
            f"{path}: only {len(enough)} days from {_FROM:%Y-%m-%d} to {_TO:%Y-%m-%d} have {posts} posts of each polarity; expected {days}"
        )
    drawn = []
    for date in enough[:days]:
        for polarity in _POLARITIES:
            rows = np.flatnonzero((day == date).to_numpy() & (frame["polarity"] == polarity).to_numpy())
            draws = np.random.Generator(np.random.PCG64(np.random.SeedSequence([int(f"{date:%Y%m%d}"), polarity])))
            drawn.append(np.sort(rows[np.argsort(draws.random(len(rows)), kind="stable")[:posts]]))
    row = np.concatenate(drawn)
    chosen = frame.iloc[row]
    return pd.DataFrame(
        {
            "text": chosen["text"].to_numpy(),
            "y": (chosen["polarity"] == _POLARITIES[1]).to_numpy().astype(np.int64),
            "day": day.iloc[row].dt.strftime("%Y%m%d").to_numpy().astype(np.int64),
            "row": row,
        }
    )


def trees(pipeline: Any, texts: Sequence[str]) -> dict[str, Array]:
    """Parse ``texts`` into dependency trees; texts without tokens are left out.

    Args:
        pipeline: a spaCy pipeline with a parser and vectors.

    Returns:
        ``kept`` int64 [n], positions of the texts that have tokens; ``sizes`` int32 [n]; ``pairs`` int32 [2, B], token and head, tokens
        numbered over all texts; ``x`` float32 [N, D], the tokens' vectors.
    """
    kept, sizes, tokens, heads = [], [], [], []
    vectors: list[Array] = []
    begin = 0
    for position, document in enumerate(pipeline.pipe(texts)):
        if not len(document):
            continue
        kept.append(position)
        sizes.append(len(document))
        joined = [token for token in document if token.head.i != token.i]
        tokens += [begin + token.i for token in joined]
        heads += [begin + token.head.i for token in joined]
        vectors.append(np.stack([token.vector for token in document]))
        begin += len(document)
    return {
        "kept": np.array(kept, dtype=np.int64),
        "sizes": np.array(sizes, dtype=np.int32),
        "pairs": np.array([tokens, heads], dtype=np.int32),
        "x": np.concatenate(vectors).astype(np.float32),
    }


def _versions(model: str) -> dict[str, str]:
    """The versions of spaCy and of the model, without loading either."""
    versions = {}
    for package, needs in (("spacy", "python -m pip install 'cglsuite-graph[text]'"), (model, f"python -m spacy download {model}")):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError as error:
            raise DataError(
                f"sentiment140: parsing posts requires spaCy and its model {model}, but {package} is not installed. Run: {needs}"
            ) from error
    return versions


def _pipeline(model: str) -> Any:
    import spacy

    return spacy.load(model, exclude=["ner", "lemmatizer"])
