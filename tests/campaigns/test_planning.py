"""Planning: cells of the grid, settings in layers, searches before the grid, and filters."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from campaign_lab import BASE, CATALOGUE, campaign, plan, rate

from cglsuite.base.errors import SpecError, UnknownNameError, UsageError
from cglsuite.campaigns import planning
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.planning import plan_campaign, plan_search, select_cells
from cglsuite.cells.plan import plan_cell
from cglsuite.cells.storage.store import Store
from cglsuite.specs import ScenarioSpec, Seeds


def test_the_grid_is_crossed_in_the_files_order() -> None:
    """Scenario, then method, then seeds."""
    cells = plan("[seeds]\norder = [0, 1]")
    assert [(c.request.scenario.partition("@")[0], c.request.method, c.request.seeds.order) for c in cells] == [
        (s, m, o) for s in ("toy/task-il", "toy/class-il") for m in ("bare", "ewc") for o in (0, 1)
    ]
    assert all(c.ready and c.key and c.cell is not None for c in cells)
    assert len({c.key for c in cells}) == len(cells)


def test_backbones_default_to_the_presets_own() -> None:
    """None named: the preset's; named: each."""
    assert {c.backbone for c in plan()} == {"gcn"}
    cells = plan_campaign(campaign(base=BASE + 'backbones = ["gcn", "gat"]'), CATALOGUE)
    assert [c.request.backbone for c in cells[:4]] == ["gcn", "gcn", "gat", "gat"]


AXES = BASE + 'axes = { "scenario.class_order" = ["0,1", "1,0"], "method.lambda" = [1.0, 5.0] }'


def test_settings_are_further_axes_of_the_grid_for_whom_they_concern() -> None:
    """Every value is a cell of its own; a method that does not have the setting is not run twice."""
    cells = plan_campaign(campaign(base=AXES), CATALOGUE)
    points = [(c.request.method, c.request.overrides["scenario.class_order"], c.request.overrides.get("method.lambda")) for c in cells]
    ewc = [("ewc", order, strength) for order in ("0,1", "1,0") for strength in (1.0, 5.0)]
    assert points == [("bare", "0,1", None), ("bare", "1,0", None), *ewc] * 2
    assert len({c.key for c in cells}) == len(cells)


def test_axes_go_over_settings_and_under_the_command_line() -> None:
    """[set] and [[override]] hold for the whole grid; --set for this run of it, in which the axis is no axis any more."""
    text = (
        AXES
        + """
[set]
"scenario.class_order" = "native"
[[override]]
match = { method = "ewc" }
set = { "method.lambda" = 7.0 }
"""
    )
    cells = plan_campaign(campaign(base=text), CATALOGUE)
    assert {c.request.overrides["scenario.class_order"] for c in cells} == {"0,1", "1,0"}
    assert {c.request.overrides["method.lambda"] for c in cells if c.request.method == "ewc"} == {1.0, 5.0}
    fixed = plan_campaign(campaign(base=text), CATALOGUE, {"scenario.class_order": "random"})
    assert {c.request.overrides["scenario.class_order"] for c in fixed} == {"random"}
    assert len(fixed) == len({c.key for c in fixed}) == len(cells) // 2


def test_an_axis_that_nobody_has_is_an_error() -> None:
    base = BASE + 'axes = { "method.lambd" = [1.0] }'
    with pytest.raises(UnknownNameError, match=r"grid\.axes.*lambda"):
        plan_campaign(campaign(base=base), CATALOGUE)


def test_values_that_only_their_setting_reads_alike_are_one_cell_twice() -> None:
    """Text and number, 1e-3 and 0.001: the cells' keys tell."""
    base = BASE + 'axes = { "training.lr" = ["1e-3", 0.001] }'
    with pytest.raises(UsageError, match=r"task-il@begin-1 × bare \(.*\) is planned twice: training.lr = '1e-3' and 0.001 are the same"):
        plan_campaign(campaign(base=base), CATALOGUE)
    searched = campaign("[search.grid]\n'training.lr' = ['1e-3', 0.001]")
    with pytest.raises(UsageError, match=r"search: .* is planned twice: training.lr = '1e-3' and 0.001"):
        plan_search(searched, CATALOGUE)


