"""Hyper-parameters chosen by search on validation average performance; written from the outcome of reports/begin-nc-search.toml."""

from __future__ import annotations

__all__ = ["CHOSEN"]

CHOSEN: dict[str, dict[str, dict[str, object]]] = {}
