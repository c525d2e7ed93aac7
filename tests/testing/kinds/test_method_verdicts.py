"""Verdicts on runs of a method: made-up outcomes on both sides of every bound, with what is said of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.judge.session import Refused
from cglsuite.testing.kinds import methods


def state(**more: Any) -> Any:
    given = {"charged": 0, "memory": 0, "beside": 100, "model": 1000, "trained": 10, "copied": 0, "oversized": 0, "stuffed": 0} | more
    given = {"items": 0, "extras": 0, "row": 0, "loose": 0} | given
    return SimpleNamespace(**({"digest": "d", "carried": given["beside"] + given["model"]} | given))


def outcome(**more: Any) -> Any:
    notes = {
        "random": True,
        "plain": False,
        "leads_to": None,
        "replaced": [],
        "settings": [],
        "changed": [],
        "acts": [],
        "holds": "",
        "kept": [],
    }
    given = {"matrix": {0: [0.5]}, "answers": {}, "states": [state()], "losses": [[1.0]], "notes": notes | more.pop("notes", {})}
    return SimpleNamespace(**(given | more))


def trial(first: Any, again: Any = None, case: Any = None, small: Any = None, small_run: Any = None) -> Any:
    parts = list[Any]()
    return SimpleNamespace(first=first, again=again or first, case=case, small=small, small_run=small_run, before={}, parts=parts)


def whole_trial(first: Any, case: Any) -> Any:
    """A trial that runs its own parts."""
    return methods._Trial(case=case, first=first, again=first, before={})


def message(check: Any, one: Any) -> str:
    """What a check says of a trial; empty where it holds."""
    try:
        check(one)
    except CheckFailed as failed:
        return str(failed) if failed.fix else "a failure without a fix"
    return ""


# --- learning ----------------------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A case whose runs end somehow."""

    seed: int = 5
    hyperparameters: tuple[Any, ...] = ()

    def run_one(self) -> Any:
        return outcome()


class Stream(SimpleNamespace):
    def __len__(self) -> int:
        return int(self.tasks)


def learnt(matrix: dict[int, list[float]], guesses: list[float], monkeypatch: pytest.MonkeyPatch) -> Any:
    stream = Stream(spec=SimpleNamespace(performance="micro"), tasks=len(guesses))
    monkeypatch.setattr(methods, "chance", lambda given: guesses)
    case: Any = SimpleNamespace(stream=lambda cell: (stream, None), cell=lambda: None)
    return methods._LearningCheck.of(case, outcome(matrix=matrix))


def test_what_a_method_has_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two tasks with chance 1/2 and 1/4: the mean of what is reached right after each, and a quarter of the way from chance to 1."""
    one = learnt({0: [0.5, 0.25], 1: [0.9, 0.1], 2: [0.2, 0.3]}, [0.5, 0.25], monkeypatch)
    assert (one.mean, one.guess) == (pytest.approx(0.6), pytest.approx(0.375))
    assert one.needed == pytest.approx(0.375 + 0.625 / 4)
    assert one.tasks == [True, False]  # 0.9 of 0.625, 0.3 of 0.4375
    assert one.enough


def test_a_task_without_test_items_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    one = learnt({0: [0.5, 0.25], 1: [0.75, 0.1], 2: [0.2, math.nan]}, [0.5, 0.25], monkeypatch)
    assert (one.mean, one.guess, len(one.tasks)) == (0.75, 0.5, 1)
    none = learnt({0: [0.5], 1: [math.nan]}, [0.5], monkeypatch)
    assert (none.mean, none.guess, none.tasks) == (0.0, 0.0, [])


@pytest.mark.parametrize(("means", "fails"), [((0.6,), False), ((0.4, 0.7, 0.7), False), ((0.4, 0.6, 0.8), False), ((0.4, 0.6, 0.7), True)])
def test_one_unlucky_draw_is_not_conclusive(means: tuple[float, ...], fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two more are drawn with other seeds, and the means over all three are compared: 0.6 is needed."""
    seeds: list[int] = []

    def of(case: Any, run: Any) -> Any:
        seeds.append(case.seed)
        mean = means[len(seeds) - 1]
        return methods._LearningCheck(mean=mean, guess=0.25, needed=0.6, tasks=[False])

    monkeypatch.setattr(methods._LearningCheck, "of", of)
    said = message(methods._learns, trial(outcome(), case=Case()))
    assert seeds == ([5] if len(means) == 1 else [5, 7, 9])
    expected = "mean performance right after training on a task is 0.567 (chance is 0.250); expected at least 0.600"
    assert said == (expected if fails else "")


