"""The ridge classifier against scikit-learn and a direct solution: incremental is joint, and no order matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from tiny_streams import catalogue_runner, tiny_data, tiny_stream, variant_stream
from tiny_task_free import catalogue_task_free_runner, tiny_task_free_stream
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch

pytestmark = pytest.mark.plugins
FULL = {"setting": "class-il", "edge_policy": "full"}
TRAINING = {"epochs": 4, "lr": 0.05}


def after(hyperparameters: dict[str, Any] | None = None, init_seed: int = 0, **changes: Any) -> TaskRunner:
    """A runner that has run over three tasks of two classes in one graph."""
    stream = tiny_stream(tiny_data(per_class=15), **(FULL | {"training": TRAINING} | changes))
    runner = catalogue_runner(stream, "analytic-ridge", hyperparameters, init_seed=init_seed)
    runner.run()
    return runner


def weights(runner: Any) -> Tensor:
    found: Tensor = runner.method.solution()[0]
    return found


def everything(runner: TaskRunner, hops: int = 2) -> tuple[Tensor, Tensor]:
    """S^kX of all training items, from the edges, and their labels."""
    views = [runner.stream.view(k) for k in range(3)]  # the graph is the same for all
    graph = views[0].graph
    source, target = graph.edges_with_loops
    adjacency = torch.zeros(graph.n_nodes, graph.n_nodes, dtype=torch.float64)
    adjacency.index_put_((target, source), torch.ones(len(source), dtype=torch.float64), accumulate=True)
    scale = adjacency.sum(dim=1).rsqrt()
    rows = graph.dense.double()
    for _ in range(hops):
        rows = scale[:, None] * (adjacency @ (scale[:, None] * rows))
    train = [view.train for view in views]
    ids, y = torch.cat([b.ids for b in train]), torch.cat([runner.problem.labels(b) for b in train])
    return rows[ids], y


def test_features_are_propagated_k_times() -> None:
    for hops in (0, 1, 3):
        runner = after({"hops": hops, "normalisation": "none"})
        rows, _ = everything(runner, hops)
        method: Any = runner.method
        torch.testing.assert_close(method.gram[0][:-1, :-1], rows.T @ rows, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(method.gram[0][-1, :-1], rows.sum(dim=0), rtol=1e-4, atol=1e-4)


def test_a_graph_of_training_items_alone_lets_no_other_node_into_the_sums() -> None:
    runner = after({"neighbours": "training", "hops": 1, "normalisation": "none"})
    method: Any = runner.method
    expected = []
    for view in (runner.stream.view(k) for k in range(3)):
        position = {node: i for i, node in enumerate(view.train.ids.tolist())}
        adjacency = torch.eye(len(position), dtype=torch.float64)
        for source, target in view.graph.edge_index.T.tolist():
            if source in position and target in position and source != target:
                adjacency[position[target], position[source]] = 1
        scale = adjacency.sum(dim=1).rsqrt()
        expected.append((scale[:, None] * adjacency * scale) @ view.graph.dense[view.train.ids].double())
    rows = torch.cat(expected)
    torch.testing.assert_close(method.gram[0][:-1, :-1], rows.T @ rows, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(weights(runner), weights(after({"hops": 1, "normalisation": "none"})), atol=1e-3)
    graphs = [catalogue_runner(variant_stream("graph class-il"), "analytic-ridge", {"neighbours": n}) for n in ("training", "all")]
    for one in graphs:
        one.run()
    assert torch.equal(weights(graphs[0]), weights(graphs[1]))


def test_incremental_is_joint_on_a_graph_that_does_not_change() -> None:
    """To 1e-10: the solution from sums over three tasks, and the one from all rows at once."""
    runner = after()
    method: Any = runner.method
    with torch.no_grad():
        train = [runner.stream.view(k).train for k in range(3)]
        rows = torch.cat([method._features(batch) for batch in train]).double()
        y = torch.cat([runner.problem.labels(batch) for batch in train])
    assert rows.norm(dim=1).numpy() == pytest.approx(1.0)
    joint = torch.linalg.solve(rows.T @ rows + 0.1 * torch.eye(rows.shape[1]).double(), rows.T @ functional.one_hot(y, 6).double())
    torch.testing.assert_close(weights(runner), joint, rtol=0, atol=1e-10)
    ours, _ = everything(runner)
    torch.testing.assert_close(rows, functional.normalize(ours, dim=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", ["sums", "woodbury", "dual"])
def test_the_order_of_tasks_does_not_matter(solver: str) -> None:
    native, reversed_ = (after({"solver": solver}, class_order=order) for order in ("0,1,2,3,4,5", "5,4,3,2,1,0"))
    assert [native.stream.view(0).classes.tolist(), reversed_.stream.view(0).classes.tolist()] == [[0, 1], [5, 4]]
    torch.testing.assert_close(weights(native), weights(reversed_), rtol=0, atol=1e-10)


def test_init_seeds_give_no_spread() -> None:
    one, two = after(init_seed=0), after(init_seed=7)
    assert torch.equal(weights(one), weights(two))
    projected = [weights(after({"projection": 20}, init_seed=seed)) for seed in (0, 7)]
    assert not torch.equal(*projected)


@pytest.mark.parametrize("solver", ["woodbury", "dual"])
@pytest.mark.parametrize("more", [{}, {"normalisation": "none", "lambda": 3.0}, {"projection": 20}])
def test_other_solvers_give_the_same_answers(solver: str, more: dict[str, Any]) -> None:
    one, two = after(more), after(more | {"solver": solver})
    torch.testing.assert_close(weights(one), weights(two), rtol=1e-6, atol=1e-7 if more.get("projection") else 1e-9)
    intercepts = [runner.method.solution()[1] for runner in (one, two)]  # type: ignore[attr-defined]
    torch.testing.assert_close(*intercepts, rtol=1e-6, atol=1e-9)
    assert not len(one.method.memory)
    assert len(two.method.memory) == (len(everything(two)[0]) if solver == "dual" else 0)


@pytest.mark.parametrize("solver", ["sums", "dual"])
@pytest.mark.parametrize("balance", [False, True])
def test_centring_is_an_intercept_and_balance_a_weight_of_items(solver: str, balance: bool) -> None:
    """As scikit-learn solves them; labels of one class are thinned out, so that weights matter."""
    runner = after({"normalisation": "centred", "balance": balance, "solver": solver}, split="random", split_ratio=(0.5, 0.25, 0.25))
    method: Any = runner.method
    rows, y = everything(runner)
    counts = torch.bincount(y)
    assert len(counts.unique()) > 1
    targets = functional.one_hot(y, 6).numpy()
    model = Ridge(alpha=0.1).fit(rows.numpy(), targets, sample_weight=(1 / counts[y]).numpy() if balance else None)
    found, intercept = method.solution()
    np.testing.assert_allclose(found.numpy(), model.coef_.T, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(intercept.numpy(), model.intercept_, rtol=1e-3, atol=1e-4)
    with torch.no_grad():
        view = runner.stream.view(2)
        outputs = method.predict(Batch(graph=view.graph, ids=view.train.ids, allowed=view.seen_outputs))
    np.testing.assert_allclose(outputs.numpy(), model.predict(rows[-len(view.train) :].numpy()), rtol=1e-3, atol=1e-3)


def test_it_keeps_sums_that_do_not_grow_with_items() -> None:
    runner = after()
    result = runner.run()
    width = runner.stream.n_features + 1
    assert result.parameters["method_bytes"] == 8 * width * (width + 6)
    assert result.memory["items"] == 0
    balanced = after({"balance": True}).run()
    assert balanced.parameters["method_bytes"] == 6 * result.parameters["method_bytes"]


def test_an_encoder_is_trained_on_the_first_task_and_then_frozen() -> None:
    """ACIL: the network moves in the first task alone, and later ones have an epoch without effect."""
    runner = catalogue_runner(tiny_stream(tiny_data(per_class=15), **FULL, training=TRAINING), "analytic-ridge", {"features": "first-task"})
    states = list[dict[str, Tensor]]()
    runner.on_task = lambda k: states.append({n: v.clone() for n, v in runner.method.model.state_dict().items()})
    drawn = {n: v.clone() for n, v in runner.method.model.state_dict().items()}
    result = runner.run()
    last = runner.method.model.state_dict()
    assert any(not torch.equal(last[n], drawn[n]) for n in drawn)
    assert [len(curve["loss"]) for curve in result.curves] == [4, 1, 1]
    assert result.curves[1]["loss"] == [0.0]
    assert all(torch.equal(states[-1][n], last[n]) for n in last)
    assert not any(p.requires_grad for p in runner.method.model.parameters())
    plain = after({"features": "encoder"})
    assert all(torch.equal(v, drawn[n]) for n, v in plain.method.model.state_dict().items())


def test_labels_that_are_not_known_have_the_target_0() -> None:
    runner = catalogue_runner(variant_stream("multi class-il"), "analytic-ridge")
    method: Any = runner.method
    y = torch.tensor([[True, False, True, False, False, False]])
    allowed = torch.tensor([True, True, False, False, False, True])
    assert method.targets(y, allowed).tolist() == [[1, -1, 0, 0, 0, -1]]
    runner.run()
    dual = catalogue_runner(variant_stream("multi class-il"), "analytic-ridge", {"solver": "dual"})
    dual.run()
    torch.testing.assert_close(weights(runner), weights(dual), rtol=0, atol=1e-9)


def test_features_of_a_graph_are_the_mean_over_its_nodes() -> None:
    runner = catalogue_runner(variant_stream("graph class-il"), "analytic-ridge", {"hops": 1, "normalisation": "none"})
    method: Any = runner.method
    batch = runner.stream.view(0).train
    found = method._features(batch)
    propagated = batch.graph.propagate("sym", batch.graph.dense)
    torch.testing.assert_close(found, batch.graph.pool(propagated, "mean")[batch.ids])
    assert found.shape == (len(batch), runner.stream.n_features)


@pytest.mark.parametrize("solver", ["sums", "woodbury", "dual"])
def test_a_task_free_stream_is_learnt_batch_by_batch(solver: str) -> None:
    """Updates of a rank as large as the batch give what all items at once give."""
    runner = catalogue_task_free_runner(tiny_task_free_stream(), "analytic-ridge", {"solver": solver})
    runner.run()
    method: Any = runner.method
    sums = catalogue_task_free_runner(tiny_task_free_stream(), "analytic-ridge", {"normalisation": "unit"})
    sums.run()
    torch.testing.assert_close(weights(runner), weights(sums), rtol=0, atol=1e-9)
    assert method.solution()[0].abs().max() > 0


@pytest.mark.parametrize("more", [{"balance": True}, {"normalisation": "centred"}])
def test_an_inverse_cannot_take_weights_back(more: dict[str, Any]) -> None:
    with pytest.raises(
        SpecError, match="method.solver=woodbury cannot be used here: later items change the weights or means of earlier ones"
    ):
        after({"solver": "woodbury"} | more)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(NotApplicable, match="analytic-ridge with method.balance weighs items by their class"):
        catalogue_runner(variant_stream("multi class-il"), "analytic-ridge", {"balance": True})
    runner = catalogue_task_free_runner(tiny_task_free_stream(), "analytic-ridge", {"features": "first-task"})
    with pytest.raises(NotApplicable, match="a task-free stream has no tasks"):
        runner.run()
