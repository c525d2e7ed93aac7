# %% [markdown]
# # Campaign report

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
campaign = ""  # path of a campaign file; empty: the campaign below
inline = {  # content of a campaign file; a small demonstration on synthetic data
    "name": "inline-demo",
    "title": "A small demonstration on synthetic data",
    "grid": {"scenarios": ["synthetic-csbm/task-il@example-1", "synthetic-csbm/class-il@example-1"], "methods": ["bare", "joint"]},
    "seeds": {"order": [0, 1], "init": [0, 1]},
    "set": {"dataset.n_nodes": 400, "dataset.n_classes": 6},
    "run": {"device": "cpu"},
}
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
overrides = {}  # overrides of the campaign, as in `cglsuite run --set`
only = []  # cells to report on, as KEY=VALUE (see `cglsuite run --only`); empty: all
device = ""  # auto, cpu or cuda; empty: the campaign's
train_missing = True  # train cells missing from the store; `cglsuite run` and `cglsuite report` pass False
test = "t"  # test for the verdicts: t (paired or quasi-F, depending on the design), wilcoxon, or welch (as if run separately)

# %%
from cglsuite.host import load_catalogue
from cglsuite.reports.notebooks import CampaignReport
from cglsuite.reports.results import costs as show_costs
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results import summary
from cglsuite.reports.site.index import key_results
from cglsuite.reports.studies import campaign as show

asked = CampaignReport.read(globals())
results = asked.results()
show.overview(results, key_results(results, load_catalogue()), asked.test)

# %%
grid = show.grid(results)
grid or show.learning_curves(results)

# %%
show.progress(results, asked.test)

# %% [markdown]
# ## Results
#
# Results under different protocols are not comparable, so each scenario has its own table. ↑ means higher is better, ↓ means lower is
# better. Standard deviations are over seeds. A difference between two rows is not a finding by itself.

# %%
summary.summary(results)

# %% [markdown]
# ### Which methods differ
#
# Each difference is the first method minus the second. The design's test pairs methods by the orders and seeds that they share, or accounts
# for crossed orders and seeds. Welch's test treats methods as if each had been run separately, which is how papers compare them. Only the
# declared test gives a verdict; the other is for comparison. The p-values are adjusted over the pairs of a scenario, the intervals are not.
# See the notebook `method_comparison` for details.

# %%
show.differences(results, asked.test)

# %% [markdown]
# ### What the metrics mean
#
# Papers use the same label for different definitions, so each label is shown with the metric's full name.

# %%
summary.definitions(results)

# %% [markdown]
# ## Comparison with published values
#
# Our results are compared with published values for the same data set, setting, method, backbone and metric definition, and only if the
# preset follows the protocol of that paper without changes. The verdict is computed, and states only how far apart the two means are.
# Footnotes explain known issues of published values, especially where they deviate from their own protocol.

# %%
show.published(results)

# %% [markdown]
# ## Task by task
#
# The figures show average performance over the tasks learnt so far (for one or two scenarios, at the top of the page), and how much of it
# has been lost since each task was learnt (positive = forgetting). Bars, or bands if there are many tasks, show one standard deviation over
# records. Task-free streams have no task sequence: see the notebook task_free_dynamics.

# %%
show.curves(results, "average_performance") if grid else None

# %%
show.curves(results, "forgetting_from_diagonal")

# %% [markdown]
# ### Excess forgetting
#
# Excess forgetting is AF minus the AF of `frozen-ncm`, which never changes a weight. The remaining forgetting is not caused by the growing
# number of competing classes.

# %%
show.curves(results, "excess_forgetting")

# %% [markdown]
# ## Performance matrices
#
# Entries are means over records. The measure (accuracy, average precision, ROC-AUC) is named above each matrix. The first row is before
# training, when all classes of the stream compete; the other rows are after each task. Columns are tasks, and the framed entry is the task
# just learnt. A dash marks a task that could not be tested. For a task-free stream, rows are latent tasks and columns are evaluations. The
# line below a row spans the steps in which most of its items arrive.

# %%
show.matrices(results)

# %% [markdown]
# ## Cells without a result
#
# These cells are not applicable, failed, or have not been run.

# %%
show_runs.problems(results)

# %% [markdown]
# ## Hyper-parameters

# %%
show_runs.configurations(results)

# %% [markdown]
# ### Searches
#
# The best score of n trials grows with n, so a comparison is unfair if methods had different numbers of trials. The curve shows how much
# each additional trial gained.

# %%
show_runs.searches(results)

# %%
show_runs.trials(results)

# %%
show_runs.best_of_n(results)

# %% [markdown]
# ## Time and memory

# %%
show_runs.resources(results)

# %% [markdown]
# The figures plot performance against time in seconds and against the bytes stored in addition to the model. **Learning accuracy** is the
# mean performance on each task right after it was learnt. Read forgetting together with it: a method that learns little has little to
# forget.

# %%
show_costs.cost_figures(results)

# %% [markdown]
# ## Provenance
#
# Every number on this page is computed from the records of the campaign's cells. A cell is one run of one method in one scenario with one
# set of seeds.

# %%
show_runs.provenance(results)
