"""An array job of supervisors, managed only with ``sbatch``, ``squeue`` and ``scancel``."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.executors import Ended, ExecutorError, Job, UnreachableError

ANSWER_S = 60.0
_ARRAY = re.compile(r"([1-9][0-9]{0,5})(?:%([1-9][0-9]{0,5}))?")
_TIME = re.compile(r"[0-9]+(-[0-9]{1,2}(:[0-9]{1,2}){0,2}|(:[0-9]{1,2}){0,2})")
_WORD = re.compile(r"[^\s]*")
_OURS = (
    *("--array", "-a", "--job-name", "-J", "--output", "-o", "--error", "-e", "--open-mode", "--parsable", "--requeue", "--no-requeue"),
    *("--signal", "--wrap", "--wait", "-W", "--test-only", "--nodes", "-N", "--ntasks", "-n"),
)
_UNKNOWN_JOB = "Invalid job id"
_SILENT = re.compile(r"[Uu]nable to contact|timed out|[Cc]onnection|[Cc]ommunication|[Aa]uthentication|configuration source|munge")
_AGAIN = {
    "TIMEOUT": "its time was up",
    "PREEMPTED": "another job came first",
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not boot",
    "OUT_OF_MEMORY": "its memory ran out",
    "DEADLINE": "its deadline has passed",
}
_LIVE = {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "SIGNALING"}
_LIVE |= {"SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "RESV_DEL_HOLD"}
_WAITING = _LIVE - {"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "RESIZING"}
_SCRIPT = """#!/bin/bash
# The time is nearly up: the supervisor stops in order, and this element goes back into the queue. SIGTERM is left alone on purpose:
# scancel sends it, and what was cancelled must not come back.
again() {{
  trap '' USR1
  kill -USR1 "$supervisor" 2>/dev/null
  wait "$supervisor"; status=$?
  if [ "$status" = 75 ]; then scontrol requeue "$SLURM_JOB_ID" && sleep 60; fi
  exit "$status"
}}
trap again USR1
{setup}
{command} &
supervisor=$!
wait "$supervisor"
"""
logger = logging.getLogger("cglsuite.slurm")


class SlurmLauncher:
    """Launch, poll and cancel supervisors on Slurm (a :class:`cglsuite.campaigns.executors.Launcher`), using the options of this plugin.

    Raises:
        UsageError: an option that sbatch would not understand, or one that the suite itself sets.
    """

    def __init__(
        self,
        *,
        array: str = "1",
        partition: str = "",
        time: str = "",
        gres: str = "",
        constraint: str = "",
        cpus: int = 0,
        memory: str = "",
        grace_s: int = 120,
        sbatch: Sequence[str] = (),
        setup: Sequence[str] = (),
        python: str = "",
    ) -> None:
        size = _ARRAY.fullmatch(array)
        if size is None:
            raise UsageError(f"run.slurm.array = {array!r}: expected a number of supervisors, such as 8, or 8%2 for at most two at once")
        if time and not _TIME.fullmatch(time):
            raise UsageError(f"run.slurm.time = {time!r}: expected minutes, hours:minutes:seconds or days-hours, such as 4:00:00 or 1-12")
        named = {"partition": partition, "gres": gres, "constraint": constraint, "mem": memory, "time": time}
        for name, value in named.items():
            if not _WORD.fullmatch(value):
                raise UsageError(f"run.slurm.{'memory' if name == 'mem' else name} = {value!r}: expected a single word")
        for word in sbatch:
            if not word.startswith("-") or word.partition("=")[0] in _OURS or "\n" in word:
                raise UsageError(
                    f"run.slurm.sbatch: {word!r}: expected an sbatch option such as --account=lab, other than {', '.join(_OURS)}"
                )
        self.parts, self.at_once = int(size[1]), size[2]
        self.cpus, self.python, self.setup, self.constraint, self.partition = cpus, python, tuple(setup), constraint, partition
        options = [f"--{name}={value}" for name, value in named.items() if value]
        self.options = [*options, f"--signal=B:USR1@{grace_s}", *sbatch]

    @cached_property
    def where(self) -> str:
        """The name of the cluster that this machine submits to."""
        found = re.search(r"^ClusterName\s*=\s*(\S+)", _answer("scontrol", "show", "config"), re.MULTILINE)
        return found[1] if found else ""

    def launch(self, job: Job, parts: Sequence[int]) -> Mapping[int, str]:
        """Submit a new array for the ``parts`` that are not already alive under the name of the job."""
        alive = {part: name for name, part, state in _elements("--name", job.name, "--states=all") if part in parts and state in _LIVE}
        wanted = [part for part in parts if part not in alive]
        if not wanted:
            return alive
        if not self.constraint:
            self._hint()
        id = "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
        words = [word if word.startswith('"') else shlex.quote(word) for word in job.words('"$SLURM_ARRAY_TASK_ID"', id=f'"{id}"')]
        script = job.folder / "slurm.sh"
        script.write_text(_SCRIPT.format(setup="\n".join(self.setup), command=" ".join(words)), encoding="utf-8")
        array = ",".join(map(str, wanted)) + (f"%{self.at_once}" if self.at_once else "")
        submitted = _answer(
            *("sbatch", "--parsable", f"--array={array}", f"--job-name={job.name}", "--nodes=1", "--ntasks=1", "--requeue"),
            *(f"--cpus-per-task={self.cpus or job.cpus}", f"--output={job.log('%a')}", "--open-mode=append"),
            *(*self.options, str(script)),
        )
        number = submitted.strip().partition(";")[0]
        return {**alive, **{part: f"{number}_{part}" for part in wanted}}

    def poll(self, ids: Mapping[int, str]) -> Mapping[int, Ended]:
        """Return the squeue state of each element. Elements that squeue no longer lists have ended, provided that squeue answers."""
        states: dict[str, str] = {}
        for number in sorted({name.partition("_")[0] for name in ids.values()}):
            states |= {name: state for name, _, state in _elements("--jobs", number, "--states=all")}
        found = {part: self._ended(name, states.get(name, "")) for part, name in ids.items()}
        return {part: end for part, end in found.items() if end is not None}

    def waiting(self, ids: Mapping[int, str]) -> set[int]:
        """Return the elements that squeue lists but that are not running: queued, held, being requeued, or suspended."""
        states: dict[str, str] = {}
        for number in sorted({name.partition("_")[0] for name in ids.values()}):
            states |= {name: state for name, _, state in _elements("--jobs", number, "--states=all")}
        return {part for part, name in ids.items() if states.get(name, "") in _WAITING}

    def cancel(self, ids: Mapping[int, str]) -> None:
        """Remove pending elements from the queue and send SIGTERM to running ones."""
        _answer("scancel", *ids.values())

    def _ended(self, name: str, state: str) -> Ended | None:
        if state in _LIVE:
            return None
        if state == "COMPLETED":
            return Ended(ok=True)
        if state == "CANCELLED":
            return Ended(ok=False, reason=f"{name} was cancelled")
        if state == "FAILED":
            facts = _answer("scontrol", "--oneliner", "show", "job", name)
            if (output := re.search(r"StdOut=(.*?)(?: \w+=|$)", facts, re.MULTILINE)) and _is_empty(Path(output[1])):
                return Ended(ok=False, again=True, reason=f"{name} failed before it printed anything, as parts do that Slurm starts twice")
            shown = re.search(r"ExitCode=([0-9]+):([0-9]+)", facts)
            return Ended.by_status(int(shown[1]) or -int(shown[2])) if shown else Ended(ok=False, reason=f"{name} failed")
        return Ended(ok=False, again=True, reason=_AGAIN.get(state, f"Slurm no longer knows {name}"))

    def _hint(self) -> None:
        """Warn if eligible nodes have different features, since processors of different models may differ in the last bits."""
        where = (f"--partition={self.partition}",) if self.partition else ()
        try:
            kinds = sorted({line for line in _answer("sinfo", "--noheader", *where, "--format=%f").splitlines() if line})
        except ExecutorError:
            return
        if len(kinds) > 1:
            logger.warning(
                "the nodes differ (features: %s), so results may differ in the last bits; set run.slurm.constraint to use only one kind "
                "of node",
                kinds,
            )


def _elements(*words: str) -> Iterable[tuple[str, int, str]]:
    """(name, part, state) of every array element that squeue lists."""
    try:
        lines = _answer("squeue", "--noheader", "--array", "--format=%F_%K|%K|%T", *words).splitlines()
    except ExecutorError as error:
        if _UNKNOWN_JOB in str(error):
            return
        raise UnreachableError(str(error)) from error  # if squeue fails, nothing is known about jobs
    for line in lines:
        name, part, state = line.strip().split("|")
        if part.isdigit():
            yield name, int(part), state


def _is_empty(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.stat().st_size == 0
    return False


def _answer(*command: str) -> str:
    """The output of a Slurm command.

    Raises:
        ExecutorError: the command fails or is not installed. UnreachableError: the controller does not answer.
    """
    # Inside an interactive job, sbatch would inherit its size and time limit.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_")) or name in _KEPT}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWER_S, env=environment)
    except FileNotFoundError:
        raise ExecutorError(
            f"{command[0]} is not installed on this machine; run cglsuite on a machine from which Slurm jobs can be submitted"
        ) from None
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"{command[0]} did not respond within {ANSWER_S:g} s") from None
    if done.returncode == 0:
        return done.stdout
    said = "; ".join(line.strip() for line in done.stderr.splitlines() if line.strip()) or f"exit status {done.returncode}"
    raise (UnreachableError if _SILENT.search(said) else ExecutorError)(f"{command[0]}: {said}")


_KEPT = {"SLURM_CONF", "SLURM_CLUSTERS", "SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_QOS"}
