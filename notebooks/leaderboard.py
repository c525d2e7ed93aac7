# %% [markdown]
# # Leaderboard
#
# This page has one table per scenario and protocol, with one row per method. The tables show metrics with the names of their definitions,
# time, memory, the spread over records, and an interval for every mean. The index of a campaign's reports contains the same tables, which
# you can sort, filter and download there.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
campaign = ""  # path of a campaign file; empty: the campaign below
inline = {  # content of a campaign file; a small demonstration on synthetic data
    "name": "inline-demo",
    "title": "A small demonstration on synthetic data",
    "grid": {"scenarios": ["synthetic-csbm/class-il@example-1"], "methods": ["bare", "er-gnn", "joint"]},
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
from cglsuite.host import load_catalogue
from cglsuite.reports.notebooks import Leaderboard
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results import summary
from cglsuite.reports.site import leaderboard as show_leaderboard
from cglsuite.reports.site.index import key_results

results = Leaderboard.read(globals()).results()
catalogue = load_catalogue()
summary.overview(results, key_results(results, catalogue))

# %% [markdown]
# ## Standings

# %%
show_leaderboard.leaderboard(results, catalogue)

# %% [markdown]
# ## Methods
#
# This section describes each method, including its citation, its provider, and the values of its hyperparameters in these records.

# %%
show_leaderboard.method_cards(results, catalogue)

# %% [markdown]
# ## What the metrics mean

# %%
summary.definitions(results)

# %% [markdown]
# ## Cells without a result

# %%
show_runs.problems(results)

# %% [markdown]
# ## Provenance

# %%
show_runs.provenance(results)
