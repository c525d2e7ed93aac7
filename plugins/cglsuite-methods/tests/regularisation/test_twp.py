"""TWP: importances against their formulas, the second-order term against finite differences, and what each weight turns off."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from cglsuite_methods.regularisation.twp import TWP
from tiny_streams import KeptCheckpoints, assert_same_run, tiny_data, tiny_runner, tiny_stream
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from cglsuite import Method
from cglsuite.base.errors import NotApplicable
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch, TaskView

SETTINGS: dict[str, Any] = {"lambda_l": 3.0, "lambda_t": 2.0, "beta": 0.01, "detach_beta": False, "topology_accumulates": False}


def runner_of(*, stream: dict[str, Any] | None = None, sparse: bool = False, **changes: Any) -> TaskRunner:
    return tiny_runner(tiny_stream(tiny_data(sparse=sparse), **(stream or {})), TWP, SETTINGS | changes)


def learn_one(runner: TaskRunner) -> tuple[TWP, TaskView]:
    """The method in evaluation mode some steps into the first task, and the view of it."""
    view = runner.stream.view(0)
    runner.problem.arrive(view)
    method = runner.method
    assert isinstance(method, TWP)
    method.model.train()
    for _ in range(3):
        method.loss(view.train).backward()
        with torch.no_grad():
            for p in method.model.parameters():
                if p.grad is not None:
                    p -= 0.05 * p.grad
                p.grad = None
    method.model.eval()
    return method, view


def slopes(method: TWP, value: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(value, list(method.model.parameters()), materialize_grads=True, allow_unused=True))


def task_loss(method: TWP, batch: Batch) -> Tensor:
    return Method.loss(method, batch)


@pytest.mark.parametrize("accumulates", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_importance_by_formula(setting: str, sparse: bool, accumulates: bool) -> None:
    method, view = learn_one(runner_of(stream={"setting": setting}, sparse=sparse, topology_accumulates=accumulates))
    method.after_task(view)
    of_loss = slopes(method, task_loss(method, view.train))
    of_topology = slopes(method, method.model.edge_attention(view.graph).square().sum())
    assert all(max(float(g.abs().max()) for g in found) > 1e-4 for found in (of_loss, of_topology))
    for (name, parameter), a, b in zip(method.model.named_parameters(), of_loss, of_topology, strict=True):
        expected = 3.0 * a.square() + 2.0 * (a + b if accumulates else b).square()
        torch.testing.assert_close(method.importance[name], expected)
        torch.testing.assert_close(method.weighted[name], expected * parameter.detach())


def test_the_topology_concerns_the_first_convolution_only() -> None:
    method, view = learn_one(runner_of(lambda_l=0.0))
    method.after_task(view)
    assert {n for n, v in method.importance.items() if v.any()} == {"body.0.linear.weight"}


def test_the_penalty_holds_every_past_task() -> None:
    """After two tasks: the gradient is that of Σ_s Σ Ω_s (θ - θ*_s)²."""
    method, view = learn_one(runner_of(beta=0.0))
    kept = []
    for _ in range(2):
        before = {n: v.clone() for n, v in method.importance.items()}
        method.after_task(view)
        anchor = {n: p.detach().clone() for n, p in method.model.named_parameters()}
        kept.append(({n: v - before.get(n, 0.0) for n, v in method.importance.items()}, anchor))
        with torch.no_grad():
            for p in method.model.parameters():
                p += 0.1
    explicit = sum((w[n] * (p - a[n]).square()).sum() for w, a in kept for n, p in method.model.named_parameters())
    expected = slopes(method, task_loss(method, view.train) + explicit)
    method.loss(view.train).backward()
    method.before_step()
    for parameter, theirs in zip(method.model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_the_norm_of_the_gradient_has_a_gradient(setting: str, sparse: bool) -> None:
    """β H sign(g), with H sign(g) from differences of gradients along sign(g); the activation is smooth here, differences cross no kink."""
    method, view = learn_one(runner_of(stream={"setting": setting}, sparse=sparse, beta=0.5))
    method.model.activation = torch.tanh  # type: ignore[assignment]
    parameters = list(method.model.parameters())
    plain = slopes(method, task_loss(method, view.train))
    total = method.loss(view.train)
    assert torch.equal(total, task_loss(method, view.train))
    mine = [a - b for a, b in zip(slopes(method, total), plain, strict=True)]
    step, ends = 2e-3, []
    for side in (1, -1):
        with torch.no_grad():
            for p, g in zip(parameters, plain, strict=True):
                p += side * step * g.sign()
        ends.append(slopes(method, task_loss(method, view.train)))
        with torch.no_grad():
            for p, g in zip(parameters, plain, strict=True):
                p -= side * step * g.sign()
    expected = [0.5 * (a - b) / (2 * step) for a, b in zip(*ends, strict=True)]
    one, other = (torch.cat([v.flatten() for v in values]) for values in (mine, expected))
    assert float((one - other).norm()) < 0.02 * float(other.norm())
    assert float(other.norm()) > 1e-2


def test_the_step_is_that_of_the_written_out_sum() -> None:
    """The gradient of ``L + β Σ|∂L/∂θ|`` by autograd, with a parameter that the loss does not reach."""
    method, view = learn_one(runner_of(beta=0.5))
    method.model.register_parameter("apart", torch.nn.Parameter(torch.ones(3)))
    parameters = list(method.model.parameters())
    loss = task_loss(method, view.train)
    found = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True, allow_unused=True)
    expected = slopes(method, loss + 0.5 * torch.stack([g.abs().sum() for g in found]).sum())
    for mine, theirs in zip(slopes(method, method.loss(view.train)), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-7)
    assert max(float((a - b).abs().max()) for a, b in zip(expected, slopes(method, task_loss(method, view.train)), strict=True)) > 1e-2


def test_no_gradient_is_left_behind() -> None:
    method, view = learn_one(runner_of())
    before = {k: v.clone() for k, v in method.model.state_dict().items()}
    method.loss(view.train)
    method.after_task(view)
    assert all(p.grad is None for p in method.model.parameters())
    assert all(torch.equal(v, before[k]) for k, v in method.model.state_dict().items())


@pytest.mark.parametrize("policy", ["none", "full"])
def test_without_weights_it_is_fine_tuning_to_the_bit(policy: str) -> None:
    stream = tiny_stream(edge_policy=policy)
    twp = tiny_runner(stream, TWP, SETTINGS | {"lambda_l": 0.0, "lambda_t": 0.0, "beta": 0.0})
    bare = tiny_runner(stream, Method)
    one, other = twp.run(), bare.run()
    assert repr(one.matrix) == repr(other.matrix)
    assert one.curves == other.curves
    assert [f["answers"] for f in one.fingerprints] == [f["answers"] for f in other.fingerprints]
    assert one.parameters["method"] == 0


def test_detached_the_norm_has_no_effect() -> None:
    detached, without, attached = (runner_of(**c).run() for c in ({"detach_beta": True}, {"beta": 0.0}, {}))
    assert_same_run(detached, without)
    assert attached.curves[0] != without.curves[0]


def test_attention_is_computed_only_after_a_task_and_only_where_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for weight, expected in ((2.0, 3), (0.0, 0)):
        runner = runner_of(lambda_t=weight)
        asked: list[Any] = []
        original = runner.method.model.edge_attention
        monkeypatch.setattr(runner.method.model, "edge_attention", lambda g, o=original, a=asked: (a.append(g), o(g))[1])
        runner.run()
        assert len(asked) == expected


def test_a_backbone_without_edge_attention_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    from cglsuite.backbones import Backbone
    from cglsuite.backbones.convolutional import ConvolutionalBackbone

    monkeypatch.setattr(ConvolutionalBackbone, "edge_attention", Backbone.edge_attention)
    with pytest.raises(NotApplicable, match="does not compute attention over edges"):
        runner_of().run()
    runner_of(lambda_t=0.0, stream={"n_tasks": 1}).run()


def test_state_and_resumption() -> None:
    kept = KeptCheckpoints()
    whole = runner_of().run(kept, keep=99)
    assert whole.parameters["method"] == 2 * whole.parameters["model"]
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner_of().run(only), whole)


# --- as benchmarked -----------------------------------------------------------------------------------------------------------------


def attention_by_loops(sent: Tensor, listener: Tensor, edges: Tensor, n: int) -> Tensor:
    """``softmax_j LeakyReLU(<s_j, tanh(l_i)>)`` edge by edge: float32 [E']."""
    scores = torch.stack([torch.nn.functional.leaky_relu((sent[j] * listener[i].tanh()).sum(), 0.2) for j, i in edges.T.tolist()])
    totals = torch.stack([scores[edges[1] == k].logsumexp(dim=0) for k in range(n)])
    return (scores - totals[edges[1]]).exp()


@pytest.mark.parametrize("width", [3, 60])
@pytest.mark.parametrize("form", ["propagated", "degree-normalised"])
def test_attention_as_benchmarked_by_loops(form: str, width: int) -> None:
    """CGLB: from (A + I) X W. BeGin: from X W / √d, the listener's only where the layer narrows; d counts a node itself."""
    stream = tiny_stream()
    model = tiny_runner(stream, TWP, SETTINGS, backbone={"normalisation": "none", "bias": False, "width": width}).method.model
    graph = stream.view(0).graph
    edges, n = graph.edges_with_loops, graph.n_nodes
    mapped = graph.dense @ model.body[0].linear.weight  # type: ignore[union-attr, index]
    sums, degrees = torch.zeros_like(mapped), torch.zeros(n)
    for j, i in edges.T.tolist():
        sums[i] = sums[i] + mapped[j]
        degrees[j] += 1
    scaled = mapped / degrees.sqrt().unsqueeze(1)
    narrows = graph.dense.shape[1] > width
    assert narrows == (width == 3)
    sent, listener = (sums, sums) if form == "propagated" else (scaled, scaled if narrows else mapped)
    found = model.edge_attention_from(graph, form)
    torch.testing.assert_close(found.flatten(), attention_by_loops(sent, listener, edges, n))
    assert not torch.allclose(found, model.edge_attention(graph))


def test_importance_as_benchmarked_by_formula() -> None:
    """I_topo = (∂L/∂θ + ∂‖a‖/∂θ)² with the norm of the attention from the first layer's output."""
    given = {"topology_accumulates": True, "attention_norm": "norm", "attention_from": "propagated"}
    method, view = learn_one(runner_of(**given))
    method.after_task(view)
    of_loss = slopes(method, task_loss(method, view.train))
    of_topology = slopes(method, method.model.edge_attention_from(view.graph, "propagated").norm())
    for name, a, b in zip(dict(method.model.named_parameters()), of_loss, of_topology, strict=True):
        torch.testing.assert_close(method.importance[name], 3.0 * a.square() + 2.0 * (a + b).square())


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_loss_may_count_twice(beta: float) -> None:
    """Its value stays, its gradient doubles; that of the β term does not."""
    method, view = learn_one(runner_of(beta=beta))
    twice, _ = learn_one(runner_of(beta=beta, double_loss=True))
    twice.model.load_state_dict(method.model.state_dict())
    assert torch.equal(method.loss(view.train), twice.loss(view.train))
    plain, once = slopes(method, task_loss(method, view.train)), slopes(method, method.loss(view.train))
    for found, a, b in zip(slopes(twice, twice.loss(view.train)), plain, once, strict=True):
        torch.testing.assert_close(found, a + b)


def test_a_backbone_without_such_attention_refuses() -> None:
    stream = tiny_stream()
    model = tiny_runner(stream, TWP, SETTINGS).method.model
    model.body[0] = torch.nn.Identity()  # type: ignore[operator, index, union-attr]
    with pytest.raises(NotApplicable, match="cannot compute attention from propagated embeddings"):
        model.edge_attention_from(stream.view(0).graph, "propagated")


class Products(TorchDispatchMode):
    """Counts matrix products by the form of the left factor."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            matrices = [a for a in args if isinstance(a, Tensor) and a.dim() == 2][-2:]
            self.counts["sparse" if matrices[0].layout == torch.sparse_csr else "dense"] += 1
        return func(*args, **(kwargs or {}))


def products(method: Method, batch: Batch) -> Counter[str]:
    """The products of one step's forward and backward passes."""
    with Products() as seen:
        method.loss(batch).backward()
    return seen.counts


def test_the_exact_term_takes_every_sparse_product_once_more() -> None:
    """The count of docs/contributing/speed.md: products with the graph and the features double, dense ones rather more than double."""
    method, view = learn_one(runner_of(sparse=True))
    bare = tiny_runner(tiny_stream(tiny_data(sparse=True)), Method, {})
    bare.problem.arrive(view)
    bare.method.model.train()
    method.model.train()
    alone, exact = products(bare.method, view.train), products(method, view.train)
    assert alone["sparse"] >= 4
    assert exact["sparse"] == 2 * alone["sparse"]
    assert alone["dense"] < exact["dense"] <= 3 * alone["dense"], (alone, exact)
    cut, _ = learn_one(runner_of(sparse=True, detach_beta=True))
    cut.model.train()
    assert products(cut, view.train) == alone
