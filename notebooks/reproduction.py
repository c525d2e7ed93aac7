# %% [markdown]
# # Reproduction ledger
#
# This ledger lists every value in the tables of a paper next to the records that reproduce it here, with the same preset, method, backbone,
# number of repetitions and metric definition. Verdicts are computed from records by the same rule for all rows.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
paper = "BeGin"  # BeGin, CGLB, AGALE, DRIFT or SkeletonCGL
dataset = "Cora"  # its name in the paper or in this suite; empty: all
setting = "task-IL"  # empty: all
method = "Bare"  # its name in the paper or in this suite; empty: all
seeds = 1  # use only the first repetitions of the protocol; 0: all; a whole number at least 0
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
device = ""  # auto, cpu or cuda; empty: $CGLSUITE_DEVICE, else auto
train_missing = True  # train cells missing from the store; `cglsuite reproduce` passes False

# %%
from cglsuite.campaigns.overrides import Overrides
from cglsuite.reports.notebooks import Reproduction
from cglsuite.reports.studies.ledger import claims as show_claims
from cglsuite.reports.studies.ledger import page as show_ledger
from cglsuite.reports.studies.ledger.compute import load_ledger

asked = Reproduction.read(globals())
how = {"overrides": Overrides(device=asked.device or None), "train_missing": asked.train_missing}
ledger = load_ledger(asked.selection, asked.store or None, **how)
show_ledger.overview(ledger)

# %%
show_ledger.grid(ledger.rows)

# %% [markdown]
# ## Claims
#
# The tables of a paper claim that one method beats another. Paired differences cancel the effects that an order has on both methods, so a
# claim can be confirmed or reversed even if single means are undecided. Claims between learners come first. Claims against fine-tuning and
# joint training are listed separately.

# %%
claims = show_claims.claims_of([ledger])
show_claims.overview(claims)

# %%
show_claims.contradicted(claims)

# %%
show_claims.every(claims)

# %% [markdown]
# ## By data set and setting
#
# **Equivalent**: two one-sided tests show that the difference between the two means is within a margin that was fixed in advance.
# **Different**: not equivalent, and Welch's test finds a difference, adjusted over the rows of a table. **Undecided**: neither; a
# non-significant difference is not agreement. **No verdict**: we have too few repetitions. **Published artefact**: the value is known to
# deviate from the protocol of its paper; it is shown but counted separately. **Failed**: the cells were run and gave no result. **Not
# run**: the cells could be run here but have not been run yet. **Not runnable here**: something is missing; the reason says what.

# %%
show_ledger.totals(ledger)

# %% [markdown]
# ## Compared rows
#
# Papers may use the same label for different metrics, so each label is shown with the name of its definition. The smallest margin is the
# smallest one with which a row would be equivalent, which shows how precise these repetitions are. Expand the last column to see the keys
# of the records behind our value; intransigence also uses those of joint training. `ledger.csv` and `ledger.json` list all keys.

# %%
show_ledger.judged(ledger)

# %% [markdown]
# ## Tuning
#
# The best score of n trials grows with n. The table shows how many settings our hyper-parameters were chosen from, next to what the paper
# reports. If a search is in the store, it also shows the expected best validation score of n of its trials.

# %%
show_ledger.trials(ledger)

# %%
show_ledger.best_of_n(ledger)

# %% [markdown]
# ## Offsets
#
# Is a whole table shifted? Rows that share orders, splits and seeds are not independent, so counting how many are higher is not a valid
# test. Instead, orders are resampled jointly for all rows.

# %%
show_ledger.offsets(ledger)

# %% [markdown]
# ## Margins
#
# Would a different margin change the verdicts? The tables compare margins with the gaps between the methods that the paper ranks, and show
# the share of rows that would be equivalent with narrower and wider margins.

# %%
show_ledger.margins(ledger)

# %%
show_ledger.equivalence(ledger)

# %% [markdown]
# ## Running times
#
# The table compares running times divided by that of Bare, from the paper and from our records, and shows the share of the framework in
# them.

# %%
show_ledger.running_times(ledger)

# %% [markdown]
# ## Dataset statistics
#
# Published statistics of these data sets are compared with our own counts on the local data.

# %%
show_ledger.statistics(ledger)

# %% [markdown]
# ## Failed

# %%
show_ledger.failed(ledger)

# %% [markdown]
# ## Not run

# %%
show_ledger.not_run(ledger)

# %% [markdown]
# ## Not runnable here

# %%
show_ledger.not_runnable(ledger)

# %% [markdown]
# ## Provenance

# %%
show_ledger.provenance(ledger)
