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
# Results under different protocols are not comparable, so each scenario has its own table. ↑ means that higher is better, and ↓ that lower
# is better. Standard deviations are over seeds. A difference between two rows is not necessarily significant; see the tests below.

# %%
summary.summary(results)

# %% [markdown]
# ### Which methods differ
#
# Each difference is the first method minus the second. The test for the design pairs methods by the orders and seeds that they share, or
# accounts for crossed orders and seeds. Welch's test treats methods as if each had been run separately, as is common in papers. Only the
# declared test gives a verdict; the other is shown for comparison. The p-values are adjusted over the pairs of a scenario, but the
# intervals are not. See the notebook `method_comparison` for details.

# %%
show.differences(results, asked.test)

# %% [markdown]
# ### What the metrics mean
#
# Papers use the same label for different metrics, so each label is shown with the full name of the metric.

# %%
summary.definitions(results)

# %% [markdown]
# ## Comparison with published values
#
# Our results are compared with published values for the same data set, setting, method, backbone and metric definition, and only if the
# preset follows the protocol of that paper without changes. Verdicts are computed and depend only on how far apart the two means are.
# Footnotes explain known problems with published values, especially if they do not follow their stated protocol.

# %%
show.published(results)

# %% [markdown]
# ## Task by task
#
# The figures show the average performance on the tasks learnt so far (at the top of the page if there are only one or two scenarios), and
# how much performance has been lost since each task was learnt (positive values mean forgetting). Error bars, or bands if there are many
# tasks, show one standard deviation over records. Task-free streams have no sequence of tasks; see the notebook `task_free_dynamics`.

# %%
show.curves(results, "average_performance") if grid else None

# %%
show.curves(results, "forgetting_from_diagonal")

# %% [markdown]
# ### Excess forgetting
#
# Excess forgetting is AF minus the AF of `frozen-ncm`, whose network is never trained. It excludes the forgetting caused by the growing
# number of competing classes.

# %%
show.curves(results, "excess_forgetting")

# %% [markdown]
# ## Performance matrices
#
# Entries are means over records. The measure (accuracy, average precision or ROC-AUC) is shown above each matrix. The first row is the
# performance before training, when all classes of the stream compete, and each other row is the performance after a task. Columns are
# tasks, and the framed entry is the task that was just learnt. A dash means that a task could not be tested. For task-free streams, rows
# are latent tasks and columns are evaluations. The line below a row spans the steps in which most items of the latent task arrive.

# %%
show.matrices(results)

# %% [markdown]
# ## Cells without a result
#
# These cells are not applicable, have failed, or have not been run.

# %%
show_runs.problems(results)

# %% [markdown]
# ## Hyperparameters

# %%
show_runs.configurations(results)

# %% [markdown]
# ### Searches
#
# The best score of n trials increases with n, so a comparison is unfair if methods had different numbers of trials. The curve shows how
# much each additional trial improved the score.

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
# mean performance on each task right after it was learnt. Forgetting should be interpreted together with it: a method that learns little
# has little to forget.

# %%
show_costs.cost_figures(results)

# %% [markdown]
# ## Provenance
#
# Every number on this page is computed from the records of the campaign's cells. A cell is one run of one method in one scenario with one
# set of seeds.

# %%
show_runs.provenance(results)
