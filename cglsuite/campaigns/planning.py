"""Plan a campaign: combine it with a catalogue and overrides into cells to run, N/A cells with the reason, and searches to run first.

Problems that affect every cell of a scenario are detected before training: settings that fit no task, orders that change nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import CglsuiteError, DataError, SpecError, UnknownNameError, UsageError
from cglsuite.base.hashing import canonical
from cglsuite.base.markup import several
from cglsuite.campaigns.overrides import Overrides, merge_overrides, same_key, selected
from cglsuite.campaigns.search import Candidate, Range, Search, draw_points, draw_trials, expand_grid, scope_of
from cglsuite.cells.plan import CellRequest, PlannedCell, plan_cells, with_inputs
from cglsuite.cells.portable import device_and_numerics
from cglsuite.specs import NO_PRETRAINING, ScenarioSpec, Seeds, TrainingSpec, parse_switch, switches
from cglsuite.specs.levels import LEVEL_OF
from cglsuite.specs.plugins import PRETRAINING_SCHEME
from cglsuite.specs.switch import declared_switches

if TYPE_CHECKING:
    from cglsuite.campaigns.campaign import Campaign, Match
    from cglsuite.cells.records.frame import Row
    from cglsuite.cells.spec import CellSpec
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue


@dataclass(frozen=True, kw_only=True)
class _Group:
    """A (scenario, method, backbone, point on the other axes) of a grid, with the keys that its plugins declare, by section."""

    scenario: str
    method: str
    backbone: str | None
    level: str
    declared: Mapping[str, frozenset[str]]
    point: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def takes(self, key: str) -> bool:
        """Return whether a key applies to this group. Keys in common sections always apply, others only if declared."""
        section, dot, name = key.partition(".")
        if dot and section != "scenario":
            return section not in self.declared or name in self.declared[section]
        always = dot or key in _ALWAYS
        of_level = LEVEL_OF.get(name if dot else key, self.level)
        return (always and of_level == self.level) or any(key in names for names in self.declared.values())

    def matches(self, match: Match) -> bool:
        """Return whether an override applies to this group."""
        pairs = ((self.scenario, match.scenario), (self.method, match.method), (self.backbone or "", match.backbone))
        return all(fnmatch.fnmatchcase(value, pattern) for value, pattern in pairs)


_CLASS_ORDER = "scenario.class_order"
_N_TASKS = ("n_tasks", "scenario.n_tasks")
_ALWAYS = {*declared_switches(ScenarioSpec), *declared_switches(TrainingSpec)}


class _Planner:
    """The inputs of planning: a campaign, a catalogue and the overrides in force."""

    def __init__(
        self,
        campaign: Campaign,
        catalogue: Catalogue,
        overrides: Overrides | Mapping[str, Any] | None,
        store: Store | None,
        to_run: bool,
    ) -> None:
        self.campaign, self.catalogue, self.store, self.to_run = campaign, catalogue, store, to_run
        if store is not None:
            store.read_from(campaign.stores)
        self.overrides = Overrides.of(overrides)
        numerics = self.overrides.numerics or campaign.run.numerics
        executor = self.overrides.executor or campaign.run.executor
        device = self.overrides.device or campaign.run.device
        if device == "auto" and numerics != "portable" and executor != "local" and catalogue.executor(executor).remote:
            raise UsageError(
                f"{campaign.where}: device auto cannot be used with executor {executor}: the device is part of every key, and this "
                'machine does not know which devices the other machines have; set cpu or cuda (--device cpu, or device = "cpu" in [run])'
            )
        self.device, self.numerics = device_and_numerics(device, numerics)
        grid = campaign.grid
        backbones: list[str | None] = [*grid.backbones] or [None]
        self.unplanned: list[tuple[str, str, str | None]] = []
        """The scenario, method and backbone of groups that need code which the campaign names but which is not allowed."""
        self._check_size(len(grid.scenarios) * len(backbones) * len(grid.methods))
        whole = [
            group
            for scenario in grid.scenarios
            for backbone in backbones
            for method in grid.methods
            for group in self._group_of(scenario, method, backbone)
        ]
        self._check_size(sum(map(self._size, whole)))
        self.groups = [dataclasses.replace(group, point=point) for group in whole for point in expand_grid(self._free_axes(group))]
        self._check_layers()
        self._check_orders()

    def _group_of(self, scenario: str, method: str, backbone: str | None) -> list[_Group]:
        """Return the group; return no group if a name is unknown that the campaign's withheld code may provide."""
        try:
            return [self._group(scenario, method, backbone)]
        except UsageError as error:
            if not self.campaign.withheld or not isinstance(error.__cause__, UnknownNameError):
                raise
            self.unplanned.append((scenario, method, backbone))
            return []

    def stored(self) -> list[PlannedCell]:
        """Find the stored cells, by key, that match cells that cannot be planned in names and seeds. Cells without a match wait."""
        if not self.unplanned:
            return []
        reason = f"cannot be planned without {', '.join(self.campaign.withheld)} (--allow-code)"
        seeds = self.campaign.seeds.expand() if self.campaign.seeds.orders is None else []
        rows: dict[tuple[str, str], list[Row]] = {}
        for row in self.store.rows() if self.store is not None else ():
            rows.setdefault((row.scenario, row.method), []).append(row)
        cells = list[PlannedCell]()
        for scenario, method, backbone in self.unplanned:
            stored = [
                row for row in sorted(rows.get((scenario, method), []), key=lambda row: row.order) if backbone in (None, row.backbone)
            ]
            request = CellRequest(scenario=scenario, method=method, backbone=backbone, device=self.device, numerics=self.numerics)
            known = [(Seeds(order=row.order_seed, split=row.split_seed, init=row.init_seed), row) for row in stored]
            cells += [
                PlannedCell(request=dataclasses.replace(request, seeds=s, backbone=row.backbone), state="ready", key=row.key)
                for s, row in known
                if not seeds or s in seeds
            ]
            lacking = [s for s in seeds if s not in {s for s, _ in known}]
            cells += [PlannedCell(request=dataclasses.replace(request, seeds=s), state="waiting", reason=reason) for s in lacking]
        return cells

    def _group(self, scenario: str, method: str, backbone: str | None) -> _Group:
        spec = self._spec("grid.scenarios", "scenario", scenario)
        name = backbone or spec.training.backbone
        declared = {
            "method": [h.name for h in self._spec("grid.methods", "method", method).hyperparameters],
            "backbone": [h.name for h in self._spec("grid.backbones" if backbone else "grid.scenarios", "backbone", name).hyperparameters],
            "dataset": [h.name for h in self._spec("grid.scenarios", "dataset", spec.dataset).hyperparameters],
            "pretraining": self._pretraining_hyperparameters,
        }
        if spec.task_free is not None:
            schedule = self._spec("grid.scenarios", "schedule", self._schedule(spec.task_free.schedule))
            declared |= {"stream": list(switches(spec.task_free)), "schedule": [h.name for h in schedule.hyperparameters]}
        else:
            declared |= {"stream": [], "schedule": []}
        frozen = {section: frozenset(names) for section, names in declared.items()}
        return _Group(scenario=scenario, method=method, backbone=backbone, level=spec.level, declared=frozen)

    @cached_property
    def _pretraining_hyperparameters(self) -> list[str]:
        """The hyperparameters of every pre-training scheme that the campaign or an override names."""
        schemes = [*self.campaign.grid.further.get(PRETRAINING_SCHEME, ())]
        layers = [self.overrides.values, self.campaign.values, *(override.values for override in self.campaign.overrides)]
        schemes += [layer[PRETRAINING_SCHEME] for layer in layers if PRETRAINING_SCHEME in layer]
        specs = [self._spec(PRETRAINING_SCHEME, "pretraining", str(name)) for name in schemes if name != NO_PRETRAINING]
        return ["scheme", *dict.fromkeys(h.name for spec in specs for h in spec.all_hyperparameters)]

    def _only_selected_scheme(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``values`` without the settings of pre-training schemes other than the selected one."""
        scheme = values.get(PRETRAINING_SCHEME, NO_PRETRAINING)
        hyperparameters = () if scheme == NO_PRETRAINING else self.catalogue.pretraining(str(scheme)).all_hyperparameters
        applying = {PRETRAINING_SCHEME, *(f"pretraining.{h.name}" for h in hyperparameters)}
        return {key: value for key, value in values.items() if not key.startswith("pretraining.") or key in applying}

    def _schedule(self, default: str) -> str:
        """Return the schedule that overrides or the campaign set in place of the preset's."""
        for layer in (self.overrides.values, self.campaign.values):
            if isinstance(requested := layer.get("stream.schedule"), str):
                return requested
        return default

    def _free_axes(self, group: _Group) -> dict[str, Any]:
        """Return the grid's further axes that apply to a group and that no higher layer fixes."""
        fixed = self.overrides.values
        free = {key: values for key, values in self.campaign.grid.further.items() if not any(same_key(key, k) for k in fixed)}
        return {key: values for key, values in free.items() if group.takes(key)}

    def _size(self, group: _Group) -> int:
        """Return the number of cells of a group and of its search, without creating them."""
        free, search = self._free_axes(group), self.campaign.search
        points, cells = _product(free), 0
        if self.campaign.seeds.orders is None:
            cells = points * self.campaign.seeds.count
        else:  # the number of orders follows from the number of tasks
            key = next((key for key in _N_TASKS if key in free), None)
            for point in [{}] if key is None else [{key: value} for value in free.pop(key)]:
                with self._located(group):
                    cells += _product(free) * self.campaign.seeds.count_orders(*self._number_of_tasks(group, self.values(group, point)))
        if search is None:
            return cells
        axes = self.axes(group)
        candidates = (search.trials or 0) if _has_ranges(axes) else _product(axes)
        self._check_size(candidates, f" (that is the size of the search grid of {group.scenario} × {group.method})")
        return cells + points * min(candidates, search.trials or candidates) * search.seeds.count

    def _check_size(self, cells: int, why: str = "") -> None:
        """Refuse a design that is larger than the campaign allows."""
        if cells > (most := self.campaign.run.cells_at_most):
            from cglsuite.campaigns.campaign import too_many_cells_error

            raise too_many_cells_error(self.campaign.where, cells, most, why)

    def _spec(self, place: str, kind: str, name: str) -> Any:
        with _located(f"{self.campaign.where}: {place}"):
            return self.catalogue.get(kind, name).spec

    def _check_layers(self) -> None:
        """Check that every key of every layer applies to some cell, and that every override matches at least one cell."""
        campaign = self.campaign
        if self.unplanned:  # the keys may belong to plugins that the withheld code provides
            return
        layers: list[tuple[str, Iterable[str], Sequence[_Group]]] = [
            (f"{campaign.where}: set", campaign.values, self.groups),
            (f"{campaign.where}: grid.axes", campaign.grid.axes, self.groups),
            ("--set or CGLSUITE_SET", self.overrides.values, self.groups),
        ]
        for n, override in enumerate(campaign.overrides):
            matched = [g for g in self.groups if g.matches(override.match)]
            if not matched:
                raise UsageError(f"{campaign.where}: override[{n}].match: no cell of the grid matches {override.match.model_dump()}")
            layers.append((f"{campaign.where}: override[{n}].set", override.values, matched))
        if campaign.search:
            layers.append((f"{campaign.where}: search.grid", campaign.search.grid, self.groups))
            for method, axes in campaign.search.methods.items():
                if method not in campaign.grid.methods:
                    raise UnknownNameError(f"method in {campaign.where}: search.methods", method, campaign.grid.methods)
                layers.append((f"{campaign.where}: search.methods.{method}", axes, [g for g in self.groups if g.method == method]))
        for where, keys, groups in layers:
            for key in keys:
                name = key.removeprefix("scenario.")
                if not any(g.takes(key) for g in groups) and name in LEVEL_OF:
                    raise SpecError(f"{where}: {key}: this switch is only for {LEVEL_OF[name]} scenarios; remove it")
                if not any(g.takes(key) for g in groups):
                    raise UnknownNameError(f"switch or hyperparameter in {where}:", key, _known_keys(groups))

    def _check_orders(self) -> None:
        """Check that nothing except ``seeds.orders`` sets the class order."""
        campaign, search = self.campaign, self.campaign.search
        if campaign.seeds.orders is None:
            return
        layers: dict[str, Iterable[str]] = {
            f"{campaign.where}: set": campaign.values,
            f"{campaign.where}: grid.axes": campaign.grid.axes,
            **{f"{campaign.where}: override[{n}].set": override.values for n, override in enumerate(campaign.overrides)},
            f"{campaign.where}: search.grid": search.grid if search else (),
            **{f"{campaign.where}: search.methods.{m}": axes for m, axes in (search.methods.items() if search else ())},
            "--set or CGLSUITE_SET": self.overrides.values,
        }
        for where, keys in layers.items():
            if order_key := next((key for key in keys if key in (_CLASS_ORDER, "class_order")), None):
                raise UsageError(f"{where}: {order_key} conflicts with seeds.orders in {campaign.where}, which sets it for every cell")

    def axes(self, group: _Group) -> dict[str, Any]:
        """Return the keys that the group's search varies, with their values or ranges."""
        search = self.campaign.search
        if search is None:
            return {}
        axes = merge_overrides(search.grid, search.methods.get(group.method, {}))
        return {key: values for key, values in axes.items() if group.takes(key)}

    def values(self, group: _Group, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Return the overrides for a group's cells, merged from all layers above the preset."""
        narrower = [override.values for override in self.campaign.overrides if group.matches(override.match)]
        merged = merge_overrides(self.campaign.values, *narrower, group.point, overrides, self.overrides.values)
        return self._only_selected_scheme({key: value for key, value in merged.items() if group.takes(key)})

    def request(self, group: _Group, seeds: Seeds, values: Mapping[str, Any]) -> CellRequest:
        """Return the request for one cell of a group."""
        return CellRequest(
            scenario=group.scenario,
            method=group.method,
            backbone=group.backbone,
            overrides=values,
            seeds=seeds,
            threads=self.campaign.run.threads,
            device=self.device,
            numerics=self.numerics,
            point=group.point,
        )

    def searched(self, group: _Group, seeds: Iterable[Seeds], overrides: Mapping[str, Any]) -> list[PlannedCell]:
        """Return the cells of one candidate in a group's search."""
        values = self.values(group, overrides)
        with self._located(group):
            return self._with_inputs(plan_cells([self.request(group, s, values) for s in seeds], self.catalogue))

    def planned(self, group: _Group, overrides: Mapping[str, Any]) -> list[PlannedCell]:
        """Return the cells of a group."""
        requests = self.requests(group, overrides)
        with self._located(group):
            return self._with_inputs(plan_cells(requests, self.catalogue))

    def _with_inputs(self, cells: list[PlannedCell]) -> list[PlannedCell]:
        """Return the cells, with the files and variables that their user code reads."""
        if self.store is None:
            return cells
        return with_inputs(cells, self.store, self.catalogue, to_run=self.to_run)

    def _located(self, group: _Group) -> contextlib.AbstractContextManager[None]:
        return _located(f"{self.campaign.where}: {group.scenario} × {group.method}")

    def requests(self, group: _Group, overrides: Mapping[str, Any]) -> list[CellRequest]:
        """Return the requests for a group's cells, for all orders and seeds."""
        values = self.values(group, overrides)
        with self._located(group):
            repetitions = self.campaign.seeds.expand_orders(*self._number_of_tasks(group, values))
        ordered = {rule: values if rule is None else {**values, _CLASS_ORDER: rule} for rule, _ in repetitions}
        return [self.request(group, seeds, ordered[rule]) for rule, seeds in repetitions]

    def _number_of_tasks(self, group: _Group, values: Mapping[str, Any]) -> tuple[ScenarioSpec, int | None]:
        """Return the group's preset and its number of tasks, with ``scenario.n_tasks`` from the overrides."""
        preset = self.catalogue.scenario(group.scenario)
        lengths = [values[key] for key in _N_TASKS if key in values]
        return preset, parse_switch(ScenarioSpec, "n_tasks", lengths[-1], "scenario") if lengths else preset.n_tasks

    def search(self, group: _Group) -> Search | None:
        """Return the search of a group, or None if it has a single candidate."""
        section, axes = self.campaign.search, self.axes(group)
        if section is None:
            return None
        names, drawn = (group.scenario, group.method, group.backbone), section.draw if _has_ranges(axes) else None

        def same(point: Mapping[str, Any]) -> str:  # overrides take precedence over the search, so several points may become equal
            return canonical(self.values(group, point))

        with self._located(group):
            if drawn and section.trials is not None:
                points, n_points = draw_points(axes, section.trials, drawn, *names, same=same), None
            else:
                points = expand_grid(axes)
                distinct = {same(point): point for point in reversed(points)}
                points = [point for point in points if distinct[same(point)] is point]
                if len(points) < 2 and section.trials is None:
                    return None
                points, n_points = draw_trials(points, section.trials, *names), len(points)
        preset = self.catalogue.scenario(group.scenario)
        seeds, scope = section.seeds.expand(), scope_of(section.scope, preset.search_scope)
        with self._located(group):
            if preset.task_free is not None:
                scope.refuse_task_free()
            scope = scope.within(self._number_of_tasks(group, self.values(group, points[0]))[1])
        candidates = [Candidate(overrides=point, cells=self.searched(group, seeds, point)) for point in points]
        _refuse_duplicates(f"{self.campaign.where}: search", [cell for candidate in candidates for cell in candidate.cells])
        return Search(
            scenario=group.scenario,
            method=group.method,
            backbone=group.backbone,
            candidates=candidates,
            scope=scope,
            points=n_points,
            drawn=drawn,
        )

    def grid(self, group: _Group) -> list[PlannedCell]:
        """Return a group's cells, with the values chosen by its search."""
        search = self.search(group)
        if search is None:
            return self.planned(group, expand_grid(self.axes(group))[0])
        choice = search.choose(self.store) if self.store is not None else None
        if choice is not None and choice.overrides is not None:
            return self.planned(group, choice.overrides)
        reasons = {p.reason for p in search.cells if p.state == "n/a"}
        if reasons and not any(p.ready for p in search.cells):
            return [PlannedCell(request=request, state="n/a", reason=min(reasons)) for request in self.requests(group, {})]
        reason = "its search has not finished" if choice is None else "no candidate of its search finished on every seed"
        return [PlannedCell(request=request, state="waiting", reason=reason) for request in self.requests(group, {})]


def plan_campaign(
    campaign: Campaign,
    catalogue: Catalogue,
    overrides: Overrides | Mapping[str, Any] | None = None,
    *,
    store: Store | None = None,
    to_run: bool = False,
) -> list[PlannedCell]:
    """Plan the cells of a campaign's grid, in the file's order: ready, N/A with the reason, or waiting for a search.

    If code that the campaign names is not allowed (:attr:`Campaign.withheld`), cells that need it are planned from stored records and come
    last.

    Args:
        overrides: applied on top of the campaign, after the environment's; :class:`Overrides` or a plain mapping of values.
        store: the store with the outcomes of searches; without it, searched cells wait.
        to_run: give cells of user code new keys if its files or variables have changed; otherwise cells are read as they were last run.

    Raises:
        UsageError: a name or key is unknown, a value is outside its declared range, or a cell is planned twice.
    """
    planner = _Planner(campaign, catalogue, overrides, store, to_run)
    cells = [*(cell for group in planner.groups for cell in planner.grid(group)), *planner.stored()]
    _refuse_duplicates(campaign.where, cells)
    return cells


def plan_search(
    campaign: Campaign,
    catalogue: Catalogue,
    overrides: Overrides | Mapping[str, Any] | None = None,
    *,
    store: Store | None = None,
    to_run: bool = False,
) -> list[Search]:
    """Return the searches to run before the grid (none without a ``[search]``); see :func:`plan_campaign` for the arguments."""
    planner = _Planner(campaign, catalogue, overrides, store, to_run)
    return [search for group in planner.groups if (search := planner.search(group)) is not None]


def select_cells(cells: Iterable[PlannedCell], only: Sequence[str], *, seeds: bool = True) -> list[PlannedCell]:
    """Return the cells that pass every filter ``key=value``; see :func:`cglsuite.campaigns.overrides.selected`.

    Args:
        seeds: False ignores filters on seeds, since a search has its own seeds.

    Raises:
        UsageError: a key is not a filter or a setting of any cell.
    """
    selectors = only if seeds else [text for text in only if not text.partition("=")[0].strip().endswith("_seed")]
    return selected(cells, selectors, _facts, "--only")


def _facts(cell: PlannedCell) -> dict[str, Any]:
    """Return the facts that filters compare: names, seeds and settings by dotted key; for an unresolved cell, only the requested
    settings."""
    request, seeds = cell.request, cell.request.seeds
    settings = request.overrides if cell.cell is None else cell.cell.configuration
    names = {"scenario": request.scenario, "method": request.method, "backbone": cell.backbone}
    return {**settings, **names, **{f"{name}_seed": str(getattr(seeds, name)) for name in ("order", "split", "init")}}


def _has_ranges(axes: Mapping[str, Any]) -> bool:
    return any(isinstance(axis, Range) for axis in axes.values())


def _product(axes: Mapping[str, Sequence[Any]]) -> int:
    return math.prod(map(len, axes.values()))


def _known_keys(groups: Sequence[_Group]) -> list[str]:
    declared = {f"{section}.{name}" for group in groups for section, names in group.declared.items() for name in names}
    return sorted(declared | {f"training.{name}" for name in declared_switches(TrainingSpec)})


def _refuse_duplicates(place: str, cells: Iterable[PlannedCell]) -> None:
    """Refuse cells that are planned twice. Keys of cells are compared, because different spellings of a value may mean the same."""
    seen: dict[str, CellRequest] = {}
    for planned in cells:
        if planned.ready and (twin := seen.setdefault(planned.key, planned.request)) is not planned.request:
            spellings = {k: (twin.overrides.get(k), v) for k, v in planned.request.overrides.items() if twin.overrides.get(k) != v}
            same = "; ".join(f"{key} = {a!r} and {b!r} are the same" for key, (a, b) in spellings.items())
            raise UsageError(f"{place}: {planned.request.label} is planned twice{': ' + same if same else ''}; list every cell once")


@contextlib.contextmanager
def _located(place: str) -> Iterator[None]:
    """Add the place in the campaign to errors that a request raises."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


logger = logging.getLogger(__name__)
_OF_LEARNERS = ("training.", "backbone.", "method.", "pretraining.")
"""Settings that do not affect a cell's stream."""


def check_feasible(cells: Iterable[PlannedCell], catalogue: Catalogue, place: str) -> None:
    """Check the scenarios of cells to be trained. Warn about scenarios in which nothing is continual or all orders are the same.

    Streams are built over data sets that come with a plugin or as a file. Streams over other data sets are built only if their files are
    here and the settings differ from a preset's, which are known to fit. Nothing is downloaded: missing data is left to the workers.

    Args:
        place: the campaign, as it appears at the beginning of an error.

    Raises:
        SpecError, DataError: the data cannot be divided into the tasks that a scenario's settings require.
    """
    texts: dict[int, str] = {}  # cells that differ only in seeds share a scenario
    scenarios: dict[str, list[CellSpec]] = {}
    for cell in (planned.cell for planned in cells if planned.cell is not None):
        if id(cell.scenario) not in texts:
            stream = {key: value for key, value in cell.configuration.items() if not key.startswith(_OF_LEARNERS)}
            texts[id(cell.scenario)] = canonical([cell.scenario.name, stream])
        scenarios.setdefault(texts[id(cell.scenario)], []).append(cell)
    fixed: dict[int, list[str]] = {}
    loaded: dict[str, Any] = {}
    for group in scenarios.values():
        spec = group[0].scenario
        if (orders := len({cell.seeds.order for cell in group})) > 1 and spec.class_order == "native" and spec.task_free is None:
            fixed.setdefault(orders, []).append(spec.name)
        if catalogue.get("dataset", spec.dataset).record.from_file or catalogue.dataset(spec.dataset).embedded:
            _warn_of_single_task(group[0], _number_of_tasks(group[0], catalogue, place))
        elif not _as_preset(spec, catalogue) and (data := _load_offline(group[0], catalogue, loaded)) is not None:
            _warn_of_single_task(group[0], _number_of_tasks(group[0], catalogue, place, data))
    for orders, names in fixed.items():
        logger.warning(
            "%s: tasks have a fixed order, so the %s repeat the same order with different seeds",
            _first_and_count(names),
            several(orders, "order"),
        )


def _as_preset(spec: ScenarioSpec, catalogue: Catalogue) -> bool:
    """Return whether a scenario equals a preset, apart from how methods are trained on it."""
    if spec.name not in catalogue.names("scenario"):
        return False
    return dataclasses.replace(spec, training=catalogue.scenario(spec.name).training) == catalogue.scenario(spec.name)


def _load_offline(cell: CellSpec, catalogue: Catalogue, loaded: dict[str, Any]) -> Any:
    """Return a cell's data, replacing other data in ``loaded``; ``None`` if its files are not here."""
    place = canonical([cell.scenario.dataset, dict(cell.dataset_hyperparameters)])
    if place not in loaded:
        loaded.clear()
        root, load = DataRoot.from_environment(), catalogue.resolve(catalogue.get("dataset", cell.scenario.dataset))
        try:
            loaded[place] = load(DataRoot(root.folders, root.cache, offline=True), **cell.dataset_hyperparameters)
        except (CglsuiteError, OSError, ImportError) as error:
            logger.debug("%s could not be checked: %s", cell.scenario.name, error)
            loaded[place] = None
    return loaded[place]


def _number_of_tasks(cell: CellSpec, catalogue: Catalogue, place: str, data: Any = None) -> int:
    from cglsuite.cells.run import build_scenario

    name = cell.scenario.name
    try:
        if data is None:
            return len(build_scenario(catalogue, cell.scenario, cell.dataset_hyperparameters, cell.seeds))
        return len(catalogue.resolve(catalogue.get("scenario", name))(cell.scenario, data, cell.seeds, "cpu"))
    except (SpecError, DataError) as error:
        raise type(error)(f"{place}: {name}: {error}") from error


def _warn_of_single_task(cell: CellSpec, n_tasks: int) -> None:
    if cell.scenario.task_free is None and n_tasks == 1:
        advice = ": lower scenario.classes_per_task" if cell.scenario.task_key is None else ""
        logger.warning("%s: the stream has a single task, so there is no continual learning%s", cell.scenario.name, advice)


def _first_and_count(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    return unique[0] if len(unique) == 1 else f"{unique[0]} and {several(len(unique) - 1, 'other scenario')}"
