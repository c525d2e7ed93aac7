# %% [markdown]
# # The ledger of all papers
#
# This ledger covers every value in the tables of five papers. It shows which values can be reproduced with the available data and methods,
# which have been run, what the results are, and why some of them differ. Everything is computed from records, without any training.

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
from cglsuite.reports.notebooks import Ledger
from cglsuite.reports.studies.ledger import claims as show_claims
from cglsuite.reports.studies.papers import page as show_papers
from cglsuite.reports.studies.papers.compute import load_papers

asked = Ledger.read(globals())
papers = load_papers(asked.selection, asked.store or None, overrides=Overrides(device=asked.device or None))
show_papers.overview(papers)

# %%
show_papers.grid(papers)

# %% [markdown]
# ## Claims
#
# A claim is a statement, implied by the tables of a paper, that one method beats another. In paired differences, effects of the order that
# are common to both methods cancel out, so a claim can be confirmed or reversed even if the individual means are undecided. Claims about
# two learners come first. Comparisons with fine-tuning and joint training are listed separately.

# %%
show_claims.overview(papers.claims)

# %% tags=["fold"]
show_claims.contradicted(papers.claims)

# %%
show_claims.every(papers.claims)

# %% [markdown]
# ## By table
#
# **Equivalent**, **different** and **undecided** are the verdicts of two tests with a margin that was fixed in advance. A non-significant
# difference does not mean agreement. A **published artefact** is a value that is known to deviate from the protocol of its paper. It is
# counted separately.

# %%
show_papers.tables(papers)

# %% [markdown]
# ## Where two papers disagree
#
# In these cases, two papers report different values for the same method on the same data in the same setting. To test whether a switch is
# the cause, each of its values is run under both protocols. If it is, changing it changes the result under both protocols, and the
# protocols agree if they use the same value of the switch.

# %%
show_papers.disagreements(papers)

# %% [markdown]
# ## Planned cells and hours

# %%
show_papers.cells(papers)

# %% [markdown]
# ## Offsets
#
# Are the values of a whole table too high or too low? Rows share orders, splits and seeds, so these are resampled jointly for all rows.

# %% tags=["fold"]
show_papers.offsets(papers)

# %% [markdown]
# ## Shares within the margin
#
# This section estimates how much of a table is reproduced, even if most of its individual rows are undecided.

# %%
show_papers.shares(papers)

# %% [markdown]
# ## Margins
#
# Would a different margin change the verdicts? The tables compare margins with the gaps between the methods ranked in the paper, and show
# the share of rows that would be equivalent with narrower or wider margins.

# %% tags=["fold"]
show_papers.margins(papers)

# %%
show_papers.equivalence(papers)

# %% [markdown]
# ## Values that differ

# %% tags=["fold"]
show_papers.missed(papers)

# %% [markdown]
# ## Mechanisms
#
# A mechanism is a change of settings that is expected to reproduce the published value. It is hypothesised on some orders or data sets, and
# accepted only if it is confirmed on others.

# %% tags=["fold"]
show_papers.mechanisms(papers)

# %% [markdown]
# ## All compared values
#
# Rows are grouped by paper, data set and setting. Expand a group to see its rows. `ledger.csv` contains all rows with the keys of their
# records.

# %%
show_papers.compared(papers)

# %% [markdown]
# ## Not run

# %% tags=["fold"]
show_papers.not_run(papers)

# %% [markdown]
# ## What cannot be reproduced here

# %% tags=["fold"]
show_papers.not_runnable(papers)

# %% [markdown]
# ## Provenance

# %%
show_papers.provenance(papers)
