"""Explains a failed check of a method: the performance matrix, the command that repeats it, and advice that fits the cause."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cglsuite.specs import Hyperparameter
from cglsuite.testing.findings import Finding
from cglsuite.testing.judge.hearing import Outcome, State
from cglsuite.testing.judge.metering import digest_of
from cglsuite.testing.kinds.cases import Case

__all__ = ["explained", "why_not_learnt"]

_LEAST_FALL = 0.1
"""The fraction of its first value by which a loss must fall for training to count as working."""


def explained(finding: Finding, case: Case, matrix: Mapping[int, Sequence[float]] | None = None) -> Finding:
    """A failed finding with the performance matrix of its run (by stage, float [T] each) and the command that repeats it."""
    if finding.status != "failed":
        return finding
    where = case.scenario.partition("@")[0]
    words = ["cglsuite", "check", "--kind", "method", case.method, "--only", finding.check, "--where", where, "--seed", str(case.seed)]
    return replace(finding, evidence=_matrix_text(matrix or {}), replay=shlex.join(words))


def _matrix_text(matrix: Mapping[int, Sequence[float]]) -> str:
    """Aligned text, a row per stage; a dash where a task was not asked."""
    if not matrix:
        return ""
    tasks = len(next(iter(matrix.values())))
    head = f"{'after':>6}" + "".join(f"{f'task {k + 1}':>8}" for k in range(tasks))
    rows = [
        f"{k or 'none':>6}" + "".join(f"{f'{v:.3f}' if math.isfinite(v) else '-':>8}" for v in row) for k, row in sorted(matrix.items())
    ]
    return "\n".join([head, *rows])


def why_not_learnt(run: Outcome, hyperparameters: Iterable[Hyperparameter], learnt: Sequence[bool]) -> str:
    """Advice that fits how a method failed to learn.

    Args:
        run: the measured run. hyperparameters: those of the method.
        learnt: for each task that could be tested, whether performance right after training on it was good enough.
    """
    losses = run.losses[0] if run.losses else []
    fell = f"from {losses[0]:.3g} to {losses[-1]:.3g}" if losses else "unknown"
    if any(learnt[:1]):
        weights = ", ".join(f"method.{h.name}" for h in hyperparameters if h.type is float)
        return (
            "it learns the first task and not the later ones: what protects earlier tasks leaves no room for new ones. Lower the weight of "
            f"the penalty{f' ({weights})' if weights else ''}, scale it to the loss, or free what is frozen"
        )
    if len(run.states) > 1 and _model_digest(run.states[0]) == _model_digest(run.states[1]):
        return (
            f"the model is the same after task 1 and after task 2 (loss of task 1: {fell}), so that no step changes it: check that loss() "
            "reaches the parameters, that they are in the optimiser (model.parameters() with requires_grad), and that no hook undoes steps"
        )
    if losses and losses[0] < 0:
        return f"the loss of task 1 is negative ({fell}): check its sign, loss() returns what is to be minimised"
    if losses and losses[-1] < losses[0] - _LEAST_FALL * abs(losses[0]):
        return (
            f"the loss of task 1 falls ({fell}) and the answers stay wrong: check that predict() gives the outputs that loss() trains, a "
            "row per item in the order of the query and a column per class"
        )
    return (
        f"the loss of task 1 does not fall ({fell}): check its sign, that it reaches all parameters, and whether a term that does not "
        "depend on the data outweighs the rest; else raise training.lr"
    )


def _model_digest(state: State) -> str:
    return digest_of(state.payload["state"]["method"]["model"])
