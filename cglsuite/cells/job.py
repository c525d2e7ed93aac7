"""The cluster job that this process belongs to, for records and messages."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import Any

JOB = "CGLSUITE_JOB"
"""The variable with which a supervisor describes the job to its workers (a JSON object); not for users."""


def job_environment(**facts: str) -> dict[str, str]:
    """Return the environment variable that identifies a part of a job to its processes, with the engine, id and name."""
    host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    return {JOB: json.dumps({**{name: value for name, value in facts.items() if value}, "host": host}, sort_keys=True)}


def job_facts() -> Mapping[str, Any]:
    """Return the entry for the cluster job in a record's environment, ``{"job": {"engine", "id", "name", "host"}}``. It is empty outside a
    job.
    """
    try:
        facts = json.loads(os.environ.get(JOB, ""))
    except ValueError:
        return {}
    return {"job": facts} if isinstance(facts, dict) and facts else {}


def job_name() -> str:
    """Return the engine and job id as text; ``""`` outside a job."""
    facts = job_facts().get("job", {})
    return " ".join(str(facts[name]) for name in ("engine", "id") if name in facts)
