"""Campaigns that come with the suite: found by name, written once, and runnable by someone who has no data."""

from __future__ import annotations

from pathlib import Path

import pytest

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.campaign import examples, load_campaign, write_example
from cglsuite.host import Catalogue


def test_the_demonstration_is_the_first_and_each_has_the_name_of_its_campaign() -> None:
    known = examples()
    assert next(iter(known)) == "demo"
    assert {name: load_campaign(path).name for name, path in known.items()} == {name: name for name in known}


@pytest.mark.plugins
@pytest.mark.parametrize("name", examples())
def test_an_example_needs_no_data(name: str, suite_catalogue: Catalogue) -> None:
    campaign = load_campaign(examples()[name])
    assert (campaign.data, campaign.plugins) == ([], [])
    assert all(suite_catalogue.dataset(suite_catalogue.scenario(s).dataset).embedded for s in campaign.grid.scenarios)


def test_an_example_is_written_once_and_a_changed_one_is_left_alone(tmp_path: Path) -> None:
    path = write_example("demo", tmp_path)
    assert path == tmp_path / "demo.toml"
    assert path.read_bytes() == examples()["demo"].read_bytes()
    assert write_example("demo", tmp_path) == path
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"demo\.toml already exists and differs from the example: run it with `cglsuite run"):
        write_example("demo", tmp_path)
    assert path.read_text() == "mine"


def test_an_unknown_example_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown example 'dmo'\. Did you mean 'demo'"):
        write_example("dmo", tmp_path)
    assert list(tmp_path.iterdir()) == []
