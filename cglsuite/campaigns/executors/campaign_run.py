"""Run a campaign: first its searches, then its grid. Cells with a result in the store are skipped."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.atomic import make_folder
from cglsuite.base.errors import CglsuiteError, SpecError, UnknownNameError, UsageError
from cglsuite.base.inputs import quoted
from cglsuite.campaigns.executors.base import Executor, RunOptions
from cglsuite.campaigns.executors.progress import say
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.planning import check_feasible
from cglsuite.cells.plan import Limits, PlannedCell
from cglsuite.cells.records.record import ended
from cglsuite.cells.storage.store import Store

if TYPE_CHECKING:
    from cglsuite.campaigns.campaign import Campaign
    from cglsuite.campaigns.executors.remote import StoredJob
    from cglsuite.cells.observing import Observer, Observers
    from cglsuite.cells.records.frame import Summary
    from cglsuite.cells.storage.lease import Holder
    from cglsuite.host import Catalogue
    from cglsuite.specs import ExecutorSpec


logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CampaignOutcome:
    """The outcome of a campaign: the state (see :class:`CellState`) of each planned cell, in the campaign's order.

    ``settled``: keys of cells that have no result but are not tried again (see :meth:`Record.settled_on`).
    ``trainings``: the number of tasks in the streams of the finished cells, and how many of those tasks were actually trained.
    """

    states: Sequence[tuple[PlannedCell, str]]
    trainings: tuple[int, int] = (0, 0)
    settled: Set[str] = frozenset()

    @property
    def counts(self) -> dict[str, int]:
        """The number of cells in each state."""
        return dict(sorted(Counter(state for _, state in self.states).items()))

    @property
    def all_not_applicable(self) -> bool:
        """Whether every cell is N/A or skipped, so that there was nothing to run."""
        return all(state in {"n/a", "skipped"} for _, state in self.states)

    @property
    def complete(self) -> bool:
        """Whether every cell is done, settled or N/A."""
        return all(state in {"done", "n/a", "skipped"} or planned.key in self.settled for planned, state in self.states)


@dataclass(frozen=True, kw_only=True)
class CellState:
    """The state of a planned cell.

    Args:
        state: ``n/a``, ``waiting`` (for a search), ``done``, ``running``, ``missing``, ``unreadable``, or the status of an
            unfinished record.
        reason: why there is no result, if known. trainings: for a finished cell, the number of tasks in its stream and how many of them
            were trained for it. The others came from checkpoints of cells that begin with the same tasks, or of an earlier attempt.
        holder: for a cell without a result, the holder of its lease. settled: see :class:`CampaignOutcome`.
    """

    planned: PlannedCell
    state: str
    reason: str = ""
    trainings: tuple[int, int] = (0, 0)
    holder: Holder | None = None
    settled: bool = False


def cell_states(cells: Iterable[PlannedCell], store: Store) -> Iterator[CellState]:
    """Yield the state of each cell in ``cells``, in order. Records that this machine has indexed are not read again."""
    cells = list(cells)
    known = store.summaries(p.key for p in cells if p.ready)
    seen: dict[str, CellState] = {}
    for planned in cells:
        if not planned.ready:
            yield CellState(planned=planned, state=planned.state, reason=planned.reason)
            continue
        if planned.key not in seen:
            seen[planned.key] = _state(planned, next(known)[1], store)
        yield seen[planned.key]


def _state(planned: PlannedCell, record: Summary | None, store: Store) -> CellState:
    if record is not None and record.done:
        return CellState(planned=planned, state="done", trainings=(record.tasks, record.trained))
    holder = store.holder(planned.key)
    if holder is not None and not holder.silent:
        return CellState(planned=planned, state="running", holder=holder)
    if record is None and (why := store.unreadable(planned.key)):
        return CellState(planned=planned, state="unreadable", reason=why)
    if record is None:
        return CellState(planned=planned, state="missing", holder=holder)
    return CellState(
        planned=planned,
        state=record.status,
        reason=ended(record.status, record.reason),
        holder=holder,
        settled=record.settled and store.settled(planned.key) is not None,
    )


def all_trainings(states: Iterable[CellState]) -> tuple[int, int]:
    """Return the total ``trainings`` of several cells, counting each cell once."""
    counts = {s.planned.key: s.trainings for s in states}.values()
    return sum(tasks for tasks, _ in counts), sum(trained for _, trained in counts)


def trainings_text(trainings: tuple[int, int]) -> str:
    """Format :func:`all_trainings` as text, or return an empty string if nothing was shared."""
    tasks, trained = trainings
    return f"trained {trained} of {tasks} tasks, the other {tasks - trained} were shared" if trained < tasks else ""


def find_executor(catalogue: Catalogue, name: str, options: Mapping[str, Any] | None = None, place: str = "run") -> Executor:
    """Return the executor with this name and its validated ``options``. ``place`` names the table that defines the options.

    Raises:
        UnknownNameError: no plugin provides the executor, or it has no such option.
        UsageError: an option has an invalid value.
    """
    spec = catalogue.executor(name)
    factory = catalogue.resolve(spec)
    values = executor_options(spec, options or {}, f"{place}.{name}")
    if not spec.remote:
        executor: Executor = factory(**values)
        return executor
    from cglsuite.campaigns.executors.remote import RemoteExecutor

    return RemoteExecutor(name, factory(**values))


def parts_of_job(job: StoredJob, campaign: Campaign, catalogue: Catalogue, overrides: Overrides) -> dict[str, int] | None:
    """Return the number of pending, running and ended parts of a launched job according to its engine, or ``None`` if the engine cannot be
    queried
    from here.
    """
    from cglsuite.campaigns.executors.remote import RemoteExecutor, part_counts

    name = job.job.engine
    try:
        executor = find_executor(catalogue, name, _executor_settings(campaign, overrides, name), f"{campaign.where}: run")
        return part_counts(executor.launcher, job) if isinstance(executor, RemoteExecutor) and job.ids else None
    except CglsuiteError as error:
        logger.debug("%s: %s", job, error)
        return None


def executor_options(spec: ExecutorSpec, settings: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Validate ``settings``, and return the value of every option that the executor declares.

    Raises:
        UnknownNameError: the executor declares no such option. SpecError: an option has an invalid value.
    """
    declared = {parameter.name: parameter for parameter in spec.options}
    for name in settings:
        if name not in declared:
            raise UnknownNameError(f"option in [{place}]:", name, declared)
    values: dict[str, Any] = {}
    for name, parameter in declared.items():
        if name in spec.several:
            items = settings.get(name, ())
            items = [items] if isinstance(items, str) else items
            if not isinstance(items, (list, tuple)):
                raise SpecError(f"{place}.{name} = {quoted(items)}: expected a list ({parameter.doc})")
            values[name] = tuple(parameter.parse(item, place) for item in items)
        else:
            values[name] = parameter.parse(settings[name], place) if name in settings else parameter.default
    return values


