"""A store's records of jobs on other machines: a folder per job with its plan, the output of its parts, and the launcher to query."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import UsageError
from cglsuite.base.wording import several
from cglsuite.campaigns.executors.base import Job
from cglsuite.cells.plan import PlanFile

__all__ = ["StoredJob", "new_job", "stored_jobs"]

_FACTS = ("name", "engine", "parts", "cpus", "python")
_KEEP_LOGS_S = 7 * 24 * 3600.0


@dataclass(kw_only=True)
class StoredJob:
    """A job that was launched or is about to be.

    Args:
        where: the cluster that runs it. ids: the engine's name for each part; empty if the reply to its submission was lost.
        submitted: who submitted it and when, for display.
    """

    job: Job
    where: str = ""
    ids: dict[int, str] = field(default_factory=dict)
    submitted: str = ""

    def write(self) -> None:
        """Keep it beside the plan."""
        facts = {
            **{name: getattr(self.job, name) for name in _FACTS},
            "where": self.where,
            "submitted": self.submitted,
            "ids": {str(part): name for part, name in self.ids.items()},
        }
        write_atomic(self.job.folder / "job.json", (json.dumps(facts, sort_keys=True, indent=1) + "\n").encode())

    def reread(self) -> bool:
        """Reload what another process has written since; return whether the job still exists."""
        found = _read(self.job.folder, self.job.store)
        if found is not None:
            self.ids = found.ids
        return found is not None

    def plan(self) -> PlanFile | None:
        """Its plan; None once it is over."""
        with contextlib.suppress(UsageError):
            return PlanFile.read(self.job.plan)
        return None

    @property
    def since_ns(self) -> int:
        """Records from here on are its attempts (modification times of the store's file system)."""
        return self.job.plan.stat().st_mtime_ns

    def close(self, *, keep_output: bool) -> None:
        """Close the job: supervisors that are still running, or start later, find no plan and exit."""
        self.job.plan.unlink(missing_ok=True)
        (self.job.folder / "job.json").unlink(missing_ok=True)
        if not keep_output:
            shutil.rmtree(self.job.folder, ignore_errors=True)

    def last_words(self, part: int, limit: int = 400) -> str:
        """The end of what a part printed."""
        try:
            text = self.job.log(part).read_bytes()[-4096:].decode(errors="replace")
        except OSError:
            return ""
        return " | ".join(line.strip() for line in text.splitlines()[-6:] if line.strip())[-limit:]

    def __str__(self) -> str:
        ids = sorted({name.partition("_")[0] for name in self.ids.values()})
        told = f" {', '.join(ids)}" if ids else ""
        return f"{self.job.engine} job{told} ({several(self.job.parts, 'part')}, submitted by {self.submitted})"


def new_job(store: Path, engine: str, label: str, *, parts: int, cpus: int, python: str = "", where: str = "") -> StoredJob:
    """A job with a name and folder of its own. Nothing is written yet."""
    words = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:40] or "cells"
    name = f"cglsuite-{words}-{secrets.token_hex(4)}"
    job = Job(name=name, engine=engine, folder=store / "jobs" / name, store=store, parts=parts, cpus=cpus, python=python or sys.executable)
    user = os.environ.get("USER") or f"user {os.getuid()}"
    return StoredJob(job=job, where=where, submitted=f"{user}@{socket.gethostname()} at {time.strftime('%Y-%m-%d %H:%M:%S')}")


def stored_jobs(store: Path) -> Iterator[StoredJob]:
    """The jobs of a store that are not known to have ended. The output of ended jobs is removed after a week."""
    for folder in sorted((store / "jobs").glob("*")):
        found = _read(folder, store)
        if found is not None:
            yield found
        elif not (folder / "plan.json").exists():
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > _KEEP_LOGS_S:
                    shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path, store: Path) -> StoredJob | None:
    try:
        facts: Mapping[str, Any] = json.loads((folder / "job.json").read_bytes())
        named = {name: facts[name] for name in _FACTS}
        ids = {int(part): str(name) for part, name in facts["ids"].items()}
        return StoredJob(job=Job(folder=folder, store=store, **named), where=facts["where"], ids=ids, submitted=facts["submitted"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
