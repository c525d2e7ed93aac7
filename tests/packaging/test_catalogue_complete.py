"""The catalogue holds what the papers' tables list: the 35 scenarios of BeGin, and those over the seven data sets of CGLB."""

from __future__ import annotations

from typing import Any

import pytest

from cglsuite import load_catalogue
from cglsuite.campaigns.reference import dataset_statistics, names

pytestmark = pytest.mark.plugins

PROTOCOLS = {"BeGin": "begin-1", "CGLB": "cglb-1"}
#: What the catalogue calls the data sets, level by level.
BEGIN = {
    "NC": {"cora", "citeseer", "corafull", "ogbn-arxiv", "ogbn-mag", "ogbn-products", "ogbn-proteins", "twitch"},
    "LC": {"bitcoin-otc"},
    "LP": {"wiki-cs", "facebook", "ogbl-collab", "ask-ubuntu", "gowalla", "movielens"},
    "GC": {"mnist", "cifar10", "aromaticity", "ogbg-molhiv", "ogbg-ppa", "nyc-taxi", "sentiment140"},
    "GR": {"zinc", "aqsol"},
}
CGLB = {"NC": {"corafull", "ogbn-arxiv", "reddit", "ogbn-products"}, "GC": {"aromaticity", "sider", "tox21"}}


def printed(paper: str) -> dict[str, str]:
    """Preset to problem level, for every row of the paper's tables of data sets."""
    table = names()
    here = dict(table.loc[table["kind"] == "dataset", ["printed", "here"]].to_numpy().tolist())
    rows: list[Any] = list(dataset_statistics().query("paper == @paper").itertuples())
    return {f"{here.get(row.dataset, row.dataset.lower())}/{row.setting.lower()}@{PROTOCOLS[paper]}": row.problem for row in rows}


@pytest.fixture(scope="module")
def presets() -> dict[str, Any]:
    """The presets of all installed plugins by name."""
    return {entry.name: entry.spec for entry in load_catalogue(strict=True).entries("scenario")}


@pytest.mark.parametrize(("paper", "datasets", "scenarios", "sets"), [("BeGin", BEGIN, 35, 24), ("CGLB", CGLB, 12, 7)])
def test_every_published_scenario_is_a_preset(
    paper: str, datasets: dict[str, set[str]], scenarios: int, sets: int, presets: dict[str, Any]
) -> None:
    expected = printed(paper)
    assert (len(expected), len({name.partition("/")[0] for name in expected})) == (scenarios, sets)
    found = {level: {name.partition("/")[0] for name, of in expected.items() if of == level} for level in datasets}
    assert found == datasets
    assert sorted(set(expected) - set(presets)) == []
    for name, level in expected.items():
        spec = presets[name]
        assert (spec.level, f"{name.partition('/')[0]}/{spec.setting}") == (level, name.partition("@")[0]), name


def test_every_preset_names_a_dataset_of_its_level(presets: dict[str, Any]) -> None:
    datasets: dict[str, Any] = {entry.name: entry.spec for entry in load_catalogue().entries("dataset")}
    assert [name for name, spec in presets.items() if spec.dataset not in datasets] == []
    assert [name for name, spec in presets.items() if spec.level not in datasets[spec.dataset].levels] == []
