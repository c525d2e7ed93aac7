"""Pages made of the catalogue's specs: a page per dataset with its scenarios, tables of the other kinds, and the overview of all.

:mod:`doc_methods` makes the cards of methods and schemes of pre-training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from doc_text import CATEGORIES, LEVELS, code, link, page_name, table, text, value

from cglsuite import Catalogue, Hyperparameter
from cglsuite.host import Entry
from cglsuite.specs import switches
from cglsuite.study.display import allowed

__all__ = [
    "category",
    "chosen_by_presets",
    "dataset_page",
    "dataset_path",
    "declared",
    "kind_page",
    "levels_of",
    "method_path",
    "overview",
    "pages",
    "pretraining_path",
    "requirements",
    "scenario_link",
    "sentence",
]

Page = Iterator[str]
_NEEDS = {
    "past-views": "the training views of earlier tasks: a reference, no continual learner",
    "task-id": "the task's number at prediction",
    "task-boundaries": "to be told when a task ends",
    "epochs": "several passes over a task",
}


def pages(catalogue: Catalogue) -> dict[str, str]:
    """Path below docs/ to Markdown, for everything in the catalogue but methods and schemes of pre-training."""
    made = {"catalogue/index.md": overview(catalogue)}
    for kind in ("metric", "backbone", "schedule", "notebook"):
        made[f"catalogue/{kind}s.md"] = "\n".join(kind_page(catalogue, kind))
    for entry in catalogue.entries("dataset"):
        made[dataset_path(entry.name)] = "\n".join(dataset_page(catalogue, entry))
    return made


def method_path(name: str) -> str:
    """The page of a method, below docs/."""
    return f"catalogue/methods/{page_name(name)}.md"


def pretraining_path(name: str) -> str:
    """The page of a scheme of pre-training, below docs/."""
    return f"catalogue/pretrainings/{page_name(name)}.md"


def dataset_path(name: str) -> str:
    """The page of a dataset and its scenarios, below docs/."""
    return f"catalogue/datasets/{page_name(name)}.md"


def overview(catalogue: Catalogue) -> str:
    """The catalogue on one page."""
    here = "catalogue/index.md"
    scenarios = _scenarios_by_dataset(catalogue)
    methods = [
        (
            link(e.name, method_path(e.name), here),
            category(e.spec),
            levels_of(e.spec),
            text(e.spec.summary),
        )
        for e in _entries(catalogue, "method")
    ]
    schemes = [
        (link(e.name, pretraining_path(e.name), here), levels_of(e.spec), text(e.spec.summary)) for e in _entries(catalogue, "pretraining")
    ]
    datasets = [
        (link(e.name, dataset_path(e.name), here), levels_of(e.spec), str(len(scenarios.get(e.name, ()))), text(e.spec.summary))
        for e in _entries(catalogue, "dataset")
    ]
    counts = ", ".join(f"{len(catalogue.names(kind))} {kind}s" for kind in ("method", "dataset", "scenario", "metric", "backbone"))
    return "\n".join(
        [
            "# Catalogue",
            "",
            f"What the built-in plugins provide: {counts}. Generated from their specs when this site was built; an installation with other "
            "plugins has more: `cglsuite list` prints what there is, `cglsuite show KIND NAME` one entry with all that can be set.",
            "",
            "## Methods",
            "",
            table(("method", "category", "levels", "what it does"), methods),
            "## Pre-training",
            "",
            table(("scheme", "levels", "what it does"), schemes),
            "## Datasets and their scenarios",
            "",
            table(("dataset", "levels", "scenarios", "what it is"), datasets),
        ]
    )


def requirements(spec: Any) -> str:
    """What a method needs, in words."""
    return "; ".join(_NEEDS.get(need, need) for need in spec.needs)


def chosen_by_presets(catalogue: Catalogue, method: str, here: str) -> Page:
    """The hyperparameters that presets choose for a method; nothing where none does."""
    chosen: dict[str, list[str]] = {}
    for entry in _entries(catalogue, "scenario"):
        if method in entry.spec.method_defaults:
            chosen.setdefault(_given(entry.spec.method_defaults[method]), []).append(scenario_link(entry, here))
    if chosen:
        rows = [(given, ", ".join(presets)) for given, presets in chosen.items()]
        yield from ("## What presets choose for it", "", table(("settings", "presets"), rows))


def dataset_page(catalogue: Catalogue, entry: Entry) -> Page:
    """A dataset, and every scenario over it: where they agree, and where not."""
    spec: Any = entry.spec
    yield from (f"# {text(entry.name)}", "", sentence(spec.summary), "")
    home = f"<{spec.home}>" if spec.home.startswith("http") else text(spec.home) or "–"
    yield table(
        ("", ""),
        [
            ("problem levels", levels_of(spec)),
            ("licence", text(spec.licence)),
            ("home", home),
            ("embedded", "yes: there is nothing to download" if spec.embedded else "no"),
            ("citation", text("; ".join(map(str, spec.citations))) or "–"),
            ("provided by", text(entry.provider)),
        ],
    )
    if own := declared("dataset", spec.hyperparameters):
        yield from ("## Hyperparameters of the dataset", "", "Set with `--set dataset.NAME=VALUE`.", "", own)
    scenarios = _scenarios_by_dataset(catalogue).get(entry.name, [])
    if scenarios:
        yield from _scenario_section(scenarios)


def _scenario_section(scenarios: list[Entry]) -> Page:
    specs: list[Any] = [e.spec for e in scenarios]
    yield from ("## Scenarios", "")
    for entry in scenarios:
        note = f" {text(entry.spec.note)}" if entry.spec.note else ""  # type: ignore[attr-defined]
        yield f"- {code(entry.name)}{{: #{anchor(entry.name)} }}: {text(entry.spec.summary).rstrip('.')}.{note}"
    short = {e.name: e.name.partition("/")[2] for e in scenarios}
    yield from ("", "### Where they differ" if len(specs) > 1 else "### Protocol", "")
    configurations = [_settled(s) for s in specs]
    keys = list(dict.fromkeys(k for s in configurations for k in s))
    differs = [k for k in keys if len({repr(s.get(k)) for s in configurations}) > 1]
    if differs:
        rows = [(code(key), *(value(s[key]) if key in s else "–" for s in configurations)) for key in differs]
        yield table(("setting", *(code(name) for name in short.values())), rows)
    elif len(specs) > 1:
        yield "They differ in the hyperparameters that they choose per method only.\n"
    same = [(code(key), value(configurations[0][key])) for key in keys if key not in differs]
    if len(specs) > 1:
        yield from ("### What they have in common", "")
    yield table(("setting", "value"), same)
    chosen = [
        (code(short[e.name]), code(method), _given(given))
        for e, s in zip(scenarios, specs, strict=True)
        for method, given in sorted(s.method_defaults.items())
    ]
    if chosen:
        yield from ("### What they choose per method", "", table(("preset", "method", "hyperparameters"), chosen))


def kind_page(catalogue: Catalogue, kind: str) -> Page:
    """All entries of a kind that has no page per entry."""
    yield from (f"# {kind.capitalize()}s", "")
    for entry in _entries(catalogue, kind):
        spec = entry.spec
        yield from (f"## {text(entry.name)}", "", sentence(spec.summary), "")
        if formula := getattr(spec, "formula", ""):
            low, high = spec.range
            joint = f"; needs the {spec.reference} record of the same scenario and seeds" if spec.reference else ""
            none = f"; no value where {text(spec.undefined)}" if spec.undefined else ""
            yield from (f"{code(formula)}; {spec.better} is better; range {low:g} to {high:g}{joint}{none}.", "")
            yield from (f"Settings: {text(', '.join(spec.settings))}.", "")
        if levels := getattr(spec, "levels", ()):
            yield from (f"Problem levels: {', '.join(LEVELS[level] for level in levels)}.", "")
        if spec.citations:
            yield from (sentence("; ".join(map(str, spec.citations))), "")
        yield declared(kind, getattr(spec, "hyperparameters", ()))


def anchor(scenario: str) -> str:
    """The anchor of a scenario on the page of its dataset."""
    return page_name(scenario).replace(".", "-")


def scenario_link(entry: Entry, here: str, label: str = "") -> str:
    """A link from the page ``here`` to a scenario on the page of its dataset; ``label``: its name, where none is given."""
    marked = link(label or entry.name, dataset_path(entry.spec.dataset), here)  # type: ignore[attr-defined]
    return f"{marked.removesuffix(')')}#{anchor(entry.name)})"


def _settled(spec: Any) -> dict[str, Any]:
    """Every switch of a preset by its dotted name, what it changes of backbone and dataset included."""
    parts: dict[str, Mapping[str, Any]] = {"scenario": switches(spec)}
    if spec.task_free is not None:
        parts |= {"stream": switches(spec.task_free), "schedule": dict(spec.task_free.schedule_hyperparameters)}
    parts |= {
        "training": switches(spec.training),
        "backbone": dict(spec.backbone_hyperparameters),
        "dataset": dict(spec.dataset_hyperparameters),
    }
    skipped = {"scenario.dataset", "scenario.dataset_hyperparameters", "scenario.backbone_hyperparameters", "scenario.searched"}
    found = {f"{part}.{name}": v for part, values in parts.items() for name, v in values.items()}
    return {key: v for key, v in found.items() if key not in skipped}


def declared(prefix: str, declared: Iterable[Hyperparameter]) -> str:
    """A table of hyperparameters; empty where there are none."""
    rows = [(code(f"{prefix}.{h.name}"), value(h.default), text(allowed(h)), text(h.doc), text(h.effect) or "–") for h in declared]
    return table(("setting", "default", "allowed", "meaning", "what changing it does"), rows)


def sentence(given: str) -> str:
    """A summary as a sentence of Markdown."""
    stripped = text(given).rstrip(".")
    return f"{stripped[:1].upper()}{stripped[1:]}."


def category(spec: Any) -> str:
    """The category of a method in words."""
    return text(CATEGORIES.get(spec.category, spec.category))


def levels_of(spec: Any) -> str:
    """The problem levels of a spec in words."""
    return ", ".join(LEVELS[level] for level in spec.levels)


def _scenarios_by_dataset(catalogue: Catalogue) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in _entries(catalogue, "scenario"):
        found.setdefault(entry.spec.dataset, []).append(entry)
    return found


def _entries(catalogue: Catalogue, kind: str) -> list[Any]:
    return list(catalogue.entries(kind))


def _given(configurations: Mapping[str, Any]) -> str:
    return " ".join(code(f"{key}={value(v).strip('`')}") for key, v in sorted(configurations.items()))
