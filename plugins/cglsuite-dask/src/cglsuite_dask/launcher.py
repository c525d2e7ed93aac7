"""Supervisors as tasks of a Dask cluster. Only standard-library functions are sent to the cluster, so the suite need not be installed on
Dask workers.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.executors import Ended, ExecutorError, Job, UnreachableError

ANSWER_S = 20.0
logger = logging.getLogger("cglsuite.dask")


class DaskLauncher:
    """Launch, poll and cancel supervisors on Dask (a :class:`cglsuite.campaigns.executors.Launcher`), using the options of this plugin.

    A task is a ``subprocess.call`` of a supervisor, which ends with the Dask worker next to it. Tasks are published under the name of the
    job, so they outlive the command that submitted them, and another command can attach to them.

    Raises:
        UsageError: a resource without a number, or mutually exclusive options.
    """

    def __init__(
        self,
        *,
        address: str = "",
        scheduler_file: str = "",
        parts: int = 0,
        resources: Sequence[str] = (),
        retries: int = 2,
        local_workers: int = 2,
        adapt: bool = False,
        python: str = "",
    ) -> None:
        if address and scheduler_file:
            raise UsageError("run.dask: address and scheduler_file are mutually exclusive")
        if adapt and (address or scheduler_file):
            raise UsageError("run.dask.adapt: adapt scales only a local cluster; remove it, or remove the address of the other cluster")
        self.address, self.scheduler_file, self.adapt = address, scheduler_file, adapt
        self.local_workers, self.retries, self.python, self._parts = local_workers, retries, python, parts
        self.resources = dict(map(_resource, resources))
        self.where = address or scheduler_file or f"local {os.uname().nodename}"
        self._futures: dict[str, Any] = {}

    @property
    def parts(self) -> int:
        """The number of supervisors: one per Dask worker by default, and at least one, because a cluster may grow later."""
        if self._parts:
            return self._parts
        if not (self.address or self.scheduler_file):
            return self.local_workers
        with _answers(self.where):
            return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    @cached_property
    def client(self) -> Any:
        """The connection to the cluster, which is opened on first use."""
        from distributed import Client, LocalCluster

        logging.getLogger("distributed").setLevel(logging.ERROR)  # it warns about every worker that ends
        with _answers(self.where):
            if self.address or self.scheduler_file:
                place = {"scheduler_file": self.scheduler_file} if self.scheduler_file else {"address": self.address}
                client = Client(**place, timeout=ANSWER_S)
            else:
                shape: dict[str, Any] = {"n_workers": 0 if self.adapt else self.local_workers, "threads_per_worker": 1}
                resources = {"resources": self.resources} if self.resources else {}
                cluster = LocalCluster(**shape, **resources, dashboard_address=":0", silence_logs=logging.ERROR)
                if self.adapt:
                    cluster.adapt(minimum=0, maximum=self.local_workers)
                client = Client(cluster)
        logger.warning("dask dashboard: %s", client.dashboard_link)
        return client

    def launch(self, job: Job, parts: Sequence[int]) -> Mapping[int, str]:
        """Submit one task per part, unless the task of an earlier launch is still alive."""
        ids = {}
        with _answers(self.where):
            for part in parts:
                known = self._known(f"{job.name}-{part}")
                if known is None or known.status != "pending":
                    self._forget(f"{job.name}-{part}")
                    self._submit(job, part)
                ids[part] = f"{job.name}-{part}"
        return ids

    def _submit(self, job: Job, part: int) -> None:
        name = f"{job.name}-{part}"
        # The shell opens the output file on the task's machine and becomes the supervisor by exec, so ending one ends both.
        command = ["/bin/sh", "-c", 'exec "$@" >>"$0" 2>&1', str(job.log(part)), *job.words(part, id=name), "--with-parent"]
        more = {"resources": self.resources} if self.resources else {}
        # A new key each time: a scheduler may still remember the outcome of the last one.
        future = self.client.submit(subprocess.call, command, key=f"{name}-{os.urandom(4).hex()}", pure=False, retries=self.retries, **more)
        self.client.publish_dataset(future, name=name)
        self._futures[name] = future

    def _known(self, name: str) -> Any:
        """The task published under a name by any command; None if there is none."""
        if name not in self._futures:
            try:
                self._futures[name] = self.client.get_dataset(name)
            except KeyError:
                return None
        return self._futures[name]

    def poll(self, ids: Mapping[int, str]) -> Mapping[int, Ended]:
        """Return the scheduler's state of each task, with the exit status of finished tasks."""
        ended: dict[int, Ended] = {}
        with _answers(self.where):
            if self.client.status != "running":
                raise UnreachableError(f"Dask at {self.where} is not responding (connection status: {self.client.status})")
            for part, name in ids.items():
                future = self._known(name)
                if future is None:
                    ended[part] = Ended(ok=False, again=True, reason=f"dask no longer knows {name}")
                elif future.status == "finished":
                    ended[part] = Ended.by_status(future.result(timeout=ANSWER_S))
                elif future.status == "error":
                    ended[part] = Ended(ok=False, again=True, reason=_one_line(future.exception(timeout=ANSWER_S)))
                elif future.status in ("cancelled", "lost"):
                    ended[part] = Ended(ok=False, again=True, reason=f"its task is {future.status}")
            for part in ended:
                self._forget(ids[part])
        return ended

    def waiting(self, ids: Mapping[int, str]) -> set[int]:
        """Return the tasks not yet assigned to a Dask worker. They wait for a worker or for its resources."""
        with _answers(self.where):
            given = {str(key) for keys in self.client.processing().values() for key in keys}
            known = {part: self._known(name) for part, name in ids.items()}
            return {part for part, future in known.items() if future is not None and future.status == "pending" and future.key not in given}

    def cancel(self, ids: Mapping[int, str]) -> None:
        """Remove waiting tasks from the queue. Dask cannot stop a running task, so those tasks stop by themselves when the plan is gone."""
        with _answers(self.where):
            for name in ids.values():
                future = self._known(name)
                if future is not None:
                    future.cancel(force=True)
                self._forget(name)

    def _forget(self, name: str) -> None:
        """Unpublish a task."""
        if self._futures.pop(name, None) is not None:
            with contextlib.suppress(KeyError):
                self.client.unpublish_dataset(name)


@contextlib.contextmanager
def _answers(where: str) -> Iterator[None]:
    """Turn Dask's errors about an unreachable scheduler into one that names it."""
    try:
        yield
    except ExecutorError:
        raise
    except (OSError, TimeoutError) as error:
        raise UnreachableError(f"Dask at {where} is not responding: {_one_line(error)}") from error


def _resource(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise UsageError(f"run.dask.resources: {text!r}: expected a name and a number, such as GPU=1") from None


def _one_line(error: Any) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
