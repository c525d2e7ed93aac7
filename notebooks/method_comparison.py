# %% [markdown]
# # Comparison of methods
#
# Which methods differ, and by how much? What can these records not answer?

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
campaign = ""  # path of a campaign file; empty: the campaign below
inline = {  # content of a campaign file; a small demonstration on synthetic data
    "name": "all-orders-of-three-tasks",
    "grid": {"scenarios": ["synthetic-csbm/class-il@example-1"], "methods": ["bare", "ewc", "er-gnn", "joint"]},
    "set": {"scenario.n_tasks": 3, "dataset.n_nodes": 400, "dataset.n_classes": 6},
    "seeds": {"orders": "all-tasks", "init": [0, 1, 2]},
    "run": {"device": "cpu"},
}
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
overrides = {}  # overrides of the campaign, as in `cglsuite run --set`
only = []  # cells to report on, as KEY=VALUE (see `cglsuite run --only`); empty: all
device = ""  # auto, cpu or cuda; empty: the campaign's
train_missing = True  # train cells missing from the store; `cglsuite run` and `cglsuite report` pass False
metric = ""  # name of the metric definition; empty: average performance, or A_AUC of task-free streams
methods = []  # methods to compare, a name or a list; empty: all
against = ""  # compare all others with this method; empty: all pairs
test = "t"  # test for the verdicts: t (paired or quasi-F, depending on the design), wilcoxon, or welch (as if run separately)
adjustment = "holm"  # holm or benjamini-hochberg, over the pairs of a scenario
alpha = 0.05  # family-wise level (Holm) or false discovery rate (Benjamini-Hochberg); a number above 0 and below 1
smallest_difference = 1.0  # smallest interesting difference; in points for fractions; a number above 0
power = 0.8  # probability of detecting it; a number above 0 and below 1

# %%
from cglsuite.reports.notebooks import MethodComparison
from cglsuite.reports.studies.comparison import compute as comparison
from cglsuite.reports.studies.comparison import page as show_comparison

asked = MethodComparison.read(globals())
study = comparison.study(asked.results(), asked.question)
show_comparison.overview(study)

# %%
grid = show_comparison.grid(study.comparisons)
grid or show_comparison.distributions(study)

# %%
show_comparison.progress(study)

# %% [markdown]
# ## Units of the tests
#
# Orders and seeds are random factors. If each order has its own seeds, they are averaged first. If the same seeds are used in every order,
# they are *crossed* with orders: a seed can favour a method in all orders at once, so the test accounts for both orders and seeds (a
# quasi-F with Satterthwaite's degrees of freedom). With a single seed or a single order, the verdict applies only to that seed or that
# order. If all possible orders were run, they are the population, and only seeds are replicates. Methods with the same cells are compared
# in pairs, others by Welch's test. If only one of two methods has a cell, the test is refused. Random splits share items, so their variance
# component is counted `1/n + n_test/n_train` times (Nadeau & Bengio 2003).

# %%
show_comparison.replication(study)

# %% tags=["fold"]
show_comparison.means(study)

# %%
show_comparison.distributions(study) if grid else None

# %% [markdown]
# ## Differences
#
# Each difference is the first method minus the second. Only the declared test gives verdicts. *Welch's test, as if run apart,* is what
# papers compute: the mean of each method with its own standard error, ignoring shared orders and seeds. The p-values are adjusted over all
# declared pairs of the scenario, including refused ones; each interval is for a single pair. **Hedges' g** is the difference in units of a
# standard deviation: that of the differences for paired comparisons, otherwise that within methods. Its interval excludes 0 exactly when
# the unadjusted t-test has a p-value below the level. *Not significant* does not mean equal: check the interval, and the power below. A
# refused pair has a reason instead of a p-value.

# %%
show_comparison.differences(study)

# %%
show_comparison.intervals(study)

# %% [markdown]
# ## Ranks
#
# Friedman's test checks whether any of the methods differ in their ranks within blocks. Only if they do, pairs are tested: two methods
# differ if their average ranks are further apart than the critical difference (Nemenyi). The diagram shows average ranks, best on the left;
# a bar joins methods that do not differ significantly. Both tests need independent blocks: orders with their own seeds, splits, or seeds if
# all orders were run. Blocks that share seeds are refused; their ranks are only described in a figure. Whether one method beats another in
# general is a question about data sets, not about orders.

# %%
show_comparison.ranks(study)

# %%
show_comparison.rank_diagrams(study)

# %%
show_comparison.rank_spreads(study)

# %% [markdown]
# ## Where the variance comes from
#
# This is a mixed model with methods as fixed effects, and orders and seeds as crossed random effects. It separates the effect of an order
# on all methods (order) from its effect on one method (method × order). It does the same for seeds (seed, method × seed), and estimates the
# effect of a seed in one order on all methods (order × seed) and the residual. It needs at least three orders crossed with three seeds;
# otherwise it is refused.

# %%
show_comparison.components(study)

# %% [markdown]
# ## Power
#
# This section shows which differences these records can detect, and how many replicates are needed for the smallest interesting difference.
# The standard deviation from a pilot is itself uncertain, so the cautious number uses its upper bound. Power is for a difference of that
# size in the planned test, before any of its data are seen. It says nothing about a difference that has already been observed.

# %%
show_comparison.power(study)

# %% [markdown]
# ### For the next campaign
#
# With few seeds, no number of orders is enough, because the effect of a seed on the difference between two methods is the same in all
# orders.

# %%
show_comparison.plans(study)

# %% [markdown]
# ## Cells without a result

# %%
show_comparison.problems(study)

# %% [markdown]
# ## Provenance
#
# Every number on this page is computed from the records of cells. The metric, pairs, test and level are parameters of the page, and are
# declared before the numbers are seen.

# %%
show_comparison.provenance(study)
