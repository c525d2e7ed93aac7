"""Load the results shown in reports: the planned cells of a campaign together with their records in the store."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import cglsuite.cells.keys as keys
from cglsuite.base.hashing import canonical, digest
from cglsuite.base.markup import displayed
from cglsuite.campaigns.campaign import Campaign, load_campaign
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.planning import plan_campaign, plan_search, select_cells
from cglsuite.cells.keys import keyed_torch, torch_version
from cglsuite.cells.plan import CellRequest, PlannedCell
from cglsuite.cells.records.describe import unlike_metrics
from cglsuite.cells.records.frame import UPPER_BOUND, Compared, compared_metrics, reference_matrices, results_frame
from cglsuite.cells.records.metric_values import completed
from cglsuite.cells.records.record import Matrix, Record, canonical_json
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.reports.kit.text import scenario_words, value_text
from cglsuite.reports.results.variants import PresetVariant, preset_variants, record_variants, without_choices
from cglsuite.specs import NO_PRETRAINING, MethodSpec, MetricSpec, Seeds
from cglsuite.specs.plugins import PRETRAINING_SCHEME

if TYPE_CHECKING:
    import pandas as pd


REFERENCE = "reference"
"""The category of methods that do not compete: upper bounds, which use more data than a learner may, and controls that learn less."""


@dataclass(frozen=True, kw_only=True)
class ReportedCell:
    """One planned cell and its record, if the store has one.

    ``state`` is the record's status (``done``, ``failed``, ...). Without a record it is ``missing``, ``n/a`` or ``waiting`` (for a search).
    ``stale`` describes how the record's code or machine class differs from the current one; it is empty if they are the same.
    """

    planned: PlannedCell
    state: str
    reason: str = ""
    record: Record | None = None
    stale: str = ""

    @property
    def done(self) -> bool:
        """Whether the cell has a finished record."""
        return self.record is not None and self.record.done


@dataclass(frozen=True, kw_only=True)
class Group:
    """Records that differ only in their seeds, which makes a mean over them meaningful.

    ``variant`` names the settings that distinguish groups of the same preset, method and backbone. It is usually empty.
    """

    preset: str
    method: str
    backbone: str
    variant: str
    cells: tuple[ReportedCell, ...]

    @property
    def records(self) -> list[Record]:
        """The group's finished records."""
        return [c.record for c in self.cells if c.record is not None and c.record.done]

    @property
    def pretraining(self) -> str:
        """The pre-training scheme of the models, or ``none`` if they started from random weights."""
        return str(self.records[0].cell["configuration"].get(PRETRAINING_SCHEME, NO_PRETRAINING))

    @property
    def task_free(self) -> bool:
        """Whether the records come from a task-free stream. The rows of their matrices are then its evaluations."""
        return any(record.stream for record in self.records)

    @property
    def label(self) -> str:
        """The method's name, followed by its variant if the method has several."""
        return f"{self.method} ({self.variant})" if self.variant else self.method


