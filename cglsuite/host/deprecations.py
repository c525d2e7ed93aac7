"""What plugins should no longer use, since when, and what instead: one table, read when a plugin is loaded or a factory is imported.

An entry goes in with the ``api_version`` that deprecates it, and out again when ``OLDEST_API_VERSION`` has passed that version; until
then the old way works, and whoever uses it is told.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cglsuite.host.records import PluginRecord

__all__ = ["DEPRECATED", "Deprecation", "arguments_of", "used_by_method", "used_by_specs", "warn_of"]


@dataclass(frozen=True, kw_only=True)
class Deprecation:
    """One thing of the plugin interface that still works and will go.

    Args:
        owner: the class of a spec (``"MethodSpec"``; ``"PluginSpec"`` for all of them), a hook (``"cglsuite_methods"``), or ``"Method"``.
        name: the spec's field, the argument that :mod:`cglsuite.host.hookspecs` still declares, or the hook of :class:`cglsuite.Method`.
        since: the ``api_version`` that deprecates it.
        instead: what to use; goes into a sentence after "use".
        value: of a hook's argument, what the hook is still given.
    """

    owner: str
    name: str
    since: int
    instead: str
    value: Callable[[], Any] = lambda: None

    @property
    def what(self) -> str:
        """How messages name it."""
        return f"argument {self.name} of {self.owner}" if self.owner.startswith("cglsuite_") else f"{self.owner}.{self.name}"

    def notice(self, users: Iterable[str] = ()) -> str:
        """One line for who uses it."""
        named = sorted(users)
        shown = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
        return f"{self.what}{f' ({shown})' if shown else ''} is deprecated since plugin interface {self.since}: use {self.instead}"


DEPRECATED: tuple[Deprecation, ...] = ()
"""All of them; none today."""


def arguments_of(hook: str) -> dict[str, Deprecation]:
    """The deprecated arguments of a hook, which takes no others."""
    return {d.name: d for d in DEPRECATED if d.owner == hook}


def used_by_specs(specs: Sequence[tuple[str, Any]]) -> list[str]:
    """A notice per deprecated field that any of the (kind, spec) of a plugin sets to something else than its default."""
    notices = []
    for deprecation in DEPRECATED:
        users = [f"{kind} {spec.name}" for kind, spec in specs if _sets(spec, deprecation)]
        notices += [deprecation.notice(users)] if users else []
    return notices


def used_by_method(found: Any, name: str) -> list[str]:
    """A notice per deprecated hook of ``Method`` that the class ``found`` of the method ``name``, or another plugin's above it, defines."""
    if not inspect.isclass(found):
        return []
    own = {attribute for cls in found.__mro__ if not cls.__module__.startswith("cglsuite.") for attribute in vars(cls)}
    return [d.notice([f"method {name}"]) for d in DEPRECATED if d.owner == "Method" and d.name in own]


def warn_of(record: PluginRecord, notices: Iterable[str]) -> None:
    """One ``DeprecationWarning`` per notice about a plugin, on the plugin's own module, so that warning filters by module find it."""
    module = sys.modules.get(record.module)
    file = getattr(module, "__file__", None) or record.module
    registry = vars(module).setdefault("__warningregistry__", {}) if module else None
    for notice in notices:
        told = f"{record.label}: {notice}"
        warnings.warn_explicit(told, DeprecationWarning, filename=file, lineno=1, module=record.module, registry=registry)


def _sets(spec: Any, deprecation: Deprecation) -> bool:
    if deprecation.owner not in {cls.__name__ for cls in type(spec).__mro__}:
        return False
    defaults = {f.name: f.default for f in dataclasses.fields(spec)}
    return deprecation.name in defaults and getattr(spec, deprecation.name) != defaults[deprecation.name]
