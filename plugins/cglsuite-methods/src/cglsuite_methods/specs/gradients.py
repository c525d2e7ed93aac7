"""Gradient methods, which use a memory of past items to constrain the gradient or use gradients to select the memory."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec
from cglsuite.specs import Citation
from cglsuite_methods.specs.shared import ITEMS, LEVELS, MEMORY, NEIGHBOURHOOD, SMALL_CHUNK, TASK_FREE

GRADIENTS = (
    MethodSpec(
        name="gem",
        elsewhere=("a-gem",),
        levels=LEVELS,
        summary="gradient episodic memory: projects gradients that would raise the loss on a past task's memory",
        citation=Citation(
            authors=("Lopez-Paz", "Ranzato"), title="Gradient Episodic Memory for Continual Learning", year=2017, booktitle="NeurIPS"
        ),
        factory="cglsuite_methods.gradients.gem:GEM",
        category="Rep",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="per_task", default=100, minimum=1, doc="items to store per task, at most an equal share of the scenario's budget"
            ),
            Hyperparameter(
                name="fraction",
                default=None,
                kind=float,
                optional=True,
                minimum=0,
                maximum=1,
                doc="share of each task's training items to store (at least one), instead of per_task; "
                "the skeleton benchmark uses 0.05, 0.1 and 0.2",
            ),
            Hyperparameter(name="margin", default=0.5, minimum=0, doc="minimum weight of a memory gradient in the projected gradient"),
            NEIGHBOURHOOD,
            Hyperparameter(
                name="memory_outputs",
                default="seen",
                choices=("seen", "until-task"),
                doc="outputs among which the loss on a past task's memory is computed in class-IL: all seen so far, or (as implemented by "
                "CGLB) those seen until that task",
                effect="until-task: the memory of a task never compares its classes with later ones, so projecting does not stop later "
                "classes from taking over; more is forgotten. No difference in task-IL",
                implicit=True,
            ),
        ),
    ),
    MethodSpec(
        name="a-gem",
        elsewhere=("gem",),
        levels=ITEMS,
        settings=TASK_FREE,
        summary="averaged gradient episodic memory: projects the gradient so that no step opposes that of a reservoir memory",
        citation=Citation(authors=("Chaudhry", "others"), title="Efficient Lifelong Learning with A-GEM", year=2019, booktitle="ICLR"),
        factory="cglsuite_methods.gradients.a_gem:AGEM",
        category="Rep",
        hyperparameters=(
            MEMORY,
            Hyperparameter(
                name="reference",
                default=None,
                kind=int,
                optional=True,
                minimum=1,
                doc="memory items used for the reference gradient; none = the batch size",
                effect="larger: a less noisy reference lets through fewer steps that hurt the memory, but takes longer",
            ),
            NEIGHBOURHOOD,
        ),
    ),
    MethodSpec(
        name="gss",
        levels=ITEMS,
        settings=TASK_FREE,
        summary="gradient-based sample selection (greedy): replays a memory of items with diverse gradients",
        citation=Citation(
            authors=("Aljundi", "others"),
            title="Gradient based sample selection for online continual learning",
            year=2019,
            booktitle="NeurIPS",
        ),
        factory="cglsuite_methods.gradients.gss:GSS",
        category="Rep",
        hyperparameters=(
            MEMORY,
            Hyperparameter(
                name="compared",
                default=10,
                minimum=1,
                doc="memory items that each new item is compared with",
                effect="more: scores rise, fewer new items become candidates, and the memory changes less",
            ),
            SMALL_CHUNK,
            NEIGHBOURHOOD,
            Hyperparameter(
                name="compared_batches",
                default=None,
                kind=int,
                optional=True,
                minimum=1,
                doc="as implemented by DRIFT (5): random batches of the memory whose mean gradients new items are compared with, instead "
                "of single items; a batch enters the memory only if its mean gradient opposes them all. none = single items",
                effect="mean gradients of batches are similar, so whole batches are accepted or rejected and the memory changes in jumps",
                implicit=True,
            ),
            Hyperparameter(
                name="separate_steps",
                default=False,
                doc="as implemented by DRIFT: training alternates between the batch and the replayed items, with one step each for "
                "training.epochs = 2",
                effect="true: twice as many steps per batch, the second of which sees only the memory",
                implicit=True,
            ),
        ),
    ),
)
