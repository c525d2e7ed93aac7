"""Runs over tiny streams: matrices against brute force, resumption and shared prefixes to the bit, leaks, budgets, randomness."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_streams import BusyMethod, KeptCheckpoints, assert_same_run, node_numbers, tiny_data, tiny_model, tiny_runner, tiny_stream
from torch import Tensor
from torch.nn import functional

from cglsuite import Method, Seeds
from cglsuite.base.errors import BudgetError, DivergenceError, LeakError, PluginError
from cglsuite.graphs.splits.partition import per_class_split
from cglsuite.learning import Phase
from cglsuite.learning.reproducibility.randomness import generator, scope
from cglsuite.learning.result import RunResult
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.problems import Problem
from cglsuite.streams import Batch, TaskStream, TaskView

POLICIES = ("none", "inter-task", "full")
DATA = tiny_data()
ONCE = {"epochs": 1}


def run(stream: TaskStream, method: Any = Method, checkpoints: Any = None, *, keep: int = 0, **options: Any) -> RunResult:
    return tiny_runner(stream, method, **options).run(checkpoints, keep=keep)


# --- what is measured -------------------------------------------------------------------------------------------------------------


class Numbered(Method):
    """Answers by the number of the node: class ``number % 6`` before training, after k tasks ``(number + k) % 6``."""

    state = ("learnt",)

    def setup(self) -> None:
        self.learnt = 0

    def after_task(self, view: TaskView) -> None:
        self.learnt += 1

    def predict(self, query: Batch) -> Tensor:
        numbers = torch.tensor(node_numbers(query.graph, query.ids))
        # A preference order, so that an answer that is not allowed gives way to the next: (c - number - k) mod 6, the least wins.
        return -((torch.arange(6) - numbers[:, None] - self.learnt) % 6).float()


def expected_accuracy(node_set: list[int], learnt: int, allowed: Callable[[int], list[int]], rule: str) -> float:
    answers = {n: min(allowed(n), key=lambda c: (c - n - learnt) % 6) for n in node_set}
    right = {n: answers[n] == int(DATA.y[n]) for n in node_set}
    if rule == "micro":
        return sum(right.values()) / len(right)
    by_class: dict[int, list[bool]] = {}
    for n in node_set:
        by_class.setdefault(int(DATA.y[n]), []).append(right[n])
    return sum(sum(v) / len(v) for v in by_class.values()) / len(by_class)


@pytest.mark.parametrize("rule", ["micro", "macro"])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", POLICIES)
def test_matrices_equal_brute_force(policy: str, setting: str, rule: str) -> None:
    tasks = [[4, 1], [0, 5], [2, 3]]
    result = run(tiny_stream(DATA, class_order="4,1,0,5,2,3", edge_policy=policy, setting=setting, performance=rule), Numbered)
    split = per_class_split(DATA.y, torch.arange(6), (0.6, 0.2, 0.2), 0)
    for part, matrix in ((2, result.matrix), (1, result.validation_matrix)):
        assert len(matrix) == 4
        for k, row in enumerate(matrix):
            for j, value in enumerate(row):
                if j >= k and (part == 1 or policy != "full"):
                    assert math.isnan(value)
                    continue
                if setting == "task-il" and k > 0:
                    allowed: Callable[[int], list[int]] = lambda n, j=j: sorted(tasks[j])  # type: ignore[misc] # noqa: E731
                else:
                    competing = sorted(sum(tasks[:k], [])) if k else list(range(6))
                    allowed = lambda n, c=competing: c  # type: ignore[misc] # noqa: E731
                node_set = [n for n in range(DATA.n_nodes) if int(DATA.y[n]) in tasks[j] and int(split[n]) == part]
                assert value == pytest.approx(expected_accuracy(node_set, k, allowed, rule), abs=1e-12), (part, k, j)


def test_per_class_is_of_the_last_row() -> None:
    stream = tiny_stream(DATA, class_order="4,1,0,5,2,3", n_tasks=2, edge_policy="none", setting="task-il")
    result = run(stream, Numbered)
    split = per_class_split(DATA.y, torch.tensor([4, 1, 0, 5]), (0.6, 0.2, 0.2), 0)
    for c in range(6):
        mates = {4: [1, 4], 1: [1, 4], 0: [0, 5], 5: [0, 5]}.get(c)
        if mates is None:
            assert math.isnan(result.per_class[c])
            continue
        node_set = [n for n in range(DATA.n_nodes) if int(DATA.y[n]) == c and int(split[n]) == 2]
        assert result.per_class[c] == pytest.approx(expected_accuracy(node_set, 2, lambda n, m=mates: m, "micro"))


def test_the_monitored_value_is_the_validation_loss_of_the_task() -> None:
    """After one epoch: the trained model's loss on the hidden labels, in evaluation mode, among the outputs that compete."""
    stream = tiny_stream(DATA, n_tasks=1, training={"epochs": 1, "monitor": "validation-loss"})
    runner = tiny_runner(stream)
    (curve,) = runner.run().curves
    view = stream.view(0)
    with torch.no_grad():
        logits = runner.method.model.eval()(view.graph)[view.validation.ids]
    labels = DATA.y[node_numbers(view.graph, view.validation.ids)]
    assert curve["monitor"] == [pytest.approx(float(functional.cross_entropy(logits[:, [0, 1]], labels)))]
    assert curve["task"] == 1


