"""The built-in executors, as a plugin."""

from __future__ import annotations

from cglsuite import ExecutorSpec, hookimpl


@hookimpl
def cglsuite_executors() -> list[ExecutorSpec]:
    """Return the executor that runs cells in worker processes on this machine."""
    return [
        ExecutorSpec(
            name="local",
            summary="worker processes on this machine; each runs every cell that it can lease",
            factory="cglsuite.campaigns.executors.supervisor:LocalExecutor",
        )
    ]
