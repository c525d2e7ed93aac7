"""Convert dates and times to whole numbers. ISO text is converted to UTC if it has a time zone, and optionally rounded to a unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cglsuite.base.errors import DataError
from cglsuite.base.inputs import quoted
from cglsuite.graphs.files.options import UNITS

Array = np.ndarray[Any, Any]
_ISO = re.compile(
    r"(?P<day>\d{4}-\d{2}(?:-\d{2})?)"
    r"(?:[Tt ](?P<clock>\d{2}(?::\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?) ?(?P<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)
_MOST = 2**53  # above this, neighbouring integers share one float


def parsed_times(texts: Sequence[str], place: Callable[[int], str]) -> Array:
    """Parse ISO dates and times into datetime64 [n]. Times with a time zone are converted to UTC.

    Args:
        texts: ISO text such as ``2021-01-05``, ``2021-01-05 10:30`` or ``2021-01-05T10:30:00.25+02:00``.
        place: describes the location of the i-th text for error messages.

    Raises:
        DataError: a text is empty or malformed, or only some texts have a time zone.
    """
    matches = [_ISO.fullmatch(text) for text in texts]
    zoned: int | None = None
    plain: int | None = None
    words, minutes = [], np.zeros(len(texts), np.int64)
    for number, (text, match) in enumerate(zip(texts, matches, strict=True)):
        if match is None:
            what = (
                "it is empty"
                if not text or text == "NaT"
                else f"{quoted(text)} is no ISO date or time such as 2021-03-05 or 2021-03-05T10:30Z"
            )
            raise DataError(
                f"{place(number)}: {what}; every item needs a time, and times must be either all ISO dates or all whole numbers"
            )
        zone = match["zone"]
        if zone:
            zoned = number if zoned is None else zoned
        elif match["clock"]:
            plain = number if plain is None else plain
        if zone and zone not in "Zz":
            digits = zone[1:].replace(":", "")
            minutes[number] = (int(digits[:2]) * 60 + int(digits[2:] or 0)) * (-1 if zone[0] == "-" else 1)
        words.append(match["day"] + ("T" + match["clock"].replace(",", ".") if match["clock"] else ""))
    if zoned is not None and plain is not None:
        raise DataError(
            f"{place(plain)}: {quoted(texts[plain])} has no time zone, but {quoted(texts[zoned])} has one; expected a time zone in "
            "all times or in none"
        )
    unit = "ns" if any(len(word.partition(".")[2]) > 6 for word in words) else "us"
    try:
        times = np.array(words, dtype=f"datetime64[{unit}]")
    except ValueError:
        wrong = next(number for number, word in enumerate(words) if not _valid(word))
        raise DataError(f"{place(wrong)}: {quoted(texts[wrong])} is not a valid time") from None
    if unit == "ns" and (wrapped := times.astype("datetime64[Y]") != np.array([word[:4] for word in words], "datetime64[Y]")).any():
        raise DataError(
            f"{place(_first(wrapped))}: {quoted(texts[_first(wrapped)])} is out of range; times in nanoseconds must be between the "
            "years 1677 and 2262"
        )
    return np.asarray(times - minutes.astype("timedelta64[m]"))


def is_time(text: str) -> bool:
    """Return whether a text has the form of an ISO date or time."""
    return _ISO.fullmatch(text) is not None


def _valid(word: str) -> bool:
    try:
        np.datetime64(word)
    except ValueError:
        return False
    return True


def time_numbers(where: str, values: Array, unit: str | None) -> tuple[Array, str]:
    """Convert the items' times to int64 [n] and return them with their unit, which is empty for plain numbers.

    Without ``unit``, dates become days since 1970, and times become seconds, or the coarsest smaller unit that represents them exactly.

    Raises:
        DataError: a time is NaT, NaN, not a whole number or too large, or a unit is set for plain numbers.
    """
    if values.dtype.kind == "M":
        if np.datetime_data(values.dtype)[0] in ("ps", "fs", "as"):
            raise DataError(f"{where}: times have dtype {values.dtype}; expected a resolution of nanoseconds or coarser, or whole numbers")
        if (missing := np.isnat(values)).any():
            raise DataError(f"{where}: the time of item {_first(missing)} is NaT ({int(missing.sum()):,} in all); every item needs a time")
        if unit is not None:
            return values.astype(f"datetime64[{UNITS[unit]}]").astype(np.int64), unit
        for name in ("day", "second", "millisecond", "microsecond"):
            coarse = values.astype(f"datetime64[{UNITS[name]}]")
            if (coarse == values).all():
                return coarse.astype(np.int64), name
        return values.astype("datetime64[ns]").astype(np.int64), "nanosecond"
    if unit is not None:
        raise DataError(
            f"{where}: time_unit = {unit} applies only to dates and times, but time contains numbers ({values.dtype}); remove the option"
        )
    if values.dtype.kind == "f":
        if (wrong := ~np.isfinite(values)).any():
            raise DataError(f"{where}: the time of item {_first(wrong)} is {values[wrong][0]}; every item needs a time")
        if (wrong := (values % 1 != 0) | (np.abs(values) > _MOST)).any():
            raise DataError(f"{where}: the time of item {_first(wrong)} is {values[wrong][0]}; expected whole numbers up to 2^53, or dates")
    if values.dtype.kind == "u" and values.size and int(values.max()) > np.iinfo(np.int64).max:
        raise DataError(f"{where}: time contains {values.max()}; expected whole numbers below 2^63")
    return values.astype(np.int64), ""


def _first(mask: Array) -> int:
    return int(np.flatnonzero(mask)[0])
