"""Tiny files of every dataset, and a stand-in for spaCy."""

from __future__ import annotations

import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cglsuite_graph.datasets import sentiment
from graph_files import Files

from cglsuite.base.datafiles import DataRoot


class Chain:
    """Stands for a spaCy pipeline: a token per word, the head of a token the one before it, vectors of the words' lengths."""

    def pipe(self, texts: Sequence[str]) -> Any:
        for text in texts:
            tokens = [types.SimpleNamespace(i=i, vector=np.full(4, len(word), np.float32)) for i, word in enumerate(text.split())]
            for token in tokens:
                token.head = tokens[max(token.i - 1, 0)]
            yield tokens


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Tiny files of this test's own."""
    return Files(tmp_path)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """Tiny files of every dataset."""
    made = Files(tmp_path_factory.mktemp("tiny"))
    made.everything()
    return made.root


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Chain:
    """A pipeline in place of spaCy's, which neither has to be installed nor its model."""
    pipeline = Chain()
    monkeypatch.setattr(sentiment, "_versions", lambda model: {"stand-in": "1"})
    monkeypatch.setattr(sentiment, "_pipeline", lambda model: pipeline)
    return pipeline


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """The real files, derived once for the whole run."""
    pytest.importorskip("rdkit", reason="molecules need RDKit: the extra cglsuite-graph[molecules]")
    return DataRoot(DataRoot.from_environment().root, tmp_path_factory.mktemp("cache"), offline=True)