ELSEWHERE = "under another hash seed (PYTHONHASHSEED), with other modules, variables and another parent process"


# --- runs that must be equal ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"losses": [[1.0], [2.5]]}, "different losses in task 2"),
        ({"states": [state(), state(digest="e")]}, "a different state after task 2"),
        ({"states": [state(digest="e"), state()], "losses": [[1.0], [2.5]]}, "a different state after task 1"),
        ({"answers": {0: "a", 1: "x", 2: "x"}}, "a different prediction after task 1"),
        ({"answers": {3: "z"}}, ""),
        ({"states": [state()], "losses": [[1.0]]}, ""),
    ],
)
def test_the_first_difference_between_two_runs(change: dict[str, Any], said: str) -> None:
    """Over what both have: a run that was stopped early is compared with the beginning of the other."""
    whole: dict[str, Any] = {"states": [state(), state()], "losses": [[1.0], [2.0]], "answers": {0: "a", 1: "b", 2: "c"}}
    assert methods._difference(outcome(**whole), outcome(**(whole | change))) == said


@pytest.mark.parametrize(
    ("random", "again", "same", "other", "elsewhere", "said"),
    [
        (False, 1.0, 1.0, 1.0, 1.0, "the run changes global random states"),
        (True, 1.0, 9.0, 9.0, 1.0, ""),
        (True, 1.0, 9.0, 9.0, 2.0, f"{ELSEWHERE}, it gives different losses in task 1"),
        (True, 2.0, 3.0, 1.0, 9.0, "a second run gives different losses in task 1"),
        (True, 2.0, 1.0, 3.0, 9.0, "with other hidden labels in the process, it gives different losses in task 1"),
        (True, 2.0, 1.0, 1.0, 9.0, "a second run in the same process gives different losses in task 1"),
    ],
)
def test_why_a_second_run_differs(random: bool, again: float, same: float, other: float, elsewhere: float, said: str) -> None:
    """Told apart by a run in a fresh process with the same decoys, one with others, and one task under another hash seed."""
    runs = {(0, None, False): same, (1, None, False): other, (0, 1, True): elsewhere}
    case = SimpleNamespace(run_one=lambda turn=0, until=None, elsewhere=False: outcome(losses=[[runs[turn, until, elsewhere]]]))
    one = trial(outcome(notes={"random": random}), outcome(losses=[[again]]), case)
    assert message(methods._repeatable, one) == said


@pytest.mark.parametrize(
    ("at", "change", "said"),
    [
        (0, {}, ""),
        (1, {"losses": [[9.0]]}, "from the state after task 1 in another process gives different losses"),
        (2, {"states": [state(digest="x")]}, "from the state after task 2 in another process gives a different state"),
        (2, {"answers": {3: "x"}}, "from the state after task 2 in another process gives different predictions"),
        (2, {"answers": {2: "x"}}, ""),  # before the state that it went on from
    ],
)
def test_a_run_that_goes_on_from_a_state(at: int, change: dict[str, Any], said: str) -> None:
    """From every state but the last, one task further, with decoys of its own."""
    first = outcome(
        matrix={0: [0.5], 1: [0.5], 2: [0.5], 3: [0.5]},
        states=[state(digest=f"d{k}") for k in (1, 2, 3)],
        losses=[[1.0], [2.0], [3.0]],
        answers={0: "a", 1: "b", 2: "c", 3: "d"},
    )
    asked: list[tuple[int, int, int | None, bool]] = []

    def run_one(*, turn: int, resume: tuple[int, Any], until: int | None, elsewhere: bool) -> Any:
        k, given = resume
        assert given is first.states[k - 1]
        asked.append((turn, k, until, elsewhere))
        part = outcome(states=[first.states[k]], losses=[first.losses[k]], answers={k + 1: first.answers[k + 1]})
        return SimpleNamespace(**(vars(part) | (change if k == at else {})))

    one = whole_trial(first, SimpleNamespace(run_one=run_one, scenario="testing-nodes/task-il@testing-1"))
    said_of_it = message(methods._resumable, one)
    assert said_of_it == (f"a run resumed {said}" if said else "")
    elsewhere = [(2, 1, 1, True), (3, 2, 1, True)][: at if said else 2]
    assert asked == [*elsewhere, *([(at + 1, at, 1, False)] if said else [])]


