# %% [markdown]
# # Claims
#
# This page lists the pairs of methods that differ significantly in a paper's tables, and shows whether they also differ in our runs.
# Everything is computed from records, without any training.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
paper = ""  # BeGin, CGLB, AGALE, DRIFT or SkeletonCGL; empty: all
dataset = ""  # its name in a paper or in this suite; empty: all
setting = ""  # empty: all
method = ""  # its name in a paper or in this suite; empty: all
seeds = 0  # use only the first repetitions of each protocol; 0: all; a whole number at least 0
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
device = ""  # auto, cpu or cuda; empty: $CGLSUITE_DEVICE, else auto

# %%
from cglsuite.campaigns.overrides import Overrides
from cglsuite.reports.notebooks import Claims
from cglsuite.reports.studies.ledger import claims as show_claims

asked = Claims.read(globals())
claims = show_claims.load_claims(asked.selection, asked.store or None, overrides=Overrides(device=asked.device or None))
show_claims.overview(claims)

# %% [markdown]
# ## Contradicted
#
# **Reversed**: the difference is significant in our runs, but in the opposite direction. **Opposite sign**: the difference has the opposite
# sign in our runs, but is not significant.

# %%
show_claims.contradicted(claims)

# %% [markdown]
# ## All claims
#
# Claims are grouped by table, data set, setting and metric. Expand a group to see its claims. Claims about two learners come first. Power
# is that of a paired t-test with our number of runs, for the published difference and for half of it.

# %%
show_claims.every(claims)
