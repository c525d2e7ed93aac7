"""Conformance checks for text encoders: finite vectors, one per text, that are the same at every call and in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.embeddings import encoded_rows
from cglsuite.base.errors import DataAbsentError, DataError, NotApplicable
from cglsuite.base.traces import Traces
from cglsuite.cells.process import RANDOM_STATES
from cglsuite.host import Catalogue, Entry
from cglsuite.testing.apart import same_everywhere
from cglsuite.testing.findings import Check, CheckFailed
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.streams import disturb_randomness

_TEXTS = ["a library for reading images", "fast web server", "", "Documentation of the library", "naïve Bayes, in C++", "fast web server"]


def checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    """Yield the checks of an encoder. If its weights are missing, those that encode are skipped."""
    yield from entry_checks(catalogue, entry)
    yield Check(name="declaration", action=partial(_declared, entry.spec))
    yield Check(name="vectors", after="factory", action=lambda: _encode(catalogue, entry, _TEXTS) and None)
    yield Check(name="pure", after="vectors", action=partial(_pure, catalogue, entry))
    yield Check(name="processes", after="pure", action=partial(same_everywhere, catalogue, entry, outcomes))


def outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the digest of vectors of a few texts, so that two processes can be compared."""
    yield "its vectors", hashlib.sha256(b"".join(_encode(catalogue, entry, _TEXTS))).hexdigest()


def _declared(spec: Any) -> None:
    if spec.model and not (spec.revision and spec.licence != "not stated"):
        raise CheckFailed(
            f"the model {spec.model!r} has no revision or no licence",
            "set revision=... (such as the SHA-256 of the weights) and licence=...",
        )


def _encode(catalogue: Catalogue, entry: Entry, texts: list[str], calls: int = 1) -> list[bytes]:
    """Return the bytes of each text's float16 vector, from the last of several calls."""
    root, spec = DataRoot.from_environment(), entry.spec
    try:
        encode = catalogue.resolve(entry)(DataRoot(root=root.folders, cache=root.cache, offline=True))
        for _ in range(calls):
            rows = encoded_rows(encode(list(texts)), len(texts), {"name": spec.name}, sparse=bool(getattr(spec, "fitted", False)))
    except DataAbsentError as error:
        raise NotApplicable(str(error).splitlines()[0]) from None
    except DataError as error:
        raise CheckFailed(str(error), "return finite float vectors, one row per text; scipy.sparse only with fitted=True") from error
    return [row.tobytes() for row in (rows.toarray() if hasattr(rows, "toarray") else rows)]


def _pure(catalogue: Catalogue, entry: Entry) -> None:
    """Check that the encoder draws no global random numbers, and that its vectors do not depend on earlier calls."""
    first = _encode(catalogue, entry, _TEXTS)
    disturb_randomness()
    with_state = Traces(RANDOM_STATES)
    again = _encode(catalogue, entry, _TEXTS, calls=2)
    if changes := with_state.changes():
        raise CheckFailed(
            f"encoding changes global random states: {'; '.join(changes)}", "draw from a generator of your own with a fixed seed"
        )
    if again != first:
        raise CheckFailed("two calls return different vectors", "depend only on the texts: no dropout, no global random numbers, no state")
