"""What executors are told: checked by what they declare before anything is launched; and the device of cells that run elsewhere."""

from __future__ import annotations

import sys
import tomllib
from typing import Any

import fake_cells
import pytest

from cglsuite import ExecutorSpec, Hyperparameter
from cglsuite.base.errors import SpecError, UnknownNameError, UsageError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.executors import LocalExecutor, RemoteExecutor, RunOptions, run_campaign
from cglsuite.campaigns.executors.campaign_run import find_executor
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells import device
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, Entry, PluginRecord

TEXT = """
name = "x"
[grid]
scenarios = ["toy/task-il@begin-1"]
methods = ["bare"]
"""
GRID = ExecutorSpec(
    name="grid",
    summary="a cluster",
    factory="recorded_launcher:Recorded",
    remote=True,
    options=(
        Hyperparameter(name="hours", default=2.0, doc="the time", above=0),
        Hyperparameter(name="queue", default="", doc="a queue"),
        Hyperparameter(name="extra", default="", doc="further words"),
    ),
    several=("extra",),
)


class Recorded:
    """A launcher that is never asked to launch."""

    parts = 1

    def __init__(self, **settings: Any) -> None:
        self.settings = settings


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "recorded_launcher", sys.modules[__name__])


RECORD = PluginRecord(distribution="fake", version="1", entry_point="fake", module=__name__, status="ok")
SPECS = [*(spec for specs in fake_cells.SPECS.values() for spec in specs), GRID]
CATALOGUE = Catalogue([RECORD], [Entry(kind=spec.kind, name=spec.name, spec=spec, record=RECORD) for spec in SPECS])


def campaign(run: str = "") -> Campaign:
    return Campaign.parse(tomllib.loads(TEXT + run))


def launcher(settings: dict[str, Any]) -> Any:
    executor = find_executor(CATALOGUE, "grid", settings)
    assert isinstance(executor, RemoteExecutor)
    return executor.launcher


def test_defaults_values_and_lists() -> None:
    assert launcher({}).settings == {"hours": 2.0, "queue": "", "extra": ()}
    assert launcher({"hours": "3", "extra": "one"}).settings == {"hours": 3.0, "queue": "", "extra": ("one",)}
    assert launcher({"extra": ["--a=b", "-c"]}).settings["extra"] == ("--a=b", "-c")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"hour": 3}, r"unknown option in \[run\.grid\]: 'hour'. Did you mean 'hours'"),
        ({"hours": 0}, r"run\.grid\.hours = 0: expected .* \(the time\)"),
        ({"queue": 3}, r"run\.grid\.queue = 3"),
        ({"extra": 3}, r"run\.grid\.extra = 3: expected a list"),
        ({"extra": [3]}, r"run\.grid\.extra = 3"),
    ],
)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises((SpecError, UnknownNameError), match=says):
        find_executor(CATALOGUE, "grid", settings)
    with pytest.raises(UsageError, match="unknown option"):
        find_executor(CATALOGUE, "local", {"hours": 3})


def test_tables_of_run_are_executors_and_other_unknown_keys_are_not() -> None:
    found = campaign('[run]\nexecutor = "grid"\n[run.grid]\nqueue = "long"\n[run.other]\nx = 1\n')
    assert found.run.executors == {"grid": {"queue": "long"}, "other": {"x": 1}}
    with pytest.raises(UsageError, match=r"run\.wrkers: unknown key\. Did you mean 'workers'"):
        campaign("[run]\nwrkers = 3\n")
    with pytest.raises(UsageError, match="executors: unknown key"):
        campaign("[run.executors.grid]\nqueue = 3\n")


def test_the_command_line_goes_over_the_campaign(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    message: list[Any] = []
    monkeypatch.setattr(RemoteExecutor, "run", lambda self, cells, store, options: message.append((self.launcher.settings, options)) or 0)
    text = '[run]\ndevice = "cpu"\n[run.grid]\nqueue = "long"\nhours = 1\n'
    forced = Overrides(executor="grid", run={"grid.hours": "4"}, workers=3)
    run_campaign(campaign(text), CATALOGUE, Store(tmp_path), forced, detach=True)
    (settings, options) = message[0]
    assert settings == {"hours": 4.0, "queue": "long", "extra": ()}
    assert (options.workers, options.detach) == (3, True)
    with pytest.raises(UsageError, match=r"--set run\.grid\.hours: the cells are run by the executor 'local'"):
        run_campaign(campaign(text), CATALOGUE, Store(tmp_path), Overrides(run={"grid.hours": 1}))


def test_cuda_is_planned_where_there_is_none_and_auto_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A login node has no GPU, and what it has is no matter; but the device is in every key."""

    def asked() -> bool:
        raise AssertionError("the submitting host was asked for CUDA")

    monkeypatch.setattr(device, "has_cuda", asked)
    text = '[run]\nexecutor = "grid"\n'
    for word in ("cuda", "cpu"):
        (planned,) = plan_campaign(campaign(text), CATALOGUE, Overrides(device=word))
        assert planned.request.device == word
    with pytest.raises(
        UsageError, match=r"device auto cannot be used with executor grid: the device is part of every key.* set cpu or cuda"
    ):
        plan_campaign(campaign(text), CATALOGUE)
    with pytest.raises(UsageError, match="device auto cannot be used with executor grid"):
        plan_campaign(campaign(), CATALOGUE, Overrides(executor="grid"))


def test_cells_for_cuda_do_not_run_where_there_is_none(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_DRIVERS", ())
    monkeypatch.setattr(device, "_without_cuda", device._without_cuda.__wrapped__)
    cells = plan_campaign(campaign(), CATALOGUE, Overrides(device="cuda"))
    with pytest.raises(UsageError, match="device cuda: torch finds no CUDA device here"):
        LocalExecutor().run(cells, Store(tmp_path), RunOptions(catalogue=CATALOGUE, progress=False))


def test_workers_are_spread_over_the_gpus_of_a_machine(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """``workers`` per GPU, each of which sees one of them; names are passed on as they were given."""
    from cglsuite.campaigns.executors import node, supervisor
    from cglsuite.campaigns.executors.progress import CellProgress

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, GPU-abc")
    assert node.visible_gpus() == ["2", "GPU-abc"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert node.visible_gpus() == []
    made: list[tuple[int, int, str]] = []

    def worker(plan: Any, store: Any, index: int, place: int, of: int, environment: dict[str, str]) -> Any:
        made.append((place, of, environment["CUDA_VISIBLE_DEVICES"]))

    monkeypatch.setattr(supervisor, "WorkerProcess", worker)
    cells = plan_campaign(campaign("[seeds]\ninit = [0, 1, 2, 3, 4]\n"), CATALOGUE, Overrides(device="cuda"))
    options = RunOptions(catalogue=CATALOGUE, progress=False, workers=2)
    share = supervisor.Share(plan=tmp_path / "plan.json", index=1, of=3, gpus=("2", "GPU-abc"))
    own = supervisor.Supervisor({p.key: p for p in cells}, Store(tmp_path), options, CellProgress(5, "x", False), {}, share)
    for index in range(own.size):
        own._worker(index, "native")
    assert made == [(4, 12, "2"), (5, 12, "GPU-abc"), (6, 12, "2"), (7, 12, "GPU-abc")]
