# %% [markdown]
# # Comparison of methods
#
# Which methods differ, and by how much? Which questions can these records not answer?

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
# by paired tests, and others by Welch's test. If a cell exists for only one of two methods, they are not tested. Random splits share items,
# so their variance component is multiplied by `1/n + n_test/n_train` (Nadeau & Bengio 2003).

# %%
show_comparison.replication(study)

# %% tags=["fold"]
show_comparison.means(study)

# %%
show_comparison.distributions(study) if grid else None

# %% [markdown]
# ## Differences
#
# Each difference is the first method minus the second. Only the declared test gives verdicts. *Welch's test, as if run separately,* is
# the comparison that papers usually report: each method has its own mean and standard error, and shared orders and seeds are ignored. The
# p-values are adjusted over all declared pairs of the scenario, including those that could not be tested, whereas each interval is for a
# single pair. **Hedges' g** is the difference divided by a standard deviation: that of the differences for paired comparisons, otherwise
# that within methods. Its interval excludes 0 exactly if the p-value of the unadjusted t-test is below the level. *Not significant* does
# not mean equal: check the interval, and the power below. For pairs that could not be tested, the table gives the reason instead of a
# p-value.

# %%
show_comparison.differences(study)

# %%
show_comparison.intervals(study)

# %% [markdown]
# ## Ranks
#
# Friedman's test checks whether any of the methods differ in their ranks within blocks. Pairs are tested only if they do: two methods
# differ if the distance between their average ranks exceeds the critical difference (Nemenyi). The diagram shows average ranks, with the
# best on the left; a bar joins methods that do not differ significantly. Both tests need independent blocks: orders with their own seeds,
# splits, or, if all orders were run, seeds. If blocks share seeds, no test is performed, and a figure shows only the ranks. To show that
# one method beats another in general, blocks must be data sets, not orders.

# %%
show_comparison.ranks(study)

# %%
show_comparison.rank_diagrams(study)

# %%
show_comparison.rank_spreads(study)

# %% [markdown]
# ## Where the variance comes from
#
# The table shows the variance components of a mixed model with methods as fixed effects, and orders and seeds as crossed random effects.
# The model separates the effect of an order on all methods (order) from its effect on a single method (method × order). It does the same
# for seeds (seed, method × seed), and also estimates the effect that a seed has on all methods in a single order (order × seed) and the
# residual. It is fitted only if there are at least three orders crossed with three seeds.

# %%
show_comparison.components(study)

# %% [markdown]
# ## Power
#
# This section shows which differences can be detected with these records, and how many replicates are needed to detect the smallest
# difference of interest. The standard deviation in a pilot study is itself uncertain, so the conservative number of replicates is based on
# its upper bound. Power is the probability that a planned test detects a true difference of this size. It does not apply to differences
# that have already been observed.

# %%
show_comparison.power(study)

# %% [markdown]
# ### For the next campaign
#
# If there are only a few seeds, no number of orders is enough, because the effect of a seed on the difference between two methods is the
# same in all orders.

# %%
show_comparison.plans(study)

# %% [markdown]
# ## Cells without a result

# %%
show_comparison.problems(study)

# %% [markdown]
# ## Provenance
#
# Every number on this page is computed from the records of cells. The metric, pairs, test and level are parameters of the page, declared
# before the results are seen.

# %%
show_comparison.provenance(study)
