"""Findings over everything in a store: which differences survive, how rankings change, and what memory and seconds buy."""

from __future__ import annotations
