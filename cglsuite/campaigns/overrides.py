"""Layered overrides of switches and hyperparameters. Precedence: command line > environment > campaign > preset."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from cglsuite.base.environment import variable
from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.inputs import quoted, real_number
from cglsuite.cells.device import restrict_to_gpu
from cglsuite.cells.portable import NumericsChoice

_Item = TypeVar("_Item")


def parse_overrides(pairs: Iterable[str], place: str) -> dict[str, str]:
    """Parse ``key=value`` texts into a mapping. Values remain text until they are parsed according to the key's declaration.

    Raises:
        UsageError: a text has no ``=``, or a key appears twice; the message names ``place``.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise UsageError(f"{place} {quoted(pair)}: expected key=value, for example training.epochs=50")
        for other in values:
            if same_key(key, other):
                named = quoted(key) if key == other else f"{quoted(other)} or {quoted(key)}"
                raise UsageError(f"{place}: {named} is given twice ({quoted(values[other])} and {quoted(value)})")
        values[key] = value
    return values


FILTERS = ("scenario", "method", "backbone", "order_seed", "split_seed", "init_seed")
"""Keys by which cells and records can be filtered, in addition to their settings."""


def selected(items: Iterable[_Item], only: Sequence[str], facts: Callable[[_Item], Mapping[str, Any]], place: str) -> list[_Item]:
    """Return the items that pass every filter ``key=value``. Values are globs; commas and repeated keys mean "or", different keys "and".

    Args:
        only: keys are :data:`FILTERS`, or settings such as ``training.lr``, which are compared by value.
        facts: maps an item to its values by key. place: the option that the filters come from.

    Raises:
        UsageError: no item has the key.
    """
    wanted: dict[str, list[str]] = {}
    for text in only:
        for key, value in parse_overrides([text], place).items():
            wanted.setdefault(key, []).extend(part.strip() for part in value.split(","))
    if not wanted:
        return list(items)
    known = [(item, facts(item)) for item in items]
    for key in wanted:
        if known and not any(key in held for _, held in known):
            raise UnknownNameError(f"key of {place}", key, {*FILTERS, *(name for _, held in known for name in held)})
    return [
        item for item, held in known if all(k in held and any(_same_value(held[k], p) for p in pattern) for k, pattern in wanted.items())
    ]


def _same_value(value: Any, pattern: str) -> bool:
    """Return whether a filter's text matches a value: ``1e-2`` is 0.01, ``true`` and ``none`` are keywords, other texts are globs."""
    if isinstance(value, bool) or value is None:
        return str(value).lower() == pattern.lower()
    if isinstance(value, (int, float)):
        try:
            return real_number(pattern) == value
        except ValueError:
            return False
    return fnmatch.fnmatchcase(str(value), pattern)


def merge_overrides(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge all layers; later ones take precedence. A bare key (``lr``) and its dotted form (``training.lr``) are the same key."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = {k: v for k, v in merged.items() if not any(same_key(k, changed) for changed in layer)} | dict(layer)
    return merged


def same_key(first: str, second: str) -> bool:
    """Return whether two keys refer to the same value, such as a bare key (``lr``) and its dotted form (``training.lr``)."""
    return first == second or first.endswith(f".{second}") or second.endswith(f".{first}")


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """Overrides of a campaign from the command line or the environment. ``None`` and missing keys leave the campaign's values unchanged.

    ``run`` contains options of executors by dotted key (``slurm.partition``).
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    device: str | None = None
    numerics: NumericsChoice | None = None
    workers: int | None = None
    executor: str | None = None
    checkpoint_every_s: float | None = None
    run: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Overrides:
        """Read ``CGLSUITE_SET="key=value;key=value"``, ``CGLSUITE_DEVICE``, ``CGLSUITE_WORKERS`` and
        ``CGLSUITE_CHECKPOINT_EVERY``.

        Raises:
            UsageError: a value cannot be parsed.
        """
        pairs = [pair for pair in (variable("CGLSUITE_SET", environ) or "").split(";") if pair.strip()]
        return cls(
            values=parse_overrides(pairs, "CGLSUITE_SET"),
            device=variable("CGLSUITE_DEVICE", environ),
            workers=variable("CGLSUITE_WORKERS", environ),
            checkpoint_every_s=variable("CGLSUITE_CHECKPOINT_EVERY", environ),
        )

    @classmethod
    def of(cls, overrides: Overrides | Mapping[str, Any] | None) -> Overrides:
        """Combine ``overrides`` (:class:`Overrides` or a plain mapping of values) with those from the environment, which have lower
        precedence.

        If they name one GPU (``cuda:1``), this process and its children see no other GPU from here on.
        """
        lower = cls.from_environment()
        if overrides is None:
            return replace(lower, device=restrict_to_gpu(lower.device))
        upper = overrides if isinstance(overrides, Overrides) else cls(values=overrides)
        return cls(
            values=merge_overrides(lower.values, upper.values),
            device=restrict_to_gpu(upper.device or lower.device),
            numerics=upper.numerics or lower.numerics,
            workers=upper.workers or lower.workers,
            executor=upper.executor or lower.executor,
            checkpoint_every_s=lower.checkpoint_every_s if upper.checkpoint_every_s is None else upper.checkpoint_every_s,
            run={**lower.run, **upper.run},
        )
