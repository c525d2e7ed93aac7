"""Campaign files: what they span, what goes over what, and what their errors say."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from campaign_lab import BASE, campaign, plan

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.campaigns.campaign import Campaign, load_campaign
from cglsuite.campaigns.search import Range
from cglsuite.cells import device
from cglsuite.cells.plan import CellRequest, PlanFile
from cglsuite.specs import Seeds


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        ("", [(0, 0, 0)]),
        ("order = [0, 1, 2]\nsplit = [7]\ninit = [4, 5, 6]", [(0, 7, 4), (1, 7, 5), (2, 7, 6)]),
        ("init = [1, 2]", [(0, 0, 1), (0, 0, 2)]),
        ('design = "cross"\norder = [0, 1]\ninit = [5, 6]', [(0, 0, 5), (0, 0, 6), (1, 0, 5), (1, 0, 6)]),
    ],
)
def test_seeds_are_zipped_or_crossed(seeds: str, expected: list[tuple[int, int, int]]) -> None:
    """Zip repeats single values; cross takes every combination."""
    assert campaign(f"[seeds]\n{seeds}").seeds.expand() == [Seeds(order=o, split=s, init=i) for o, s, i in expected]


def test_zip_of_unlike_lengths_is_an_error() -> None:
    """Which pairs were meant is anybody's guess."""
    with pytest.raises(UsageError, match=r'seeds: order has 3, split 1, init 2 seeds: design "zip" needs lists of equal length'):
        campaign("[seeds]\norder = [0, 1, 2]\ninit = [0, 1]")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[seeds]\norder = [0, 0, 1]",
            r"seeds: repeated: 'order 0, split 0, init 0' is given twice; list each value once",
        ),
        ("[seeds]\norder = [0, 0, 1]\ninit = [2, 2, 3]", r"seeds: repeated: 'order 0, split 0, init 2' is given twice"),
        ('[seeds]\ndesign = "cross"\nsplit = [4, 5, 4]', r"seeds: repeated seed of split: 4 is given twice"),
        ('[seeds]\norders = "native"\ninit = [1, 1]', r"seeds: repeated seed of init: 1 is given twice"),
        ('[seeds]\norders = ["native", "native"]', r"seeds.orders: repeated design: 'native' is given twice"),
        ('[seeds]\norders = ["random-tasks:30", "random-tasks : 10"]', r"seeds.orders: repeated design: 'random-tasks' is given twice"),
        ("[seeds]\norders = [[1, 0], [0, 1], [1, 0]]", r"seeds.orders: repeated order: \[1, 0\] is given twice"),
        ("[search]\nseeds = { init = [0, 0] }", r"search.seeds: repeated: 'order 0, split 0, init 0' is given twice"),
        ("[search.grid]\n'training.lr' = [0.1, 0.1]", r"search.grid.training.lr: repeated: 0.1 is given twice"),
        ("[search.methods.ewc]\n'method.lambda' = [1, 1.0]", r"search.methods.ewc.method.lambda: repeated: 1 and 1.0 are the same"),
    ],
)
def test_what_is_named_twice_is_an_error(text: str, says: str) -> None:
    """A mean over n = 5 that come from two records is none."""
    with pytest.raises(UsageError, match=says):
        campaign(text)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"ewc"]', '"ewc", "bare"]', r"grid.methods: repeated: 'bare' is given twice"),
        ('"toy/class-il@begin-1"]', '"toy/task-il@begin-1"]', r"grid.scenarios: repeated: 'toy/task-il@begin-1' is given twice"),
        ('"ewc"]', '"ewc"]\nbackbones = ["gat", "gcn", "gat"]', r"grid.backbones: repeated: 'gat' is given twice"),
        ('"ewc"]', '"ewc"]\naxes = { "training.lr" = [1, 2, 1.0] }', r"grid.axes.training.lr: repeated: 1 and 1.0 are the same"),
        (
            '"ewc"]',
            '"ewc"]\naxes = { "scenario.class_order" = ["0,1", "0, 1"] }',
            r"grid.axes.scenario.class_order: repeated: '0,1' and '0, 1' are the same",
        ),
    ],
)
def test_names_and_values_of_the_grid_come_once(old: str, new: str, says: str) -> None:
    """However they are spelled."""
    with pytest.raises(UsageError, match=says):
        campaign(base=BASE.replace(old, new))