def run_campaign(
    campaign: Campaign,
    catalogue: Catalogue,
    store: Store,
    overrides: Overrides | Mapping[str, Any] | None = None,
    *,
    only: Sequence[str] = (),
    progress: bool = True,
    executor: Executor | None = None,
    detach: bool = False,
    retry: Sequence[str] = (),
    watch: Sequence[str | Observer | type[Observer]] | None = None,
) -> CampaignOutcome:
    """Run the missing cells of a campaign: first its searches, then its grid with the chosen values.

    Args:
        overrides: settings that override the campaign; the environment's overrides always apply.
        detach: return as soon as the missing cells are submitted to other machines; if a search comes first, the search's cells.
        only: filters ``key=value`` (see :func:`cglsuite.campaigns.planning.select_cells`).
        retry: statuses (``diverged``, ``skipped``) whose cells are trained again, although they end the same way on the same arithmetic.
        watch: observers that replace the campaign's: names as in ``--watch``, classes or objects. Processes that an executor starts on
            other machines notify only observers with a name.

    Raises:
        UsageError: the campaign, an override or a filter is wrong, no cell passes the filters, or the campaign imports code that is not
            allowed.
        StoreError: the store cannot be written; finished cells are kept.
    """
    from cglsuite.campaigns.planning import plan_campaign, plan_search, select_cells

    campaign.refuse_code(observers=watch is None)
    forced = Overrides.of(overrides)
    name = forced.executor or campaign.run.executor
    names, observers = _open_observers(campaign, store, watch)
    executor = executor or find_executor(catalogue, name, _executor_settings(campaign, forced, name), f"{campaign.where}: run")

    every_s = campaign.run.checkpoint_every_s if forced.checkpoint_every_s is None else forced.checkpoint_every_s
    limits = Limits(timeout_s=campaign.run.timeout_s, checkpoint_every_s=every_s)

    def run(cells: Iterable[PlannedCell], label: str) -> int:
        options = RunOptions(
            catalogue=catalogue,
            workers=forced.workers or campaign.run.workers,
            limits=limits,
            share_prefixes=campaign.run.share_prefixes,
            retry=retry,
            label=label,
            progress=progress,
            detach=detach,
            watch=names,
            observers=observers,
        )
        return executor.run(list(cells), store, options)

    planned = select_cells(plan_campaign(campaign, catalogue, forced, store=store, to_run=True), only)
    if not planned:
        raise UsageError(f"{campaign.where}: no cell matches --only {' '.join(only)}")
    missing = [state.planned for state in cell_states(planned, store) if state.state == "missing"]
    check_feasible(missing, catalogue, campaign.where)
    if (forced.numerics or campaign.run.numerics) == "auto":
        _announce_native(campaign, catalogue, store, forced, missing, only)
    wanted = {_group(p): p.state for p in planned if p.state != "n/a"}
    searches = plan_search(campaign, catalogue, forced, store=store, to_run=True)
    searches = [s for s in searches if _group(s.cells[0]) in wanted]
    if searches:
        unfinished = run(
            [cell for s in searches if retry or wanted[_group(s.cells[0])] == "waiting" for cell in s.cells], f"{campaign.name} search"
        )
        if detach and unfinished:
            return _outcome(planned, store)
        for search in searches:
            search.choose_and_store(store)
        planned = select_cells(plan_campaign(campaign, catalogue, forced, store=store, to_run=True), only)
    run(planned, campaign.name)
    return _outcome(planned, store)


