"""Search: the grid's order, the choice by validation only, and what is stored of it."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_cells
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.search import (
    Candidate,
    Range,
    Scope,
    Search,
    Sequencing,
    best,
    draw_points,
    draw_trials,
    expand_grid,
    overlap_text,
    parse_range,
    parse_scope,
    scope_of,
    search_digest,
    shared_seeds,
)
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds

RATES = (1e-3, 5e-3, 1e-2)


def search(rates: tuple[float, ...] = RATES) -> Search:
    """Three learning rates on two seeds."""

    def candidate(rate: float) -> Candidate:
        requests = [
            CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides={"training.lr": rate}, seeds=Seeds(init=s)) for s in (0, 1)
        ]
        return Candidate(overrides={"training.lr": rate}, cells=[plan_cell(r, fake_cells.FakeCatalogue()) for r in requests])  # type: ignore[arg-type]

    return Search(scenario="toy/task-il@begin-1", method="bare", backbone=None, candidates=[candidate(r) for r in rates])


def fill(store: Store, found: Search, change: Callable[[int, int, Record], Record] = lambda i, s, r: r) -> None:
    """Records of all candidates, each changed by (candidate, seed, record)."""
    for i, candidate in enumerate(found.candidates):
        for s, planned in enumerate(candidate.cells):
            store.put(change(i, s, fake_cells.make_record(planned.cell)))


def with_validation(last_rows: list[list[list[float | None]]]) -> Callable[[int, int, Record], Record]:
    """Change a record's validation matrix to one with the given last row."""

    def change(i: int, s: int, record: Record) -> Record:
        return dataclasses.replace(record, validation_matrix=[[None, None], [0.125, None], last_rows[i][s]])

    return change


def test_the_grid_is_expanded_in_order() -> None:
    """The first axis varies slowest; no axes give one candidate."""
    assert expand_grid({"a": [1, 2], "b": ["x", "y"]}) == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    assert expand_grid({}) == [{}]


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ([[0.5, 0.5], [0.25, 1.0], [0.5, 0.5]], 1),
        ([[0.5, 0.5], [0.25, 0.75]], 0),
        ([[0.9, None], [0.1, 0.1]], 1),
        ([[None], [float("nan")]], None),
        ([], None),
        ([[]], None),
    ],
)
def test_best_by_hand(scores: list[list[float | None]], chosen: int | None) -> None:
    """Highest mean; the first of equals; a missing seed puts a candidate out."""
    assert best(scores) == chosen


@given(st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=1, max_size=6))
def test_best_is_a_first_maximum(scores: list[list[int]]) -> None:
    """Against brute force on exact numbers."""
    sums = [sum(row) for row in scores]
    assert best([[float(v) for v in row] for row in scores]) == sums.index(max(sums))


def test_the_choice_by_hand(tmp_path: Path) -> None:
    """Means of the last validation rows: 0.5, 0.625, 0.5625; entries that could not be asked do not count."""
    store, found = Store(tmp_path), search()
    fill(store, found, with_validation([[[0.5, 0.5], [0.25, 0.75]], [[0.5, 0.75], [0.625, None]], [[1.0, 0.5], [0.25, 0.5]]]))
    choice = found.choose(store)
    assert choice is not None
    assert choice.overrides == {"training.lr": 5e-3}
    assert [row["scores"] for row in choice.outcome["candidates"]] == [[0.5, 0.5], [0.625, 0.625], [0.75, 0.375]]
    assert [row["mean"] for row in choice.outcome["candidates"]] == [0.5, 0.625, 0.5625]


def test_ties_go_to_the_first_in_the_grids_order(tmp_path: Path) -> None:
    """Equal means, in either order of the grid."""
    equal = with_validation([[[0.5, 0.5], [0.5, 0.5]]] * 3)
    for n, rates in enumerate((RATES, RATES[::-1])):
        store, found = Store(tmp_path / str(n)), search(rates)
        fill(store, found, equal)
        choice = found.choose(store)
        assert choice is not None
        assert choice.overrides == {"training.lr": rates[0]}


