"""Audit mode: a method runs in a process that receives only permitted data, and must give the same predictions as in this one.

Within one process, Python code can reach anything: it can walk frames, query the garbage collector, replace functions. The other process
holds nothing to find: labels of validation and test items never leave this one. A method whose predictions differ there depends on data it
was not given.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cglsuite.base.errors import NotApplicable, PluginError
from cglsuite.base.hashing import digest
from cglsuite.cells.keys import share_key
from cglsuite.cells.process.code_census import unreplaced
from cglsuite.cells.run import build_stream, make_runner, numerics
from cglsuite.cells.spec import CellSpec
from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.judge.bench import Bench
from cglsuite.testing.judge.hearing import Hearing, Outcome

if TYPE_CHECKING:
    from cglsuite.host import Catalogue
    from cglsuite.learning.result import RunResult

__all__ = ["Audit", "audit"]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The findings of an audit.

    Args:
        matrix: the performance matrix of the other process's predictions, scored here.
        differences: differences from a run in this process, as text; empty if there are none.
        acts: forbidden acts of the method: files written outside its working folder, connections, processes.
    """

    matrix: list[list[float]]
    differences: tuple[str, ...] = ()
    acts: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the predictions agree in both processes, without forbidden acts."""
        return not self.differences and not self.acts


def audit(cell: CellSpec, catalogue: Catalogue, *, timeout_s: float = 600.0) -> Audit:
    """Run a cell here and with its method in another process, and compare.

    Args:
        timeout_s: total time limit of the other process in seconds.

    Raises:
        NotApplicable: a task-free stream.
        PluginError: the method fails only in the other process, hangs, or ends the process.
    """
    if cell.scenario.task_free is not None:
        raise NotApplicable(f"{cell.preset}: audits support streams of tasks; this one is task-free")
    identity = digest([share_key(cell, catalogue), build_stream(cell, catalogue).data_hash])
    hearing = Hearing(cell, catalogue, build_stream(cell, catalogue), seed=secrets.randbits(31), identity=identity, probed=False)
    try:
        with Bench(limit_s=timeout_s) as bench:
            (there,) = bench.run(catalogue, [hearing])
    except CheckFailed as failure:
        raise PluginError(f"{failure}, in a separate process with only permitted data; {failure.fix}") from None
    with numerics(cell), unreplaced():
        here: RunResult = make_runner(cell, catalogue, build_stream(cell, catalogue)).run()
    none = [math.nan] * len(here.matrix[0])
    matrix = [there.matrix.get(row, none) for row in range(len(here.matrix))]
    return Audit(matrix=matrix, differences=tuple(_differences(here, there, matrix)), acts=tuple(map(str, there.notes["acts"])))


def _differences(here: RunResult, there: Outcome, matrix: list[list[float]]) -> list[str]:
    differences = []
    for k, (prints, state) in enumerate(zip(here.fingerprints, there.notes["states"], strict=True), start=1):
        if there.answers.get(k, "") != prints["answers"]:
            differences.append(f"after task {k} the predictions differ from those in this process")
        elif state != prints["state"]:
            differences.append(f"after task {k} the state differs from the one in this process, although the predictions are the same")
    if not differences and repr(here.matrix) != repr(matrix):
        differences.append("the same predictions have other scores in this process: scores were tampered with")
    return differences
