"""Load a plugin in isolation: import it, check its hooks, call them, and check the results. A faulty plugin leaves no traces.

This module also checks the interface version for which a plugin was written, and describes its faults.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib
import importlib.util
import inspect
import os
import re
import reprlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from cglsuite.base.errors import UsageError, nearest
from cglsuite.base.hashing import plain
from cglsuite.host import hookspecs
from cglsuite.host.discovery import BLOCK, BUILT_IN, CORE, Candidate, Entry, PluginRecord, Status, normalised
from cglsuite.host.frozen import Stamp, stamp_of
from cglsuite.host.hookspecs import HOOKS, PROJECT
from cglsuite.specs import API_VERSION, KINDS, OLDEST_API_VERSION, Hyperparameter, PluginSpec

MAX_SPECS = 10_000
"""The largest number of specs from a hook. A hook that yields more is considered endless."""
Observer = Callable[[str], None]


def load_plugin(candidate: Candidate, observe: Observer = lambda stage: None) -> tuple[PluginRecord, tuple[Entry, ...]]:
    """Import a plugin and collect its specs. A faulty plugin results in a record with status ``failed`` and no entries.

    All exceptions of the plugin are caught, including ``SystemExit``; its prints go to stderr. After a fault, modules of its own package
    that were imported for it are removed from ``sys.modules``.

    Args:
        candidate: the plugin to load, after block and allow lists.
        observe: called with each stage before it starts (``"import"``, then each hook's name), for an observer in another process.

    Raises:
        KeyboardInterrupt: the user interrupted loading; the plugin is rolled back.
    """
    record = _record(candidate, "ok")
    before = set(sys.modules)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            _load_edited(candidate)
            specs, hooks = _load(candidate, observe)
    except KeyboardInterrupt:
        _forget_modules(candidate.module, before)
        raise
    except BaseException as error:  # noqa: BLE001 - the plugin boundary: recorded, and shown by the commands
        fault = error if isinstance(error, PluginFault) else PluginFault(error_line(error))
        failed = dataclasses.replace(
            record,
            status="failed",
            error=fault.text,
            fix=fault.fix or advice((error.__cause__ if error is fault else None) or error, candidate),
            details=traceback_of(error),
            source=_source(candidate.module),
        )
        _forget_modules(candidate.module, before)
        return failed, ()
    _remember_modules(candidate, before)
    provides = {kind: tuple(sorted(s.name for k, s in specs if k == kind)) for kind in KINDS if any(k == kind for k, _ in specs)}
    record = dataclasses.replace(record, hooks=hooks, provides=provides, source=_source(candidate.module))
    return record, tuple(Entry(kind=kind, name=spec.name, spec=spec, record=record) for kind, spec in specs)


_Loaded = dict[str, tuple[ModuleType, Stamp, bool]]
_LOADED: dict[tuple[str, str, str], _Loaded] = {}
"""The user modules present when each third-party plugin was loaded, with file stamps and whether they belong to the plugin."""


def _remember_modules(candidate: Candidate, before: AbstractSet[str]) -> None:
    """Remember the modules of a third-party plugin: those in its package and those in the same folder."""
    if normalised(candidate.distribution) in BUILT_IN:
        return
    top = candidate.module.partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None)
    folder = os.path.dirname(file) if file else None
    loaded = _LOADED.setdefault(candidate.key, {})
    for name, module in list(sys.modules.items()):
        place = getattr(module, "__file__", None)
        is_own = name.partition(".")[0] == top or (name not in before and folder is not None and os.path.dirname(place or "") == folder)
        if place and name not in loaded and (is_own or _may_be_edited(name, place)) and (stamp := stamp_of(place)) is not None:
            loaded[name] = module, stamp, is_own


def _load_edited(candidate: Candidate) -> None:
    """Reload a plugin's modules in place if one of their files, or a file that they may import, has been written since loading.

    Hooks then match the files, and a notebook's references to these modules remain valid.
    """
    known = {name: entry for name, entry in _LOADED.get(candidate.key, {}).items() if sys.modules.get(name) is entry[0]}
    edited = {name for name, (module, stamp, _) in known.items() if stamp_of(str(module.__file__)) != stamp}
    if not edited:
        return
    del _LOADED[candidate.key]
    importlib.invalidate_caches()
    for name, (module, _, belongs) in known.items():  # in the order of their first import
        if name in edited:
            with contextlib.suppress(OSError, TypeError):  # bytecode is told from the source by size and second only
                os.unlink(module.__cached__)
        if belongs:
            for left in [var for var in vars(module) if not (var.startswith("__") and var.endswith("__"))]:
                delattr(module, left)
        if belongs or name in edited:
            importlib.reload(module)


def _may_be_edited(name: str, path: str) -> bool:
    """Return whether the user may edit a module: its path is not that of a library, and it is not specific to this process."""
    top = name.partition(".")[0]
    return not (top in sys.stdlib_module_names or normalised(top) in BUILT_IN or top == "__main__" or "site-packages" in path)


@contextlib.contextmanager
def output_to_stderr() -> Iterator[None]:
    """Redirect file descriptor 1 to stderr, since stdout is reserved for the command's data."""
    try:
        sys.stdout.flush()
        stdout = os.dup(1)
    except (OSError, ValueError):  # no output to protect
        yield
        return
    try:
        with contextlib.suppress(OSError):
            os.dup2(2, 1)
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def blocked(candidate: Candidate, why: str, fix: str) -> PluginRecord:
    """Return the record of a plugin that must not be imported."""
    return dataclasses.replace(_record(candidate, "blocked"), error=why, fix=fix)


def _record(candidate: Candidate, status: Status) -> PluginRecord:
    return PluginRecord(
        distribution=candidate.distribution,
        version=candidate.version,
        entry_point=candidate.entry_point.name,
        module=candidate.module,
        status=status,
    )


def _load(candidate: Candidate, observe: Observer) -> tuple[list[tuple[str, PluginSpec]], tuple[str, ...]]:
    """Return (kind, spec) of everything that the plugin provides, and the hooks that it implements."""
    if candidate.problem:
        raise PluginFault(candidate.problem, candidate.remedy or f"reinstall {candidate.distribution}, or tell its authors")
    observe("import")
    plugin = _imported(candidate)
    check_declared(plugin, candidate)  # before any hook: one that fails may do so because it uses what this suite does not have yet
    implementations = _implementations(plugin)
    specs: dict[tuple[str, str], PluginSpec] = {}
    for hook, function in implementations:
        observe(hook)
        kind = HOOKS[hook]
        try:
            for spec in _call_hook(hook, function, candidate):
                if (kind, spec.name) in specs:
                    raise PluginFault(f"{hook} returns the name {spec.name!r} twice", f"its authors must give each {kind} a unique name")
                specs[kind, spec.name] = spec
        except PluginFault as fault:
            fault.function = fault.function or function
            raise
    provided = [(kind, spec) for (kind, _), spec in specs.items()]
    return provided, tuple(sorted({hook for hook, _ in implementations}))


def _imported(candidate: Candidate) -> Any:
    """Import the object that the entry point names; if that fails, an unsupported interface version is reported first."""
    try:
        return candidate.entry_point.load()
    except Exception:
        check_unimported(candidate)
        raise


def _implementations(plugin: Any) -> list[tuple[str, Callable[[], Any]]]:
    """Return (hook, function) for every valid hook implementation, sorted by hook.

    Every plugin has its own manager: hooks are called per plugin anyway, and a failed registration leaves no trace.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    _check_markers(manager, plugin)
    try:
        manager.register(plugin, name="plugin")
    except pluggy.PluginValidationError as error:
        lines = str(error).splitlines()
        what = ": ".join(line.removeprefix("hookimpl definition: ") for line in lines[-2:])
        named = re.match(r"\w+", what)
        function = getattr(plugin, named[0], None) if named else None
        raise PluginFault(f"bad signature: {what}", "declare hooks without arguments", function) from error
    implementations: list[tuple[str, Callable[[], Any]]] = []
    for caller in manager.get_hookcallers(plugin) or ():
        for implementation in caller.get_hookimpls():
            if caller.has_spec():
                _check_plain(caller.name, implementation)
                implementations.append((caller.name, implementation.function))
            elif not implementation.optionalhook:
                raise _unknown_hook(caller.name, implementation.function)
    if not implementations:
        raise PluginFault(
            f"implements no hook ({shown(plugin)} has no function marked with @hookimpl)",
            f"mark the functions with `from cglsuite import hookimpl`; the hooks are {', '.join(HOOKS)}",
        )
    return sorted(implementations, key=lambda pair: pair[0])


def _check_markers(manager: pluggy.PluginManager, plugin: Any) -> None:
    """Refuse a function with a hook's name but without the marker, which pluggy would silently ignore."""
    for name in dir(plugin):
        named_so = name.startswith(f"{PROJECT}_") and inspect.isroutine(inspect.getattr_static(plugin, name, None))
        if named_so and manager.parse_hookimpl_opts(plugin, name) is None:
            fix = f"put @hookimpl (from cglsuite import hookimpl) above def {name}"
            raise PluginFault(f"{name} is not marked as a hook", fix, getattr(plugin, name))


def _check_plain(hook: str, implementation: pluggy.HookImpl) -> None:
    if implementation.hookwrapper or implementation.wrapper:
        raise PluginFault(f"{hook} is a hook wrapper, and plugins must not change each other's results", "use a plain @hookimpl")


def _unknown_hook(name: str, function: Any) -> PluginFault:
    close = nearest(name, HOOKS, 1)
    known = f"did you mean {close[0]}?" if close else f"the hooks are {', '.join(HOOKS)}"
    fix = "rename it; a hook of a newer cglsuite is declared with @hookimpl(optionalhook=True)"
    return PluginFault(f"unknown hook {name}: {known}", fix, function)


def _call_hook(hook: str, function: Callable[[], Any], candidate: Candidate) -> Iterator[PluginSpec]:
    """Call a hook, and yield its checked specs in order.

    Raises:
        PluginFault: the hook raised, returned something else, or needs an interface that is too new or no longer supported.
    """
    wanted = KINDS[HOOKS[hook]]
    try:
        answer = function()
        items = list(islice(_iterate(hook, answer, wanted), MAX_SPECS + 1))
    except (KeyboardInterrupt, PluginFault):
        raise
    except BaseException as error:
        raise PluginFault(f"{hook} raised {error_line(error)}") from error
    if len(items) > MAX_SPECS:
        raise PluginFault(f"{hook} yields more than {MAX_SPECS} specs: it may be an infinite generator")
    for position, spec in enumerate(items):
        _check_type(hook, position, spec, wanted)
        _checked(f"item {position} of {hook}", partial(wanted.__post_init__, spec), "a subclass of a spec must not skip its validation")
        _check_spec(hook, spec, candidate)
        yield spec


def _iterate(hook: str, answer: Any, expected: type) -> Iterable[Any]:
    if isinstance(answer, PluginSpec):
        raise PluginFault(f"{hook} returned a single {type(answer).__name__}: expected an iterable of {expected.__name__}", "return [spec]")
    if answer is None:
        raise PluginFault(f"{hook} returned None: expected an iterable of {expected.__name__}", "return or yield the specs")
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise PluginFault(f"{hook} returned {shown(answer)}: expected an iterable of {expected.__name__}")
    return answer


def _check_type(hook: str, position: int, spec: Any, expected: type) -> None:
    if isinstance(spec, expected):
        return
    came = f"{hook} returned {shown(spec)} at position {position}: expected {expected.__name__}"
    right = next((h for h, kind in HOOKS.items() if isinstance(spec, KINDS[kind])), None)
    raise PluginFault(came, f"return it from {right}" if right else None)


def _check_spec(hook: str, spec: PluginSpec, candidate: Candidate) -> None:
    """Check the requirements of listing, hashing and display, which a spec's own validation does not cover."""
    what = f"{type(spec).__name__} {spec.name!r} of {hook}"
    check_interface(what, spec.api_version, candidate)
    if spec.replaces is not None and not isinstance(spec.replaces, str):
        raise PluginFault(f"{what}: replaces is {shown(spec.replaces)}, not the name of a distribution")
    if spec.replaces is not None and normalised(spec.replaces) == normalised(candidate.distribution):
        raise PluginFault(f"{what} replaces its own distribution", "replaces= must name the other distribution, whose entry is overridden")
    for field in dataclasses.fields(spec):
        _check_field(what, field.name, getattr(spec, field.name))
    _checked(what, lambda: hash(spec), "a spec must be hashable: use tuples instead of lists and dicts")


def _check_field(label: str, name: str, value: Any) -> None:
    if name == "hyperparameters":
        if not isinstance(value, tuple) or not all(isinstance(h, Hyperparameter) for h in value):
            raise PluginFault(f"{label}: {name} is {shown(value)}, not a tuple of Hyperparameter", "use a tuple, such as (x,) for one item")
        names = [h.name for h in value]
        if doubled := sorted({n for n in names if names.count(n) > 1}):
            raise PluginFault(f"{label}: {name} declares {', '.join(doubled)} twice")
    elif value is not None and type(value) not in (str, int, float, bool):
        _checked(label, lambda: plain(value), f"{name} must contain only plain values (text, numbers, booleans, and tuples of these)")


def _checked(label: str, check: Callable[[], Any], fix: str) -> None:
    try:
        check()
    except (TypeError, UsageError) as error:
        raise PluginFault(f"{label}: {error}", fix) from error


def _source(module: str) -> Path | None:
    """Return the outermost package folder of a module (except namespace packages), or else its file, or else ``None``."""
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        file = getattr(sys.modules.get(".".join(parts[:depth])), "__file__", None)
        if file:
            path = Path(file)
            return path.parent if path.name == "__init__.py" else path
    return None


def _forget_modules(module: str, before: set[str]) -> None:
    """Remove newly imported modules of the plugin's top-level package from ``sys.modules`` and from their parents."""
    top = module.partition(".")[0]
    if top == CORE or top in sys.stdlib_module_names:  # shared with other plugins: a second copy would do harm
        return
    for name in [n for n in sys.modules if n not in before and (n == top or n.startswith(top + "."))]:
        parent, _, child = name.rpartition(".")
        if parent in before and hasattr(sys.modules.get(parent), child):
            delattr(sys.modules[parent], child)
        del sys.modules[name]


# Which version of the plugin interface a plugin was made for, and whether this suite supports it; known before any hook is called.

CONSTANT = "API_VERSION"
"""The module constant in which a plugin declares the interface version that it was written for."""
_ABSENT = object()


def check_interface(label: str, version: Any, candidate: Candidate, *, name: str = "api_version") -> None:
    """Raise an error if this suite does not support an interface version.

    Args:
        label: the name of the plugin or spec in the message.
        version: the interface, a positive whole number.
        candidate: the plugin.
        name: the name of the number in the plugin.

    Raises:
        PluginFault: the version is not a positive whole number, too new, or no longer supported.
    """
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise PluginFault(
            f"{label}: {name} {shown(version)} is not a positive whole number", f"write {name} = {API_VERSION}, a plain number"
        )
    if version > API_VERSION:
        raise PluginFault(
            f"{label} needs plugin interface {version}, but this cglsuite has interface {API_VERSION}",
            f"upgrade cglsuite, or install a release of {candidate.distribution} that supports interface {API_VERSION}",
        )
    if version < OLDEST_API_VERSION:
        raise PluginFault(
            f"{label} was written for plugin interface {version}, but this cglsuite supports {OLDEST_API_VERSION} to {API_VERSION}",
            f"install a newer release of {candidate.distribution}, or a version of cglsuite that has interface {version}",
        )


def check_declared(plugin: Any, candidate: Candidate) -> None:
    """Check the interface version of an imported plugin, if it is declared by the entry point's object or else by its module.

    Raises:
        PluginFault: see :func:`check_interface`.
    """
    for place in (plugin, sys.modules.get(candidate.module)):
        version = getattr(place, CONSTANT, _ABSENT)
        if version is not _ABSENT:
            check_interface(candidate.distribution, version, candidate, name=CONSTANT)
            return


def check_unimported(candidate: Candidate) -> None:
    """Check the interface version of a plugin that cannot be imported, as stated in its source, since it may need a newer cglsuite.

    Raises:
        PluginFault: see :func:`check_interface`.
    """
    version = _constant_in_source(candidate.module)
    if version is not _ABSENT:
        check_interface(candidate.distribution, version, candidate, name=CONSTANT)


def _constant_in_source(module: str) -> Any:
    """Return the number that the source assigns to the constant at its top level, or the marker for an absent constant."""
    try:
        spec = importlib.util.find_spec(module)  # its parents were imported, or failed to be, before
        origin = None if spec is None else spec.origin
        tree = ast.parse(Path(origin).read_bytes()) if origin and origin.endswith(".py") else ast.Module([], [])
    except Exception:  # noqa: BLE001 - the import's own error is what the user needs to see
        return _ABSENT
    current = _ABSENT
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(t, ast.Name) and t.id == CONSTANT for t in targets):
            value = getattr(node, "value", None)
            current = value.value if isinstance(value, ast.Constant) else _ABSENT
    return current


