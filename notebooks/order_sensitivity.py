# %% [markdown]
# # Order sensitivity
#
# How much do results depend on the order in which tasks or classes arrive? Every number on this page is computed from the records of cells.
# A cell is one run of one method in one order with one set of seeds. A **repeat** consists of the runs of all orders with the same seed.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
campaign = ""  # path of a campaign file; empty: the campaign below
also = []  # more campaigns to pool, as files next to it or as content; for class orders, or for one order with many seeds
inline = {  # content of a campaign file; a small demonstration on synthetic data
    "name": "inline-orders",
    "title": "All orders of three tasks, three seeds each, on synthetic data",
    "grid": {"scenarios": ["synthetic-csbm/class-il@example-1"], "methods": ["bare", "ewc", "er-gnn"]},
    "seeds": {"orders": "all-tasks", "init": [0, 1, 2]},
    "set": {"scenario.n_tasks": 3, "dataset.n_nodes": 400, "dataset.n_classes": 6},
    "run": {"device": "cpu"},
}
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
overrides = {}  # overrides of the campaign, as in `cglsuite run --set`
only = []  # cells to report on, as KEY=VALUE (see `cglsuite run --only`); empty: all
device = ""  # auto, cpu or cuda; empty: the campaign's
train_missing = True  # train cells missing from the store; `cglsuite run` and `cglsuite report` pass False

# %%
from cglsuite.reports.notebooks import OrderSensitivity
from cglsuite.reports.studies.orders import page as show_orders
from cglsuite.reports.studies.orders.compute import pool

asked = OrderSensitivity.read(globals())
study = pool(asked.pooled(asked.also))
show_orders.overview(study)

# %% [markdown]
# ## How much results depend on the order
#
# The **OPD** of a task (or class) is its highest minus its lowest final accuracy over all orders. **AOPD** is the mean over tasks, and
# **MOPD** is the maximum. Both are computed for every repeat. The tables show the mean ± standard deviation and an interval over repeats.
# The OPD of a task is computed over orders of the same tasks. The OPD of a class is computed over all orders, since a task order is also a
# class order.
#
# A range (maximum minus minimum) grows with the number of runs, and seed noise can look like an order effect. The **null** measures this:
# it is the same range if the order is fixed and only the seed varies. Both are shown for the same number of runs: if there are fewer seeds
# than orders, the value for orders is the expected range over as many orders as there are seeds. An OPD that is not clearly above its null
# is not evidence of an order effect.
#
# A range over orders cannot be bootstrapped, because a resample never exceeds the observed extremes, so intervals are computed over
# repeats. The range over random halves of the orders shows how much a value depends on which orders were run.

# %%
show_orders.sensitivity(study)

# %% [markdown]
# ### Individual tasks and classes
#
# The bars show OPDs (means over repeats, with whiskers of one standard deviation). The vertical line is the null for the number of seeds in
# the caption. Compare it with the solid part of the bar, which is the expected OPD over the same number of orders.

# %%
show_orders.items(study)

# %% [markdown]
# ## Average accuracy over orders
#
# AA is the mean accuracy over all tasks after the last task. Each point is an order, averaged over seeds. The box spans the quartiles, and
# the vertical line is the mean. The small points below are the seeds of a single order.

# %%
show_orders.spreads(study)

# %%
show_orders.comparisons(study)

# %% [markdown]
# ## Does the ranking survive another order?
#
# Each entry is the percentage of orders in which the method in the row beats the method in the column. A tie counts as half. At 100 or 0,
# the ranking is the same in every order. At 50, it depends entirely on the order.

# %%
show_orders.flips(study)

# %% [markdown]
# ## Where the variance comes from
#
# The table shows the variance components of a mixed model of AA with methods as fixed effects, and orders and seeds as crossed random
# effects. The model separates the effect of an order on all methods from its effect on a single method (*method × order*), does the same
# for seeds, and estimates the residual. It is fitted only if there are at least three seeds that are the same in every order.

# %%
show_orders.components(study)

# %%
show_orders.component_shares(study)

# %% [markdown]
# ## Forgetting against average accuracy
#
# Each point is a cell. With k tasks and accuracies between 0 and 1, `AF ≤ 1 - k/(k-1)·AA + 1/(k-1)`. No cell can be above the dashed line,
# which marks the most that a model with a given average accuracy can have forgotten.

# %%
show_orders.forgetting(study)

# %%
show_orders.bound(study)

# %% [markdown]
# ## What is missing
#
# This section lists records that are not used in every table, and planned cells without a result.

# %%
show_orders.left_out(study)

# %%
show_orders.problems(study)

# %% [markdown]
# ## Provenance

# %%
show_orders.provenance(study)