def test_curves_have_one_entry_per_epoch_and_task() -> None:
    result = run(tiny_stream(DATA, training={"epochs": 3, "monitor": "validation-loss", "restore_best": True}))
    assert [c["task"] for c in result.curves] == [1, 2, 3]
    for curve in result.curves:
        assert len(curve["loss"]) == len(curve["monitor"]) == 3
        assert curve["best_epoch"] == int(np.argmin(curve["monitor"]))
    assert run(tiny_stream(DATA)).curves[0]["monitor"] == []


def test_phases_share_the_epochs() -> None:
    """10% and 90% of ten epochs, each phase with an optimiser of its own, one curve; the best epoch counts from its begin."""
    seen = []

    class TwoPhases(Method):
        def phases(self, view: TaskView) -> Iterator[Phase]:
            seen.append("one")
            yield Phase(share=0.1)
            seen.append("two")
            yield Phase(share=0.85)
            seen.append("end")

    (curve,) = run(tiny_stream(DATA, n_tasks=1, training={"epochs": 10, "monitor": "validation-loss"}), TwoPhases).curves
    assert seen == ["one", "two", "end"]
    assert len(curve["loss"]) == 1 + 9
    assert curve["best_epoch"] == 9


def test_what_a_result_counts() -> None:
    stream = tiny_stream(DATA)
    result = run(stream, BusyMethod)
    model = tiny_model(stream)()
    assert result.parameters["model"] == sum(p.numel() for p in model.parameters())
    state = sum(v.numel() for v in model.state_dict().values())  # the teacher, with its buffers
    assert result.parameters["method"] == state + 3 * 8
    assert result.memory == {"items": 9, "edges": 0, "bytes": 9 * (24 + 4 * 8), "budget_items": None}
    assert result.trained_tasks == 3
    assert result.resumed_from_task == 0
    assert set(result.timings_s) == {"training", "method", "evaluation", "checkpoints", "framework", "total"}
    assert result.timings_s["total"] == pytest.approx(sum(v for k, v in result.timings_s.items() if k != "total"))
    assert all(v >= 0 for v in result.timings_s.values())
    assert len({f["state"] for f in result.fingerprints}) == 3


def test_progress_is_told_after_every_task() -> None:
    message: list[int] = []
    run(tiny_stream(DATA), on_task=message.append)
    assert message == [0, 1, 2, 3]


