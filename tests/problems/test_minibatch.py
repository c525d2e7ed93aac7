"""Mini-batches of a task: every item once per epoch, in new orders, each in a graph of its own, and the same again from the same seed."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_streams import node_numbers, tiny_data, tiny_model, tiny_stream
from torch.nn import functional

from cglsuite.problems import NodeProblem, minibatch
from cglsuite.problems.minibatch import MiniBatches
from cglsuite.streams import Batch, TaskStream, TaskView

WIDE = (99, 99)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def problem(stream: TaskStream, arrived: int = 1, **options: object) -> NodeProblem:
    given: dict[str, object] = {"task_ids": stream.spec.task_ids_at_test, "class_balanced": False} | options
    made = NodeProblem(n_outputs=stream.n_outputs, n_tasks=len(stream), **given)  # type: ignore[arg-type]
    for k in range(arrived):
        made.arrive(stream.view(k))
    return made


def drawn(view: TaskView, size: int = 5, fan_out: tuple[int, ...] = (2, 3), seed: int = 0) -> MiniBatches:
    return MiniBatches(view.train, size, fan_out, generator(seed))


def labelled(batches: list[Batch]) -> Counter[tuple[int, int]]:
    """(node of the dataset, label) of every item."""
    pairs: Counter[tuple[int, int]] = Counter()
    for batch in batches:
        assert batch.y is not None
        pairs.update(zip(node_numbers(batch.graph, batch.ids), batch.y.tolist(), strict=True))
    return pairs


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_an_epoch_has_every_item_once_with_its_label(policy: str, sparse: bool) -> None:
    data = tiny_data(sparse=sparse)
    view = tiny_stream(data, edge_policy=policy).view(1)
    batches = list(drawn(view))
    assert len(drawn(view)) == 3
    assert [len(b) for b in batches] == [5, 5, 2]
    assert labelled(batches) == labelled([view.train])
    for batch in batches:
        assert batch.y is not None
        assert batch.y.tolist() == data.y[node_numbers(batch.graph, batch.ids)].tolist()
        assert batch.tasks is not None
        assert batch.tasks.tolist() == [1] * len(batch)
        assert batch.allowed is view.train.allowed
        assert batch.cache == {}
        assert batch.graph is not view.graph
        assert batch.graph.n_nodes <= view.graph.n_nodes


def test_epochs_differ_in_order_and_neighbours() -> None:
    batches = drawn(tiny_stream().view(0))
    one, other = list(batches), list(batches)
    assert labelled(one) == labelled(other)
    assert [node_numbers(b.graph, b.ids) for b in one] != [node_numbers(b.graph, b.ids) for b in other]


def test_the_same_seed_draws_the_same_epochs() -> None:
    stream = tiny_stream()

    def draws_of(seed: int) -> list[object]:
        batches = drawn(stream.view(0), seed=seed)
        return [(node_numbers(b.graph), b.ids.tolist(), b.graph.edge_index.tolist()) for _ in range(2) for b in batches]

    assert draws_of(3) == draws_of(3)
    assert draws_of(3) != draws_of(4)


def test_without_fan_out_batches_share_the_whole_graph() -> None:
    view = tiny_stream().view(0)
    batches = list(drawn(view, fan_out=()))
    assert all(b.graph is view.graph for b in batches)
    assert labelled(batches) == labelled([view.train])


def test_full_batches_are_passed_on_as_they_are() -> None:
    """No mini-batches: the very same objects in every epoch, with what they have cached; the generator is not asked."""
    stream = tiny_stream()
    draws = generator()
    batches = problem(stream).epochs([stream.view(0)], draws)
    assert list(batches) == list(batches) == [stream.view(0).train]
    assert torch.equal(draws.get_state(), generator().get_state())


def test_items_that_differ_in_their_outputs_keep_theirs() -> None:
    """Joint training in task-IL: every item competes among the outputs of its own task."""
    stream = tiny_stream(setting="task-il", edge_policy="full")
    made = problem(stream, 3, batch_size=7, fan_out=(3, 3))
    for batch in made.epochs([stream.view(k) for k in range(3)], generator()):
        assert batch.tasks is not None
        assert batch.y is not None
        assert batch.allowed.shape == (len(batch), 6)
        assert [row.nonzero().flatten().tolist() for row in batch.allowed] == [[2 * k, 2 * k + 1] for k in batch.tasks.tolist()]
        assert (batch.y // 2).tolist() == batch.tasks.tolist()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_several_views_are_mixed(policy: str, sparse: bool) -> None:
    """Items of all tasks, from one graph or from the disjoint union of several; neighbours come from an item's own graph."""
    stream = tiny_stream(tiny_data(sparse=sparse), edge_policy=policy)
    views = [stream.view(0, 1 if policy == "inter-task" else None), stream.view(1)]
    made = problem(stream, 2, batch_size=6, fan_out=WIDE)
    batches = list(made.epochs(views, generator()))
    assert labelled(batches) == labelled([v.train for v in views])
    assert any(len(set(b.tasks.tolist())) == 2 for b in batches if b.tasks is not None)
    of_task = tiny_data().y // 2
    for batch in batches:
        ends = torch.tensor(node_numbers(batch.graph))[batch.graph.edge_index]
        if policy == "none":
            assert torch.equal(of_task[ends[0]], of_task[ends[1]])


