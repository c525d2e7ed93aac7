"""A campaign's records as tidy tables, the starting point of every study."""

from __future__ import annotations