def test_training_learns_something() -> None:
    """A model that learnt has the last task's classes apart, far above chance; in class-IL it has forgotten the first."""
    result = run(tiny_stream(tiny_data(per_class=30), training={"epochs": 40}), backbone={"dropout": 0.0, "width": 16})
    assert result.matrix[3][2] > 0.8
    assert result.matrix[1][0] > 0.8 > result.matrix[3][0]


# --- randomness -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_leaves_global_randomness_alone_and_does_not_depend_on_it(policy: str) -> None:
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        before = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
        results.append(run(tiny_stream(DATA, edge_policy=policy), BusyMethod))
        assert torch.equal(torch.get_rng_state(), before[0])
        assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), before[1], strict=True))  # noqa: NPY002
        assert random.getstate() == before[2]
    assert_same_run(*results)
    assert results[0].fingerprints == results[1].fingerprints


def test_the_init_seed_drives_everything_random_in_a_method() -> None:
    one, other = (run(tiny_stream(DATA), BusyMethod, init_seed=s) for s in (0, 1))
    assert one.curves != other.curves
    assert one.fingerprints != other.fingerprints


def test_initial_weights_depend_on_the_init_seed_alone() -> None:
    """One column per global class, drawn once: the same for every order, split and edge policy."""

    def weights(stream: TaskStream, **options: Any) -> list[Tensor]:
        return list(tiny_runner(stream, **options).method.model.state_dict().values())

    reference = weights(tiny_stream(DATA))
    for changes in ({"class_order": "5,4,3,2,1,0"}, {"seeds": Seeds(split=4)}, {"edge_policy": "none"}, {"setting": "task-il"}):
        assert all(torch.equal(a, b) for a, b in zip(weights(tiny_stream(DATA, **changes)), reference, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(weights(tiny_stream(DATA), init_seed=1), reference, strict=True))


def test_generators_depend_on_seed_purpose_and_the_tasks_so_far() -> None:
    drawn: list[list[float]] = []

    class Drawing(Method):
        def after_task(self, view: TaskView) -> None:
            drawn.append([torch.rand((), generator=self.context.generator(p)).item() for p in ("a", "b", "a")])

    run(tiny_stream(DATA), Drawing)
    run(tiny_stream(DATA, class_order="0,1,4,5,2,3"), Drawing)
    run(tiny_stream(DATA), Drawing, init_seed=1)
    assert all(len({a, b, c}) == 3 for a, b, c in drawn), "a purpose goes on from draw to draw"
    assert drawn[3] == drawn[0]  # the same first task
    assert len({row[0] for row in drawn}) == 8


def test_every_draw_has_a_name() -> None:
    """Weights: the init seed alone; learning and predicting: the tasks so far too. Stored results rest on these names."""
    drawn: dict[str, float] = {}
    stream = tiny_stream(DATA, n_tasks=2)

    class Drawing(Method):
        def setup(self) -> None:
            self.moment = 0

        def before_task(self, view: TaskView) -> None:
            drawn[f"learn {view.position}"] = torch.rand(()).item()
            drawn[f"own {view.position}"] = torch.rand((), generator=self.context.generator("x")).item()

        def predict(self, query: Batch) -> Tensor:
            drawn[f"predict {self.moment}"] = torch.rand(()).item()
            self.moment += 1
            return super().predict(query)

    runner = tiny_runner(stream, Drawing, init_seed=5)
    start = [v.clone() for v in runner.method.model.state_dict().values()]
    prefixes = runner.draw_names
    runner.run()

    def named(*name: str) -> float:
        with scope(5, *name):
            return torch.rand(()).item()

    assert drawn == {
        "predict 0": named("predict", prefixes[0]),
        "learn 0": named("learn", prefixes[1]),
        "own 0": torch.rand((), generator=generator(5, "method", "x", prefixes[1])).item(),
        "predict 1": named("predict", prefixes[1]),
        "learn 1": named("learn", prefixes[2]),
        "own 1": torch.rand((), generator=generator(5, "method", "x", prefixes[2])).item(),
        "predict 2": named("predict", prefixes[2]),
    }
    with scope(5, "weights"):
        expected = tiny_model(stream)().state_dict().values()
    assert all(torch.equal(a, b) for a, b in zip(start, expected, strict=True))


# --- resumption -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carry", [False, True], ids=["fresh optimiser", "carried optimiser"])
@pytest.mark.parametrize("method", [Method, BusyMethod])
@pytest.mark.parametrize("policy", POLICIES)
def test_resuming_after_any_task_gives_the_same_to_the_bit(policy: str, method: type[Method], carry: bool) -> None:
    training = {"carry_optimizer": carry, "monitor": "validation-loss", "restore_best": True, "weight_decay": 1e-3}
    kept = KeptCheckpoints()
    whole = run(tiny_stream(DATA, edge_policy=policy, training=training), method, kept, keep=99)
    assert_same_run(run(tiny_stream(DATA, edge_policy=policy, training=training), method), whole)
    assert len(kept.files) == 3
    for learnt, prefix in enumerate(kept.saved, start=1):
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        message: list[int] = []
        resumed = run(tiny_stream(DATA, edge_policy=policy, training=training), method, only, on_task=message.append)
        assert_same_run(resumed, whole)
        assert resumed.fingerprints == whole.fingerprints
        assert (resumed.resumed_from_task, resumed.trained_tasks) == (learnt, 3 - learnt)
        assert message == list(range(learnt, 4))
        assert resumed.parameters == whole.parameters


def test_an_interrupted_run_goes_on_where_it_was() -> None:
    whole = run(tiny_stream(DATA), BusyMethod)
    kept = KeptCheckpoints()

    def stop(learnt: int) -> None:
        if learnt == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tiny_stream(DATA), BusyMethod, kept, on_task=stop)
    resumed = run(tiny_stream(DATA), BusyMethod, kept)
    assert resumed.trained_tasks == 1
    assert_same_run(resumed, whole)


