"""Which repetitions a submission leaves out: a mean over chosen seeds is biased, however true every record is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cglsuite.base.hashing import canonical
from cglsuite.campaigns.reference.papers import Paper, paper_of
from cglsuite.cells.records.record import Record

__all__ = ["incomplete"]

_AXES = ("order", "split", "init")
_MOST_NAMED = 8
Place = tuple[int, int, int]


def incomplete(records: Iterable[Record]) -> dict[str, str]:
    """By key, what is missing of the repetitions of a record's group; groups without gaps are left out.

    A repetition is missing if another method of the submission has it in the same preset, if the protocol's paper has it, or if it is a
    gap in a range of seeds.
    """
    groups: dict[tuple[str, str, str, str], dict[Place, str]] = {}
    for record in records:
        cell = record.cell
        group = (cell["preset"], cell["backbone"], cell["method"], canonical(cell["configuration"]))
        groups.setdefault(group, {})[_place(cell["seeds"])] = record.key
    beside: dict[tuple[str, str], set[Place]] = {}
    for (preset, backbone, *_), places in groups.items():
        beside.setdefault((preset, backbone), set()).update(places)
    found: dict[str, str] = {}
    for (preset, backbone, *_), places in groups.items():
        paper = None if "+" in preset else paper_of(preset.partition("@")[2])
        reasons = list(_reasons(set(places), beside[preset, backbone], paper))
        found |= dict.fromkeys(places.values(), "; ".join(reasons)) if reasons else {}
    return found


def _place(seeds: Mapping[str, int]) -> Place:
    return seeds["order"], seeds["split"], seeds["init"]


def _reasons(own: set[Place], beside: set[Place], paper: Paper | None) -> Iterable[str]:
    if left := beside - own:
        yield f"{len(left)} of {len(beside)} repetitions that other methods of the submission have are missing ({_listed(left)})"
    if paper is not None and not own >= (protocol := _repetitions(paper)):
        left = protocol - own
        yield f"{len(left)} of the {len(protocol)} repetitions of {paper.name} are missing ({_listed(left)})"
    for axis, name in enumerate(_AXES):
        seeds = sorted({place[axis] for place in own})
        gaps = sorted(set(range(seeds[0], seeds[-1])) - set(seeds)) if seeds[-1] - seeds[0] < 10 * len(seeds) else []
        if gaps:
            yield f"{name} seeds {', '.join(map(str, gaps[:_MOST_NAMED]))} are missing between {seeds[0]} and {seeds[-1]}"


def _repetitions(paper: Paper) -> set[Place]:
    """The seeds of a paper's repetitions, whose lists are gone through in step."""
    return {_place({axis: paper.seeds[axis][n % len(paper.seeds[axis])] if axis in paper.seeds else 0 for axis in _AXES})
            for n in range(paper.most_repeats)}  # fmt: skip


def _listed(places: Iterable[Place]) -> str:
    texts = ["/".join(map(str, place)) for place in sorted(places)]
    return "order/split/init " + ", ".join(texts[:_MOST_NAMED]) + (" ..." if len(texts) > _MOST_NAMED else "")
