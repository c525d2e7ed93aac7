"""Declaration of hyperparameters with types and bounds, and validation of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.base.inputs import quoted, real_number, text_value, truth_value, whole_number

Value = bool | int | float | str | None
"""The value of a switch or hyperparameter, as written in TOML or on the command line."""


@dataclass(frozen=True, kw_only=True)
class Hyperparameter:
    """A typed hyperparameter declared by a dataset, backbone or method.

    The type is that of ``default``. ``None`` is allowed only if ``optional`` is set, in which case ``kind`` is the type. ``doc`` describes
    the hyperparameter, and ``effect`` describes how changing it affects results. ``minimum`` and ``maximum`` are inclusive bounds, and
    ``above`` is an exclusive lower bound. Missing bounds default to those of the type (see :mod:`cglsuite.base.inputs`).

    Set ``implicit`` for a hyperparameter that is added to a component with stored results. Its default is omitted from configurations and
    keys, so the keys of cells that do not set it do not change. The factory or method must use the same default.
    """

    name: str
    default: Value
    doc: str
    kind: type | None = None
    choices: tuple[Value, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    optional: bool = False
    effect: str = ""
    above: float | None = None
    implicit: bool = False

    @property
    def type(self) -> type:
        """The type of values: bool, int, float or str."""
        return self.kind or type(self.default)

    def parse(self, given: Any, where: str) -> Value:
        """Parse and validate ``given`` (a command-line string or a TOML/JSON value).

        Raises:
            SpecError: the value has the wrong type, is not among ``choices``, or is out of range. The message contains ``where``.
        """
        if given is None or (isinstance(given, str) and given.lower() in {"none", "null"} and self.type is not str):
            if self.optional:
                return None
            raise SpecError(f"{where}.{self.name} = {quoted(given)}: expected {self.type.__name__} ({self.doc})")
        try:
            value = self._read(given)
        except ValueError as error:
            raise SpecError(f"{where}.{self.name} = {quoted(given)}: {error}{', or none' if self.optional else ''} ({self.doc})") from None
        if self.choices and value not in self.choices:
            raise SpecError(f"{where}.{self.name} = {quoted(given)}: expected one of {', '.join(map(str, self.choices))} ({self.doc})")
        return value

    def _read(self, given: Any) -> Value:
        if self.type is bool:
            return truth_value(given)
        if self.type is str:
            return text_value(given)
        if self.type is int:
            return whole_number(given, self.minimum, self.maximum)
        return real_number(given, self.minimum, self.maximum, self.above)


def resolve_hyperparameters(declared: tuple[Hyperparameter, ...], given: Mapping[str, Any], where: str) -> dict[str, Value]:
    """Override the defaults with ``given`` and validate every value. Errors for unknown names suggest the closest match.

    Implicit hyperparameters with default values are omitted.
    """
    by_name = {h.name: h for h in declared}
    for name in given:
        if name not in by_name:
            raise UnknownNameError(f"hyperparameter of {where}", name, by_name)
    values = {n: (h.parse(given[n], where) if n in given else h.default) for n, h in sorted(by_name.items())}
    return {n: value for n, value in values.items() if not (by_name[n].implicit and value == by_name[n].default)}


def implicit_defaults(declared: tuple[Hyperparameter, ...]) -> dict[str, Value]:
    """Return the defaults of the implicit hyperparameters, which configurations omit."""
    return {h.name: h.default for h in declared if h.implicit}
