"""The suite's exceptions. Each message states what was given, what was expected, where it came from and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "BudgetError",
    "CglsuiteError",
    "CollisionError",
    "DataAbsentError",
    "DataError",
    "DivergenceError",
    "LeakError",
    "NotApplicable",
    "PluginError",
    "ReportError",
    "SpecError",
    "StoreError",
    "UnknownNameError",
    "UsageError",
    "nearest",
]


class CglsuiteError(Exception):
    """Base class of all exceptions raised by the suite. ``exit_code`` is the exit status of the command line."""

    exit_code = 1


class UsageError(CglsuiteError):
    """The request itself is invalid, for example an unknown key, a bad value or an unreadable campaign file."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name is not in the catalogue; the message suggests the closest names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        known = sorted(known)
        close = nearest(name, known)
        if close:
            advice = "Did you mean " + " or ".join(repr(c) for c in close) + "?"
        elif known and len(known) <= 12:
            advice = "Known: " + ", ".join(known) + "."
        elif known:
            advice = f"There are {len(known)}; the command `cglsuite list` prints them."
        else:
            advice = "There are none. Is the plugin that provides it installed? The extra cglsuite[all] installs the built-in ones."
        super().__init__(f"unknown {kind} {name!r}. {advice}" + (f" {hint}" if hint else ""))
        self.kind, self.name, self.suggestions = kind, name, close


class SpecError(UsageError):
    """A spec, hyperparameter or switch has a value that its declaration does not allow."""


class NotApplicable(CglsuiteError):
    """The combination is impossible (N/A in published tables). The message gives the reason."""

    exit_code = 3


class PluginError(CglsuiteError):
    """A plugin broke its contract."""

    exit_code = 4


class CollisionError(PluginError):
    """Two distributions provide the same name."""


class DataError(CglsuiteError):
    """Data are missing, truncated, or not what the loader expects."""


class DataAbsentError(DataError):
    """Raw data files are not on this machine and were not downloaded."""


class StoreError(CglsuiteError):
    """The result store cannot be read or written."""


class LeakError(CglsuiteError):
    """A method accessed something that it must not: hidden labels, shared tensors, or, during prediction, its own state."""


class UncleanError(CglsuiteError):
    """Plugin code changed the global state of the process, or left threads or processes running."""


class BudgetError(CglsuiteError):
    """A method requested more metered memory than the scenario's budget allows."""


class DivergenceError(CglsuiteError):
    """The loss or the parameters became non-finite."""


class ReportError(CglsuiteError):
    """A notebook could not be rendered to a complete report."""


def said(error: BaseException, max_chars: int = 500) -> str:
    """Return the text of an error, cut to ``max_chars`` characters, even if the error's ``__str__`` raises."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as second:  # noqa: BLE001 - ``__str__`` of a third-party error may raise anything
        text = f"its text cannot be read ({type(second).__name__})"
    return shortened(text, max_chars)


def shortened(text: str, max_chars: int) -> str:
    """Return ``text``, cut with ``…`` to ``max_chars`` characters."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def nearest(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Return up to ``n`` known names that are closest to ``name``, ignoring case, best match first."""
    lowered = {k.lower(): k for k in known}
    lower_name = name.lower()
    # Swapped letters come first: "lsit" is as close to "site" as to "list" otherwise.
    alike = sorted(
        difflib.get_close_matches(lower_name, lowered, n=n + len(lowered), cutoff=0.55), key=lambda m: sorted(m) != sorted(lower_name)
    )
    return [lowered[m] for m in alike[:n]]
