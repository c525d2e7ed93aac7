"""Gives these tests the fixture ``site``: real plugin distributions on disk."""

from __future__ import annotations

from plugin_sites import site

__all__ = ["site"]
