"""Find the source files of the suite that a cell's results depend on, by following imports through its plugins and numerical packages.

A record's key contains a digest of these files, so a change that can affect a result invalidates the cell, while adding a new method or
editing a comment does not. Names are followed to the module that *defines* them; packages that only re-export do not count. Modules count
by content (:mod:`cglsuite.cells.code.syntax`) and by the contents of their imports, not by path, so moving or renaming a module together
with its importers keeps the digest. All other code follows a simpler rule: see :mod:`cglsuite.cells.code.user`.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from cglsuite.base.hashing import digest
from cglsuite.cells.code.syntax import Import, Slice, Source, cut, parse
from cglsuite.cells.code.user import is_ours, places, plugin_packages, user_code

NUMERICAL_ROOMS = ("graphs", "protocols", "streams", "backbones", "problems", "learning")
SLICED = ("cglsuite.base.hashing", "cglsuite.specs")
"""Modules of which only the definitions in use count: seeds come from :func:`cglsuite.base.hashing.digest`."""
DECLARED = ("cglsuite.problems.adapters", "cglsuite.streams.measures.core")
"""Tables of names that are resolved at run time. The named objects are roots of a cell's key, so the tables are not part of it."""


@dataclass(frozen=True)
class Facts:
    """Facts about the code behind some roots: its ``digest``, and the user modules in it that import ``by_name``."""

    digest: str
    by_name: tuple[str, ...]


def closure_facts(roots: str | tuple[str, ...], rooms: tuple[str, ...] = NUMERICAL_ROOMS) -> Facts:
    """Return the :class:`Facts` about the code that is reached from ``"module"`` or ``"module:Object"`` roots.

    If all roots belong to the suite's own distributions, the facts come from the :class:`Closure`, which is read once per process;
    otherwise, they come from :func:`cglsuite.cells.code.user.user_code` and the current files.
    """
    names = (roots,) if isinstance(roots, str) else roots
    if all(map(is_ours, names)):
        return Facts(_suite_digest(names, rooms), ())
    code = user_code(names)
    return Facts(digest([code.digest, _suite_digest(code.ours, rooms) if code.ours else ""]), code.by_name)


@lru_cache(maxsize=256)  # a process imports only one version of the suite
def _suite_digest(roots: tuple[str, ...], rooms: tuple[str, ...]) -> str:
    return Closure(roots, Files(), rooms).digest


def closure_digest(roots: str | tuple[str, ...], rooms: tuple[str, ...] = NUMERICAL_ROOMS) -> str:
    """Return the SHA-256 (hex) of the code that is reached from ``roots``; see :func:`closure_facts`."""
    return closure_facts(roots, rooms).digest


def closure(roots: str | tuple[str, ...], rooms: tuple[str, ...] = NUMERICAL_ROOMS) -> list[tuple[str, Path]]:
    """Return the modules in the :class:`Closure` of ``roots`` with their files, sorted by name."""
    return sorted(Closure((roots,) if isinstance(roots, str) else roots, Files(), rooms).files.items())


class Files:
    """Finds modules without importing them.

    Args:
        folders: folders of top-level modules; ``None`` = Python's path.
    """

    def __init__(self, folders: Sequence[Path] | None = None) -> None:
        self.folders = None if folders is None else [str(folder) for folder in folders]
        self._found: dict[str, Path | None] = {}
        self._tops: dict[str, importlib.machinery.ModuleSpec | None] = {}

    def find(self, name: str) -> Path | None:
        """Return the source file of a module, or ``None`` if there is none."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def top(self, name: str) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a top-level module."""
        if name not in self._tops:
            try:
                spec = _find_top(name, self.folders)
            except (ImportError, ValueError):
                spec = None
            self._tops[name] = spec
        return self._tops[name]

    def _find(self, name: str) -> Path | None:
        top, *rest = name.split(".")
        spec = self.top(top)
        if spec is None:
            return None
        if not rest:
            path = Path(spec.origin or "")
            return path if path.suffix == ".py" and path.is_file() else None
        parent = self.find(name.rpartition(".")[0])
        if parent is not None and parent.name != "__init__.py":
            return None  # only packages have submodules
        for folder in spec.submodule_search_locations or ():
            place = Path(folder, *rest)
            for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                if path.is_file():
                    return path
        return None  # "from package import function": the last part is not a module


