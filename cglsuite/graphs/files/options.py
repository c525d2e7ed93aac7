"""Options that resolve ambiguities in a data file. Each data set has one set of options, which is part of the keys of its cells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from cglsuite.base.errors import UsageError, nearest
from cglsuite.base.inputs import quoted, text_value

NONE = "none"
"""The option value "none": for ``id``, rows are the nodes; for ``unlabelled``, every value is a label."""
UNITS = {
    "year": "Y",
    "month": "M",
    "week": "W",
    "day": "D",
    "hour": "h",
    "minute": "m",
    "second": "s",
    "millisecond": "ms",
    "microsecond": "us",
    "nanosecond": "ns",
}
"""Values of ``time_unit``, as NumPy writes them."""
_KINDS = ("single", "multi", "real")


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """The options of one data file. Options that are not set are ``None``.

    Attributes:
        id: the column of ``nodes.csv`` with node ids, or ``none`` if edges refer to row numbers, counted from 0.
        labels: ``single``, ``multi`` or ``real``.
        unlabelled: the value of ``y`` that means "no label", or ``none`` if every value is a label.
        time_unit: the unit to which dates and times are rounded down, one of :data:`UNITS`.
        keys: comma-separated columns of ``nodes.csv`` that are item attributes; the others are features.
    """

    id: str | None = None
    labels: str | None = None
    unlabelled: str | None = None
    time_unit: str | None = None
    keys: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str) -> FileOptions:
        """Build validated options from a mapping. Error messages start with ``where``.

        Raises:
            UsageError: an option is unknown or has an invalid value.
        """
        known = [field.name for field in fields(cls)]
        values: dict[str, str] = {}
        for name, value in given.items():
            if name not in known:
                close = nearest(name, known, 1)
                raise UsageError(
                    f"{where}: unknown option {quoted(name)}; {f'did you mean {close[0]}? ' if close else ''}expected one of "
                    f"{', '.join(known)}"
                )
            if value is None and name != "unlabelled":
                continue
            values[name] = _text(f"{where}: {name}", value)
        for name, allowed in (("labels", _KINDS), ("time_unit", tuple(UNITS))):
            if name in values and values[name] not in allowed:
                raise UsageError(f"{where}: {name} = {quoted(values[name])}; expected one of {', '.join(allowed)}")
        return cls(**values)

    @property
    def text(self) -> str:
        """The options that are set, as JSON. This is a hyperparameter of the data set and therefore part of the keys."""
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None}, sort_keys=True)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns listed in ``keys``."""
        return tuple(word.strip() for word in (self.keys or "").split(",") if word.strip())


def _text(where: str, value: Any) -> str:
    """Convert an option's value to text: ``-1``, ``-1.0`` and ``"-1"`` are equal, ``None`` is ``none``, and lists are joined by commas."""
    if value is None:
        return NONE
    if isinstance(value, (list, tuple)):
        return ",".join(_text(where, one) for one in value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return text_value(str(value) if isinstance(value, (int, float)) else value).strip()
    except ValueError as error:
        raise UsageError(f"{where} = {quoted(value)}: {error}") from None


def advice(name: str, *choices: str) -> str:
    """Explain how to set an option of the data set ``name`` to one of ``choices`` (such as ``unlabelled=-1``)."""
    return (
        f"say {' or '.join(choice.replace('=', ' = ') for choice in choices)} (--data-option {name}.{choices[0]}, [data_options.{name}] "
        "in a campaign, or an argument of cglsuite.run)"
    )
