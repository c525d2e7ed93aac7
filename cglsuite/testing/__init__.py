"""Testing for plugin authors: conformance checks for every kind of plugin, tiny streams, and audits.

``kinds`` has the checks of each kind of plugin, ``staged`` what checks run in other processes, ``judge`` the processes of
methods.

Importing it imports no torch; public names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.testing.checks import examine
    from cglsuite.testing.findings import CheckFailed, CheckReport, Finding
    from cglsuite.testing.judge.sandbox import Audit, audit
    from cglsuite.testing.kinds.backbones import check_backbone, check_pretraining
    from cglsuite.testing.kinds.commands import check_command
    from cglsuite.testing.kinds.datasets import check_dataset
    from cglsuite.testing.kinds.executors import check_executor
    from cglsuite.testing.kinds.methods import check_method
    from cglsuite.testing.kinds.metrics import check_measure, check_metric
    from cglsuite.testing.kinds.notebooks import check_notebook
    from cglsuite.testing.kinds.scenarios import check_scenario, check_schedule
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