def test_an_axis_is_fixed_under_its_bare_name_too() -> None:
    """--set lr=0.1 and --set training.lr=0.1 are one request: the axis is none any more."""
    base = BASE + 'axes = { "training.lr" = [0.1, 0.2] }'
    for key in ("lr", "training.lr"):
        cells = plan_campaign(campaign(base=base), CATALOGUE, {key: "0.5"})
        assert len(cells) == 4
        assert {rate(c) for c in cells} == {0.5}


def test_cells_that_differ_in_seeds_alone_are_as_if_planned_one_by_one() -> None:
    """They are resolved once; requests, keys and reasons are the same."""
    cells = plan_campaign(campaign("[seeds]\norder = [0, 1, 2]", base=BASE.replace('"ewc"', '"packnet"')), CATALOGUE)
    assert cells == [plan_cell(cell.request, CATALOGUE) for cell in cells]
    assert {cell.state for cell in cells} == {"ready", "n/a"}


def test_impossible_combinations_are_not_applicable_with_their_reason() -> None:
    """As in published tables; not a crash, and not left out."""
    cells = plan_campaign(campaign(base=BASE.replace('"ewc"', '"packnet"')), CATALOGUE)
    assert [(c.request.scenario.split("/")[1].split("@")[0], c.state) for c in cells if c.request.method == "packnet"] == [
        ("task-il", "ready"),
        ("class-il", "n/a"),
    ]
    assert "defined for task-il" in cells[-1].reason


def test_precedence_of_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Command line over environment over override over settings over preset; bare and dotted names are one setting."""
    text = """
