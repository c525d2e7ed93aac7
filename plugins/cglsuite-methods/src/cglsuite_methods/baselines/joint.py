"""Joint training on all data seen so far, an upper bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cglsuite import Method
from cglsuite.learning import Phase
from cglsuite.streams import TaskView


class Joint(Method):
    """For every task t, train a newly initialised model on the union of tasks 1..t.

    In a task-free stream, one model is trained offline on all training items, in ``offline_epochs`` epochs with batches of
    ``offline_batch`` items, and used for every evaluation along the stream.

    With ``only_last``, the model is trained only once, after the last task. The last row of the performance matrix is the same at a
    fraction of the cost; earlier rows are NaN, as are the metrics that need them.

    As benchmarked (CGLB's graph level): ``warm_start`` continues training the previous model on each union. The data of the first tasks are
    then used up to T times as often, and all data are used more often than by any other method.
    """

    def before_task(self, view: TaskView) -> None:
        """Reinitialise the model unless it is warm-started."""
        if not view.first and not self.hyperparameters.get("warm_start"):
            self.model = self.context.build_model()

    def training_views(self, view: TaskView) -> Sequence[TaskView]:
        """Return the views of all tasks so far."""
        return (*view.past, view)

    def phases(self, view: TaskView) -> Iterable[Phase]:
        """Yield one phase on the union of all tasks so far. With ``only_last``, nothing is trained before the last task."""
        return () if self.hyperparameters.get("only_last") and view.position + 1 < view.n_tasks else (Phase(),)
