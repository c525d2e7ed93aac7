"""User code: find its modules and their imports, and compute a digest of their sources.

User code is all code that is not Python's, the suite's, or a library installed from an index. Everything in its sources counts except
comments and layout. This includes docstrings, annotations, ``__repr__``, ``__all__`` and everything that a package's ``__init__`` imports,
since code may read any of them. The digest covers the names and contents of modules, but not paths or dates, so that an author's checkout,
the wheel built from it and a reviewer's copy have the same digest.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from cglsuite.base.entry_points import entry_points
from cglsuite.base.hashing import digest
from cglsuite.cells.code.syntax import absolute, imported_literally, imports_by_name, text_of
from cglsuite.host.discovery import BUILT_IN, GROUP
from cglsuite.host.frozen import Stamp, active, stamp_of

_ENDINGS = (*importlib.machinery.EXTENSION_SUFFIXES, ".py", ".pyc")  # in Python's search order


def is_ours(module: str) -> bool:
    """Return whether ``"module"`` or ``"module:Object"`` belongs to the suite's own distributions."""
    return re.split("[.:]", module, maxsplit=1)[0].replace("_", "-") in BUILT_IN


@dataclass(frozen=True)
class UserCode:
    """The closure of some roots within user code.

    Attributes:
        files: the file of every module, by name.
        contents: SHA-256 (hex) of the part of each module that counts, by name.
        digest: SHA-256 (hex) over names and contents; the caller adds that of :attr:`ours`.
        ours: what the code uses of the suite's own distributions, as ``"module"`` or ``"module:name"``, sorted.
        by_name: modules that import or execute code by computed names; their whole packages are included.
        sources: the bytes of each module's file, by name, from which the digest is computed.
        stamps: the state of the files and folders when they were inspected.
    """

    files: dict[str, Path]
    contents: dict[str, str]
    digest: str
    ours: tuple[str, ...]
    by_name: tuple[str, ...]
    sources: dict[str, bytes] = field(repr=False)
    stamps: dict[Path, Stamp] = field(repr=False)

    @property
    def current(self) -> bool:
        """Whether all files are unchanged since they were read."""
        return all(stamp_of(path) == stamp for path, stamp in self.stamps.items())


_KNOWN: dict[tuple[tuple[str, ...], tuple[str, ...]], UserCode] = {}


def user_code(roots: Iterable[str]) -> UserCode:
    """Return the user code that is reached from ``"module"`` or ``"module:Object"``. It is read again if one of its files was written since
    the last call.

    A worker reads the code as planned: see :mod:`cglsuite.host.frozen`.

    Raises:
        SyntaxError: a module is not valid Python; the message names the file.
    """
    key = tuple(sorted({root.partition(":")[0] for root in roots})), tuple(sys.path)
    if (known := _KNOWN.get(key)) is None or not known.current:
        known = _KNOWN[key] = _Reader(key[0]).read()
    return known


def files_to_freeze(roots: Iterable[str]) -> dict[str, tuple[Path, bytes]]:
    """Return the files, by module, that must exist wherever this code runs: the code that is reached from ``roots`` and the packages of its
    plugins.
    """
    code = user_code(roots)
    files = {name: (path, code.sources[name]) for name, path in code.files.items()}
    for top in {name.partition(".")[0] for name in files} & plugin_packages():
        for name, path in _modules_below(top, places(top)):
            if name not in files:
                files[name] = path, path.read_bytes()
    return dict(sorted(files.items()))


# --- which modules ---------------------------------------------------------------------------------------------------------------------


def is_user_module(name: str) -> bool:
    """Return whether a module is user code."""
    top = name.partition(".")[0]
    if is_ours(top) or top in sys.builtin_module_names or top == "__main__":
        return False
    bundle = active()
    return (bundle is not None and top in bundle.top_level_names) or not _is_library(top, places(top))


