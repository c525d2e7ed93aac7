"""The ``dask`` executor."""

from __future__ import annotations

from cglsuite import ExecutorSpec, Hyperparameter, hookimpl


@hookimpl
def cglsuite_executors() -> list[ExecutorSpec]:
    """Runs supervisors as tasks of a Dask cluster."""
    return [
        ExecutorSpec(
            name="dask",
            summary="tasks of a Dask cluster, one supervisor next to each Dask worker",
            factory="cglsuite_dask.launcher:DaskLauncher",
            remote=True,
            options=(
                Hyperparameter(
                    name="address", default="", doc="scheduler address, such as tcp://host:8786; empty: a new cluster on this machine"
                ),
                Hyperparameter(name="scheduler_file", default="", doc="file with the scheduler's address, instead of address"),
                Hyperparameter(name="parts", default=0, minimum=0, doc="number of supervisors; 0: one per Dask worker"),
                Hyperparameter(name="resources", default="", doc="resources that a supervisor requires of a Dask worker, such as GPU=1"),
                Hyperparameter(
                    name="retries", default=2, minimum=0, doc="how many times Dask restarts a supervisor whose Dask worker died"
                ),
                Hyperparameter(name="local_workers", default=2, minimum=1, doc="number of Dask workers of a new cluster"),
                Hyperparameter(name="adapt", default=False, doc="scale a new cluster with the work, up to local_workers"),
                Hyperparameter(
                    name="python",
                    default="",
                    doc="the Python interpreter on the machines of the Dask workers; empty: the same path as here",
                ),
            ),
            several=("resources",),
        )
    ]
