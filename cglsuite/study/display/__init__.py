"""What objects show of themselves in a notebook, built beside them: objects find it by name, and no room below imports it."""

from __future__ import annotations