@pytest.mark.parametrize("fails", [False, True])
def test_a_part_that_differs_elsewhere_alone_is_resumable_and_not_repeatable(fails: bool) -> None:
    """It is run once more here, which tells what a state lacks from what a process has."""
    first = outcome(matrix={0: [0.5], 1: [0.5], 2: [0.5]}, states=[state(), state()], losses=[[1.0], [2.0]])

    def run_one(*, resume: Any = None, elsewhere: bool = False, **options: Any) -> Any:
        if resume is None:
            return outcome(states=first.states[:1], losses=first.losses[:1])
        if elsewhere and fails:
            raise CheckFailed("method 'mine' fails", "mend it")
        return outcome(states=first.states[1:], losses=[[9.0]] if elsewhere else first.losses[1:])

    one = whole_trial(first, SimpleNamespace(run_one=run_one, scenario="testing-nodes/task-il@testing-1"))
    assert message(methods._resumable, one) == ""
    said = "method 'mine' fails" if fails else "a run resumed from the state after task 1 in another process gives different losses"
    assert message(methods._repeatable, one) == f"{ELSEWHERE}, {said}"


def test_the_last_evaluation_of_a_task_free_stream_has_no_state() -> None:
    """From the last state to the end only predictions are compared, and it is not stopped."""
    first = outcome(matrix={0: [0.5], 1: [0.5], 2: [0.5]}, states=[state()], losses=[[1.0]], answers={2: "c"})
    asked: list[int | None] = []

    def run_one(*, turn: int, resume: tuple[int, Any], until: int | None, elsewhere: bool) -> Any:
        asked.append(until)
        return outcome(states=[], losses=[], answers={2: "x"})

    case = SimpleNamespace(run_one=run_one, scenario="testing-nodes/task-free@testing-1")
    said = "a run resumed from the state after evaluation 1 in another process gives different predictions"
    assert (message(methods._resumable, whole_trial(first, case)), asked) == (said, [None, None])


# --- what it holds and does ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "notes", "said"),
    [
        (methods._out_of_reach, {"leads_to": "<Mine>.x"}, "hidden labels can be reached from the method through <Mine>.x"),
        (methods._code_unchanged, {"replaced": ["a", "b", "c", "d"], "settings": ["dtype"]}, "the method replaces a, b, c"),
        (methods._code_unchanged, {"settings": ["dtype", "cwd"]}, "the method changes global settings: dtype, cwd"),
        (methods._inputs_unchanged, {"changed": ["x", "y"]}, "the method changes tensors of a view or of the data in place: x, y"),
        (methods._acts, {"acts": list("abcdef")}, "a; b; c; d; e"),
        (methods._within_budget, {"holds": "a dict"}, "after the last task, the method still holds items outside its memory (a dict)"),
        (methods._within_budget, {"kept": ["TaskView", "Batch"]}, "after a task has ended, its TaskView and Batch are still referenced"),
    ],
)
def test_what_was_noted_is_told(check: Any, notes: dict[str, Any], said: str) -> None:
    case = SimpleNamespace(catalogue=SimpleNamespace(method=lambda name: SimpleNamespace(needs=())), method="mine", folder_snapshot=dict)
    assert message(check, trial(outcome(notes=notes), case=case)) == said
    assert message(check, trial(outcome(), case=case)) == ""


def within(first: list[Any], small: Any = None, small_run: Any = None, needs: tuple[str, ...] = (), **notes: Any) -> str:
    case = SimpleNamespace(catalogue=SimpleNamespace(method=lambda name: SimpleNamespace(needs=needs)), method="mine")
    return message(methods._within_budget, trial(outcome(states=first, notes=notes), case=case, small=small, small_run=small_run))


