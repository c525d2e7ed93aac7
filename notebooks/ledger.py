# %% [markdown]
# # The ledger of all papers
#
# Every value that five papers print in their tables: which of them can be reached with the data and methods at hand, which were run, what
# came out, and why it differs where it does. Everything is computed from records; nothing is trained.

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
# A paper's tables say that one method beats another. Paired differences cancel what an order does to both methods, so a claim can be
# confirmed or reversed where single means are undecided. Claims between learners come first; those against fine-tuning and joint
# training stand apart.

# %%
show_claims.overview(papers.claims)

# %% tags=["fold"]
show_claims.contradicted(papers.claims)

# %%
show_claims.every(papers.claims)

# %% [markdown]
# ## By table
#
# **Equivalent**, **different** and **undecided** are the verdicts of two tests with a margin that was fixed beforehand; not significant is
# not agreement. A **published artefact** is known to deviate from the paper's own protocol, and counts as none of these.

# %%
show_papers.tables(papers)

# %% [markdown]
# ## Where two papers disagree
#
# Two papers print different values of the same method on the same data in the same setting. One switch is crossed with both protocols: if
# it is the reason, it moves the value under either, and the protocols agree where they share it.

# %%
show_papers.disagreements(papers)

# %% [markdown]
# ## Plan and hours

# %%
show_papers.cells(papers)

# %% [markdown]
# ## Offsets
#
# Is a table off as a whole? Rows share orders, splits and seeds, so these are drawn jointly for all rows.

# %% tags=["fold"]
show_papers.offsets(papers)

# %% [markdown]
# ## Shares within the margin
#
# How much of a table is right, although most of its rows are undecided one by one.

# %%
show_papers.shares(papers)

# %% [markdown]
# ## Margins
#
# Would another margin give other verdicts? Margins beside the gaps between methods that the paper ranks, and the share of rows that would
# be equivalent with narrower and wider ones.

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
# A mechanism is a change of settings under which the printed value is expected. It was named on some orders or data sets, and it counts
# where it holds on others.

# %% tags=["fold"]
show_papers.mechanisms(papers)

# %% [markdown]
# ## All compared values
#
# Folded by paper, data set and setting; `ledger.csv` has all rows with the keys of their records.

# %%
show_papers.compared(papers)

# %% [markdown]
# ## Not run

# %% tags=["fold"]
show_papers.not_run(papers)

# %% [markdown]
# ## What cannot be reached

# %% tags=["fold"]
show_papers.not_runnable(papers)

# %% [markdown]
# ## Provenance

# %%
show_papers.provenance(papers)
