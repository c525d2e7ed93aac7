"""Files that lie beside the package in the repository and travel inside it in a wheel: notebooks, example campaigns, the template."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def shipped(package: str, relative: str) -> Path:
    """What is at ``relative`` inside a package; for ``_x/y`` in an editable install, which maps nothing, ``x/y`` beside the package."""
    folder = Path(str(resources.files(package)))
    inside = folder / relative
    return inside if inside.exists() else folder.parent / relative.removeprefix("_")
