"""What pages ask for in braces, such as ``{{ diff cora/class-il@begin-1 cora/class-il@cglb-1 }}``: tables computed from specs and data."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from doc_beside import beside
from doc_cards import scenario_link
from doc_gallery import gallery_records, gallery_repetitions, gallery_sections
from doc_text import code, table, text, value

from cglsuite import Catalogue
from cglsuite.base.markup import tidy
from cglsuite.cells.spec import ABSENT, preset_differences
from cglsuite.specs import LEVELS, METRICS, SETTINGS

__all__ = ["expanded"]

ROOT = Path(__file__).resolve().parents[2]
_DIRECTIVE = re.compile(r"^\{\{ (\w+)((?: [^}\n]+)?) \}\}$", re.MULTILINE)


def expanded(markdown: str, here: str, catalogue: Catalogue) -> str:
    """The text with every directive, which stands on a line of its own, replaced by what it computes.

    Args:
        here: the page, below docs/.

    Raises:
        KeyError: there is no such directive.
    """

    def replacement(found: re.Match[str]) -> str:
        return _DIRECTIVES[found[1]](catalogue, here, found[2].split())

    return _DIRECTIVE.sub(replacement, markdown)


def _diff(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``diff A B [part]``: where two presets differ; ``settings`` leaves out what they choose per method."""
    a, b, *rest = words
    found = preset_differences(catalogue, a, b)
    if "settings" in rest:
        found = [d for d in found if d.section != "method_defaults"]
    rows = [(code(d.field), _side(d.a), _side(d.b), text(d.effect)) for d in found]
    shared = a.partition("/")[0] == b.partition("/")[0]
    named = [scenario_link(catalogue.get("scenario", n), here, n.partition("/")[2] if shared else n) for n in (a, b)]
    header = ("setting", *named, "what the difference does")
    return f"{len(rows)} values differ.\n\n{table(header, rows)}"


