"""Helpers for commands that plugins provide: the catalogue, the store and output. Everything is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.cli.options import Session, open_store, pass_session, store_option
    from cglsuite.cli.output import echo, print_json, table

__all__ = ["Session", "echo", "open_store", "pass_session", "print_json", "store_option", "table"]

__getattr__, __dir__ = lazily(__name__, __file__)
