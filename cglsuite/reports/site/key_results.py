"""Key results: the message of a campaign in a few computed sentences, shown before its tables.

Per scenario and backbone: the best method that is no bound, its gap to joint training, and which differences are significant, by the
leaderboard's family of tests (all pairs, Holm). Then how many published values were reproduced, and what to be careful about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Fragment, element
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.reports.kit.htmltable import number_text
from cglsuite.reports.kit.notices import key_box
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.guards import guards
from cglsuite.reports.results.orders import orders_in_all
from cglsuite.reports.results.published import compare, counted
from cglsuite.reports.site.boards import LEVEL, Board, Row, boards, pairs_of
from cglsuite.stats import AGREEMENTS, Refused

if TYPE_CHECKING:
    from cglsuite.host import Catalogue
    from cglsuite.reports.results.results import CampaignResults

__all__ = ["Finding", "findings", "key_results", "published_line", "warning_lines"]

LOWER_BOUND = "bare"
"""Fine-tuning, which does nothing against forgetting."""
_MOST_NAMED = 6


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The message of one scenario on one backbone.

    Args:
        title: of the scenario. best: the best method that is no bound, empty if there is none with a value. sentences: plain text.
    """

    title: str
    best: str
    sentences: tuple[str, ...]


def key_results(results: CampaignResults, catalogue: Catalogue) -> Fragment | None:
    """A section with the findings of every scenario, reproduced values and warnings; ``None`` without a finished cell."""
    lines = [element("li", element("strong", f.title), ": ", " ".join(f.sentences)) for f in findings(results, catalogue)]
    lines += [element("li", text) for text in (*published_line(results), *warning_lines(results))]
    return key_box(lines) if lines else None


def findings(results: CampaignResults, catalogue: Catalogue) -> list[Finding]:
    """One finding per scenario and backbone, in the order of the leaderboards."""
    return [_finding(results, board, backbone) for board in boards(results, catalogue) for backbone in board.backbones]


def _finding(results: CampaignResults, board: Board, backbone: str) -> Finding:
    title = board.title if len(board.backbones) == 1 else f"{board.title} × {backbone}"
    rows = [row for row in board.rows if row.group.backbone == backbone and board.first.name in row.scores]
    methods = [row for row in rows if row.method not in (UPPER_BOUND, LOWER_BOUND)]
    if not rows:
        return Finding(title=title, best="", sentences=(f"No method has a value of {board.first.label}.",))
    if not methods:
        values = ", ".join(f"{row.group.label} {_value(board, row)}" for row in rows)
        return Finding(title=title, best="", sentences=(f"{board.first.label}: {values}.",))
    best, bound = methods[0], next((row for row in rows if row.method == UPPER_BOUND), None)
    stands = "is best with" if len(methods) > 1 else "has"
    gap = _gap(board, best, bound) if bound is not None else ""
    sentences = [f"{best.group.label} {stands} {_score(board, best)}{gap}."]
    sentences += _significance(results, board, best, [row for row in rows if row is not best])
    return Finding(title=title, best=best.group.label, sentences=tuple(sentences))


def _score(board: Board, row: Row) -> str:
    """The mean with its interval, in page units."""
    score = row.scores[board.first.name]
    text = f"{board.first.label} {_value(board, row)}"
    if score.refusal:
        return f"{text} ({score.n} record{'' if score.n == 1 else 's'}, no interval)"
    low, high = (number_text(board.first.scale * end, board.first.digits) for end in (score.low, score.high))
    return f"{text} ({LEVEL:.0%} interval {low} to {high}, n = {score.n})"


def _value(board: Board, row: Row) -> str:
    text = number_text(board.first.scale * row.scores[board.first.name].mean, board.first.digits)
    return f"{text}\N{NO-BREAK SPACE}{board.first.unit}" if board.first.unit else text


def _gap(board: Board, best: Row, bound: Row) -> str:
    sign = 1.0 if board.first.better == "up" else -1.0
    gap = sign * (bound.scores[board.first.name].mean - best.scores[board.first.name].mean)
    size = number_text(abs(board.first.scale * gap), board.first.digits)
    unit = "points" if board.first.unit == "%" else board.first.unit
    return f", {size} {unit}".rstrip() + f" {'below' if gap >= 0 else 'above'} {bound.group.label} ({_value(board, bound)})"


def _significance(results: CampaignResults, board: Board, best: Row, others: Sequence[Row]) -> list[str]:
    """From which methods the best one differs significantly, and from which it does not."""
    if not others or not board.first.metric:
        return []
    try:
        against = _tests(results, board, best)
    except Refused as refusal:
        return [f"No difference can be tested: {refusal}."]
    differs, alike, refused = list[str](), list[str](), list[str]()
    for row in others:
        test = against[board.name_of(row)]
        chosen = refused if test["refused"] else differs if test["p_adjusted"] <= 1.0 - LEVEL else alike
        chosen.append(row.group.label)
    if not differs and not alike:
        return [f"No difference can be tested: {next(str(test['refused']) for test in against.values() if test['refused'])}."]
    parts = [f"differs significantly from {_listed(differs)}"] if differs else []
    parts += [f"not from {_listed(alike)}" if differs else f"does not differ significantly from {_listed(alike)}"] if alike else []
    parts += [f"cannot be tested against {_listed(refused)}"] if refused else []
    return [f"It {', '.join(parts)}."]


def _tests(results: CampaignResults, board: Board, best: Row) -> Mapping[str, Mapping[str, Any]]:
    """The tests of the best method against every other row, by that row's name."""
    own = board.name_of(best)
    in_all = orders_in_all([record for row in board.rows for record in row.records])
    frame = pairs_of(board.rows, results.frame.set_index("key"), board.first, in_all, len(board.backbones) > 1)
    return {(set(pair) - {own}).pop(): row for row in as_rows(frame) if own in (pair := (row["first"], row["second"]))}


def _listed(names: Sequence[str]) -> str:
    shown = list(names) if len(names) <= _MOST_NAMED else [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def published_line(results: CampaignResults) -> Iterable[str]:
    """How many published values are reproduced, of those without a known artefact; nothing if none has a verdict."""
    judged = [row for row in as_rows(counted(compare(results))) if row["verdict"] in AGREEMENTS]
    if judged:
        papers = _listed(list(dict.fromkeys(str(row["paper"]) for row in judged)))
        counts = Counter(row["verdict"] for row in judged)
        others = [f"{n} {'is' if n == 1 else 'are'} {name}" for name in AGREEMENTS if name != "equivalent" and (n := counts[name])]
        rest = f"; {', '.join(others)}" if others else ""
        yield f"{counts['equivalent']} of {len(judged)} comparable values published by {papers} are reproduced (equivalent){rest}."


def warning_lines(results: CampaignResults) -> Iterable[str]:
    """What to be careful about, each kind of warning once with the number of scenarios; the notices have the details."""
    kinds: dict[str, set[tuple[str, str]]] = {}
    for guard in guards(results):
        kinds.setdefault(guard.summary, set()).add((guard.preset, guard.backbone))
    scenarios = len({(group.preset, group.backbone) for group in results.groups})
    cautions = [f"{summary} ({len(found)} of {scenarios} comparisons)" for summary, found in kinds.items()]
    if cautions:
        yield f"Read with care: {'; '.join(cautions)}."