[set]
training.lr = 0.002
[[override]]
match = { method = "e*", scenario = "toy/task*" }
set = { "training.lr" = 0.003 }
"""
    assert [rate(c) for c in plan(text)] == [0.002, 0.003, 0.002, 0.002]
    monkeypatch.setenv("CGLSUITE_SET", "lr=0.004; training.epochs=3")
    assert [rate(c) for c in plan(text)] == [0.004] * 4
    assert {rate(c) for c in plan(text, {"training.lr": "0.005"})} == {0.005}
    assert all(c.request.overrides["training.epochs"] == "3" for c in plan(text, Overrides(values={"lr": "0.005"})))


def test_a_methods_setting_goes_to_the_cells_that_declare_it() -> None:
    """One table of settings serves methods with unlike hyperparameters."""
    cells = plan('[set]\n"method.lambda" = 5.0\nbackbone.width = 4')
    assert [c.request.overrides.get("method.lambda") for c in cells] == [None, 5.0, None, 5.0]
    assert {c.request.overrides["backbone.width"] for c in cells} == {4}
    assert [c.request.overrides.get("lambda") for c in plan(overrides={"lambda": "5"})] == [None, "5", None, "5"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[set]\nmethod.lamda = 1", r"set:.*'method.lamda'.*Did you mean 'method.lambda'"),
        ('[[override]]\nmatch = { method = "bare" }\nset = { "method.lambda" = 1 }', r"override\[0\].set"),
        ('[[override]]\nmatch = { method = "er*" }\nset = { "training.lr" = 1 }', r"override\[0\].match: no cell"),
        ("[set]\ntraining.epoch = 1", r"toy/task-il@begin-1 × bare: unknown switch or .* 'training.epoch'.*Did you mean 'training.epochs'"),
        ("[set]\ntraining.lr = 'fast'", r"toy/task-il@begin-1 × bare: training.lr = 'fast'"),
        ("[search.methods.ewcc]\n'method.lambda' = [1.0]", r"search.methods.*'ewcc'.*Did you mean 'ewc'"),
        ("[search.grid]\n'method.lamda' = [1.0]", r"search.grid.*Did you mean 'method.lambda'"),
    ],
)
def test_wrong_settings_say_where_and_suggest(text: str, says: str) -> None:
    """Unknown keys are errors, never warnings."""
    with pytest.raises(UsageError, match=says):
        plan(text)


def test_unknown_names_say_where_and_suggest() -> None:
    """A typo in the grid, or on the command line."""
    with pytest.raises(UsageError, match=r"grid.methods: unknown method 'ewd'. Did you mean 'ewc'"):
        plan_campaign(campaign(base=BASE.replace("ewc", "ewd")), CATALOGUE)
    with pytest.raises(UsageError, match=r"grid.scenarios.*Did you mean"):
        plan_campaign(campaign(base=BASE.replace("toy/task", "toi/task")), CATALOGUE)
    with pytest.raises(UsageError, match=r"--set or CGLSUITE_SET.*'method.lamda'"):
        plan(overrides={"method.lamda": "1"})


SEARCH = """
[seeds]
init = [0, 1, 2]
[search]
seeds = { order = [0, 1000], init = [0, 1] }
grid = { "training.lr" = [1e-3, 5e-3] }
[search.methods.ewc]
"method.lambda" = [1.0, 2.0, 3.0]
"""


def run_search(store: Store, text: str = SEARCH, overrides: Any = None) -> None:
    for search in plan_search(campaign(text), CATALOGUE, overrides):
        for planned in search.cells:
            store.put(fake_cells.make_record(planned.cell))
        search.choose_and_store(store)


def test_a_search_spans_common_and_own_axes() -> None:
    """Per scenario and method; the first axis varies slowest; its own seeds."""
    searches = plan_search(campaign(SEARCH), CATALOGUE)
    assert [(s.method, len(s.candidates), len(s.cells)) for s in searches] == [("bare", 2, 4), ("ewc", 6, 12)] * 2
    assert [dict(c.overrides) for c in searches[1].candidates][:2] == [
        {"training.lr": 1e-3, "method.lambda": 1.0},
        {"training.lr": 1e-3, "method.lambda": 2.0},
    ]
    assert {c.request.seeds for c in searches[0].cells} == {Seeds(order=0, init=0), Seeds(order=1000, init=1)}


def test_the_grid_waits_for_its_search_and_then_uses_what_was_chosen(tmp_path: Path) -> None:
    """The choice is in the cells' settings, so their records carry it."""
    store = Store(tmp_path)
    assert {c.state for c in plan(SEARCH, store=store)} == {"waiting"}
    run_search(store)
    cells = plan(SEARCH, store=store)
    assert {c.state for c in cells} == {"ready"}
    assert {rate(c) for c in cells} == {5e-3}
    assert {c.request.overrides["method.lambda"] for c in cells if c.request.method == "ewc"} == {1.0}


def test_overrides_go_over_the_search(tmp_path: Path) -> None:
    """A searched setting that the command line fixes is not searched."""
    searches = plan_search(campaign(SEARCH), CATALOGUE, {"training.lr": "0.007"})
    assert [(s.method, len(s.candidates)) for s in searches] == [("ewc", 3)] * 2
    store = Store(tmp_path)
    run_search(store, overrides={"training.lr": "0.007"})
    assert {rate(c) for c in plan(SEARCH, {"training.lr": "0.007"}, store=store)} == {0.007}


def test_a_single_point_needs_no_search() -> None:
    """It is used as it is."""
    text = '[search]\ngrid = { "training.lr" = [5e-3] }'
    assert plan_search(campaign(text), CATALOGUE) == []
    assert {rate(c) for c in plan(text)} == {5e-3}