def test_a_seed_may_come_again_beside_another_one() -> None:
    """Zipped: two initialisations of one order are two cells."""
    assert len(campaign("[seeds]\norder = [0, 0, 1]\ninit = [0, 1, 0]").seeds.expand()) == 3


# Settings


# The file


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nmae = 'x'", r"nmae: unknown key. Did you mean 'name'"),
        ("[run]\nworker = 2", r"run.worker: unknown key. Did you mean 'workers'"),
        ("[seeds]\nordre = [1]", r"seeds.ordre: unknown key. Did you mean 'order'"),
        ("[[report]]\nnotebook = 'a'\nparameter = {}", r"report\[0\].parameter: unknown key. Did you mean 'parameters'"),
        ("[[override]]\nmatch = { methods = 'x' }\nset = {}", r"override\[0\].match.methods: unknown key. Did you mean 'method'"),
        ("[reports]", r"reports: unknown key. Did you mean 'report'"),
        ("[search.grids]", r"search.grids: unknown key. Did you mean 'grid'"),
        ("[run]\nworkers = 0", r"run.workers: expected at least 1 \(given: 0\)$"),
        ("[run]\nworkers = '2'", r"run.workers: expected a whole number \(given: '2'\)$"),
        ("[run]\ndevice = 'gpu'", r"run.device: expected 'auto', 'cpu' or 'cuda' \(given: 'gpu'\)$"),
        ("[seeds]\norder = []", r"seeds.order: expected at least 1 item\(s\) \(given: \[\]\)$"),
        ("[seeds]\norder = 1", r"seeds.order: expected a list \(given: 1\)$"),
        ("[search]\ngrid = { 'training.lr' = 1 }", r"search.grid.training.lr: expected a list \(given: 1\)$"),
        (
            "[search]\ngrid = { 'training.lr' = { lgo = [1, 2] } }",
            r"search.grid.training.lr: unknown range 'lgo': did you mean log\? expected",
        ),
        ("[search]\ngrid = { training.lr = { lgo = [1, 2] } }", r"search.grid.training.lr: unknown range 'lgo'"),
        ("[search]\ngrid = { lr = { log = [2, 1] } }", r"search.grid.lr: log: expected a lower bound below the upper bound"),
        ("[search.methods.ewc]\nlambda = { choice = [1, 1] }", r"search.methods.ewc.lambda: repeated: 1 is given twice"),
        ("[search.methods.ewc]\nlambda = { choice = 1 }", r"search.methods.ewc.lambda: expected a list \(given: 1\)"),
        (
            "[search.methods.ewc]\nmethod.lambda = { log = [1, 2] }",
            r"search: methods.ewc.method.lambda is a range, from which points are drawn: set trials to the number of points, "
            r"or list the values instead$",
        ),
        ("[search]\ndraw = 'random'\n[search.grid]\nlr = [1, 2]", r"search: draw = \"random\" applies only to ranges .*remove it$"),
        ("[search]\ndraw = 'sobel'", r"search.draw: expected 'sobol' or 'random' \(given: 'sobel'\)$"),
        ("[set]\nwhen = 2020-01-01", r"set.when: expected true or false, a number, text or a list \(given: datetime.date\(2020, 1, 1\)\)$"),
    ],
)
def test_errors_name_the_key_path_and_the_nearest_key(text: str, says: str) -> None:
    """One line per problem."""
    head, _, tail = text.partition("[")
    with pytest.raises(UsageError, match=f"^campaign: {says}") as error:
        campaign(base=head + BASE + ("[" + tail if tail else ""))
    assert len(str(error.value).splitlines()) <= 5


def test_absent_parts_are_named() -> None:
    """A campaign needs a name and a grid."""
    with pytest.raises(UsageError, match=r"name: missing\ncampaign: grid: missing"):
        Campaign.parse({})


