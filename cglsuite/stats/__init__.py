"""Statistics on tidy frames: pure functions that refuse by name what the data cannot carry.

Performance values are fractions. The unit of replication is the order: seeds within one order are averaged before orders are compared.
"""

from __future__ import annotations

from cglsuite.stats.blocks import UNSHARED, common_items, complete_block, repeats
from cglsuite.stats.forgetting_bound import af_bound, check_bound
from cglsuite.stats.intervals import BOOTSTRAP_FROM, Interval, mean_interval
from cglsuite.stats.order_sensitivity import Null, expected_opd, expected_range, null_opd, opd, opd_totals, subset_opd, task_orders
from cglsuite.stats.rank_flips import kendalls_w, order_means, ranks, win_shares
from cglsuite.stats.refusal import Refused
from cglsuite.stats.variance_components import COMPONENTS, VarianceComponents, moment_components, variance_components

__all__ = [
    "BOOTSTRAP_FROM",
    "COMPONENTS",
    "UNSHARED",
    "Interval",
    "Null",
    "Refused",
    "VarianceComponents",
    "af_bound",
    "check_bound",
    "common_items",
    "complete_block",
    "expected_opd",
    "expected_range",
    "kendalls_w",
    "mean_interval",
    "moment_components",
    "null_opd",
    "opd",
    "opd_totals",
    "order_means",
    "ranks",
    "repeats",
    "subset_opd",
    "task_orders",
    "variance_components",
    "win_shares",
]
