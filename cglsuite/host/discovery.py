"""Find installed plugins and decide which of them may be loaded. Also defines plugin records and catalogue entries.

Whether a plugin may be loaded is decided from its metadata alone, before any import.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import metadata
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any, Literal, Protocol, overload
from urllib.parse import urlsplit
from urllib.request import url2pathname

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.entry_points import declared, entry_points_text
from cglsuite.base.environment import variable
from cglsuite.base.errors import DataError, nearest
from cglsuite.base.hashing import plain
from cglsuite.base.markup import displayed
from cglsuite.graphs.files.named import plugin_files
from cglsuite.host.frozen import active
from cglsuite.specs import Hyperparameter, PluginSpec
from cglsuite.specs.switch import fields_with_level

GROUP = "cglsuite"
CORE = "cglsuite"
_OURS = ("dask", "drift", "graph", "link", "methods", "metrics", "node", "skeleton", "slurm", "text")
BUILT_IN = frozenset({CORE, *(f"{CORE}-{name}" for name in _OURS)})
"""The suite's own distributions. All others are third-party, and no two of those share a process (see the docs on trust)."""
BLOCK = "CGLSUITE_PLUGINS_BLOCK"
ALLOW = "CGLSUITE_PLUGINS_ALLOW"
STRICT = "CGLSUITE_STRICT"
_UNKNOWN = "unknown"
_VALUE = re.compile(r"[\w.]+\s*(:\s*[\w.]+\s*)?(\[.*\])?\s*")
_log = logging.getLogger(__name__)


def normalised(distribution: str) -> str:
    """Normalise a distribution's name as packaging tools do: lower case, with runs of ``-_.`` replaced by one ``-``."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An entry point or file that may be a plugin. ``problem`` is the reason why it cannot be loaded, and ``remedy`` says how to fix it."""

    distribution: str
    version: str
    entry_point: EntryPoint
    problem: str | None = None
    remedy: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity and sort key of the candidate: (distribution, entry-point name, entry-point value)."""
        return normalised(self.distribution), self.entry_point.name, self.entry_point.value

    @property
    def module(self) -> str:
        """The dotted name of the module in the entry point."""
        return re.split(r"[:\[]", self.entry_point.value)[0].strip()


@dataclass(frozen=True)
class Gate:
    """Block and allow lists of distributions, by normalised name. ``allow=None`` allows all.

    The core's own distribution need not be in ``allow``, but it can be blocked.
    """

    block: frozenset[str]
    allow: frozenset[str] | None

    @classmethod
    def from_environment(cls, block: Iterable[str] = (), allow: Iterable[str] | None = None) -> Gate:
        """Combine the given lists with those in the environment. Block lists are merged, and an allow list replaces that of the
        environment.
        """
        blocked = [*block, *_names(os.environ.get(BLOCK, ""))]
        allowed = list(allow) if allow is not None else _names(os.environ.get(ALLOW, "")) or None
        if allowed is not None:
            allowed += [path.name for path in plugin_files()]  # who names a file wants it
        return cls(frozenset(map(normalised, blocked)), None if allowed is None else frozenset(map(normalised, allowed)))

    def refusal(self, distribution: str) -> tuple[str, str] | None:
        """Return (reason, remedy) if plugins of this distribution must not be imported, or ``None`` if they may be."""
        name = normalised(distribution)
        if name in self.block:
            return "blocked: it is in the block list", f"remove {distribution} from {BLOCK} (or from the argument block=) to load it"
        if self.allow is not None and name not in self.allow and name != CORE:
            return "blocked: it is not in the allow list", f"add {distribution} to {ALLOW} (or to the argument allow=) to load it"
        return None

    def warn_of_unknown(self, installed: Iterable[str]) -> None:
        """Warn about listed names without an installed plugin, since a misspelt block would have no effect."""
        known = {normalised(name) for name in installed} | {CORE}
        for word, listed in (("block", self.block), ("allow", self.allow or frozenset())):
            for name in sorted(listed - known):
                close = nearest(name, known, 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                _log.warning("the %s list names %r, which is not an installed plugin%s", word, name, hint)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def strict_by_environment() -> bool:
    """Return whether ``CGLSUITE_STRICT`` requests strict mode."""
    return variable(STRICT) is True


def find_entry_points(path: Sequence[str] | None = None) -> list[EntryPoint]:
    """Return the entry points in the group ``cglsuite`` of every distribution on ``path`` (default: ``sys.path``).

    If a distribution is installed several times, the first copy on the path counts, since it is the one that Python imports. Two
    distributions may use the same entry-point name. The metadata of distributions without this group are never parsed.
    """
    where = list(sys.path if path is None else path)
    distributions: dict[str, Distribution] = {}
    for number, distribution in enumerate(metadata.distributions(path=where)):
        if f"[{GROUP}]" in entry_points_text(distribution):
            name, _ = _identity(distribution)
            distributions.setdefault(normalised(name) if name else f" unnamed {number}", distribution)
    entry_points: list[EntryPoint] = []
    for name, distribution in distributions.items():
        # The first copy on the path may be another release, which shadows this one and may have no plugin.
        active = distribution if name.startswith(" ") else next(iter(metadata.distributions(name=name, path=where)), distribution)
        entry_points.extend(point for point in declared(active)[0] if point.group == GROUP)
    return entry_points


def _malformed() -> list[Candidate]:
    """Return a failing candidate for every distribution whose ``entry_points.txt`` has a malformed line.

    Such a line would also make importing torch fail, since torch looks for backends in entry points unless this is disabled.
    """
    candidates: list[Candidate] = []
    for distribution in metadata.distributions():
        if lines := declared(distribution)[1]:
            name, version = _identity(distribution)
            folder = getattr(distribution, "_path", distribution.locate_file(""))  # of other finders: where the code is
            problem = f"{folder}/entry_points.txt: the line {lines[0]!r} is not an entry point; expected name = module:object"
            point = EntryPoint(name="entry_points.txt", value="malformed", group=GROUP)
            remedy = f"reinstall {name or 'the distribution'}, or tell its authors"
            candidates.append(
                Candidate(distribution=name or "(unnamed)", version=version or _UNKNOWN, entry_point=point, problem=problem, remedy=remedy)
            )
    if candidates:
        os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    return candidates


def find_candidates(entry_points: Iterable[EntryPoint] | None = None) -> list[Candidate]:
    """Return the candidates for ``entry_points`` (default: all installed ones), sorted by :attr:`Candidate.key` and without duplicates."""
    points = find_entry_points() if entry_points is None else entry_points
    candidates: dict[tuple[str, str, str], Candidate] = {}
    others = [*_malformed(), *map(_of_file, plugin_files())] if entry_points is None else []
    for candidate in [*map(_candidate, points), *others]:
        candidates.setdefault(candidate.key, candidate)
    return [candidates[key] for key in sorted(candidates)]


def _of_file(path: Path) -> Candidate:
    """Return the candidate for a user's module. Its folder is appended to ``sys.path``, so that it can import helpers from there."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
        importlib.invalidate_caches()
    problem, bundle = None, active()
    try:
        spec = importlib.util.find_spec(path.stem)
        origin = spec.origin if spec is not None and spec.has_location else None  # "built-in" and "frozen" are no paths
        if origin is None or (origin != str(path) and not os.path.samefile(origin, path)):
            problem = f"the module name {path.stem!r} is taken by {origin or 'a built-in module'}"
        planned = bundle is not None and path.stem in bundle.modules
        content = bundle.modules[path.stem].sha256 if bundle is not None and planned else DataRoot.from_environment().sha256(path)
        version = f"sha256-{content[:12]}"
    except (DataError, OSError, ImportError, ValueError) as error:
        problem, version = f"it cannot be read: {error}", _UNKNOWN
    point = EntryPoint(name=FILE, value=path.stem, group=GROUP)
    return Candidate(distribution=path.name, version=version, entry_point=point, problem=problem, remedy=f"rename {path.name}")


