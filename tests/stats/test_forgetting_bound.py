"""The bound of forgetting by average accuracy holds for every matrix of accuracies, and is reached."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite import stats
from cglsuite.base.errors import UsageError
from cglsuite.specs import METRICS
from cglsuite.stats import metrics


def forgotten(name: str, matrix: np.ndarray) -> float:
    """What a metric says was lost, whatever its sign."""
    return METRICS[name].loss(getattr(metrics, name)(matrix))


@st.composite
def matrices(draw: st.DrawFn) -> np.ndarray:
    n = draw(st.integers(2, 7))
    entries = draw(st.lists(st.floats(0, 1), min_size=n * (n + 1), max_size=n * (n + 1)))
    return np.array(entries).reshape(n + 1, n)


@given(matrices())
@settings(max_examples=200, deadline=None)
def test_bound_on_any_matrix(matrix: np.ndarray) -> None:
    """Both definitions of forgetting obey it."""
    k = matrix.shape[1]
    bound = float(stats.af_bound(metrics.average_performance(matrix), k))
    assert forgotten("forgetting_from_diagonal", matrix) <= forgotten("forgetting_max", matrix) + 1e-12 <= bound + 1e-9


@pytest.mark.parametrize("k", [2, 5, 20])
def test_bound_is_reached(k: int) -> None:
    """Everything learnt perfectly and forgotten but for the last task: AA = 1/k, AF = 1."""
    matrix = np.vstack([np.zeros(k), np.eye(k)])
    assert forgotten("forgetting_max", matrix) == pytest.approx(1.0)
    assert float(stats.af_bound(metrics.average_performance(matrix), k)) == pytest.approx(1.0)


def test_check_of_records() -> None:
    """A violation is found; what cannot be checked says why, and nothing is dropped."""
    frame = pd.DataFrame({"aa": [0.5, 0.9, 0.9, np.nan], "af": [0.2, 0.5, np.nan, 0.1], "n_tasks": [5, 5, 1, 5]}, index=list("wxyz"))
    found = stats.check_bound(frame)
    assert found["obeys"].tolist() == [True, False, None, None]
    assert found["reason"].tolist() == ["", "", "a single task", "AA or AF is undefined"]
    assert found.loc["w", "bound"] == pytest.approx(1 - 1.25 * 0.5 + 0.25)
    assert found.loc["x", "slack"] == pytest.approx(0.125 - 0.5)
    assert stats.check_bound(frame.head(0)).empty
    with pytest.raises(UsageError, match="n_tasks"):
        stats.check_bound(frame[["aa", "af"]])
    with pytest.raises(stats.Refused, match="forgetting requires at least 2 tasks"):
        stats.af_bound(0.5, 1)
