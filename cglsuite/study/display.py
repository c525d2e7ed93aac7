"""Display the suite's objects in notebooks. Displays are registered by class name, so that lower layers do not import this module.

``spec_facts`` is the single source of a spec's facts, for the command line and for notebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Fragment, card, element, fold, grid, several, tidy
from cglsuite.campaigns.reference import queries_note
from cglsuite.host import Catalogue, Entry, PluginRecord
from cglsuite.host.discovery import KindView, some_names
from cglsuite.specs import KINDS
from cglsuite.specs.switch import fields_with_level

if TYPE_CHECKING:
    from torch import Tensor

    from cglsuite.cells.records.record import Record
    from cglsuite.cells.storage.store import Store
    from cglsuite.graphs import GraphData, LinkData, NodeData
    from cglsuite.streams import TaskFacts, TaskView
    from cglsuite.streams.stream import Stream
    from cglsuite.study.study import Study


COLUMNS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "dataset": {"LEVELS": lambda s: s.levels, "LICENCE": lambda s: s.licence},
    "scenario": {"LEVEL": lambda s: s.level, "EDGES": lambda s: s.edge_policy},
    "backbone": {"LEVELS": lambda s: s.levels},
    "method": {"CATEGORY": lambda s: s.category, "LEVELS": lambda s: s.levels},
    "pretraining": {"LEVELS": lambda s: s.levels},
    "measure": {"LABELS": lambda s: s.labels, "BETTER": lambda s: {"up": "higher", "down": "lower"}.get(s.direction, s.direction)},
    "metric": {"BETTER": lambda s: s.better},
    "schedule": {},
    "encoder": {"MODEL": lambda s: s.model or "-", "LICENCE": lambda s: s.licence},
    "notebook": {"FOR": lambda s: "exploring" if s.interactive else "reports"},
    "executor": {},
    "command": {},
}
"""The columns of each kind's table, between the name and the provider."""
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
            "model",
            "revision",
            "tokens",
            "cutoff",
            "licence",
            "home",
            "embedded",
            "citation",
        ),
        *("note", "factory", "builder", "path", "interactive", "replaces"),
    )
} | {"undefined": "no value if"}


def spec_facts(spec: Any) -> Iterator[tuple[str, Any]]:
    """Yield the non-empty fields of a spec as (label, value) pairs."""
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
    """Yield a (title, settings) pair for everything in a spec that can be configured."""
    for attribute, title in (("hyperparameters", "hyperparameters"), ("options", "options")):
        if hyperparameters := getattr(spec, attribute, ()):
            yield title, hyperparameters


def allowed(setting: Any) -> str:
    """Describe the values that a :class:`cglsuite.Hyperparameter` accepts."""
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
    """Return the (dotted name, value, meaning) of every switch of a protocol dataclass."""
    documented = [(f, value) for f, value in fields_with_level(part) if f.metadata.get("doc")]
    return [(f"{prefix}.{f.name}", shown_value(value), f.metadata["doc"]) for f, value in documented]


def shown_value(value: Any) -> str:
    """Format a value as one line of text. A tuple of (name, value) pairs becomes ``name=value, ...``."""
    if isinstance(value, tuple) and value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return ", ".join(f"{name}={tidy(v)}" for name, v in value)
    return tidy(value)


def spec_card(spec: Any, facts: Iterable[tuple[str, Any]] = ()) -> str:
    """Render a spec as a notebook card with ``facts``, the fields of the spec and a collapsed list of its settings."""
    folds = [
        fold(title, grid(("setting", "type", "default", "allowed", "meaning"), [_setting(h) for h in hyperparameters]))
        for title, hyperparameters in declared(spec)
    ]
    training = spec.training if spec.kind == "scenario" else None  # the facts already list a method's defaults
    for title, part, prefix in (("protocol", spec, "scenario"), ("training", training, "training")):
        rows = switch_rows(part, prefix) if part is not None else []
        folds += [fold(title, grid(("switch", "value", "meaning"), rows))] if rows else []
    note = queries_note(spec.name, vars(spec)) if spec.kind == "scenario" else ""
    shown = [*facts, *spec_facts(spec), *([("queries", note)] if note else [])]
    return card(f"{spec.kind} {spec.name}", shown, *folds, summary=spec.summary)


def _setting(h: Any) -> tuple[str, str, Any, str, str]:
    return h.name, h.type.__name__, h.default, allowed(h), h.doc


def entry_card(entry: Entry) -> str:
    """Render a spec and its provider."""
    return spec_card(entry.spec, [("provider", entry.provider)])