def test_test_results_never_matter(tmp_path: Path) -> None:
    """Metamorphic: whatever the test matrices, metrics and per-class accuracies, the choice and its file are the same."""
    outcomes = []
    for n, factor in enumerate((1.0, 0.0, -1.0)):

        def change(i: int, s: int, r: Record, factor: float = factor) -> Record:
            test = [[0.5, 0.5], [0.5, 0.5], [abs(factor) * i / 10, 1 - abs(factor + i / 10) / 2]]
            facts = {"matrix": test, "metrics": {"average_performance": factor * i}, "per_class": [[(factor + 1) / 2] * 4]}
            return dataclasses.replace(r, **facts)

        store, found = Store(tmp_path / str(n)), search()
        fill(store, found, change)
        choice = found.choose_and_store(store)
        assert choice is not None
        assert choice.overrides == {"training.lr": 5e-3}
        outcomes.append(store.get_search(found.digest))
    assert outcomes[0] == outcomes[1] == outcomes[2] is not None


def test_candidates_that_did_not_finish_are_out_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A diverged seed puts the otherwise best one out; with none left there is no choice, and that is said too."""
    store, found = Store(tmp_path), search()

    def change(i: int, s: int, r: Record) -> Record:
        return dataclasses.replace(r, status="diverged", reason="nan") if (i, s) == (1, 1) else r

    fill(store, found, change)
    with caplog.at_level(logging.WARNING):
        choice = found.choose_and_store(store)
    assert choice is not None
    assert choice.overrides == {"training.lr": 1e-3}
    assert '{"training.lr":0.005} is excluded (diverged, done)' in caplog.text
    everything = Store(tmp_path / "all")
    fill(everything, found, lambda i, s, r: dataclasses.replace(r, status="diverged", reason="nan"))
    nothing = found.choose(everything)
    assert nothing is not None
    assert nothing.overrides is None


def test_an_unfinished_search_has_no_choice_and_a_stored_one_outlives_its_records(tmp_path: Path) -> None:
    """Waiting until every cell has a record; afterwards the stored outcome is enough."""
    store, found = Store(tmp_path), search()
    assert found.choose(store) is None
    fill(store, found)
    settled = found.choose_and_store(store)
    assert settled is not None
    stored = store.path / "searches" / f"{found.digest}.json"
    assert json.loads(stored.read_text())["overrides"] == {"training.lr": 5e-3}
    store.record_path(found.cells[0].key).unlink()
    again = found.choose(store)
    assert again is not None
    assert again.overrides == settled.overrides
    stored.unlink()
    assert found.choose(store) is None


def test_the_digest_follows_from_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another grid, or other code, is another search."""
    digest = search().digest
    assert search().digest == digest
    assert search(RATES[:2]).digest != digest
    monkeypatch.setenv("FAKE_VERSION", "2")
    assert search().digest != digest


def test_records_must_be_whole() -> None:
    """A record without validation items has no score."""
    planned: Any = search().cells[0]
    record = fake_cells.make_record(planned.cell, validation_matrix=[])
    assert record.validation_average_performance() != record.validation_average_performance()


POINTS = expand_grid({"training.lr": [1e-3, 5e-3, 1e-2], "backbone.dropout": [0.0, 0.25, 0.5]})


def test_trials_are_drawn_without_replacement_and_nested() -> None:
    """The same draw every time; a longer search begins with the draws of a shorter one; other methods have draws of their own."""
    drawn = draw_trials(POINTS, 6, "toy/task-il@begin-1", "ewc", None)
    assert drawn == draw_trials(POINTS, 6, "toy/task-il@begin-1", "ewc", None)
    assert drawn[:3] == draw_trials(POINTS, 3, "toy/task-il@begin-1", "ewc", None)
    assert len({str(point) for point in drawn}) == 6
    assert all(point in POINTS for point in drawn)
    assert any(draw_trials(POINTS, 6, "toy/task-il@begin-1", method, None) != drawn for method in ("mas", "twp", "lwf"))
    assert draw_trials(POINTS, None, "ewc") == POINTS


