# %% [markdown]
# # The ledger of all papers
#
# This ledger covers every value in the tables of five papers. It shows which values can be reproduced with the available data and methods,
# which were run, what the results are, and why some differ. Everything is computed from records; nothing is trained.

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
# The tables of a paper claim that one method beats another. Paired differences cancel the effects that an order has on both methods, so a
# claim can be confirmed or reversed even if single means are undecided. Claims between learners come first. Claims against fine-tuning and
# joint training are listed separately.

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
# difference is not agreement. A **published artefact** is known to deviate from the protocol of its paper, and is counted separately.

# %%
show_papers.tables(papers)

# %% [markdown]
# ## Where two papers disagree
#
# Two papers report different values for the same method on the same data in the same setting. To test one switch, it is crossed with both
# protocols. If it is the cause, it changes the value under both protocols, and the protocols agree when they use the same switch value.

# %%
show_papers.disagreements(papers)

# %% [markdown]
# ## Plan and hours

# %%
show_papers.cells(papers)

# %% [markdown]
# ## Offsets
#
# Is a whole table shifted? Rows share orders, splits and seeds, so these are resampled jointly for all rows.

# %% tags=["fold"]
show_papers.offsets(papers)

# %% [markdown]
# ## Shares within the margin
#
# This section estimates how much of a table is reproduced, even if most of its single rows are undecided.

# %%
show_papers.shares(papers)

# %% [markdown]
# ## Margins
#
# Would a different margin change the verdicts? The tables compare margins with the gaps between the methods that the paper ranks, and show
# the share of rows that would be equivalent with narrower and wider margins.

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
# A mechanism is a change of settings that is expected to give the published value. It was identified on some orders or data sets, and is
# accepted only if it holds on others.

# %% tags=["fold"]
show_papers.mechanisms(papers)

# %% [markdown]
# ## All compared values
#
# Rows are grouped by paper, data set and setting; expand a group to see them. `ledger.csv` has all rows with the keys of their records.

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
