"""The toy campaign of ``report_lab`` as fixtures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import task_free_lab
from approved import Pages
from no_kernel import no_kernel
from report_lab import CAMPAIGN, EVIL, Notebooks, catalogue_of, record_of, shifted

from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.reports.results.results import CampaignResults, load_campaign_results, load_pooled_results
from cglsuite.reports.studies.task_free.compute import TaskFreeStudy, campaigns_per_axis, task_free_study
from cglsuite.specs import PluginSpec

__all__ = ["no_kernel"]


@pytest.fixture(autouse=True)
def approved_pages(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """The pages that a test makes are the approved ones."""
    with Pages(request.node.nodeid, {str(tmp_path): "TMP", version("torch"): "TORCH"}) as pages:
        yield
    if not getattr(request.node, "failed", False):
        pages.check()


@pytest.fixture
def toy_catalogue() -> Catalogue:
    """The toy catalogue."""
    return catalogue_of()


@pytest.fixture
def plan(toy_catalogue: Catalogue) -> list[PlannedCell]:
    """The toy campaign's cells."""
    return plan_campaign(Campaign.parse(CAMPAIGN), toy_catalogue)


@pytest.fixture
def toy_store(tmp_path: Path, plan: list[PlannedCell]) -> Store:
    """Records of all cells but: one of ewc failed with a hostile reason, one of joint is missing."""
    store = Store(tmp_path / "store")
    for planned in plan:
        seeds, method = planned.request.seeds, planned.request.method
        if not planned.ready or (method == "joint" and seeds.init == 2 and planned.request.scenario.startswith("toy")):
            continue
        if method == "ewc" and seeds.init == 1:
            store.put(record_of(planned, status="failed", reason=f"ValueError: {EVIL}"))
        else:
            store.put(record_of(planned, matrix=shifted(planned)))
    return store


Loader = Callable[..., CampaignResults]


@pytest.fixture
def load(toy_store: Store) -> Loader:
    """Results of the toy campaign; keyword arguments change the campaign's tables or the code that is there now."""

    def loader(source: str = "a" * 64, store: Store | None = None, **changes: Any) -> CampaignResults:
        return load_campaign_results(CAMPAIGN | changes, store or toy_store, catalogue=catalogue_of(source=source))

    return loader


@pytest.fixture
def results(load: Loader) -> CampaignResults:
    """Results of the toy campaign."""
    return load()


Finished = Callable[..., CampaignResults]


@pytest.fixture
def finished(tmp_path: Path) -> Finished:
    """Results of a campaign all of whose cells are done: further entries of the catalogue, then tables that replace the toy campaign's."""

    def make(*extra: tuple[str, PluginSpec], **changes: Any) -> CampaignResults:
        catalogue, store = catalogue_of(*extra), Store(tmp_path / "finished")
        campaign = Campaign.parse(CAMPAIGN | changes)
        for planned in plan_campaign(campaign, catalogue):
            if planned.ready:
                store.put(record_of(planned))
        return load_campaign_results(campaign, store, catalogue=catalogue)

    return make


TaskFreeResults = tuple[list[CampaignResults], Catalogue]


@pytest.fixture
def task_free_results(tmp_path: Path) -> Callable[..., TaskFreeResults]:
    """The results of campaigns over widths, and over whatever ``vary`` says one at a time."""

    def make(vary: dict[str, list[Any]] | None = None, *, tampered: bool = False, **tables: Any) -> TaskFreeResults:
        catalogue, store = catalogue_of(*task_free_lab.EXTRA), Store(tmp_path / "store")
        first = CAMPAIGN | {"grid": {"scenarios": [task_free_lab.NAME], "methods": task_free_lab.METHODS}, "title": "Flows"} | tables
        given = [first, *campaigns_per_axis(first, {"schedule.width": task_free_lab.WIDTHS} if vary is None else vary)]
        for planned in (p for one in given for p in plan_campaign(Campaign.parse(one), catalogue)):
            if planned.ready:
                store.put(task_free_lab.recorded(planned, tampered))
        return load_pooled_results(given[0], given[1:], store, catalogue=catalogue), catalogue

    return make


@pytest.fixture
def small_study(task_free_results: Callable[..., TaskFreeResults]) -> TaskFreeStudy:
    """The study of the campaigns over widths."""
    results, catalogue = task_free_results()
    return task_free_study(results, catalogue=catalogue)


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebooks]:
    """An empty package of notebooks."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Notebooks(tmp_path)
    sys.modules.pop("toy_notebooks", None)