def _candidate(entry_point: EntryPoint) -> Candidate:
    """Return the candidate of an entry point. Never raises, since faults of the metadata go into ``problem``."""
    distribution = entry_point.dist
    malformed = (
        None if _VALUE.fullmatch(entry_point.value) else f"its entry point {entry_point.name} = {entry_point.value} does not name a module"
    )
    if distribution is None:  # created directly, as in a notebook or a test
        top = entry_point.value.partition(":")[0].partition(".")[0].strip()
        return Candidate(distribution=top.replace("_", "-"), version=_UNKNOWN, entry_point=entry_point, problem=malformed)
    name, version = _identity(distribution)
    problem = malformed if name else f"its metadata in {distribution.locate_file('')} have no name"
    return Candidate(distribution=name or "(unnamed)", version=version or _UNKNOWN, entry_point=entry_point, problem=problem)


def _identity(distribution: Distribution) -> tuple[str, str]:
    """Return the name and version, which are empty if the metadata lack them or cannot be read."""
    try:
        header = distribution.metadata.json  # parsed on every access
        return str(header.get("name", "")), str(header.get("version", ""))
    except Exception:  # noqa: BLE001 - foreign metadata through foreign finders; unreadable ones are reported as unnamed
        return "", ""


FILE = "file"
"""The entry-point name of plugins from a user's file, which belong to no installed distribution."""

Status = Literal["ok", "failed", "blocked"]


