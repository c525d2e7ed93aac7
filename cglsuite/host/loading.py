"""Load one plugin in isolation: import it, check its hooks, call them, check their results; after a fault nothing of it remains."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import os
import re
import sys
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
from cglsuite.host.discovery import BUILT_IN, CORE, Candidate, normalised
from cglsuite.host.faults import PluginFault, advice, one_line, shown, traceback_of
from cglsuite.host.frozen import Stamp, stamp_of
from cglsuite.host.hookspecs import HOOKS, PROJECT
from cglsuite.host.interfaces import check_declared, check_interface, check_unimported
from cglsuite.host.plugin_records import Entry, PluginRecord, Status
from cglsuite.specs import KINDS, Hyperparameter, PluginSpec

__all__ = ["MOST_SPECS", "blocked", "load_plugin", "output_to_stderr"]

MOST_SPECS = 10_000
"""A hook that yields more specs than this is considered endless."""
Observer = Callable[[str], None]


def load_plugin(candidate: Candidate, observe: Observer = lambda stage: None) -> tuple[PluginRecord, tuple[Entry, ...]]:
    """Import a plugin and collect its specs; a faulty plugin gives a record with status ``failed`` and no entries.

    All exceptions of the plugin are caught, including ``SystemExit``; its prints go to stderr. After a fault, modules of its own package
    that were imported for it are removed from ``sys.modules``.

    Args:
        candidate: the plugin to load, after block and allow lists.
        observe: called with each stage before it starts (``"import"``, then each hook's name), for an observer in another process.

    Raises:
        KeyboardInterrupt: by the user; the plugin is rolled back.
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
        fault = error if isinstance(error, PluginFault) else PluginFault(one_line(error))
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
    _remember(candidate, before)
    provides = {kind: tuple(sorted(s.name for k, s in specs if k == kind)) for kind in KINDS if any(k == kind for k, _ in specs)}
    record = dataclasses.replace(record, hooks=hooks, provides=provides, source=_source(candidate.module))
    return record, tuple(Entry(kind=kind, name=spec.name, spec=spec, record=record) for kind, spec in specs)


_Loaded = dict[str, tuple[ModuleType, Stamp, bool]]
_LOADED: dict[tuple[str, str, str], _Loaded] = {}
"""By plugin of others, the modules that were there when it was loaded and are no library's: with what tells whether their files were
written since, and whether they are the plugin's own."""


def _remember(candidate: Candidate, before: AbstractSet[str]) -> None:
    """Note the modules of a plugin that is not built in: those of its package, and those beside it."""
    if normalised(candidate.distribution) in BUILT_IN:
        return
    top = candidate.module.partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None)
    folder = os.path.dirname(file) if file else None
    found = _LOADED.setdefault(candidate.key, {})
    for name, module in list(sys.modules.items()):
        place = getattr(module, "__file__", None)
        own = name.partition(".")[0] == top or (name not in before and folder is not None and os.path.dirname(place or "") == folder)
        if place and name not in found and (own or _may_be_edited(name, place)) and (stamp := stamp_of(place)) is not None:
            found[name] = module, stamp, own


def _load_edited(candidate: Candidate) -> None:
    """Load a plugin's modules again, in place, if a file of theirs or of what they may import was written since they were loaded.

    So hooks are those of the files, and a notebook's own names of these modules stay what they were.
    """
    known = {name: entry for name, entry in _LOADED.get(candidate.key, {}).items() if sys.modules.get(name) is entry[0]}
    edited = {name for name, (module, stamp, _) in known.items() if stamp_of(str(module.__file__)) != stamp}
    if not edited:
        return
    del _LOADED[candidate.key]
    importlib.invalidate_caches()
    for name, (module, _, own) in known.items():  # in the order of their first import
        if name in edited:
            with contextlib.suppress(OSError, TypeError):  # bytecode is told from the source by size and second only
                os.unlink(module.__cached__)
        if own:
            for left in [one for one in vars(module) if not (one.startswith("__") and one.endswith("__"))]:
                delattr(module, left)
        if own or name in edited:
            importlib.reload(module)


