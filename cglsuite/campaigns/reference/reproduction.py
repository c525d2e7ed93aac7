"""Reproduce published rows: select them by paper, data set, setting and method, plan campaigns for them, and run the missing cells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import CglsuiteError, DataAbsentError, NotApplicable, UnknownNameError, UsageError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.executors.base import RunOptions
from cglsuite.campaigns.executors.campaign_run import cell_states, find_executor
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.campaigns.reference.values import (
    PAPERS,
    REFERENCE,
    Paper,
    Recipe,
    RecipeBook,
    dataset_key,
    keyed_results,
    known_about,
    method_key,
    paper_named,
)
from cglsuite.cells.keys import design_key
from cglsuite.cells.plan import PlannedCell

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.cells.records.record import Record
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue


_JOINT = "joint"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A selection of published rows by paper, data set, setting and method. Each is optional, and may be given by its name in this suite or
    in the paper.

    ``paper``: empty = all papers (see :func:`selections_of`). ``repeats``: number of the protocol's repetitions; ``None`` = all.
    """

    paper: str = ""
    dataset: str = ""
    setting: str = ""
    method: str = ""
    repeats: int | None = None

    @property
    def title(self) -> str:
        """Describe the selection."""
        return ", ".join(filter(None, (self.paper or "all papers", self.dataset, self.setting, self.method)))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A published row with the recipe that reproduces it, or the reason why there is none."""

    row: Mapping[str, Any]
    recipe: Recipe | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """The reproduction of a selection with one catalogue.

    Args:
        entries: one per published row that has a value, in table order. times: the same for running times. unprinted: number of table
            cells without a value.
        campaigns: keyed by the design of the recipes that they serve (see :attr:`Recipe.design`).
    """

    selection: Selection
    paper: Paper
    entries: tuple[Entry, ...]
    times: tuple[Entry, ...] = ()
    unprinted: int = 0
    campaigns: Mapping[tuple[Any, ...], Campaign] = field(default_factory=dict)

    def plan(self, catalogue: Catalogue, overrides: Overrides | Mapping[str, Any] | None = None) -> list[PlannedCell]:
        """Plan the cells of all campaigns; a cell that several campaigns need appears once."""
        cells: dict[Any, PlannedCell] = {}
        for campaign in self.campaigns.values():
            for planned in plan_campaign(campaign, catalogue, overrides):
                cells.setdefault(planned.key or planned.request.label, planned)
        return list(cells.values())


# --- selecting rows --------------------------------------------------------------------------------------------------------------


def selections_of(selection: Selection) -> list[Selection]:
    """Split a selection by paper. A selection that names a paper is returned alone; otherwise, there is one for each paper with matching
    rows, in table order.

    If a paper's protocol has fewer repetitions than requested, all of them are used.

    Raises:
        UnknownNameError: no paper's tables have the data set, setting or method; the message suggests the nearest names.
        NotApplicable: no table combines the names in a cell. UsageError: fewer than one repetition is requested.
    """
    if selection.paper:
        return [selection]
    if selection.repeats is not None and selection.repeats < 1:
        raise UsageError(f"{selection.repeats} seeds: expected at least 1")
    selections = []
    for paper in PAPERS:
        repeats = None if selection.repeats is None else min(selection.repeats, paper.max_repeats)
        narrowed = replace(selection, paper=paper.name, repeats=repeats)
        try:
            _select_rows(narrowed, paper)
        except (UnknownNameError, NotApplicable):
            continue
        selections.append(narrowed)
    if not selections:
        _refuse_unknown(selection, keyed_results(), "the papers")
        raise NotApplicable(f"no paper's table has {selection.title.partition(', ')[2]}")
    return selections


def reproduction_of(selection: Selection, catalogue: Catalogue) -> Reproduction:
    """Return the published rows in a selection with their recipes, and the campaigns that reproduce them.

    Raises:
        UnknownNameError: the paper is unknown, or its tables lack the data set, setting or method; the message suggests the nearest names.
        NotApplicable: no table combines the names in a cell.
        UsageError: more repetitions than the protocol has, or fewer than one, are requested.
    """
    paper = paper_named(selection.paper)
    if selection.repeats is not None and not 1 <= selection.repeats <= paper.max_repeats:
        limit = f"the protocol of {paper.name} has {paper.max_repeats} repetitions"
        raise UsageError(f"{selection.repeats} seeds: {limit}; expected a number from 1 to {paper.max_repeats}")
    rows = _select_rows(selection, paper)
    selection = _as_printed(selection, paper, rows)
    printed = rows[rows["mean"].notna()]
    entries, book = [], RecipeBook(catalogue)
    for row in ({str(k): v for k, v in record.items()} for record in printed.to_dict(orient="records")):
        recipe_or_reason = "; ".join(known_about(row).unavailable) or book.recipe(row)
        entries.append(
            Entry(row=row, reason=recipe_or_reason) if isinstance(recipe_or_reason, str) else Entry(row=row, recipe=recipe_or_reason)
        )
    return Reproduction(
        selection=selection,
        paper=paper,
        entries=tuple(entry for entry in entries if entry.row["unit"] != "s"),
        times=tuple(entry for entry in entries if entry.row["unit"] == "s"),
        unprinted=len(rows) - len(printed),
        campaigns=_campaigns(selection, paper, [entry.recipe for entry in entries if entry.recipe is not None]),
    )


def _select_rows(selection: Selection, paper: Paper) -> pd.DataFrame:
    table = keyed_results()
    rows = table[table["paper"] == paper.name]
    _refuse_unknown(selection, rows, paper.name)
    remaining = rows
    for column, (_, key) in _NAMED.items():
        if wanted := getattr(selection, column):
            remaining = remaining[remaining[column].map(key) == key(wanted)]
    if remaining.empty:
        raise NotApplicable(f"no table of {paper.name} has {selection.title.partition(', ')[2]}: {_available_elsewhere(selection, rows)}")
    return remaining


_NAMED: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "dataset": ("data set", dataset_key),
    "setting": ("setting", str.lower),
    "method": ("method", method_key),
}
"""Per selection key: its description, and the function that normalises names for comparison."""


def _refuse_unknown(selection: Selection, rows: pd.DataFrame, whose: str) -> None:
    for column, (word, key) in _NAMED.items():
        wanted = getattr(selection, column)
        if wanted and key(wanted) not in set(rows[column].map(key)):
            raise UnknownNameError(f"{word} of {whose}", wanted, rows[column].unique())


def _as_printed(selection: Selection, paper: Paper, rows: pd.DataFrame) -> Selection:
    """Return the selection with the names as the paper spells them."""
    wanted = {column: getattr(selection, column) for column in ("dataset", "setting", "method")}
    return replace(selection, paper=paper.name, **{column: rows[column].iloc[0] for column, value in wanted.items() if value})


def _available_elsewhere(selection: Selection, rows: pd.DataFrame) -> str:
    """Describe where else the tables have the requested data set or method."""
    if selection.dataset:
        mine = rows[rows["dataset"].map(dataset_key) == dataset_key(selection.dataset)]
        if not selection.method or not selection.setting:
            return f"{selection.dataset} appears in {', '.join(mine['setting'].unique())} with {', '.join(mine['method'].unique())}"
        mine = mine[mine["setting"].str.lower() == selection.setting.lower()]
        return f"{selection.dataset} in {selection.setting} appears with {', '.join(mine['method'].unique()) or 'no method'}"
    mine = rows[rows["method"].map(method_key) == method_key(selection.method)]
    return f"{selection.method} appears in {', '.join(mine['setting'].unique())}"


# --- their cells -----------------------------------------------------------------------------------------------------------------


def _campaigns(selection: Selection, paper: Paper, recipes: Iterable[Recipe]) -> dict[tuple[Any, ...], Campaign]:
    """Build a campaign for every preset, backbone and set of overrides: its methods, and joint training if a metric compares with that."""
    by_design: dict[tuple[Any, ...], list[Recipe]] = defaultdict(list)
    for recipe in recipes:
        by_design[recipe.design].append(recipe)
    return {design: campaign_of(selection, paper, members) for design, members in by_design.items()}


def campaign_of(
    selection: Selection, paper: Paper, recipes: Sequence[Recipe], selected: Mapping[str, Mapping[str, Any]] | None = None
) -> Campaign:
    """Build the campaign for recipes with the same design, with the number of repetitions in the paper's protocol.

    Joint training has no first task and is never pre-trained, so pre-trained methods are compared with the same joint training.

    Args:
        selected: settings by method that replace the preset's, such as those chosen by a search.
    """
    longest = max(recipes, key=lambda recipe: len(recipe.orders))
    methods = [r.method for r in recipes] + [_JOINT for r in recipes if r.needs_joint]
    methods = list(dict.fromkeys(methods + [REFERENCE for r in recipes if r.needs_reference]))
    pretrained = {name: value for name, value in longest.overrides if name.startswith("pretraining.")}
    values = {name: value for name, value in longest.overrides if name not in pretrained}
    data: dict[str, Any] = {
        "name": f"reproduction-{paper.name.lower()}",
        "title": f"Reproduction of {selection.title}",
        "grid": {"scenarios": [longest.preset], "methods": methods, "backbones": [longest.backbone] if longest.backbone else []},
        "seeds": {axis: list(seeds[: selection.repeats]) for axis, seeds in paper.seeds.items()},
        "set": _settings_for_file(values),
        "run": {"numerics": "native"},  # the same as in the gallery's records
        "override": [{"match": {"method": name}, "set": pretrained} for name in methods if pretrained and name != _JOINT],
    }
    data["override"] += [{"match": {"method": name}, "set": _settings_for_file(settings)} for name, settings in (selected or {}).items()]
    if longest.orders:
        data["seeds"]["orders"] = list(longest.orders)
    return Campaign.parse(data)


def _settings_for_file(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they are written in a campaign file."""
    return {name: "none" if value is None else value for name, value in settings.items()}


