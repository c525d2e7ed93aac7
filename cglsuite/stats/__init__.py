"""Statistics on tidy frames: pure functions that raise Refused, with the reason, when the data do not support an analysis.

Performance values are fractions. Orders and seeds are random factors: nested seeds are averaged, crossed ones are allowed for in the test
(:mod:`cglsuite.stats.replication`). :func:`compare_methods` is the default path from cells to verdicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.stats.blocks import UNSHARED, common_items, complete_block, repeats
    from cglsuite.stats.compare import COMPARISON_COLUMNS, NO_DIFFERENCE, TESTS, compare_methods, condition_of
    from cglsuite.stats.crossed import LEAST_UNITS, MOST_BESIDE_LEAST, MeanEstimate, admissible, mean_estimate, mean_squares, quasi_f
    from cglsuite.stats.effect_size import Effect, crossed_g, hedges_g
    from cglsuite.stats.equivalence import AGREEMENTS, Agreement, Offset, agreement, agreement_verdicts, joint_offset
    from cglsuite.stats.families import ADJUSTMENTS, adjust
    from cglsuite.stats.forgetting_bound import af_bound, check_bound
    from cglsuite.stats.intervals import BOOTSTRAP_FROM, Interval, layout_interval, mean_interval
    from cglsuite.stats.order_sensitivity import Null, expected_opd, expected_range, null_opd, opd, opd_totals, subset_opd, task_orders
    from cglsuite.stats.pairwise import Difference, crossed_t, difference_interval, paired_t, welch, wilcoxon
    from cglsuite.stats.ranking.best_of import expected_best
    from cglsuite.stats.ranking.category_ranks import CATEGORIES, TIES, average_ranks, category_ranks, category_tests, rank_table
    from cglsuite.stats.ranking.friedman import Friedman, critical_difference, friedman
    from cglsuite.stats.ranking.rank_flips import kendalls_w, order_means, ranks, win_shares
    from cglsuite.stats.refusal import Refused
    from cglsuite.stats.replication import LEVELS, Cells, Layout, Replicates, layout, replicates
    from cglsuite.stats.sample_size import (
        MOST_UNITS,
        DifferenceVariances,
        crossed_power,
        detectable_difference,
        detectable_error,
        observed_std,
        orders_needed,
        power,
        std_bound,
        units_needed,
    )
    from cglsuite.stats.variance import COMPONENTS, VarianceComponents, moment_components, variance_components

__all__ = [
    "ADJUSTMENTS",
    "AGREEMENTS",
    "BOOTSTRAP_FROM",
    "CATEGORIES",
    "COMPARISON_COLUMNS",
    "COMPONENTS",
    "LEAST_UNITS",
    "LEVELS",
    "MOST_BESIDE_LEAST",
    "MOST_UNITS",
    "NO_DIFFERENCE",
    "TESTS",
    "TIES",
    "UNSHARED",
    "Agreement",
    "Cells",
    "Difference",
    "DifferenceVariances",
    "Effect",
    "Friedman",
    "Interval",
    "Layout",
    "MeanEstimate",
    "Null",
    "Offset",
    "Refused",
    "Replicates",
    "VarianceComponents",
    "adjust",
    "admissible",
    "af_bound",
    "agreement",
    "agreement_verdicts",
    "average_ranks",
    "category_ranks",
    "category_tests",
    "check_bound",
    "common_items",
    "compare_methods",
    "complete_block",
    "condition_of",
    "critical_difference",
    "crossed_g",
    "crossed_power",
    "crossed_t",
    "detectable_difference",
    "detectable_error",
    "difference_interval",
    "expected_best",
    "expected_opd",
    "expected_range",
    "friedman",
    "hedges_g",
    "joint_offset",
    "kendalls_w",
    "layout",
    "layout_interval",
    "mean_estimate",
    "mean_interval",
    "mean_squares",
    "moment_components",
    "null_opd",
    "observed_std",
    "opd",
    "opd_totals",
    "order_means",
    "orders_needed",
    "paired_t",
    "power",
    "quasi_f",
    "rank_table",
    "ranks",
    "repeats",
    "replicates",
    "std_bound",
    "subset_opd",
    "task_orders",
    "units_needed",
    "variance_components",
    "welch",
    "wilcoxon",
    "win_shares",
]

__getattr__, __dir__ = lazily(__name__, __file__)