def _may_be_edited(name: str, place: str) -> bool:
    """Whether a module is no library's, by its place, and of no process alone."""
    top = name.partition(".")[0]
    return not (top in sys.stdlib_module_names or normalised(top) in BUILT_IN or top == "__main__" or "site-packages" in place)


@contextlib.contextmanager
def output_to_stderr() -> Iterator[None]:
    """Redirect writes to file descriptor 1 to stderr: stdout is for the command's data."""
    try:
        sys.stdout.flush()
        kept = os.dup(1)
    except (OSError, ValueError):  # no output to protect
        yield
        return
    try:
        with contextlib.suppress(OSError):
            os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def blocked(candidate: Candidate, why: str, fix: str) -> PluginRecord:
    """The record of a plugin that must not be imported."""
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
    """(kind, spec) of everything that the plugin provides, and the hooks that it implements."""
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
            for spec in _ask(hook, function, candidate):
                if (kind, spec.name) in specs:
                    raise PluginFault(f"{hook} returns the name {spec.name!r} twice", f"its authors must give each {kind} a unique name")
                specs[kind, spec.name] = spec
        except PluginFault as fault:
            fault.function = fault.function or function
            raise
    provided = [(kind, spec) for (kind, _), spec in specs.items()]
    return provided, tuple(sorted({hook for hook, _ in implementations}))


def _imported(candidate: Candidate) -> Any:
    """What the entry point names; where it cannot be imported, an interface that is out of range is the reason that counts."""
    try:
        return candidate.entry_point.load()
    except Exception:
        check_unimported(candidate)
        raise


def _implementations(plugin: Any) -> list[tuple[str, Callable[[], Any]]]:
    """(hook, function) of every valid hook implementation, sorted by hook.

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
    """Refuse a function with a hook's name but without the marker: pluggy would ignore it silently."""
    for name in dir(plugin):
        named_so = name.startswith(f"{PROJECT}_") and inspect.isroutine(inspect.getattr_static(plugin, name, None))
        if named_so and manager.parse_hookimpl_opts(plugin, name) is None:
            fix = f"put @hookimpl (from cglsuite import hookimpl) above def {name}"
            raise PluginFault(f"{name} is not marked as a hook", fix, getattr(plugin, name))


def _check_plain(hook: str, implementation: pluggy.HookImpl) -> None:
    if implementation.hookwrapper or implementation.wrapper:
        raise PluginFault(f"{hook} is a wrapper, and plugins must not change each other's answers", "use a plain @hookimpl")


def _unknown_hook(name: str, function: Any) -> PluginFault:
    close = nearest(name, HOOKS, 1)
    known = f"did you mean {close[0]}?" if close else f"the hooks are {', '.join(HOOKS)}"
    fix = "rename it; a hook of a newer cglsuite is declared with @hookimpl(optionalhook=True)"
    return PluginFault(f"unknown hook {name}: {known}", fix, function)


def _ask(hook: str, function: Callable[[], Any], candidate: Candidate) -> Iterator[PluginSpec]:
    """The checked specs of a hook, in its order.

    Raises:
        PluginFault: it raised, returned something else, or needs an interface that is too new or no longer supported.
    """
    wanted = KINDS[HOOKS[hook]]
    try:
        answer = function()
        items = list(islice(_iterate(hook, answer, wanted), MOST_SPECS + 1))
    except (KeyboardInterrupt, PluginFault):
        raise
    except BaseException as error:
        raise PluginFault(f"{hook} raised {one_line(error)}") from error
    if len(items) > MOST_SPECS:
        raise PluginFault(f"{hook} yields more than {MOST_SPECS} specs: it seems to be endless")
    for position, spec in enumerate(items):
        _check_type(hook, position, spec, wanted)
        _checked(f"item {position} of {hook}", partial(wanted.__post_init__, spec), "a subclass of a spec must not skip its validation")
        _check_spec(hook, spec, candidate)
        yield spec


