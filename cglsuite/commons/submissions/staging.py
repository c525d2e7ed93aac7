"""Copy the files of a submission into a separate folder. Nothing is read from the submission afterwards.

The submitter controls every name and every byte. Therefore no link is followed, only regular files are opened, and sizes and nesting are
limited before anything is parsed. Records are written again from the parsed content, so the accepted content is the checked content.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import CglsuiteError, UsageError
from cglsuite.base.inputs import read_regular
from cglsuite.cells.records.comparison import compare, may_differ
from cglsuite.cells.records.record import NewerSchemaError, Record
from cglsuite.cells.storage.layout import CELLS, CONFLICTS, SUFFIX
from cglsuite.cells.storage.store import Store

MAX_BYTES = 32_000_000
"""The largest accepted file of a record, in bytes. A record with 100 tasks has about a million bytes."""
MAX_DEPTH = 32
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
_IGNORED = ("searches", "checkpoints", "leases", "corrupt", "attempts", "watched")
_SHARD = re.compile(r"[0-9a-f]{2}")


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A file that contains no record to check: its name within the submission, the check that it failed, and the reason."""

    file: str
    check: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class StagedRecord:
    """A parsed record of the submission. ``file`` is its name within the submission."""

    file: str
    record: Record


def stage(submission: Path) -> tuple[list[StagedRecord], list[Refusal], list[str]]:
    """Read all records of a store, or of a folder of record files.

    Returns:
        The records, one per key and sorted by key; the refused files; and notes on files that were ignored.

    Raises:
        UsageError: the folder does not exist, or it contains no record file.
    """
    if not submission.is_dir():
        raise UsageError(f"there is no folder at {submission}: name a store (the folder that holds cells/), or a folder of record files")
    folder = submission / CELLS if (submission / CELLS).is_dir() and not (submission / CELLS).is_symlink() else submission
    staged: list[StagedRecord] = []
    refused: list[Refusal] = []
    for name, entry in _files(folder, refused):
        try:
            staged.append(StagedRecord(file=name, record=_read(entry, Path(name).name.removesuffix(SUFFIX))))
        except _Unreadable as fault:
            refused.append(Refusal(file=name, check=fault.check, reason=str(fault)))
    staged += _packed_records(submission, {record.record.key for record in staged}, bool(staged or refused), refused)
    if not staged and not refused:
        raise UsageError(f"{submission} holds no record: expected a store (the folder that holds cells/), or files named KEY{SUFFIX}")
    distinct, unlike, beside = _distinct([*staged, *_conflicts(submission, refused)])
    return distinct, [*refused, *unlike], [*_notes(submission), *beside]


class _Unreadable(Exception):
    def __init__(self, check: str, reason: str) -> None:
        super().__init__(reason)
        self.check = check


def _files(folder: Path, refused: list[Refusal]) -> Iterator[tuple[str, str]]:
    """Yield the record files of a folder and its shards as (name, path). Links and special files are refused."""
    shards = []
    for entry in _entries(folder):
        if entry.is_symlink():
            if entry.name.endswith(SUFFIX) or _SHARD.fullmatch(entry.name):
                refused.append(Refusal(file=entry.name, check="file", reason="it is a link; expected a file of its own"))
        elif entry.is_dir():
            shards += [entry] if _SHARD.fullmatch(entry.name) else []
        elif entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
            yield entry.name, entry.path
    for shard in shards:
        for entry in _entries(Path(shard.path)):
            name = f"{shard.name}/{entry.name}"
            if entry.is_symlink():
                refused.append(Refusal(file=name, check="file", reason="it is a link; expected a file of its own"))
            elif entry.name.endswith(SUFFIX) and not entry.name.startswith(".") and not entry.is_dir():
                yield name, entry.path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _read(path: str, key: str) -> Record:
    """Return the record in a file, which must be named after its key."""
    content = _content(path)
    if (depth := _depth(content)) > MAX_DEPTH:
        raise _Unreadable("file", f"its JSON is nested {depth} levels deep; expected at most {MAX_DEPTH}")
    try:
        record = Record.from_json(content)
    except NewerSchemaError as error:
        raise _Unreadable("schema", str(error)) from error
    except CglsuiteError as error:
        text = str(error)
        raise _Unreadable("digest" if text.startswith("digest:") else "schema", text) from error
    except RecursionError as error:
        raise _Unreadable("file", "its JSON is nested too deeply") from error
    if record.key != key:
        raise _Unreadable("file", f"its name is not the key of its record, which is {record.key[:16]}")
    return record


def _content(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        reason = "it is a link; expected a file of its own" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror or error}"
        raise _Unreadable("file", reason) from error
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _Unreadable("file", "it is not a regular file")
        content = file.read(MAX_BYTES + 1) if status.st_size <= MAX_BYTES else b""
    if status.st_size > MAX_BYTES or len(content) > MAX_BYTES:
        raise _Unreadable("file", f"{max(status.st_size, len(content)):,} bytes; expected at most {MAX_BYTES:,}")
    return content


def _depth(content: bytes) -> int:
    """Return the nesting depth of objects and arrays without parsing them."""
    depth = deepest = 0
    for token in _TOKENS.finditer(content):
        first = content[token.start()]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    return deepest


