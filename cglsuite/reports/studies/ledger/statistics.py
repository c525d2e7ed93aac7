"""The ledger's statistics: what papers print of data sets, beside our own counts of the data that are here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite.base.errors import CglsuiteError, UnknownNameError
from cglsuite.campaigns.reference import dataset_statistics
from cglsuite.campaigns.reference.matching import dataset_key, preset_key
from cglsuite.campaigns.reference.papers import paper_named
from cglsuite.campaigns.reference.presence import absent_data
from cglsuite.cells.spec import resolve_scenario
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.studies.anatomy.published import COLUMNS, averaged_over_tasks, counted
from cglsuite.reports.studies.anatomy.subjects import anatomy_of
from cglsuite.specs import ScenarioSpec

if TYPE_CHECKING:
    from cglsuite.host import Catalogue
    from cglsuite.reports.studies.anatomy.compute import Anatomy

__all__ = ["STATISTICS", "load_statistics", "statistic_counts"]

STATISTICS = [*COLUMNS, "preset", "reason"]


def load_statistics(catalogue: Catalogue, *, paper: str = "", dataset: str = "", setting: str = "") -> pd.DataFrame:
    """Every number of ``dataset_statistics`` beside a count of the data, in the order of the table.

    Nothing is downloaded: of data that are absent the printed numbers are listed, with the reason.

    Args:
        paper, dataset, setting: only rows of these; a data set by its name here or in a paper.

    Returns:
        The columns of :func:`cglsuite.reports.studies.anatomy.published.counted`, ``preset`` (in which ours is counted: the newest of the
        paper's protocols) and ``reason`` (why there is no count).

    Raises:
        UnknownNameError: no paper prints statistics of such a data set; suggests the nearest.
    """
    table = dataset_statistics()
    if dataset and dataset_key(dataset) not in set(table["dataset"].map(dataset_key)):
        raise UnknownNameError("data set of the printed statistics", dataset, list(dict.fromkeys(table["dataset"])))
    kept = [
        row
        for row in as_rows(table)
        if (not paper or row["paper"] == paper_named(paper).name)
        and (not dataset or dataset_key(row["dataset"]) == dataset_key(dataset))
        and (not setting or row["setting"].lower() == setting.lower())
    ]
    lines: list[dict[str, Any]] = []
    for row in kept:
        preset = _preset(catalogue, row)
        anatomy, reason = _anatomy(catalogue, row, preset)
        lines += [{**line, "preset": preset, "reason": reason} for line in counted(row, anatomy)]
    return pd.DataFrame(lines, columns=STATISTICS)


def statistic_counts(statistics: pd.DataFrame) -> dict[str, int]:
    """How many numbers are equal to ours, deviate by a cause that holds, deviate otherwise, and are not counted."""
    known = statistics["equal"].notna()
    equal, holds = statistics["equal"].eq(True), known & statistics["check"].eq("holds")
    groups = {"equal": equal, "explained": holds, "open": known & ~equal & ~holds, "not counted": ~known}
    return {name: int(some.sum()) for name, some in groups.items() if some.any()}


def _preset(catalogue: Catalogue, row: Mapping[str, Any]) -> str:
    """The preset of a row, of the newest protocol of its paper; empty if no plugin provides one."""
    place = (row["paper"], dataset_key(row["dataset"]), row["setting"].lower(), row["problem"])
    protocols = paper_named(row["paper"]).protocols
    specs = catalogue.specs(ScenarioSpec).values()
    there = [spec.name for spec in specs if preset_key(spec.name, spec.setting, spec.level) == place]
    return min(there, key=lambda name: protocols.index(name.partition("@")[2]), default="")


def _anatomy(catalogue: Catalogue, row: Mapping[str, Any], preset: str) -> tuple[Anatomy | None, str]:
    """The anatomy of a preset; or ``None`` and the reason."""
    if not preset:
        return None, f"no preset of {row['paper']} is {row['dataset']} in {row['setting']}: no plugin provides one"
    orders = paper_named(row["paper"]).seeds.get("order", (0,)) if averaged_over_tasks(row) else (0,)
    try:
        resolved = resolve_scenario(catalogue, preset, {})
        if absent := absent_data(catalogue, resolved.spec.dataset, resolved.dataset_hyperparameters):
            return None, absent
        return anatomy_of(catalogue, preset, orders=orders), ""
    except CglsuiteError as error:
        return None, " ".join(str(error).split())
    except Exception as error:  # noqa: BLE001 - a loader of any plugin; the others are counted all the same
        return None, f"{type(error).__name__}: {error}"
