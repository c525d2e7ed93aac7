"""Reports: notebooks executed by papermill with our engine, and the self-contained HTML pages made from them.

``kit`` has tables, figures and text, ``results`` what every report computes from records, ``studies`` one module or package per study
(``compute`` computes, ``page`` renders), ``rendering`` converts notebooks to HTML, and ``site`` builds the index and the leaderboards of a
campaign.

Importing the package imports neither pandas nor papermill; the names below load their modules when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.reports.rendering.notebook import RenderedReport
    from cglsuite.reports.results.results import CampaignResults, load_campaign_results, load_pooled_results
    from cglsuite.reports.site.index import render_campaign

__all__ = ["CampaignResults", "RenderedReport", "load_campaign_results", "load_pooled_results", "render_campaign"]

__getattr__, __dir__ = lazily(__name__, __file__)
