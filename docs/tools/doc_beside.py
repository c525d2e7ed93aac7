"""``{{ beside SETTING [@PROTOCOL] [preset] [pretrained] DATASET... : METHOD... }}``: repetitions in the gallery beside a paper's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doc_text import table, text

if TYPE_CHECKING:
    from cglsuite.campaigns.reference.values import Paper

__all__ = ["HEADER", "beside"]

HEADER = ("data", "method", "runs", "AP here", "AP in print", "verdict", "AF here", "AF in print", "verdict")
_PROTOCOL, _METRICS = "begin-1", ("AP", "AF")
_FORM, _SCHEME, _CARRIED = "configuration.method.as_begin", "configuration.pretraining.scheme", "configuration.method.warm_start"
_CHOSEN = ("training.lr", "backbone.dropout", "backbone.predictor_dropout", "method.threshold", "method.beta")


@dataclass
class _Cell:
    """A metric of a row: ours, the printed value and the verdict, with the test of a row that has one."""

    ours: str
    printed: str
    verdict: str
    found: Any = None


def beside(frame: Any, words: Sequence[str], catalogue: Any = None) -> str:
    """A row per data set, method and form of the method: mean and standard deviation over the repetitions, and the verdict on both metrics.

    Joint training whose model is carried over from task to task is a form of its own.

    A verdict is that of the ledger: two one-sided tests, Welch's test after Holm's adjustment over the values of the table; beside
    ``undecided`` stands the smallest margin that would do. There is none for fewer than three runs, nor for a method in its paper's form
    where the benchmark ran another, nor for a printed value with a known artefact where ours is not in the form that was benchmarked.

    Args:
        frame: the records' table, see :func:`doc_gallery.gallery_repetitions`.
        words: the setting, the protocol, whose paper's values they are (``@begin-2``; ``@begin-1`` if it is left out), ``preset`` for cells
            with the preset's own values of what BeGin searches (where others have been run as often), ``pretrained`` for a row also per
            scheme of pre-training of which the paper prints values, data sets, a colon, methods.
        catalogue: of the presets, for ``preset``, and for what a campaign varied: where several values have been run equally often, the
            preset's own count. Without it the first do.
    """
    setting, *others = words[: words.index(":")]
    protocol = next((word[1:] for word in others if word.startswith("@")), _PROTOCOL)
    datasets = [word for word in others if not word.startswith("@") and word not in ("preset", "pretrained")]
    methods = words[words.index(":") + 1 :]
    paper = _paper(protocol)
    frame = frame[(frame.status == "done") & (frame.protocol == protocol) & (frame.setting == setting)]
    rows: list[tuple[str, ...]] = []
    cells: list[dict[str, _Cell]] = []
    for dataset in datasets:
        for method in methods:
            mine = frame[(frame.dataset == dataset) & (frame.method == method)]
            own = {} if catalogue is None else _own(catalogue, f"{dataset}/{setting}@{protocol}", method)
            if "preset" in others:
                mine = _of_preset(mine, own)
            place = (dataset, setting, method)
            groups = [(group, _variant(paper, *place, group)) for group in _groups(mine, own)]
            shown = [(group, variant) for group, variant in groups if "pretrained" in others or not variant]
            for group, variant in shown or [(mine.iloc[:0], "")]:
                rows.append((text(dataset), _named(method, group), str(len(group)) if len(group) else "not run"))
                cells.append({metric: _cell(group, paper, place, metric, variant) for metric in _METRICS})
    for metric in _METRICS:
        _judge([row[metric] for row in cells])
    tails = [tuple(_unbroken(part) for cell in row.values() for part in (cell.ours, cell.printed, cell.verdict)) for row in cells]
    return table(HEADER, [head + tail for head, tail in zip(rows, tails, strict=True)])


def _paper(protocol: str) -> Paper:
    from cglsuite.campaigns.reference.values import paper_of

    paper = paper_of(protocol)
    if paper is None:
        raise ValueError(f"no paper has the protocol {protocol!r}")
    return paper


def _unbroken(value: str) -> str:
    """A mean and its deviation on one line."""
    return value.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}").replace("(± ", "(±\N{NO-BREAK SPACE}")


def _own(catalogue: Any, scenario: str, method: str) -> Mapping[str, Any]:
    """The preset's own settings."""
    from cglsuite.cells import resolve_cell

    return resolve_cell(catalogue, scenario, method).configuration


def _of_preset(frame: Any, own: Mapping[str, Any]) -> Any:
    """The cells that have the preset's values of what BeGin searches."""
    for name in (*_CHOSEN, "training.weight_decay"):
        if (value := own.get(name)) is not None:
            frame = frame[frame[f"configuration.{name}"] == value]
    return frame


def _groups(frame: Any, own: Mapping[str, Any]) -> list[Any]:
    """Cells that differ in nothing but their seeds, those as benchmarked first. What a search tried on one order and did not choose is left
    out where its choice has been run often enough for a verdict; so is what a campaign varied of which nothing is searched."""
    from cglsuite.campaigns.reference.values import MIN_RUNS

    keys = [key for key in (_FORM, _SCHEME, _CARRIED, *(f"configuration.{key}" for key in _CHOSEN)) if key in frame]
    others = [column for column in frame if column.startswith("configuration.") and column not in keys]
    found = [_most_run(group, others, own) for _, group in frame.groupby(keys, dropna=False, sort=False)]
    judged = {_of_the_paper(group) for group in found if len(group) >= MIN_RUNS}
    return sorted((group for group in found if len(group) >= MIN_RUNS or _of_the_paper(group) not in judged), key=_of_the_paper)


