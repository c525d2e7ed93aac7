"""Regularisation methods, which add a penalty to preserve earlier knowledge."""

from __future__ import annotations

from dataclasses import replace

from cglsuite import Hyperparameter, MethodSpec
from cglsuite.specs import Citation
from cglsuite_methods.specs.shared import CHUNK, FISHER, IMPORTANCE_MODE, ITEMS, LEVELS, NEIGHBOURHOOD, SMALL_CHUNK, TASK_FREE

REGULARISATION = (
    MethodSpec(
        name="ewc",
        levels=LEVELS,
        summary="elastic weight consolidation",
        citation=Citation(
            authors=("Kirkpatrick", "others"), title="Overcoming catastrophic forgetting in neural networks", year=2017, journal="PNAS"
        ),
        factory="cglsuite_methods.regularisation.ewc:EWC",
        category="Reg",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(name="lambda", default=1e4, minimum=0, doc="weight λ of the penalty"),
            replace(
                FISHER,
                choices=("items", "batch", "last-step"),
                doc=f"{FISHER.doc}, or (as implemented by AGALE) the squared gradient of the last training step, penalty included",
                effect="batch: gradients of different items cancel, so less is protected; last-step: next to nothing is protected where "
                "training has converged, and the anchor is where training stopped instead of the best weights",
            ),
            CHUNK,
            IMPORTANCE_MODE,
        ),
    ),
    MethodSpec(
        name="lwf",
        levels=LEVELS,
        summary="learning without forgetting: distils the outputs of the model from before the task",
        citation=Citation(authors=("Li", "Hoiem"), title="Learning without Forgetting", year=2016, booktitle="ECCV"),
        factory="cglsuite_methods.regularisation.lwf:LwF",
        category="Reg",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(name="lambda", default=1.0, minimum=0, doc="weight λ of the distillation loss"),
            Hyperparameter(name="temperature", default=2.0, minimum=1e-6, doc="distillation temperature τ"),
            Hyperparameter(
                name="own_task_loss",
                default=False,
                doc="as implemented by CGLB at graph level, where a variable is overwritten: in class-IL too, the loss is over the task's "
                "own outputs and each past task has its own distillation term",
                effect="true: training does not push the outputs of earlier classes down, so less is forgotten, but nothing teaches the "
                "network to distinguish classes of different tasks; no difference in task-IL",
                implicit=True,
            ),
        ),
    ),
    MethodSpec(
        name="mas",
        elsewhere=("mas-star",),
        levels=LEVELS,
        summary="memory aware synapses",
        citation=Citation(
            authors=("Aljundi", "others"), title="Memory Aware Synapses: Learning what (not) to forget", year=2018, booktitle="ECCV"
        ),
        factory="cglsuite_methods.regularisation.mas:MAS",
        category="Reg",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(name="lambda", default=1.0, minimum=0, doc="weight λ of the penalty"),
            Hyperparameter(
                name="importance",
                default="items",
                choices=("items", "batch", "batch-squared"),
                doc="mean over items of |∂‖z‖²/∂θ|; as in BeGin: |∂ mean‖z‖²/∂θ|; or as in CGLB: (∂ mean z²/∂θ)² averaged over tasks",
            ),
            CHUNK,
            IMPORTANCE_MODE,
        ),
    ),
    MethodSpec(
        name="si",
        levels=LEVELS,
        summary="synaptic intelligence: protects weights by how much their path through training has lowered the loss",
        citation=Citation(
            authors=("Zenke", "Poole", "Ganguli"), title="Continual Learning Through Synaptic Intelligence", year=2017, booktitle="ICML"
        ),
        factory="cglsuite_methods.regularisation.si:SI",
        category="Reg",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="c",
                default=0.1,
                minimum=0,
                doc="weight c of the penalty; the paper uses 0.1 and 1",
                effect="larger: less forgetting, but later tasks are learnt less well",
            ),
            Hyperparameter(
                name="xi",
                default=0.1,
                above=0,
                doc="damping ξ of the squared distance that a weight has moved; the paper uses 0.1 and 0.001",
                effect="smaller: weights that hardly moved become more important",
            ),
        ),
    ),
    MethodSpec(
        name="twp",
        levels=LEVELS,
        summary="topology-aware weight preserving: protects weights that matter to the loss and to the attention over edges",
        citation=Citation(
            authors=("Liu", "others"), title="Overcoming Catastrophic Forgetting in Graph Neural Networks", year=2021, booktitle="AAAI"
        ),
        factory="cglsuite_methods.regularisation.twp:TWP",
        category="Reg",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(name="lambda_l", default=1e4, minimum=0, doc="weight λ_l of the loss importance"),
            Hyperparameter(name="lambda_t", default=100.0, minimum=0, doc="weight λ_t of the topology importance"),
            Hyperparameter(
                name="beta",
                default=0.01,
                minimum=0,
                doc="weight β of the 1-norm of the loss gradient, a second-order term; 0 drops it and halves the time per step",
            ),
            Hyperparameter(name="detach_beta", default=False, doc="as implemented by CGLB: no gradient flows through the β term"),
            Hyperparameter(
                name="topology_accumulates",
                default=False,
                doc="as implemented by CGLB: the loss gradient also counts towards the topology importance",
            ),
            Hyperparameter(
                name="attention_norm",
                default="squared",
                choices=("squared", "norm"),
                doc="the function of the attention that is differentiated for the topology importance: its squared norm, or (as "
                "implemented by CGLB and BeGin) its norm",
                effect="norm: the importance is divided by four times the squared norm, which grows with the number of nodes, so at "
                "the same λ_t the topology protects much less",
                implicit=True,
            ),
            Hyperparameter(
                name="attention_from",
                default="sent",
                choices=("sent", "propagated", "degree-normalised"),
                doc="embeddings from which attention is computed where the layer has none of its own: what the first layer sends (W h); as "
                "implemented by CGLB its output (propagated); as implemented by BeGin W h / √degree (degree-normalised)",
                effect="propagated: with sums, scores grow with the degree and attention saturates, so the topology protects other and "
                "fewer weights; degree-normalised: hubs count less",
                implicit=True,
            ),
            Hyperparameter(
                name="double_loss",
                default=False,
                doc="as implemented by CGLB and BeGin: the gradient of the task's loss counts twice in every step",
                effect="true: under Adam, this acts like halving the weights of the penalty and the weight decay, so less is protected",
                implicit=True,
            ),
            IMPORTANCE_MODE,
        ),
    ),
    MethodSpec(
        name="mas-star",
        elsewhere=("mas",),
        levels=ITEMS,
        settings=TASK_FREE,
        summary="memory aware synapses, consolidated whenever the loss plateaus",
        citation=Citation(authors=("Aljundi", "others"), title="Task-Free Continual Learning", year=2019, booktitle="CVPR"),
        factory="cglsuite_methods.regularisation.mas_star:MASStar",
        category="Reg",
        hyperparameters=(
            Hyperparameter(
                name="lambda",
                default=0.5,
                minimum=0,
                doc="weight λ of the penalty",
                effect="larger: less forgetting of what was learnt before the detector fired, and less learning afterwards",
            ),
            Hyperparameter(
                name="window",
                default=5,
                minimum=2,
                doc="number of recent batch losses that the plateau detector uses",
                effect="longer: single batches count less, and the detector fires later and less often",
            ),
            Hyperparameter(
                name="mean_threshold",
                default=0.2,
                minimum=0,
                doc="plateau: the mean loss over the window is below this",
                effect="lower: the detector fires less often; if it never fires, the method is fine-tuning with its buffer",
            ),
            Hyperparameter(
                name="variance_threshold",
                default=0.1,
                minimum=0,
                doc="plateau: the variance of the loss over the window is below this as well",
                effect="lower: the detector fires less often, only when the loss is steady",
            ),
            Hyperparameter(
                name="hard_buffer",
                default=30,
                minimum=0,
                doc="number of highest-loss items to rehearse and to estimate importance on, at most the scenario's budget; "
                "as implemented by DRIFT: 0, importance is estimated on the current batch",
                effect="0: no rehearsal, and importance reflects the latest batch alone",
            ),
            SMALL_CHUNK,
            NEIGHBOURHOOD,
            Hyperparameter(
                name="importance",
                default="items",
                choices=("items", "batch"),
                doc="mean over items of |∂‖z‖²/∂θ|, or (as implemented by DRIFT) |∂ mean z²/∂θ| with the mean over items and outputs",
                effect="batch: gradients of items cancel and the mean over outputs divides by their number, so importance is many times "
                "smaller and the penalty has hardly any effect",
                implicit=True,
            ),
        ),
    ),
)
