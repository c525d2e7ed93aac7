"""What task-free streams deliver: how much they mix, how often items arrive, and which schedule gives a wanted mixture.

Tables of a :class:`~cglsuite.reports.studies.task_free.pooling.TaskFreeStudy`, formatted by
:mod:`cglsuite.reports.studies.task_free.page`. Values are fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.base.hashing import canonical
from cglsuite.reports.studies.task_free.pooling import installed_catalogue
from cglsuite.streams.mixing import mid_steps, mixing_entropy, mixture_of, overlap_index, smallest_setting, step_entropies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cglsuite.host import Catalogue
    from cglsuite.reports.studies.task_free.pooling import DealtStream, TaskFreeStudy
    from cglsuite.specs import ScheduleSpec

__all__ = ["QUANTITIES", "exposure", "solved_hyperparameters", "streams"]

QUANTITIES = ("overlap", "entropy")
"""The quantities that a schedule's hyper-parameter can be solved for."""
_MOST_DRAWN = 3


def streams(study: TaskFreeStudy) -> pd.DataFrame:
    """One row per stream.

    Returns:
        Columns preset, title, schedule (in full), steps, tasks, batch, evaluations, overlap (share of steps at which no latent
        task's share reaches the threshold), overlap_delivered (the same for what arrived, in whole items), entropy (see
        :func:`~cglsuite.streams.mixing.mixing_entropy`), at_a_time (``mean_t exp H``: how many equally frequent latent tasks would mix as
        much), never (share of training items that never arrive), most (how often the most frequent one does), mean (draws per item), same.
    """
    rows = []
    for stream in study.streams.values():
        draws = np.concatenate(list(stream.draws))
        rows.append(
            {
                "preset": stream.preset,
                "title": stream.title,
                "schedule": stream.schedule_text,
                "steps": len(stream.mixture),
                "tasks": stream.mixture.shape[1],
                "batch": stream.batch,
                "evaluations": len(stream.evaluations),
                "overlap": overlap_index(stream.mixture, study.threshold),
                "overlap_delivered": overlap_index(stream.counts / stream.batch, study.threshold),
                "entropy": mixing_entropy(stream.mixture),
                "at_a_time": float(np.exp(step_entropies(stream.mixture)).mean()),
                "never": float((draws == 0).mean()),
                "most": int(draws.max()),
                "mean": float(draws.mean()),
                "same": stream.same,
            }
        )
    return pd.DataFrame(rows, columns=_STREAMS)


_STREAMS = ["preset", "title", "schedule", "steps", "tasks", "batch", "evaluations", "overlap", "overlap_delivered", "entropy", "at_a_time"]
_STREAMS += ["never", "most", "mean", "same"]


def exposure(stream: DealtStream) -> pd.DataFrame:
    """How often the training items of each latent task arrive: columns task (1-based), times ("0", "1", "2", "3 or more"), share."""
    rows = []
    for k, draws in enumerate(stream.draws, start=1):
        shares = np.bincount(np.minimum(draws, _MOST_DRAWN), minlength=_MOST_DRAWN + 1) / draws.size
        rows += [{"task": k, "times": name, "share": float(share)} for name, share in zip(_TIMES, shares, strict=True)]
    return pd.DataFrame(rows, columns=["task", "times", "share"])


_TIMES = [*map(str, range(_MOST_DRAWN)), f"{_MOST_DRAWN} or more"]


# --- a schedule's hyper-parameter from what is wanted of it ------------------------------------------------------------------------------


def solved_hyperparameters(
    study: TaskFreeStudy, targets: Mapping[str, Sequence[float]], knob: str = "", catalogue: Catalogue | None = None
) -> Any:
    """Which value of a schedule's hyper-parameter gives a stream a wanted overlap index or mixing entropy, the others as they are.

    Args:
        targets: by quantity (one of :data:`QUANTITIES`), the wanted values. knob: the schedule's hyper-parameter; empty: its first number.

    Returns:
        A frame with the columns title, schedule, knob, quantity, target, value (NaN where there is none), overlap and entropy at that
        value, refused (the reason for a missing value). Streams that differ only in these share their rows.

    Raises:
        UnknownNameError: unknown quantity, or a hyper-parameter that no schedule has.
    """
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for stream in study.streams.values():
        spec = (catalogue or installed_catalogue()).schedule(stream.schedule)
        name = _knob(spec, knob)
        rest = {n: v for n, v in stream.hyperparameters.items() if n != name}
        identity = canonical([stream.schedule, rest, stream.spans.tolist()])
        if not name or identity in seen:
            continue
        seen.add(identity)
        for quantity, wanted in targets.items():
            rows += [
                {"title": stream.title, "schedule": stream.schedule, "knob": name} | _solved(study, stream, spec, name, quantity, t)
                for t in wanted
            ]
    if knob and study.streams and not rows and targets:
        raise UnknownNameError(
            "hyper-parameter of the schedules", knob, sorted({n for stream in study.streams.values() for n in stream.hyperparameters})
        )
    columns = ["title", "schedule", "knob", "quantity", "target", "value", "overlap", "entropy", "refused"]
    return pd.DataFrame(rows, columns=columns)


def _knob(spec: ScheduleSpec, asked: str) -> str:
    numbers = [h.name for h in spec.hyperparameters if h.type is float]
    return asked if asked in numbers else "" if asked else next(iter(numbers), "")


def _solved(study: TaskFreeStudy, stream: DealtStream, spec: ScheduleSpec, knob: str, quantity: str, target: float) -> dict[str, Any]:
    def mixture(value: float) -> NDArray[np.float64]:
        return mixture_of(
            stream.weights(mid_steps(stream.spans), stream.spans, **(dict(stream.hyperparameters) | {knob: value})), stream.schedule_text
        )

    measures: dict[str, Callable[[NDArray[np.float64]], float]] = {
        "overlap": lambda mixed: overlap_index(mixed, study.threshold),
        "entropy": mixing_entropy,
    }
    if quantity not in measures:
        raise UnknownNameError("quantity to solve for", quantity, QUANTITIES)
    row = {"quantity": quantity, "target": float(target), "value": np.nan, "overlap": np.nan, "entropy": np.nan, "refused": ""}
    if getattr(stream.weights, "needs_arrivals", False):
        return row | {"refused": "the schedule follows the times of the data"}
    declared = next(h for h in spec.hyperparameters if h.name == knob)
    try:
        start = float(stream.hyperparameters.get(knob) or declared.default or 1.0)
        value = smallest_setting(
            lambda v: measures[quantity](mixture(v)), target, start, minimum=declared.minimum, maximum=declared.maximum
        )
    except SpecError as error:
        return row | {"refused": str(error)}
    solved = mixture(value)
    return row | {"value": value} | {name: measure(solved) for name, measure in measures.items()}
