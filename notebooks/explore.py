# %% [markdown]
# # Explore
#
# Run a few methods on one scenario, and see what they learnt and forgot. Change the parameters and run the notebook again; cells that have
# already been trained are read from the store.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
scenario = "synthetic-csbm/class-il@example-1"  # with data: the part after the slash is enough
methods = ["bare", "er-gnn", "joint"]  # names, one or several
data = ""  # a data file of your own (npz, CSV folder, saved PyG Data); empty: the scenario's data set
backbone = ""  # empty: the scenario's own
overrides = {"dataset.n_nodes": 400, "dataset.n_classes": 6}  # of the scenario's preset, its data set and the methods
orders = 2  # how many orders of the tasks are run; a whole number at least 1 and at most 1000
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder

# %% [markdown]
# ## A study
#
# `overrides` change the scenario's preset. Use a bare name if only one section has it, otherwise a dotted one (`training.lr`,
# `method.lambda`). `cgl.load_catalogue().methods["ewc"]` lists a method's hyper-parameters. In JupyterLab with `cglsuite[jupyter]` the
# scenario, the methods and the seeds can be chosen below; elsewhere the figures are shown as they are.
#
# Performance is in the scenario's own measure. Rows of a matrix are moments (before training, then after each task); columns are tasks.
# The framed entry is the task just learnt; the entries below it in its column show how much of it is left later on. `study.compare()`
# tests differences between methods, `study.report("out")` renders a full report.

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
# `explorer.study` is the study that is shown above, also after another choice there. `study.figure("curves").savefig("curves.pdf")` writes
# a figure for a paper, `study.long` is a table of performance by task.

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
# `catalogue.methods`, `catalogue.scenarios` and `catalogue.backbones` list the entries of a kind.

# %%
catalogue = cgl.load_catalogue()
catalogue