@dataclass(frozen=True, kw_only=True)
class PluginRecord:
    """The identity and state of a plugin (one entry point of a distribution), and how to fix a fault.

    ``error`` is a one-line description of the fault (or of why the plugin is blocked), ``fix`` says how to fix it, and ``details`` is the
    traceback, if there is one. ``source`` is the plugin's outermost package folder, or its file if it is a single module. ``provides`` maps
    a kind to names.
    """

    distribution: str
    version: str
    entry_point: str
    module: str
    status: Status
    hooks: tuple[str, ...] = ()
    error: str | None = None
    fix: str | None = None
    details: str | None = None
    source: Path | None = None
    provides: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def label(self) -> str:
        """``"distribution version"``, as shown in messages."""
        return f"{self.distribution} {self.version}"

    @property
    def from_file(self) -> bool:
        """Whether this plugin is a file named by the user (``--plugin``, ``--data``). The version of such a plugin is the hash of its
        content.
        """
        return self.entry_point == FILE

    @property
    def installation(self) -> str:
        """``"editable"``, ``"installed"``, ``"plugin file"``, or a note that another copy was imported. It is empty if there is no file."""
        if self.from_file or self.source is None:
            return "plugin file" if self.from_file else ""
        return installation(self.distribution, self.source)

    def as_json(self) -> dict[str, Any]:
        """Return the record as a JSON-serialisable dictionary with one key per field."""
        return {f.name: _json(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PluginRecord:
        """Create the object from the output of :meth:`as_json`."""
        source, provides = data["source"], data["provides"]
        return cls(
            **{
                **data,
                "hooks": tuple(data["hooks"]),
                "source": None if source is None else Path(source),
                "provides": {kind: tuple(names) for kind, names in provides.items()},
            }
        )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One name in the catalogue: its kind, its spec, and the plugin that provides it."""

    kind: str
    name: str
    spec: PluginSpec
    record: PluginRecord

    @property
    def provider(self) -> str:
        """``"distribution version"`` of the plugin."""
        return self.record.label

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} of {self.provider}>"

    def _repr_html_(self) -> str:
        return displayed("entry_card", self)

    def describe(self) -> dict[str, Any]:
        """Return the entry as JSON-serialisable values: name, kind, provider, version, summary, then every other field of the spec."""
        head = {"name": self.name, "kind": self.kind, "provider": self.record.distribution, "version": self.record.version}
        spec = {f.name: _json(value) for f, value in fields_with_level(self.spec)}
        return {**head, "summary": spec.pop("summary"), **{k: v for k, v in spec.items() if k not in head}}


def _json(value: Any) -> Any:
    if isinstance(value, Hyperparameter):
        shown = {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.name != "kind"}
        return {**shown, "type": value.type.__name__}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [_json(v) for v in value]
    return plain(value)


# The kinds of a catalogue as read-only mappings whose names can be completed.

_MAX_NAMES = 8


class _Catalogue(Protocol):
    def get(self, kind: str, name: str) -> Entry: ...

    def names(self, kind: str) -> list[str]: ...


class KindView(Mapping[str, Entry]):
    """The entries of one kind in a catalogue, sorted by name. IPython completes names after ``catalogue.methods["``.

    ``view[name]`` raises the same errors as :meth:`cglsuite.Catalogue.get`.
    """

    def __init__(self, catalogue: _Catalogue, kind: str) -> None:
        self._catalogue, self.kind = catalogue, kind

    def __getitem__(self, name: str) -> Entry:
        return self._catalogue.get(self.kind, name)

    def __contains__(self, name: object) -> bool:
        return name in self._catalogue.names(self.kind)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the entry with this name, or ``default`` if no plugin or more than one provides it."""
        return self[name] if name in self else default  # noqa: SIM401 - this is the implementation of get

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalogue.names(self.kind))

    def __len__(self) -> int:
        return len(self._catalogue.names(self.kind))

    def __repr__(self) -> str:
        return f"<{len(self)} {self.kind}s: {some_names(list(self)) or 'none'}>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _repr_html_(self) -> str:
        return displayed("kind_card", self)


class KindViewOf:
    """A descriptor for the attribute of a catalogue that contains the entries of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.__doc__ = f"The {kind}s by name."

    @overload
    def __get__(self, catalogue: None, owner: type) -> KindViewOf: ...

    @overload
    def __get__(self, catalogue: _Catalogue, owner: type) -> KindView: ...

    def __get__(self, catalogue: _Catalogue | None, owner: type) -> KindView | KindViewOf:
        return self if catalogue is None else KindView(catalogue, self.kind)


def some_names(names: list[str]) -> str:
    """Format the first few names and the number of remaining ones."""
    left = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {left} more" if left > 0 else "")


# Where a distribution's code was imported from: its installed copy, the folder of an editable install, or another copy in front of it.


def installation(distribution: str, source: Path) -> str:
    """Describe how the code of a distribution at ``source`` is installed: ``"editable"``, ``"installed"``, or which other copy it
    shadows."""
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
