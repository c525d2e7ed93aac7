"""Two campaigns or stores compared: settings that differ, cells of one side only, and paired differences of means."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_cells
import numpy as np
import pytest
from campaign_lab import BASE
from scipy import stats

from cglsuite.campaigns.campaign import load_campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main

A = BASE + "[seeds]\norder = [0, 1, 2, 3]\ninit = [0, 1, 2, 3]\n"
B = A.replace('"ewc"', '"joint"').replace("3]", "3, 4]") + '[set]\n"training.lr" = 2e-3\n'


def filled(path: Path, text: str, store: str, shift: Callable[[int], float]) -> None:
    """The records of a campaign whose average performance is shifted by its order."""
    path.write_text(text)
    for planned in plan_campaign(load_campaign(path), fake_cells.FakeCatalogue()):
        order = planned.request.seeds.order
        one = fake_cells.make_record(planned.cell, metrics={"average_performance": 0.5 + shift(order), "intransigence": None})
        Store(store).put(one)


@pytest.fixture
def diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setattr("cglsuite.host.load_catalogue", lambda **_: fake_cells.FakeCatalogue())
    monkeypatch.chdir(tmp_path)
    filled(Path("a.toml"), A, "s", lambda order: 0.01 * order)
    filled(Path("b.toml"), B, "s", lambda order: 0.01 * order + 0.1 + 0.001 * (order % 2))
    filled(Path("b.toml"), B, "t", lambda order: 0.01 * order + 0.1 + 0.001 * (order % 2))

    def call(*words: str) -> tuple[int, str, str]:
        return main.run(["diff", *words]), *capsys.readouterr()

    return call


def found(diff: Callable[..., tuple[int, str, str]], *words: str) -> dict[str, Any]:
    status, out, err = diff(*words, "--json")
    assert status == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_two_campaigns_are_compared(diff: Callable[..., tuple[int, str, str]]) -> None:
    """Settings by group, cells by label, and the paired t interval of SciPy."""
    answer = found(diff, "a.toml", "b.toml", "--store", "s")
    assert answer["both"] == 8
    assert {(s["name"], s["a"], s["b"], s["method"]) for s in answer["settings"]} == {
        (name, 1e-3, 2e-3, "bare")
        for name in ("training.lr", "backbone._lr")  # as fake cells tell it
    }
    assert len(answer["only_a"]) == 8
    assert all("ewc" in label for label in answer["only_a"])
    assert len(answer["only_b"]) == 10 + 2
    assert {(m["scenario"], m["method"], m["n"], m["metric"]) for m in answer["means"]} == {
        (f"toy/{setting}@begin-1", "bare", 4, "average_performance") for setting in ("task-il", "class-il")
    }
    order = np.arange(4)
    expected = stats.ttest_rel(0.5 + 0.01 * order, 0.6 + 0.01 * order + 0.001 * (order % 2))
    low, high = expected.confidence_interval(0.95)
    for mean in answer["means"]:
        assert mean["estimate"] == pytest.approx(-0.1005)
        assert (mean["low"], mean["high"]) == pytest.approx((low, high))
    status, text, _ = diff("a.toml", "b.toml", "--store", "s")
    assert status == 0
    assert "8 cells in both, 8 in A only, 12 in B only" in text
    assert "-0.1005 [" in text


def test_a_store_and_a_campaign_of_another(diff: Callable[..., tuple[int, str, str]]) -> None:
    """Equal results are said to be; a store alone may hold two settings of one method, which are then axes."""
    answer = found(diff, "b.toml", "t", "--store", "s")
    assert (answer["both"], answer["only_a"], answer["only_b"], answer["settings"]) == (20, [], [], [])
    assert {(m["n"], m["equal"], m["why"]) for m in answer["means"]} == {(5, 5, "equal in all pairs")}
    answer = found(diff, "s", "t")
    assert (answer["both"], len(answer["only_a"]), answer["only_b"]) == (20, 16, [])


def test_one_pair_has_no_interval(diff: Callable[..., tuple[int, str, str]]) -> None:
    Path("one.toml").write_text(BASE)
    answer = found(diff, "one.toml", "b.toml", "--store", "s")
    mean = answer["means"][0]
    assert (mean["n"], mean["low"]) == (1, None)
    assert mean["why"]
    assert not math.isnan(mean["estimate"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("a.toml", "nowhere"), "expected a campaign"),
        (("a.toml", "b.toml", "--store", "s", "--metric", "average_perfromance"), "Did you mean 'average_performance'?"),
    ],
)
def test_wrong_requests(diff: Callable[..., tuple[int, str, str]], words: tuple[str, ...], says: str) -> None:
    status, out, err = diff(*words)
    assert (status, out) == (2, "")
    assert says in err
