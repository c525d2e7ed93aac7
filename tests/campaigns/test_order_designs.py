"""The key ``orders`` of a campaign: which cells it spans, and what its errors say."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import fake_cells
import pytest

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.campaign import ORDERS_LIMIT, Campaign, order_designs
from cglsuite.campaigns.planning import plan_campaign, plan_search, select_cells
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.storage.store import Store
from cglsuite.specs import ScenarioSpec

CATALOGUE: Any = fake_cells.FakeCatalogue()
BASE = """
name = "x"
[grid]
scenarios = ["toy/class-il@begin-1"]
methods = ["bare", "ewc"]
"""
THREE = "[set]\nscenario.n_tasks = 3\n"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CGLSUITE_SET", "CGLSUITE_DEVICE", "CGLSUITE_WORKERS"):
        monkeypatch.delenv(name, raising=False)


def campaign(text: str) -> Campaign:
    return Campaign.parse(tomllib.loads(BASE + text))


def plan(text: str, overrides: Any = None, **more: Any) -> list[PlannedCell]:
    return plan_campaign(campaign(text), CATALOGUE, overrides, **more)


def orders_of(text: str, overrides: Any = None) -> list[tuple[str, int]]:
    """Rule and order seed of the cells of one method."""
    cells = [c.request for c in plan(text, overrides) if c.request.method == "bare"]
    return [(c.overrides["scenario.class_order"], c.seeds.order) for c in cells]


@pytest.mark.parametrize(
    ("orders", "expected"),
    [
        ('"all-tasks"', [("all-tasks", n) for n in range(6)]),
        ('"latin-tasks"', [("latin-tasks", n) for n in range(6)]),
        ('"random-tasks:4"', [("random-tasks", n) for n in range(4)]),
        ('"random-classes:2"', [("random", 0), ("random", 1)]),
        ('"latin-classes:2"', [("latin-classes", 0), ("latin-classes", 1)]),
        ('"native"', [("native", 0)]),
        ("[[3, 1, 2, 0], [0, 1, 2, 3]]", [("3,1,2,0 | 0,1,2,3", 0), ("3,1,2,0 | 0,1,2,3", 1)]),
        ('["native", "random-classes:2"]', [("native", 0), ("random", 0), ("random", 1)]),
        ('[[3, 1, 2, 0], "native", [0, 1, 2, 3]]', [("3,1,2,0 | 0,1,2,3", 0), ("3,1,2,0 | 0,1,2,3", 1), ("native", 0)]),
    ],
)
def test_what_designs_span(orders: str, expected: list[tuple[str, int]]) -> None:
    """Every method meets every order; the design is in the settings and in the keys."""
    text = f"[seeds]\norders = {orders}\n{THREE}"
    assert orders_of(text) == expected
    cells = plan(text)
    assert len(cells) == len({c.key for c in cells}) == 2 * len(expected)
    assert all(c.cell is not None and c.cell.scenario.class_order == c.request.overrides["scenario.class_order"] for c in cells)


@pytest.mark.parametrize("design", ["", 'design = "cross"'])
def test_orders_are_crossed_with_split_and_init(design: str) -> None:
    cells = plan(f'[seeds]\n{design}\norders = "all-tasks"\nsplit = [5, 6]\ninit = [0, 1, 2]\n{THREE}')
    seeds = [(c.request.seeds.order, c.request.seeds.split, c.request.seeds.init) for c in cells[: len(cells) // 2]]
    assert seeds == [(o, s, i) for o in range(6) for s in (5, 6) for i in (0, 1, 2)]


def test_the_number_of_tasks_comes_from_wherever_it_is_set() -> None:
    """The campaign, an axis of its grid, the command line; by either name."""
    seeds = '[seeds]\norders = "all-tasks"\n'
    assert len(orders_of(seeds + THREE)) == 6
    assert len(orders_of(seeds + THREE, {"n_tasks": "4"})) == 24
    assert len(orders_of(seeds + "[set]\nn_tasks = 2")) == 2
    axes = BASE.replace("methods", 'axes = { "scenario.n_tasks" = [2, 3] }\nmethods') + seeds
    assert len(plan_campaign(Campaign.parse(tomllib.loads(axes)), CATALOGUE)) == 2 * (2 + 6)


def test_filters_and_searches_work_as_ever(tmp_path: Path) -> None:
    """--only picks order seeds; a search has its own seeds, and cells that wait for it are as many as there will be."""
    search = '[search]\nseeds = { order = [7], init = [1] }\ngrid = { "training.lr" = [1e-3, 5e-3] }'
    text = f'[seeds]\norders = "all-tasks"\n{THREE}{search}'
    cells = plan(text, store=Store(tmp_path))
    assert [c.state for c in cells] == ["waiting"] * 12
    assert len(select_cells(cells, ["order_seed=2", "method=bare"])) == 1
    searched = plan_search(campaign(text), CATALOGUE)
    assert {(c.request.seeds.order, "scenario.class_order" in c.request.overrides) for s in searched for c in s.cells} == {(7, False)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[seeds]\norders = "all-tasks"', r"the number of tasks of 'toy/class-il@begin-1' is unknown; set scenario\.n_tasks"),
        ('[seeds]\norders = "latin-tasks"', r"seeds\.orders = \"latin-tasks\": .* set scenario\.n_tasks"),
        ('[seeds]\norders = "all-tasks"\norder = [0]', r"seeds: order and orders cannot be combined"),
        ('[seeds]\norders = "all-tasks"\ndesign = "zip"', r"seeds: orders are crossed with split and init: remove design"),
        ('[seeds]\norders = "all-task"', r"seeds\.orders: unknown design 'all-task'. Did you mean 'all-tasks'"),
        (
            '[seeds]\norders = "random-tasks"',
            r"seeds\.orders: \"random-tasks\": expected a number of orders, for example \"random-tasks:30\"",
        ),
        ('[seeds]\norders = "random-classes:0"', r"expected a number of orders, for example \"random-classes:30\""),
        ('[seeds]\norders = "random-classes:many"', r"expected a number of orders"),
        ('[seeds]\norders = "all-tasks:20"', r"the number of orders of all-tasks is fixed; expected \"all-tasks\""),
        ("[seeds]\norders = []", r"seeds\.orders: expected a design such as \"all-tasks\", or a list .* \(given: \[\]\)"),
        ("[seeds]\norders = [[]]", r"seeds\.orders: \[\]: expected a list of class ids in order"),
        ("[seeds]\norders = [[3, 1, 2, 0], [0, 1, 1, 2]]", r"seeds\.orders: \[0, 1, 1, 2\]: class 1 appears twice"),
        (
            "[seeds]\norders = [[3, 1, 2, 0], [0, 1, 2]]",
            r"seeds\.orders: \[0, 1, 2\]: class 3 is missing; expected a permutation of \[0, 1, 2, 3\]",
        ),
        ("[seeds]\norders = [[1, 0], [0, 1, 4]]", r"\[0, 1, 4\]: class 4 is not in the first order; expected a permutation of \[0, 1\]"),
        (f"[seeds]\norders = [[1, 0]]\n{THREE}", r"seeds\.orders: 2 classes cannot form the 3 tasks of 'toy/class-il@begin-1'"),
        (
            '[seeds]\norders = "all-tasks"\n[set]\nscenario.n_tasks = 12',
            rf"479001600 orders of 12 tasks are too many; .* {ORDERS_LIMIT}",
        ),
        (f'[seeds]\norders = "random-tasks:{ORDERS_LIMIT + 1}"', "are too many; expected at most"),
        ('[set]\n"scenario.n_tasks" = 5000\n[seeds]\norders = "all-tasks"', "all orders of 5000 tasks are too many"),
        *[(f'[seeds]\norders = "random-tasks:{number}"', "expected") for number in ("²", "٣", "1_0", "9" * 5000, "-1", "0", "")],
        ("[seeds]\norders = 3", r"seeds\.orders: expected a design .* \(given: 3\)"),
        ("[seeds]\norders = [[0, 1.5]]", r"seeds\.orders: \[0, 1\.5\]: expected a list of class ids"),
        ('[search]\nseeds = { orders = "all-tasks" }', r"search\.seeds\.orders: unknown key"),
    ],
)
def test_wrong_orders_are_refused_before_anything_runs(text: str, says: str) -> None:
    """With the design, the offending element, and what to do."""
    with pytest.raises(UsageError, match=says):
        plan(text)


@pytest.mark.parametrize(
    ("text", "overrides", "where"),
    [
        ('scenario.class_order = "native"', None, r"campaign 'x': set"),
        ('class_order = "native"', None, r"campaign 'x': set"),
        ('[[override]]\nmatch = { method = "ewc" }\nset = { "scenario.class_order" = "native" }', None, r"override\[0\]\.set"),
        ('[search]\ngrid = { "scenario.class_order" = ["native", "random"] }', None, r"search\.grid"),
        ("", {"class_order": "native"}, r"--set or CGLSUITE_SET"),
    ],
)
def test_nothing_else_may_say_in_which_order_classes_arrive(text: str, overrides: Any, where: str) -> None:
    with pytest.raises(UsageError, match=rf"{where}: .*class_order conflicts with seeds\.orders"):
        plan(f'[seeds]\norders = "all-tasks"\n{THREE}{text}', overrides)


def test_time_has_one_order() -> None:
    spec = ScenarioSpec(name="toy/time-il@x-1", summary="toy", dataset="toy", setting="time-il", class_order="native")
    (design,) = order_designs("random-tasks:3")
    with pytest.raises(UsageError, match=r"the tasks of 'toy/time-il@x-1' arrive in temporal order"):
        design.orders(spec, 3)
