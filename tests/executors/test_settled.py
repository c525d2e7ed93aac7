"""Divergence is a result: what ended so is kept under its key and arithmetic, and trained again on request only."""

from __future__ import annotations

import json
from pathlib import Path

import fake_cells
import pytest
from campaign_lab import BASE

from cglsuite.campaigns.campaign import Campaign, load_campaign
from cglsuite.campaigns.executors import campaign_run, supervisor
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main

HERE, ELSEWHERE = "a" * 64, "b" * 64
DIVERGING = BASE + '[[override]]\nmatch = { method = "ewc" }\nset = { "method.behave" = "diverge" }\n'
SEARCH = (
    '[search]\nseeds = { init = [7] }\n[search.methods.ewc]\n"method.lambda" = [1.0, 2.0]\n[search.methods.bare]\n"training.lr" = [1e-3]\n'
)


@pytest.fixture(autouse=True)
def arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records name an arithmetic, and this machine's is the same."""
    monkeypatch.setenv("FAKE_ARITHMETIC", HERE)
    monkeypatch.setattr(supervisor, "arithmetic_of_workers", lambda numerics: HERE)


def run(text: str, store: Store, **how: object) -> campaign_run.CampaignOutcome:
    import tomllib

    campaign = Campaign.parse(tomllib.loads(text))
    return campaign_run.run_campaign(campaign, fake_cells.FakeCatalogue(), store, progress=False, **how)  # type: ignore[arg-type]


def trained(log: Path) -> int:
    """How many cells were trained since this was asked last."""
    text = log.read_text()
    log.write_text("")
    return len(text.split())


@pytest.mark.parametrize(("behave", "status"), [("diverge", "diverged"), ("inapplicable", "skipped")])
def test_a_settled_cell_is_not_trained_again(behave: str, status: str, store: Store, log: Path) -> None:
    """The campaign is complete with it; --retry names the status that is tried again."""
    text = DIVERGING.replace("diverge", behave)
    outcome = run(text, store)
    assert (outcome.counts, outcome.complete, trained(log)) == ({status: 2, "done": 2}, True, 4)
    assert run(text, store).counts == {status: 2, "done": 2}
    assert trained(log) == 0
    run(text, store, retry=["skipped" if status == "diverged" else "diverged"])
    assert trained(log) == 0
    run(text, store, retry=[status])
    assert trained(log) == 2


def test_another_arithmetic_may_end_otherwise(store: Store, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(DIVERGING, store)
    trained(log)
    monkeypatch.setattr(supervisor, "arithmetic_of_workers", lambda numerics: ELSEWHERE)
    run(DIVERGING, store)
    assert trained(log) == 2


def test_records_without_an_arithmetic_are_tried_again(store: Store, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of GPUs, and older ones."""
    monkeypatch.delenv("FAKE_ARITHMETIC")
    run(DIVERGING, store)
    monkeypatch.setenv("FAKE_ARITHMETIC", HERE)
    trained(log)
    run(DIVERGING, store)
    assert trained(log) == 2
    run(DIVERGING, store)
    assert trained(log) == 0


@pytest.mark.parametrize("behave", ["raise", "exit"])
def test_failures_of_code_and_machine_are_tried_again(behave: str, store: Store, log: Path) -> None:
    text = DIVERGING.replace("diverge", behave)
    assert not run(text, store).complete
    trained(log)
    run(text, store)
    assert trained(log) == 2


def test_trials_of_searches_are_settled_too(store: Store, log: Path) -> None:
    """A search all of whose trials diverged is not run again; its grid waits for it."""
    outcome = run(DIVERGING + SEARCH, store)
    assert outcome.counts == {"done": 2, "waiting": 2}
    trained(log)
    run(DIVERGING + SEARCH, store)
    assert trained(log) == 0
    run(DIVERGING + SEARCH, store, retry=["diverged"])
    assert trained(log) == 4


def test_where_it_diverged_is_shown(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """By ``run`` and ``status``, which counts settled cells apart; the exit status is 0."""
    monkeypatch.setattr("cglsuite.host.load_catalogue", lambda **_: fake_cells.FakeCatalogue())
    monkeypatch.chdir(tmp_path)
    Path("x.toml").write_text(DIVERGING)
    load_campaign(Path("x.toml"))
    assert main.run(["run", "x.toml", "--store", "s", "-q"]) == 0
    assert "diverged at epoch 12 of task 2: the loss became nan" in capsys.readouterr().err
    assert main.run(["run", "x.toml", "--store", "s", "-q"]) == 0
    said = capsys.readouterr().err
    assert "not tried again: 2 diverged" in said
    assert "diverged at epoch 12 of task 2" in said
    assert "--retry diverged trains them again" in said
    assert main.run(["status", "x.toml", "--store", "s", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["totals"] == {"done": 2, "settled": 2, "running": 0, "failed": 0, "missing": 0, "n/a": 0}
    assert ["diverged at epoch 12 of task 2: the loss became nan"] in [row["reasons"] for row in shown["rows"]]
    trained(log)
    assert main.run(["run", "x.toml", "--store", "s", "-q", "--retry", "diverged"]) == 0
    assert trained(log) == 2
