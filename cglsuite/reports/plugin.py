"""The notebooks that come with the core, as a plugin."""

from __future__ import annotations

from cglsuite import NotebookSpec, hookimpl

__all__ = ["cglsuite_notebooks"]


@hookimpl
def cglsuite_notebooks() -> list[NotebookSpec]:
    """The report of a campaign, exploring the catalogue, single nodes, how results depend on orders and settings, streams."""
    return [
        NotebookSpec(
            name="campaign_report",
            summary="a campaign's findings: results with their spread, matrices, curves, comparison with published values, provenance",
            path="cglsuite:_notebooks/campaign_report.ipynb",
            parameters="cglsuite.reports.notebooks:CampaignReport",
        ),
        NotebookSpec(
            name="explore",
            summary="browse the catalogue, train one small cell and look at its performance matrix",
            path="cglsuite:_notebooks/explore.ipynb",
            parameters="cglsuite.reports.notebooks:Explore",
            interactive=True,
        ),
        NotebookSpec(
            name="node_analysis",
            summary="nodes that methods predict better or worse than the task average: homophily, number of labels, degree",
            path="cglsuite:_notebooks/node_analysis.ipynb",
            parameters="cglsuite.reports.notebooks:NodeAnalysis",
            interactive=True,
        ),
        NotebookSpec(
            name="order_sensitivity",
            summary="how much results depend on the task order: OPD and its null, AA against AF, rank flips, variance components",
            path="cglsuite:_notebooks/order_sensitivity.ipynb",
            parameters="cglsuite.reports.notebooks:OrderSensitivity",
        ),
        NotebookSpec(
            name="sensitivity",
            summary="how results depend on any setting, of a method, the backbone or the protocol: accuracy and forgetting along axes",
            path="cglsuite:_notebooks/sensitivity.ipynb",
            parameters="cglsuite.reports.notebooks:Sensitivity",
        ),
        NotebookSpec(
            name="task_free_dynamics",
            summary="task-free streams: mixture and delivery, performance over the stream, overlap against A_AUC, sweeps",
            path="cglsuite:_notebooks/task_free_dynamics.ipynb",
            parameters="cglsuite.reports.notebooks:TaskFreeDynamics",
        ),
        NotebookSpec(
            name="leaderboard",
            summary="standings per scenario: metrics, time and memory with spread and intervals, method cards, the records behind each row",
            path="cglsuite:_notebooks/leaderboard.ipynb",
            parameters="cglsuite.reports.notebooks:Leaderboard",
        ),
        NotebookSpec(
            name="method_comparison",
            summary="which methods differ, by how much, and what the records cannot show: tests, effect sizes, rank diagrams, power",
            path="cglsuite:_notebooks/method_comparison.ipynb",
            parameters="cglsuite.reports.notebooks:MethodComparison",
        ),
        NotebookSpec(
            name="category_ranks",
            summary="ranks by method category as in BeGin's Figure 7, from the paper's tables and from a campaign",
            path="cglsuite:_notebooks/category_ranks.ipynb",
            parameters="cglsuite.reports.notebooks:CategoryRanks",
        ),
        NotebookSpec(
            name="stream_anatomy",
            summary="what tasks are made of: sizes, class shares, drift, label homophily beside scores, degrees, published statistics",
            path="cglsuite:_notebooks/stream_anatomy.ipynb",
            parameters="cglsuite.reports.notebooks:StreamAnatomy",
        ),
        NotebookSpec(
            name="reproduction",
            summary="the reproduction ledger: every published value, the records that reproduce it, and a computed verdict",
            path="cglsuite:_notebooks/reproduction.ipynb",
            parameters="cglsuite.reports.notebooks:Reproduction",
        ),
        NotebookSpec(
            name="ledger",
            summary="the ledgers of all papers: what is reached, run and equivalent by table, offsets, misses with their mechanisms, hours",
            path="cglsuite:_notebooks/ledger.ipynb",
            parameters="cglsuite.reports.notebooks:Ledger",
        ),
        NotebookSpec(
            name="findings",
            summary="a store's findings: differences that survive order and seed, rankings by protocol, drift, what memory and seconds buy",
            path="cglsuite:_notebooks/findings.ipynb",
            parameters="cglsuite.reports.notebooks:Findings",
        ),
    ]
