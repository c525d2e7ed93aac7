"""The link scenarios: the protocols of BeGin and AGALE on the datasets of this package."""

from __future__ import annotations

from typing import Any

from cglsuite import ScenarioSpec
from cglsuite.protocols import agale
from cglsuite.protocols.begin import VERSIONS, link_classification_preset, link_prediction_preset
from cglsuite.protocols.open_world import open_preset

_DEGREES = (
    "Features are in- and out-degrees, counted among the edges of the moment; no label shows in them. In the authors' code they are those "
    "in the whole graph in time-IL too, later links included: an artefact that is not imitated."
)
_PAPER_NOTE = "Links that a training step predicts carry no messages in that step, and links of other domains never do."
_RANDOM_SPLIT = "The authors' split is not available: a new 8 : 1 : 1 split is drawn for every split seed."
#: What a link-prediction preset needs for each dataset, the paper's datasets first.
_PREDICTED: dict[str, dict[str, Any]] = {
    "wiki-cs": {"setting": "domain-il", "key": "domain", "n_tasks": 54, "budget": 4000, "stop_ratio": 1e-3},
    "facebook": {
        "setting": "domain-il",
        "key": "domain",
        "n_tasks": 8,
        "budget": 20_000,
        "negatives": 100_000,
        "node_features": "log-degrees",
    },
    "ogbl-collab": {
        "setting": "time-il",
        "key": "year",
        "n_tasks": 50,
        "budget": 20_000,
        "negatives": 100_000,
        # Years up to 1970 form one step, which gives 50 steps up to 2019.
        "task_bins": tuple(range(1971, 2020)),
    },
    "ask-ubuntu": {"setting": "time-il", "key": "month", "n_tasks": 69, "budget": 2000, "node_features": "log-degrees"},
    "gowalla": {"setting": "time-il", "key": "step", "n_tasks": 10, "hits_k": 100},
    "movielens": {"setting": "time-il", "key": "step", "n_tasks": 10, "hits_k": 100},
    "facebook-7": {
        "dataset": "facebook",
        "dataset_hyperparameters": (("categories", "without-artist"),),
        "setting": "domain-il",
        "key": "domain",
        "n_tasks": 7,
        "budget": 20_000,
        "negatives": 100_000,
        "node_features": "log-degrees",
        "note": f"Without the category artist, which has 59% of the links. {_RANDOM_SPLIT}",
    },
    "math-overflow": {
        "setting": "time-il",
        "key": "month",
        "n_tasks": 78,
        "budget": 2000,
        "node_features": "log-degrees",
        # The first month has only three days, so it joins the second.
        "task_bins": tuple(range(2, 79)),
        "note": f"Stands in for Ask Ubuntu: a site with files of the same format. {_RANDOM_SPLIT}",
    },
    "college-msg": {
        "setting": "time-il",
        "key": "month",
        "n_tasks": 7,
        "budget": 200,
        "node_features": "log-degrees",
        "note": f"Stands in for Ask Ubuntu if that takes too long: seven months of messages. {_RANDOM_SPLIT}",
    },
}


def link_presets() -> list[ScenarioSpec]:
    """Build BeGin's link scenarios, stand-ins for those whose data are hard to obtain, and the same protocol on the embedded links."""
    versions = [preset for version in VERSIONS for preset in _presets(version)]
    return [*versions, *_predicted(paper=True)]


def agale_presets() -> list[ScenarioSpec]:
    """AGALE's protocol for the classes of the embedded links. Those of other datasets are derived from it."""
    return [agale.link_preset("synthetic-signed-links", setting) for setting in ("task-il", "class-il")]


def open_presets() -> list[ScenarioSpec]:
    """Open-world versions of BeGin's class-IL presets on Bitcoin-OTC and the embedded links."""
    parents = ("bitcoin-otc/class-il@begin-2", "synthetic-signed-links/class-il@begin-2")
    return [open_preset(preset) for preset in link_presets() if preset.name in parents]


def _presets(version: int) -> list[ScenarioSpec]:
    """Presets for both kinds of tasks, link classification and link prediction, as in BeGin's code."""
    out = []
    for setting, n_tasks in (("task-il", 3), ("class-il", 3), ("time-il", 7)):
        bitcoin: dict[str, Any] = {"n_tasks": n_tasks, "budget": 500, "node_features": "degrees", "version": version}
        out.append(link_classification_preset("bitcoin-otc", setting, split="official", note=_DEGREES, **bitcoin))
        note = f"{_DEGREES} Not a scenario of the paper; its protocol, with a new 8 : 1 : 1 split for every split seed."
        out.append(link_classification_preset("bitcoin-alpha", setting, note=note, **bitcoin))
        synthetic_tasks = 5 if setting == "time-il" else 3
        out.append(link_classification_preset("synthetic-signed-links", setting, n_tasks=synthetic_tasks, budget=120, version=version))
    return [*out, *_predicted(version=version)]


def _predicted(*, paper: bool = False, version: int = 1) -> list[ScenarioSpec]:
    kind: dict[str, Any] = {"paper": paper, "version": version}
    out = []
    for name, switches in _PREDICTED.items():
        note = switches.get("note", _RANDOM_SPLIT) + (f" {_PAPER_NOTE}" if paper and switches["setting"] == "domain-il" else "")
        out.append(link_prediction_preset(**({"dataset": name, "name": name} | kind | switches | {"note": note})))
    for setting, key, n_tasks in (("time-il", "step", 5), ("domain-il", "domain", 6)):
        out.append(link_prediction_preset("synthetic-temporal-links", setting, key=key, n_tasks=n_tasks, budget=300, negatives=400, **kind))
    return out
