"""What the receiver of records has verified: a mark per record, kept beside the records and bound to their digests.

A mark is made by :mod:`cglsuite.commons.submissions.review` on the receiver's machine, never taken from a submission, and no merge copies
it. It holds for the record with its key *and* its digest only: a record that was replaced or edited since has no mark. Every review that
accepts records appends a file ``verification/ID.jsonl`` to the results folder, which is never changed afterwards.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from cglsuite.base.atomic import write_atomic
from cglsuite.base.inputs import read_regular

__all__ = ["FOLDER", "UNMARKED", "Level", "Mark", "Marks", "write_marks"]

logger = logging.getLogger(__name__)
FOLDER = "verification"
_VERSION = 1
Level = Literal["verified", "unverified"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """What was verified of one record.

    Args:
        level: ``verified`` if every check that a result needs has been made here and agrees, else ``unverified``.
        rerun: ``bits`` or ``tolerance`` if this record was rerun here, ``sample`` if others of its group were, else empty.
        reasons: why a check could not be made, by its name; empty for a verified record.
    """

    key: str
    digest: str
    level: Level
    rerun: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def verified(self) -> bool:
        """Whether the record counts as verified."""
        return self.level == "verified"

    @property
    def strength(self) -> tuple[bool, bool]:
        """Of several marks of one record, the strongest counts: verified before not, rerun itself before by sample."""
        return self.verified, self.rerun in ("bits", "tolerance")


UNMARKED = Mark(key="", digest="", level="unverified", reasons={"": "nothing was verified here"})
"""Of a record that nobody has submitted here."""


class Marks:
    """The marks of a results folder.

    Args:
        path: the folder. Files that cannot be read are reported and left out: their records count as unverified.
    """

    def __init__(self, path: str | Path) -> None:
        self._marks: dict[tuple[str, str], Mark] = {}
        for file in sorted((Path(path) / FOLDER).glob("*.jsonl")):
            try:
                self._read(file)
            except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                logger.warning("the marks in %s are ignored: %s", file, error)

    def __len__(self) -> int:
        return len(self._marks)

    def of(self, key: str, digest: str) -> Mark:
        """The mark of the record with this key and this digest; :data:`UNMARKED` if there is none."""
        return self._marks.get((key, digest), UNMARKED)

    def marked(self, key: str, digest: str) -> bool:
        """Whether there is a mark of exactly this record."""
        return (key, digest) in self._marks

    def _read(self, file: Path) -> None:
        head, *lines = read_regular(file).splitlines()
        version = json.loads(head)["verification"]
        if version != _VERSION:
            raise ValueError(f"version {version!r}; this version of cglsuite reads {_VERSION}")
        read = [_mark_of(json.loads(line)) for line in lines]
        for mark in read:
            known = self._marks.get((mark.key, mark.digest))
            if known is None or mark.strength > known.strength:
                self._marks[mark.key, mark.digest] = mark


def _mark_of(data: Mapping[str, Any]) -> Mark:
    if data["level"] not in get_args(Level):
        raise ValueError(f"level {data['level']!r}; expected {' or '.join(get_args(Level))}")
    reasons = {str(name): str(reason) for name, reason in data["reasons"].items()}
    return Mark(key=str(data["key"]), digest=str(data["digest"]), level=data["level"], rerun=str(data["rerun"]), reasons=reasons)


def write_marks(path: Path, identity: str, facts: Mapping[str, Any], marks: Iterable[Mark]) -> Path:
    """Write the marks of one review into a results folder.

    Args:
        path: the folder. identity: of the review, a file name. facts: JSON types: when, by which version, with which options.

    Raises:
        StoreError: the folder cannot be written.
    """
    lines = [{"verification": _VERSION, "review": identity, **facts}]
    lines += [
        {"key": mark.key, "digest": mark.digest, "level": mark.level, "rerun": mark.rerun, "reasons": dict(mark.reasons)} for mark in marks
    ]
    file = path / FOLDER / f"{identity}.jsonl"
    write_atomic(file, "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines).encode(), option="--into")
    return file