def test_every_point_is_drawn_equally_often() -> None:
    """Over 900 names, each of nine points is the first draw about 100 times (binomial, five standard deviations)."""
    counts = [0] * len(POINTS)
    for n in range(900):
        counts[POINTS.index(draw_trials(POINTS, 1, f"scenario {n}")[0])] += 1
    assert all(abs(count - 100) < 48 for count in counts)


def test_a_grid_with_fewer_points_than_trials_is_refused() -> None:
    """Fewer trials for one method would not be equal trials."""
    with pytest.raises(UsageError, match=r"trials = 10, but its grid has 9 points: .*lower search.trials"):
        draw_trials(POINTS, 10, "ewc")


# --- ranges -----------------------------------------------------------------------------------------------------------------------

SPACE: dict[str, Any] = {
    "training.lr": Range("log", 1e-4, 1e-1),
    "backbone.dropout": [0.0, 0.25, 0.5],
    "method.items": Range("int", 10, 500),
}


@pytest.mark.parametrize(
    ("kind", "bounds", "values"),
    [
        ("float", (0.0, 0.5), [0.0, 0.25, 0.5]),
        ("float", (-1.0, 1000.0), [-1.0, 500.0, 1000.0]),  # in steps of 1
        ("log", (1e-4, 1e-2), [1e-4, 1e-3, 1e-2]),
        ("log", (2.0, 3.0), [2.0, 2.449, 3.0]),  # the root of 6 in four digits
        ("int", (1, 3), [1, 2, 3]),
        ("log-int", (1, 4), [1, 2, 4]),  # 0.5 · 9^0.5 = 1.5 is rounded to the even number
    ],
)
def test_the_ends_and_the_middle_of_a_range(kind: str, bounds: tuple[float, float], values: list[float]) -> None:
    drawn = [Range(kind, *bounds).at(share) for share in (0.0, 0.5, 1 - 2**-52)]
    assert drawn == values
    assert {type(value) for value in drawn} == {int if kind.endswith("int") else float}


@example("int", 1, 1, math.nextafter(1.0, 0.0))
@given(st.sampled_from(["float", "int", "log", "log-int"]), st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0, 1, exclude_max=True))
def test_values_are_within_their_range(kind: str, low: int, width: int, share: float) -> None:
    assert low <= Range(kind, low, low + width).at(share) <= low + width


def test_every_whole_number_of_a_range_is_as_likely() -> None:
    shares = [n / 600 for n in range(600)]
    assert [sum(Range("int", 5, 7).at(share) == value for share in shares) for value in (5, 6, 7)] == [200, 200, 200]