@dataclass(frozen=True, kw_only=True)
class Results:
    """The cells of a campaign or a store with their records, and the metrics, searches and plugins used.

    Args:
        cells: in display order. metrics: all metrics in the catalogue, by name.
        compared: functions of the metrics that compare with another method. searches: outcomes of searches.
        plugins: the distributions whose plugins were loaded, with their versions. variants: overridden switches by preset name.
        references: the methods that do not compete (:data:`REFERENCE`).
    """

    store: Path
    cells: tuple[ReportedCell, ...]
    metrics: Mapping[str, MetricSpec]
    compared: Mapping[str, Compared]
    searches: tuple[Mapping[str, Any], ...] = ()
    plugins: tuple[tuple[str, str], ...] = ()
    variants: Mapping[str, PresetVariant] = field(default_factory=dict)
    references: frozenset[str] = frozenset()

    def competes(self, label: str) -> bool:
        """Return whether a method competes, that is, whether it is not one of the :attr:`references`.

        Args:
            label: the method's name, with or without its variant, such as ``ewc (lr=0.01)``.
        """
        return label.partition(" (")[0] not in self.references

    def preset_title(self, preset: str) -> str:
        """Return a preset's name in words, for headings on a page. A variant is named by its distinguishing values."""
        return scenario_words(self.variants[preset].title if preset in self.variants else preset)

    def overrides_of(self, preset: str) -> list[PresetVariant]:
        """Return the overridden switches of a preset, or an empty list for an unchanged preset."""
        return [self.variants[preset]] if preset in self.variants else []

    @property
    def title(self) -> str:
        """The title of the results, which is the store's path."""
        return str(self.store)

    @property
    def description(self) -> str:
        """The campaign's description, which is empty for the results of a store."""
        return ""

    @property
    def extent(self) -> str:
        """A sentence with the number of records."""
        return f"{len(self.used):,} records."

    @property
    def records(self) -> list[Record]:
        """All records, finished or not."""
        return [c.record for c in self.cells if c.record is not None]

    @cached_property
    def groups(self) -> list[Group]:
        """The finished cells, grouped so that the cells of a group differ only in their seeds. Groups are in campaign order."""
        return group_cells(self.cells)

    @cached_property
    def used(self) -> list[Record]:
        """The finished records that tables and figures are computed from."""
        return [record for group in self.groups for record in group.records]

    @cached_property
    def left_out(self) -> list[ReportedCell]:
        """The finished cells left out of all tables, because different code produced them than the rest of their group."""
        used = {id(cell) for group in self.groups for cell in group.cells}
        return [cell for cell in self.cells if cell.done and id(cell) not in used]

    @property
    def frame(self) -> pd.DataFrame:
        """A data frame with one row per used record, as from :func:`cglsuite.cells.results_frame`.

        If the campaign has searches, it also has the number of trials. It is a copy, so a notebook may change it without affecting the
        tables on the page.
        """
        return self._frame.copy()

    @cached_property
    def _frame(self) -> pd.DataFrame:
        import pandas as pd

        from cglsuite.reports.results.variants import tuning_columns

        frame = results_frame(self.used, compared=self.compared, current=self._current)
        if not self.searches:
            return frame
        return pd.concat([frame, tuning_columns(self.searches, {r.key: r for r in self.used}, list(frame["key"]))], axis=1)

    @property
    def _current(self) -> set[str]:
        return {cell.record.key for cell in self.cells if cell.record is not None and not cell.stale}

    def matrices_of(self, reference: str) -> dict[str, Matrix]:
        """Map the key of each used record to the performance matrix of the method ``reference`` that the record is compared with."""
        return reference_matrices(self.used, reference, current=self._current)

    @cached_property
    def validation(self) -> dict[str, float]:
        """The final average validation performance of each used record, by key. It is NaN if it was not recorded."""
        frame = self._frame
        values = frame["validation_average_performance"] if "validation_average_performance" in frame else [math.nan] * len(frame)
        return {key: float(math.nan if value is None else value) for key, value in zip(frame["key"], values, strict=True)}

    def counts(self) -> dict[str, int]:
        """Count the cells in each state, most frequent first."""
        return dict(Counter(c.state for c in self.cells).most_common())


@dataclass(frozen=True, kw_only=True)
class CampaignResults(Results):
    """The results of a campaign, with one cell per planned cell in the campaign's order."""

    campaign: Campaign

    @property
    def title(self) -> str:
        """The campaign's title, or its name if it has no title."""
        return self.campaign.title or self.campaign.name

    @property
    def description(self) -> str:
        return self.campaign.description

    @property
    def extent(self) -> str:
        """A sentence that states how many of the campaign's planned cells have records."""
        return f"Campaign {self.campaign.name}: {len(self.used):,} records of {len(self.cells):,} planned cells."

    def _repr_html_(self) -> str:
        return displayed("campaign_card", self)


