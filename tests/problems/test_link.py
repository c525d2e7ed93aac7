"""The link-level adapters: answers of pairs, pairs without a link drawn anew every epoch, memories of pairs in three forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_links import link_model, link_stream, link_variant, tiny_links
from torch.nn import functional

from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.graphs import MessageGraph
from cglsuite.graphs.egos import ego_graphs
from cglsuite.graphs.linkgraph import LinkGraph
from cglsuite.graphs.splits.negatives import pair_keys
from cglsuite.problems import LinkPredictionProblem, LinkProblem, MemoryItems, MultiLabelLinkProblem, problem_class
from cglsuite.problems.link import _BLOCK
from cglsuite.streams import Batch, TaskStream


def ready(over: TaskStream, upto: int = 0, **options: Any) -> Any:
    made = problem_class(over.spec.level, over.spec.labels)(
        n_outputs=over.n_outputs, n_tasks=len(over), task_ids=over.spec.task_ids_at_test, **({"class_balanced": False} | options)
    )
    for k in range(upto + 1):
        made.arrive(over.view(k))
    return made


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_levels_have_their_adapters() -> None:
    assert problem_class("LC", "single") is LinkProblem
    assert problem_class("LC", "multi") is MultiLabelLinkProblem
    assert problem_class("LP", "multi") is LinkPredictionProblem
    assert LinkPredictionProblem.kind == "multi-label"


# --- answers ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LC class-il", "LP domain-il"])
def test_answers_do_not_depend_on_what_else_is_asked(name: str) -> None:
    """Not even in their last bit, whatever the number of pairs and across the borders of blocks."""
    stream = link_variant(name)
    problem, model = ready(stream), link_model(stream, width=32, predictor_width=32)().eval()
    graph, allowed = stream.view(0).graph, stream.view(0).train.allowed
    ids = torch.randint(0, 30, (_BLOCK["cpu"] + 300, 2), generator=generator())
    with torch.no_grad():
        whole = problem.forward(model, Batch(graph=graph, ids=ids, allowed=allowed))
        assert whole.shape == (len(ids), stream.n_outputs)
        for chosen in (torch.arange(5), torch.arange(_BLOCK["cpu"] - 1, _BLOCK["cpu"] + 2), torch.arange(0, len(ids), 7)):
            part = problem.forward(model, Batch(graph=graph, ids=ids[chosen], allowed=allowed))
            assert torch.equal(part, whole[chosen])
        assert problem.forward(model, Batch(graph=graph, ids=ids[:0], allowed=allowed)).shape == (0, stream.n_outputs)
    torch.testing.assert_close(problem.forward(model, Batch(graph=graph, ids=ids, allowed=allowed)), whole)


def test_embeddings_and_features_are_those_of_both_ends() -> None:
    stream = link_variant("LC class-il")
    problem, model, batch = ready(stream), link_model(stream)().eval(), stream.view(0).train
    embedded = problem.embed(model, batch)
    torch.testing.assert_close(model.head(embedded), problem.forward(model, batch))
    x = tiny_links(sparse=True).x.to_dense()  # type: ignore[union-attr]
    assert torch.equal(problem.features(batch), torch.cat([x[batch.ids[:, 0]], x[batch.ids[:, 1]]], dim=1))

    class Encoder(torch.nn.Module):
        def encode(self, graph: MessageGraph) -> Any:
            return graph.features

    with pytest.raises(NotApplicable, match=r"the backbone Encoder cannot embed pairs of nodes: implement combine\(hidden, ids\)"):
        problem.embed(Encoder(), batch)


@pytest.mark.parametrize("name", ["LC time-il", "LP domain-il"])
def test_the_loss_is_the_binary_cross_entropy_of_the_one_output(name: str) -> None:
    stream = link_variant(name)
    problem, batch = ready(stream), stream.view(0).train
    logits = torch.randn(len(batch), 1, generator=generator())
    expected = functional.binary_cross_entropy_with_logits(logits[:, 0], batch.y[:, 0].float())  # type: ignore[index]
    torch.testing.assert_close(problem.loss(logits, batch), expected)
    target = torch.sigmoid(torch.ones(len(batch)))
    distilled = functional.binary_cross_entropy_with_logits(logits[:, 0], target)
    torch.testing.assert_close(problem.distill(torch.ones_like(logits), logits, torch.tensor([True])), distilled)


# --- epochs -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [None, 7, 10_000])
@pytest.mark.parametrize("name", ["LP domain-il", "LP time-il", "LP bipartite"])
def test_an_epoch_has_every_link_once_and_as_many_other_destinations(name: str, size: int | None) -> None:
    stream = link_variant(name)
    view = stream.view(1)
    epochs = ready(stream, 1, batch_size=size).epochs([view], generator())
    links = view.train.ids[view.train.y[:, 0]]  # type: ignore[index]
    drawn = []
    for _ in range(2):
        batches = list(epochs)
        assert len(batches) == len(epochs) == (1 if size is None else -(-len(links) // size))
        met, wrong = [], []
        for batch in batches:
            n = len(batch) // 2
            assert batch.y.flatten().tolist() == [True] * n + [False] * n
            assert torch.equal(batch.ids[:n, 0], batch.ids[n:, 0]), "the same sources"
            assert batch.tasks.tolist() == [1] * 2 * n
            met.append(batch.ids[:n])
            wrong.append(batch.ids[n:])
        assert sorted(torch.cat(met).tolist()) == sorted(links.tolist())
        if name == "LP bipartite":
            assert bool((torch.cat(wrong)[:, 1] % 2 == 1).all()), "destinations are items, as those of the links"
        drawn.append(torch.cat(wrong)[pair_keys(torch.cat(met).T, 30, False).argsort()])
    assert not torch.equal(*drawn), "drawn anew every epoch"
    again = list(ready(stream, 1, batch_size=size).epochs([view], generator()))
    first = list(ready(stream, 1, batch_size=size).epochs([view], generator()))
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(again, first, strict=True))


@pytest.mark.parametrize("size", [None, 7])
def test_a_step_does_not_see_what_it_predicts(size: int | None) -> None:
    stream = link_variant("LP growing")
    view = stream.view(1)
    whole = pair_keys(view.graph.edge_index, 30, True)
    for batch in ready(stream, 1, batch_size=size).epochs([view], generator()):
        links = pair_keys(batch.ids[batch.y[:, 0]].T, 30, True)
        seen = pair_keys(batch.graph.edge_index, 30, True)
        assert torch.isin(links, whole).all()
        assert sorted(seen.tolist()) == sorted(whole[~torch.isin(whole, links)].tolist())


def test_neighbours_of_both_ends_are_sampled() -> None:
    """With every neighbour kept the outputs of an un-normalised network are those of the whole graph."""
    stream = link_variant("LP domain-il")
    view = stream.view(0)
    model = link_model(stream, normalisation="none", batch_norm=False, predictor_dropout=0.0)()
    problem = ready(stream, batch_size=6, fan_out=(99, 99))
    for batch in problem.epochs([view], generator()):
        assert batch.ids.shape == (len(batch), 2)
        assert batch.graph is not view.graph
        numbers = [[int((view.graph.features == batch.graph.features[v]).all(dim=1).nonzero()[0]) for v in pair] for pair in batch.ids]
        torch.testing.assert_close(model(batch.graph, batch.ids), model(view.graph, torch.tensor(numbers)))


def test_graphs_of_several_tasks_are_joined_and_destinations_stay_in_theirs() -> None:
    stream = link_variant("LP apart", exclude_targets=True)
    problem = ready(stream, 1)
    batch = problem.batch([stream.view(0), stream.view(1)])
    assert isinstance(batch.graph, LinkGraph)
    assert batch.graph.n_nodes == 60
    (epoch,) = problem.epochs([stream.view(0), stream.view(1)], generator())
    n = len(epoch) // 2
    assert torch.equal(epoch.ids[:n] // 30, epoch.ids[n:] // 30)
    assert sorted((epoch.ids[:n, 0] // 30).unique().tolist()) == [0, 1]


def test_class_balance_weighs_links_by_the_pairs_without_one() -> None:
    stream = link_variant("LC time-il", training={"class_balanced": True})
    problem = ready(stream, class_balanced=True)
    y = stream.view(0).train.y
    assert y is not None
    expected = float((~y).sum()) / float(y.sum())
    assert problem.positive_weight.tolist() == pytest.approx([expected])


# --- memory -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["reference", "item"])
@pytest.mark.parametrize("name", ["LC task-il", "LC class-il", "LP domain-il", "LP growing"])
def test_kept_pairs_come_back(name: str, kind: Any) -> None:
    """With their labels, tasks and features; by reference in the view's graph, else as two nodes that hear nobody."""
    stream = link_variant(name)
    problem, view = ready(stream), stream.view(0)
    chosen = torch.tensor([4, 0, 9])
    items = problem.sample(view.train, chosen, kind)
    assert torch.equal(items.ids, view.train.ids[chosen])
    through = MemoryItems.from_state(items.state(), problem.device)
    for kept in (items, through, problem.join([items.take(torch.tensor([0, 1])), items.take(torch.tensor([2]))])):
        batch = problem.recall(kept, view)
        assert torch.equal(batch.y, view.train.y[chosen])  # type: ignore[index]
        assert torch.equal(batch.tasks, torch.zeros(3, dtype=torch.int64))
        torch.testing.assert_close(problem.features(batch), problem.features(view.train)[chosen])
        if kind == "reference":
            assert batch.graph is view.graph
            assert torch.equal(batch.ids, items.ids)
        else:
            assert (batch.graph.n_nodes, batch.graph.n_edges) == (6, 0)
    assert items.bytes() == through.bytes()
    if kind == "reference":
        with pytest.raises(
            SpecError, match="items stored by reference need the graph that contains them; expected a task's view or a batch"
        ):
            problem.recall(items, None)


