"""The job of a cluster that this process is part of, for records and messages: what an engine told the supervisor on this machine."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import Any

JOB = "CGLSUITE_JOB"
"""The variable by which a supervisor tells its workers (a JSON object): not for people."""


def in_job(**facts: str) -> dict[str, str]:
    """The variable for the processes of one part of a job: its engine, its number there, its name."""
    host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    return {JOB: json.dumps({**{name: value for name, value in facts.items() if value}, "host": host}, sort_keys=True)}


def job_facts() -> Mapping[str, Any]:
    """``{"job": {"engine", "id", "name", "host"}}`` for a record's environment; empty outside of a job."""
    try:
        facts = json.loads(os.environ.get(JOB, ""))
    except ValueError:
        return {}
    return {"job": facts} if isinstance(facts, dict) and facts else {}


def job_name() -> str:
    """Engine and number in one word pair; ``""`` outside of a job."""
    facts = job_facts().get("job", {})
    return " ".join(str(facts[name]) for name in ("engine", "id") if name in facts)