def _most_run(frame: Any, columns: list[str], own: Mapping[str, Any]) -> Any:
    """Of the values in ``columns`` those of the most cells: a protocol is run on all its orders, a variation of it on some.

    Of several with as many cells, those that are the preset's own in the most columns.
    """
    settings = frame[columns].apply(lambda row: repr(tuple(row)), axis=1)
    counts = settings.value_counts()
    kept = [column for column in columns if column.removeprefix("configuration.") in own]
    alike = sum((frame[column] == own[column.removeprefix("configuration.")]).astype(int) for column in kept)
    most = frame.assign(alike=alike)[settings.map(counts) == counts.max()]
    return frame[settings == settings[most["alike"].idxmax()]]


def _of_the_paper(group: Any) -> bool:
    """Whether the method has a form as benchmarked, and this is the other."""
    return bool(len(group)) and group[_FORM].iloc[0] is False


def _named(method: str, group: Any) -> str:
    """The method, its form and what a search chose."""
    if not len(group):
        return text(method)
    first = group.iloc[0]
    form = {True: "as benchmarked", False: "as in the paper"}.get(first[_FORM], "")
    carried = "carried over" if first.get(_CARRIED) is True else ""
    chosen = [f"{key.partition('.')[2]} {first[f'configuration.{key}']:g}" for key in _CHOSEN if first[f"configuration.{key}"] is not None]
    return f"{text(method)} ({text(', '.join(filter(None, (form, carried, _scheme(group), *chosen))))})"


def _cell(group: Any, paper: Paper, place: tuple[str, str, str], metric: str, variant: str) -> _Cell:
    from cglsuite.campaigns.reference.values import MIN_RUNS, known_about, repetitions_mean, shown_value, verdict_on
    from cglsuite.stats import Refused

    printed, ours_of = _printed(paper, *place, metric, variant), paper.metrics[metric]
    if printed is None:
        return _Cell("–", "–", "none")
    values = [float(value) for value in group[ours_of]]
    if len(values) < MIN_RUNS:
        return _Cell(", ".join(f"{100 * v:.1f}" for v in values) or "–", text(shown_value(printed, percent=True)), "none")
    ours = repetitions_mean(values)
    why_none = "another form" if _of_the_paper(group) else ""
    if known_about(printed).artefacts and group[_FORM].iloc[0] is not True:
        why_none = why_none or "artefact"
    found = None
    if not why_none:
        try:
            found = verdict_on(printed, ours_of, ours, paper.repeats)
        except Refused:
            why_none = "no verdict"
    return _Cell(f"{100 * ours.mean:.1f} ± {100 * ours.spread:.1f}", text(shown_value(printed, percent=True)), why_none, found)


def _scheme(group: Any) -> str:
    """What trained the body before the first task; empty where it begins at random."""
    scheme = group[_SCHEME].iloc[0] if len(group) else None
    return scheme if isinstance(scheme, str) and scheme != "none" else ""


def _variant(paper: Paper, dataset: str, setting: str, method: str, group: Any) -> str:
    """The variant of the printed rows that are of the same pre-training; empty where the paper prints none of its own."""
    scheme = _scheme(group)
    rows = _rows(paper, dataset, setting, method) if scheme else None
    return "" if rows is None else next((name for name in rows["variant"] if name.lower() == f"ssl={scheme}"), "")


def _printed(paper: Paper, dataset: str, setting: str, method: str, metric: str, variant: str) -> dict[str, Any] | None:
    """The row of the paper's main tables, or of a variant, if there is one: joint training has no AF."""
    rows = _rows(paper, dataset, setting, method)
    found = rows[(rows["variant"] == variant) & (rows["metric"] == metric) & rows["mean"].notna()].to_dict(orient="records")
    if len(found) > 1:
        raise ValueError(f"{paper.name} prints {len(found)} values of {metric} for {method} on {dataset} in {setting}; expected one")
    return {str(key): value for key, value in found[0].items()} if found else None


def _rows(paper: Paper, dataset: str, setting: str, method: str) -> Any:
    from cglsuite.campaigns.reference.values import dataset_key, keyed_results, method_key

    rows = keyed_results()
    mine = (rows["paper"] == paper.name) & (rows["dataset"].map(dataset_key) == dataset_key(dataset))
    return rows[mine & (rows["setting"].str.lower() == setting) & (rows["method_key"] == method_key(method))]


def _judge(cells: list[_Cell]) -> None:
    """Put the verdicts in; Holm's adjustment is over these cells."""
    from cglsuite.stats import agreement_verdicts

    tested = [cell for cell in cells if cell.found is not None]
    verdicts, _ = agreement_verdicts([cell.found.p_equivalent for cell in tested], [cell.found.p_different for cell in tested])
    for cell, verdict in zip(tested, verdicts, strict=True):
        cell.verdict = f"{verdict} (± {cell.found.smallest_margin:.1f})" if verdict == "undecided" else verdict