@dataclass
class Closure:
    """The modules of ``roots`` and their direct and indirect imports from the suite's plugins and from its ``rooms``.

    A root ``"module:Object"`` is followed to the module that defines the object. Imports inside functions count; imports under
    ``TYPE_CHECKING`` do not. Other libraries are not followed: the key contains only torch's version.
    """

    roots: tuple[str, ...]
    found_by: Files
    rooms: tuple[str, ...] = NUMERICAL_ROOMS
    files: dict[str, Path] = field(default_factory=dict)
    """Files by module, or by ``module:definition`` for modules of which only some definitions count."""

    def __post_init__(self) -> None:
        self._sources: dict[str, Source | None] = {}
        self._slices: dict[str, Slice] = {}
        self._links: dict[str, list[tuple[str, str, list[str]]]] = {}
        # A root's whole module counts, even if its object is a constant.
        waiting = [target.partition(":")[0] for root in self.roots for target in self._targets(*_split(root))]
        while waiting:
            name = waiting.pop()
            if name not in self.files and (path := self._place(name)) is not None:
                self.files[name] = path
                waiting += self._dependencies(name)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 (hex) of the contents of the modules and the imports between them."""
        if not self.files:
            return digest([])
        named = any(self._reads_its_name(name) for name in self.files)
        modules = [[*self._digest_parts(name), *([name] if named else [])] for name in self.files]
        return digest(sorted(modules))

    def _reads_its_name(self, name: str) -> bool:
        return ":" not in name and (source := self._source(name)) is not None and source.own_name

    def _digest_parts(self, name: str) -> list[Any]:
        links = self._links.get(name, [])
        return [self._content(name), sorted([bound, attribute, sorted(map(self._content, names))] for bound, attribute, names in links)]

    def _content(self, name: str) -> str:
        if ":" in name:
            return self._slice(name).content
        source = self._source(name)
        return "" if source is None else source.content

    # --- resolving names ----------------------------------------------------------------------------------------------------------

    def _dependencies(self, name: str) -> Iterator[str]:
        """Yield the dependencies of a module; also records its links."""
        yield from self._parents(name.partition(":")[0])
        source = self._slice(name) if ":" in name else self._source(name)
        for imported in source.linked if source is not None else ():
            targets = [t for t in self._targets(imported.module, imported.name) if self._place(t) is not None and t != name]
            if targets:
                self._links.setdefault(name, []).append((imported.bound, imported.name, targets))
                yield from targets

    def _parents(self, name: str) -> Iterator[str]:
        """Yield the enclosing packages of a module that compute something; for plugins, also their imports with side effects."""
        parts = name.split(".")
        for depth in range(1, len(parts)):
            parent = ".".join(parts[:depth])
            source = self._source(parent) if self._is_followed(parent) else None
            if source is None:
                continue
            if not source.facade:
                yield parent
            elif parts[0] != "cglsuite":
                yield from self._modules_with_effects(parent, set())

    def _modules_with_effects(self, name: str, met: set[str]) -> Iterator[str]:
        """Yield imports of the plugin's module ``name`` that do more than define names, since they may change other modules."""
        source = self._source(name) if name not in met and self._is_followed(name) else None
        met.add(name)
        if source is None or name.partition(".")[0] == "cglsuite":
            return
        if source.effects:
            yield name
        for imported in source.linked:
            yield from self._modules_with_effects(imported.module, met)
            if imported.name:
                yield from self._modules_with_effects(f"{imported.module}.{imported.name}", met)

    def _targets(self, module: str, name: str) -> list[str]:
        """Return the modules that define ``name`` in ``module``; for an empty ``name``, the module itself or everything that it
        re-exports."""
        return list(dict.fromkeys(self._resolve(module, name, frozenset())))

    def _resolve(self, module: str, name: str, via: frozenset[tuple[str, str]]) -> Iterator[str]:
        if (module, name) in via:
            return
        if module in SLICED or module.startswith(tuple(f"{s}." for s in SLICED)):
            if name and self._defines_elsewhere(module, name) is None:
                yield f"{module}:{name}"
                return
        elif not self._is_followed(module) and module != "cglsuite":
            return
        source = self._source(module)
        if source is None:
            return
        via |= {(module, name)}
        if name and name != "*":
            export = self._defines_elsewhere(module, name)
            if export is not None and (export.module, export.name) != (module, name):  # not "from . import part"
                yield from self._resolve(export.module, export.name, via)
                return
            if self.found_by.find(f"{module}.{name}") is not None:
                yield from self._resolve(f"{module}.{name}", "", via)
                return
        if name in source.constants and not source.effects:
            yield f"{module}:{name}"
        elif not source.facade:
            yield module
        elif module != "cglsuite" or name != "__version__":
            for export in source.exports:
                yield from self._resolve(export.module, export.name, via)

    def _defines_elsewhere(self, module: str, name: str) -> Import | None:
        """Return where a module imports ``name`` from, if it does."""
        source = self._source(module)
        exports = source.exports if source is not None else ()
        return next((e for e in exports if e.bound == name and (e.name or "." not in e.bound)), None)

    # --- what is followed ----------------------------------------------------------------------------------------------------------

    def _place(self, name: str) -> Path | None:
        module = name.partition(":")[0]
        return self.found_by.find(module) if ":" in name or self._is_followed(module) else None

    def _is_followed(self, name: str) -> bool:
        parts = name.split(".")
        if parts[0] == "cglsuite":
            return name not in DECLARED and any(f"{name}.".startswith(f"cglsuite.{room}.") for room in self.rooms)
        return is_ours(name)

    def _slice(self, name: str) -> Slice:
        if name not in self._slices:
            module, _, definition = name.partition(":")
            path = self.files[name]
            self._slices[name] = _cut(path, module.rpartition(".")[0], definition)
        return self._slices[name]

    def _source(self, name: str) -> Source | None:
        """Return the relevant parts of a module's source; ``None`` if there is none."""
        if name not in self._sources:
            path = self.found_by.find(name)
            package = name if path is not None and path.name == "__init__.py" else name.rpartition(".")[0]
            self._sources[name] = _parse_file(path, package) if path is not None else None
        return self._sources[name]