def without_configuration(source: Overrides | Mapping[str, Any] | None) -> Overrides:
    """Return the device and number of workers set by overrides and the environment. Other overrides are refused, since published values
    need unchanged presets.

    Raises:
        UsageError: a setting is overridden, so the comparison would not be with the paper's presets.
    """
    overrides = Overrides.of(source)
    if overrides.values:
        overridden = ", ".join(f"{name}={value}" for name, value in overrides.values.items())
        raise UsageError(
            f"{overridden} is set (CGLSUITE_SET?): published values can be compared only with unchanged presets; remove the overrides"
        )
    return overrides


def lacking(cells: Iterable[PlannedCell], store: Store) -> list[PlannedCell]:
    """Return the cells that can be run and have no result."""
    unfinished = set(store.unfinished(planned.key for planned in cells if planned.ready))
    return [planned for planned in cells if planned.key in unfinished]


def results_on_other_devices(cells: Iterable[PlannedCell], records: Iterable[Record]) -> dict[str, int]:
    """Count, by device, the cells (all for one kind of device) that have a result from another device in ``records``."""
    cells = [planned for planned in cells if planned.cell is not None]
    here = {planned.request.device for planned in cells}
    others = [record for record in records if record.done and record.cell["device"] not in here]
    kinds = {(record.cell["scenario"], record.cell["method"]) for record in others}
    designs = {design_key(p.cell) for p in cells if p.cell is not None and (p.request.scenario, p.request.method) in kinds}
    done = {(record.cell["device"], record.design) for record in others if record.design in designs}
    return dict(sorted(Counter(device for device, _ in done).items()))


