# %% [markdown]
# # Explore
#
# Run a few methods on one scenario and see what they learn and forget. You can change the parameters and run the notebook again. Cells that
# have already been trained are loaded from the store.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
scenario = "synthetic-csbm/class-il@example-1"  # with data: the part after the slash is enough
methods = ["bare", "er-gnn", "joint"]  # names, one or several
data = ""  # your own data file (npz, CSV folder, saved PyG Data); empty: the data set of the scenario
backbone = ""  # empty: the scenario's own
overrides = {"dataset.n_nodes": 400, "dataset.n_classes": 6}  # overrides of the preset, its data set and the methods
orders = 2  # number of task orders to run; a whole number at least 1 and at most 1000
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder

# %% [markdown]
# ## A study
#
# `overrides` changes settings of the scenario's preset. If a name occurs in only one section, you can use it on its own; otherwise, use a
# dotted name (`training.lr`, `method.lambda`). `cgl.load_catalogue().methods["ewc"]` lists the hyperparameters of a method. In JupyterLab
# with `cglsuite[jupyter]`, you can select the scenario, methods and seeds below. Elsewhere, the figures are static.
#
# Performance is measured as defined by the scenario. The first row of a matrix is the performance before training, and each other row is
# the performance after a task. Columns are tasks. The framed entry is the task that was just learnt, and the entries below it show how much
# of it is retained. `study.compare()` tests the differences between methods, and `study.report("out")` renders a full report.

# %%
import cglsuite as cgl
from cglsuite.reports.notebooks import Explore

asked = Explore.read(globals())
how = {name: getattr(asked, name) or None for name in ("data", "backbone", "store")}
explorer = cgl.explore(asked.scenario, asked.methods, orders=asked.orders, overrides=asked.overrides, **how)
explorer

# %% [markdown]
# ## The numbers
#
# `explorer.study` is the study that is currently shown above. `study.figure("curves").savefig("curves.pdf")` saves a figure for a paper,
# and `study.long` is a table with the performance on each task.

# %%
study = explorer.study
study

# %%
study.plot()

# %%
explorer.frame

# %% [markdown]
# ## What is installed
#
# `catalogue.methods`, `catalogue.scenarios` and `catalogue.backbones` list everything that is available.

# %%
catalogue = cgl.load_catalogue()
catalogue
