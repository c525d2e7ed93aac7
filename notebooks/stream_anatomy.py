# %% [markdown]
# # The anatomy of a stream
#
# What do the tasks contain? This page shows sizes, classes, drift and label homophily of the tasks of a scenario, or of the years, domains
# or classes of a data set, and compares them with published statistics. With a campaign, it also shows the score of each method on every
# task.

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
# The default is a synthetic stream. If you have the data, also try `["pcg/task-il@agale-2", "pcg/class-il@agale-2"]`
# with `orders=[0, 1, 2]` (AGALE's Table 1), `["bitcoin-otc/time-il@begin-2"]` (a stream of time steps), and `["ogbn-arxiv"]` with
# `key="year"`.

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
# Label homophily is the mean Jaccard similarity between the label sets of the two ends of an edge, within a task and in the full graph. In
# task-IL, only the labels of the task count; in class-IL, all labels seen so far.

# %%
show.homophily(found)

# %% [markdown]
# Within a task, multi-label nodes lose some of their labels. Theorem 1 of AGALE says how often an edge keeps its homophily anyway.

# %%
show.theorem(found)

# %% tags=["fold"]
show.scores(found)

# %% [markdown]
# ## How the data grow
#
# BeGin (Ko et al., Figure 2) motivates continual learning on graphs by this growth: from one task or year to the next, (a) nodes, (b) edges
# and (c) classes arrive, and (d) the shares of classes change. An edge between two tasks arrives with the later one.

# %%
show.growth(found)

# %% [markdown]
# ## Drift of the mean features
#
# The left figure shows the mean feature vectors of the groups in the plane of their first two principal components. The right figure shows
# the distance of each mean from the first one, in units of the spread of the items (the square root of their total variance). The line is
# the expected distance if items were assigned at random to groups of these sizes. Data without features use the degree distribution (in
# powers of two) instead.

# %%
show.drift(found)

# %% [markdown]
# ## Class shares over time

# %%
show.shares(found)

# %% [markdown]
# ## Sizes
#
# The graph of a task is the graph induced by its items: for a link-level task, the links and their end nodes; for a graph-level task, the
# union of the graphs. Edges are counted as the data set lists them. The degree of a node is its number of distinct neighbours in either
# direction. "Edges cut" is the share of edges of a task's nodes that lead out of the task.

# %% tags=["fold"]
show.sizes(found)

# %% [markdown]
# ## Published statistics
#
# Published statistics of the data set and its tasks are compared with our own counts.

# %%
show.published(found)

# %% [markdown]
# ## Degrees
#
# The figure shows the share of nodes whose value is at most the value on the axis.

# %%
show.degrees(found)