def test_times_add_up_over_interruptions() -> None:
    kept = KeptCheckpoints()
    first = run(tiny_stream(DATA, n_tasks=3), Method, kept, keep=99)
    again = run(tiny_stream(DATA, n_tasks=3), Method, kept)
    assert again.trained_tasks == 0
    last_s = first.timings_s["checkpoints"] - again.timings_s["checkpoints"]
    assert 0 < last_s < first.timings_s["checkpoints"], "a state cannot hold how long it took to save it"
    assert again.timings_s == first.timings_s | {name: pytest.approx(first.timings_s[name] - last_s) for name in ("checkpoints", "total")}


def test_saving_states_is_charged_to_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second for each of three states, all of which the run trained itself."""
    now = [0.0]
    monkeypatch.setattr("cglsuite.learning.clock.perf_counter", lambda: now[0])

    class Slow(KeptCheckpoints):
        def save(self, prefix: str, payload: dict[str, Any]) -> None:
            super().save(prefix, payload)
            now[0] += 1

    result = run(tiny_stream(DATA), Method, Slow())
    assert result.timings_s == {"training": 0, "method": 0, "evaluation": 0, "checkpoints": 3, "framework": 0, "total": 3}
    assert (result.trained_s, result.covered_s) == (3, 0)


def test_only_the_latest_checkpoint_is_kept_unless_asked() -> None:
    latest, every = KeptCheckpoints(), KeptCheckpoints()
    runner = tiny_runner(tiny_stream(DATA))
    runner.run(latest)
    assert list(latest.files) == [runner.prefixes[3]]
    assert latest.saved == runner.prefixes[1:]
    run(tiny_stream(DATA), Method, every, keep=99)
    assert list(every.files) == runner.prefixes[1:]


@pytest.mark.parametrize(("every_s", "due"), [(0.0, [1, 2, 3, 4, 5]), (4.0, [1, 4, 5]), (7.5, [3, 5]), (25.0, [])])
@pytest.mark.parametrize("keep", [0, 1, 3])
@pytest.mark.parametrize("last", [False, True])
def test_states_are_saved_when_enough_work_would_be_lost(
    monkeypatch: pytest.MonkeyPatch, every_s: float, due: list[int], keep: int, last: bool
) -> None:
    """Six tasks that end at 5, 7, 8, 12, 20 and 21 s: those of the shared prefix are saved in any case, and only the latest of the others
    is kept."""
    times, now = [5.0, 2.0, 1.0, 4.0, 8.0, 1.0], [0.0]
    monkeypatch.setattr("cglsuite.learning.runner.monotonic", lambda: now[0])

    class Takes(Method):
        def after_task(self, view: TaskView) -> None:
            now[0] += times[view.position]

    kept = KeptCheckpoints()
    stream = tiny_stream(DATA, training=ONCE, classes_per_task=1, setting="class-il")
    runner = tiny_runner(stream, Takes)
    held = list[list[int]]()

    def look(learnt: int) -> None:
        held.append(sorted(runner.prefixes.index(prefix) for prefix in kept.files))

    runner.on_task = look
    runner.run(kept, keep=keep, last=last, every_s=every_s)
    saved_at, expected = 0.0, list[int]()
    for learnt in range(1, 7):
        ends = sum(times[:learnt])
        if learnt <= keep or (last if learnt == 6 else ends - saved_at >= every_s):
            expected.append(learnt)
            saved_at = ends
    if keep == 0:
        assert expected == due + [6] * last
    assert [runner.prefixes.index(prefix) for prefix in kept.saved] == expected
    for learnt, there in enumerate(held):
        beyond = [k for k in expected if keep < k <= learnt][-1:]
        beyond = [] if learnt == 6 and not last else beyond
        assert there == [k for k in expected if k <= min(keep, learnt)] + beyond, learnt


def test_what_was_not_saved_is_trained_again_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task takes 4 s: of four tasks before the interruption, the first three are saved."""
    now, kept = [0.0], KeptCheckpoints()
    monkeypatch.setattr("cglsuite.learning.runner.monotonic", lambda: now[0])

    def stop(learnt: int) -> None:
        now[0] += 4
        if learnt == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_runner(tiny_stream(DATA, classes_per_task=1), BusyMethod, on_task=stop).run(kept, every_s=10.0)
    runner = tiny_runner(tiny_stream(DATA, classes_per_task=1), BusyMethod)
    resumed = runner.run(kept, every_s=10.0)
    assert resumed.resumed_from_task == 3
    assert_same_run(resumed, run(tiny_stream(DATA, classes_per_task=1), BusyMethod))
    assert list(kept.files) == [runner.prefixes[6]]