# Describe a plugin's fault in one line, and its fix in another.

_HOST = str(Path(__file__).resolve().parent)
_SPECS = str(Path(__file__).resolve().parents[1] / "specs")
_LONGEST = 400
_UNKNOWN_KEYWORD = re.compile(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'")


class PluginFault(Exception):
    """A plugin broke its contract. This exception never leaves the host. With ``fix=None``, the general advice is used.

    ``function`` is the plugin's function that caused the fault, if known.
    """

    def __init__(self, error: str, fix: str | None = None, function: Any = None) -> None:
        super().__init__(error)
        self.error, self.fix, self.function = error, fix, function

    @property
    def text(self) -> str:
        """The error message with the function's file and line, unless it already states a location."""
        code = getattr(inspect.unwrap(self.function), "__code__", None) if callable(self.function) else None
        if code is None or ", line " in self.error:
            return self.error
        return f"{self.error} ({Path(code.co_filename).name}, line {code.co_firstlineno})"


def error_line(error: BaseException) -> str:
    """Format any exception as ``Type: message (file.py, line 3)``, even if its text cannot be shown."""
    if isinstance(error, SyntaxError) and error.filename:
        return _flat(f"{type(error).__name__}: {error.msg} ({Path(error.filename).name}, line {error.lineno})")
    text, where = _text(str, error, "(its message cannot be shown)"), _place(error)
    return _flat(f"{type(error).__name__}: {text}" if text else type(error).__name__) + (f" ({where})" if where else "")


def shown(value: Any) -> str:
    """Format an unexpected value as its type and shortened ``repr``. A class is described as a class."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, PluginSpec):
        return f"{type(value).__name__} {reprlib.repr(value.name)}"
    text = _text(reprlib.repr, value, "(which cannot be shown)")
    return _flat(text if text.startswith(type(value).__name__) else f"{type(value).__name__} {text}")


def _text(convert: Callable[[Any], str], value: Any, otherwise: str) -> str:
    try:
        return convert(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - foreign __str__ and __repr__; their failure is reported
        return otherwise


def traceback_of(error: BaseException) -> str:
    """Return the traceback as text, which keeps no frames alive."""
    return "".join(traceback.format_exception(error))


def advice(error: BaseException, candidate: Candidate) -> str:
    """Return advice on how a user can fix an exception raised by the plugin's code."""
    name, block = candidate.distribution, f"or block it: {BLOCK}={candidate.distribution}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        if error.name.partition(".")[0] == candidate.module.partition(".")[0]:
            return f"reinstall {name}: its entry point {candidate.entry_point.name!r} refers to a missing module; {block}"
        return f"install the package that provides the module {error.name!r} (a dependency that {name} should declare), {block}"
    if meant := _keyword(error):
        return meant
    if isinstance(error, UsageError):  # a spec refused its values, and said what it expects
        place = _place(error) or candidate.module
        return f"if you are its author, correct the value ({place}); otherwise try another version of {name}, {block}"
    if isinstance(error, SystemExit):
        return f"its authors must not exit the process on import or in hooks; try another version of {name}, {block}"
    return f"try another version of {name} and tell its authors, {block}"


def _keyword(error: BaseException) -> str:
    """Return the correction for a keyword that a spec does not accept, or an empty string for any other error."""
    match = _UNKNOWN_KEYWORD.match(_text(str, error, "")) if isinstance(error, TypeError) else None
    spec = next((kind for kind in (*KINDS.values(), Hyperparameter) if match and kind.__name__ == match[1]), None)
    if match is None or spec is None:
        return ""
    takes = [field.name for field in dataclasses.fields(spec) if field.init]
    close = nearest(match[2], takes, 1)
    known = f"did you mean {close[0]}=?" if close else f"it accepts {', '.join(takes)}."
    return f"{spec.__name__} has no {match[2]}=: {known} A keyword that was added in a newer interface needs a newer cglsuite"


def _place(error: BaseException) -> str:
    """Return ``file.py, line 3`` of the innermost frame outside the suite and the import machinery, else outside the host, if any."""
    frames = [
        frame
        for frame in reversed(traceback.extract_tb(error.__traceback__))
        if not frame.filename.startswith(("<", _HOST)) and "importlib" not in Path(frame.filename).parts
    ]
    frame = next((frame for frame in frames if not frame.filename.startswith(_SPECS)), frames[0] if frames else None)
    return "" if frame is None else f"{Path(frame.filename).name}, line {frame.lineno}"


def _flat(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
