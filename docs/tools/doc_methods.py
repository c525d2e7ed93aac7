"""Cards of methods and of schemes of pre-training: what ``method_cards.toml`` says in words, and what specs, tables of known artefacts and
the gallery's records say besides."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from doc_cards import category, chosen_by_presets, declared, levels_of, pretraining_path, requirements, scenario_link, sentence
from doc_cards import method_path as path_of_method
from doc_gallery import gallery_records
from doc_text import code, prose, table, text, value

from cglsuite import Catalogue
from cglsuite.host import Entry
from cglsuite.specs import PRETRAINING_HYPERPARAMETERS

__all__ = ["cards", "method_card", "pretraining_card", "words"]

SOURCE = Path(__file__).with_name("method_cards.toml")
FIELDS = ("idea", "formula", "time", "memory", "parameters")
"""What the source says of every entry."""
_BENCHMARK = re.compile(r"BeGin|CGLB|AGALE|DRIFT|benchmark|in the code of|authors' code")
_SEPARATE = re.compile(r"(?:scenario|stream|schedule|training|backbone|dataset)\.")
_OF_METHOD = re.compile(r"method\.")


def cards(catalogue: Catalogue) -> dict[str, str]:
    """Path below docs/ to Markdown, for every method and scheme of the catalogue."""
    made = {path_of_method(e.name): "\n".join(method_card(catalogue, e)) for e in catalogue.entries("method")}
    return made | {pretraining_path(e.name): "\n".join(pretraining_card(catalogue, e)) for e in catalogue.entries("pretraining")}


@cache
def words() -> dict[str, dict[str, dict[str, str]]]:
    """What the source says, by kind and name.

    Raises:
        ValueError: an entry lacks a field, or has one that cards do not have.
    """
    found: dict[str, dict[str, dict[str, str]]] = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    for kind, entries in found.items():
        for name, fields in entries.items():
            if set(fields) != set(FIELDS) or not all(fields.values()):
                raise ValueError(f"{SOURCE.name}: [{kind}.{name}] has {', '.join(fields)}; expected text for each of {', '.join(FIELDS)}")
    return found


def method_card(catalogue: Catalogue, entry: Entry) -> Iterator[str]:
    """The card of one method."""
    spec: Any = entry.spec
    here, said = path_of_method(entry.name), words()["method"].get(entry.name, {})
    yield from _head(entry, said)
    needs = requirements(spec)
    yield table(
        ("", ""),
        [
            ("category", category(spec)),
            ("problem levels", levels_of(spec)),
            ("settings", text(", ".join(spec.settings))),
            *([("needs", text(needs))] if needs else []),
            *_sources(entry),
        ],
    )
    yield from _costs(said)
    yield from ("## Settings", "", "Set with `--set method.NAME=VALUE`, or in a campaign file.", "")
    yield declared("method", spec.hyperparameters) or "It has none.\n"
    if spec.training:
        rows = [(code(f"training.{name}"), value(given)) for name, given in sorted(spec.training.items())]
        yield from ("Defaults of training that it brings along:", "", table(("setting", "value"), rows))
    yield from _deviations("method", spec.hyperparameters, _known(entry.name))
    yield from ("## Results here", "", _results(catalogue, here, "method", entry.name))
    yield from chosen_by_presets(catalogue, entry.name, here)
    yield from _definition(spec.factory)


def pretraining_card(catalogue: Catalogue, entry: Entry) -> Iterator[str]:
    """The card of one scheme of pre-training."""
    spec: Any = entry.spec
    here, said = pretraining_path(entry.name), words()["pretraining"].get(entry.name, {})
    yield from _head(entry, said)
    yield table(("", ""), [("problem levels", levels_of(spec)), *_sources(entry)])
    yield from _costs(said)
    yield from ("## Settings", "", "Set with `--set pretraining.NAME=VALUE`, or in a campaign file.", "")
    yield declared("pretraining", spec.hyperparameters) or "It has none of its own.\n"
    yield from ("Those of every scheme:", "", declared("pretraining", PRETRAINING_HYPERPARAMETERS))
    yield from _deviations("pretraining", spec.hyperparameters, [])
    yield from ("## Results here", "", _results(catalogue, here, "configuration.pretraining.scheme", entry.name))
    yield from _definition(spec.factory)


def _head(entry: Entry, said: Mapping[str, str]) -> Iterator[str]:
    yield from (f"# {text(entry.name)}", "", prose(said["idea"]) if said else sentence(entry.spec.summary), "")
    if said:
        yield from ("```text", *re.split(r";\s+|,\s\s+", said["formula"]), "```", "")


def _sources(entry: Entry) -> list[tuple[str, str]]:
    cited = "; ".join(map(str, entry.spec.citations))
    return [("citation", text(cited) or "–"), ("provided by", text(entry.provider))]


def _costs(said: Mapping[str, str]) -> Iterator[str]:
    if said:
        rows = [(part, prose(said[part])) for part in ("time", "memory", "parameters")]
        yield from ("## Cost", "", "Time is that of an epoch, against fine-tuning; memory is what is kept between tasks.", "")
        yield table(("", ""), rows)


def _known(method: str) -> list[Any]:
    """The rows of the table of known artefacts that name a method."""
    from cglsuite.campaigns.reference import known_artefacts
    from cglsuite.campaigns.reference.values import method_key

    rows = known_artefacts()
    return [r for r in rows.itertuples() if method_key(method) in {method_key(m) for m in r.method.split("|") if m}]


def _deviations(prefix: str, hyperparameters: Any, known: list[Any]) -> Iterator[str]:
    """Switches that give a benchmark's form, and what is known of how published rows came about."""
    switches = [h for h in hyperparameters if _BENCHMARK.search(f"{h.doc} {h.effect}")]
    yield from ("## Where a benchmark's code differs", "")
    if switches:
        yield from ("Settings that tell of it:", "")
        yield table(("setting", "default", "what it says"), [(code(f"{prefix}.{h.name}"), value(h.default), text(h.doc)) for h in switches])
    if known:
        rows = [(_published(r), text(r.kind), text(r.reason)) for r in known]
        yield from ("Of published rows:", "", table(("rows", "kind", "what is known"), rows))
    if not switches and not known:
        yield "Nothing is known of it.\n"


