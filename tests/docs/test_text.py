"""The page on texts agrees with the records of its campaigns: the tables, and every sentence with a number."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from doc_tool import tool

pytestmark = [pytest.mark.nightly, pytest.mark.plugins]
text: Any = tool("text")
RIDGE, MEANS = "analytic-ridge", "simple-cil"


@cache
def prose() -> str:
    return " ".join(text.PAGE.read_text(encoding="utf-8").split())


def mean(encoder: str, edges: bool, method: str, texts: str = "given") -> float:
    return float(text.ap(encoder, edges, method, texts).mean())


def ahead(one: tuple[str, bool, str], other: tuple[str, bool, str], metric: str = "average_performance") -> np.ndarray:
    """Paired differences between two cells."""
    found: np.ndarray = text.differences(*(text.records()[*cell, "given"] for cell in (one, other)), metric)
    return found


def af(encoder: str, method: str) -> float:
    return float(text.values(text.records()[encoder, True, method, "given"], "forgetting_from_diagonal").mean())


def test_tables_are_those_of_the_records() -> None:
    page = text.PAGE.read_text(encoding="utf-8")
    assert text.with_tables(page) == page, "run: python docs/tools/text.py"
    assert all(f"<!-- records of {name} -->" in page for name in text.tables())


def test_the_finding() -> None:
    tuned = text.ap("minilm", True, "bare")
    assert len(tuned) >= text.LEAST
    others = f"{mean('minilm', True, MEANS):.1f} for class means and {mean('minilm', True, RIDGE):.1f} for the ridge"
    assert f"With the same MiniLM vectors, AP is {tuned.mean():.1f} for fine-tuning, {others}" in prose()
    assert f"without any text, the ridge reaches {mean('random', True, RIDGE):.1f} by the graph alone" in prose()
    rest = [ahead((encoder, True, MEANS), (encoder, True, "bare")).mean() for encoder in ("minilm", "tf-idf")]
    assert f"Class means gain {rest[0]:.1f} points over fine-tuning with MiniLM, and {rest[1]:.1f} with TF-IDF" in prose()
    gain = [ahead(("minilm", edges, MEANS), ("tf-idf", edges, MEANS)).mean() for edges in (True, False)]
    assert f"MiniLM is {gain[0]:.1f} points better than TF-IDF for class means with edges and {gain[1]:.1f} without" in prose()


def test_the_encoder_does_not_reduce_forgetting() -> None:
    of_means = [af(encoder, MEANS) for encoder in ("random", "tf-idf", "wordllama", "minilm")]
    shown = "{:.1f} without text, {:.1f} with TF-IDF, {:.1f} with WordLlama and {:.1f} with MiniLM".format(*of_means)
    assert f"AF of class means is {shown}" in prose()
    tuned = [text.ap(encoder, True, "bare") for encoder in ("minilm", "tf-idf")]
    assert len(tuned[0]) == len(tuned[1])
    forgotten = f"AF of fine-tuning on MiniLM is {af('minilm', 'bare'):.1f}, and on TF-IDF {af('tf-idf', 'bare'):.1f} (three orders)"
    assert f"{forgotten}, so its AP is {tuned[0].mean():.1f} and {tuned[1].mean():.1f}" in prose()
    assert (len(tuned[0]) == 3) == ("(three orders)" in prose())
    assert ahead(("minilm", True, "bare"), ("tf-idf", True, "bare"), "forgetting_from_diagonal").mean() > 0


def test_the_graph() -> None:
    random = mean("random", True, RIDGE), mean("random", False, RIDGE)
    assert f"the ridge has an AP of {random[0]:.1f} with edges and {random[1]:.1f} without" in prose()
    gains = [ahead((encoder, True, RIDGE), (encoder, False, RIDGE)).mean() for encoder in ("wordllama", "minilm")]
    assert f"Edges add {gains[0]:.1f} points to the ridge on WordLlama and {gains[1]:.1f} on MiniLM" in prose()


def test_terms_are_enough_for_the_ridge() -> None:
    found = ahead(("minilm", True, RIDGE), ("tf-idf", True, RIDGE))
    assert len(found) == 3
    assert f"the AP of the ridge changes by {found.mean():+.1f} points if MiniLM replaces TF-IDF (three orders)" in prose()


def test_texts_of_other_packages() -> None:
    here = [mean("wordllama", True, RIDGE, texts) for texts in ("given", "shuffled-in-class", "shuffled")]
    assert f"the ridge on WordLlama has an AP of {here[0]:.1f} with the packages' own descriptions, {here[1]:.1f} with" in prose()
    assert f"and {here[2]:.1f} with those of any package of the same part" in prose()