def _presets(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``presets PROTOCOL...``: all presets of protocols, with their level and what arrives."""
    rows = [
        (scenario_link(e, here), text(e.spec.summary)) for e in catalogue.entries("scenario") if getattr(e.spec, "protocol", "") in words
    ]
    return f"{len(rows)} presets.\n\n{table(('preset', 'what arrives'), rows)}"


def _settings(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``settings``: level by level and setting by setting, the newest preset on embedded data, and how many there are on real data."""
    embedded = {e.name for e in catalogue.entries("dataset") if e.spec.embedded}
    rows = []
    for level, setting in product(LEVELS, SETTINGS):
        those = [e for e in catalogue.entries("scenario") if (e.spec.level, e.spec.setting) == (level, setting)]
        own = [e for e in those if e.spec.dataset in embedded]
        if own:
            rows.append((level, setting, scenario_link(max(own, key=lambda e: e.name), here), str(len(those) - len(own))))
    return table(("level", "setting", "a preset on embedded data", "presets on real data"), rows)


def _published(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``published SETTING DATASET...``: average performance as papers print it, method by method; names as the papers have them."""
    from cglsuite.campaigns.reference import known_artefacts, published_results

    setting, *datasets = words
    rows, artefacts = published_results(), known_artefacts()
    rows = rows[(rows["setting"] == setting) & rows["dataset"].isin(datasets) & (rows["metric"] == "AP") & (rows["variant"] == "")]
    rows = rows[rows["mean"].notna() & (rows["backbone"] == "GCN")]
    papers = list(dict.fromkeys(rows["paper"]))
    printed = {(r.paper, r.method): r for r in rows.itertuples()}
    methods = [m for m in dict.fromkeys(rows["method"]) if all((p, m) in printed for p in papers)]
    known = artefacts[(artefacts["kind"] == "artefact")]

    def cell(paper: str, method: str) -> str:
        row: Any = printed[paper, method]
        notes = [n.reason for n in known.itertuples() if _concerns(n, row)]
        return text(f"{row.printed}%").replace(" ", "\N{NO-BREAK SPACE}") + (f" (artefact: {text('; '.join(notes))})" if notes else "")

    header = ("method", *(text(p) for p in papers))
    return table(header, [(text(m), *(cell(p, m) for p in papers)) for m in methods])


def _concerns(note: Any, row: Any) -> bool:
    """Whether a note of the table of known artefacts is about a published row: an empty field is about all."""
    fields = ("paper", "problem", "setting", "dataset", "method", "metric")
    return all(not getattr(note, f) or getattr(row, f) in getattr(note, f).split("|") for f in fields)


def _gap(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``gap SETTING METHOD DATASET...``: the two printed values in one sentence."""
    from cglsuite.campaigns.reference import published_results

    setting, method, *datasets = words
    rows = published_results()
    rows = rows[(rows["setting"] == setting) & (rows["method"] == method) & rows["dataset"].isin(datasets)]
    rows = rows[(rows["metric"] == "AP") & (rows["variant"] == "") & rows["mean"].notna()]
    printed = [f"{r.paper} reports **{r.printed}%** (table {r.table}, {r.dataset}, {r.setting})" for r in rows.itertuples()]
    return f"For the method {method}, " + ", ".join(printed[:-1]) + f" and {printed[-1]}.\n"


def _artefacts(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``artefacts PAPER...``: what is known of how published rows came about, where it is not what the protocol says."""
    from cglsuite.campaigns.reference import known_artefacts

    rows = known_artefacts()
    rows = rows[rows["paper"].isin(words)]
    columns = ("paper", "problem", "setting", "dataset", "method", "metric")
    cells = [(*(text(getattr(r, c).replace("|", ", ")) or "all" for c in columns), text(r.kind), text(r.reason)) for r in rows.itertuples()]
    return table((*columns, "kind", "reason"), cells)


def _leaks(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``leaks``: how well a probe finds the task of a query, preset by preset."""
    from cglsuite.campaigns.reference import leaks

    rows = []
    for row in leaks().itertuples():
        alone, grouped, chance = (f"{100 * share:.1f}" for share in (row.alone, row.grouped, row.chance))
        gain = f"{100 * row.leak:+.1f} [{100 * row.low:+.1f}, {100 * row.high:+.1f}]"
        rows.append((scenario_link(catalogue.get("scenario", row.scenario), here, row.scenario), row.group, chance, alone, grouped, gain))
    return table(("preset", "a group holds items of", "chance", "neighbourhood alone", "with the group's mean", "leak"), rows)


def _measured(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``measured DATASET SETTING METHOD FIELD [KEY=VALUE...]``: average performance in the records of the gallery, preset by preset and
    value by value of a setting, where other settings have the values given; what a record does not say is false."""
    dataset, setting, method, field, *given = words
    frame = gallery_records()
    frame = frame[(frame.dataset == dataset) & (frame.setting == setting) & (frame.method == method) & (frame.status == "done")]
    for key, wanted in (pair.split("=") for pair in given):
        frame = frame[_said(frame, key) == wanted]
    groups = frame.groupby(["scenario", _said(frame, field)]).average_performance
    spreads = {key: _spread(group).replace(" ", "\N{NO-BREAK SPACE}") for key, group in groups}
    values = sorted({v for _, v in spreads})
    rows = [
        (scenario_link(catalogue.get("scenario", s), here, s), *(spreads[s, v] for v in values)) for s in sorted({s for s, _ in spreads})
    ]
    return table(("preset", *(f"{code(field)} = {code(v)}" for v in values)), rows)


def _metrics(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``metrics WORD...``: what people may mean by what papers print, such as AF: every such metric with its sign."""
    asked = {word.lower() for word in words}
    meant = [spec for spec in METRICS.values() if asked & set(map(str.lower, spec.names))]
    rows = [(text(spec.title), code(spec.name), code(spec.formula), spec.better, text(spec.summary)) for spec in meant]
    return table(("papers print", "name here", "definition", "better", "in words"), rows)


def _beside(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``beside SETTING DATASET... : METHOD...``: see :func:`doc_beside.beside`."""
    return beside(gallery_repetitions(), words, catalogue)


def _said(frame: Any, key: str) -> Any:
    """What records say of a setting, as text."""
    given = frame[f"configuration.{key}"]
    return given.where(given.notna(), False).map(tidy)


def _spread(values: Any) -> str:
    """Mean and standard deviation in percent, and of how many."""
    n = len(values)
    return f"{100 * values.mean():.1f}%, 1 run" if n == 1 else f"{100 * values.mean():.1f} ± {100 * values.std():.1f}%, {n} runs"


def _command(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``commands``: the help of every command, as the command line prints it."""
    import click

    from cglsuite.cli.main import COMMANDS, cli

    context = click.Context(cli, info_name="cglsuite", max_content_width=100)
    sections = []
    for name in sorted(COMMANDS):
        command = cli.get_command(context, name)
        sections.append(_help(command, click.Context(command, info_name=name, parent=context, max_content_width=100)))
    return "\n".join(sections)


def _help(command: Any, context: Any) -> str:
    import click

    section = f"## {context.command_path}\n\n```text\n{click.unstyle(command.get_help(context))}\n```\n"
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        inner = command.get_command(context, name)
        section += _help(inner, click.Context(inner, info_name=name, parent=context, max_content_width=100)).replace("## ", "\n### ", 1)
    return section


def _file(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``file PATH``: the content of a file of the repository."""
    return (ROOT / words[0]).read_text(encoding="utf-8").rstrip("\n")


def _figure(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``figure VIEW SOURCE [PART]``: see :func:`doc_gallery.figures`."""
    from doc_gallery import figures

    return figures(words)


def _gallery(catalogue: Catalogue, here: str, words: list[str]) -> str:
    """``gallery``: every page of the gallery, see :func:`doc_gallery.gallery_sections`."""
    return gallery_sections()


def _side(given: Any) -> str:
    return "–" if given is ABSENT else value(given)


_DIRECTIVES: dict[str, Callable[[Catalogue, str, list[str]], str]] = {
    "artefacts": _artefacts,
    "beside": _beside,
    "commands": _command,
    "diff": _diff,
    "figure": _figure,
    "file": _file,
    "gallery": _gallery,
    "gap": _gap,
    "leaks": _leaks,
    "measured": _measured,
    "metrics": _metrics,
    "presets": _presets,
    "published": _published,
    "settings": _settings,
}
