"""A campaign's records as tidy tables, from which every study starts."""

from __future__ import annotations