def test_files_are_named_in_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absent, no TOML, no text: each with its path, and the absent one with what may have been meant."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"there is no campaign file demo\.toml"):
        load_campaign("demo.toml")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "demo.toml").write_text(BASE)
    with pytest.raises(UsageError, match=r"no campaign file dmo.toml. Did you mean reports/demo.toml\?"):
        load_campaign("dmo.toml")
    (tmp_path / "bad.toml").write_text("name = \nx = 1")
    with pytest.raises(UsageError, match=r"bad.toml: not a TOML file: .*line 1"):
        load_campaign("bad.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xff")
    with pytest.raises(UsageError, match=r"bad.toml: not a TOML file: it is not in UTF-8 \(line 1 has the byte 0xff\): save it as UTF-8"):
        load_campaign("bad.toml")
    (tmp_path / "bad.toml").write_text(BASE + "colour = 1")
    with pytest.raises(UsageError, match=r"^bad.toml: grid.colour: unknown key"):
        load_campaign("bad.toml")
    loaded = load_campaign("reports/demo.toml")
    assert (loaded.path, loaded.where) == (Path("reports/demo.toml"), "reports/demo.toml")


def test_the_committed_demo_is_in_order() -> None:
    """Two scenarios × four methods × five orders, offline, with two reports."""
    demo = load_campaign(Path(__file__).parents[2] / "reports" / "demo.toml")
    assert len(demo.grid.scenarios) * len(demo.grid.methods) * len(demo.seeds.expand()) == 64
    assert all(name.startswith("synthetic-csbm/") for name in demo.grid.scenarios)
    assert [r.notebook for r in demo.reports] == ["campaign_report", "method_comparison"]


def test_the_example_in_the_documentation_is_a_campaign() -> None:
    """What the module shows is what it reads."""
    import inspect
    import textwrap

    from cglsuite.campaigns import campaign as module

    text = textwrap.dedent((inspect.getdoc(module) or "").partition(".. code-block:: toml\n")[2].rpartition("\n\nPrecedence")[0])
    shown = Campaign.parse(tomllib.loads(text))
    assert shown.values == {"training.epochs": 50}
    assert shown.search is not None
    assert shown.search.methods == {"ewc": {"method.lambda": Range("log", 1e2, 1e4)}}


# Filters, overrides, plan files


def test_plan_files_read_back_and_others_are_refused(tmp_path: Path) -> None:
    """What a worker reads is what was planned."""
    cells = plan('[set]\n"training.lr" = 0.002')
    file = PlanFile.of(cells, sharing={cells[1].key: "a-family"})
    file.write(tmp_path / "plan.json")
    read = PlanFile.read(tmp_path / "plan.json")
    assert list(read.cells) == [(c.key, c.request) for c in cells]
    assert read.sharing == {cells[1].key: "a-family"}
    for text in ("", "{}", '{"plan": 1}', json.dumps({"plan": 2, "cells": [{}]})):
        (tmp_path / "plan.json").write_text(text)
        with pytest.raises(UsageError, match="is not a plan"):
            PlanFile.read(tmp_path / "plan.json")
    assert CellRequest.from_json(json.loads(json.dumps(cells[0].request.to_json()))) == cells[0].request


def test_device_is_asked_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """``auto`` follows the answer, ``cuda`` without a device is an error, and other words suggest."""
    for has, auto in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(device, "_without_cuda", lambda has=has: "" if has else "torch finds no CUDA device here")
        assert device.resolve_device("auto") == auto
        assert device.resolve_device("cpu") == "cpu"
    with pytest.raises(UsageError, match="no CUDA device"):
        device.resolve_device("cuda")
    with pytest.raises(UnknownNameError, match="cuda"):
        device.resolve_device("cude")


def test_importing_the_rooms_imports_nothing_heavy() -> None:
    """Neither torch nor pandas nor pydantic, for what commands import before they know what to do."""
    rooms = ("cells", "cells.storage.store", "campaigns", "campaigns.planning", "campaigns.executors.plugin", "cli.commands.cells")
    modules = ", ".join(f"cglsuite.{room}" for room in rooms)
    check = f"import sys, {modules}; print([m for m in ('torch', 'pandas', 'pydantic', 'papermill', 'tqdm') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
