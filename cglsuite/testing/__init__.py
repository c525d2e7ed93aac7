"""Testing for plugin authors: conformance checks for every kind of plugin, tiny streams, and audits.

``kinds`` contains the checks for each kind of plugin, ``staged`` the code that checks run in other processes, and ``judge`` the processes
that run methods.

Importing this package does not import torch. Public names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.testing.checks import (
        check_backbone,
        check_command,
        check_dataset,
        check_encoder,
        check_executor,
        check_measure,
        check_method,
        check_metric,
        check_notebook,
        check_pretraining,
        check_scenario,
        check_schedule,
        examine,
    )
    from cglsuite.testing.findings import CheckFailed, CheckReport, Finding
    from cglsuite.testing.judge.sandbox import Audit, audit
    from cglsuite.testing.streams import TINY_SCENARIOS, tiny_catalogue, tiny_scenarios

__all__ = [
    "TINY_SCENARIOS",
    "Audit",
    "CheckFailed",
    "CheckReport",
    "Finding",
    "audit",
    "check_backbone",
    "check_command",
    "check_dataset",
    "check_encoder",
    "check_executor",
    "check_measure",
    "check_method",
    "check_metric",
    "check_notebook",
    "check_pretraining",
    "check_scenario",
    "check_schedule",
    "examine",
    "tiny_catalogue",
    "tiny_scenarios",
]

__getattr__, __dir__ = lazily(__name__, __file__)