def _published(row: Any) -> str:
    """Which published rows a note is about: ``BeGin, GC, class-IL, Aromaticity``."""
    parts = [getattr(row, column).replace("|", ", ") for column in ("paper", "problem", "setting", "dataset")]
    return text(", ".join(filter(None, parts)) + (f" ({row.metric})" if row.metric else ""))


def _results(catalogue: Catalogue, here: str, column: str, name: str) -> str:
    """Performance and forgetting in the gallery's records: a row per preset and per settings that differ from it."""
    every = gallery_records()
    if column not in every.columns:
        return "None yet.\n"
    frame = every[(every[column] == name) & (every["status"] == "done")]
    if frame.empty:
        return "None yet.\n"
    own = [c for c in frame.columns if c.startswith("configuration.method.")]
    frame = frame.assign(own=[repr(row) for row in frame[own].astype(object).to_numpy().tolist()])
    rows = []
    for (scenario, preset, _, method, _own), part in frame.groupby(["scenario", "preset", "backbone", "method", "own"], sort=True):
        asked = _given(_varying_in(scenario), part.iloc[0]) if preset != scenario else []
        asked += _given(_varying(frame[(frame["scenario"] == scenario) & (frame["method"] == method)], _OF_METHOD), part.iloc[0])
        free = part["a_auc"].notna().all()
        measure = "a_auc" if free else "average_performance"
        forgetting = part["af_s" if free else "forgetting_max"]
        shown = code("a_auc") if free else code("average_performance")
        link = scenario_link(catalogue.get("scenario", scenario), here, scenario)
        named = [] if column == "method" else [code(method)]
        settings = " ".join(map(code, asked)) or "as the preset"
        rows.append((link, *named, settings, shown, _mean(part[measure]), _mean(forgetting), str(len(part))))
    header = ("preset", *([] if column == "method" else ["method"]), "settings", "measure", "mean ± sd, %", "forgetting, %", "runs")
    note = "From the [gallery's](../../gallery/index.md) records, as they were when this page was built. Forgetting is "
    return f"{note}{code('forgetting_max')} on streams of tasks and {code('af_s')} on task-free ones.\n\n{table(header, rows)}"


@cache
def _varying_in(scenario: str) -> list[str]:
    """The settings that a preset's variants differ in, over all its records."""
    every = gallery_records()
    return _varying(every[every["scenario"] == scenario], _SEPARATE)


def _varying(frame: Any, of: re.Pattern[str]) -> list[str]:
    """The columns of settings that vary over the records of ``frame``."""
    names = [c for c in frame.columns if c.startswith("configuration.") and of.match(c.removeprefix("configuration."))]
    return [c for c in names if c != "configuration.scenario.class_order" and len(set(map(repr, frame[c].tolist()))) > 1]


def _given(names: list[str], row: Any) -> list[str]:
    """Those settings of a record, as on a command line."""
    there = [c for c in names if row[c] == row[c]]  # NaN: the record's cell has no such setting
    return [f"{c.removeprefix('configuration.')}={value(row[c]).strip('`')}" for c in there]


def _mean(values: Any) -> str:
    if not values.notna().any():
        return "–"
    spread = f" ± {100 * values.std():.1f}" if len(values) > 1 else ""
    return f"{100 * values.mean():.1f}{spread}".replace(" ", "\N{NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")


def _definition(factory: str) -> Iterator[str]:
    yield from ("## Definition", "", f"::: {factory.replace(':', '.')}", "    options:", "      members: false", "")