def test_a_search_that_is_possible_in_part_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One candidate that is not applicable does not end the search of the others; if all are, the first reason is given."""
    whole = planning._Planner.search
    n_possible = [2]

    def partly(self: Any, group: Any) -> Any:
        found = whole(self, group)
        assert found is not None
        candidates = [
            candidate
            if i < n_possible[0]
            else dataclasses.replace(
                candidate, cells=[dataclasses.replace(c, state="n/a", reason=f"reason {i}", cell=None) for c in candidate.cells]
            )
            for i, candidate in enumerate(found.candidates)
        ]
        return dataclasses.replace(found, candidates=candidates)

    monkeypatch.setattr(planning._Planner, "search", partly)
    assert {(c.state, c.reason) for c in plan(SEARCH)} == {("waiting", "its search has not finished")}
    n_possible[0] = 0
    assert {(c.state, c.reason) for c in plan(SEARCH)} == {("n/a", "reason 0")}


def test_a_search_that_is_impossible_is_not_applicable(tmp_path: Path) -> None:
    """Not waiting for ever."""
    text = BASE.replace('"bare", "ewc"', '"packnet"') + '[search]\ngrid = { "training.lr" = [1e-3, 5e-3] }'
    cells = plan_campaign(campaign(base=text), CATALOGUE, store=Store(tmp_path))
    assert [c.state for c in cells] == ["waiting", "n/a"]


def test_only_filters_by_globs() -> None:
    """Commas and repetition widen, unlike keys narrow."""
    cells = plan("[seeds]\norder = [0, 1, 10]")
    assert len(select_cells(cells, [])) == 12
    assert {c.request.method for c in select_cells(cells, ["method=e*"])} == {"ewc"}
    assert len(select_cells(cells, ["method=bare,ewc", "order_seed=1*"])) == 8
    assert len(select_cells(cells, ["method=bare", "method=ewc", "scenario=*/class-il@*", "backbone=gcn"])) == 6
    with pytest.raises(UnknownNameError, match="order_seed"):
        select_cells(cells, ["order_sed=1"])
    with pytest.raises(UsageError, match="key=value"):
        select_cells(cells, ["ewc"])


def test_axes_are_in_labels_and_filters() -> None:
    """A setting is compared by value, however it is written; a method without it passes no filter on it."""
    cells = plan_campaign(campaign(base=BASE + 'axes = { "method.lambda" = [1.0, 5.0] }'), CATALOGUE)
    chosen = select_cells(cells, ["method.lambda=5e0"])
    assert {(c.request.method, c.request.overrides["method.lambda"]) for c in chosen} == {("ewc", 5.0)}
    assert len(select_cells(cells, ["method.lambda=1,5"])) == 2 * len(chosen) == sum(c.request.method == "ewc" for c in cells)
    assert all("(lambda=5.0, order " in c.request.label for c in chosen)
    assert all("lambda" not in c.request.label for c in select_cells(cells, ["method=bare"]))
    again = [type(c.request).from_json(json.loads(json.dumps(c.request.to_json()))) for c in chosen]
    assert [one.label for one in again] == [c.request.label for c in chosen]
    with pytest.raises(UnknownNameError, match="Did you mean 'method.lambda'"):
        select_cells(cells, ["method.lamda=1"])


def test_equal_trials_for_every_method() -> None:
    """Four trials of bare's four points and of the eight of ewc; a method whose grid has fewer is refused by name."""
    text = """
[search]
trials = 4
scope = "first-tasks(2)"
grid = { "training.lr" = [1e-3, 2e-3, 5e-3, 1e-2] }

[search.methods.ewc]
"method.lambda" = [1.0, 10.0]
"""
    searches = plan_search(campaign(text), CATALOGUE)
    assert [(s.method, len(s.candidates), s.points, str(s.scope)) for s in searches[:2]] == [
        ("bare", 4, 4, "first-tasks(2)"),
        ("ewc", 4, 8, "first-tasks(2)"),
    ]
    with pytest.raises(UsageError, match=r"task-il@begin-1 × bare: trials = 5, but its grid has 4 points"):
        plan_search(campaign(text.replace("trials = 4", "trials = 5")), CATALOGUE)
    with pytest.raises(UsageError, match=r"task-il@begin-1 × bare: trials = 4, but its grid has 1 point:"):
        plan_search(campaign(text), CATALOGUE, {"training.lr": "0.007"})


