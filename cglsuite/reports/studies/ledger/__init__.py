"""The reproduction ledger: published values next to ours."""

from __future__ import annotations