def load_campaign_results(
    campaign: Campaign | Mapping[str, Any] | str | Path,
    store: Store | str | Path | None = None,
    *,
    overrides: Overrides | Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    catalogue: Catalogue | None = None,
    device: str | None = None,
    train_missing: bool = False,
    same_device: bool = False,
) -> CampaignResults:
    """Load the results of a campaign from a store.

    If a planned cell has no exact record, a record of the same design that was produced by different code or on another class of machine is
    used instead and marked as stale.

    Args:
        campaign: a path, decoded TOML, or a loaded campaign. store: default ``$CGLSUITE_STORE``, else ``./.cglsuite``.
        overrides: changes to the campaign, as ``{"training.epochs": 50}`` or an :class:`Overrides`. device: overrides the device.
        only: load only cells that pass these ``key=value`` filters (see :func:`cglsuite.campaigns.planning.select_cells`).
        train_missing: first run the cells and searches missing from the store, like ``cglsuite run``.
        same_device: leave out records from a different kind of device.

    Raises:
        UsageError: the campaign is invalid or contains an unknown name.
    """
    campaign = _as_campaign(campaign)  # names its data and plugin files before the catalogue is loaded
    overrides = Overrides.of(overrides)
    if device:
        overrides = dataclasses.replace(overrides, device=device)
    catalogue = catalogue or load_catalogue()
    store = store if isinstance(store, Store) else Store(store)
    if train_missing:
        from cglsuite.campaigns.executors.campaign_run import run_campaign

        run_campaign(campaign, catalogue, store, overrides, only=only)
    planned = select_cells(plan_campaign(campaign, catalogue, overrides, store=store), only)
    exact = dict(store.find(p.key for p in planned if p.ready))
    lacking = [p for p in planned if p.ready and exact[p.key] is None]
    alike = _same_design(lacking, store, same_device=same_device)
    choices = [search.choose(store) for search in plan_search(campaign, catalogue, overrides, store=store)]
    searches = tuple(choice.outcome for choice in choices if choice is not None)
    planned, chosen = without_choices(planned, searches, catalogue)
    cells = [_reported(p, exact.get(p.key), alike.get(p.key), catalogue) for p in _distinct(planned)]
    metrics = catalogue.specs(MetricSpec)
    return CampaignResults(
        campaign=campaign,
        store=store.path,
        cells=tuple(cells),
        metrics=metrics,
        compared=compared_metrics(catalogue, metrics),
        searches=searches,
        plugins=tuple(sorted({(r.distribution, r.version) for r in catalogue.records if r.status == "ok"})),
        variants=preset_variants((p.cell for p in planned if p.cell is not None), catalogue, chosen),
        references=references_of(catalogue),
    )


def load_results_by_device(campaign: Campaign, store: Store, *, overrides: Overrides, catalogue: Catalogue) -> list[CampaignResults]:
    """Load the results of a campaign separately for each kind of device, so that a mean never mixes devices.

    The devices are the campaign's own device on this machine and all others on which any of its cells was run. If ``overrides`` has a
    device, only that one is used.

    Returns:
        One object per device, starting with the device that has the most finished cells.
    """
    load = partial(load_campaign_results, campaign, store, overrides=overrides, catalogue=catalogue)
    if overrides.device:
        return [load(same_device=True)]
    every = load()
    others = {record.cell["device"] for record in every.records} - {cell.planned.request.device for cell in every.cells}
    if not others:
        return [every]
    by_device = [load(same_device=True), *(load(device=other, same_device=True) for other in sorted(others))]
    return sorted(by_device, key=lambda results: -sum(cell.done and not cell.stale for cell in results.cells))


def load_pooled_results(
    campaign: Campaign | Mapping[str, Any] | str | Path, also: str | Sequence[Mapping[str, Any] | str] = (), *args: Any, **kwargs: Any
) -> list[CampaignResults]:
    """Load the results of several campaigns for a joint analysis. See :func:`load_campaign_results` for the other arguments.

    Args:
        also: further campaigns, as their content or as paths relative to the folder of ``campaign``.
    """
    folder = Path(campaign).parent if isinstance(campaign, (str, Path)) else Path()
    others = [folder / other if isinstance(other, str) else other for other in ([also] if isinstance(also, str) else also)]
    return [load_campaign_results(item, *args, **kwargs) for item in (campaign, *others)]


def store_results(store: Store, catalogue: Catalogue, keys: Iterable[str] | None = None) -> Results:
    """Load all finished records of a store, whatever their campaign, and compute all metrics in the catalogue for them.

    Args:
        keys: load only the records with these keys; default all.
    """
    every = store.records() if keys is None else (record for _, record in store.find(keys) if record is not None)
    records = [completed(record, catalogue) for record in every if record.done]
    return results_of(records, catalogue, store.path, variants=record_variants(records, catalogue))