def places(top: str) -> tuple[Path, ...]:
    """Return the locations of a top-level module: its file, or the folders of a package."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return ()
    if spec is None:
        return ()
    if spec.submodule_search_locations is not None:
        return tuple(Path(folder) for folder in spec.submodule_search_locations)
    return (Path(spec.origin),) if spec.origin and spec.has_location else ()


def _is_library(top: str, paths: Sequence[Path]) -> bool:
    """Return whether a module belongs to a library: it is in a folder of installed distributions, and came from an index."""
    if not paths:
        return True
    if top in plugin_packages():
        return False
    return all(_is_standard_library(place) or top in _installed_by_pip(place.parent, stamp_of(place.parent)) for place in paths)


@lru_cache(maxsize=1)
def _standard_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(os.path.realpath(paths[name]) for name in ("stdlib", "platstdlib"))


def _is_standard_library(path: Path) -> bool:
    parent = os.path.realpath(path.parent)
    return parent in _standard_folders() or (os.path.basename(parent) == "lib-dynload" and os.path.dirname(parent) in _standard_folders())


@lru_cache(maxsize=64)
def _installed_by_pip(folder: Path, stamp: Stamp) -> frozenset[str]:
    """Return the top-level modules in a folder that distributions from an index have installed, according to their file lists."""
    modules_installed = set[str]()
    try:
        infos = [entry for entry in os.scandir(folder) if entry.name.endswith(".dist-info")]
    except OSError:
        return frozenset()
    for info in infos:
        if not _is_local_install(Path(info.path)):
            try:
                content = Path(info.path, "RECORD").read_bytes()
            except OSError:
                continue
            modules_installed |= {
                top.decode("utf-8", "replace").partition(".")[0] for top in re.findall(rb'^"?([^/,\n"]+)', content, re.MULTILINE)
            }
    return frozenset(modules_installed)


def _is_local_install(info: Path) -> bool:
    """Return whether a distribution was installed directly from a folder, an archive or a repository."""
    try:
        facts = json.loads((info / "direct_url.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict)


def plugin_packages() -> frozenset[str]:
    """Return the top-level packages and modules of every installed distribution with our entry point, including plugins that build on other
    plugins.
    """
    return _plugin_packages(tuple((folder, stamp_of(Path(folder))) for folder in sys.path))


@lru_cache(maxsize=4)
def _plugin_packages(stamped_path: tuple[tuple[str, Stamp], ...]) -> frozenset[str]:
    packages = set[str]()
    for point in entry_points(GROUP):
        packages.add(point.module.partition(".")[0])
        files = (point.dist.files if point.dist is not None else None) or ()
        packages |= {file.parts[0].removesuffix(".py") for file in files if file.suffix == ".py"}
    return frozenset(name for name in packages if name.isidentifier()) - {"cglsuite"}


# --- reading them ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Module:
    """The relevant parts of a module's source: its content, its imports (``(module, names)``), and whether it imports by computed names."""

    content: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    by_name: bool


class _Reader:
    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = roots
        self.files: dict[str, Path] = {}
        self.contents: dict[str, str] = {}
        self.ours = set[str]()
        self.by_name = set[str]()
        self.sources: dict[str, bytes] = {}
        self.bundle = active()
        self.stamps: dict[Path, Stamp] = {}
        self._user: dict[str, bool] = {}
        self._places: dict[str, tuple[Path, ...]] = {}

    def read(self) -> UserCode:
        waiting = list(self.roots)
        met = set[str]()
        while waiting:
            name = waiting.pop()
            if name in met:
                continue
            met.add(name)
            if is_ours(name):
                self.ours.add(name)
            elif self._is_user(name) and (path := self._find(name)) is not None:
                waiting += self._register(name, path)
        facts = sorted([name, content] for name, content in self.contents.items())
        absent = sorted(root for root in self.roots if self._is_user(root) and root not in self.files)
        return UserCode(
            dict(sorted(self.files.items())),
            dict(sorted(self.contents.items())),
            digest([facts, [[name, _releases(name)] for name in absent]]),
            tuple(sorted(self.ours)),
            tuple(sorted(self.by_name)),
            self.sources,
            self.stamps,
        )

    def _register(self, name: str, path: Path) -> Iterator[str]:
        """Register a module and yield the modules that it leads to."""
        parent = name.rpartition(".")[0]
        if parent:
            yield parent
        self.files[name] = path
        source = self.sources[name] = self._read(name, path)
        if path.suffix != ".py":
            self.contents[name] = digest([path.name, hashlib.sha256(source).hexdigest()])
            return
        package = name if path.name == "__init__.py" else parent
        try:
            module = _parse(source, package, str(path))
        except SyntaxError:
            if name in self.roots:
                raise
            module = _Module(hashlib.sha256(source).hexdigest(), (), False)  # a different version of Python may read it
        self.contents[name] = module.content
        for origin, names in module.imports:
            if is_ours(origin):
                self.ours.update([f"{origin}:{name}" for name in names if name != "*"] or [origin])
                continue
            parts = origin.split(".")
            yield from (".".join(parts[: n + 1]) for n in range(len(parts)))
            yield from (f"{origin}.{name}" for name in names if name != "*")
            if "*" in names and self._is_user(origin):  # a package may name its modules in __all__
                yield from (name for name in self._all_modules(parts[0]) if name.startswith(f"{origin}."))
        if module.by_name:
            self.by_name.add(name)
            yield from self._all_modules(name.partition(".")[0])

    def _read(self, name: str, path: Path) -> bytes:
        if self.bundle is not None and name in self.bundle.modules:
            return self.bundle.content(name)
        self._is_regular_file(path)
        return path.read_bytes()

    def _all_modules(self, top: str) -> Iterator[str]:
        """Yield every module of a package."""
        if self.bundle is not None and top in self.bundle.top_level_names:
            return iter([top, *self.bundle.submodules(top)])
        return (name for name, _ in _modules_below(top, self._top(top)))

    def _is_user(self, name: str) -> bool:
        top = name.partition(".")[0]
        if top not in self._user:
            self._user[top] = is_user_module(top)
            for folder in () if self._top(top) else sys.path:  # where it may appear
                self._is_regular_file(Path(folder))
        return self._user[top]

    def _top(self, top: str) -> tuple[Path, ...]:
        if top not in self._places:
            self._places[top] = places(top)
        return self._places[top]

    def _find(self, name: str) -> Path | None:
        top, *rest = name.split(".")
        if self.bundle is not None and top in self.bundle.top_level_names:
            return Path(self.bundle.modules[name].path) if name in self.bundle.modules else None
        for place in self._top(top):
            if not place.is_dir():
                self._is_regular_file(place.parent)
                if not rest and place.is_file():
                    return place
                continue
            target = place.joinpath(*rest)
            self._is_regular_file(target.parent if rest else target)
            candidates = [target / f"__init__{ending}" for ending in _ENDINGS]
            candidates += [target.with_name(target.name + ending) for ending in _ENDINGS] if rest else []
            for path in candidates:
                if path.is_file():
                    self._is_regular_file(path.parent)
                    return path
        return None

    def _is_regular_file(self, path: Path) -> None:
        if path not in self.stamps:
            self.stamps[path] = stamp_of(path)


