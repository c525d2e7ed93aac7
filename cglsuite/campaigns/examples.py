"""Campaigns that come with the suite and need no data: the demonstration, and what stands in ``reports/examples``."""

from __future__ import annotations

from pathlib import Path

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.graphs.files.shipped import shipped

__all__ = ["examples", "write_example"]


def examples() -> dict[str, Path]:
    """The file of every example, by name."""
    folder = shipped("cglsuite", "_reports")
    return {path.stem: path for path in sorted([folder / "demo.toml", *folder.glob("examples/*.toml")])}


def write_example(name: str, folder: Path) -> Path:
    """Write the file of an example into a folder, unless it is there already, and return its path.

    Raises:
        UnknownNameError: no example has this name.
        UsageError: another file does.
    """
    known = examples()
    if name not in known:
        raise UnknownNameError("example", name, known)
    path, content = folder / f"{name}.toml", known[name].read_bytes()
    if not path.exists():
        write_atomic(path, content, option="cd")
    elif not path.is_file() or path.read_bytes() != content:
        raise UsageError(
            f"{path} exists and differs from the example: run it as `cglsuite run {path}`, or run the example in another folder"
        )
    return path
