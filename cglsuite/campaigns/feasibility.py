"""What holds for every cell of a scenario, checked before anything is trained: settings that fit no task, orders that change nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cglsuite.base.errors import DataError, SpecError
from cglsuite.base.hashing import canonical
from cglsuite.base.markup import several

if TYPE_CHECKING:
    from cglsuite.cells.plan import PlannedCell
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue

logger = logging.getLogger(__name__)
_OF_LEARNERS = ("training.", "backbone.", "method.", "pretraining.")
"""Settings of a cell that its stream does not depend on."""


def check_feasible(cells: Iterable[PlannedCell], catalogue: Catalogue, where: str) -> None:
    """Check the scenarios of cells that are to be trained; warn of those in which nothing is continual, or orders are not.

    Streams are built where that is quick: over data sets that come with a plugin or as a file. The others are built by the workers.

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
    for group in scenarios.values():
        spec = group[0].scenario
        if (orders := len({cell.seeds.order for cell in group})) > 1 and spec.class_order == "native" and spec.task_free is None:
            fixed.setdefault(orders, []).append(spec.name)
        if catalogue.get("dataset", spec.dataset).record.from_file or catalogue.dataset(spec.dataset).embedded:
            _warn_of_one_task(group[0], _number_of_tasks(group[0], catalogue, where))
    for orders, names in fixed.items():
        logger.warning(
            "%s: tasks keep their native order, so the %s are seeds of the same order",
            _shown(names),
            several(orders, "order"),
        )


def _number_of_tasks(cell: CellSpec, catalogue: Catalogue, where: str) -> int:
    from cglsuite.cells.run import build_scenario

    try:
        return len(build_scenario(catalogue, cell.scenario, cell.dataset_hyperparameters, cell.seeds))
    except (SpecError, DataError) as error:
        raise type(error)(f"{where}: {cell.scenario.name}: {error}") from error


def _warn_of_one_task(cell: CellSpec, n_tasks: int) -> None:
    if cell.scenario.task_free is None and n_tasks == 1:
        advice = ": lower scenario.classes_per_task" if cell.scenario.task_key is None else ""
        logger.warning("%s: the stream has a single task, so nothing is continual%s", cell.scenario.name, advice)


def _shown(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    return unique[0] if len(unique) == 1 else f"{unique[0]} and {several(len(unique) - 1, 'other scenario')}"
