"""Findings from all records in a store: which differences survive, how rankings change, and how much is gained for memory and time."""

from __future__ import annotations