def results_of(
    records: Iterable[Record], catalogue: Catalogue, store: Path, *, variants: Mapping[str, PresetVariant] | None = None
) -> Results:
    """Wrap the records of a store as results.

    Args:
        records: with their metrics, which are not recomputed. variants: overridden switches by preset name.
    """
    specs = catalogue.specs(MetricSpec)
    return Results(
        store=store,
        cells=tuple(map(_of_record, records)),
        metrics=specs,
        compared=compared_metrics(catalogue, specs),
        variants=variants or {},
        references=references_of(catalogue),
    )


def references_of(catalogue: Catalogue) -> frozenset[str]:
    """Return the methods that leaderboards do not rank: joint training and all methods of the category :data:`REFERENCE`."""
    return frozenset({UPPER_BOUND, *(name for name, spec in catalogue.specs(MethodSpec).items() if spec.category == REFERENCE)})


def _of_record(record: Record) -> ReportedCell:
    cell = record.cell
    seeds = Seeds(**{axis: cell["seeds"][axis] for axis in ("order", "split", "init")})
    request = CellRequest(scenario=cell["scenario"], method=cell["method"], backbone=cell["backbone"], seeds=seeds, device=cell["device"])
    planned = PlannedCell(request=request, state="ready", key=record.key)
    return ReportedCell(planned=planned, state=record.status, record=record)


def _as_campaign(source: Campaign | Mapping[str, Any] | str | Path) -> Campaign:
    if isinstance(source, Campaign):
        return source
    return Campaign.parse(source) if isinstance(source, Mapping) else load_campaign(source)


def _distinct(planned: Iterable[PlannedCell]) -> list[PlannedCell]:
    """Remove duplicate cells: a cell that a campaign names twice has one record, which must count once in a mean."""
    return list({p.key if p.ready else str(place): p for place, p in enumerate(planned)}.values())


def _same_design(lacking: Sequence[PlannedCell], store: Store, *, same_device: bool) -> dict[str, Record]:
    """Return a record of the same design for each planned cell's key; among several, one produced by the most frequent code."""
    if not lacking:
        return {}
    designs = {keys.design_key(p.cell): p for p in lacking if p.cell is not None}
    by_design: dict[str, list[Record]] = defaultdict(list)
    for record in store.with_designs(designs.keys()):
        planned = designs[record.design]
        if not same_device or record.cell["device"] == planned.request.device:
            by_design[planned.key].append(record)
    makers = Counter(_code_and_machine(r) for candidates in by_design.values() for r in candidates if r.done)
    return {key: max(candidates, key=lambda r: (r.done, makers[_code_and_machine(r)], r.key)) for key, candidates in by_design.items()}


def _code_and_machine(record: Record) -> str:
    """Return a hash of everything that must agree for results to be comparable: sources, torch, class of machine and numerics."""
    plugins = [[p.get("role"), p.get("distribution"), p["source"]] for p in record.provenance["plugins"]]
    machine = [record.environment.get("torch"), *(record.cell.get(name) for name in ("device", "threads", "numerics"))]
    return digest([record.provenance["core"]["source"], plugins, machine])


def _reported(planned: PlannedCell, exact: Record | None, alike: Record | None, catalogue: Catalogue) -> ReportedCell:
    if not planned.ready:
        return ReportedCell(planned=planned, state=planned.state, reason=planned.reason)
    record = exact or alike
    if record is None:
        return ReportedCell(planned=planned, state="missing", reason="not run yet")
    shown = completed(record, catalogue)
    if planned.cell is not None and shown.cell["preset"] != planned.cell.preset:  # without the choices of a search
        shown = dataclasses.replace(shown, cell={**shown.cell, "preset": planned.cell.preset})
    differences = [*([] if exact is not None else [_difference(record, planned, catalogue)]), *unlike_metrics(shown, catalogue)]
    return ReportedCell(planned=planned, state=record.status, reason=record.reason or "", record=shown, stale="; ".join(differences))


