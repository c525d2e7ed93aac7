"""Entry points of installed distributions. They are parsed line by line, so that one malformed line does not hide the others.

``importlib.metadata`` raises a TypeError at the first such line in any distribution.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.metadata import Distribution, EntryPoint

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # otherwise the first model fails at that line too
_SECTION = re.compile(r"\[(.*)\]")


def entry_points(group: str, path: Sequence[str] | None = None) -> list[EntryPoint]:
    """Return the entry points in a group that name a module, using the first copy of each distribution on ``path`` (default:
    ``sys.path``)."""
    seen: set[str] = set()
    points: list[EntryPoint] = []
    for distribution in metadata.distributions(path=list(sys.path if path is None else path)):
        if f"[{group}]" not in entry_points_text(distribution):
            continue
        name = re.sub(r"[-_.]+", "-", str(distribution.metadata["Name"])).lower()
        if name not in seen:
            seen.add(name)
            points += [point for point in declared(distribution)[0] if point.group == group and EntryPoint.pattern.match(point.value)]
    return points


def declared(distribution: Distribution) -> tuple[list[EntryPoint], list[str]]:
    """Return the entry points and the malformed lines of a distribution's ``entry_points.txt``."""
    group, points, malformed = "", [], []
    for line in map(str.strip, entry_points_text(distribution).splitlines()):
        name, equals, value = line.partition("=")
        if not line or line.startswith("#"):
            continue
        if section := _SECTION.fullmatch(line):
            group = section[1].strip()
        elif equals and name.strip() and group:
            point = EntryPoint(name=name.strip(), value=value.strip(), group=group)
            vars(point).update(dist=distribution)  # as importlib.metadata does
            points.append(point)
        else:
            malformed.append(line)
    return points, malformed


def entry_points_text(distribution: Distribution) -> str:
    """Return the text of ``entry_points.txt``, or an empty string if it is missing or unreadable."""
    try:
        return distribution.read_text("entry_points.txt") or ""
    except Exception:  # noqa: BLE001 - third-party metadata and finders; an unreadable file declares nothing
        return ""