RANGES = """
[seeds]
init = [10, 11]
[search]
trials = 6
seeds = { order = [0, 1], init = [0, 1] }
[search.grid]
training.lr = { log = [1e-4, 1e-1] }
[search.methods.ewc]
"method.lambda" = { choice = [1.0, 10.0, 100.0] }
"""


def test_ranges_are_drawn_ahead_with_equal_trials(tmp_path: Path) -> None:
    """Every trial is planned before one runs. The choice is one of them, and the cells of the grid have it."""
    store = Store(tmp_path)
    searches = plan_search(campaign(RANGES), CATALOGUE)
    assert [(s.method, len(s.candidates), len(s.cells), s.points, s.drawn) for s in searches[:2]] == [
        ("bare", 6, 12, None, "sobol"),
        ("ewc", 6, 12, None, "sobol"),
    ]
    rates = [c.overrides["training.lr"] for s in searches for c in s.candidates]
    assert all(1e-4 <= rate <= 1e-1 for rate in rates)
    assert min(rates) < 1e-3 < 1e-2 < max(rates)
    assert {c.overrides["method.lambda"] for c in searches[1].candidates} == {1.0, 10.0, 100.0}
    run_search(store, RANGES)
    chosen = {c.request.overrides["training.lr"] for c in plan(RANGES, store=store)}
    assert chosen <= set(rates)
    longer = plan_search(campaign(RANGES.replace("trials = 6", "trials = 8")), CATALOGUE)
    assert [c.overrides for c in longer[1].candidates[:6]] == [c.overrides for c in searches[1].candidates]
    random = plan_search(campaign(RANGES.replace("trials = 6", 'trials = 6\ndraw = "random"')), CATALOGUE)
    assert {c.overrides["training.lr"] for c in random[0].candidates}.isdisjoint(rates)


def test_a_range_that_an_override_fixes_has_too_few_points() -> None:
    with pytest.raises(UsageError, match=r"task-il@begin-1 × bare: trials = 6, but 384 draws from its ranges gave 1 point:"):
        plan_search(campaign(RANGES), CATALOGUE, {"training.lr": "0.007"})


def test_trials_of_ranges_count_towards_the_size_of_a_design() -> None:
    """Two scenarios of two methods with two seeds: 1,000 trials of each are 8,000 cells."""
    text = RANGES.replace("trials = 6", "trials = 1000") + "[run]\ncells_at_most = 8000"
    with pytest.raises(UsageError, match="the design has 8,008 cells"):
        plan_search(campaign(text), CATALOGUE)


def test_a_scope_must_leave_a_task() -> None:
    """Refused before anything runs where the number of tasks is known."""
    text = '[search]\nscope = "first-tasks(3)"\ngrid = { "training.lr" = [1e-3, 2e-3] }\n[set]\n"scenario.n_tasks" = 3'
    with pytest.raises(UsageError, match=r"search.scope: first-tasks\(3\) leaves no unseen task in a stream of 3 tasks"):
        plan_search(campaign(text), CATALOGUE)
    with pytest.raises(UsageError, match=r"search.scope: .*at least 2 tasks"):
        campaign('[search]\nscope = "first-tasks(1)"')


def test_our_own_presets_are_searched_on_their_first_tasks() -> None:
    """Those of published protocols on all tasks, as their papers did."""
    from cglsuite import load_catalogue
    from cglsuite.campaigns.reference.values import paper_of

    presets = [spec for spec in load_catalogue().specs(ScenarioSpec).values() if not spec.name.startswith("testing-")]
    assert all(spec.search_scope == "all" for spec in presets if spec.task_free is not None)  # validation is asked at their end alone
    presets = [spec for spec in presets if spec.task_free is None]
    as_published = {spec.protocol for spec in presets if spec.search_scope == "all"}
    own = {spec.protocol: spec.search_scope for spec in presets if spec.search_scope != "all"}
    assert all(paper_of(protocol) or protocol == "begin-paper-1" for protocol in as_published)
    assert set(own.values()) <= {"first-tasks(2)"}
    assert not any(paper_of(protocol) for protocol in own)