def _announce_native(
    campaign: Campaign, catalogue: Catalogue, store: Store, forced: Overrides, missing: Sequence[PlannedCell], only: Sequence[str]
) -> None:
    """Log how many cells have a native result, if the campaign names no numerics and will train portable ones."""
    from cglsuite.campaigns.planning import plan_campaign, select_cells

    lacking = {(p.request.scenario, p.request.method) for p in missing if p.request.numerics == "portable"}
    if lacking and any((row.scenario, row.method) in lacking for row in store.rows()):
        native = select_cells(plan_campaign(campaign, catalogue, dataclasses.replace(forced, numerics="native"), store=store), only)
        if n := sum(s.state == "done" for s in cell_states(native, store)):
            say(
                f"{campaign.name}: {n} of its cells have results with native numerics, which are not used because portable is the default: "
                'set numerics = "native" in [run] to continue with them'
            )


def _outcome(planned: Iterable[PlannedCell], store: Store) -> CampaignOutcome:
    states = list(cell_states(planned, store))
    settled = {s.planned.key for s in states if s.settled}
    return CampaignOutcome(states=[(s.planned, s.state) for s in states], trainings=all_trainings(states), settled=settled)


def _open_observers(
    campaign: Campaign, store: Store, observers: Sequence[str | Observer | type[Observer]] | None
) -> tuple[list[str], Observers | None]:
    """Return the observers' names with absolute folders, and all observers as one. Folders in a campaign file are relative to it."""
    base = Path()
    if observers is None:
        observers, base = campaign.run.watch, campaign.folder
    if not observers:
        return [], None
    from cglsuite.cells.observing import observers_of, with_absolute_folder

    default = store.path / "watched"
    with contextlib.suppress(OSError):  # the observer that writes there reports the error
        make_folder(default, store.path)
    placed = [with_absolute_folder(observer, default, base) if isinstance(observer, str) else observer for observer in observers]
    return [observer for observer in placed if isinstance(observer, str)], observers_of(placed, default)


def _executor_settings(campaign: Campaign, forced: Overrides, name: str) -> dict[str, Any]:
    """Return the options of the executor ``name``: the campaign's, overridden by the command line's."""
    known: dict[str, dict[str, Any]] = {}
    for key, value in forced.run.items():
        executor, _, option = key.partition(".")
        known.setdefault(executor, {})[option] = value
    for other in known.keys() - {name}:
        raise UsageError(f"--set run.{other}.{next(iter(known[other]))}: the cells are run by the executor {name!r}")
    return {**campaign.run.executors.get(name, {}), **known.get(name, {})}


def _group(planned: PlannedCell) -> tuple[str, str, str | None]:
    return planned.request.scenario, planned.request.method, planned.request.backbone
