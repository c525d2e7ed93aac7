# %% [markdown]
# # Comparison of methods
#
# Which methods differ, by how much, and what can these records not tell?

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
only = []  # cells to report on, KEY=VALUE as of `cglsuite run --only`; empty: all
device = ""  # auto, cpu or cuda; empty: the campaign's
train_missing = True  # train cells missing from the store; `cglsuite run` and `cglsuite report` pass False
metric = ""  # name of the metric definition; empty: average performance, or A_AUC of task-free streams
methods = []  # methods to compare, a name or a list; empty: all
against = ""  # compare all others with this method; empty: all pairs
test = "t"  # gives the verdicts: t (paired or quasi-F, as the design asks), wilcoxon, or welch (as if run apart)
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
# Orders and seeds are random factors. Seeds of their own within every order are averaged first. Seeds that are used in every order are
# *crossed* with orders: a seed favours a method in all orders at once, so the test allows for orders and seeds both (a quasi-F with
# Satterthwaite's degrees of freedom). With a single seed or a single order there is no unconditional verdict: the claim is about that seed
# or that order. Where all possible orders were run, they are the population, and only seeds are replicates. Methods with the same cells are
# compared in pairs, others by Welch's test. If only one of two methods has a cell, the pair is refused. Random splits share items: their
# component of the variance is counted `1/n + n_test/n_train` times (Nadeau & Bengio 2003).

# %%
show_comparison.replication(study)

# %% tags=["fold"]
show_comparison.means(study)

# %%
show_comparison.distributions(study) if grid else None

# %% [markdown]
# ## Differences
#
# First minus second. Only the declared test gives verdicts. *Welch's test, as if run apart,* is what papers compute: each method's mean
# with the error of its own design, ignoring shared orders and seeds. p values are adjusted over all declared pairs of the scenario,
# including refused ones; each interval is for its own pair alone. **Hedges' g** is the difference in standard deviations: of the
# differences for paired comparisons, within methods otherwise. Its interval excludes 0 exactly when the unadjusted t-test has p below the
# level. *Not significant* does not mean equal: look at the interval, and at the power below. A refused pair has no p value, but a reason.

# %%
show_comparison.differences(study)

# %%
show_comparison.intervals(study)

# %% [markdown]
# ## Ranks
#
# Friedman's test asks whether the methods' ranks within blocks differ at all. Pairs are examined only if they do: average ranks further
# apart than the critical difference differ (Nemenyi). The diagram shows average ranks, best on the left; a bar joins methods that do not
# differ significantly. Both tests need independent blocks: orders with seeds of their own, splits, or seeds where all orders were run.
# Blocks that share seeds are refused; the figure of ranks describes their cells. Whether one method beats another in general is a question
# about data sets, not about orders.

# %%
show_comparison.ranks(study)

# %%
show_comparison.rank_diagrams(study)

# %%
show_comparison.rank_spreads(study)

# %% [markdown]
# ## Where the variance comes from
#
# A mixed model with methods as fixed effects, and orders and seeds as crossed random effects. It separates what an order does to all
# methods (order) from what it does to one method (method × order), the same for seeds (seed, method × seed), what a seed does in one order
# to all methods (order × seed), and the rest. It needs at least three orders and three seeds, crossed; otherwise it is refused.

# %%
show_comparison.components(study)

# %% [markdown]
# ## Power
#
# What these records can detect, and how many replicates the smallest interesting difference needs. The standard deviation from a pilot is
# itself uncertain, so the cautious number uses its upper bound. Power is for a difference of that size in the planned test, before any of
# its data are seen; it says nothing about a difference that has already been observed.

# %%
show_comparison.power(study)

# %% [markdown]
# ### For the next campaign
#
# With few seeds, no number of orders is enough: what a seed does to the difference of two methods, it does in all orders.

# %%
show_comparison.plans(study)

# %% [markdown]
# ## Cells without a result

# %%
show_comparison.problems(study)

# %% [markdown]
# ## Provenance
#
# Every number on this page is computed from the records of cells. The question (metric, pairs, test, level) is a parameter of the page,
# declared before the numbers are seen.

# %%
show_comparison.provenance(study)
