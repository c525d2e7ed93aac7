"""Regularisation: what was learnt is held by a penalty."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec
from cglsuite_methods.specs.shared import CHUNK, FISHER, ITEMS, LEVELS, NEIGHBOURHOOD, SMALL_CHUNK, TASK_FREE

__all__ = ["REGULARISATION"]

REGULARISATION = (
    MethodSpec(
        name="ewc",
        levels=LEVELS,
        summary="elastic weight consolidation",
        citation="Kirkpatrick et al., Overcoming catastrophic forgetting in neural networks, PNAS 2017",
        factory="cglsuite_methods.ewc:EWC",
        category="Reg",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(name="lambda", default=1e4, minimum=0, doc="weight λ of the penalty"),
            FISHER,
            CHUNK,
        ),
    ),
    MethodSpec(
        name="lwf",
        levels=LEVELS,
        summary="learning without forgetting: the model before the task teaches the old outputs",
        citation="Li & Hoiem, Learning without Forgetting, ECCV 2016",
        factory="cglsuite_methods.lwf:LwF",
        category="Reg",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(name="lambda", default=1.0, minimum=0, doc="weight λ of the distillation"),
            Hyperparameter(name="temperature", default=2.0, minimum=1e-6, doc="temperature τ at which outputs are compared"),
        ),
    ),
    MethodSpec(
        name="mas",
        levels=LEVELS,
        summary="memory aware synapses",
        citation="Aljundi et al., Memory Aware Synapses: Learning what (not) to forget, ECCV 2018",
        factory="cglsuite_methods.mas:MAS",
        category="Reg",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(name="lambda", default=1.0, minimum=0, doc="weight λ of the penalty"),
            Hyperparameter(
                name="importance",
                default="items",
                choices=("items", "batch", "batch-squared"),
                doc="mean over items of |∂‖z‖²/∂θ|, or as benchmarked: |∂ mean‖z‖²/∂θ| (BeGin), (∂ mean z²/∂θ)² averaged over tasks (CGLB)",
            ),
            CHUNK,
        ),
    ),
    MethodSpec(
        name="twp",
        levels=LEVELS,
        summary="topology-aware weight preserving: what matters to the loss and to the attention over edges is held",
        citation="Liu et al., Overcoming Catastrophic Forgetting in Graph Neural Networks, AAAI 2021",
        factory="cglsuite_methods.twp:TWP",
        category="Reg",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(name="lambda_l", default=1e4, minimum=0, doc="weight λ_l of the importance for the loss"),
            Hyperparameter(name="lambda_t", default=100.0, minimum=0, doc="weight λ_t of the importance for the topology"),
            Hyperparameter(
                name="beta",
                default=0.01,
                minimum=0,
                doc="weight β of the 1-norm of the loss's gradient, a second-order term; 0 leaves it out and halves the time of a step",
            ),
            Hyperparameter(name="detach_beta", default=False, doc="as benchmarked by CGLB: the term of β has no gradient (it is left out)"),
            Hyperparameter(
                name="topology_accumulates",
                default=False,
                doc="as benchmarked by CGLB: the gradient of the loss counts in the importance for the topology too",
            ),
        ),
    ),
    MethodSpec(
        name="mas-star",
        levels=ITEMS,
        settings=TASK_FREE,
        summary="memory aware synapses, consolidated whenever the loss comes to rest",
        citation="Aljundi et al., Task-Free Continual Learning, CVPR 2019",
        factory="cglsuite_methods.mas_star:MASStar",
        category="Reg",
        hyperparameters=(
            Hyperparameter(
                name="lambda",
                default=0.5,
                minimum=0,
                doc="weight λ of the penalty",
                effect="a larger weight: less is forgotten of what was learnt before the detector fired, and less is learnt afterwards",
            ),
            Hyperparameter(
                name="window",
                default=5,
                minimum=2,
                doc="batches whose losses are watched",
                effect="longer: single batches count less and the detector fires later and more rarely",
            ),
            Hyperparameter(
                name="mean_threshold",
                default=0.2,
                minimum=0,
                doc="the loss rests below this mean",
                effect="lower: the detector fires more rarely; where it never does, the method is fine-tuning with its buffer",
            ),
            Hyperparameter(
                name="variance_threshold",
                default=0.1,
                minimum=0,
                doc="and below this variance",
                effect="lower: the detector fires more rarely, and only where the loss is steady",
            ),
            Hyperparameter(
                name="hard_buffer",
                default=30,
                minimum=0,
                doc="items with the highest losses that are learnt again and that importance is measured on, the scenario's budget at "
                "most; as benchmarked by DRIFT: 0, importance is measured on the batch at hand",
                effect="0: nothing is rehearsed, and importance is that for the latest batch alone",
            ),
            SMALL_CHUNK,
            NEIGHBOURHOOD,
        ),
    ),
)
