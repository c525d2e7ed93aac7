"""Frozen user code. When cells are planned, their code is copied to a bundle of source files in the store, from which worker processes
import.

A plan lists the modules with the digests of their files, and ``STORE/code`` contains each file once, by digest. In a worker, a finder
provides these modules and no others from their top-level packages, so the planned code runs even if the files change in the meantime.
Bytecode caches are neither read nor written. ``__file__`` and tracebacks refer to the original path, and :mod:`linecache` contains the
planned text, so that ``inspect.getsource`` shows the code that runs.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import linecache
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import StoreError
from cglsuite.base.traces import random_state_restored

CODE = "code"
Stamp = tuple[int, int, int, int] | None
"""The size, modification and change time (ns), and inode of a file; None if the file does not exist."""
_EXTENSIONS = tuple(importlib.machinery.EXTENSION_SUFFIXES)


def stamp_of(path: str | Path) -> Stamp:
    """Return the stamp of a file, which changes whenever the file is written."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A module in a bundle, with the SHA-256 (hex) of its file and the file's original path."""

    sha256: str
    path: str

    @property
    def is_package(self) -> bool:
        """Whether this module is a package."""
        return Path(self.path).name.partition(".")[0] == "__init__"


@dataclass(frozen=True)
class Bundle:
    """The modules of a plan by name, the folder that contains their files by digest, and the modules that this process has imported from
    it.
    """

    modules: Mapping[str, Planned]
    folder: Path
    served: set[str] = field(default_factory=set, repr=False)
    _contents: dict[str, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def keep(cls, files: Mapping[str, tuple[Path, bytes]], store: Path) -> Bundle:
        """Create a bundle, and write the files that are missing from the store.

        Args:
            files: modules by name, each with its path and content.

        Raises:
            StoreError: the store cannot be written.
        """
        folder, modules = store / CODE, {}
        for name, (path, content) in files.items():
            sha256 = hashlib.sha256(content).hexdigest()
            modules[name] = Planned(sha256=sha256, path=str(path))
            place = folder / _name(modules[name])
            if not place.exists():
                write_atomic(place, content, top=store)
        return cls(modules, folder)

    @classmethod
    def from_json(cls, data: Mapping[str, Sequence[str]], store: Path) -> Bundle:
        """Create the bundle from the output of :meth:`to_json`."""
        return cls({name: Planned(sha256=sha256, path=path) for name, (sha256, path) in data.items()}, store / CODE)

    def to_json(self) -> dict[str, list[str]]:
        """Return the bundle as JSON-serialisable values."""
        return {name: [module.sha256, module.path] for name, module in self.modules.items()}

    @property
    def top_level_names(self) -> set[str]:
        """The names of the top-level modules and packages."""
        return {name.partition(".")[0] for name in self.modules}

    def content(self, name: str) -> bytes:
        """Return the content of a module's file.

        Raises:
            StoreError: the store does not have the file, or its content does not match its digest.
        """
        if name not in self._contents:
            planned = self.modules[name]
            place = self.folder / _name(planned)
            try:
                content = place.read_bytes()
            except OSError as error:
                raise StoreError(f"{place} cannot be read ({error}): it contains the module {name} of this plan") from error
            if hashlib.sha256(content).hexdigest() != planned.sha256:
                raise StoreError(f"{place} has changed and no longer matches its digest, so the module {name} is not imported")
            self._contents[name] = content
        return self._contents[name]

    def submodules(self, name: str) -> list[str]:
        """Return the modules whose names begin with ``name`` and a dot."""
        return [module for module in self.modules if module.startswith(f"{name}.")]


def stored_source(store: Path, sha256: str) -> bytes | None:
    """Return the content of the user's file with this digest from a store, or ``None`` if it is missing or has a different digest."""
    for place in (store / CODE / sha256[:2]).glob(f"{sha256}.*"):
        if hashlib.sha256(content := place.read_bytes()).hexdigest() == sha256:
            return content
    return None


def _name(planned: Planned) -> str:
    """Return the name of a file in the store: its digest, with a suffix that Python can load."""
    ending = next((e for e in _EXTENSIONS if planned.path.endswith(e)), Path(planned.path).suffix)
    return f"{planned.sha256[:2]}/{planned.sha256}{ending}"


class _Source(importlib.machinery.SourceFileLoader):
    """Loads a module from a bundle, under its original path."""

    def __init__(self, name: str, bundle: Bundle) -> None:
        super().__init__(name, bundle.modules[name].path)
        self._bundle = bundle

    def get_data(self, path: str) -> bytes:
        return self._bundle.content(self.name) if path == self.path else super().get_data(path)

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        self._bundle.served.add(self.name)
        lines = importlib.util.decode_source(source).splitlines(keepends=True)
        linecache.cache[self.path] = (len(source), None, lines, self.path)  # no time: never read from the disk
        code: CodeType = self.source_to_code(source, self.path)
        return code


class _Finder:
    """Find the modules of a bundle, and hide other user modules from their code."""

    def __init__(self, bundle: Bundle, is_user_module: Callable[[str], bool]) -> None:
        self.bundle, self.is_user_module = bundle, is_user_module
        self.top_level_names = bundle.top_level_names
        self.looking = False

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name.partition(".")[0] not in self.top_level_names:
            if path is None and not self.looking and self._imported_by_user() and self._is_users(name):
                raise ModuleNotFoundError(
                    f"No module named {name!r} in the code that was planned: it is imported under a name that is known only at run time. "
                    f"Add 'import {name}' where the method is defined",
                    name=name,
                )
            return None
        planned = self.bundle.modules.get(name)
        if planned is None:
            if self.bundle.submodules(name):  # a namespace
                spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = _library_portions(name, path)
                return spec
            if path and name.rpartition(".")[0] not in self.bundle.modules:
                return None  # of a library that shares the namespace
            raise ModuleNotFoundError(f"No module named {name!r} in the code that was planned", name=name)
        inside = [str(Path(planned.path).parent)] if planned.is_package else None
        loader: Any = _Source(name, self.bundle)
        if not planned.path.endswith(".py"):
            self.bundle.content(name)  # its digest is checked
            self.bundle.served.add(name)
            place = str(self.bundle.folder / _name(planned))
            sourceless = place.endswith(".pyc")
            loader = (importlib.machinery.SourcelessFileLoader if sourceless else importlib.machinery.ExtensionFileLoader)(name, place)
        return importlib.util.spec_from_file_location(name, planned.path, loader=loader, submodule_search_locations=inside)

    def _imported_by_user(self) -> bool:
        """Return whether the importing code is a module of the bundle or a class loaded by value, rather than a library that they use."""
        frame = sys._getframe(2)
        while frame.f_back is not None and _imports(str(frame.f_globals.get("__name__"))):
            frame = frame.f_back
        top = str(frame.f_globals.get("__name__")).partition(".")[0]
        return top in self.top_level_names or (top == "__main__" and frame.f_globals is not vars(sys.modules["__main__"]))

    def _is_users(self, name: str) -> bool:
        self.looking = True  # it looks for the module, too
        try:
            return self.is_user_module(name)
        finally:
            self.looking = False


def _imports(module: str) -> bool:
    """Return whether a module belongs to Python's import machinery, or to the finder that precedes this one while a cell runs."""
    return module.partition(".")[0] == "importlib" or module == random_state_restored.__module__


def _library_portions(name: str, path: Sequence[str] | None) -> list[str]:
    """Return the folders of a namespace package that contain libraries, from which imports still work."""
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    return [place for place in (spec.submodule_search_locations or () if spec is not None else ()) if _is_installed(place)]


def _is_installed(path: str) -> bool:
    return "site-packages" in Path(path).parts


_ACTIVE: list[Bundle] = []


def active() -> Bundle | None:
    """Return the bundle from which this process imports, or ``None``."""
    return _ACTIVE[-1] if _ACTIVE else None


def serve(bundle: Bundle, is_user_module: Callable[[str], bool] = lambda name: False) -> None:
    """Make this process import from a bundle. It must not have imported any of the bundle's modules or serve another bundle.

    Args:
        is_user_module: returns whether a top-level name is user code. Modules of the bundle cannot import user code that it lacks.

    Raises:
        StoreError: this process has already imported one of the modules or serves another bundle.
    """
    if active() is not None or (there := sorted(bundle.top_level_names & sys.modules.keys())):
        raise StoreError(
            f"this process has already imported {', '.join(there) if active() is None else 'modules from another bundle'}; use a "
            "new process"
        )
    if bundle.modules:
        _ACTIVE.append(bundle)
        sys.meta_path.insert(0, _Finder(bundle, is_user_module))
