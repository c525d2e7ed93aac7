# %% [markdown]
# # Findings
#
# What the records of a store say beyond single tables: which differences survive order and seed, how rankings change with the protocol,
# what drifts and what is forgotten, and what memory and seconds buy. Every sentence is generated from the numbers below it.

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
# ## Which differences survive order and seed
#
# Within a scenario, methods are compared in pairs over the orders and seeds that they share. A pair that does not differ may differ by less
# than these repetitions can find: the minimum detectable difference says how much that is.

# %%
show_findings.differences(findings)

# %%
show_findings.pairs(findings)

# %% [markdown]
# ## Data sets as the unit
#
# Whether one method beats another in general is a question about data sets. Each gives one value per method, however many orders were run.

# %%
show_findings.means(findings)

# %%
show_findings.datasets(findings)

# %% [markdown]
# ## What the protocol decides
#
# The same methods in the same repetitions under two versions of a protocol, or asked task by task and globally.

# %%
show_findings.rankings(findings)

# %%
show_findings.moved(findings)

# %% [markdown]
# ## Drift or forgetting
#
# Where the graph grows, an old task can lose performance although the model has not changed.

# %%
show_findings.forgetting(findings)

# %% [markdown]
# ## What memory and seconds buy

# %%
show_findings.worth(findings)

# %% [markdown]
# ## Provenance

# %%
show_findings.provenance(findings)
