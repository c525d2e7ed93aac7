"""Executors run lists of cells and skip those that already have a result. They differ in where the cells run.

Importing the package is cheap; the names below load their modules on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.campaigns.executors.base import Ended, Executor, ExecutorError, Job, Launcher, RunOptions, UnreachableError
    from cglsuite.campaigns.executors.campaign_run import CampaignOutcome, run_campaign
    from cglsuite.campaigns.executors.remote import RemoteExecutor
    from cglsuite.campaigns.executors.supervisor import LocalExecutor

__all__ = [
    "CampaignOutcome",
    "Ended",
    "Executor",
    "ExecutorError",
    "Job",
    "Launcher",
    "LocalExecutor",
    "RemoteExecutor",
    "RunOptions",
    "UnreachableError",
    "run_campaign",
]

__getattr__, __dir__ = lazily(__name__, __file__)
