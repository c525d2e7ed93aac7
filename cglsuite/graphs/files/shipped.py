"""Files that are next to the package in the repository and inside it in a wheel: notebooks, example campaigns and the template."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def shipped(package: str, relative: str) -> Path:
    """Return the path of ``relative`` inside a package. In an editable install, ``_x/y`` becomes ``x/y`` next to the package."""
    folder = Path(str(resources.files(package)))
    inside = folder / relative
    return inside if inside.exists() else folder.parent / relative.removeprefix("_")
