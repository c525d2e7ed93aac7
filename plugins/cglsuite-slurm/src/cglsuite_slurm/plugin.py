"""The ``slurm`` executor."""

from __future__ import annotations

from cglsuite import ExecutorSpec, Hyperparameter, hookimpl


@hookimpl
def cglsuite_executors() -> list[ExecutorSpec]:
    """Runs an array of supervisors through sbatch."""
    return [
        ExecutorSpec(
            name="slurm",
            summary="a Slurm array, one supervisor per node",
            factory="cglsuite_slurm.launcher:SlurmLauncher",
            remote=True,
            options=(
                Hyperparameter(name="array", default="1", doc="number of supervisors, such as 8, or 8%2 for at most two at once"),
                Hyperparameter(name="partition", default="", doc="partition; empty: the cluster's default"),
                Hyperparameter(
                    name="time", default="", doc="time limit of one supervisor, such as 4:00:00 or 1-12; all cells together may take longer"
                ),
                Hyperparameter(name="gres", default="", doc="generic resources of one supervisor, such as gpu:1"),
                Hyperparameter(
                    name="constraint", default="", doc="node features, such as a single processor model if bit-identical results matter"
                ),
                Hyperparameter(name="cpus", default=0, minimum=0, doc="CPUs of one supervisor; 0: workers × threads"),
                Hyperparameter(name="memory", default="", doc="memory of one supervisor, such as 16G"),
                Hyperparameter(
                    name="grace_s", default=120, minimum=1, maximum=65535, doc="how many seconds before the time limit it stops"
                ),
                Hyperparameter(name="sbatch", default="", doc="further sbatch options, such as --account=lab"),
                Hyperparameter(name="setup", default="", doc="shell commands before the supervisor starts, such as module load cuda"),
                Hyperparameter(name="python", default="", doc="the Python interpreter on the nodes; empty: the same path as here"),
            ),
            several=("sbatch", "setup"),
        )
    ]