def kind_card(view: KindView) -> str:
    """Render the entries of a kind as a table with one row each."""
    columns = COLUMNS[view.kind]
    header = ("name", *(title.lower() for title in columns), "provider", "summary")
    rows = ((e.name, *(column(e.spec) for column in columns.values()), e.provider, e.spec.summary) for e in view.values())
    return card(f"{len(view)} {view.kind}s", (), grid(header, rows))


def catalogue_card(catalogue: Catalogue) -> str:
    """Render a catalogue as a card with the number of entries of each kind, the faults and the providers."""
    kinds = [(f"{kind}s", len(names), some_names(names)) for kind in KINDS if (names := catalogue.names(kind))]
    faults = [f"{r.label} is quarantined: {r.error}. To fix it: {r.fix}" for r in catalogue.failed]
    faults += [collision.message for collision in catalogue.collisions]
    records = [(r.distribution, r.version, r.status, r.entry_point, provided(r)) for r in catalogue.records]
    return card(
        f"Catalogue of {len(records)} plugins",
        (),
        grid(("kind", "number", "names"), kinds),
        element("ul", *(element("li", tidy(fault)) for fault in faults)) if faults else None,
        fold("plugins", grid(("distribution", "version", "status", "entry point", "provides"), records)),
    )


def provided(record: PluginRecord) -> str:
    """Count what a plugin provides by kind: ``2 methods, 1 dataset``."""
    return ", ".join(several(len(names), kind) for kind, names in record.provides.items())


def record_card(record: Record) -> str:
    """Render a record as a card that shows its performance. Its key, environment and code are collapsed."""
    from cglsuite.reports.results.measures import is_fraction, performance_name

    after = record.stream.get("evaluations") or range(len(record.matrix))
    rows = [[k or "none", *("–" if v is None else f"{v:.4g}" for v in row)] for k, row in zip(after, record.matrix, strict=True)]
    columns = [f"task {j + 1}" for j in range(len(record.matrix[0]) if record.matrix else 0)]
    named = [(p.get("role"), p.get("name") or p.get("names") or "") for p in record.makers]
    makers = [(*n, p.get("distribution"), p["version"], p["source"][:12]) for n, p in zip(named, record.makers, strict=True)]
    metrics = [(name, f"{value:.4g}") for name, value in record.metrics.items() if value is not None]
    final = [v for v in record.matrix[-1] if v is not None] if record.matrix and record.matrix[-1] else []
    scale, unit = (100, "%") if is_fraction(record) else (1, "")
    average = [(f"average {performance_name(record.scenario)} at the end", f"{scale * sum(final) / len(final):.4g}{unit}")] if final else []
    total = record.timings_s.get("total")
    facts = [("reason", record.reason)] if record.reason else []
    note = queries_note(record.cell["preset"], record.scenario) if record.matrix else ""
    return card(
        f"{record.label}: {record.status}",
        [*facts, *average, *([("time", f"{total:.1f} s")] if total is not None else [])],
        fold("performance", grid(("after step" if record.stream else "after task", *columns), rows)) if 0 < len(columns) <= 30 else None,
        fold("metrics", grid(("metric", "value"), metrics)) if metrics else None,
        fold("key, device and queries", grid(("fact", "value"), [*record.facts, *([("queries", note)] if note else [])])),
        fold("code", grid(("role", "name", "distribution", "version", "source"), makers)),
    )


def study_card(study: Study) -> str:
    """Render a study as a card that shows what was run and, for each scenario, the findings and a table of means in percent."""
    from cglsuite.reports.studies.comparison.compute import means, sentences, unit_text

    parts: list[Fragment] = []
    for compared in study.comparisons() if study.results.used else []:
        measured = f"{compared.question.metric.replace('_', ' ')}{', %' if compared.percent else ''}"
        rows = [
            (
                row["method"],
                unit_text(compared, row["mean"]),
                "" if row["low"] != row["low"] else f"{unit_text(compared, row['low'])} to {unit_text(compared, row['high'])}",
                row["replicates"] or several(row["cells"], "cell"),
            )
            for row in means(compared).to_dict("records")
        ]
        heading = element("strong", compared.name)
        parts += [element("p", heading, element("br"), " ".join(sentences(compared)))]
        parts += [grid(("method", measured, f"{1 - compared.question.alpha:.0%} interval", "over"), rows)]
    return card(repr(study)[1:-1], [], *parts, *(element("p", reason) for reason in study.reasons))