def absences(cells: Iterable[PlannedCell], catalogue: Catalogue, *, fetch: bool = False) -> dict[str, str]:
    """Explain, by data set, why files are unavailable. Only data sets of cells that could otherwise run are checked, each once.

    Args:
        fetch: download missing files that have a public source.
    """
    needed = {planned.cell.scenario.dataset: planned.cell.dataset_hyperparameters for planned in cells if planned.cell is not None}
    reasons = {name: absent_data(catalogue, name, hyperparameters, fetch=fetch) for name, hyperparameters in needed.items()}
    return {name: reason for name, reason in reasons.items() if reason}


@dataclass(frozen=True, kw_only=True)
class PlannedGroup:
    """Counts, times and reasons of the cells of one preset, method and backbone.

    Args:
        counts: cells by state: done, running, missing, no data, n/a, or the status of a record that is no result.
        mean_s: mean run time of a cell of this preset and method; ``None`` if there is no record of one.
        reasons: why cells cannot be run.
    """

    preset: str
    method: str
    backbone: str
    counts: Mapping[str, int]
    mean_s: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def to_run(self) -> int:
        """The number of cells that would be trained."""
        return sum(n for state, n in self.counts.items() if state not in ("done", "n/a", "no data"))

    @property
    def expected_s(self) -> float | None:
        """The expected time in seconds to run those cells sequentially."""
        return None if self.mean_s is None else self.mean_s * self.to_run


