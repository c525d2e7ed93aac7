# %% [markdown]
# # Findings
#
# This page summarises all records in a store. It shows which differences between methods are consistent across orders and seeds, how
# rankings change with the protocol, how much of a performance drop is due to graph drift and how much to forgetting, and how much more
# memory and time improve results. Every sentence is generated from the numbers below it.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder

# %%
from cglsuite.reports.notebooks import Findings
from cglsuite.reports.studies.findings import page as show_findings
from cglsuite.reports.studies.findings.compute import load_findings

findings = load_findings(Findings.read(globals()).store or None)
show_findings.overview(findings)

# %%
show_findings.grid(findings)

# %% [markdown]
# ## Which differences hold across orders and seeds
#
# Within a scenario, each pair of methods is compared over the orders and seeds that both share. If no difference is found, the true
# difference may still be too small to detect with this number of repetitions. The minimum detectable difference shows how small it would
# have to be.

# %%
show_findings.differences(findings)

# %%
show_findings.pairs(findings)

# %% [markdown]
# ## Data sets as the unit
#
# To show that one method beats another in general, the unit of the test must be the data set. Each data set contributes one value per
# method, no matter how many orders were run.

# %%
show_findings.means(findings)

# %%
show_findings.datasets(findings)

# %% [markdown]
# ## How much depends on the protocol
#
# This section compares the same methods and repetitions under two versions of a protocol, or with queries grouped by task and global
# queries.

# %%
show_findings.rankings(findings)

# %%
show_findings.moved(findings)

# %% [markdown]
# ## Drift or forgetting
#
# In a growing graph, performance on an old task can drop even if the model does not change.

# %%
show_findings.forgetting(findings)

# %% [markdown]
# ## What more memory and time gain

# %%
show_findings.worth(findings)

# %% [markdown]
# ## Provenance

# %%
show_findings.provenance(findings)
