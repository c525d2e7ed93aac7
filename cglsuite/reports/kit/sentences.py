"""Write key results as sentences for pages, notebooks and commands. A sentence states the finding first and its statistics in brackets.

Example:
    ewc is best with AP 96.7%: it beats bare by 48.0 points and er by 3.1 (both p < .001), and is 2.5 points below joint (p = .031)
    [95% interval 95.1 to 97.9, n = 5].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cglsuite.base.markup import several
from cglsuite.reports.kit.tables import number_text

_MAX_NAMED = 6
_MAX_SIZES = 3


@dataclass(frozen=True, kw_only=True)
class Gap:
    """The difference between two methods, with its p value.

    Args:
        name: the other method. size: the difference in the unit of the page, positive if the other method is worse.
        p: the adjusted p value; NaN if the difference was not tested.
    """

    name: str
    size: float
    p: float


def rank_level(mean: float) -> float:
    """Round a mean to 12 significant digits, so that means that differ only by rounding error share a rank."""
    return float(f"{mean:.12g}")


def p_text(p: float) -> str:
    """Format a p value for a sentence.

    Example:
        >>> p_text(0.0312), p_text(0.0002)
        ('p = .031', 'p < .001')
    """
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")


def join_names(names: Sequence[str]) -> str:
    """Join names for a sentence. If there are more than six names, the first five and the number of remaining names are shown.

    Example:
        >>> join_names(["bare", "ewc", "joint"])
        'bare, ewc and joint'
    """
    shown = list(names) if len(names) <= _MAX_NAMED else [*names[: _MAX_NAMED - 1], f"{len(names) - _MAX_NAMED + 1} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def best_text(best: Sequence[str], rivals: int, score: str, gaps: Sequence[Gap], *, unit: str, digits: int, alpha: float) -> str:
    """State which method is best, with its score and its gaps to the other methods. The text has no full stop.

    Args:
        best: the best method, or all methods that share the best mean. rivals: the number of methods with a value.
        score: the best score as text, with its metric and unit. gaps: differences between the first of ``best`` and the other methods.
        unit: the unit of the gaps, such as ``points``. alpha: the significance level of their tests.
    """
    verb = "has" if rivals < 2 else "is best with" if len(best) == 1 else "are best with"
    against = gaps_text(gaps, unit=unit, digits=digits, alpha=alpha)
    subject = "it" if len(best) == 1 else best[0]
    return f"{join_names(best)} {verb} {score}{f': {subject} {against}' if against else ''}"


def gaps_text(gaps: Sequence[Gap], *, unit: str, digits: int, alpha: float) -> str:
    """Return a predicate that states which methods a method beats, which it is below, and from which it does not differ significantly.

    The arguments are those of :func:`best_text`.
    """
    tested = [gap for gap in gaps if not math.isnan(gap.p)]
    differing = sorted((gap for gap in tested if gap.p <= alpha), key=lambda gap: -gap.size)
    above, below = [gap for gap in differing if gap.size > 0], [gap for gap in differing[::-1] if gap.size < 0]
    alike = [gap for gap in tested if gap not in above and gap not in below]
    parts = [f"beats {_by(above, unit, digits)} ({_p_of(above)})"] if above else []
    parts += [f"is {_apart(below, unit, digits, 'below')} ({_p_of(below)})"] if below else []
    parts += [f"shows no significant difference from {_sized(alike, unit, digits)}"] if alike else []
    untested = sorted((gap for gap in gaps if math.isnan(gap.p)), key=lambda gap: -gap.size)
    groups = (([gap for gap in untested if gap.size >= 0], "above"), ([gap for gap in untested[::-1] if gap.size < 0], "below"))
    apart = " and ".join(_apart(some, unit, digits, where) for some, where in groups if some)
    parts += [f"is {apart} (not tested)"] if apart else []
    return f"{', '.join(parts[:-1])}, and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _amount(size: float, unit: str, digits: int) -> str:
    return f"{number_text(abs(size), digits)} {unit}".rstrip()


def _by(gaps: Sequence[Gap], unit: str, digits: int) -> str:
    """``bare by 48.0 points and er by 3.1``; of many methods the range."""
    if len(gaps) > _MAX_SIZES:
        return f"{len(gaps)} methods by {_range(gaps, unit, digits)}"
    return join_names([f"{gap.name} by {_amount(gap.size, '' if n else unit, digits)}" for n, gap in enumerate(gaps)])


def _apart(gaps: Sequence[Gap], unit: str, digits: int, where: str) -> str:
    """``2.5 points below joint``; of many methods the range."""
    if len(gaps) > _MAX_SIZES:
        return f"{_range(gaps, unit, digits)} {where} {len(gaps)} methods"
    return join_names([f"{_amount(gap.size, '' if n else unit, digits)} {where} {gap.name}" for n, gap in enumerate(gaps)])


def _range(gaps: Sequence[Gap], unit: str, digits: int) -> str:
    least, most = sorted((gaps[0], gaps[-1]), key=lambda gap: abs(gap.size))
    return f"{_amount(least.size, '', digits)} ({least.name}) to {_amount(most.size, unit, digits)} ({most.name})"


def _sized(gaps: Sequence[Gap], unit: str, digits: int) -> str:
    """Names, each with its distance where they are few."""
    if len(gaps) > _MAX_SIZES:
        return join_names([gap.name for gap in gaps])
    return join_names([f"{gap.name} ({_amount(gap.size, unit, digits)} {'ahead' if gap.size < 0 else 'behind'})" for gap in gaps])


def _p_of(gaps: Sequence[Gap]) -> str:
    """The largest p value of some tests."""
    text, every = p_text(max(gap.p for gap in gaps)), {1: "", 2: "both "}.get(len(gaps), "all ")
    return f"{every}{text.replace('=', '≤') if every else text}"


def incomplete_text(lacking: Sequence[tuple[str, int, int]]) -> str:
    """Return a sentence that lists incomplete methods and their numbers of missing repetitions, or an empty string if there are none."""
    names = [f"{name} ({missing} of {several(n + missing, 'repetition')} missing)" for name, n, missing in lacking]
    return f"Incomplete, and not ranked: {join_names(names)}." if names else ""