def planned_groups(
    cells: Sequence[PlannedCell], store: Store, absent: Mapping[str, str], records: Iterable[Record] = ()
) -> list[PlannedGroup]:
    """Count cells by preset, method and backbone.

    Args:
        cells: all for one kind of device. absent: the result of :func:`absences`. records: used to estimate the time of a cell on that
            device; they may come from different code.
    """
    times: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for record in records:
        if record.done and (seconds := record.timings_s.get("total")) is not None:
            times[record.cell["scenario"], record.cell["method"], record.cell["device"]].append(seconds)
    device = next((planned.request.device for planned in cells), "")
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    reasons: dict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    for known in cell_states(cells, store):
        planned, state, reason = known.planned, known.state, known.planned.reason
        group = (planned.request.scenario, planned.request.method, planned.backbone)
        if state not in ("done", "n/a", "running") and planned.cell is not None and planned.cell.scenario.dataset in absent:
            state, reason = "no data", absent[planned.cell.scenario.dataset]
        counts[group][state] += 1
        reasons[group] |= {reason: None} if reason else {}
    return [
        PlannedGroup(
            preset=preset,
            method=method,
            backbone=backbone,
            counts=dict(n),
            mean_s=sum(taken) / len(taken) if (taken := times.get((preset, method, device))) else None,
            reasons=tuple(reasons[preset, method, backbone]),
        )
        for (preset, method, backbone), n in counts.items()
    ]


def run_missing(
    cells: Sequence[PlannedCell],
    catalogue: Catalogue,
    store: Store,
    *,
    absent: Mapping[str, str],
    workers: int | None = None,
    label: str = "reproduction",
    progress: bool = True,
) -> None:
    """Run the cells that have no result and whose data are available, as ``cglsuite run`` does.

    Raises:
        StoreError: the store cannot be written.
    """
    runnable = [p for p in cells if p.cell is not None and p.cell.scenario.dataset not in absent]
    options = RunOptions(catalogue=catalogue, workers=workers or 1, label=label, progress=progress)
    find_executor(catalogue, "local").run(runnable, store, options)


# Check whether the raw files of a data set exist without reading them: run its loader until it would open the first file.

State = Literal["here", "missing", "embedded", "unknown"]


