# %% [markdown]
# # Which nodes are predicted well
#
# After the last task, every test node is queried once more in its own task. Some nodes score above the average of their task, and others
# below. This page compares these two groups by the label similarity to their neighbours, their number of labels, and their number of
# neighbours. It follows the node-level analysis in AGALE (Zhao, Bartos & Khosla, TMLR 2024, Figure 6). The numbers describe only the
# queried items: we do not test whether differences between the groups generalise.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
scenario = "synthetic-csbm/class-il@example-1"  # a name from `cglsuite list scenarios`
methods = ["bare", "er-gnn", "joint"]  # names, one or several
overrides = {"dataset.n_nodes": 400, "dataset.n_classes": 6}  # of the preset; a hyperparameter applies to the methods that declare it
seeds = {"order": [0], "init": [0]}  # lists, as in a campaign; repetitions are pooled
score = "f1"  # score of a node: f1 (of the predicted label set) or average-precision (the measure in AGALE's tables)
store = ""  # folder of records and checkpoints; empty: $CGLSUITE_STORE, else .cglsuite in the current folder

# %% [markdown]
# By default, this notebook runs a small demo on synthetic data. To analyse the paper's multi-label nodes, set `scenario` to
# `pcg/class-il@agale-1` (or `pcg/task-il@agale-1`), `methods` to the methods in its tables (`bare`, `lwf`, `ewc`, `mas`, `er-gnn`,
# `evolve-gcn`), `overrides` to `{}`, `seeds` to `{"order": [0, 1, 2], "init": [0, 1, 2]}`, and `CGLSUITE_DATA` to the data folder. Cells
# that are already in the store are not trained again. To train all of them beforehand, run `cglsuite run reports/agale/agale-pcg.toml`.

# %%
from cglsuite import load_catalogue
from cglsuite.reports.kit.tables import data_table
from cglsuite.reports.notebooks import NodeAnalysis
from cglsuite.reports.studies import nodes as show_nodes
from cglsuite.reports.studies.nodes import node_items

asked = NodeAnalysis.read(globals())
items = node_items(load_catalogue(), asked.scenario, asked.methods, asked.overrides, asked.seeds, asked.store or None, asked.score)
show_nodes.message(items)

# %% [markdown]
# ## Better and worse than the average
#
# An item is better if its score is above the mean score of its task, and worse if it is below. Items exactly at the mean are in neither
# group. Label homophily is the mean Jaccard similarity between a node's labels and those of its neighbours, computed over the competing
# labels in the graph that is used for the query. It is undefined for nodes without neighbours.
#
# The curves show the share of items with at most the value on the axis. Where one curve is below the other, its items have larger values.
# Groups are formed within each task and then pooled.

# %%
show_nodes.node_distributions(items)

# %% tags=["fold"]
show_nodes.node_groups(items)

# %% [markdown]
# ## Embeddings
#
# The figures show the model's embeddings of test items after the last task, projected to two dimensions with t-SNE (van der Maaten & Hinton
# 2008), as in DRIFT (Sun et al., Figure 5). At most 500 items from the first repetition of each method are shown. t-SNE preserves only
# local neighbourhoods. The sizes and positions of clusters and the distances between them are not meaningful, and two figures cannot be
# compared point by point. Task-specific masks, gates and prompts of a method are not applied.

# %%
show_nodes.node_embeddings(items)

# %% [markdown]
# ## The items
#
# The table has one row per test item, method and seed. `items.frame` contains all rows.

# %% tags=["fold"]
data_table(items.frame.head(), f"The first of {len(items.frame)} rows.")
