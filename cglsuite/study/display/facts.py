"""The facts of a spec, one per line: the single source for the command line and for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cglsuite.base.markup import card, fold, grid, tidy
from cglsuite.campaigns.reference import queries_note
from cglsuite.specs.switch import own_and_level_fields

__all__ = ["COLUMNS", "allowed", "declared", "shown_value", "spec_card", "spec_facts", "switch_rows"]

COLUMNS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "dataset": {"LEVELS": lambda s: s.levels, "LICENCE": lambda s: s.licence},
    "scenario": {"LEVEL": lambda s: s.level, "EDGES": lambda s: s.edge_policy},
    "backbone": {"LEVELS": lambda s: s.levels},
    "method": {"CATEGORY": lambda s: s.category, "LEVELS": lambda s: s.levels},
    "pretraining": {"LEVELS": lambda s: s.levels},
    "measure": {"LABELS": lambda s: s.labels, "BETTER": lambda s: {"up": "higher", "down": "lower"}.get(s.direction, s.direction)},
    "metric": {"BETTER": lambda s: s.better},
    "schedule": {},
    "notebook": {"FOR": lambda s: "exploring" if s.interactive else "reports"},
    "executor": {},
    "command": {},
}
"""What the table of each kind shows between the name and the provider."""
_LABELS = {
    name: name.replace("_", " ")
    for name in (
        *(
            "levels",
            "settings",
            "needs",
            "elsewhere",
            "category",
            "formula",
            "undefined",
            "needs_joint",
            "licence",
            "home",
            "embedded",
            "citation",
        ),
        *("note", "factory", "builder", "path", "interactive", "replaces"),
    )
} | {"undefined": "no value if"}


def spec_facts(spec: Any) -> Iterator[tuple[str, Any]]:
    """(label, value) of what is known of any spec; empty fields are left out."""
    for attribute, label in _LABELS.items():
        value = "; ".join(map(str, spec.citations)) if attribute == "citation" else getattr(spec, attribute, None)
        if value not in (None, "", ()):
            yield label, value
    if hasattr(spec, "direction"):
        low, high = spec.range
        yield "range", f"{low:g} to {high:g}, {'higher' if spec.direction == 'up' else 'lower'} is better"
    if spec.kind == "method" and spec.training:
        yield "training defaults", tuple(f"{name} = {tidy(value)}" for name, value in spec.training.items())


def declared(spec: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """(title, settings) of what a spec lets people set."""
    for attribute, title in (("hyperparameters", "hyper-parameters"), ("options", "options")):
        if hyperparameters := getattr(spec, attribute, ()):
            yield title, hyperparameters


def allowed(setting: Any) -> str:
    """The values that a :class:`cglsuite.Hyperparameter` takes, in words."""
    if setting.choices:
        return " | ".join(map(tidy, setting.choices))
    limits = [
        f"> {setting.above:g}" if setting.above is not None else "",
        f">= {setting.minimum:g}" if setting.minimum is not None else "",
        f"<= {setting.maximum:g}" if setting.maximum is not None else "",
    ]
    text = ", ".join(filter(None, limits)) or "any"
    return f"{text} or none" if setting.optional else text


def switch_rows(part: Any, prefix: str) -> list[tuple[str, str, str]]:
    """(dotted name, value, meaning) of every switch of a protocol dataclass."""
    documented = [(f, value) for f, value in own_and_level_fields(part) if f.metadata.get("doc")]
    return [(f"{prefix}.{f.name}", shown_value(value), f.metadata["doc"]) for f, value in documented]


def shown_value(value: Any) -> str:
    """A value as one line of text: pairs of names and values as ``name=value``."""
    if isinstance(value, tuple) and value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return ", ".join(f"{name}={tidy(v)}" for name, v in value)
    return tidy(value)


def spec_card(spec: Any, facts: Iterable[tuple[str, Any]] = ()) -> str:
    """A spec as a card for a notebook: ``facts``, then its own facts, then its settings, collapsed."""
    folds = [
        fold(title, grid(("setting", "type", "default", "allowed", "meaning"), [_setting(h) for h in hyperparameters]))
        for title, hyperparameters in declared(spec)
    ]
    training = spec.training if spec.kind == "scenario" else None  # a method's own defaults are among its facts
    for title, part, prefix in (("protocol", spec, "scenario"), ("training", training, "training")):
        rows = switch_rows(part, prefix) if part is not None else []
        folds += [fold(title, grid(("switch", "value", "meaning"), rows))] if rows else []
    note = queries_note(spec.name, vars(spec)) if spec.kind == "scenario" else ""
    shown = [*facts, *spec_facts(spec), *([("queries", note)] if note else [])]
    return card(f"{spec.kind} {spec.name}", shown, *folds, summary=spec.summary)


def _setting(h: Any) -> tuple[str, str, Any, str, str]:
    return h.name, h.type.__name__, h.default, allowed(h), h.doc
