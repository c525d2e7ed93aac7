"""GRACE and task profiling: the contrast by hand, what views lose, which task an item is taken for, and what tasks leave alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from cglsuite_methods.isolation.tpp import prompted, smoothed
from cglsuite_methods.pretraining.grace import node_contrast, thinned
from tiny_streams import catalogue_runner, tiny_data, tiny_stream

from cglsuite.graphs import MessageGraph
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch

pytestmark = pytest.mark.plugins
EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def made(
    hyperparameters: dict[str, Any] | None = None, *, setting: str = "class-il", policy: str = "inter-task", **training: Any
) -> TaskRunner:
    options = {"epochs": 15, "lr": 0.02} | training
    stream = tiny_stream(tiny_data(per_class=15), setting=setting, edge_policy=policy, training=options)
    return catalogue_runner(stream, "tpp", hyperparameters or {})


def query_of(runner: TaskRunner, k: int) -> Batch:
    view = runner.stream.view(k)
    return Batch(graph=view.graph, ids=view.train.ids, allowed=torch.ones(runner.stream.n_outputs, dtype=torch.bool))


# --- GRACE -------------------------------------------------------------------------------------------------------------------------


def test_the_contrast_of_three_items_by_hand() -> None:
    u = torch.tensor([[1.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    v = torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.0, 1.0]])

    def cosine(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)

    def one_way(own: list[list[float]], other: list[list[float]], i: int) -> float:
        right = math.exp(cosine(own[i], other[i]) / 0.5)
        wrong = [math.exp(cosine(own[i], z) / 0.5) for k, z in enumerate(other) if k != i]
        wrong += [math.exp(cosine(own[i], z) / 0.5) for k, z in enumerate(own) if k != i]
        return -math.log(right / (right + sum(wrong)))

    both = [one_way(u.tolist(), v.tolist(), i) + one_way(v.tolist(), u.tolist(), i) for i in range(3)]
    assert node_contrast(u, v, 0.5).item() == pytest.approx(sum(both) / 6, abs=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_view_loses_whole_features_and_single_edges(sparse: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(300, 80, generator=generator) + 0.1
    edges = torch.randint(300, (2, 4000), generator=generator)
    graph = MessageGraph(scipy.sparse.csr_matrix(x.numpy()) if sparse else x, edges)
    view = thinned(graph, 0.25, 0.5, generator)
    seen = view.dense
    lost = (seen == 0).all(dim=0)
    assert torch.equal(seen[:, ~lost], x[:, ~lost])
    assert bool((seen[:, lost] == 0).all())
    assert 20 <= int(lost.sum()) <= 60
    kept = set(map(tuple, view.edge_index.T.tolist()))
    assert kept <= set(map(tuple, edges.T.tolist()))
    assert 0.7 < view.n_edges / 4000 < 0.8
    assert torch.equal(graph.dense, x), "the graph itself stays"


def test_nothing_is_lost_at_probability_zero() -> None:
    graph = MessageGraph(torch.rand(3, 4), EDGES)
    view = thinned(graph, 0.0, 0.0, torch.Generator().manual_seed(0))
    assert torch.equal(view.dense, graph.dense)
    assert torch.equal(view.edge_index, graph.edge_index)


# --- profiles and prompts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_profile_is_the_smoothed_feature_over_the_root_of_the_degree(steps: int) -> None:
    """Against dense matrices, on a path of three nodes beside a node alone."""
    x = torch.rand(4, 5, generator=torch.Generator().manual_seed(1))
    adjacency = np.eye(4)
    adjacency[EDGES[0], EDGES[1]] = 1
    root = np.diag(adjacency.sum(1) ** -0.5)
    expected = root @ np.linalg.matrix_power(root @ adjacency @ root, steps) @ x.double().numpy()
    np.testing.assert_allclose(smoothed(MessageGraph(x, EDGES), steps).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_prompt_adds_a_mixture_by_node() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    prompt = {"A": torch.tensor([[math.log(3.0), 0.0], [0.0, 0.0]]), "b": torch.zeros(2), "P": torch.tensor([[4.0, 0.0], [0.0, 8.0]])}
    graph = prompted(MessageGraph(x, torch.empty(2, 0, dtype=torch.int64)), prompt)
    torch.testing.assert_close(graph.dense, torch.tensor([[1 + 3.0, 2.0], [2.0, 2 + 4.0]]))  # mixtures (3/4, 1/4) and (1/2, 1/2)


def test_an_item_has_the_task_of_the_nearest_prototype_whatever_else_is_asked() -> None:
    runner = made()
    runner.run()
    method: Any = runner.method
    assert len(method.prototypes) == 3
    for k in range(3):
        query = query_of(runner, k)
        profiles = smoothed(query.graph, 3)[query.ids]
        nearest = torch.cdist(profiles, torch.stack(method.prototypes)).argmin(dim=1)
        found = method.inferred(query)
        assert torch.equal(found, nearest)
        half = replace(query, ids=query.ids[::2], cache={})
        assert torch.equal(method.inferred(half), found[::2])
        with torch.no_grad():
            runner.method.model.eval()
            assert torch.equal(method.predict(half), method.predict(query)[::2])
    assert float((method.inferred(query_of(runner, 2)) == 2).float().mean()) > 0.5


def test_outputs_of_other_tasks_come_after_all_of_the_inferred_one() -> None:
    runner = made()
    runner.run()
    method: Any = runner.method
    query = query_of(runner, 1)
    runner.method.model.eval()
    with torch.no_grad():
        outputs, own = method.predict(query), torch.stack(method.outputs)[method.inferred(query)]
    lowest = outputs.masked_fill(~own, torch.inf).amin(dim=1)
    highest = outputs.masked_fill(own, -torch.inf).amax(dim=1)
    assert bool((highest <= lowest - 30 + 1e-4).all())


def test_a_graph_that_is_asked_as_a_whole_gives_all_items_one_task() -> None:
    runner = made({"infer": "graph"}, policy="none")
    runner.run()
    method: Any = runner.method
    query = query_of(runner, 1)
    (guess,) = method.inferred(query).unique().tolist()
    mean = smoothed(query.graph, 3).mean(dim=0)
    assert guess == int(torch.cdist(mean[None], torch.stack(method.prototypes)).argmin())
    half = replace(query, ids=query.ids[:3], cache={})
    assert method.inferred(half).tolist() == [guess] * 3


# --- training ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"monitor": "validation-loss", "restore_best": True, "weight_decay": 0.1}])
@pytest.mark.parametrize("body", ["grace", "given"])
def test_answers_to_a_learnt_task_keep_their_bits(body: str, options: dict[str, Any]) -> None:
    runner = made({"body": body}, setting="task-il", policy="full", **options)
    view, found = runner.stream.view(0), []
    query = Batch(graph=view.graph, ids=view.train.ids, allowed=view.task_outputs, tasks=torch.zeros(len(view.train), dtype=torch.int64))

    @torch.no_grad()
    def ask(k: int) -> None:
        if k:
            runner.method.model.eval()
            found.append(runner._predicted(query).clone())

    runner.on_task = ask
    runner.run()
    assert len(found) == 3
    assert all(torch.equal(found[0], later) for later in found[1:])


def test_the_body_is_trained_without_labels_before_the_first_task_and_then_rests() -> None:
    runner = made()
    drawn = {name: value.clone() for name, value in runner.method.model.state_dict().items()}
    bodies: list[dict[str, torch.Tensor]] = []
    runner.on_task = lambda k: bodies.append({n: v.clone() for n, v in runner.method.model.state_dict().items() if "head" not in n})
    result = runner.run()
    first, *later = bodies[1:] if len(bodies) == 4 else bodies
    assert any(not torch.equal(first[name], drawn[name]) for name in first)
    assert all(torch.equal(first[name], other[name]) for other in later for name in first)
    assert len(result.curves[0]["loss"]) == 2 * len(result.curves[1]["loss"])


def test_a_body_that_is_given_stays_as_it_is() -> None:
    runner = made({"body": "given"})
    drawn = {name: value.clone() for name, value in runner.method.model.state_dict().items() if "head" not in name}
    runner.run()
    now = runner.method.model.state_dict()
    assert all(torch.equal(now[name], value) for name, value in drawn.items())


def test_the_first_task_has_no_prompt_and_others_have_what_the_docstring_counts() -> None:
    runner = made({"prompts": 2})
    runner.run()
    method: Any = runner.method
    width = runner.stream.n_features
    sizes = [sum(value.numel() for value in prompt.values()) for prompt in method.prompts]
    assert sizes == [0, 2 * (2 * width + 1), 2 * (2 * width + 1)]
    assert len(runner.method.memory) == 0