def test_a_method_that_needs_past_views_may_keep_them() -> None:
    assert within([state()], needs=("past-views",), kept=["TaskView"]) == ""


@pytest.mark.parametrize(
    ("one", "said"),
    [
        ({"copied": 2}, ""),
        ({"copied": 3}, "the state outside the memory contains features of training items (at least 3 items)"),
        ({"oversized": 1}, "items in memory contain 1 additional values"),
        ({"stuffed": 2}, "the extras of items in memory contain the features of 2 more training items than there are items"),
    ],
)
def test_items_are_kept_in_the_memory_and_nowhere_else(one: dict[str, int], said: str) -> None:
    """In any state of the run or of those under a small budget."""
    assert within([state(), state(**one), state()]) == said
    assert within([state()], [[state()], [state(**one), state()]]) == said


def test_a_small_budget_is_kept_at_every_state() -> None:
    over = [[state(charged=12)], [state(charged=13), state()]]
    assert within([state()], over) == "the method stored 13 items with a budget of 12"
    assert within([state()], over[:1] * 2) == ""


@pytest.mark.parametrize(("extra", "four_extra", "fails"), [(0, 9, False), (1, 0, False), (1, 1, True)])
def test_a_state_may_grow_with_the_stream_only_once(extra: int, four_extra: int, fails: bool) -> None:
    """Twice as many items may bring a quarter of a byte each; one byte more is examined again with four times as many."""
    runs: list[int] = []
    one, two = state(trained=40), state(trained=80, beside=100 + 10 + extra)
    four = state(trained=160, beside=two.beside + 20 + four_extra)

    def small_run(times: int) -> list[Any]:
        runs.append(times)
        return [state(), four]

    said = within([state()], [[state(), one], [state(), two]], small_run)
    assert runs == ([4] if extra else [])
    expected = f"the state outside the memory grows with the training items: {one.carried}, {two.carried} and {four.carried} bytes for "
    expected += "40, 80 and 160 of them; expected at most 0.25 bytes per item"
    assert said == (expected if fails else "")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([(6, 100), (12, 100), (12, 100)], ""),  # more items, each with as much
        ([(6, 100), (6, 110), (6, 115)], "the extra of an item in memory grows with the training items: 600, 660 and 690 bytes"),
        ([(6, 100), (6, 110), (6, 110)], ""),  # once
        ([(1, 40), (1, 80), (1, 160)], "the extra of an item in memory grows with the training items: 40, 80 and 160 bytes"),
    ],
)
def test_the_extra_of_an_item_does_not_grow_with_the_stream(sizes: list[tuple[int, int]], said: str) -> None:
    states = [state(trained=40 * 2**k, items=n, extras=n * row, row=row) for k, (n, row) in enumerate(sizes)]
    found = within([state()], [[states[0]], [states[1]]], lambda times: [states[2]])
    assert found.startswith(said)
    assert bool(found) == bool(said)


@pytest.mark.parametrize(("loose", "fails"), [((0, 0, 0), False), ((9, 19, 39), False), ((9, 20, 40), False), ((9, 20, 41), True)])
def test_free_surroundings_do_not_grow_with_the_stream(loose: tuple[int, int, int], fails: bool) -> None:
    """A quarter of a node per item is allowed."""
    one, two, four = (state(trained=40 * 2**k, loose=n) for k, n in enumerate(loose))
    said = within([state()], [[one], [two]], lambda times: [four])
    assert bool(said) == fails
    assert ("whose free surroundings they are grows with the training items: 9, 20 and 41 nodes" in said) == fails