@pytest.mark.parametrize("name", ["LC task-il", "LP domain-il"])
def test_pairs_kept_with_their_surroundings_are_answered_alike(name: str) -> None:
    """With every neighbour of both ends within two hops, an un-normalised network answers as in the whole graph."""
    stream = link_variant(name)
    problem, view = ready(stream), stream.view(0)
    torch.manual_seed(0)  # weights of any size would make rounding of any size
    model = link_model(stream, normalisation="none", batch_norm=False, predictor_dropout=0.0)().eval()
    chosen = torch.tensor([3, 0, 8, 5])
    items = problem.sample(view.train, chosen, "item", lambda graph, ids: ego_graphs(graph, ids, (99, 99), lambda g, a, b: a * 1.0))
    assert len(items) == len(items.x) == 4
    assert items.edges == items.x.n_edges > 0
    expected = problem.forward(model, view.train)[chosen]
    for kept in (items, MemoryItems.from_state(items.state(), problem.device)):
        torch.testing.assert_close(problem.forward(model, problem.recall(kept, None)), expected)
    back = items.take(torch.tensor([2, 1]))
    torch.testing.assert_close(problem.forward(model, problem.recall(back, None)), expected[[2, 1]])


def test_destinations_of_kept_links_are_kept_ones() -> None:
    stream = link_variant("LP domain-il")
    problem, view = ready(stream), stream.view(0)
    items = problem.sample(view.train, torch.arange(6), "item")
    batch = problem.recall(items, None)
    drawn = batch.graph.destinations(batch.ids[:, 1].repeat(50), generator())
    assert set(drawn.tolist()) == set(batch.ids[:, 1].tolist())
    (epoch,) = problem.passes(batch, None, generator())
    assert len(epoch) == 2 * int(batch.y.sum())


def test_a_query_has_no_labels_to_be_learnt() -> None:
    stream = link_stream(level="LP", setting="domain-il", task_key="domain")
    problem = ready(stream)
    query = stream.make_queries(1)[0].query
    with pytest.raises(SpecError, match="this batch is a query"):
        problem.loss(torch.zeros(len(query), 1), query)
    with pytest.raises(SpecError, match="this batch is a query"):
        list(problem.passes(replace(query), None, generator()))
