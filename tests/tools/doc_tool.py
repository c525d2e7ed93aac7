"""The modules of docs/tools, which mkdocs finds by the hooks in mkdocs.yml and tests by this."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["TOOLS", "tool"]

TOOLS = Path(__file__).resolve().parents[2] / "docs" / "tools"


def tool(name: str) -> ModuleType:
    """A module of docs/tools."""
    if str(TOOLS) not in sys.path:
        sys.path.insert(0, str(TOOLS))
    return importlib.import_module(name)
