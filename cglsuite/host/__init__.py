"""The plugin host: hooks, discovery, isolated loading, and the catalogue. It does not import torch."""

from __future__ import annotations

from cglsuite.host.catalogue import Catalogue, Collision, load_catalogue
from cglsuite.host.discovery import GROUP, Entry, PluginRecord, find_entry_points
from cglsuite.host.hookspecs import HOOKS, hookimpl

__all__ = ["GROUP", "HOOKS", "Catalogue", "Collision", "Entry", "PluginRecord", "find_entry_points", "hookimpl", "load_catalogue"]