def test_a_preset_says_what_its_search_sees() -> None:
    text = '[search]\ngrid = { "training.lr" = [1e-3, 2e-3] }'
    for scope in ("all", "first-tasks(2)"):
        catalogue = copy.deepcopy(CATALOGUE)
        catalogue.scenario = lambda name, scope=scope: dataclasses.replace(CATALOGUE.scenario(name), search_scope=scope)  # type: ignore[method-assign]
        assert {str(s.scope) for s in plan_search(campaign(text), catalogue)} == {scope}


@pytest.mark.parametrize("scope", ["first-tasks(1)", "first-tasks(02)", "some", ""])
def test_a_presets_scope_is_checked(scope: str) -> None:
    with pytest.raises(SpecError, match="search_scope"):
        dataclasses.replace(CATALOGUE.scenario("toy/class-il@begin-1"), search_scope=scope)


_LONG = ", ".join(map(str, range(300)))
_AXES = "".join(f'"{key}" = [{", ".join(map(str, range(1, 30)))}]\n' for key in ("training.epochs", "training.batch_size", "method.lambda"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f'[seeds]\ndesign = "cross"\norder = [{_LONG}]\nsplit = [{_LONG}]', "the design has 360,000 cells"),
        (f'[seeds]\ndesign = "cross"\norder = [{_LONG}]\nsplit = [{_LONG}]\ninit = [{_LONG}]', "the design has 108,000,000 cells"),
        (f'[seeds]\norders = "random-tasks:1000"\nsplit = [{_LONG}]', "the design has 1,200,000 cells"),
        (f"[grid.axes]\n{_AXES}", "the design has 50,460 cells"),
        ("[run]\ncells_at_most = 3", "the design has 4 cells, but at most 3 are allowed"),
        (f"[search.grid]\n{_AXES}", r"24,389 cells|the design has \d\d,\d{3} cells"),
        (
            f'[search]\nseeds = {{ design = "cross", order = [{_LONG}], init = [{_LONG}] }}\ngrid = {{ "training.lr" = [0.1, 0.2] }}',
            "cells",
        ),
    ],
)
def test_a_design_is_counted_before_it_is_made(text: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: a file of a few lines took all memory."""
    monkeypatch.setattr(planning, "expand_grid", None)
    with pytest.raises(UsageError, match=says) as refused:
        plan(text)
    assert "narrow it, or set cells_at_most in [run] to a higher number" in str(refused.value)


def test_a_list_of_more_values_than_cells_is_refused_before_it_is_compared() -> None:
    many = list(range(50_001))
    for section in (
        {"seeds": {"order": many}},
        {"grid": {"axes": {"training.epochs": many}}},
        {"search": {"grid": {"training": {"lr": many}}}},
    ):
        with pytest.raises(
            UsageError, match=r"the design has 50,001 cells \((seeds.order|grid.axes.training.epochs|search.grid.training.lr)"
        ):
            Campaign.parse({"name": "x", **section})


def test_the_limit_is_the_campaigns() -> None:
    """At the limit and with a higher one it is planned; orders are counted by the tasks of each point."""
    assert len(plan("[run]\ncells_at_most = 4")) == 4
    twenty = f'[grid.axes]\n"scenario.n_tasks" = [2, 3]\n[seeds]\norders = "all-tasks"\n[run]\ncells_at_most = {2 * 2 * (2 + 6)}'
    assert len(plan(twenty)) == 32
    with pytest.raises(UsageError, match="the design has 32 cells, but at most 31 are allowed"):
        plan(twenty.replace("= 32", "= 31"))
