"""Running campaigns: the search first, then the grid with what it chose, and only what is missing."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_cells
import pytest

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.executors import CampaignOutcome, LocalExecutor, RunOptions, run_campaign
from cglsuite.campaigns.executors.campaign_run import find_executor
from cglsuite.campaigns.overrides import Overrides
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.storage.store import Store

CATALOGUE: Any = fake_cells.FakeCatalogue()
TEXT = """
name = "x"
[grid]
scenarios = ["toy/task-il@begin-1", "toy/class-il@begin-1"]
methods = ["bare", "packnet"]
[seeds]
init = [0, 1, 2]
"""
SEARCH = '[search]\nseeds = { init = [0, 1] }\ngrid = { "training.lr" = [1e-3, 5e-3] }\n'


class InProcess:
    """An executor without processes that remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.options: list[RunOptions] = []

    def run(self, cells: Sequence[PlannedCell], store: Store, options: RunOptions) -> int:
        """Run what is missing, here."""
        missing = {p.key: p for p in cells if p.ready and store.cached(p.key) is None}
        self.calls.append((options.label, len(missing)))
        self.options.append(options)
        for planned in missing.values():
            store.put(fake_cells.run_cell(planned.cell, CATALOGUE, store))  # type: ignore[arg-type]
        return 0


def run(store: Store, text: str = TEXT, **more: Any) -> tuple[CampaignOutcome, InProcess]:
    executor = InProcess()
    campaign = Campaign.parse(tomllib.loads(text))
    return run_campaign(campaign, CATALOGUE, store, executor=executor, **more), executor


def test_missing_cells_are_run_and_counted(store: Store) -> None:
    """N/A is part of the outcome; a second run has nothing to do."""
    outcome, executor = run(store)
    assert outcome.counts == {"done": 9, "n/a": 3}
    assert outcome.complete
    assert not outcome.all_not_applicable
    assert executor.calls == [("x", 9)]
    assert run(store)[1].calls == [("x", 0)]


def test_the_search_comes_first_and_its_choice_is_used(store: Store) -> None:
    """Its cells on its seeds, then the grid's; what both have in common is run once."""
    outcome, executor = run(store, TEXT + SEARCH)
    assert executor.calls == [("x search", 12), ("x", 3)]
    assert outcome.complete
    assert len(list((store.path / "searches").iterdir())) == 3
    done = [store.get(p.key) for p, state in outcome.states if state == "done"]
    assert {r.cell["configuration"]["training.lr"] for r in done if r} == {5e-3}
    again, executor = run(store, TEXT + SEARCH)
    assert executor.calls == [("x search", 0), ("x", 0)]
    assert again.counts == outcome.counts


def test_only_narrows_search_and_grid(store: Store) -> None:
    """A filter on seeds does not narrow the search."""
    outcome, executor = run(store, TEXT + SEARCH, only=["method=bare", "scenario=*task*", "init_seed=2"])
    assert executor.calls == [("x search", 4), ("x", 1)]
    assert len(outcome.states) == 1
    with pytest.raises(UsageError, match="no cell matches --only method=er"):
        run(store, only=["method=er"])


def test_a_search_without_a_choice_leaves_its_cells_waiting(store: Store) -> None:
    """Said in the outcome, which is not complete."""
    outcome, _ = run(store, TEXT + SEARCH + '[set]\n"method.behave" = "diverge"\n')
    assert outcome.counts == {"n/a": 3, "waiting": 9}
    assert not outcome.complete
    assert {p.reason for p, state in outcome.states if state == "waiting"} == {"no candidate of its search finished on every seed"}


def test_failed_and_running_cells_are_not_complete(store: Store) -> None:
    """States of one campaign side by side."""
    outcome, _ = run(store, TEXT + '[[override]]\nmatch = { scenario = "*task*", method = "bare" }\nset = { "method.behave" = "diverge" }')
    assert outcome.counts == {"diverged": 3, "done": 6, "n/a": 3}
    assert not outcome.complete


def test_nothing_but_not_applicable(store: Store) -> None:
    """Its own exit status on the command line."""
    outcome, _ = run(store, TEXT.replace('"bare", ', "").replace('"toy/task-il@begin-1", ', ""))
    assert outcome.all_not_applicable


def test_how_to_run_comes_from_overrides_then_campaign(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers and the time limit."""
    text = TEXT + "[run]\nworkers = 3\ntimeout_s = 7\n"
    assert (run(store, text)[1].options[0].workers, run(store, text)[1].options[0].limits.timeout_s) == (3, 7)
    monkeypatch.setenv("CGLSUITE_WORKERS", "5")
    assert run(store, text)[1].options[0].workers == 5


def test_the_interval_of_checkpoints_comes_from_the_command_then_the_environment_then_the_campaign(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 is a value like any other; where nobody says anything, the worker's environment counts."""

    def interval(text: str, **given: Any) -> float | None:
        return run(store, text, overrides=Overrides(**given))[1].options[0].limits.checkpoint_every_s

    said = TEXT + "[run]\ncheckpoint_every_s = 7\n"
    monkeypatch.delenv("CGLSUITE_CHECKPOINT_EVERY", raising=False)
    assert interval(TEXT) is None
    assert interval(said) == 7
    assert interval(said, checkpoint_every_s=0.0) == 0
    monkeypatch.setenv("CGLSUITE_CHECKPOINT_EVERY", "0")
    assert interval(TEXT) == 0
    assert interval(said) == 0
    assert interval(said, checkpoint_every_s=3.0) == 3


def test_the_local_executor_is_found_through_its_plugin(log: Path) -> None:
    """Like any other executor."""
    from cglsuite.campaigns.executors.plugin import cglsuite_executors

    (spec,) = cglsuite_executors()
    assert spec.name == "local"
    assert isinstance(find_executor(CATALOGUE, "local"), LocalExecutor)
    with pytest.raises(UsageError, match="unknown executor 'slurm'"):
        find_executor(CATALOGUE, "slurm")