def _find_top(name: str, folders: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    return importlib.util.find_spec(name) if folders is None else importlib.machinery.PathFinder.find_spec(name, list(folders))


def _parse_file(path: Path, package: str) -> Source:
    state = path.stat()
    return _read_and_parsed(path, package, state.st_mtime_ns, state.st_size)


def _cut(path: Path, package: str, name: str) -> Slice:
    state = path.stat()
    return _read_and_cut(
        path, package if path.name != "__init__.py" else f"{package}.{path.parent.name}", name, state.st_mtime_ns, state.st_size
    )


@lru_cache(maxsize=4096)
def _read_and_cut(path: Path, package: str, name: str, mtime_ns: int, size: int) -> Slice:
    return cut(path.read_bytes(), package, name)


@lru_cache(maxsize=4096)  # the closures of a campaign's parts share most of their files
def _read_and_parsed(path: Path, package: str, mtime_ns: int, size: int) -> Source:
    return parse(path.read_bytes(), package)


def _split(root: str) -> tuple[str, str]:
    module, _, name = root.partition(":")
    return module, name.partition(".")[0]


# The rule by which keys covered user code before it had a rule of its own. If it still confirms a record, only the record's key is
# outdated. Modules of plugins were followed and digested like the suite's own, so messages, annotations and docstrings did not count.


def former_digest(roots: tuple[str, ...]) -> str | None:
    """Return the digest of the user's factory or builder ``roots[0]`` under the previous rule, computed from its current sources.

    Args:
        roots: as returned by :func:`cglsuite.cells.keys.references`. The plugin's module comes second and did not count as code under that
        rule.

    Returns:
        ``None`` if that rule ignored code that counts now: the user's other libraries, imports by computed names, compiled modules.
    """
    former, now = _PreviousRule(roots[:1], Files()), user_code(roots)
    if now.by_name or not former.files or not all(path.suffix == ".py" and former.followed(name) for name, path in now.files.items()):
        return None
    return former.digest


class _PreviousRule(Closure):
    def followed(self, name: str) -> bool:
        """Return whether the previous rule followed a module. It followed modules in a root's package or in a plugin, but not libraries."""
        top = name.partition(".")[0]
        if top == "cglsuite":
            return super()._is_followed(name)
        if top in (homes := {root.partition(":")[0].partition(".")[0] for root in self.roots}) or top in plugin_packages():
            return True
        return (home := _home(top)) not in _environment() and home in map(_home, homes) and top not in _installed_packages(tuple(sys.path))

    _is_followed = followed


def _home(top: str) -> Path | None:
    return next((place.resolve().parent for place in places(top)), None)


def _environment() -> set[Path | None]:
    return {None, *(Path(os.path.realpath(path)) for path in sysconfig.get_paths().values())}


@lru_cache(maxsize=1)
def _installed_packages(path: tuple[str, ...]) -> frozenset[str]:
    every = (file for distribution in importlib.metadata.distributions(path=list(path)) for file in distribution.files or ())
    return frozenset(file.parts[0].partition(".")[0] for file in every)
