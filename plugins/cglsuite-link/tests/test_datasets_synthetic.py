"""The embedded links: the groups behind them show where nothing is left to chance, and every machine draws the same bits."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_link.datasets.synthetic import (
    sample_signed_links,
    sample_temporal_links,
    synthetic_signed_links,
    synthetic_temporal_links,
)

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import SpecError, UnknownNameError
from cglsuite.graphs import LinkData

FACTORIES = {"synthetic-temporal-links": synthetic_temporal_links, "synthetic-signed-links": synthetic_signed_links}
SMALL: dict[str, Any] = {"n_nodes": 60, "n_groups": 3, "steps": 4, "links_per_step": 20, "signal": 50.0, "seed": 0}


def data_of(name: str, folder: Path, **parameters: Any) -> LinkData:
    return FACTORIES[name](DataRoot(None, folder, offline=True), **parameters)


def pair_number(low: int, high: int, n_groups: int) -> int:
    """The position of (low, high) among the unordered pairs in lexicographic order."""
    return [(a, b) for a in range(n_groups) for b in range(a, n_groups)].index((low, high))


@pytest.mark.parametrize("name", FACTORIES)
def test_links_are_distinct_and_come_step_by_step(name: str, tmp_path: Path) -> None:
    data = data_of(name, tmp_path)
    assert data.n_items == 3000
    assert data.n_nodes == 600
    pairs = {tuple(sorted(pair)) for pair in data.links.T.tolist()}
    assert len(pairs) == 3000
    assert all(a != b for a, b in pairs)
    assert data.keys["step"].tolist() == [step for step in range(5) for _ in range(600)]


@pytest.mark.parametrize(
    ("name", "links", "features"),
    [("synthetic-temporal-links", 4_279_480_726, 736_043_482), ("synthetic-signed-links", 1_389_540_845, 1_753_222_898)],
)
def test_the_same_bits_on_any_machine(name: str, links: int, features: int, tmp_path: Path) -> None:
    """Results rest on these bits: a change here needs a new dataset name."""
    data = data_of(name, tmp_path)
    assert data.x is not None
    assert (zlib.crc32(data.links.numpy().tobytes()), zlib.crc32(data.x.numpy().tobytes())) == (links, features)


def test_links_stay_inside_communities_that_the_features_show() -> None:
    made = sample_temporal_links(**SMALL, n_communities=2, homophily=1.0, drift=0.0)
    group, community = made["x"][:, :3].argmax(axis=1), made["x"][:, 3:].argmax(axis=1)
    assert (community[made["links"][0]] == community[made["links"][1]]).all()
    assert len(set(group[made["links"]].reshape(-1).tolist())) == 3
    expected = [pair_number(*sorted(group[pair].tolist()), 3) for pair in made["links"].T]
    assert made["key.domain"].tolist() == expected


def test_communities_drift_away_from_the_features() -> None:
    made = sample_temporal_links(**SMALL, n_communities=2, homophily=1.0, drift=0.5)
    community = made["x"][:, 3:].argmax(axis=1)
    inside = community[made["links"][0]] == community[made["links"][1]]
    assert inside[:20].all(), "nobody moves before the first step"
    assert 0.2 < inside[-20:].mean() < 0.8


def test_labels_are_the_groups_of_both_ends() -> None:
    hyperparameters = SMALL | {"homophily": 0.4, "drift": 0.0, "label_noise": 0.0}
    made, signs = sample_signed_links(**hyperparameters, labels="classes"), sample_signed_links(**hyperparameters, labels="sign")
    group = made["x"].argmax(axis=1)
    assert made["y"].tolist() == [pair_number(*sorted(group[pair].tolist()), 3) for pair in made["links"].T]
    assert np.array_equal(made["links"], signs["links"])
    assert signs["y"][:, 0].tolist() == [bool(group[a] != group[b]) for a, b in made["links"].T]
    assert 0.2 < (made["links"][0] < made["links"][1]).mean() < 0.8


def test_noise_changes_labels_and_nothing_else() -> None:
    hyperparameters = SMALL | {"homophily": 0.4, "drift": 0.0, "labels": "classes"}
    plain, noisy = (sample_signed_links(**hyperparameters, label_noise=share) for share in (0.0, 1.0))
    assert np.array_equal(plain["links"], noisy["links"])
    assert np.array_equal(plain["x"], noisy["x"])
    assert 0.1 < (plain["y"] != noisy["y"]).mean() < 0.95


@pytest.mark.parametrize("name", FACTORIES)
def test_another_seed_another_graph(name: str, tmp_path: Path) -> None:
    one, again, other = (data_of(name, tmp_path, seed=seed) for seed in (0, 0, 1))
    assert one.content_hash == again.content_hash != other.content_hash
    assert not torch.equal(one.links, other.links)


@pytest.mark.parametrize("name", FACTORIES)
def test_bad_parameters(name: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=rf"{name}: steps \* links_per_step = 5,000 links, but the nodes have room for only .*\. Use fewer"):
        data_of(name, tmp_path, n_nodes=100, links_per_step=1000)
    with pytest.raises(UnknownNameError, match="homophyly"):
        data_of(name, tmp_path, homophyly=0.5)
    with pytest.raises(SpecError, match="drift"):
        data_of(name, tmp_path, drift=1.5)
