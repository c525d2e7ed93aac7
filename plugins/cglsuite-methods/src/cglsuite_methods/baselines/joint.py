"""Joint training: the upper bound that every task is learnt with all earlier data at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cglsuite import Method
from cglsuite.learning import Phase
from cglsuite.streams import TaskView

__all__ = ["Joint"]


class Joint(Method):
    """For every task t a freshly initialised model is trained on the union of tasks 1..t.

    Of a stream without tasks one model learns all training items offline, in ``offline_epochs`` passes over batches of ``offline_batch``;
    every evaluation along the stream asks that model.

    With ``only_last`` a stream of tasks is learnt once, after its last task: the last row of the performance matrix means the same, at a
    fraction of the cost; the rows before it are NaN, and with them metrics that need them.

    As benchmarked (CGLB's graph level): ``warm_start``, every union is learnt by the model that has learnt the one before. It has then made
    up to T times the passes over the first tasks' data, and over all of them more than any method beside it.
    """

    def before_task(self, view: TaskView) -> None:
        """Reinitialise the model, unless warm starting."""
        if not view.first and not self.hyperparameters.get("warm_start"):
            self.model = self.context.build_model()

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """All tasks so far."""
        return (*view.past, view)

    def phases(self, view: TaskView) -> Iterable[Phase]:
        """One, but none before the last task where only that is asked for."""
        return () if self.hyperparameters.get("only_last") and view.position + 1 < view.n_tasks else (Phase(),)