def test_losses_of_wide_samples_are_those_of_the_whole_graph() -> None:
    stream = tiny_stream()
    made = problem(stream, batch_size=5, fan_out=WIDE)
    model = tiny_model(stream, normalisation="none", batch_norm=False, dropout=0.0)()
    view = stream.view(0)
    whole = dict(zip(node_numbers(view.graph, view.train.ids), made.forward(model, view.train), strict=True))
    for batch in made.epochs([view], generator()):
        expected = torch.stack([whole[i] for i in node_numbers(batch.graph, batch.ids)])
        torch.testing.assert_close(made.forward(model, batch), expected)
        assert batch.y is not None
        torch.testing.assert_close(made.loss(made.forward(model, batch), batch), functional.cross_entropy(expected[:, :2], batch.y))


def test_class_weights_count_within_the_mini_batch() -> None:
    stream = tiny_stream()
    made = problem(stream, class_balanced=True, batch_size=5, fan_out=(2, 2))
    for batch in made.epochs([stream.view(0)], generator(2)):
        assert batch.y is not None
        logits = torch.randn(len(batch), 6, generator=generator())
        counts = torch.bincount(batch.y, minlength=2)
        weight = torch.where(counts > 0, 1 / counts, 0.0)
        torch.testing.assert_close(made.loss(logits, batch), functional.cross_entropy(logits[:, :2], batch.y, weight=weight))


def test_labels_may_be_rows() -> None:
    view = tiny_stream().view(0)
    assert view.train.y is not None
    rows = functional.one_hot(view.train.y, 6).bool()
    batches = list(MiniBatches(replace(view.train, y=rows), 5, (), generator()))
    assert torch.equal(torch.cat([b.y for b in batches if b.y is not None]).sum(dim=0), rows.sum(dim=0))


# --- batches made ahead -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of the smallest graph are made ahead."""
    monkeypatch.setattr(minibatch, "_LARGE", 0)


def one_after_the_other(batches: MiniBatches) -> list[Batch]:
    """An epoch without a thread."""
    parts = torch.randperm(len(batches.batch), generator=batches.generator).split(batches.batch_size)
    return [batches._part(chosen) for chosen in parts]


def content(batches: list[Batch]) -> list[object]:
    return [(node_numbers(b.graph), b.ids.tolist(), b.graph.edge_index.tolist(), None if b.y is None else b.y.tolist()) for b in batches]


@pytest.mark.usefixtures("ahead")
@pytest.mark.parametrize("size", [1, 5, 99])
@pytest.mark.parametrize("sparse", [False, True])
def test_batches_made_ahead_are_those_made_one_after_the_other(size: int, sparse: bool) -> None:
    view = tiny_stream(tiny_data(sparse=sparse)).view(0)
    ahead, alone = drawn(view, size), drawn(view, size)
    for _ in range(3):
        assert content(list(ahead)) == content(one_after_the_other(alone))
        assert torch.equal(ahead.generator.get_state(), alone.generator.get_state())


@pytest.mark.usefixtures("ahead")
@pytest.mark.parametrize("taken", [1, 2, 3])
def test_whoever_stops_early_finds_the_generator_as_if_no_batch_had_been_made_ahead(taken: int) -> None:
    view = tiny_stream().view(0)
    ahead, alone = drawn(view), drawn(view)
    epoch = iter(ahead)
    first = [next(epoch) for _ in range(taken)]
    epoch.close()  # type: ignore[attr-defined]
    parts = torch.randperm(len(view.train), generator=alone.generator).split(5)
    assert content(first) == content([alone._part(chosen) for chosen in parts[:taken]])
    assert torch.equal(ahead.generator.get_state(), alone.generator.get_state())


@pytest.mark.usefixtures("ahead")
def test_no_thread_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an epoch, one that is stopped, one whose consumer fails, and one whose sampler fails, which says why."""
    before = threading.active_count()
    view = tiny_stream().view(0)
    list(drawn(view))
    assert threading.active_count() == before
    epoch = iter(drawn(view))
    next(epoch)
    epoch.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before

    def train() -> None:
        for _ in drawn(view):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert threading.active_count() == before

    def broken(*given: object) -> None:
        raise OSError("no neighbours today")

    monkeypatch.setattr(minibatch, "sample_neighbours", broken)
    with pytest.raises(OSError, match="no neighbours today"):
        list(drawn(view))
    assert threading.active_count() == before


def test_small_graphs_take_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minibatch, "_Ahead", None)
    assert len(list(drawn(tiny_stream().view(0)))) == 3


@pytest.mark.usefixtures("ahead")
def test_the_next_batch_is_made_while_one_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, sample = threading.Semaphore(0), minibatch.sample_neighbours

    def counted(*given: Any) -> Any:
        begun.release()
        return sample(*given)

    monkeypatch.setattr(minibatch, "sample_neighbours", counted)
    epoch = iter(drawn(tiny_stream().view(0)))
    next(epoch)
    assert begun.acquire(timeout=60)
    assert begun.acquire(timeout=60)  # the second batch, which nobody has asked for yet
    assert not begun.acquire(timeout=0.2)  # one ahead, no more
    epoch.close()  # type: ignore[attr-defined]
