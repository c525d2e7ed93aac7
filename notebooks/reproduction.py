# %% [markdown]
# # Reproduction ledger
#
# Every value printed in a paper's tables, next to the records that reproduce it here: same preset, method, backbone, number of
# repetitions and metric definition. Verdicts are computed from records, with the same rule for all rows.

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
seeds = 1  # use only the protocol's first repetitions; 0: all; a whole number at least 0
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
# A paper's tables say that one method beats another. Paired differences cancel what an order does to both methods, so a claim can be
# confirmed or reversed where single means are undecided. Claims between learners come first; those against fine-tuning and joint
# training stand apart.

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
# **Equivalent**: two one-sided tests put the difference of the two means within a margin that was fixed beforehand. **Different**: not
# equivalent, and Welch's test finds a difference, adjusted over the rows of a table. **Undecided**: neither; not significant is not
# agreement. **No verdict**: too few repetitions here. **Published artefact**: the value is known to deviate from the paper's own protocol;
# it is shown, and counts as none of these. **Failed**: the cells were run and gave no result. **Not run**: the cells could be run here but
# have not been yet. **Not runnable here**: something is missing, and the reason says what.

# %%
show_ledger.totals(ledger)

# %% [markdown]
# ## Compared rows
#
# Two papers may use the same label for different metrics, so each label is shown with the name of its definition. The smallest margin is
# the one with which a row would be equivalent: it says how much these repetitions can show. The last column unfolds to the keys of the
# records behind our value; intransigence also uses those of joint training. `ledger.csv` and `ledger.json` list them in full.

# %%
show_ledger.judged(ledger)

# %% [markdown]
# ## Tuning
#
# The best of n trials grows with n. From how many settings our hyper-parameters were chosen, beside what the paper says of its own, and
# where a search is in the store, the expected best validation score of n of its trials.

# %%
show_ledger.trials(ledger)

# %%
show_ledger.best_of_n(ledger)

# %% [markdown]
# ## Offsets
#
# Is a table off as a whole? Rows that share orders, splits and seeds are not independent, so counting how many are higher is no test.
# Orders are drawn jointly for all rows instead.

# %%
show_ledger.offsets(ledger)

# %% [markdown]
# ## Margins
#
# Would another margin give other verdicts? Margins beside the gaps between methods that the paper ranks, and the share of rows that would
# be equivalent with narrower and wider ones.

# %%
show_ledger.margins(ledger)

# %%
show_ledger.equivalence(ledger)

# %% [markdown]
# ## Running times
#
# Seconds of a method divided by Bare's, and the share of the framework in them: what a paper prints, as ratios, beside our records'.

# %%
show_ledger.running_times(ledger)

# %% [markdown]
# ## Dataset statistics
#
# Published statistics of these data sets compared with our own counts of the data that are here.

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