def _iterate(hook: str, answer: Any, wanted: type) -> Iterable[Any]:
    if isinstance(answer, PluginSpec):
        raise PluginFault(f"{hook} returned one {type(answer).__name__}: expected an iterable of {wanted.__name__}", "return [spec]")
    if answer is None:
        raise PluginFault(f"{hook} returned None: expected an iterable of {wanted.__name__}", "return or yield the specs")
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise PluginFault(f"{hook} returned {shown(answer)}: expected an iterable of {wanted.__name__}")
    return answer


def _check_type(hook: str, position: int, spec: Any, wanted: type) -> None:
    if isinstance(spec, wanted):
        return
    came = f"{hook} returned {shown(spec)} at position {position}: expected {wanted.__name__}"
    right = next((h for h, kind in HOOKS.items() if isinstance(spec, KINDS[kind])), None)
    raise PluginFault(came, f"return it from {right}" if right else None)


def _check_spec(hook: str, spec: PluginSpec, candidate: Candidate) -> None:
    """Check what a spec's own validation cannot: the requirements of listing, hashing and display."""
    what = f"{type(spec).__name__} {spec.name!r} of {hook}"
    check_interface(what, spec.api_version, candidate)
    if spec.replaces is not None and not isinstance(spec.replaces, str):
        raise PluginFault(f"{what}: replaces is {shown(spec.replaces)}, not the name of a distribution")
    if spec.replaces is not None and normalised(spec.replaces) == normalised(candidate.distribution):
        raise PluginFault(f"{what} replaces its own distribution", "replaces= names the other distribution whose entry is overridden")
    for field in dataclasses.fields(spec):
        _check_field(what, field.name, getattr(spec, field.name))
    _checked(what, lambda: hash(spec), "a spec must be hashable: use tuples instead of lists and dicts")


def _check_field(what: str, name: str, value: Any) -> None:
    if name == "hyperparameters":
        if not isinstance(value, tuple) or not all(isinstance(h, Hyperparameter) for h in value):
            raise PluginFault(f"{what}: {name} is {shown(value)}, not a tuple of Hyperparameter", "end a tuple of one with a comma: (x,)")
        names = [h.name for h in value]
        if doubled := sorted({n for n in names if names.count(n) > 1}):
            raise PluginFault(f"{what}: {name} declares {', '.join(doubled)} twice")
    elif value is not None and type(value) not in (str, int, float, bool):
        _checked(what, lambda: plain(value), f"{name} must hold plain values only (text, numbers, booleans, tuples of them)")


def _checked(what: str, check: Callable[[], Any], fix: str) -> None:
    try:
        check()
    except (TypeError, UsageError) as error:
        raise PluginFault(f"{what}: {error}", fix) from error


def _source(module: str) -> Path | None:
    """The outermost package folder of a module (except namespace packages), or its file; ``None`` if not imported or without a file."""
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        file = getattr(sys.modules.get(".".join(parts[:depth])), "__file__", None)
        if file:
            path = Path(file)
            return path.parent if path.name == "__init__.py" else path
    return None


def _forget_modules(module: str, before: set[str]) -> None:
    """Remove the modules of the plugin's top-level package that were not there ``before`` from ``sys.modules`` and their parents."""
    top = module.partition(".")[0]
    if top == CORE or top in sys.stdlib_module_names:  # shared with other plugins: a second copy would do harm
        return
    for name in [n for n in sys.modules if n not in before and (n == top or n.startswith(top + "."))]:
        parent, _, child = name.rpartition(".")
        if parent in before and hasattr(sys.modules.get(parent), child):
            delattr(sys.modules[parent], child)
        del sys.modules[name]
