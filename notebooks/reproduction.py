# %% [markdown]
# # Reproduction ledger
#
# This ledger lists every value in the tables of a paper next to the records that reproduce it, with the same preset, method, backbone,
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
# A claim is a statement, implied by the tables of a paper, that one method beats another. In paired differences, effects of the order that
# are common to both methods cancel out, so a claim can be confirmed or reversed even if the individual means are undecided. Claims about
# two learners come first. Comparisons with fine-tuning and joint training are listed separately.

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
# **Different**: the means are not equivalent, and Welch's test finds a difference after adjustment over the rows of a table. **Undecided**:
# neither; a non-significant difference does not mean agreement. **No verdict**: there are too few repetitions. **Published artefact**: the
# value is known to deviate from the protocol of its paper; it is shown but counted separately. **Failed**: the cells were run but gave no
# result. **Not run**: the cells can be run here but have not been run yet. **Not runnable here**: something is missing, as stated in the
# reason.

# %%
show_ledger.totals(ledger)

# %% [markdown]
# ## Compared rows
#
# Papers may use the same label for different metrics, so each label is shown with the name of its definition. The smallest margin is the
# smallest one for which a row would be equivalent. It shows how precise our results are. Expand the last column to see the keys of the
# records behind our value. For intransigence, these include the records of joint training. `ledger.csv` and `ledger.json` list all keys.

# %%
show_ledger.judged(ledger)

# %% [markdown]
# ## Tuning
#
# The best score of n trials increases with n. The table shows how many settings our hyperparameters were chosen from, next to the number
# that the paper reports. If the store contains a search, the table also shows the expected best validation score of n of its trials.

# %%
show_ledger.trials(ledger)

# %%
show_ledger.best_of_n(ledger)

# %% [markdown]
# ## Offsets
#
# Are the values of a whole table too high or too low? Rows that share orders, splits and seeds are not independent, so it is not a valid
# test to count how many are higher. Instead, orders are resampled jointly for all rows.

# %%
show_ledger.offsets(ledger)

# %% [markdown]
# ## Margins
#
# Would a different margin change the verdicts? The tables compare margins with the gaps between the methods ranked in the paper, and show
# the share of rows that would be equivalent with narrower or wider margins.

# %%
show_ledger.margins(ledger)

# %%
show_ledger.equivalence(ledger)

# %% [markdown]
# ## Running times
#
# The table compares running times relative to Bare, in the paper and in our records, and shows how much of our times is spent in the
# framework.

# %%
show_ledger.running_times(ledger)

# %% [markdown]
# ## Dataset statistics
#
# The table compares published statistics of these data sets with our own counts on the local data.

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
