"""Compare two records of the same cell: whether their results are bit-identical, and whether they have to be.

Equal bits are guaranteed if key and arithmetic agree: ``environment.arithmetic`` is a digest of how the process computed
(:func:`cglsuite.cells.portable.arithmetic`). Two records with one key and different arithmetic are two correct results of one cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cglsuite.cells.records.record import NoCurvesError, Record

_SAME = ("status", "tasks", "matrix", "validation_matrix", "per_class")
_SAME_PROVENANCE = ("data", "stream", "counters")
_LATER = ("state_bytes", "state_bytes_per_task")  # records of earlier versions do not have these fields
_OWN_RUN = ("resumed_from_evaluation", "peak_bytes", "peak_host_bytes", "peak_reserved_bytes")  # facts about the run, not its result


def compare(then: Record, now: Record, names: tuple[str, str] = ("then", "now")) -> list[str]:
    """Describe the differences between two records of the same cell. The result is empty if everything that the cell determines is
    bit-identical.

    Times, peak memory and resumption are ignored.

    Args:
        names: names of the two in the text, by default a record and its rerun.
    """
    parts: list[tuple[str, Any, Any]] = [(name, getattr(then, name), getattr(now, name)) for name in _SAME]
    parts += [(name, then.provenance.get(name), now.provenance.get(name)) for name in _SAME_PROVENANCE]
    parts += _training_facts(then, now)
    untold = [name for name in _LATER if name not in then.memory or name not in now.memory]
    old, new = ({k: v for k, v in record.memory.items() if k not in untold} for record in (then, now))
    parts.append(("memory", old, new))
    parts.append(("parameters", _in_all(then), _in_all(now)))
    parts = [(name, _without(old), _without(new)) for name, old, new in parts]
    differing = [_difference_text(*part, names) for part in parts if part[1] != part[2]]
    if now.reason and not now.done:
        differing.append(f"the rerun ended as {now.status}: {now.reason}")
    return differing


def may_differ(first: Record, second: Record) -> bool:
    """Return whether two records of the same cell may differ because they state different arithmetic and agree in data and tasks.

    Records without a stated arithmetic (from earlier versions or from GPUs) may not differ, since nothing is known about it.
    """
    stated = {record.environment.get("arithmetic") for record in (first, second)}
    return len(stated) == 2 and None not in stated and not data_differences(first, second)


def data_differences(first: Record, second: Record) -> list[str]:
    """Return the differences in data and tasks between two records of the same cell, which rounding cannot cause."""
    parts = (("data", first.provenance.get("data"), second.provenance.get("data")), ("tasks", first.tasks, second.tasks))
    return [name for name, a, b in parts if a != b]


def promise(record: Record) -> str:
    """Describe where a rerun of a record's cell gives the same bits, as a phrase that continues "the same bits"."""
    if record.cell["device"] != "cpu":
        return f"as far as PyTorch's kernels are deterministic ({record.cell['device']})"
    if record.cell.get("numerics") == "portable":
        return "on every x86-64 processor with AVX2 (portable numerics)"
    if (arithmetic := record.environment.get("arithmetic")) is not None:
        return f"where the arithmetic is {arithmetic[:12]} (native numerics)"
    return "on the same kind of processor (native numerics, arithmetic not recorded)"


def _training_facts(then: Record, now: Record) -> list[tuple[str, Any, Any]]:
    """Return the curves and fingerprints of both records if they are stored; otherwise their summaries in the records."""
    if then.training == now.training:
        return []
    parts: list[tuple[str, Any, Any]]
    try:
        old, new = then.curves(), now.curves()
        parts = [("curves", old.trainings, new.trainings), ("fingerprints", old.fingerprints, new.fingerprints)]
    except NoCurvesError:
        parts = [("training", then.training.get("tasks"), now.training.get("tasks"))]
    digests = ("digest of curves and fingerprints", then.training.get("digest"), now.training.get("digest"))
    return parts if any(a != b for _, a, b in parts) else [digests]


def _in_all(record: Record) -> float:
    """Return the parameters of model and method together: early records count a method's parameters as the model's, and hold no bytes."""
    return sum(record.parameters.get(name) or 0 for name in ("model", "method"))


def _without(value: Any) -> Any:
    return {k: v for k, v in value.items() if k not in _OWN_RUN} if isinstance(value, Mapping) else value


def _difference_text(name: str, old: Any, new: Any, names: tuple[str, str]) -> str:
    if not old or not new:
        return f"{name}: {'absent' if not old else 'present'} {names[0]}, {'absent' if not new else 'present'} {names[1]}"
    place, before, after = _first_difference(old, new, "")
    return f"{name}{place}: {before!r:.60} {names[0]}, {after!r:.60} {names[1]}"


def _first_difference(old: Any, new: Any, place: str) -> tuple[str, Any, Any]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        key = next(k for k in sorted({*old, *new}) if k not in old or k not in new or old[k] != new[k])
        return _first_difference(old.get(key), new.get(key), f"{place}.{key}")
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f"{place} (length)", len(old), len(new)
        index = next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
        return _first_difference(old[index], new[index], f"{place}[{index}]")
    return place, old, new
