# %% [markdown]
# # Sensitivity
#
# How do average accuracy (AA) and forgetting (AF) depend on a setting such as the width of the backbone, a weight of a method, or a switch
# of the protocol? Every number on this page is computed from the records of campaigns that sweep settings (`grid.axes`).

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
campaign = ""  # path of a campaign file; empty: the campaign below
also = []  # more campaigns to pool, as files next to it or as content
axes = []  # dotted keys for the x axes, such as method.lambda; empty: the axes of the campaigns
inline = {  # content of a campaign file; a small demonstration on synthetic data
    "name": "inline-widths",
    "title": "Width and depth on synthetic data",
    "grid": {
        "scenarios": ["synthetic-csbm/class-il@example-1"],
        "methods": ["bare", "er-gnn"],
        "axes": {"backbone.width": [8, 32, 128], "backbone.layers": [1, 2]},
    },
    "seeds": {"order": [0, 1, 2], "init": [0, 1, 2]},
    "set": {"dataset.n_nodes": 400, "dataset.n_classes": 6},
    "run": {"device": "cpu"},
}
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
overrides = {}  # overrides of the campaign, as in `cglsuite run --set`
only = []  # cells to report on, as KEY=VALUE (see `cglsuite run --only`); empty: all
device = ""  # auto, cpu or cuda; empty: the campaign's
train_missing = True  # train cells missing from the store; `cglsuite run` and `cglsuite report` pass False

# %%
from cglsuite.reports.notebooks import Sensitivity
from cglsuite.reports.studies import sweep as show_sweep
from cglsuite.reports.studies.sweep import sweep

asked = Sensitivity.read(globals())
study = sweep(asked.pooled(asked.also), asked.axes)
show_sweep.overview(study)

# %%
show_sweep.grid(study)

# %% [markdown]
# ## Average accuracy
#
# The figures show the mean AA after the last task, with one line per method. Each figure varies one axis and fixes the others. Orders are
# the unit of replication, and seeds within an order are averaged. Intervals are based on Student's t for 3 to 9 orders and on the BCa
# bootstrap for 10 or more. No interval is shown for fewer than three orders.

# %%
show_sweep.curves(study, "aa")

# %% tags=["fold"]
show_sweep.points(study, "aa")

# %% [markdown]
# ## Forgetting
#
# `AF_max` is the drop from the best accuracy that was ever reached on a task, averaged over all tasks except the last. Positive values mean
# forgetting. A network that has learnt less has less to forget, so forgetting should be interpreted together with the accuracy above.

# %%
show_sweep.curves(study, "af")

# %% tags=["fold"]
show_sweep.points(study, "af")

# %% [markdown]
# ## What is missing

# %%
show_sweep.problems(study)

# %% [markdown]
# ## Provenance

# %%
show_sweep.provenance(study)