def _difference(record: Record, planned: PlannedCell, catalogue: Catalogue) -> str:
    """Describe how the code and environment of ``record`` differ from the current ones."""
    cell = planned.cell
    if cell is None:
        return "different code"
    now = keys.sources(cell, catalogue)
    then = {"core": record.provenance["core"]} | {p.get("role", p.get("distribution", "")): p for p in record.provenance["plugins"]}
    changes: dict[tuple[str, str], str] = {}  # a change in the core itself is listed once, not per role
    for role, source in now.items():
        maker = then.get(role) or {"version": "of unknown version", "source": "unknown"}
        if maker["source"] != source["source"]:
            change = f"{maker['version']} ({maker['source'][:8]}), now {source['version']} ({source['source'][:8]})"
            changes.setdefault((maker["source"], source["source"]), f"{role} by {source['distribution']} {change}")
    parts = list(changes.values())
    made_with = str(record.environment.get("torch"))
    pairs: list[tuple[str, Any, Any]] = [("torch", keyed_torch(made_with, cell.device), keyed_torch(torch_version(), cell.device))]
    pairs += [("device", record.cell["device"], cell.device), ("threads", record.cell["threads"], cell.threads)]
    pairs.append(("numerics", record.cell.get("numerics", "native"), cell.numerics))
    parts += [f"{name} {a}, now {b}" for name, a, b in pairs if str(a) != str(b)]
    return "; ".join(parts) or "different key version"


def group_cells(cells: Iterable[ReportedCell]) -> list[Group]:
    """Group the finished cells by preset, method, backbone and configuration. A group never mixes code or machine classes.

    If different code produced the records of one group, the group contains those that are not stale or, if all are stale, the largest set
    produced by the same code. Each record counts once.
    """
    families: dict[tuple[str, str, str], dict[str, list[ReportedCell]]] = defaultdict(lambda: defaultdict(list))
    seen: set[str] = set()
    for cell in cells:
        if cell.record is not None and cell.record.done and cell.record.key not in seen:
            seen.add(cell.record.key)
            what = cell.record.cell
            families[what["preset"], what["method"], what["backbone"]][canonical_json(what["configuration"])].append(cell)
    groups = []
    for (preset, method, backbone), by_configuration in families.items():
        variants = _variants([members[0].record for members in by_configuration.values() if members[0].record is not None])
        for members, variant in zip(by_configuration.values(), variants, strict=True):
            cells = tuple(_homogeneous(members))
            groups.append(Group(preset=preset, method=method, backbone=backbone, variant=variant, cells=cells))
    return groups


def _homogeneous(members: Sequence[ReportedCell]) -> list[ReportedCell]:
    makers: dict[str, list[ReportedCell]] = defaultdict(list)
    for cell in members:
        if cell.record is not None:
            makers[_code_and_machine(cell.record)].append(cell)
    return max(makers.values(), key=lambda some: (not some[0].stale, len(some)))


def _variants(records: Sequence[Record]) -> list[str]:
    """Return, for each record, the settings in which it differs from the others, as text."""
    places = axis_values(records)
    return [", ".join(f"{name.partition('.')[2] or name}={value_text(value)}" for name, value in place.items()) for place in places]


