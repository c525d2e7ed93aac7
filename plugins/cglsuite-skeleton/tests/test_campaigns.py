"""The campaign of the skeleton paper's Table 5 searches the grids that the table of published settings has."""

from __future__ import annotations

import csv
import importlib
import json
import tomllib
from pathlib import Path

import pytest

from cglsuite import load_catalogue

CAMPAIGN = Path(__file__).parents[3] / "reports" / "skeleton" / "ucla-search.toml"
#: The paper's name of a hyperparameter to ours.
NAMES = {
    "EWC.memory_strength": "method.lambda",
    "MAS.memory_strength": "method.lambda",
    "TWP.lambda_l": "method.lambda_l",
    "TWP.lambda_t": "method.lambda_t",
    "TWP.beta": "method.beta",
    "LwF.lambda_dist": "method.lambda",
    "LwF.T": "method.temperature",
    "GEM.memory_strength": "method.margin",
    "GEM.frac_memories": "method.fraction",
    "REPLAY.frac_memories": "method.fraction",
}


def published(dataset: str, suffix: str) -> dict[str, dict[str, object]]:
    """Method to hyperparameter to what the paper has for it."""
    table = Path(importlib.import_module("cglsuite.campaigns.reference").__file__ or "").parent / "protocols.csv"
    found: dict[str, dict[str, object]] = {}
    with table.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            name = row["key"].removesuffix(suffix)
            if (row["paper"], row["dataset"]) == ("SkeletonCGL", dataset) and row["key"].endswith(suffix) and name in NAMES:
                found.setdefault(name.partition(".")[0].lower(), {})[NAMES[name]] = json.loads(row["value"])
    return found


def test_grids() -> None:
    with CAMPAIGN.open("rb") as stream:
        grids = tomllib.load(stream)["search"]["methods"]
    assert grids == published("all", "_grid")


@pytest.mark.parametrize(("preset", "dataset"), [("nw-ucla", "UCLA-CIL"), ("ntu-rgbd", "NTU-CIL")])
def test_defaults_are_what_the_paper_chose(preset: str, dataset: str) -> None:
    defaults = load_catalogue().scenario(f"{preset}/class-il@skeleton-2").method_defaults
    chosen = published(dataset, "")
    assert set(chosen) == {"ewc", "mas", "twp", "lwf", "gem", "replay"}
    for method, values in chosen.items():
        assert {name: defaults[method][name] for name in values} == values
