"""Verdicts of the reproduction ledger: on rows, over the rows of a table, and on tables as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from cglsuite import stats
from cglsuite.campaigns.reference.values import ARTEFACT, FEWEST_RUNS, LEAST_RUNS, known_about, own_mean, verdict_on

__all__ = ["JUDGED", "RULE", "TESTED", "VERDICTS", "adjusted", "judged", "offsets"]

JUDGED = (*stats.AGREEMENTS, "no verdict", ARTEFACT)
"""The verdicts of rows with two means."""
VERDICTS = (*JUDGED, "failed", "not run", "not runnable here")
TESTED = ("low", "high", "df", "margin", "smallest_margin", "p_equivalent", "p_different")
"""The numbers of a row that is tested (see :class:`cglsuite.stats.Agreement`)."""
_ALPHA = 0.05
_OPEN = "to be judged"
RULE = (
    f"equivalent: two one-sided tests put the difference of the means within the margin (its {100 * (1 - 2 * _ALPHA):g} % interval lies "
    "within ±margin), which is 2 points for performance, and 3 for differences and ranges of performance (0.02 and 0.03 where values are "
    f"no percentages); different: not equivalent, and Welch's test has p ≤ {_ALPHA:g} after Holm's adjustment over the rows of a table; "
    "undecided: neither, and the smallest margin says what the records could show; no verdict: fewer than "
    f"{LEAST_RUNS} repetitions here, no spread on either side, or nothing printed to test against"
)


def judged(row: Mapping[str, Any], metric: str, values: Sequence[float], runs: int | None) -> dict[str, Any]:
    """The tests of a published row beside our repetitions, and its verdict unless that depends on the other rows of its table.

    Args:
        metric: its name here. values: our repetitions, in stored units. runs: of the published mean.

    Returns:
        verdict, reason (of an artefact or a missing verdict), comparable, and the numbers of :data:`TESTED` where there is a test.
    """
    known = known_about(row)
    verdict, reason = _OPEN, ""
    tested: dict[str, Any] = {}
    try:
        found = asdict(verdict_on(row, metric, own_mean(values), runs))
        tested = {name: found[name] for name in TESTED}
    except stats.Refused as refusal:
        verdict, reason = "no verdict", str(refusal)
    if known.artefacts:
        verdict, reason = ARTEFACT, "; ".join(known.artefacts)
    return {"verdict": verdict, "reason": reason, "comparable": known.comparable} | tested


def adjusted(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the verdicts that :func:`judged` left open; differences are adjusted over the tested rows of a table."""
    tables: Any = rows[rows["verdict"] == _OPEN].groupby(["paper", "table"], sort=False)
    for _, part in tables:
        verdicts, p = stats.agreement_verdicts(part["p_equivalent"], part["p_different"], alpha=_ALPHA)
        rows.loc[part.index, "verdict"] = verdicts
        rows.loc[part.index, "p_holm"] = p
    return rows


def offsets(rows: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """Whether tables are off as a whole: the mean difference over the rows of a table and metric, with a joint bootstrap interval.

    Rows of a preset share orders, splits and seeds, so these are drawn once for all of them (see :func:`cglsuite.stats.joint_offset`).
    Artefacts and rows without a verdict are left out.

    Args:
        rows, values: of a :class:`cglsuite.reports.studies.ledger.compute.Ledger`.

    Returns:
        Columns paper, table, metric, unit, rows, higher (of how many rows ours is higher), mean (ours - published), low, high, reason
        (why there is no interval).
    """
    compared = rows[rows["verdict"].isin(stats.AGREEMENTS)]
    found = []
    tables: Any = compared.groupby(["paper", "table", "metric", "unit"], sort=False)
    for place, part in tables:
        runs = part["published_n"].astype("float64").fillna(FEWEST_RUNS)
        published = pd.DataFrame(
            {
                "row": part.index,
                "block": part["preset"] + " " + part["overrides"],
                "mean": part["published_mean"],
                "error": part["published_std"].fillna(0.0) / np.sqrt(runs),
                "df": runs - 1.0,
            }
        )
        offset = asdict(stats.joint_offset(values[values["row"].isin(part.index)], published))
        found.append(dict(zip(("paper", "table", "metric", "unit"), place, strict=True)) | offset)
    return pd.DataFrame(found, columns=["paper", "table", "metric", "unit", "rows", "higher", "mean", "low", "high", "reason"])
