"""The findings in sentences: every number with the test behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cglsuite import stats
from cglsuite.reports.kit.htmltable import number_text
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.studies.findings.worth import competes, method_of

if TYPE_CHECKING:
    from cglsuite.reports.studies.findings.compute import Findings

__all__ = ["abstract", "headlines"]


def headlines(findings: Findings) -> list[tuple[str, str]]:
    """Findings as (section of the page, sentence): those for an abstract first.

    The sections are ``differences``, ``rankings``, ``worth``, ``datasets`` and ``forgetting``; one without records has no sentence.
    """
    found = {
        "differences": _differences(findings),
        "rankings": _rankings(findings),
        "worth": _worth(findings),
        "datasets": _datasets(findings),
        "forgetting": _forgetting(findings),
    }
    return [(section, text) for section, text in found.items() if text]


def abstract(findings: Findings) -> list[str]:
    """The three sentences for an abstract."""
    return [text for _, text in headlines(findings)[:3]]


def _differences(findings: Findings) -> str:
    tested = findings.differences[findings.differences["refused"] == ""]
    if tested.empty:
        return ""
    shown = tested[tested["scenario"].isin([one.name for one in findings.comparisons if one.percent])]
    alone = tested["first"].map(method_of) == tested["second"].map(method_of)
    least, most = int(tested["n"].min()), int(tested["n"].max())
    repetitions = f"{least} to {most}" if least < most else f"{least}"
    two, one = tested[~alone], tested[alone]
    n, n_different = len(two), int((two["better"] != "").sum())
    said = f"Of {n} pairs of methods in {tested['scenario'].nunique()} scenarios, {n_different} "
    said += f"({100 * n_different / max(1, n):.0f} %) differ over orders and seeds"
    said += f" (paired tests over {repetitions} repetitions, p ≤ 0.05 after Holm's adjustment within a scenario)"
    if len(one):
        said += f", and {int((one['better'] != '').sum())} of {len(one)} pairs of one method in two settings"
    if len(shown) and shown["detectable"].notna().any():
        median = 100 * shown["detectable"].median()
        shown_as = f"{number_text(median, 1)} points" if median <= 100.0 else "more than 100 points, which cannot be shown"
        said += f"; the median of the smallest difference that they find with a power of 80 % is {shown_as}"
    return f"{said}."


def _rankings(findings: Findings) -> str:
    changed = findings.changes[findings.changes["different"]]
    pairs = findings.rankings[findings.rankings["tau"].notna()]
    if pairs.empty:
        return ""
    if changed.empty:
        lowest = as_rows(pairs.sort_values("tau", kind="stable"))[0]
        return f"No change of a protocol moves a method significantly; {_agreement(lowest)}."
    row = as_rows(changed.sort_values("effect", key=lambda effect: -effect.abs(), kind="stable"))[0]
    pair = pairs[(pairs["first"] == row["first"]) & (pairs["second"] == row["second"])]
    moved = f"{scenario_words(row['first'])} to {scenario_words(row['second'])} moves {row['method']} by "
    moved += f"{number_text(100 * row['effect'], 1, plus=True)} points (paired t over {int(row['n'])} repetitions, "
    moved += f"{_p(row['p_adjusted'])}, Holm), from rank {number_text(row['rank_first'], 1)} to {number_text(row['rank_second'], 1)}"
    tail = f"; {_agreement(as_rows(pair)[0])}" if len(pair) else ""
    n = len(findings.changes[["first", "second"]].drop_duplicates())
    others = f" Of {len(findings.changes)} tests of a method between {n} pairs of protocols, {len(changed)} are significant."
    return f"A change of the protocol from {moved}{tail}.{others}"


def _agreement(row: dict[str, Any]) -> str:
    interval = f" [{number_text(row['low'], 2)}, {number_text(row['high'], 2)}]" if row["low"] == row["low"] else ""
    within = f", against {number_text(row['within'], 2)} between repetitions of one protocol" if row["within"] == row["within"] else ""
    return f"the rankings agree with Kendall's τ = {number_text(row['tau'], 2)}{interval}{within}"


def _worth(findings: Findings) -> str:
    frame = findings.worth
    frame = frame[frame["method"].map(competes).astype(bool) & frame["p_adjusted"].notna() & frame["percent"]]
    if frame.empty:
        return ""
    keeps, nothing = frame[frame["bytes"] > 0], frame[frame["bytes"] <= 0]
    parts = [_bought(keeps, "a method that keeps bytes beyond the model gains"), _bought(nothing, "one that keeps nothing gains")]
    said = f"{'; '.join(filter(None, parts))} over fine-tuning (the same paired tests)"
    said = said[0].upper() + said[1:]
    known = frame[frame["seconds"].notna()]
    better, others = (known[known["better"] == gains] for gains in (True, False))
    if len(better) and len(others):
        a, b = better["seconds"].median(), others["seconds"].median()
        said += f"; those that gain take {number_text(a, 2)} times its seconds in the median, the others {number_text(b, 2)}"
    return f"{said}."


def _bought(frame: Any, what: str) -> str:
    if frame.empty:
        return ""
    better = frame[frame["better"]]
    gain = f" ({number_text(100 * better['gain'].median(), 1, plus=True)} points in the median)" if len(better) else ""
    return f"in {len(better)} of {len(frame)} case{'s' * (len(frame) != 1)} {what} significantly{gain}"


def _datasets(findings: Findings) -> str:
    pairs = findings.dataset_pairs
    if pairs.empty:
        return ""
    most = int(pairs["datasets"].max())
    smallest = pairs["smallest_p"].min()
    decided = pairs[pairs["verdict"].str.endswith(" is better")]
    said = f"With the data set as the unit, {len(decided)} of {len(pairs)} pairs of methods differ: at most {most} data sets are shared, "
    said += f"with which Wilcoxon's test cannot give a p below {smallest:.2g}"
    said += ", so that no claim that one method beats another in general can be made" if smallest > 0.05 else ""
    separated = []
    for setting in dict.fromkeys(findings.means["setting"]):
        try:
            found = findings.friedman(setting)
        except stats.Refused:
            continue
        separated.append(f"{setting.replace('-il', '-IL')}: Friedman's p = {found.p:.2g} over {found.n_blocks}")
    told = f" ({'; '.join(separated)})" if separated else ""
    return f"{said}{told}."


def _forgetting(findings: Findings) -> str:
    splits = findings.splits
    if splits.empty:
        return ""
    share = (splits["drift"].abs() > splits["weights"].abs()).sum()
    drift, total = 100 * splits["drift"].mean(), 100 * splits["forgetting"].mean()
    return (
        f"Of {len(splits)} runs whose forgetting was split, drift of the graph is the larger part in {share}: it is "
        f"{number_text(drift, 1)} of {number_text(total, 1)} points in the mean."
    )


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
