"""A run over a store of one's own and stores that are only read: what is finished there is not run again, and is reported."""

from __future__ import annotations

import json
import os
from pathlib import Path

import fake_cells
import pytest
from campaign_lab import BASE
from other_users import BOB, as_user, group_folder, modes, needs_root

from cglsuite.campaigns.campaign import load_campaign
from cglsuite.campaigns.executors.campaign_run import cell_states, run_campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main


@pytest.fixture
def campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """One of two methods, finished in ``shared``; and one of three, over ``mine``."""
    files = {name: tmp_path / f"{name}.toml" for name in ("shared", "mine")}
    files["shared"].write_text(BASE)
    files["mine"].write_text(BASE.replace('"ewc"]', '"ewc", "joint"]'))
    run_campaign(load_campaign(files["shared"]), fake_cells.FakeCatalogue(), Store(tmp_path / "shared"), progress=False)
    monkeypatch.setattr("cglsuite.host.load_catalogue", lambda **_: fake_cells.FakeCatalogue())
    monkeypatch.chdir(tmp_path)
    return files


def test_only_what_no_store_has_is_run(campaigns: dict[str, Path], log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, ran = modes(Path("shared")), log.read_text()
    words = [str(campaigns["mine"]), "--store", "mine", "--read", "shared"]
    assert main.run(["status", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["totals"] == {"done": 4, "settled": 0, "running": 0, "failed": 0, "missing": 2, "n/a": 0}
    assert main.run(["run", *words, "--no-reports", "-q"]) == 0
    assert len(log.read_text().removeprefix(ran).split()) == 2
    assert "6 done" in capsys.readouterr().err
    assert modes(Path("shared")) == before
    assert len(Store("mine", read=()).keys()) == 2
    assert main.run(["results", *words, "--format", "json"]) == 0
    assert {row["method"] for row in json.loads(capsys.readouterr().out)} == {"bare", "ewc", "joint"}
    assert "CGLSUITE_READ" not in os.environ


def test_a_campaign_names_the_stores_that_it_reads(campaigns: dict[str, Path], log: Path) -> None:
    """Relative to its file, for a run and for whatever plans it."""
    text = campaigns["mine"].read_text()
    campaigns["mine"].write_text(f'{text}[run]\nread = ["shared"]\n')
    ran = log.read_text()
    catalogue, campaign = fake_cells.FakeCatalogue(), load_campaign(campaigns["mine"])
    assert run_campaign(campaign, catalogue, Store("mine"), progress=False).counts == {"done": 6}
    assert len(log.read_text().removeprefix(ran).split()) == 2
    store = Store("mine")
    planned = plan_campaign(campaign, catalogue, store=store)
    assert all(record is not None and record.done for _, record in store.find(p.key for p in planned))


@needs_root
def test_unreadable_records_are_a_state_of_their_own(campaigns: dict[str, Path]) -> None:
    """Neither missing nor failed: the reason says whose they are."""
    with group_folder(0o2775) as path:
        catalogue, campaign = fake_cells.FakeCatalogue(), load_campaign(campaigns["shared"])
        run_campaign(campaign, catalogue, Store(path), progress=False)
        planned = plan_campaign(campaign, catalogue, store=Store(path))
        Store(path).record_path(planned[0].key).chmod(0o600)
        states = as_user(BOB, lambda: [(known.state, known.reason) for known in cell_states(planned, Store(path))])
        assert [state for state, _ in states] == ["unreadable", "done", "done", "done"]
        assert "belongs to root" in states[0][1]
