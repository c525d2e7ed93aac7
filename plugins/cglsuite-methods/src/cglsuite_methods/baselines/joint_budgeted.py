"""Joint training with the compute budget of fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cglsuite import Method
from cglsuite.learning import Phase
from cglsuite.streams import TaskView

_ROUNDING = 1e-9  # 7 of 100 items are 7 of 100 epochs, though 100 * (7 / 100) > 7 in floating point


class JointBudgeted(Method):
    """Store all items and train one model on all of them, with no more compute than fine-tuning uses (after Prabhu et al., Computationally
    Budgeted Continual Learning: What Does Matter?, CVPR 2023).

    With E epochs in the protocol and n_t training items in task t, the model is trained on the union of tasks 1..t for

        E n_t / (n_1 + ... + n_t)

    epochs (rounded up), starting from its state after task t - 1. That is E n_t passes over items for task t, the same number as for
    ``bare``, whereas ``joint`` makes E (n_1 + ... + n_t) passes with a new model. The lead of ``joint`` over this baseline is therefore due
    to compute, and the lead of this baseline over a method is due to the items that the method does not store. Like ``joint``, it is a
    bound and not a continual learner.

    Design choices: compute is counted in passes over training items, not in seconds, and the neighbours read with an item are not counted.
    The model is not reinitialised, because a small share of the epochs would not be enough to train it.

    Cost: the time of fine-tuning, plus up to one epoch on the union per task because epochs are whole; all items of all tasks are stored.
    """

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """Return the views of all tasks so far."""
        return (*view.past, view)

    def phases(self, view: TaskView) -> Iterator[Phase]:
        """Yield one phase whose share of the epochs equals the task's share of all items so far."""
        own = len(view.train)
        share = own / (own + sum(len(past.train) for past in view.past))
        yield Phase(share=share * (1 - _ROUNDING), name="all tasks")
