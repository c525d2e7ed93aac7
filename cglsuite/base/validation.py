"""Errors of a schema check in the suite's words. Pydantic makes the checks; nothing here imports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cglsuite.base.inputs import quoted

__all__ = ["key_path", "problem_text"]

_EXPECTED = {
    "missing": "missing",
    "extra_forbidden": "unknown key",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "string_type": "expected text",
    "list_type": "expected a list",
    "dict_type": "expected a table",
    "model_type": "expected a table",
    "literal_error": "expected {expected}",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected at least {ge}",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected at most {le}",
    "string_too_long": "expected at most {max_length} characters",
    "string_unicode": "expected Unicode text",
    "too_long": "expected at most {max_length} item(s)",
    "too_short": "expected at least {min_length} item(s)",
    "string_too_short": "expected text that is not empty",
    "string_pattern_mismatch": "expected text of the form {pattern}",
}
_COMPLETE = {"missing", "extra_forbidden", "value_error"}
"""Error types whose text is complete without the offending value."""


def key_path(location: Sequence[str | int]) -> str:
    """``("seeds", "order", 0)`` as ``seeds.order[0]``."""
    parts = [f"[{part}]" if isinstance(part, int) else part if part.isprintable() else quoted(part) for part in location]
    return ".".join(parts).replace(".[", "[")


def problem_text(error: Mapping[str, Any]) -> str:
    """One error of ``pydantic.ValidationError.errors()``: what was expected, and what was given.

    A ``ValueError`` of our own validators already contains both.
    """
    kind, context, value = error["type"], error.get("ctx", {}), error.get("input")
    text = str(context["error"]) if kind == "value_error" else _EXPECTED.get(kind, error["msg"]).format_map(context)
    return text if kind in _COMPLETE or isinstance(value, Mapping) else f"{text} (given: {quoted(value)})"
