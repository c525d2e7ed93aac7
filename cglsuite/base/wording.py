"""Numbers in sentences: how many there are of something, and how large it is."""

from __future__ import annotations

__all__ = ["file_size", "several"]

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def several(n: int, noun: str, plural: str = "") -> str:
    """``1 cell``, ``2 cells``; ``plural`` where the noun takes more than an s.

    Example:
        >>> several(1, "seed"), several(0, "seed"), several(3, "child process runs", "child processes run")
        ('1 seed', '0 seeds', '3 child processes run')
    """
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def file_size(n_bytes: float) -> str:
    """Bytes as ``1.4 MB``: the largest decimal unit of which there is at least one.

    Example:
        >>> file_size(1_400_000), file_size(999)
        ('1.4 MB', '999 B')
    """
    return next((f"{n_bytes / unit:,.1f} {name}" for unit, name in _UNITS if n_bytes >= unit), f"{n_bytes:.0f} B")
