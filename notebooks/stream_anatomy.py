# %% [markdown]
# # The anatomy of a stream
#
# What do the tasks contain? This page shows the sizes, classes, drift and label homophily of the tasks in a scenario, or of the years,
# domains or classes in a data set, and compares them with published statistics. If you provide a campaign, it also shows the score of each
# method on every task.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
subjects = ["synthetic-csbm/class-il@example-1"]  # scenarios, or data sets without a slash, one or several; not used with a campaign
key = ""  # for a data set: the attribute that groups its items (year, domain, ...) or "class"; empty: its first attribute
orders = [0]  # order seeds: figures show the tasks of the first; means over tasks use all
overrides = {}  # overrides of the switches and the data set, or of the campaign
only = []  # cells to report on, as KEY=VALUE (see `cglsuite run --only`); empty: all
campaign = ""  # path of a campaign file: its scenarios are the subjects, and its records give scores
inline = {}  # content of a campaign file, in place of a path
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
device = ""  # auto, cpu or cuda; empty: the campaign's
train_missing = False  # train the campaign's cells missing from the store

# %% [markdown]
# By default, the page shows a synthetic stream. If you have the data, also try `["pcg/task-il@agale-2", "pcg/class-il@agale-2"]` with
# `orders=[0, 1, 2]` (AGALE's Table 1), `["bitcoin-otc/time-il@begin-2"]` (a stream of time steps), and `["ogbn-arxiv"]` with `key="year"`.

# %%
from cglsuite import load_catalogue
from cglsuite.reports.notebooks import StreamAnatomy
from cglsuite.reports.studies.anatomy import page as show
from cglsuite.reports.studies.anatomy.compute import anatomies, campaign_anatomies

asked = StreamAnatomy.read(globals())
if asked.campaign or asked.inline:
    found = campaign_anatomies(asked.results(), load_catalogue())
else:
    found = anatomies(load_catalogue(), asked.subjects, key=asked.key, orders=asked.orders, overrides=asked.overrides)
show.message(found)

# %% [markdown]
# ## Label homophily
#
# Label homophily is the mean Jaccard similarity between the label sets of the two end nodes of an edge, within a task and in the full
# graph. In task-IL, only the labels of the task are used, and in class-IL all labels seen so far.

# %%
show.homophily(found)

# %% [markdown]
# Within a task, multi-label nodes lose some of their labels. Theorem 1 in AGALE states how often the homophily of an edge is nevertheless
# preserved.

# %%
show.theorem(found)

# %% tags=["fold"]
show.scores(found)

# %% [markdown]
# ## How the data grow
#
# BeGin (Ko et al., Figure 2) uses this growth to motivate continual learning on graphs: from one task or year to the next, (a) nodes, (b)
# edges and (c) classes are added, and (d) the shares of classes change. An edge between two tasks is added with the later one.

# %%
show.growth(found)

# %% [markdown]
# ## Drift of the mean features
#
# The left figure shows the mean feature vectors of the groups, projected onto their first two principal components. The right figure shows
# the distance of each mean from the first one, in units of the spread of the items (the square root of their total variance). The line is
# the expected distance if items were randomly assigned to groups of the same sizes. For data without features, the degree distribution (in
# powers of two) is used instead.

# %%
show.drift(found)

# %% [markdown]
# ## Class shares over time

# %%
show.shares(found)

# %% [markdown]
# ## Sizes
#
# The graph of a task is the subgraph induced by its items. For link-level tasks, it consists of the links and their end nodes, and for
# graph-level tasks, it is the union of the graphs. Edges are counted as they are listed in the data set. The degree of a node is its number
# of distinct neighbours in either direction. "Edges cut" is the share of the edges at a task's nodes that connect to nodes outside the
# task.

# %% tags=["fold"]
show.sizes(found)

# %% [markdown]
# ## Published statistics
#
# The table compares published statistics of the data set and its tasks with our own counts.

# %%
show.published(found)

# %% [markdown]
# ## Degrees
#
# The figure shows the share of nodes with at most the value on the axis.

# %%
show.degrees(found)
