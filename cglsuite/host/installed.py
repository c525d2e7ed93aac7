"""Where a distribution's code was imported from: its installed copy, the folder of an editable install, or another copy in front of it."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

__all__ = ["installation"]


def installation(distribution: str, source: Path) -> str:
    """How the code of a distribution came to be at ``source``: ``"editable"``, ``"installed"``, or in front of which copy it lies."""
    copies = [_home(copy) for copy in importlib.metadata.distributions(name=distribution)]
    for word, home in sorted(copies):
        if source.resolve().is_relative_to(home):
            return word
    return f"not the {copies[0][0]} copy in {copies[0][1]}" if copies else "not installed"


def _home(copy: importlib.metadata.Distribution) -> tuple[str, Path]:
    facts = json.loads(copy.read_text("direct_url.json") or "{}")
    if facts.get("dir_info", {}).get("editable"):
        return "editable", Path(url2pathname(urlsplit(facts["url"]).path)).resolve()
    return "installed", Path(str(copy.locate_file(""))).resolve()
