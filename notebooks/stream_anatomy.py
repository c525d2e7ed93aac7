# %% [markdown]
# # The anatomy of a stream
#
# What are the tasks made of? Sizes, classes, drift and label homophily of the tasks of a scenario, or of the years, domains or classes of a
# data set, compared with published statistics. Given a campaign, also with each method's score on every task.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
subjects = ["synthetic-csbm/class-il@example-1"]  # scenarios, or data sets without a slash, one or several; not used with a campaign
key = ""  # of a data set: the attribute that groups its items (year, domain, ...) or "class"; empty: the first that it has
orders = [0]  # seeds of orders: tasks of the first are shown, means over tasks are over all
overrides = {}  # of the scenario's switches and its data set, or of the campaign
only = []  # cells to report on, KEY=VALUE as of `cglsuite run --only`; empty: all
campaign = ""  # path of a campaign file: its scenarios are the subjects, and its records give scores
inline = {}  # content of a campaign file, in place of a path
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
device = ""  # auto, cpu or cuda; empty: the campaign's
train_missing = False  # train the campaign's cells missing from the store

# %% [markdown]
# By default a synthetic stream. Others to try, where their data are: `["pcg/task-il@agale-2", "pcg/class-il@agale-2"]`
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
# The mean Jaccard similarity between the label sets of the two ends of an edge, within a task and in the full graph. In task-IL the labels
# of the task count, in class-IL those seen so far.

# %%
show.homophily(found)

# %% [markdown]
# Nodes of several labels lose some of them within a task. AGALE's Theorem 1 says how often an edge keeps its homophily nevertheless.

# %%
show.theorem(found)

# %% tags=["fold"]
show.scores(found)

# %% [markdown]
# ## How the data grow
#
# What BeGin (Ko et al., Figure 2) gives as the reason for continual learning on graphs: from one task or year to the next (a) nodes, (b)
# edges and (c) classes arrive, and (d) the shares of classes change. An edge between two tasks arrives with the later one.

# %%
show.growth(found)

# %% [markdown]
# ## Drift of the mean features
#
# Left, the mean feature vectors of the groups in the plane of their first two principal components. Right, the distance of each mean from
# the first one, in units of the items' spread (the root of their total variance); the line is the distance to expect if items had been
# dealt to groups of these sizes at random. Without features, the shares of nodes by degree (in powers of two) take their place.

# %%
show.drift(found)

# %% [markdown]
# ## Class shares over time

# %%
show.shares(found)

# %% [markdown]
# ## Sizes
#
# The graph of a task is the one that its items induce: a link-level task is its links and their ends, a graph-level task the union of its
# graphs. Edges are counted as the data set lists them. The degree of a node is its number of distinct neighbours in either direction.
# "Edges cut" is the share of the edges of a task's nodes that lead out of the task.

# %% tags=["fold"]
show.sizes(found)

# %% [markdown]
# ## Published statistics
#
# Published statistics of the data set and its tasks, compared with what is counted here.

# %%
show.published(found)

# %% [markdown]
# ## Degrees
#
# The share of nodes whose value is at most the value on the axis.

# %%
show.degrees(found)
