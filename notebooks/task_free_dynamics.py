# %% [markdown]
# # Stream dynamics
#
# In task-free streams, items of latent tasks arrive once, in mixed batches, without task boundaries. What do the streams contain, and how
# do methods cope with them? Streams are regenerated from their scenario and seeds. All results are computed from the records of cells.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
campaign = ""  # path of a campaign file; empty: the campaign below
also = []  # more campaigns to pool, as files next to it or as content
inline = {  # content of a campaign file; a small demonstration on synthetic data
    "name": "inline-streams",
    "title": "Overlapping latent tasks on synthetic data",
    "grid": {"scenarios": ["synthetic-csbm/gaussian@drift-honest-1"], "methods": ["bare", "er", "joint"]},
    "seeds": {"order": [0, 1, 2], "init": [0, 1, 2]},
    "set": {"dataset.n_nodes": 800, "dataset.n_classes": 10, "backbone.width": 32, "stream.evaluate_every": 4, "schedule.sigma": 4.0},
    "run": {"device": "cpu"},
}
vary = {"schedule.sigma": [1.0, 2.0, 3.0, 16.0], "training.batch_size": [5, 20], "stream.draw": ["with-replacement"]}  # values to sweep
threshold = 0.9  # a latent task with at least this share dominates a step; a number above 0 and at most 1
targets = {"overlap": [0.25, 0.5, 0.75], "entropy": [0.2, 0.4]}  # target values for which to solve for a schedule setting
knob = ""  # schedule setting to solve for; empty: its first numeric setting
deal = True  # regenerate the streams; needs the data
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
overrides = {}  # overrides of the campaign, as in `cglsuite run --set`
only = []  # cells to report on, as KEY=VALUE (see `cglsuite run --only`); empty: all
device = ""  # auto, cpu or cuda; empty: the campaign's
train_missing = True  # train cells missing from the store; `cglsuite run` and `cglsuite report` pass False

# %%
from cglsuite.host import load_catalogue
from cglsuite.reports.notebooks import TaskFreeDynamics
from cglsuite.reports.site.index import key_results
from cglsuite.reports.studies import campaign as show
from cglsuite.reports.studies.sweep import sweep
from cglsuite.reports.studies.task_free import page as task_free_page
from cglsuite.reports.studies.task_free.compute import STREAM_AXES, campaigns_per_axis, task_free_study

asked = TaskFreeDynamics.read(globals())
results = asked.pooled(asked.also or ([] if asked.campaign else campaigns_per_axis(asked.inline, asked.vary)))
study = task_free_study(results, threshold=asked.threshold, deal=asked.deal)
task_free_page.overview(study, key_results(study.pooled, load_catalogue()))

# %% [markdown]
# ## The streams
#
# A schedule sets the share α of each latent task in every step. The numbers of items are rounded by the largest remainder method, and items
# are drawn without replacement from shuffled decks, or independently. A stream depends only on the scenario and its seeds, never on the
# method. The line just below the first panel marks the steps without a dominant latent task.

# %%
task_free_page.streams(study)

# %%
task_free_page.schedules(study)

# %% [markdown]
# ### Exposure
#
# A single pass does not show every item exactly once: if the number of places that a schedule gives to a latent task differs from its
# number of items, some items are drawn more than once or not at all.

# %%
task_free_page.exposure(study)

# %% [markdown]
# ### Settings for a target overlap or entropy
#
# The table shows the settings that give a target overlap index or mixing entropy. They are found by bisection on the schedule, for the
# latent tasks and the batch size of each stream.

# %%
task_free_page.solved(study, asked.targets, asked.knob)

# %% [markdown]
# ## Accuracy over the stream
#
# The curves show the mean over all latent tasks at every evaluation, from before the first step to after the last. Latent tasks that have
# not arrived yet are included, so a curve can rise as long as new tasks arrive. Upper bounds learn all data before the first evaluation. If
# only the classes shown so far compete (`mask = seen`), upper bounds cannot predict the other classes either. At the first evaluation, no
# class has been shown and all classes compete. The ribbon above each figure shows the mixture prescribed by the schedule.

# %%
task_free_page.performance(study)

# %% [markdown]
# ### Individual latent tasks
#
# Rows are latent tasks, and columns are evaluations, starting with the untrained model. The line below a row spans the steps in which the
# middle 90% of its items arrive. Dark entries to the right of the line show forgetting.

# %%
task_free_page.courses(study)

# %% [markdown]
# ### Drops and recoveries

# %%
task_free_page.recoveries(study)

# %% [markdown]
# ## Metrics
#
# There is one table per stream. Chance level and difficulty differ between streams, so absolute values are not comparable across them.

# %%
task_free_page.summary(study)

# %% [markdown]
# ## Comparison with published values
#
# Our results are compared with published values for the same preset, method and metric. Streams on other data sets have no published
# values.

# %%
show.published(study.pooled)

# %% [markdown]
# ## A_AUC and overlap
#
# These streams differ only in their schedules. The more the latent tasks overlap, the closer a stream is to shuffled data.

# %%
task_free_page.overlap(study, "a_auc")

# %% [markdown]
# ## Effects of stream and schedule settings
#
# There is one figure for each setting that varies (σ, the batch size, draws with or without replacement), with the others fixed. It shows
# A_AUC over the whole stream, and AA and AF_s at its end.

# %%
along = sweep(results, varying=STREAM_AXES)
task_free_page.sweeps(along, "a_auc")

# %%
task_free_page.sweeps(along, "aa")

# %%
task_free_page.sweeps(along, "af")

# %% [markdown]
# ### Batches of several sizes
#
# σ and windows are measured in batches. With larger batches, latent tasks therefore overlap more and there are fewer steps.

# %%
task_free_page.contrast(along, "training.batch_size")

# %% [markdown]
# ## What is missing

# %%
task_free_page.problems(study)

# %% [markdown]
# ## Provenance

# %%
task_free_page.provenance(study)
