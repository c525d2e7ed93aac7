"""A hostile plugin: script, formulas, TeX and BibTeX in every text that a plugin, a campaign or a record may hold.

Shared by the tests that parse pages and by those that open them in a browser.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from made_records import CAMPAIGN, made_record
from report_lab import with_toy_cells

from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, Entry, PluginRecord
from cglsuite.reports.rendering.notebook import RenderedReport
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.reports.site.index import site_html
from cglsuite.specs import BackboneSpec, DatasetSpec, Hyperparameter, MethodSpec, MetricSpec, PluginSpec, ScenarioSpec

__all__ = ["HOSTILE", "MARK", "attacked_results", "attacked_site", "hostile_catalogue"]

MARK = "pwned"
HOSTILE = (
    f"=cmd|' /C calc'!A0</script><script>{MARK}(1)</script><!--<script>\u2028\"'><img src=x onerror={MARK}(2)>"
    f'<a href="javascript:{MARK}(3)">'
    f"]]>&lt;script&gt;\\input{{/etc/passwd}}}}\\write18{{x}}%\n@misc{{evil,\n{{ unbalanced {{\x1b[31m\x00"
)


def _specs() -> list[tuple[str, PluginSpec]]:
    """Specs whose every free text is hostile; names are held to a pattern by the specs themselves."""
    said: dict[str, Any] = {"summary": HOSTILE, "citation": HOSTILE}
    strength = Hyperparameter(name=HOSTILE, default=HOSTILE, doc=HOSTILE, effect=HOSTILE)
    hostile_method: dict[str, Any] = {"category": HOSTILE, "hyperparameters": (strength,)}
    scenario: dict[str, Any] = {"setting": "task-il", "note": HOSTILE, "protocol": HOSTILE, "task_key": HOSTILE}
    metric: dict[str, Any] = {"formula": HOSTILE, "label": HOSTILE, "direction": "up"}
    return [
        ("scenario", ScenarioSpec(name="cora/task-il@begin-1", dataset="cora", **said, **scenario)),
        ("dataset", DatasetSpec(name="cora", factory="json:loads", licence=HOSTILE, home=f"javascript:{MARK}(4)", **said)),
        ("backbone", BackboneSpec(name="gcn", factory="json:loads", hyperparameters=(strength,), **said)),
        ("method", MethodSpec(name="bare", factory="json:loads", **said, **hostile_method)),
        ("method", MethodSpec(name="joint", factory="json:loads", **said, **hostile_method)),
        ("metric", MetricSpec(name="average_performance", factory="cglsuite.stats.metrics:average_performance", **metric, **said)),
        ("metric", MetricSpec(name="forgetting_max", factory="cglsuite.stats.metrics:forgetting_max", unit=HOSTILE, **metric, **said)),
    ]


def hostile_catalogue() -> Catalogue:
    """The hostile plugin's catalogue, and a plugin that failed with a hostile error."""
    plugin = PluginRecord(distribution=HOSTILE, version=HOSTILE, entry_point=HOSTILE, module="toy", status="ok")
    broken = dataclasses.replace(plugin, status="failed", error=HOSTILE, fix=HOSTILE, details=HOSTILE)
    entries = [Entry(kind=kind, name=spec.name, spec=spec, record=plugin) for kind, spec in _specs()]
    return with_toy_cells(Catalogue([plugin, broken], entries))


def _hostile(record: Record) -> Record:
    """The record with hostile text wherever a plugin or a machine may have put some."""
    provenance = dict(record.provenance)
    part = {"role": "method", "name": HOSTILE, "distribution": HOSTILE, "version": HOSTILE, "source": HOSTILE}
    provenance |= {"plugins": [part], "core": {"version": HOSTILE, "source": HOSTILE}, "data": HOSTILE}
    environment = dict.fromkeys(record.environment, HOSTILE)
    tasks = [dict(task, name=HOSTILE) for task in record.tasks]
    return dataclasses.replace(record, provenance=provenance, environment=environment, tasks=tasks)


def attacked_results(path: Path) -> tuple[CampaignResults, Catalogue]:
    """Results of a campaign with hostile words, run with the hostile plugin; one cell failed with a hostile reason."""
    catalogue = hostile_catalogue()
    grid = {"scenarios": ["cora/task-il@begin-1"], "methods": ["bare", "joint"]}
    campaign = Campaign.parse(CAMPAIGN | {"title": HOSTILE, "description": HOSTILE, "grid": grid})
    store = Store(path)
    plan = plan_campaign(campaign, catalogue)
    for planned in plan[1:]:
        store.put(_hostile(made_record(planned, catalogue)))
    store.put(made_record(plan[0], catalogue, status="failed", reason=HOSTILE))
    return load_campaign_results(campaign, store, catalogue=catalogue), catalogue


def attacked_site(results: CampaignResults, catalogue: Catalogue) -> str:
    """The index of these results, with a report that failed for a hostile reason."""
    failed = RenderedReport(notebook=HOSTILE, path=Path("n.html"), status="failed", reason=HOSTILE, seconds=1.0)
    return site_html(results.campaign, [failed], catalogue, results)