def axis_values(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return each record's values, by dotted key, for the settings in which the records differ."""
    configurations = [{PRETRAINING_SCHEME: NO_PRETRAINING} | record.cell["configuration"] for record in records]
    differing = _differing(configurations)
    if PRETRAINING_SCHEME in differing:
        differing = [name for name in differing if not _follows_from_scheme(name, configurations)]
    return [{name: configuration.get(name) for name in differing} for configuration in configurations]


def _differing(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings in which some of the configurations differ."""
    names = sorted({name for configuration in configurations for name in configuration})
    return [name for name in names if len({canonical(configuration.get(name)) for configuration in configurations}) > 1]


def _follows_from_scheme(name: str, configurations: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a pre-training setting has one value per scheme, so that the scheme's name determines it."""
    if name == PRETRAINING_SCHEME or not name.startswith(PRETRAINING_SCHEME.partition(".")[0] + "."):
        return False
    return len({canonical([configuration[PRETRAINING_SCHEME], configuration.get(name)]) for configuration in configurations}) == len(
        {configuration[PRETRAINING_SCHEME] for configuration in configurations}
    )


# --- sweeps ----------------------------------------------------------------------------------------------------------------------


def swept(groups: Sequence[Group]) -> list[str]:
    """Return the axes of a sweep, which are the dotted keys of the settings in which groups of one method differ.

    Args:
        groups: all with the same preset and backbone.
    """
    by_method: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        by_method[group.method].append(group)
    several = [[group.records[0].cell["configuration"] for group in some] for some in by_method.values() if len(some) > 1]
    return list(dict.fromkeys(name for some in several for name in _differing(some)))


def at_equal_settings(first: Group, second: Group, axes: Iterable[str]) -> bool:
    """Return whether two groups have the same values on the axes, ignoring the settings of methods."""
    mine, theirs = (group.records[0].cell["configuration"] for group in (first, second))
    common = [name for name in axes if not name.startswith("method.")]
    return all(canonical(mine.get(name)) == canonical(theirs.get(name)) for name in common)


MAX_DRAWN = 12
"""If a preset and backbone have more groups than this, figures and wide tables show only one setting of each sweep."""


def families_of(groups: Iterable[Group]) -> list[list[Group]]:
    """Collect groups with the same preset, method, backbone and pre-training into families, sorted by the values on their axes."""
    families: dict[tuple[str, str, str, str], list[Group]] = defaultdict(list)
    for group in groups:
        families[group.preset, group.method, group.backbone, group.pretraining].append(group)
    return [_along_axes(family) for family in families.values()]


def _along_axes(family: Sequence[Group]) -> list[Group]:
    places = [[axis_order(v) for v in values.values()] for values in axis_values([group.records[0] for group in family])]
    return [family[place] for place in sorted(range(len(family)), key=places.__getitem__)]


def axis_order(value: Any) -> tuple[int, float, str]:
    """Return a sort key for the values of an axis. Numbers are sorted by size and come before texts."""
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (0, float(value), "") if numeric else (1, 0.0, value_text(value))


def chosen_by_validation(family: Sequence[Group], results: Results) -> Group | None:
    """Return the group with the best mean validation performance, or ``None`` if it was not recorded for every record."""
    if len(family) == 1:
        return family[0]
    validation = results.validation
    place = best_on_validation([float(np.mean([validation[record.key] for record in group.records])) for group in family])
    return None if place is None else family[place]


def best_on_validation(means: Sequence[float]) -> int | None:
    """Return the index of the best mean validation performance, or ``None`` if a value was not recorded (NaN)."""
    return None if any(map(math.isnan, means)) else means.index(max(means))


def missing_repetitions(groups: Sequence[Group]) -> dict[int, int]:
    """Count the missing repetitions of each group, among the repetitions that at least half of the groups have.

    A repetition is a combination of order, split and seed.

    Args:
        groups: all with the same preset and backbone.

    Returns:
        The count by the ``id`` of a group.
    """
    places = {id(group): {tuple(record.cell["seeds"].values()) for record in group.records} for group in groups}
    counts = Counter(place for mine in places.values() for place in mine)
    usual = {place for place, n in counts.items() if 2 * n >= len(groups)}
    return {name: len(usual - mine) for name, mine in places.items()}


def drawn(results: Results) -> tuple[Results, str]:
    """Select the results to show in figures, and describe in a note which setting of each sweep was chosen.

    If there are at most :data:`MAX_DRAWN` groups, all are shown and the note is empty. The setting with the best validation performance is
    chosen. If validation was not recorded, it is the one in the middle of the axes. Test scores never influence the choice.
    """
    counts = Counter((group.preset, group.backbone) for group in results.groups)
    shown_groups: list[Group] = []
    said: dict[str, None] = {}
    for family in families_of(results.groups):
        if len(family) == 1 or counts[family[0].preset, family[0].backbone] <= MAX_DRAWN:
            shown_groups += family
            continue
        best = chosen_by_validation(family, results)
        setting, how = (
            (family[len(family) // 2], "the middle one, because validation performance was not recorded")
            if best is None
            else (best, "by validation")
        )
        shown_groups.append(setting)
        said[f"{setting.label} of {len(family)}, {how}"] = None
    if not said:
        return results, ""
    ids = {id(cell) for group in shown_groups for cell in group.cells}
    shown = dataclasses.replace(results, cells=tuple(cell for cell in results.cells if id(cell) in ids))
    # metrics that compare with another method keep their values from the whole sweep
    shown.__dict__["_frame"] = results._frame[results._frame["key"].isin({c.record.key for c in shown.cells if c.record is not None})]
    return shown, f"One setting of each sweep is shown: {'; '.join(said)}."


def collapsed(some: Sequence[Group], groups: Sequence[Group]) -> list[str]:
    """Return the labels of some groups. A method has a single label if all of its groups are included."""
    labels = [group.label for group in some]
    whole = {g.method for g in some} - {g.method for g in groups if g.label not in labels}
    return list(dict.fromkeys(group.method if group.method in whole else group.label for group in some))
