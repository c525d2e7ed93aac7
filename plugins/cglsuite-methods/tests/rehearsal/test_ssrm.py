"""SSRM: the discrepancy by hand, the graph before, and ER-GNN where the graph does not grow."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from cglsuite_methods.rehearsal.ssrm import SSRM, squared_mmd
from tiny_streams import KeptCheckpoints, assert_same_run, catalogue_runner, node_numbers, tiny_data, tiny_stream, variant_stream

from cglsuite.base.errors import NotApplicable
from cglsuite.learning.task_runner import TaskRunner

pytestmark = pytest.mark.plugins
MEMORY = {"per_class": 2}


# --- the discrepancy ------------------------------------------------------------------------------------------------------------------


def test_mmd_by_hand() -> None:
    """x = {0, 2}, y = {1}, σ = 1: mean k(x, x') = (1 + e^-2) / 2, k(y, y) = 1, mean k(x, y) = e^-1/2."""
    x, y = torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0]])
    assert float(squared_mmd(x, y, bandwidth=1.0)) == pytest.approx((1 + math.exp(-2)) / 2 + 1 - 2 * math.exp(-0.5))
    three = sum((1 + math.exp(-4 * g)) / 2 + 1 - 2 * math.exp(-g) for g in (1, 0.1, 0.001))
    assert float(squared_mmd(x, y, "three-gaussians")) == pytest.approx(three, rel=1e-4)


def test_the_bandwidth_is_the_median_distance() -> None:
    """Of 0, 1, 3 the distances are 1, 2, 3; where most rows are equal their mean counts, and equal samples differ by nothing."""
    x, y = torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0]])
    torch.testing.assert_close(squared_mmd(x, y), squared_mmd(x, y, bandwidth=2.0))
    zeros, one = torch.zeros(4, 1), torch.ones(1, 1)
    torch.testing.assert_close(squared_mmd(zeros, one), squared_mmd(zeros, one, bandwidth=0.4))
    assert squared_mmd(zeros, zeros[:2]) == 0


def test_it_is_zero_for_equal_samples_and_has_finite_gradients() -> None:
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    same = squared_mmd(x, x.detach().clone())
    assert float(same.detach()) == pytest.approx(0, abs=1e-6)
    same.backward()
    assert x.grad is not None
    assert float(x.grad.abs().max()) < 1e-6
    other = squared_mmd(x, x.detach() + 1)
    (gradient,) = torch.autograd.grad(other, x)
    assert torch.isfinite(gradient).all()
    assert float(other.detach()) > 0.1


# --- graphs that grow -----------------------------------------------------------------------------------------------------------------


def runner_of(method: str = "ssrm", /, *, hyperparameters: dict[str, Any] | None = None, **changes: Any) -> TaskRunner:
    asked = {"setting": "class-il", "edge_policy": "inter-task"} | changes
    return catalogue_runner(tiny_stream(tiny_data(per_class=15), **asked), method, MEMORY | (hyperparameters or {}))


@pytest.mark.parametrize("policy", ["inter-task", "snapshot"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_graph_before_is_read_off_the_current_one(policy: str, sparse: bool) -> None:
    """Same features, same edges, same nodes as in the view of the task before; stored nodes are themselves in both."""
    if policy == "snapshot":
        runner = catalogue_runner(variant_stream("time-il", data={"sparse": sparse}), "ssrm", MEMORY)
    else:
        runner = catalogue_runner(tiny_stream(tiny_data(per_class=15, sparse=sparse), edge_policy=policy), "ssrm", MEMORY)
    method = runner.method
    assert isinstance(method, SSRM)
    for k in range(3):
        view = runner.stream.view(k)
        runner.problem.arrive(view)
        method.model.eval()
        method.before_task(view)
        assert (method._shifted is None) == (k == 0)
        if method._shifted is not None:
            before, now = method._shifted
            old = runner.stream.view(k - 1).graph
            assert torch.equal(before.graph.dense, old.dense)
            edges = [set(map(tuple, g.edge_index.T.tolist())) for g in (before.graph, old)]
            assert edges[0] == edges[1]
            assert before.graph.n_edges == old.n_edges < view.graph.n_edges
            assert now.graph is view.graph
            assert node_numbers(before.graph, before.ids) == node_numbers(now.graph, now.ids)
            torch.testing.assert_close(before.y, now.y)
        method.after_task(view)


@pytest.mark.parametrize("kernel", ["gaussian", "three-gaussians"])
def test_the_penalty_is_added_with_its_weight(kernel: str) -> None:
    runner = runner_of(hyperparameters={"lambda": 3.0, "kernel": kernel})
    plain = runner_of("er-gnn")
    losses = []
    for made in (runner, plain):
        first, second = made.stream.view(0), made.stream.view(1)
        made.problem.arrive(first)
        made.method.model.eval()
        made.method.before_task(first)
        made.method.after_task(first)
        made.problem.arrive(second)
        made.method.before_task(second)
        losses.append(made.method.loss(second.train))
    method: Any = runner.method
    with torch.no_grad():
        items, n = runner.problem.join(method.memory.all()), runner.stream.view(0).graph.n_nodes
        old, new = (method.model.encode(runner.stream.view(k).graph)[items.ids] for k in (0, 1))
    assert n == method.n_before
    penalty = squared_mmd(old, new, kernel)
    assert penalty > 0
    torch.testing.assert_close(losses[0], losses[1] + 3 * penalty)


@pytest.mark.parametrize("policy", ["full", "none"])
def test_without_growth_it_is_er_gnn(policy: str) -> None:
    mine, plain = (runner_of(m, edge_policy=policy) for m in ("ssrm", "er-gnn"))
    one, two = mine.run(), plain.run()
    assert one.curves == two.curves
    assert [f["answers"] for f in one.fingerprints] == [f["answers"] for f in two.fingerprints]
    models = (runner.method.model.state_dict() for runner in (mine, plain))
    assert all(torch.equal(v, w) for v, w in zip(*(model.values() for model in models), strict=True))
    assert one.memory == two.memory


def test_without_weight_it_is_er_gnn_and_with_it_not() -> None:
    plain = runner_of("er-gnn").run()
    none, some = (runner_of(hyperparameters={"lambda": weight}).run() for weight in (0.0, 1.0))
    assert none.curves == plain.curves
    assert [f["answers"] for f in none.fingerprints] == [f["answers"] for f in plain.fingerprints]
    assert some.curves[0] == plain.curves[0]
    assert some.curves[1] != plain.curves[1]


@pytest.mark.nightly
def test_embeddings_shift_less_with_a_larger_weight() -> None:
    """The discrepancy of all stored nodes between the last two graphs, under the final model."""
    shifts = []
    for weight in (0.0, 100.0):
        training = {"epochs": 40, "lr": 0.02}
        runner = runner_of(hyperparameters={"lambda": weight, "per_class": 6}, training=training)
        runner.run()
        method = runner.method
        items = runner.problem.join([method.memory[s] for s in method.memory if not s.startswith("task-2")])
        method.model.eval()
        with torch.no_grad():
            old, new = (method.model.encode(runner.stream.view(k).graph)[items.ids] for k in (1, 2))
        shifts.append(float(squared_mmd(old, new)))
    assert shifts[1] < shifts[0] / 2


def test_resumption_with_what_was_before() -> None:
    kept = KeptCheckpoints()
    whole = runner_of().run(kept, keep=99)
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner_of().run(only), whole)


def test_it_is_for_nodes() -> None:
    with pytest.raises(NotApplicable, match="ssrm is not for GC"):
        catalogue_runner(variant_stream("graph class-il"), "ssrm")