@pytest.mark.parametrize("damaged", [(3,), (2, 3), (1, 2, 3), (1, 3)])
def test_a_checkpoint_that_does_not_load_is_passed_over(damaged: tuple[int, ...]) -> None:
    kept = KeptCheckpoints()
    whole = run(tiny_stream(DATA), BusyMethod, kept, keep=99)
    for learnt in damaged:
        prefix = kept.saved[learnt - 1]
        kept.files[prefix] = kept.files[prefix][: len(kept.files[prefix]) // 2]
    resumed = run(tiny_stream(DATA), BusyMethod, kept)
    assert resumed.resumed_from_task == max((k for k in (1, 2, 3) if k not in damaged), default=0)
    assert_same_run(resumed, whole)


def prefixes(stream: TaskStream, **options: Any) -> list[str]:
    return tiny_runner(stream, **options).prefixes


def test_prefix_keys_follow_from_what_was_learnt() -> None:
    reference = prefixes(tiny_stream(DATA))
    assert len(set(reference)) == 4
    later = prefixes(tiny_stream(DATA, class_order="0,1,4,5,2,3"))
    assert later[:2] == reference[:2]
    assert not set(later[2:]) & set(reference)
    for changed in (
        tiny_stream(DATA, n_tasks=2),
        tiny_stream(DATA, memory_budget=7),
        tiny_stream(DATA, seeds=Seeds(split=1)),
        tiny_stream(tiny_data(class_ids=[0, 1, 2, 3, 4, 6])),
    ):
        assert not set(prefixes(changed)[1:]) & set(reference)


# --- shared prefixes --------------------------------------------------------------------------------------------------------------


def orders_of(n: int) -> list[str]:
    return [",".join(f"{2 * t},{2 * t + 1}" for t in order) for order in permutations(range(n))]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("policy", POLICIES)
def test_all_orders_share_their_prefixes(policy: str) -> None:
    """Six orders of three tasks need 3 + 6 + 6 trainings instead of 18, and give what each gives alone."""
    kept, trained = KeptCheckpoints(), 0
    for order in orders_of(3):
        alone = run(tiny_stream(DATA, training=ONCE, class_order=order, edge_policy=policy), BusyMethod)
        shared = run(tiny_stream(DATA, training=ONCE, class_order=order, edge_policy=policy), BusyMethod, kept, keep=99)
        assert_same_run(shared, alone)
        np.testing.assert_array_equal(shared.per_class, alone.per_class)
        trained += shared.trained_tasks
    assert trained == 3 + 6 + 6


@pytest.mark.parametrize("policy", POLICIES)
def test_orders_whose_later_tasks_differ_share_what_they_can(policy: str) -> None:
    """Under `full` the rows of the shared tasks lack the other order's tasks: those are asked again, of the state that was kept."""
    kept = KeptCheckpoints()
    run(tiny_stream(DATA, training=ONCE, class_order="0,1,2,3,4,5", edge_policy=policy), BusyMethod, kept, keep=99)
    order = "0,1,2,4,3,5"
    alone = run(tiny_stream(DATA, training=ONCE, class_order=order, edge_policy=policy), BusyMethod)
    shared = run(tiny_stream(DATA, training=ONCE, class_order=order, edge_policy=policy), BusyMethod, kept, keep=99)
    assert shared.trained_tasks == 2
    assert_same_run(shared, alone)
    assert_same_run(run(tiny_stream(DATA, training=ONCE, class_order=order, edge_policy=policy), BusyMethod, kept), alone)


def test_a_state_that_was_not_kept_is_trained_again() -> None:
    """Two tasks are shared, but of the first only the rows are left, and those lack a task that this order asks."""
    data = tiny_data(n_classes=8)
    kept = KeptCheckpoints()
    run(tiny_stream(data, class_order="0,1,2,3,4,5,6,7"), BusyMethod, kept, keep=99)
    order = "0,1,2,3,4,6,5,7"
    alone = run(tiny_stream(data, class_order=order), BusyMethod)
    del kept.files[kept.saved[0]]
    shared = run(tiny_stream(data, class_order=order), BusyMethod, kept, keep=99)
    assert shared.resumed_from_task == 0
    assert_same_run(shared, alone)


def test_tasks_of_the_same_classes_in_another_order_are_not_shared() -> None:
    """A method may go through the classes of a task in their order."""
    kept = KeptCheckpoints()
    run(tiny_stream(DATA, training=ONCE, class_order="0,1,2,3,4,5"), BusyMethod, kept, keep=99)
    order = "1,0,2,3,4,5"
    shared = run(tiny_stream(DATA, training=ONCE, class_order=order), BusyMethod, kept, keep=99)
    assert shared.trained_tasks == 3
    assert_same_run(shared, run(tiny_stream(DATA, training=ONCE, class_order=order), BusyMethod))


class NoisyNodes(Method):
    """Draws while predicting: numbers for every node of the message graph."""

    def predict(self, query: Batch) -> Tensor:
        return torch.rand(query.graph.n_nodes, 6)[query.ids]


class NoisyItems(Method):
    """Draws while predicting: numbers for every item that is asked."""

    def predict(self, query: Batch) -> Tensor:
        return torch.rand(len(query), 6)


@pytest.mark.parametrize("method", [NoisyNodes, NoisyItems])
@pytest.mark.parametrize("order", ["0,1,4,5,2,3", "0,1,2,4,3,5"])
@pytest.mark.parametrize("policy", POLICIES)
def test_draws_while_predicting_do_not_depend_on_later_tasks(policy: str, order: str, method: type[Method]) -> None:
    kept = KeptCheckpoints()
    run(tiny_stream(DATA, training=ONCE, edge_policy=policy, setting="task-il"), method, kept, keep=99)
    alone = run(tiny_stream(DATA, training=ONCE, class_order=order, edge_policy=policy, setting="task-il"), method)
    shared = run(tiny_stream(DATA, training=ONCE, class_order=order, edge_policy=policy, setting="task-il"), method, kept, keep=99)
    assert shared.trained_tasks == 2
    assert_same_run(shared, alone)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_hash_of_answers_does_not_depend_on_who_trained_the_prefix(policy: str) -> None:
    """A record holds it: the same cell must leave the same record, sharing or not."""
    kept, order = KeptCheckpoints(), "0,1,4,5,2,3"
    run(tiny_stream(DATA, training=ONCE, edge_policy=policy, setting="task-il"), Method, kept, keep=99)
    alone = run(tiny_stream(DATA, training=ONCE, class_order=order, edge_policy=policy, setting="task-il"))
    shared = run(tiny_stream(DATA, training=ONCE, class_order=order, edge_policy=policy, setting="task-il"), Method, kept, keep=99)
    assert shared.trained_tasks == 2
    assert shared.fingerprints == alone.fingerprints


# --- what a method must not do ----------------------------------------------------------------------------------------------------


class Meddling(Method):
    """Changes something while predicting."""

    state = ("kept", "log")

    def setup(self) -> None:
        self.kept, self.log = torch.zeros(2), list[int]()
        self.first = True

    def predict(self, query: Batch) -> Tensor:
        self.meddle(query)
        return super().predict(query)

    def meddle(self, query: Batch) -> None:
        raise NotImplementedError


class Weights(Meddling):
    def meddle(self, query: Batch) -> None:
        next(self.model.parameters()).data.add_(1e-7)


class Statistics(Meddling):
    def meddle(self, query: Batch) -> None:
        self.model.train()
        self.model(query.graph)


class Attribute(Meddling):
    def meddle(self, query: Batch) -> None:
        self.kept += 1


class Log(Meddling):
    def meddle(self, query: Batch) -> None:
        self.log.append(len(query))


class Memory(Meddling):
    def meddle(self, query: Batch) -> None:
        named = Batch(graph=query.graph, ids=query.ids, allowed=query.allowed, y=query.ids, tasks=query.ids * 0)
        self.memory.put("queries", self.problem.sample(named, torch.tensor([0]), "reference"))


class OnlyBeforeTraining(Meddling):
    def meddle(self, query: Batch) -> None:
        if self.first:
            self.kept += 1
        self.first = False


@pytest.mark.parametrize("method", [Weights, Statistics, Attribute, Log, Memory, OnlyBeforeTraining])
def test_predicting_changes_no_state(method: type[Method]) -> None:
    with pytest.raises(LeakError, match=rf"{method.__name__}\.predict changed the method's state"):
        run(tiny_stream(DATA), method)


def test_every_query_is_answered() -> None:
    class Short(Method):
        def predict(self, query: Batch) -> Tensor:
            return super().predict(query)[1:]

    for policy in POLICIES:
        with pytest.raises(PluginError, match="Short.predict returned outputs of shape .*, one row per item in the query"):
            run(tiny_stream(DATA, edge_policy=policy, setting="class-il"), Short)


def test_labels_of_a_query_are_not_there() -> None:
    seen: list[Batch] = []

    class Looking(Method):
        def predict(self, query: Batch) -> Tensor:
            seen.append(query)
            assert not torch.is_grad_enabled()
            assert not self.model.training
            return super().predict(query)

    run(tiny_stream(DATA), Looking)
    assert len(seen) == 4
    assert all(q.y is None for q in seen)


def test_the_memory_budget_is_the_scenarios() -> None:
    with pytest.raises(BudgetError, match="would hold 6 items; the scenario's budget is 5"):
        run(tiny_stream(DATA, memory_budget=5), BusyMethod)
    assert run(tiny_stream(DATA, memory_budget=9), BusyMethod).memory["budget_items"] == 9


@pytest.mark.parametrize("factor", [math.inf, math.nan])
def test_a_diverging_method_is_stopped(factor: float) -> None:
    class Exploding(Method):
        def loss(self, batch: Any) -> Any:
            return super().loss(batch) * factor

    with pytest.raises(DivergenceError, match="in epoch 1"):
        run(tiny_stream(DATA), Exploding)


@pytest.mark.parametrize("declared", [False, True])
def test_earlier_views_are_for_methods_that_declare_the_need(declared: bool) -> None:
    seen: list[list[int]] = []

    class Looking(Method):
        def before_task(self, view: TaskView) -> None:
            seen.append([v.position for v in view.past])

    run(tiny_stream(DATA), Looking, past_views=declared)
    assert seen == ([[], [0], [0, 1]] if declared else [[], [], []])


def test_after_a_task_the_model_is_in_evaluation_mode_and_before_it_in_training() -> None:
    modes: list[tuple[str, bool]] = []

    class Modes(Method):
        def before_task(self, view: TaskView) -> None:
            modes.append(("before", self.model.training))

        def after_task(self, view: TaskView) -> None:
            modes.append(("after", self.model.training))

    run(tiny_stream(DATA, n_tasks=2, training={"monitor": "validation-loss"}), Modes)
    assert modes == [("before", True), ("after", False)] * 2


def test_an_optimiser_is_carried_over_only_while_its_weights_are_the_models() -> None:
    """Fresh weights get a fresh optimiser, whatever the protocol says."""

    class Renewed(Method):
        def before_task(self, view: TaskView) -> None:
            if not view.first:
                self.model = self.context.build_model()

    def optimisers(method: type[Method], carry: bool) -> list[int]:
        runner: TaskRunner
        seen: list[Any] = []

        class Watched(method):  # type: ignore[misc, valid-type]
            def after_task(self, view: TaskView) -> None:
                seen.append(runner.optimizer)
                super().after_task(view)

        runner = tiny_runner(tiny_stream(DATA, training={"carry_optimizer": carry}), Watched)
        runner.run()
        return [id(o) for o in seen]

    assert len(set(optimisers(Method, True))) == 1
    assert len(set(optimisers(Method, False))) == 3
    assert len(set(optimisers(Renewed, True))) == 3


def test_what_is_monitored_is_less_where_performance_is_more() -> None:
    """Minus the performance of the decoded outputs, so that early stopping keeps the best epoch."""
    asked: list[Any] = []

    def performance(*given: Any) -> float:
        asked.append(given)
        return 0.25

    runner: Any = object.__new__(TaskRunner)
    runner.stream = SimpleNamespace(oracle=SimpleNamespace(performance=performance))
    runner._scorer = SimpleNamespace(decode=lambda logits, allowed: logits.argmax(dim=1))
    batch: Any = SimpleNamespace(allowed="those that compete")
    assert runner.validation_cost(["t"], batch, torch.tensor([[0.0, 1.0]])) == -0.25
    ((tokens, decoded, allowed),) = asked
    assert (tokens, decoded.tolist(), allowed) == (["t"], [1], "those that compete")


def test_frozen_parameters_are_not_trained() -> None:
    """An adapter names the parameters that want a gradient."""
    model = torch.nn.Linear(2, 3)
    model.bias.requires_grad_(False)
    assert list(Problem.parameters(model)) == ["weight"]
