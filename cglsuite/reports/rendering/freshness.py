"""Whether a rendered page is still up to date: a fingerprint of all its inputs.

It covers every record and search of the store (a notebook may read more of it than its campaign plans), the notebook and its parameters,
the files that those name, the installed versions of the core's dependencies, and the sources of the core and the loaded plugins.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.hashing import digest
from cglsuite.base.inputs import read_regular
from cglsuite.cells.device import resolve_device
from cglsuite.cells.storage.store import Store

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

__all__ = ["file_digest", "kept_status", "page_fingerprint", "surroundings"]

_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_DATA_ENDINGS = (".csv", ".css", ".js", ".j2", ".json", ".toml")


def surroundings(store: Path, catalogue: Catalogue) -> str:
    """Fingerprint (hex) of the inputs that all pages of one run share: records, versions, code, kind of device."""
    return digest([list(_records(store)), _versions(), list(_sources(catalogue)), resolve_device("auto")])


def page_fingerprint(shared: str, notebook: Path, title: str, parameters: Mapping[str, Any], folders: tuple[Path, ...] = ()) -> str:
    """Fingerprint of one page (hex).

    Args:
        shared: :func:`surroundings`. notebook: its file. parameters: as passed to it.
        folders: where to look for files named by parameters, besides the current folder; the content of such a file counts.

    Raises:
        TypeError: a parameter that is not JSON.
    """
    named = {text: file_digest(path) for text in _texts(parameters) for path in _files(text, folders)}
    return digest([shared, file_digest(notebook), title, parameters, named])


def kept_status(page: Path, status: Path, fingerprint: str) -> dict[str, Any] | None:
    """The content of a page's status file if the page is a complete report with this fingerprint and unchanged since; else None."""
    try:
        content = json.loads(read_regular(status))
        wanted = {"status": "done", "fingerprint": fingerprint, "sha256": file_digest(page)}
        return content if isinstance(content, dict) and all(content.get(name) == value for name, value in wanted.items()) else None
    except (OSError, ValueError):
        return None


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's content."""
    return hashlib.sha256(read_regular(path)).hexdigest()


def _records(store: Path) -> Iterator[tuple[str, str]]:
    for key, sha256 in Store(store).digests():
        yield f"cells/{key}.json", sha256
    for path in sorted((store / "searches").glob("*.json")):
        with contextlib.suppress(FileNotFoundError):  # replaced or renamed at this moment
            yield f"searches/{path.name}", file_digest(path)


def _versions() -> dict[str, str]:
    """The versions of Python and of every distribution that the core requires."""
    names = {match[0] for line in importlib.metadata.requires("cglsuite") or () if (match := _REQUIREMENT.match(line))}
    versions = {"python": platform.python_version()}
    for name in sorted(names):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:  # a dependency a dependency of an extra that is not installed
            continue
    return versions


def _sources(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    core = Path(__file__).parents[2]
    data = sorted(path for path in core.rglob("*") if path.suffix in _DATA_ENDINGS and path.is_file())
    yield "cglsuite", _source_digest(core, *data)
    for record in catalogue.records:
        source = record.source
        own = source is not None and source.exists() and core not in (source, *source.parents)
        yield f"{record.label} {record.entry_point} {record.status}", _source_digest(source) if own and source is not None else ""


def _source_digest(*roots: Path) -> str:
    """SHA-256 (hex) over the Python sources below ``roots`` (relative names and contents, line ends folded)."""
    total = hashlib.sha256()
    for root in roots:
        files = [root] if root.is_file() else sorted(root.rglob("*.py"), key=lambda p: p.relative_to(root).as_posix())
        for file in files:
            name = file.name if file == root else file.relative_to(root).as_posix()
            total.update(f"{root.name}/{name}\0".encode())
            total.update(file.read_bytes().replace(b"\r\n", b"\n"))
            total.update(b"\0")
    return total.hexdigest()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


def _files(text: str, folders: tuple[Path, ...]) -> Iterator[Path]:
    """The first file of that name."""
    if not text or len(text) > 4096 or "\0" in text:
        return
    for folder in (Path(), *folders):
        path = folder / text
        try:
            if path.is_file():
                yield path
                return
        except OSError:  # not a path, for example because the name is too long
            return