@dataclass(frozen=True)
class Presence:
    """Whether the files of a data set are available here.

    ``files`` are the existing files, ``reason`` explains why one is missing, and ``urls`` are the addresses from which a run would download
    the first missing file. The state is ``unknown`` if the loader does not find any file and does not name a missing one.
    """

    state: State
    files: tuple[Path, ...] = ()
    reason: str = ""
    urls: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The total size of the existing files in bytes."""
        return sum(path.stat().st_size for path in self.files if path.is_file())


class _FilesPresent(Exception):
    """Raised when every file is present and the loader would begin to read."""


class _FileMissing(Exception):
    """Raised at the first missing file."""


class _FileProbe(DataRoot):
    """A data root that locates files without opening or checking them.

    Args:
        fetch: download and verify missing files that have a public source, as loading the data set would.
    """

    def __init__(self, data_root: DataRoot, fetch: bool) -> None:
        super().__init__(data_root.folders, data_root.cache, data_root.offline, verify=fetch and data_root.verify)
        self.fetch = fetch
        self.present: dict[Path, None] = {}
        self.wanted: tuple[str, ...] = ()

    def find(self, relative: str, *, sha256: str | None = None) -> Path | None:
        path = super().find(relative, sha256=sha256)
        if path is not None:
            self.present[path] = None
        return path

    def file(self, relative: str, *, sha256: str | None = None, urls: Iterable[str] = (), note: str = "") -> Path:
        urls = tuple(urls)
        if self.fetch:
            path = super().file(relative, sha256=sha256, urls=urls, note=note)
            self.present[path] = None
            return path
        file = self.find(relative)
        if file is None:
            raise _FileMissing(self._missing_file([relative], urls))
        return file

    def unpacked(self, members: Mapping[str, str], *, urls: Iterable[str], sha256: str | None = None, note: str = "") -> dict[str, Path]:
        urls = tuple(urls)
        if self.fetch:
            paths = super().unpacked(members, urls=urls, sha256=sha256, note=note)
            self.present |= dict.fromkeys(paths.values())
            return paths
        known = {relative: self.find(relative) for relative in members}
        if absent := [relative for relative, path in known.items() if path is None]:
            raise _FileMissing(self._missing_file(absent, urls))
        return {relative: path for relative, path in known.items() if path is not None}

    def sha256(self, path: Path) -> str:
        return super().sha256(path) if self.fetch else ""

    def derived(self, name: str, key: object, build: Any) -> NoReturn:
        raise _FilesPresent

    def stage(self, files: Mapping[str, Path]) -> Any:
        raise _FilesPresent

    def _missing_file(self, absent: list[str], urls: tuple[str, ...]) -> str:
        self.wanted = urls
        more = f" (and {len(absent) - 1} more files)" if len(absent) > 1 else ""
        what = f"the data file {absent[0]}{more} is absent"
        if urls and not self.offline:
            return f"{what}; a run would download it from {urls[0]}"
        return f"{what}; put it below " + (" or ".join(map(str, self.folders)) or "a folder and set CGLSUITE_DATA to that folder")


def data_presence(
    catalogue: Catalogue,
    dataset: str,
    hyperparameters: Mapping[str, Any] | None = None,
    *,
    root: DataRoot | None = None,
    fetch: bool = False,
) -> Presence:
    """Check whether the files of a data set are available here, without loading them.

    Args:
        catalogue: the catalogue with the data set.
        dataset: the data set's name.
        hyperparameters: the data set's hyperparameters; default: its defaults.
        root: the data root; default: the environment's.
        fetch: download and verify missing files that have a public source. A failed download is reported as the reason, on several lines.

    Raises:
        UnknownNameError: there is no such data set.
    """
    spec = catalogue.dataset(dataset)
    if spec.embedded:
        return Presence(state="embedded")
    values = {h.name: h.default for h in spec.hyperparameters} if hyperparameters is None else dict(hyperparameters)
    files = _FileProbe(root or DataRoot.from_environment(), fetch)
    state, reason = _file_state(catalogue, dataset, values, files)
    return Presence(state=state, files=tuple(files.present), reason=reason, urls=files.wanted)


def _file_state(catalogue: Catalogue, dataset: str, hyperparameters: Mapping[str, Any], files: _FileProbe) -> tuple[State, str]:
    """Return the state of the files, and why they are unavailable."""
    try:
        catalogue.resolve(catalogue.get("dataset", dataset))(files, **dict(hyperparameters))
    except _FilesPresent:
        return "here", ""
    except _FileMissing as absent:
        return "missing", str(absent)
    except DataAbsentError as error:
        return "missing", str(error)
    except CglsuiteError as error:
        return "unknown", str(error)
    except Exception:  # noqa: BLE001 - a loader that does not get along with a root that only looks: its cells will say what is wrong
        return "unknown", ""
    return "here", ""


def absent_data(
    catalogue: Catalogue, dataset: str, hyperparameters: Mapping[str, Any], *, root: DataRoot | None = None, fetch: bool = False
) -> str:
    """Explain in one sentence why the files of a data set are unavailable here. Returns an empty string if no reason is known.

    Args:
        hyperparameters: the data set's hyperparameters. root: the data root; default: the environment's.
        fetch: download missing files that have a public source. A failed download is reported as the reason.
    """
    known = data_presence(catalogue, dataset, hyperparameters, root=root, fetch=fetch)
    return " ".join(known.reason.split())
