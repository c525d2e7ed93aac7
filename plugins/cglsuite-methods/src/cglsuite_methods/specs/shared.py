"""Problem levels, settings and hyperparameters shared by methods in several categories."""

from __future__ import annotations

from dataclasses import replace

from cglsuite import Hyperparameter

LEVELS = ("NC", "NR", "LC", "LP", "GC", "GR")
ITEMS = ("NC", "GC")  # of methods for streams without tasks
TASK_FREE = ("task-free",)
NEIGHBOURHOOD = Hyperparameter(
    name="neighbourhood",
    default=False,
    doc="embed replayed items in the current graph instead of in isolation",
    effect="true: replayed items see their neighbours, which a memory of features alone does not store",
)
FISHER = Hyperparameter(
    name="fisher",
    default="items",
    choices=("items", "batch"),
    doc="mean of squared per-item gradients, or (as implemented by CGLB and BeGin) the squared gradient of the batch mean",
)
CHUNK = Hyperparameter(name="chunk", default=16, minimum=1, doc="items per batched backward pass; bounds memory, not the result")
IMPORTANCE_MODE = Hyperparameter(
    name="importance_mode",
    default="evaluation",
    choices=("evaluation", "training"),
    doc="mode of the network while importance is estimated: evaluation, or (as implemented by CGLB at graph level) training",
    effect="training: dropout applies, and batch norm uses the items' own statistics, which cancels part of each gradient, so "
    "less is protected; no difference without dropout and batch norm",
    implicit=True,
)
# With two items the gradients of a model of millions of weights still lie in memory that is used again.
SMALL_CHUNK = replace(CHUNK, default=2, effect="memory and time only")
MEMORY = Hyperparameter(
    name="memory",
    default=100,
    minimum=1,
    doc="total number of items to store if the scenario sets no budget (scenario.memory_budget)",
    effect="more items: more rehearsal and less forgetting; no effect if the scenario sets a budget",
)
