"""Which queries are asked when, what they give away, and how answers score, against brute force over the dataset."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, recall_score
from tiny_streams import node_numbers, tiny_data, tiny_stream
from torch import Tensor

from cglsuite import Seeds
from cglsuite.base.errors import LeakError
from cglsuite.graphs import NodeData
from cglsuite.graphs.splits.partition import per_class_split
from cglsuite.specs.scenario import EDGE_POLICIES
from cglsuite.streams import Oracle, QueryGroup, Score, TaskStream

POLICIES = [policy.name for policy in EDGE_POLICIES.values() if policy.allows("NC", "class-il")]
ORDER = "4,1,0,5,2,3"
TASKS = [[4, 1], [0, 5], [2, 3]]
DATA = tiny_data(per_class=15)
SPLIT = per_class_split(DATA.y, torch.arange(6), (0.6, 0.2, 0.2), 0)


def stream_of(policy: str, setting: str = "class-il", performance: str = "micro", data: NodeData = DATA) -> TaskStream:
    return tiny_stream(data, class_order=ORDER, edge_policy=policy, setting=setting, performance=performance)


def items(k: int, part: int) -> set[int]:
    """The nodes of one part (0 training, 1 validation, 2 test) of one task."""
    return {i for i in range(DATA.n_nodes) if int(DATA.y[i]) in TASKS[k] and int(SPLIT[i]) == part}


def asked(groups: list[QueryGroup]) -> Counter[int]:
    return Counter(n for g in groups for n in node_numbers(g.query.graph, g.query.ids))


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_asked_after_k_tasks(policy: str, setting: str) -> None:
    """Test items of all tasks (`full`) or of those learnt, and validation items of those learnt; each exactly once, without labels."""
    stream = stream_of(policy, setting)
    for learnt in range(4):
        groups = stream.make_queries(learnt)
        tasks = range(3) if policy == "full" else range(learnt)
        expected = set().union(*(items(k, 2) for k in tasks), *(items(k, 1) for k in range(learnt)))
        assert asked(groups) == dict.fromkeys(expected, 1)
        assert sorted(k for g in groups for k in g.tasks) == list(tasks)
        assert all(g.query.y is None for g in groups)
        assert len({g.token for g in groups}) == len(groups) == (learnt if policy == "none" else min(len(tasks), 1))


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("policy", POLICIES)
def test_task_ids_and_allowed_outputs(policy: str, setting: str) -> None:
    """Task-IL tells each item's task and restricts it to that task's outputs; class-IL tells nothing and allows what has been seen."""
    stream = stream_of(policy, setting)
    for learnt in range(4):
        for group in stream.make_queries(learnt):
            query, numbers = group.query, node_numbers(group.query.graph, group.query.ids)
            of = [next(k for k in range(3) if int(DATA.y[n]) in TASKS[k]) for n in numbers]
            if setting == "task-il":
                assert query.tasks is not None
                assert query.tasks.tolist() == of
            else:
                assert query.tasks is None
            if learnt == 0:
                assert query.allowed.tolist() == [True] * 6
            elif setting == "task-il":
                assert [row.nonzero().flatten().tolist() for row in query.allowed] == [sorted(TASKS[k]) for k in of]
            else:
                assert query.allowed.nonzero().flatten().tolist() == sorted(sum(TASKS[:learnt], []))


def test_nothing_can_be_asked_before_training_unless_items_exist() -> None:
    assert stream_of("none").make_queries(0) == []
    assert stream_of("inter-task").make_queries(0) == []
    (group,) = stream_of("full").make_queries(0)
    assert asked([group]) == dict.fromkeys(items(0, 2) | items(1, 2) | items(2, 2), 1)


def test_under_none_query_ids_do_not_match_those_of_the_view() -> None:
    """The same nodes, renumbered: an id in a query says nothing of the node that had it while learning."""
    stream = stream_of("none")
    groups = {g.tasks[0]: g.query.graph for g in stream.make_queries(3)}
    for k in range(3):
        learning, asking = node_numbers(stream.view(k).graph), node_numbers(groups[k])
        assert sorted(learning) == sorted(asking)
        agreeing = sum(a == b for a, b in zip(learning, asking, strict=True))
        assert agreeing < 8  # of 30; about one is expected of a random permutation
        edges = [{(m[a], m[b]) for a, b in g.edge_index.T.tolist()} for m, g in ((learning, stream.view(k).graph), (asking, groups[k]))]
        assert edges[0] == edges[1]


def test_where_graphs_grow_or_stand_queries_arrive_in_the_current_one() -> None:
    for policy in ("inter-task", "full"):
        stream = stream_of(policy)
        for learnt in (1, 2, 3):
            (group,) = stream.make_queries(learnt)
            assert group.query.graph is stream.view(learnt - 1).graph


@pytest.mark.parametrize("policy", POLICIES)
def test_items_are_shuffled(policy: str) -> None:
    """Neither parts nor tasks nor node numbers come in order."""
    for group in stream_of(policy).make_queries(3):
        numbers = node_numbers(group.query.graph, group.query.ids)
        tested = [int(SPLIT[n]) == 2 for n in numbers]
        assert tested not in (sorted(tested), sorted(tested, reverse=True))
        assert numbers != sorted(numbers)
        assert group.query.ids.tolist() != sorted(group.query.ids.tolist())


@pytest.mark.parametrize("policy", POLICIES)
def test_asking_again_or_elsewhere_asks_the_same(policy: str) -> None:
    one, other = stream_of(policy), stream_of(policy)
    torch.manual_seed(5)
    other.make_queries(3)
    for learnt in (1, 2, 1):
        for mine, theirs in zip(one.make_queries(learnt), other.make_queries(learnt), strict=True):
            assert mine.token == theirs.token
            assert torch.equal(mine.query.ids, theirs.query.ids)
            assert one.oracle.holds(mine.token)


# --- scoring ----------------------------------------------------------------------------------------------------------------------


def answers_of(groups: list[QueryGroup], guess: dict[int, int]) -> dict[str, Tensor]:
    return {g.token: torch.tensor([guess[n] for n in node_numbers(g.query.graph, g.query.ids)]) for g in groups}


def brute_force(guess: dict[int, int], k: int, part: int, rule: str) -> float:
    right = {c: [guess[n] == c for n in sorted(items(k, part)) if int(DATA.y[n]) == c] for c in TASKS[k]}
    if rule == "micro":
        return sum(map(sum, right.values())) / sum(map(len, right.values()))
    return sum(sum(r) / len(r) for r in right.values()) / len(right)


@pytest.mark.parametrize("rule", ["micro", "macro"])
@pytest.mark.parametrize("policy", POLICIES)
def test_scores_equal_brute_force(policy: str, rule: str) -> None:
    rng = random.Random(7)
    y = {n: int(DATA.y[n]) for n in range(DATA.n_nodes)}
    # Class 4 is answered worse than the others, so that micro and macro differ where sizes do.
    guess = {n: c if rng.random() < (0.2 if c == 4 else 0.8) else rng.randrange(6) for n, c in y.items()}
    stream = stream_of(policy, performance=rule)
    for learnt in range(4):
        groups = stream.make_queries(learnt)
        if not groups:
            continue
        tested, validated = stream.oracle.grade(answers_of(groups, guess))
        assert set(tested) == set(range(3) if policy == "full" else range(learnt))
        assert set(validated) == set(range(learnt))
        for part, scores in ((2, tested), (1, validated)):
            for k, score in scores.items():
                assert score.performance == pytest.approx(brute_force(guess, k, part, rule), abs=1e-15)
                for c in range(6):
                    of_class = [n for n in items(k, part) if y[n] == c]
                    assert score.counts[c] == len(of_class)
                    assert score.hits[c] == sum(guess[n] == c for n in of_class)


def test_perfect_and_wrong_answers() -> None:
    for policy in POLICIES:
        stream = stream_of(policy)
        groups = stream.make_queries(3)
        right = {n: int(DATA.y[n]) for n in range(DATA.n_nodes)}
        for shift, expected in ((0, 1.0), (1, 0.0)):
            tested, validated = stream.oracle.grade(answers_of(groups, {n: (c + shift) % 6 for n, c in right.items()}))
            assert {s.performance for s in (*tested.values(), *validated.values())} == {expected}


# --- the oracle by itself ---------------------------------------------------------------------------------------------------------


def oracle(rule: str = "micro") -> Oracle:
    """Task 0: four test items of class 0 and one of class 1, one validation item; task 1: one test item of class 2."""
    made = Oracle(3, rule)
    made.deposit(
        "a",
        torch.tensor([0, 0, 2, 0, 1, 0, 1]),
        torch.tensor([0, 0, 1, 0, 0, 0, 0]),
        torch.tensor([True, True, True, True, True, True, False]),
    )
    return made


@pytest.mark.parametrize(("rule", "first"), [("micro", 3 / 5), ("macro", (3 / 4 + 0) / 2)])
def test_scores_by_hand(rule: str, first: float) -> None:
    tested, validated = oracle(rule).grade({"a": torch.tensor([0, 0, 2, 0, 0, 2, 1])})
    assert {k: s.performance for k, s in tested.items()} == {0: first, 1: 1.0}
    assert {k: s.performance for k, s in validated.items()} == {0: 1.0}
    assert isinstance(tested[0], Score)
    assert tested[0].hits.tolist() == [3, 0, 0]
    assert tested[0].counts.tolist() == [4, 1, 0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2), st.booleans()), min_size=1, max_size=40))
def test_scores_equal_scikit_learns(asked_items: list[tuple[int, int, int, bool]]) -> None:
    """(label, answer, task, tested): accuracy, and macro-averaged recall over the classes that were asked."""
    y, given_answers, tasks, test = (torch.tensor(column) for column in zip(*asked_items, strict=True))
    for rule in ("micro", "macro"):
        made = Oracle(5, rule)
        made.deposit("a", y, tasks, test)
        for part, scores in zip((True, False), made.grade({"a": given_answers}), strict=True):
            assert set(scores) == set(tasks[test == part].tolist())
            for k, score in scores.items():
                of_task = (tasks == k) & (test == part)
                right, guess = y[of_task].numpy(), given_answers[of_task].numpy()
                if rule == "micro":
                    expected = accuracy_score(right, guess)
                else:
                    expected = recall_score(right, guess, labels=sorted(set(right)), average="macro", zero_division=0)
                assert score.performance == pytest.approx(expected)


def test_several_sheets_are_scored_together() -> None:
    made = oracle()
    made.deposit("b", torch.tensor([1, 1]), torch.tensor([0, 0]), torch.tensor([True, True]))
    tested, _ = made.grade({"b": torch.tensor([1, 0]), "a": torch.tensor([0, 0, 2, 0, 0, 2, 1])})
    assert tested[0].performance == 4 / 7


@pytest.mark.parametrize("given", [torch.zeros(6), torch.zeros(8), torch.zeros(7, 1), torch.zeros(())])
def test_every_query_is_answered_once(given: Tensor) -> None:
    with pytest.raises(LeakError, match=r"for \[7\] queries: predict\(\) must return one per query"):
        oracle().grade({"a": given.long()})


def test_monitor_gives_one_scalar_of_the_labels_joined_in_order() -> None:
    made = oracle()
    made.deposit("b", torch.tensor([1, 1]), torch.tensor([0, 0]), torch.tensor([True, True]))
    weights = torch.arange(9.0)
    value = made.monitor(["b", "a"], lambda y: (y * weights).sum())
    assert value == sum(i * c for i, c in enumerate([1, 1, 0, 0, 2, 0, 1, 0, 1]))
    assert isinstance(value, float)
    with pytest.raises((RuntimeError, ValueError), match="one element"):
        made.monitor(["a"], lambda y: y.float())  # labels cannot pass as a "scalar"


def test_the_monitored_validation_items_are_those_of_the_view() -> None:
    """The labels under the view's token, in the view's order: a model that knows them has no loss."""
    for policy in POLICIES:
        stream = tiny_stream(DATA, class_order=ORDER, edge_policy=policy, seeds=Seeds())
        for k in range(3):
            view = stream.view(k)
            numbers = node_numbers(view.graph, view.validation.ids)
            expected = DATA.y[numbers]
            assert stream.oracle.monitor([stream.validation_token(k)], lambda y, e=expected: (y == e).float().mean()) == 1.0