@pytest.mark.parametrize(
    ("written", "named"),
    [(0, []), (63, []), (100, ["/t/new"]), (300, ["/t/more", "/t/new"]), (200, ["/t/more"]), (101, []), (500, [])],
)
def test_a_file_that_is_written_once_has_the_bytes_that_the_first_run_wrote(written: int, named: list[str]) -> None:
    """One new file of exactly so many bytes, or all of them together; a file that was there, a folder and few bytes do not count."""
    before = {"/t": {"/t/old": (1, 400, 1, 1)}}
    now = {
        "/t": {"/t/old": (1, 500, 2, 2), "/t/new": (2, 100, 2, 2), "/t/more": (3, 200, 2, 2), "/t/folder": (1,), "/t/few": (4, 63, 2, 2)}
    }
    if written == 300:
        del now["/t"]["/t/few"]
    found = {"/t": [path for path in now["/t"] if now["/t"][path] != before["/t"].get(path)]}
    assert sorted(methods._as_large_as(written, before, now, found)) == named


def test_sizes_in_words() -> None:
    """Growth is per task after the first."""
    states = [state(beside=100), state(beside=400), state(beside=180, charged=7, memory=560)]
    said = "memory 7 items, 560 bytes; outside it 180 bytes of state (+40 per task) and 1000 of the model"
    assert methods._carried_sizes(states) == said
    assert "(+0 per task)" in methods._carried_sizes(states[:1])


# --- where it is tried -----------------------------------------------------------------------------------------------------------------


def test_few_scenarios_that_cover_all_levels_and_settings() -> None:
    """First the one that covers most, the first of equals."""
    where = {"a": ("NC", "task-il"), "b": ("NC", "class-il"), "c": ("GC", "class-il"), "d": ("LC", "task-il")}
    catalogue: Any = SimpleNamespace(scenario=lambda s: SimpleNamespace(level=where[s][0], setting=where[s][1]))
    assert methods.quick_scenarios(catalogue, list(where)) == ["a", "c", "d"]
    assert methods.quick_scenarios(catalogue, ["b"]) == ["b"]
    assert methods.quick_scenarios(catalogue, []) == []


@pytest.mark.parametrize(
    ("levels", "settings", "category", "said"),
    [
        (("NC",), ("task-il",), "Rep", ""),
        ((), ("task-il",), "Rep", "the method does not declare both a level and a setting"),
        (("NC",), (), "Rep", "the method does not declare both a level and a setting"),
        (("NC",), ("task-il",), " rep", "unknown category ' rep'; expected one of"),
        (("NC",), ("task-il",), "regularization", "unknown category 'regularization'; expected one of"),
        (("NC",), ("task-il",), "prompts of my own", ""),
    ],
)
def test_declarations(levels: tuple[str, ...], settings: tuple[str, ...], category: str, said: str) -> None:
    """A category of one's own is none of the suite's in another spelling."""
    spec: Any = SimpleNamespace(levels=levels, settings=settings, category=category)
    found = message(methods._declared, spec)
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_a_method_that_refuses_a_small_budget_is_not_judged_under_one() -> None:
    def refuse(**asked: Any) -> Any:
        raise Refused("no budget")

    one = methods._Trial(case=SimpleNamespace(run_one=refuse), first=outcome(), again=outcome(), before={})  # type: ignore[arg-type]
    assert one.small is None
    asked: list[dict[str, Any]] = []
    two = methods._Trial(
        case=SimpleNamespace(run_one=lambda **given: asked.append(given) or outcome()),  # type: ignore[arg-type, func-returns-value]
        first=outcome(),
        again=outcome(),
        before={},
    )
    assert two.small is not None
    assert [(one["per_class"], one["training__epochs"], one["scenario__memory_budget"]) for one in asked] == [
        (24, 1, 12),
        (48, 1, 12),
    ]


@pytest.mark.parametrize(("gpu", "differs"), [([1.0, 0.5005], False), ([1.0, 0.51], True), ([1.01, 0.5], True)])
def test_losses_on_both_devices(gpu: list[float], differs: bool) -> None:
    """Within a thousandth."""
    case: Any = SimpleNamespace(
        method_sandbox=SimpleNamespace(agree=lambda *_: {"cpu": [1.0, 0.5], "cuda": gpu}), catalogue=None, scenario="s"
    )
    said = message(lambda given: methods._devices_agree(given, case), None)
    assert bool(said) is differs
    assert torch.cuda.is_available() or list(methods._of_devices(None, [case])) == []  # type: ignore[arg-type]