def _packed_records(submission: Path, staged_keys: set[str], has_loose_files: bool, refused: list[Refusal]) -> Iterator[StagedRecord]:
    """Yield the records that the store has in packed form (see :class:`cglsuite.cells.Store`)."""
    store = Store(submission, quarantine=False, read=())
    named = {Path(refusal.file).name.removesuffix(SUFFIX) for refusal in refused}
    try:
        for key in sorted(set(store.keys()) - staged_keys - named):
            if (
                not any(path.is_symlink() or path.parent.is_symlink() for path in store.places(key))
                and (record := store.get(key)) is not None
            ):
                yield StagedRecord(file=key, record=record)
    except CglsuiteError as error:
        if has_loose_files:
            refused.append(Refusal(file="", check="file", reason=str(error)))
        else:
            raise


def _conflicts(submission: Path, refused: list[Refusal]) -> Iterator[StagedRecord]:
    """Yield the conflicts in the submitter's store, which count as further results of the same key."""
    folder = submission / CONFLICTS
    if folder.is_symlink() or not folder.is_dir():
        return
    for entry in _entries(folder):
        key = entry.name.partition(".")[0]
        if not entry.name.endswith(SUFFIX) or entry.name.startswith((".", "search-")) or entry.is_symlink():
            continue
        try:
            yield StagedRecord(file=f"{CONFLICTS}/{entry.name}", record=_read(entry.path, key))
        except _Unreadable as fault:
            refused.append(Refusal(file=f"{CONFLICTS}/{entry.name}", check=fault.check, reason=str(fault)))


def _distinct(staged: list[StagedRecord]) -> tuple[list[StagedRecord], list[Refusal], list[str]]:
    """Choose one record per key, preferably from ``cells/``, and none for keys with results that contradict each other.
    Notes list results whose arithmetic differs from that of the chosen record.
    """
    by_key: dict[str, list[StagedRecord]] = {}
    for item in sorted(staged, key=lambda item: (item.record.key, not item.record.done)):
        by_key.setdefault(item.record.key, []).append(item)
    distinct: list[StagedRecord] = []
    refused: list[Refusal] = []
    notes: list[str] = []
    for first, *others in by_key.values():
        unlike = [(other, differences) for other in others if other.record.done and (differences := compare(first.record, other.record))]
        if all(may_differ(first.record, other.record) for other, _ in unlike):
            distinct.append(first)
            notes += [f"{other.file}: left out, since {first.file} has a result with different arithmetic" for other, _ in unlike]
            continue
        for item, differences in [(first, unlike[0][1]), *unlike]:
            reason = f"the submission has two results of this cell that differ ({differences[0]}); which one is meant?"
            refused.append(Refusal(file=item.file, check="duplicates", reason=reason))
    return distinct, refused, notes


def _notes(submission: Path) -> Iterator[str]:
    if os.path.lexists(submission / FOLDER):
        yield f"{FOLDER}/ is ignored: verification marks are written by the reviewer and never taken from a submission"
    if present := [name for name in _IGNORED if os.path.lexists(submission / name)]:
        yield f"{', '.join(f'{name}/' for name in present)}: not part of a submission, ignored"


# What the receiver of records has verified: a mark per record, stored next to the records and bound to their digests.
# A mark is created by :mod:`cglsuite.commons.submissions.review` on the receiver's machine and never taken from a submission, and no merge
# copies it. It holds for the record with its key *and* its digest only: a record that was replaced or edited since has no mark. Every
# review that accepts records appends a file ``verification/ID.jsonl`` to the results folder, which is never changed afterwards.

logger = logging.getLogger(__name__)
FOLDER = "verification"
_VERSION = 1
Level = Literal["verified", "unverified"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """The level of verification of one record, and the reasons.

    Args:
        level: ``verified`` if every required check was made here and passed, otherwise ``unverified``.
        rerun: ``bits`` or ``tolerance`` if this record was rerun here, ``sample`` if others of its group were, else empty.
        reasons: the reason why a check could not be made, by check name; empty for a verified record.
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
        """The rank of a mark among several marks of one record. Verified precedes unverified; then a record that was itself rerun precedes
        others.
        """
        return self.verified, self.rerun in ("bits", "tolerance")


UNMARKED = Mark(key="", digest="", level="unverified", reasons={"": "nothing was verified here"})
"""The mark of a record that was never submitted here."""


class Marks:
    """The marks of a results folder.

    Args:
        path: the folder. Files that cannot be read are reported and ignored; their records count as unverified.
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
        """Return the mark of the record with this key and digest, or :data:`UNMARKED`."""
        return self._marks.get((key, digest), UNMARKED)

    def marked(self, key: str, digest: str) -> bool:
        """Return whether the record with this key and digest has a mark."""
        return (key, digest) in self._marks

    def _read(self, file: Path) -> None:
        head, *lines = read_regular(file).splitlines()
        version = json.loads(head)["verification"]
        if version != _VERSION:
            raise ValueError(f"unknown version {version!r}: this version of cglsuite reads version {_VERSION}")
        read = [_mark_of(json.loads(line)) for line in lines]
        for mark in read:
            known = self._marks.get((mark.key, mark.digest))
            if known is None or mark.strength > known.strength:
                self._marks[mark.key, mark.digest] = mark


def _mark_of(data: Mapping[str, Any]) -> Mark:
    if data["level"] not in get_args(Level):
        raise ValueError(f"unknown level {data['level']!r}: expected {' or '.join(get_args(Level))}")
    reasons = {str(name): str(reason) for name, reason in data["reasons"].items()}
    return Mark(key=str(data["key"]), digest=str(data["digest"]), level=data["level"], rerun=str(data["rerun"]), reasons=reasons)


def write_marks(path: Path, identity: str, facts: Mapping[str, Any], marks: Iterable[Mark]) -> Path:
    """Write the marks of one review into a results folder.

    Args:
        path: the folder. identity: the review's identity, used as the file name. facts: the time, version and options of the review, as
            JSON types.

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
