"""Prints the user code behind a record, or the differences between the code of two: ``cglsuite show code KEY [KEY]``."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from cglsuite.base.errors import UsageError
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host.frozen import stored_source


def code_of(store: Store, keys: Sequence[str]) -> Iterator[str]:
    """Lines of text: every module of one record, or the differences between two records.

    Args:
        keys: one or two keys, or their first digits.

    Raises:
        UsageError: no record or several have such a key, or neither has user code.
    """
    records = [_record(store, key) for key in keys]
    codes = [dict(record.provenance.get("code") or {}) for record in records]
    if not any(codes):
        named = " and ".join(f"{record.key[:12]} ({record.cell['method']})" for record in records)
        raise UsageError(f"record {named} has no code of users: the suite's own code has the version that its provenance names")
    if len(records) == 1:
        for number, (module, sha256) in enumerate(codes[0].items()):
            yield from ("",) * (number > 0)
            yield from (f"# {module}  {sha256[:12]}", *_text(store.path, module, sha256))
        return
    same = True
    for module in sorted(codes[0].keys() | codes[1].keys()):
        sides = [code.get(module, "") for code in codes]
        if sides[0] != sides[1]:
            same = False
            first, second = (_text(store.path, module, sha256) if sha256 else [] for sha256 in sides)
            before, after = (f"{record.key[:12]}/{module}" for record in records)
            yield from difflib.unified_diff(first, second, before, after, lineterm="")
    if same:
        yield "both records have the same code of users"


def _record(store: Store, key: str) -> Record:
    keys = [candidate for candidate in list(store.keys()) if candidate.startswith(key)]
    if len(keys) != 1:
        what = "no record" if not keys else f"{len(keys)} records"
        raise UsageError(f"{what} in {store.path} with a key that begins with {key!r}: `cglsuite results` lists the keys")
    if (record := store.get(keys[0])) is None:
        raise UsageError(f"the record {keys[0][:12]} in {store.path} cannot be read")
    return record


def _text(store: Path, module: str, sha256: str) -> list[str]:
    content = stored_source(store, sha256)
    if content is None:
        return [f"(the source of {module} is not in {store}: its digest is {sha256})"]
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        return [f"({len(content):,} bytes that are no text)"]