def store_card(store: Store) -> str:
    """Render a store as a card that counts its contents without reading them."""
    folders = (("searches", "*.json"), ("checkpoints", "*.pt"))
    counts = [(name, sum(not p.name.startswith(".") for p in (store.path / name).glob(form))) for name, form in folders]
    set_aside = sum(1 for _ in (store.path / "corrupt").glob("*"))
    facts = [("records", len(store.keys())), *counts, *([("unreadable, set aside", set_aside)] if set_aside else [])]
    return card(f"Store {store.path}", facts)


def report_card(report: Any) -> str:
    """Render a :class:`cglsuite.testing.CheckReport`: its verdict and a table of its findings, failures first."""
    verdict = "conforms" if report.passed else "does not conform"
    order = sorted(report.findings, key=lambda f: ("failed", "skipped", "ok").index(f.status))
    rows = [(f.status, f.check, f.where.partition("@")[0], f.message, f.fix) for f in order]
    table = grid(("status", "check", "where", "message", "fix"), rows)
    return card(f"{report.kind} {report.name} {verdict}", [("provider", report.provider)], table)


def card_of(stream: Stream) -> str:
    """Render the facts and the tasks of a stream as HTML."""
    from cglsuite.streams import TaskFreeStream

    n, facts = len(stream), [("scenario", stream.spec.name)]
    sizes = [("outputs", str(stream.n_outputs)), ("features", str(stream.n_features)), ("data", stream.data_hash)]
    if not isinstance(stream, TaskFreeStream):
        return card(f"stream of {n} tasks", [*facts, *sizes], task_grid(stream.tasks))
    steps = [("steps", str(stream.n_steps)), ("items per step", str(stream.items.shape[1])), ("evaluations", str(len(stream.evaluations)))]
    return card(f"stream of {stream.n_steps} steps over {n} latent tasks", [*facts, *steps, *sizes], task_grid(stream.tasks))


def task_grid(tasks: Sequence[TaskFacts]) -> Fragment:
    """Render the facts of a stream's tasks as a table with one row per task."""
    rows = ((k + 1, t.name, t.classes, t.n_train, t.n_validation, t.n_test) for k, t in enumerate(tasks))
    return grid(("task", "name", "classes", "training", "validation", "test"), rows)


def data_card(data: NodeData | LinkData | GraphData) -> str:
    """Render a data set as a card with its sizes, split and attributes. The number of items per class is collapsed."""
    facts = []
    if data.official_split is not None:
        sizes = ((int((data.official_split == part).sum()), name) for part, name in enumerate(("training", "validation", "test")))
        facts += [("split of the data set", ", ".join(f"{n:,} {name}" for n, name in sizes))]
    facts += [(key, f"{int(values.min())} to {int(values.max())}") for key, values in data.keys.items() if values.numel()]
    if data.y.dim() == 1 and (unlabelled := int((data.y < 0).sum())):
        facts += [("without a label", f"{unlabelled:,}")]
    return card(f"data set {data.name}", facts, _class_sizes(data.y), summary=repr(data)[1:-1].partition(": ")[2])


def view_card(view: TaskView) -> str:
    """Render a task's view as a card that shows what a method sees of the task. The number of training items per class is collapsed."""
    classes, graph = view.classes.tolist(), repr(view.graph)[1:-1].partition(" of ")[2]
    outputs = f"{int(view.task_outputs.sum())} of this task, {int(view.seen_outputs.sum())} seen so far, {view.n_outputs} in total"
    items = [("training", f"{len(view.train):,}", "yes"), ("validation", f"{len(view.validation):,}", "hidden")]
    labels = _class_sizes(view.train.y) if view.train.y is not None else None
    facts = [("classes", classes), ("outputs", outputs), ("graph", graph), ("past views", len(view.past))]
    return card(
        f"view of task {view.position + 1} of {view.n_tasks}",
        [fact for fact in facts if fact[1]],
        grid(("items", "number", "labels"), items),
        labels,
    )


def _class_sizes(y: Tensor) -> Fragment | None:
    """Render the number of items per class, collapsed; ``None`` for real-valued targets and links to predict."""
    if y.is_floating_point() or y.shape[1:] == (1,):
        return None
    sizes = y[y >= 0].bincount() if y.dim() == 1 else y.sum(dim=0)
    return fold("items per class", grid(("class", "items"), [(c, f"{n:,}") for c, n in enumerate(sizes.tolist()) if n]))


def campaign_card(results: Any) -> str:
    """Render the progress of a campaign, followed by warnings about its results."""
    from cglsuite.reports.results.summary import overview

    return str(overview(results))
