"""What holds for every cell of a scenario, checked before anything is trained: settings that fit no task, orders that change nothing."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import CglsuiteError, DataError, SpecError
from cglsuite.base.hashing import canonical
from cglsuite.base.markup import several

if TYPE_CHECKING:
    from cglsuite.cells.plan import PlannedCell
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue
    from cglsuite.specs import ScenarioSpec

logger = logging.getLogger(__name__)
_OF_LEARNERS = ("training.", "backbone.", "method.", "pretraining.")
"""Settings of a cell that its stream does not depend on."""


def check_feasible(cells: Iterable[PlannedCell], catalogue: Catalogue, where: str) -> None:
    """Check the scenarios of cells that are to be trained; warn of those in which nothing is continual, or orders are not.

    Streams are built over data sets that come with a plugin or as a file, and over others if their files are here and the settings are not
    those of a preset, which are known to fit. Nothing is downloaded: what is absent is left to the workers.

    Args:
        where: the campaign, as it begins an error.

    Raises:
        SpecError, DataError: the data cannot be arranged in the tasks that a scenario's settings ask for.
    """
    texts: dict[int, str] = {}  # cells that differ only in their seeds share a scenario
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
            _warn_of_one_task(group[0], _number_of_tasks(group[0], catalogue, where))
        elif not _as_preset(spec, catalogue) and (data := _loaded(group[0], catalogue, loaded)) is not None:
            _warn_of_one_task(group[0], _number_of_tasks(group[0], catalogue, where, data))
    for orders, names in fixed.items():
        logger.warning(
            "%s: tasks keep their native order, so the %s are seeds of the same order",
            _shown(names),
            several(orders, "order"),
        )


def _as_preset(spec: ScenarioSpec, catalogue: Catalogue) -> bool:
    """Whether a scenario is a preset's, but for how methods are trained on it."""
    if spec.name not in catalogue.names("scenario"):
        return False
    return dataclasses.replace(spec, training=catalogue.scenario(spec.name).training) == catalogue.scenario(spec.name)


def _loaded(cell: CellSpec, catalogue: Catalogue, loaded: dict[str, Any]) -> Any:
    """The data of a cell, which take the place of others in ``loaded``; ``None`` if their files are not here."""
    place = canonical([cell.scenario.dataset, dict(cell.dataset_hyperparameters)])
    if place not in loaded:
        loaded.clear()
        root, load = DataRoot.from_environment(), catalogue.resolve(catalogue.get("dataset", cell.scenario.dataset))
        try:
            loaded[place] = load(DataRoot(root.folders, root.cache, offline=True), **cell.dataset_hyperparameters)
        except (CglsuiteError, OSError, ImportError) as error:
            logger.debug("%s is not checked: %s", cell.scenario.name, error)
            loaded[place] = None
    return loaded[place]


def _number_of_tasks(cell: CellSpec, catalogue: Catalogue, where: str, data: Any = None) -> int:
    from cglsuite.cells.run import build_scenario

    name = cell.scenario.name
    try:
        if data is None:
            return len(build_scenario(catalogue, cell.scenario, cell.dataset_hyperparameters, cell.seeds))
        return len(catalogue.resolve(catalogue.get("scenario", name))(cell.scenario, data, cell.seeds, "cpu"))
    except (SpecError, DataError) as error:
        raise type(error)(f"{where}: {name}: {error}") from error


def _warn_of_one_task(cell: CellSpec, n_tasks: int) -> None:
    if cell.scenario.task_free is None and n_tasks == 1:
        advice = ": lower scenario.classes_per_task" if cell.scenario.task_key is None else ""
        logger.warning("%s: the stream has a single task, so nothing is continual%s", cell.scenario.name, advice)


def _shown(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    return unique[0] if len(unique) == 1 else f"{unique[0]} and {several(len(unique) - 1, 'other scenario')}"
