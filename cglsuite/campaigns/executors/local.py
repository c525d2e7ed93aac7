"""The local executor: worker processes on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.executors.base import RunOptions
from cglsuite.campaigns.executors.progress import CellProgress
from cglsuite.campaigns.executors.supervisor import Supervisor, outstanding
from cglsuite.cells.device import check_device
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.storage.store import Store

__all__ = ["LocalExecutor"]


class LocalExecutor:
    """Runs cells in worker processes on this machine (an :class:`cglsuite.campaigns.executors.base.Executor`)."""

    def run(self, cells: Sequence[PlannedCell], store: Store, options: RunOptions) -> int:
        """Run what is missing; see :class:`cglsuite.campaigns.executors.base.Executor`.

        Raises:
            UsageError: cells are for CUDA and this machine has none, or ``detach`` was requested.
        """
        if options.detach:
            raise UsageError("executor local: workers end with this command and cannot be detached; use nohup or tmux")
        wanted, missing, foreign = outstanding(cells, store, options)
        for device in {p.request.device for p in missing.values()}:
            check_device(device)
        store.sweep()
        with CellProgress(len(missing), options.label, options.progress) as progress:
            supervisor = Supervisor(missing, store, options, progress, foreign)
            supervisor.families.count(wanted.values(), missing)
            if missing:
                store.warn_without_locks()
                supervisor.supervise()
        store.sweep()  # by now it may be known that runners on other machines are gone
        return len(store.unfinished(missing))
