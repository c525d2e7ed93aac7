"""The reproduction ledger, which compares published values with ours."""

from __future__ import annotations
