# %% [markdown]
# # Which nodes are predicted well
#
# After the last task, every test node is queried once more in its task. Some nodes score above the average of their task and some below.
# This page compares the two groups by the label similarity of their neighbours, their number of labels, and their number of neighbours. It
# follows the node-level analysis of AGALE (Zhao, Bartos & Khosla, TMLR 2024, Figure 6). The numbers describe the queried items; we do not
# test whether a difference between the groups generalises.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
scenario = "synthetic-csbm/class-il@example-1"  # a name from `cglsuite list scenarios`
methods = ["bare", "er-gnn", "joint"]  # names, one or several
overrides = {"dataset.n_nodes": 400, "dataset.n_classes": 6}  # of the preset; a hyper-parameter applies to the methods that declare it
seeds = {"order": [0], "init": [0]}  # lists, as in a campaign; repetitions are pooled
score = "f1"  # score of a node: f1 (of the predicted label set) or average-precision (the measure in AGALE's tables)
store = ""  # folder of records and checkpoints; empty: $CGLSUITE_STORE, else .cglsuite in the current folder

# %% [markdown]
# By default this is a small demonstration on synthetic data. For the paper's multi-label nodes, set `scenario` to
# `pcg/class-il@agale-1` (or `pcg/task-il@agale-1`), `methods` to those of its tables (`bare`, `lwf`, `ewc`, `mas`, `er-gnn`,
# `evolve-gcn`), `overrides` to `{}`, `seeds` to `{"order": [0, 1, 2], "init": [0, 1, 2]}`, and `CGLSUITE_DATA` to the data folder. A cell
# that is already in the store is not trained again: `cglsuite run reports/agale/agale-pcg.toml` trains all of these beforehand.

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
# An item is better if its score is above the mean score of its task, and worse if it is below; items exactly at the mean are in neither
# group. Label homophily is the mean Jaccard similarity between a node's labels and its neighbours' labels, among the labels that compete
# and in the graph used at the time of the query; it is undefined for nodes without neighbours.
#
# The share of items whose value is at most the value on the axis: where one curve is below the other, its items have larger values.
# Groups are formed within each task and then pooled.

# %%
show_nodes.node_distributions(items)

# %% tags=["fold"]
show_nodes.node_groups(items)

# %% [markdown]
# ## Embeddings
#
# What the body of the model makes of test items after the last task, in the plane of t-SNE (van der Maaten & Hinton 2008), as DRIFT (Sun et
# al., Figure 5) draws it: at most 500 items of a method's first repetition. t-SNE keeps neighbours together and nothing else. Distances
# between clusters, their sizes and their places mean nothing, and two figures cannot be laid over each other. Masks, gates and prompts that
# a method adds for a task are not applied.

# %%
show_nodes.node_embeddings(items)

# %% [markdown]
# ## The items
#
# One row per test item, method and seed; `items.frame` has them all.

# %% tags=["fold"]
data_table(items.frame.head(), f"The first of {len(items.frame)} rows.")