@pytest.mark.parametrize(
    ("given_", "problem"),
    [
        ({}, "expected one of float, int, log, log-int with two bounds, as in"),
        ({"log": [1, 2], "int": [1, 2]}, "expected one of float"),
        ({"lgo": [1, 2]}, "unknown range 'lgo': did you mean log"),
        ({"normal": [1, 2]}, "unknown range 'normal': expected one of float"),
        ({"log": [1e-3]}, r"log: expected two numbers, the lower and the upper bound \(given: \[0.001\]\)"),
        ({"log": [True, 2]}, "log: expected two numbers"),
        ({"int": [1, 2.5]}, "int: expected two whole numbers"),
        ({"float": ["a", 1]}, "float: expected two numbers"),
        ({"float": [2.0, 1.0]}, "float: expected a lower bound below the upper bound"),
        ({"float": [0.0, float("nan")]}, "below the upper bound"),
        ({"int": [0, 10**400]}, r"both at most 2\^53"),
        ({"log": [0.0, 1.0]}, "log: expected bounds above 0 .*; use float for these"),
        ({"log-int": [0, 8]}, "log-int: expected bounds above 0 .*; use int for these"),
    ],
)
def test_what_is_no_range_says_what_is(given_: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_range(given_)


@pytest.mark.parametrize("draw", ["sobol", "random"])
def test_points_of_ranges_are_nested_and_differ(draw: Sequencing) -> None:
    """The same draw every time; a longer search begins with the draws of a shorter one; other methods have draws of their own."""
    drawn = draw_points(SPACE, 12, draw, "toy/task-il@begin-1", "ewc", None)
    assert drawn == draw_points(SPACE, 12, draw, "toy/task-il@begin-1", "ewc", None)
    assert drawn[:5] == draw_points(SPACE, 5, draw, "toy/task-il@begin-1", "ewc", None)
    assert drawn != draw_points(SPACE, 12, draw, "toy/task-il@begin-1", "mas", None)
    assert len({str(point) for point in drawn}) == 12
    assert {point["backbone.dropout"] for point in drawn} == {0.0, 0.25, 0.5}


def test_a_draw_is_the_same_on_every_machine() -> None:
    """Keys of stored cells hold these values."""
    assert [draw_points(SPACE, 2, draw, "toy/task-il@begin-1", "ewc", None)[1] for draw in ("sobol", "random")] == [
        {"training.lr": 0.01074, "backbone.dropout": 0.0, "method.items": 314},
        {"training.lr": 0.02213, "backbone.dropout": 0.25, "method.items": 321},
    ]


def test_a_sobol_sequence_fills_a_range_evenly() -> None:
    """Sixteen points of one range: one in each sixteenth, wherever the shift is; random ones leave gaps."""
    space = {"x": Range("float", 0.0, 16.0)}
    for method in ("ewc", "mas", "twp"):
        gaps = []
        for draw in ("sobol", "random"):
            ordered = sorted(point["x"] for point in draw_points(space, 16, draw, method))  # type: ignore[arg-type]
            gaps.append(max(b - a for a, b in zip(ordered, [*ordered[1:], ordered[0] + 16.0], strict=True)))
        assert gaps[0] == pytest.approx(1.0, abs=2e-2)
        assert gaps[1] > 1.5


def test_points_that_are_one_trial_are_drawn_once() -> None:
    """A space with fewer different points than trials is refused: fewer trials for one method would not be equal trials."""
    small: dict[str, Any] = {"a": Range("int", 1, 2), "b": ["x", "y"]}
    assert len(draw_points(small, 4, "sobol")) == 4
    with pytest.raises(UsageError, match=r"trials = 5, but 320 draws from its ranges gave 4 points: .* widen its ranges or lower"):
        draw_points(small, 5, "sobol")
    with pytest.raises(UsageError, match="gave 2 points"):
        draw_points(small, 3, "random", same=lambda point: str(point["a"]))


def test_the_outcome_says_how_points_were_drawn(tmp_path: Path) -> None:
    store, found = Store(tmp_path), dataclasses.replace(search(), drawn="sobol")
    fill(store, found)
    choice, listed = found.choose(store), search().choose(store)
    assert choice is not None
    assert listed is not None
    assert choice.outcome == listed.outcome | {"drawn": "sobol"}


@pytest.mark.parametrize(
    ("text", "problem"), [("first-tasks(1)", "at least 2 tasks: nothing can be forgotten"), ("first", "expected"), ("", "expected")]
)
def test_scopes_that_are_refused(text: str, problem: str) -> None:
    """One task makes penalties and memories without effect; anything else is a slip."""
    with pytest.raises(ValueError, match=problem):
        parse_scope(text)


def test_a_scope_sees_its_tasks_alone(tmp_path: Path) -> None:
    """By hand: after task 2 the candidates have 0.5, 0.625 and 0.75 over the first two tasks; the last row would choose the first.

    What comes later, in rows or columns, does not matter.
    """
    chosen = []
    for n, later in enumerate((0.125, 0.875)):
        store, found = Store(tmp_path / str(n)), dataclasses.replace(search(), scope=parse_scope("first-tasks(2)"))
        after_two = [[0.5, 0.5], [0.5, 0.75], [1.0, 0.5]]

        def change(i: int, s: int, r: Record, later: float = later, after_two: list[list[float]] = after_two) -> Record:
            validation = [[None] * 3, [0.25, None, None], [*after_two[i], later], [1.0 - i * later / 4] * 3]
            return dataclasses.replace(r, matrix=[[0.5] * 3] * 4, tasks=(), per_class=(), validation_matrix=validation)

        fill(store, found, change)
        choice = found.choose_and_store(store)
        assert choice is not None
        assert [row["mean"] for row in choice.outcome["candidates"]] == [0.5, 0.625, 0.75]
        assert (choice.outcome["scope"], choice.outcome["trials"], choice.outcome["points"]) == ("first-tasks(2)", 3, 3)
        assert "first 2 tasks" in choice.outcome["criterion"]
        chosen.append(choice.overrides)
    assert chosen == [{"training.lr": 1e-2}] * 2


def test_a_scope_of_all_tasks_is_refused(tmp_path: Path) -> None:
    """The toy stream has two tasks: none is left that the search has not seen."""
    store, found = Store(tmp_path), dataclasses.replace(search(), scope=Scope(2))
    fill(store, found)
    with pytest.raises(UsageError, match=r"first-tasks\(2\) leaves no unseen task in a stream of 2 tasks"):
        found.choose(store)


def test_without_a_scope_the_preset_decides() -> None:
    assert scope_of("first-tasks(3)", "all") == Scope(3)
    assert scope_of("all", "first-tasks(2)") == Scope()
    assert scope_of(None, "all").within(2) == Scope(asked=False)
    own = scope_of(None, "first-tasks(2)")
    assert (own.tasks, str(own), own.asked) == (2, "first-tasks(2)", False)
    assert own.within(3) is own
    assert own.within(None) is own
    assert own.within(2) == Scope()  # nobody asked for it: a stream of two tasks is searched as a whole
    with pytest.raises(UsageError, match="leaves no unseen task"):
        Scope(2).within(2)


def test_the_outcome_says_what_a_short_stream_made_of_the_presets_scope(tmp_path: Path) -> None:
    store, found = Store(tmp_path), dataclasses.replace(search(), scope=scope_of(None, "first-tasks(2)"))
    fill(store, found)
    choice, whole = found.choose(store), search().choose(store)
    assert choice is not None
    assert whole is not None
    assert choice.outcome["scope"] == "all"
    assert choice.outcome["criterion"] == whole.outcome["criterion"]
    assert [row["mean"] for row in choice.outcome["candidates"]] == [row["mean"] for row in whole.outcome["candidates"]]


def test_a_task_free_stream_is_searched_as_a_whole() -> None:
    parse_scope("all").refuse_task_free()
    with pytest.raises(
        UsageError, match=r"first-tasks\(2\) cannot be used with a task-free stream, which is validated only after the last step"
    ):
        parse_scope("first-tasks(2)").refuse_task_free()


def test_a_scope_is_part_of_the_outcomes_name() -> None:
    """Outcomes of searches over all tasks keep their names."""
    found = search()
    grid = [(c.overrides, [p.key for p in c.cells]) for c in found.candidates]
    assert found.digest == search_digest(found.scenario, found.method, found.backbone, grid)
    assert dataclasses.replace(found, scope=Scope(2)).digest != found.digest


def test_shared_seeds_in_words() -> None:
    """All three axes of a repetition are shared, or it is another one."""

    def seeds(*places: tuple[int, int, int]) -> list[dict[str, int]]:
        return [dict(zip(("order", "split", "init"), place, strict=True)) for place in places]

    searched, grid = seeds((0, 0, 0), (10, 0, 1), (2, 0, 0)), seeds((10, 0, 1), (2, 0, 0), (2, 0, 0), (0, 0, 1))
    assert shared_seeds(searched, grid) == ["2/0/0", "10/0/1"]
    assert overlap_text(["2/0/0", "10/0/1"], max_names=1).startswith(
        "The search used seeds of the grid (order/split/init 2/0/0 and 1 more), so "
    )
    assert overlap_text(shared_seeds(searched, seeds((0, 1, 0)))) == ""
