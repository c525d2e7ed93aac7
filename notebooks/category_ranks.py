# %% [markdown]
# # Ranks by category of method
#
# How do regularization-based, replay-based and parameter-isolation-based methods rank within scenarios? This page recomputes Figure 7 of
# BeGin (Ko et al., ACM TIST 16(1), 2025), first from the paper's tables and then from the records of a campaign. Methods in these
# categories are ranked by their means within each scenario (1 is best). Ranks are then pooled over all scenarios of an incremental setting.
#
# **The p-values in the paper are not valid.** Ranks within a scenario are not independent (if one method moves up, another moves down), and
# neither are the ranks of one method in several scenarios. Welch's test on pooled ranks is shown, together with its error rate, because the
# paper reports it. A valid test must use scenarios as units. To compare individual methods, see the notebook `method_comparison`.

# %% tags=["hide-input"]
import importlib.util
import runpy

if importlib.util.find_spec("cglsuite") is None:  # on Colab, after `!git clone ADDRESS suite`; on Binder everything is installed
    runpy.run_path("suite/binder/install.py", run_name="__main__")

# %% tags=["parameters"]
campaign = ""  # path of a campaign file; empty: the campaign below
inline = {  # content of a campaign file; a small demonstration on synthetic data
    "name": "six-methods-in-two-settings",
    "grid": {
        "scenarios": ["synthetic-csbm/task-il@example-1", "synthetic-csbm/class-il@example-1"],
        "methods": ["bare", "lwf", "ewc", "mas", "er-gnn", "gem"],
    },
    "set": {"dataset.n_nodes": 400, "dataset.n_classes": 6},
    "run": {"device": "cpu"},
}
store = ""  # folder of records; empty: $CGLSUITE_STORE, else .cglsuite in the current folder
overrides = {}  # overrides of the campaign, as in `cglsuite run --set`
only = []  # cells to report on, as KEY=VALUE (see `cglsuite run --only`); empty: all
device = ""  # auto, cpu or cuda; empty: the campaign's
train_missing = True  # train cells missing from the store; `cglsuite run` and `cglsuite report` pass False
metrics = ["average_performance", "forgetting_from_diagonal", "intransigence"]  # names of metric definitions
categories = {}  # methods by category; empty: the categories declared by their plugins
ties = "min"  # rank of tied methods: min (the lowest rank, as in the paper), average or max

# %%
from cglsuite.host import load_catalogue
from cglsuite.reports.notebooks import CategoryRanks
from cglsuite.reports.studies import categories as show_category_ranks
from cglsuite.reports.studies.categories import category_study

asked = CategoryRanks.read(globals())
results = asked.results()
study = category_study(results, load_catalogue(), asked.metrics, asked.categories, ties=asked.ties)
show_category_ranks.overview(study)

# %% [markdown]
# ## BeGin's Figure 7 recomputed from its tables
#
# The ranks are computed from the published means in Tables 4 to 6. Boxes span the quartiles, with a line at the median. Whiskers extend to
# the minimum and maximum, and the vertical mark is the mean. Tied methods share the lowest rank.

# %%
show_category_ranks.begin_boxes()

# %%
show_category_ranks.begin_tests()

# %% [markdown]
# ### Average ranks in the paper's scenarios

# %%
show_category_ranks.begin_averages()

# %% [markdown]
# ### Average ranks at all levels
#
# Ranks are averaged over all scenarios in the tables, separately for each problem level. Ranks are smaller at levels with fewer methods, so
# the column for all levels ranks only methods that are available at every level.

# %%
show_category_ranks.level_averages()

# %% [markdown]
# ## The same for this campaign

# %%
show_category_ranks.boxes(study)

# %%
show_category_ranks.scenario_tests(study)

# %%
show_category_ranks.tests(study)

# %% [markdown]
# ### Average ranks

# %%
show_category_ranks.averages(study)

# %% [markdown]
# ### Compared with the published tables
#
# The table ranks the same methods in the same scenarios, by our means and by the published means.

# %%
show_category_ranks.beside(study)

# %% [markdown]
# ## Cells without a result

# %%
show_category_ranks.problems(study)

# %% [markdown]
# ## Provenance

# %%
show_category_ranks.provenance(study)
