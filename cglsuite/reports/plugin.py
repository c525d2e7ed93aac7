"""The plugin that provides the suite's built-in notebooks."""

from __future__ import annotations

from cglsuite import NotebookSpec, hookimpl

_SUMMARIES = {
    "campaign_report": "a campaign's findings: results with their spread, matrices, curves, comparison with published values, provenance",
    "explore": "browse the catalogue, train one small cell and look at its performance matrix",
    "node_analysis": "nodes that methods predict better or worse than the task average: homophily, number of labels, degree",
    "order_sensitivity": "how much results depend on the task order: OPD and its null, AA against AF, rank flips, variance components",
    "sensitivity": "how results depend on any setting, of a method, the backbone or the protocol: accuracy and forgetting along axes",
    "task_free_dynamics": "task-free streams: mixture and delivery, performance over the stream, overlap against A_AUC, sweeps",
    "leaderboard": "standings per scenario: metrics, time and memory with spread and intervals, method cards, the records behind each row",
    "method_comparison": "which methods differ, by how much, and what the records cannot show: tests, effect sizes, rank diagrams, power",
    "category_ranks": "ranks by method category as in BeGin's Figure 7, from the paper's tables and from a campaign",
    "stream_anatomy": "what tasks are made of: sizes, class shares, drift, label homophily and scores, degrees, published statistics",
    "reproduction": "the reproduction ledger: every published value, the records that reproduce it, and a computed verdict",
    "ledger": "the ledgers of all papers: what is reached, run and equivalent by table, offsets, misses with their mechanisms, hours",
    "claims": "which methods papers' tables separate, and whether our runs of the same pairs do: verdicts, power, runs needed",
    "findings": "a store's findings: differences that survive order and seed, rankings by protocol, drift, what memory and seconds buy",
}
_INTERACTIVE = ("explore", "node_analysis")
"""Notebooks that train a small example themselves instead of reporting on a campaign."""


@hookimpl
def cglsuite_notebooks() -> list[NotebookSpec]:
    """Return the built-in notebooks for campaign reports, the catalogue, node analysis, the effects of task orders and settings, and
    streams.
    """
    return [
        NotebookSpec(
            name=name,
            summary=summary,
            path=f"cglsuite:_notebooks/{name}.ipynb",
            parameters=f"cglsuite.reports.notebooks:{name.title().replace('_', '')}",
            interactive=name in _INTERACTIVE,
        )
        for name, summary in _SUMMARIES.items()
    ]
