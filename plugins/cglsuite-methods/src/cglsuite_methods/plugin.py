"""The methods of this package: baselines, closed-form learners, regularisation, gradient methods, rehearsal and isolation."""

from __future__ import annotations

from cglsuite import MethodSpec, PretrainingSpec, hookimpl


@hookimpl
def cglsuite_methods() -> tuple[MethodSpec, ...]:
    """Continual-learning methods, including lower and upper bounds."""
    from cglsuite_methods.specs.baselines import BASELINES
    from cglsuite_methods.specs.closed_form import CLOSED_FORM
    from cglsuite_methods.specs.gradients import GRADIENTS
    from cglsuite_methods.specs.isolation import ISOLATION
    from cglsuite_methods.specs.regularisation import REGULARISATION
    from cglsuite_methods.specs.rehearsal import REHEARSAL

    return BASELINES + CLOSED_FORM + REGULARISATION + GRADIENTS + REHEARSAL + ISOLATION


@hookimpl
def cglsuite_pretrainings() -> tuple[PretrainingSpec, ...]:
    """Self-supervised pre-training schemes that run before the first task."""
    from cglsuite_methods.specs.pretraining import PRETRAININGS

    return PRETRAININGS
