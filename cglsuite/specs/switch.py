"""Switches, the documented fields of a protocol: declaration, parsing, validation and explanation."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import EllipsisType, NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.base.inputs import quoted
from cglsuite.specs.hyperparameters import Hyperparameter

Whole = TypeVar("Whole")


def Switch(
    default: Any = dataclasses.MISSING,
    doc: str = "",
    choices: tuple[Any, ...] = (),
    effect: str | Mapping[str, str] = "",
    guard: bool = False,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    implicit: bool = False,
) -> Any:
    """Declare a dataclass field of a protocol. ``doc`` describes it, and ``effect`` states how changing it affects results.

    ``choices`` and bounds are checked, for lists item by item. See :class:`Hyperparameter` for ``minimum``, ``maximum`` and ``above``.
    ``effect`` is one text, or one text per value (``"*"``: any other value). A ``guard`` determines whether a stream may be built and does
    not change any result, so it is not part of a cell's configuration or key. Set ``implicit`` for a switch that is added to protocols with
    stored results. Its default is omitted from configurations and keys, so the keys of cells that do not set it do not change.
    """
    bounds = {"minimum": minimum, "maximum": maximum, "above": above}
    metadata = {"doc": doc, "choices": choices, "effect": effect, "guard": guard, "implicit": implicit, **bounds}
    return dataclasses.field(metadata=metadata) if default is dataclasses.MISSING else dataclasses.field(default=default, metadata=metadata)


def ByLevel(classes: Mapping[str, type]) -> Any:
    """Declare a dataclass field with the switches of one problem level: an instance of ``classes[level]``, ``None`` at other levels.

    Functions that read the switches of the dataclass by name also see these switches.

    Args:
        classes: dataclasses of switches by level. All switches must have defaults, and their names must be unique across levels.
    """
    return dataclasses.field(default=None, metadata={"by level": classes})


def declared_switches(owner: type) -> dict[str, dataclasses.Field[Any]]:
    """Return the switches of a protocol dataclass by name, in declared order, including those of all levels."""
    fields: dict[str, dataclasses.Field[Any]] = {}
    for field in dataclasses.fields(owner):
        for level_class in field.metadata.get("by level", {}).values():
            fields |= declared_switches(level_class)
        if field.metadata.get("doc"):
            fields[field.name] = field
    return fields


def fields_with_level(spec: Any) -> Iterator[tuple[dataclasses.Field[Any], Any]]:
    """Return all fields of a spec with their values, in declared order, including its level's switches.

    The switches of other levels are omitted, except for those ``in_every_key``, which have their default values.
    """
    for field in dataclasses.fields(spec):
        if (classes := field.metadata.get("by level")) is None:
            yield field, getattr(spec, field.name)
            continue
        for level, level_class in classes.items():
            if level == spec.level:
                yield from fields_with_level(getattr(spec, field.name))
            elif level_class.in_every_key:
                yield from fields_with_level(level_class())


def switches(spec: Any, *, guards: bool = False, implicit: bool = False) -> dict[str, Any]:
    """Return the values of all documented switches of a protocol dataclass by name, in declared order.

    Args:
        guards: include guards (see :func:`Switch`).
        implicit: include implicit switches with default values.
    """
    documented = [(field, value) for field, value in fields_with_level(spec) if field.metadata.get("doc")]
    stated = [(field, value) for field, value in documented if implicit or not field.metadata.get("implicit") or value != field.default]
    return {field.name: value for field, value in stated if guards or not field.metadata.get("guard")}


def with_switches(spec: Whole, changes: Mapping[str, Any], where: str) -> Whole:
    """Return a copy of ``spec`` with the named switches changed.

    Raises:
        UnknownNameError: there is no such switch. The message suggests the closest name.
        SpecError: a switch belongs to another level, or a value is not allowed.
    """
    whole: Any = spec
    fields = dataclasses.fields(whole)
    replaced = {field.name: changes[field.name] for field in fields if field.name in changes}
    left = {name: value for name, value in changes.items() if name not in replaced}
    for field in fields:
        for level, level_class in field.metadata.get("by level", {}).items():
            names = left.keys() & declared_switches(level_class).keys()
            if names and level != whole.level:
                name = min(names)
                value = str(left[name]).lower()
                raise SpecError(f"{where}.{name} = {value} applies only to {level} scenarios, but {whole.name} is {whole.level}; remove it")
            if names:
                replaced[field.name] = dataclasses.replace(getattr(whole, field.name), **{name: left.pop(name) for name in names})
    for name in left:
        raise UnknownNameError(f"switch {where}.", name, declared_switches(type(whole)))
    changed: Whole = dataclasses.replace(whole, **replaced)
    return changed


def effect_of(owner: type, name: str, *values: Any) -> str:
    """Describe the effect of choosing one of ``values`` over another, or describe the switch ``name`` if its effect is unknown."""
    metadata = declared_switches(owner)[name].metadata
    effect = metadata.get("effect") or metadata["doc"]
    if isinstance(effect, str):
        return effect
    words = [str(value).lower() if value is None or isinstance(value, bool) else str(value) for value in values]
    known = [word if word in effect else "*" for word in words]
    clauses = [f"{'as given' if word == '*' else word}: {effect[word]}" for word in dict.fromkeys(known) if word in effect]
    return "; ".join(clauses) or str(metadata["doc"])


def parse_switch(owner: type, name: str, given: Any, where: str) -> Any:
    """Parse ``given`` (text or a TOML/JSON value) as a value of the switch ``name`` of a protocol dataclass.

    Raises:
        UnknownNameError: there is no such switch. The message suggests the closest name.
        SpecError: the value has the wrong type.
    """
    readers = _readers(owner)
    if name not in readers:
        raise UnknownNameError(f"switch {where}.", name, readers)
    declared, several = readers[name]
    if not several:
        return declared.parse(given, where)
    text = given.strip(" ()") if isinstance(given, str) else ""
    parts = (text.split(",") if text else []) if isinstance(given, str) else given
    if not isinstance(parts, (list, tuple)):
        raise SpecError(f"{where}.{name} = {quoted(given)}: expected a list ({declared.doc})")
    return tuple(declared.parse(part, where) for part in parts)


def check_switches(spec: Any, where: str) -> None:
    """Check that every switch of a protocol dataclass has an allowed value. Level-specific switches are checked by their own class.

    Raises:
        UnknownNameError: a value is not among the choices. The message lists the closest ones.
        SpecError: a value has the wrong type or is out of range.
    """
    owner: type = type(spec)
    readers = _readers(owner)
    for field in dataclasses.fields(spec):
        choices = field.metadata.get("choices") or ()
        value = getattr(spec, field.name)
        if choices and value not in choices:
            raise UnknownNameError(f"value of {where}.{field.name}", str(value), [str(c) for c in choices])
        if field.name in readers and not choices and readers[field.name][0].type is not str:
            declared, several = readers[field.name]
            for one in value if several else (value,):
                declared.parse(one, where)


@lru_cache(maxsize=16)
def _readers(owner: type) -> dict[str, tuple[Hyperparameter, bool]]:
    """Return the declaration that parses one value of each switch, and whether the switch is a list.

    Switches with name-value pairs are not included, since they are set item by item, under the names of what they configure.
    """
    hints = get_type_hints(owner)
    readers: dict[str, tuple[Hyperparameter, bool]] = {}
    for field in dataclasses.fields(owner):
        for level_class in field.metadata.get("by level", {}).values():
            readers |= _readers(level_class)
        if field.metadata.get("doc") and (read := _value_type(hints[field.name])) is not None:
            kind, optional, several = read
            bounds = {bound: field.metadata[bound] for bound in ("minimum", "maximum", "above")}
            reader = Hyperparameter(name=field.name, default=None, kind=kind, optional=optional, doc=field.metadata["doc"], **bounds)
            readers[field.name] = reader, several
    return readers


def _value_type(hint: Any) -> tuple[type, bool, bool] | None:
    """Analyse a type hint ``T``, ``T | None`` or ``tuple[T, ...]``. Return T, whether it may be absent, and whether it is a list."""
    several = get_origin(hint) is tuple
    members = set(get_args(hint)) if several or get_origin(hint) in (Union, UnionType) else {hint}
    kinds = members - {NoneType, Ellipsis, EllipsisType}
    return (kinds.pop(), NoneType in members, several) if len(kinds) == 1 and kinds <= {bool, int, float, str} else None
