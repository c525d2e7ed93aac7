"""What the package offers: mixing schedules, node-level datasets, and the presets of task-free streams."""

from __future__ import annotations

from cglsuite import DatasetSpec, Hyperparameter, ScenarioSpec, hookimpl
from cglsuite.specs import ScheduleSpec

__all__ = ["cglsuite_datasets", "cglsuite_scenarios", "cglsuite_schedules"]

_DRIFT = (
    "Sun, Zhang, Ni, Song: DRIFT: A Benchmark for Task-Free Continual Graph Learning with Continuous Distribution Shifts. arXiv:2605.12998"
)


@hookimpl
def cglsuite_datasets() -> tuple[DatasetSpec, ...]:
    """Graphs that task-free studies use, two of them heterophilous."""
    from cglsuite_drift.datasets.specs import DATASETS

    return DATASETS


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """Task-free streams under the protocol of DRIFT, as benchmarked and with an honest mask."""
    from cglsuite_drift.protocols import drift_presets

    return drift_presets()


@hookimpl
def cglsuite_schedules() -> list[ScheduleSpec]:
    """Abrupt, local, global, Gaussian, linear, recurring and real-time transitions."""
    return [
        ScheduleSpec(
            name="hard",
            summary="latent tasks come one after the other, each step from one of them",
            citation=_DRIFT,
            factory="cglsuite_drift.schedules:hard",
        ),
        ScheduleSpec(
            name="boundary-local",
            summary="hard but for a window around each boundary, across which shares move linearly from one latent task to the next",
            citation=_DRIFT,
            factory="cglsuite_drift.schedules:boundary_local",
            hyperparameters=(
                Hyperparameter(
                    name="window",
                    default=5.0,
                    minimum=0,
                    doc="steps of a transition, half of them on each side of the boundary",
                    effect="wider: transitions are smoother and harder to notice; 0 is the schedule hard",
                ),
            ),
        ),
        ScheduleSpec(
            name="global",
            summary="a share of every step comes from all other latent tasks in equal parts",
            citation=_DRIFT,
            factory="cglsuite_drift.schedules:global_mixing",
            hyperparameters=(
                Hyperparameter(
                    name="p",
                    default=0.1,
                    minimum=0,
                    maximum=1,
                    doc="share of the other latent tasks in every step",
                    effect="more of it: the stream rehearses earlier tasks by itself and shows later ones early, so that less is forgotten",
                ),
            ),
        ),
        ScheduleSpec(
            name="gaussian",
            summary="latent tasks come and go as Gaussians around the centres of their spans",
            citation=_DRIFT,
            factory="cglsuite_drift.schedules:gaussian",
            hyperparameters=(
                Hyperparameter(
                    name="sigma",
                    default=20.0,
                    minimum=0,
                    doc="width σ of the Gaussians in steps, above 0",
                    effect="wider: more latent tasks share a step and less is forgotten; for σ → 0 each step belongs to the nearest centre",
                ),
            ),
        ),
        ScheduleSpec(
            name="linear",
            summary="linear drift: shares move from the centre of one latent task to that of the next",
            factory="cglsuite_drift.schedules:linear",
        ),
        ScheduleSpec(
            name="periodic",
            summary="recurring: in every period all latent tasks come once, for times in proportion to their sizes",
            factory="cglsuite_drift.schedules:periodic",
            hyperparameters=(
                Hyperparameter(
                    name="period",
                    default=None,
                    kind=float,
                    optional=True,
                    minimum=1,
                    doc="steps until the first latent task comes again, at most the length of the stream; none = a quarter of the stream",
                    effect="shorter: tasks return sooner and less is forgotten between their turns; the length of the stream is hard",
                ),
            ),
        ),
        ScheduleSpec(
            name="real-time",
            summary="shares follow the items' own timestamps, items spread evenly over the steps in order of time",
            factory="cglsuite_drift.schedules:real_time",
            hyperparameters=(
                Hyperparameter(
                    name="key",
                    default="time",
                    doc="the attribute of the dataset that holds an item's time, such as year",
                    effect="another attribute orders the items otherwise",
                ),
            ),
        ),
    ]
