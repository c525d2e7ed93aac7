"""The components of this package: mixing schedules, node-level datasets, and presets for task-free streams."""

from __future__ import annotations

from cglsuite import DatasetSpec, Hyperparameter, ScenarioSpec, hookimpl
from cglsuite.specs import Citation, ScheduleSpec

_DRIFT = Citation(
    authors=("Sun", "Zhang", "Ni", "Song"),
    title="DRIFT: A Benchmark for Task-Free Continual Graph Learning with Continuous Distribution Shifts",
    year=2026,
    arxiv="2605.12998",
)
_OWN = "The cglsuite authors, 2026 (unpublished)"


@hookimpl
def cglsuite_datasets() -> tuple[DatasetSpec, ...]:
    """Graphs used in task-free studies, two of which are heterophilous."""
    from cglsuite_drift.datasets.specs import DATASETS

    return DATASETS


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """Task-free streams under the protocol of DRIFT, with the published mask and with a leak-free mask, and beyond single labels."""
    from cglsuite_drift.beyond import beyond_presets
    from cglsuite_drift.protocols import drift_presets

    return drift_presets() + beyond_presets()


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
            summary="hard, except for a window around each boundary in which shares shift linearly from one latent task to the next",
            citation=_DRIFT,
            factory="cglsuite_drift.schedules:boundary_local",
            hyperparameters=(
                Hyperparameter(
                    name="window",
                    default=5.0,
                    minimum=0,
                    doc="length of a transition in steps, half on each side of the boundary",
                    effect="wider: transitions are smoother and harder to notice; 0 equals the hard schedule",
                ),
            ),
        ),
        ScheduleSpec(
            name="global",
            summary="a fixed share of every step comes from all other latent tasks in equal parts",
            citation=_DRIFT,
            factory="cglsuite_drift.schedules:global_mixing",
            hyperparameters=(
                Hyperparameter(
                    name="p",
                    default=0.1,
                    minimum=0,
                    maximum=1,
                    doc="share of the other latent tasks in every step",
                    effect="larger: the stream itself rehearses earlier tasks and previews later ones, so less is forgotten",
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
            citation=_OWN,
            factory="cglsuite_drift.schedules:linear",
        ),
        ScheduleSpec(
            name="periodic",
            summary="recurring: each period visits every latent task once, for a time proportional to its size",
            citation=_OWN,
            factory="cglsuite_drift.schedules:periodic",
            hyperparameters=(
                Hyperparameter(
                    name="period",
                    default=None,
                    kind=float,
                    optional=True,
                    minimum=1,
                    doc="steps until the first latent task recurs, at most the length of the stream; none = a quarter of the stream",
                    effect="shorter: tasks return sooner and less is forgotten in between; the full stream length equals the hard schedule",
                ),
            ),
        ),
        ScheduleSpec(
            name="real-time",
            summary="shares follow the items' timestamps; items are spread evenly over the steps in time order",
            citation=_OWN,
            factory="cglsuite_drift.schedules:real_time",
            hyperparameters=(
                Hyperparameter(
                    name="key",
                    default="time",
                    doc="the dataset attribute that holds an item's time, such as year",
                    effect="changes the order of the items",
                ),
            ),
        ),
    ]