def _modules_below(top: str, folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield every module of a package with its file, from all of the package's folders."""
    for place in folders:
        for path in sorted(place.rglob("*")) if place.is_dir() else ():
            if path.name.endswith(_ENDINGS) and "__pycache__" not in path.parts:
                inside = path.relative_to(place)
                steps = [*inside.parts[:-1], *([] if inside.name == "__init__.py" else [inside.name.partition(".")[0]])]
                if all(step.isidentifier() for step in steps):
                    yield ".".join([top, *steps]), path


@lru_cache(maxsize=4096)
def _parse(source: bytes, package: str, path: str) -> _Module:
    try:
        tree = ast.parse(source, filename=path)
    except (SyntaxError, ValueError) as error:
        raise SyntaxError(f"{path}: {error}") from error
    imports = dict[str, set[str]]()
    by_name = False
    nodes = list(ast.walk(tree))
    aliases = {a.asname: a.name for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                imports.setdefault(alias.name, set())
        elif isinstance(node, ast.ImportFrom):
            imports.setdefault(absolute(node.module, node.level, package), set()).update(alias.name for alias in node.names)
        elif isinstance(node, ast.Call):
            for call in (node, _by_first_name(node, aliases)):
                by_name = by_name or imports_by_name(call)
                if (literal := imported_literally(call)) is not None:
                    imports.setdefault(literal, set())
    for node in nodes:  # the text omits missing parts, but missing parts can differ
        if isinstance(node, ast.arguments):
            node.kw_defaults = [default or ast.Pass() for default in node.kw_defaults]  # type: ignore[misc]
        elif isinstance(node, ast.Dict):
            node.keys = [key or ast.Pass() for key in node.keys]  # type: ignore[misc]
    try:
        content = hashlib.sha256(text_of(tree).encode("utf-8", "surrogatepass")).hexdigest()
    except RecursionError:  # a sum of many hundred terms: its layout counts as well
        content = hashlib.sha256(source).hexdigest()
    return _Module(content, tuple(sorted((origin, tuple(sorted(names))) for origin, names in imports.items() if origin)), by_name)


def _by_first_name(call: ast.Call, aliases: Mapping[str, str]) -> ast.Call:
    """Rewrite a call of a function imported under another name to the function's original name."""
    if not (isinstance(call.func, ast.Name) and call.func.id in aliases):
        return call
    return ast.Call(func=ast.Name(id=aliases[call.func.id], ctx=ast.Load()), args=call.args, keywords=call.keywords)


def _releases(module: str) -> list[str]:
    """Return the distributions of a top-level package with versions, in place of the content of packages without readable files."""
    names = importlib.metadata.packages_distributions().get(module.partition(".")[0], [])
    return sorted(f"{name} {importlib.metadata.version(name)}" for name in set(names))
