"""SGC against its formula, and softmax regression on its embeddings against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tiny_streams import tiny_graphs
from torch.nn import functional

from cglsuite import load_catalogue
from cglsuite.backbones.sgc import SGC
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph
from cglsuite.testing import check_backbone

EDGES = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 2, 2]])
X = torch.tensor([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0], [0.5, 0.0, 0.0], [0.0, 3.0, 1.0]])
OWN = torch.tensor([[1.0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]])
SYM = torch.diag(OWN.sum(1).rsqrt()) @ OWN @ torch.diag(OWN.sum(1).rsqrt())


@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("normalisation", ["none", "unit"])
def test_sgc_by_formula(hops: int, normalisation: str) -> None:
    model = SGC(3, 5, hops=hops, normalisation=normalisation)
    rows = torch.linalg.matrix_power(SYM, hops) @ X
    if normalisation == "unit":
        rows = rows / rows.norm(dim=1, keepdim=True).clamp_min(1e-12)
    torch.testing.assert_close(model(MessageGraph(X, EDGES)), rows @ model.head.weight.T + model.head.bias)
    assert model.hops == hops
    assert [tag for tag, _, _ in model.tagged_parameters()] == ["head", "head"]


def test_a_graph_is_propagated_once_and_learnt_features_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, model = MessageGraph(X, EDGES), SGC(3, 5, hops=2, normalisation="none")
    calls: list[str] = []
    propagate = MessageGraph.propagate
    monkeypatch.setattr(MessageGraph, "propagate", lambda self, kind, h: calls.append(kind) or propagate(self, kind, h))
    assert model.encode(graph) is model.encode(graph)
    assert len(calls) == 2
    learnt = MessageGraph(X.clone().requires_grad_(), EDGES)
    model.encode(learnt).sum().backward()
    model.encode(learnt)
    assert len(calls) == 6


def test_graphs_are_means_of_their_nodes() -> None:
    graphs = tiny_graphs().items.queries(torch.arange(8), "cpu")
    rows = graphs.propagate("sym", graphs.propagate("sym", graphs.dense))
    embeddings = SGC(rows.shape[1], 2, hops=2, normalisation="none").encode(graphs)
    torch.testing.assert_close(embeddings, graphs.pool(rows, "mean"))


def test_it_is_softmax_regression() -> None:
    """Trained to the optimum of its loss with weight decay, its probabilities are those of scikit-learn's regression."""
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(60, 4)), dtype=torch.float32)
    y = torch.tensor(rng.integers(0, 3, 60))
    graph, model = MessageGraph(x, torch.tensor(rng.integers(0, 60, (2, 150)))), SGC(4, 3, hops=2, normalisation="none")
    rows, head = model.encode(graph).double(), model.head.double()
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=500, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(head(rows), y, reduction="sum") + 0.5 * head.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    expected = LogisticRegression(C=1.0, tol=1e-9, max_iter=5000).fit(rows.numpy(), y.numpy())
    np.testing.assert_allclose(torch.softmax(head(rows), 1).detach().numpy(), expected.predict_proba(rows.numpy()), atol=1e-4)


def test_it_keeps_the_promises_of_a_backbone_and_has_no_hidden_units() -> None:
    check_backbone("sgc", load_catalogue())
    with pytest.raises(NotApplicable, match="sgc has no hidden units"):
        SGC(3, 5, hops=2, normalisation="none").units()
