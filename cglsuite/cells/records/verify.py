"""Check records: verify their digests and recompute their metrics from their matrices. Does not import torch.

A metric is recomputed only if the record names its provider, and the provider's version and source have not changed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cglsuite.base.errors import CglsuiteError
from cglsuite.cells.records.comparison import compare, may_differ
from cglsuite.cells.records.describe import metric_providers
from cglsuite.cells.records.metric_values import metrics_from
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.layout import read_record_file

if TYPE_CHECKING:
    from cglsuite.cells.storage.store import Problem, Store
    from cglsuite.host import Catalogue


Verdict = Literal["agrees", "differs", "unchecked"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of one record: ``digest``, the name of a metric, ``file`` if the record could not be read, or ``conflict``.

    ``reason`` explains the difference, or why the check was not possible.
    """

    key: str
    label: str
    check: str
    verdict: Verdict
    reason: str = ""
    recorded: float | None = None
    computed: float | None = None


def verify(records: Iterable[Record], catalogue: Catalogue) -> Iterator[Check]:
    """Check the digest of every record (which is correct for all readable records), and every metric that has a value."""
    known = set(catalogue.names("metric"))

    @cache
    def maker(name: str) -> dict[str, Any]:
        return metric_providers(catalogue, [name])[0]

    for record in records:
        yield Check(key=record.key, label=record.label, check="digest", verdict="agrees")
        values = {name: value for name, value in record.metrics.items() if value is not None}
        if not record.matrix:
            for name, value in values.items():
                reason = f"recorded {value:.9g}, but the record has no matrix"
                yield Check(key=record.key, label=record.label, check=name, verdict="differs", reason=reason, recorded=value)
            continue
        makers = {name: part for part in record.provenance.get("metrics") or () for name in part["names"]}
        reasons = {name: _why_not_recomputed(makers.get(name), maker(name) if name in known else None) for name in values}
        checked = [name for name, reason in reasons.items() if not reason]
        again = metrics_from(record, catalogue, checked) if checked else {}
        for name, recorded in values.items():
            yield _check(record, name, recorded, again.get(name), reasons[name])


def damaged(problems: Iterable[Problem]) -> Iterator[Check]:
    """Yield a failed check for every unreadable file in a store."""
    for problem in problems:
        where = f" (moved to {problem.moved_to})" if problem.moved_to else ""
        yield Check(key=Path(problem.path).name.partition(".")[0], label="", check="file", verdict="differs", reason=problem.reason + where)


def conflicting(store: Store) -> Iterator[Check]:
    """Yield additional results that a store contains under the same key (see :mod:`cglsuite.commons.merging`). If different arithmetic
    explains the difference, neither result is wrong, but neither is confirmed.
    """
    for path in store.conflict_files():
        key = path.name.partition(".")[0]
        reason = f"another result of this cell is stored in {path}"
        if where := _different_arithmetic(store, path, key):
            yield Check(key=key, label="", check="conflict", verdict="unchecked", reason=f"{reason}: {where}, so both are correct")
        else:
            what = "run the cell again to see which one is correct, and remove the other"
            yield Check(key=key, label="", check="conflict", verdict="differs", reason=f"{reason}; {what}")


def _different_arithmetic(store: Store, path: Path, key: str) -> str:
    """Return where a conflicting result was computed, if that explains the difference; otherwise, or if it cannot be read, empty."""
    with contextlib.suppress(OSError, CglsuiteError):
        here, (_, kept) = store.get(key), read_record_file(path, key)
        others = [here, *(record for _, record in store.conflicts(key))] if here is not None else []
        if others and all(may_differ(other, kept) for other in others if compare(other, kept)):
            return f"computed on {kept.environment.get('cpu')} with different arithmetic"
    return ""


def _why_not_recomputed(recorded: dict[str, Any] | None, installed: dict[str, Any] | None) -> str:
    """Explain why a metric cannot be recomputed. Returns an empty string if it can."""
    if recorded is None:
        return "the record does not name the code that computed it"
    maker = f"{recorded.get('distribution')} {recorded['version']} ({recorded['source'][:8]})"
    if installed is None:
        return f"computed by {maker}, which is not installed"
    parts = ("distribution", "version", "source")
    if any(recorded.get(part) != installed[part] for part in parts):
        return f"computed by {maker}, now {installed['distribution']} {installed['version']} ({installed['source'][:8]})"
    return ""


def _check(record: Record, name: str, recorded: float, computed: float | None, why_not: str) -> Check:
    verdict: Verdict = "unchecked"
    reason = why_not
    if not why_not:
        # Not compared bit by bit: another NumPy version or processor may sum in a different order.
        agrees = computed is not None and math.isclose(recorded, computed, rel_tol=1e-9, abs_tol=1e-12)
        shown = "no value" if computed is None else f"{computed:.9g}"
        verdict, reason = ("agrees", "") if agrees else ("differs", f"recorded {recorded:.9g}, but the matrix gives {shown}")
    return Check(key=record.key, label=record.label, check=name, verdict=verdict, reason=reason, recorded=recorded, computed=computed)
