"""The command line: one module per group of commands, each imported only when it is used."""

from __future__ import annotations

__all__: list[str] = []
