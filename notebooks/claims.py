# %% [markdown]
# # Claims
#
# Which methods a paper's tables separate, and whether the same pairs are separated here. Everything is computed from records; nothing is
# trained.

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
# **Reversed**: our runs separate the two methods the other way round. **Opposite sign**: they lean the other way without separating them.

# %%
show_claims.contradicted(claims)

# %% [markdown]
# ## All claims
#
# Folded by table, data set, setting and metric, claims between learners first. Power is that of a paired t-test with our number of runs,
# at the printed difference and at half of it.

# %%
show_claims.every(claims)
