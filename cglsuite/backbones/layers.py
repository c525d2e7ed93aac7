"""Graph layers for a :class:`~cglsuite.graphs.MessageGraph` or the nodes of a :class:`~cglsuite.graphs.GraphSet`.

Each layer computes ``P (H W)``, where P is prepared once per graph. Sparse features stay in CSR format in the input layer, and aggregation
runs on the narrower side of the product.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cglsuite.base.errors import SpecError
from cglsuite.graphs import GraphSet, MessageGraph, SparseMatrix, counted
from cglsuite.graphs.message import Operator

__all__ = [
    "EdgeGCNConv",
    "FeatureLinear",
    "GATConv",
    "GCNConv",
    "GINConv",
    "GINEConv",
    "Messages",
    "content_attention",
    "drop",
    "drop_features",
    "normalised",
]

Messages: TypeAlias = "MessageGraph | GraphSet"
"""The graph over which a layer passes messages. Layers work the same whether the nodes belong to one graph or to many."""


def drop(x: Tensor, p: float, training: bool) -> Tensor:
    """Apply dropout with probability ``p``: float32 of any shape."""
    return x * _keep(x, p) if training and p > 0 else x


def drop_features(x: Tensor | SparseMatrix, p: float, training: bool) -> Tensor | SparseMatrix:
    """Apply dropout to features, skipping the zeros of sparse ones, which would stay zero anyway."""
    if not isinstance(x, SparseMatrix):
        return drop(x, p, training)
    return x.with_values(drop(x.values, p, training)) if training and p > 0 else x


def _keep(x: Tensor, p: float) -> Tensor:
    """Draw a dropout mask with entries 0 and 1 / (1 - p) and the shape of ``x``, without gradient.

    On a CPU, torch draws one 64-bit number per entry, which takes longer than the next layer. Here, one number is used for four entries, so
    ``p`` and the scale are rounded to multiples of 2^-16.
    """
    if x.device.type != "cpu":
        return functional.dropout(torch.ones_like(x, requires_grad=False), p)
    numbers = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    kept = round((1 - p) * 2**16)
    mask = numbers.view(torch.int16)[: x.numel()].view(x.shape) <= kept - 2**15 - 1  # never overflows int16
    return mask.to(x.dtype).mul_(2**16 / kept)


class FeatureLinear(nn.Module):
    """Linear layer ``x W + b`` for dense or sparse features (float32 [N, in]), with Glorot-uniform W."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features = in_features
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor | SparseMatrix) -> Tensor:
        """Apply the layer: float32 [N, in] to [N, out]."""
        product = x @ self.weight
        return product if self.bias is None else product + self.bias


class GCNConv(nn.Module):
    """Graph convolution (Kipf & Welling 2017): ``P H W + b`` with P = D^-1/2 (A + I) D^-1/2 (``sym``) or A + I (``sum-self``)."""

    def __init__(self, in_features: int, out_features: int, operator: Operator = "sym", bias: bool = True) -> None:
        super().__init__()
        self.operator: Operator = operator
        self.linear = FeatureLinear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x: Tensor | SparseMatrix, graph: Messages) -> Tensor:
        """Apply the convolution: float32 [N, in] to [N, out]."""
        out = graph.propagate(self.operator, self.linear(x))
        return out if self.bias is None else out + self.bias

    def edge_attention(self, x: Tensor | SparseMatrix, graph: Messages) -> Tensor:
        """Derive each node's attention over its neighbours from ``W``: float32 [E', 1]; see :func:`content_attention`."""
        return content_attention(self.linear(x), graph)

    def edge_attention_from(self, x: Tensor | SparseMatrix, graph: Messages, embeddings: str) -> Tensor:
        """Compute attention from ``P H W`` (``propagated``) or ``D^-1/2 H W`` (``degree-normalised``) instead of ``H W``: float32 [E', 1].

        As in BeGin's code, receivers are degree-normalised only if the layer has more inputs than outputs.
        """
        hidden = self.linear(x)
        if embeddings == "propagated":
            return content_attention(graph.propagate(self.operator, hidden), graph)
        if embeddings != "degree-normalised":
            raise SpecError(f"attention cannot be computed from embeddings {embeddings!r}; expected 'propagated' or 'degree-normalised'")
        source, _ = graph.edges_with_loops
        sent = hidden * counted(source, graph.n_nodes).to(hidden.dtype).rsqrt().unsqueeze(-1)
        inputs, outputs = self.linear.weight.shape
        return content_attention(sent, graph, listener=sent if inputs > outputs else hidden)


class GINConv(nn.Module):
    """Graph isomorphism convolution (Xu et al. 2019) with one linear map and fixed ε: ``((1 + ε) H + Σ_neighbours H) W + b``."""

    def __init__(self, in_features: int, out_features: int, eps: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.linear = FeatureLinear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x: Tensor | SparseMatrix, graph: Messages) -> Tensor:
        """Apply the convolution: float32 [N, in] to [N, out]."""
        hidden = self.linear(x)
        out = graph.propagate("sum-self", hidden) if self.eps == 0 else (1 + self.eps) * hidden + graph.propagate("sum", hidden)
        return out if self.bias is None else out + self.bias

    def edge_attention(self, x: Tensor | SparseMatrix, graph: Messages) -> Tensor:
        """Derive each node's attention over its neighbours from ``W``: float32 [E', 1]; see :func:`content_attention`."""
        return content_attention(self.linear(x), graph)


class GATConv(nn.Module):
    """Graph attention (Veličković et al. 2018): ``softmax_j(LeakyReLU_0.2(a_l·W h_i + a_r·W h_j))`` per head, over neighbours and self."""

    def __init__(
        self, in_features: int, out_features: int, heads: int, concat: bool = True, attention_dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.heads, self.out_features, self.concat, self.attention_dropout = heads, out_features, concat, attention_dropout
        self.linear = FeatureLinear(in_features, heads * out_features, bias=False)
        self.target = nn.Parameter(torch.empty(heads, out_features))
        self.source = nn.Parameter(torch.empty(heads, out_features))
        bound = math.sqrt(6 / (1 + out_features))
        nn.init.uniform_(self.target, -bound, bound)
        nn.init.uniform_(self.source, -bound, bound)
        self.bias = nn.Parameter(torch.zeros(heads * out_features if concat else out_features)) if bias else None

    def forward(self, x: Tensor | SparseMatrix, graph: Messages) -> Tensor:
        """Apply the convolution: float32 [N, in] to [N, heads·out], or [N, out] (mean over heads)."""
        hidden = self._hidden(x)
        source, target = graph.edges_with_loops
        attention = functional.dropout(self._attention(hidden, graph), self.attention_dropout, self.training)
        out = torch.zeros_like(hidden).index_add(0, target, hidden[source] * attention.unsqueeze(-1))
        joined = out.flatten(1) if self.concat else out.mean(dim=1)
        return joined if self.bias is None else joined + self.bias

    def edge_attention(self, x: Tensor | SparseMatrix, graph: Messages) -> Tensor:
        """Compute the attention coefficients before dropout: float32 [E', heads]."""
        return self._attention(self._hidden(x), graph)

    def _hidden(self, x: Tensor | SparseMatrix) -> Tensor:
        hidden: Tensor = self.linear(x)
        return hidden.view(-1, self.heads, self.out_features)

    def _attention(self, hidden: Tensor, graph: Messages) -> Tensor:
        source, target = graph.edges_with_loops
        score = (hidden * self.target).sum(-1)[target] + (hidden * self.source).sum(-1)[source]
        return segment_softmax(functional.leaky_relu(score, 0.2), target, graph.n_nodes)


class EdgeGCNConv(nn.Module):
    """Graph convolution with an edge encoder (GCN of Hu et al. 2020, Open Graph Benchmark): ``Σ_j p_ij ReLU(W h_j + b + E e_ij)``.

    The sum is over the neighbours j of i and i itself, whose self-loop has a learnt embedding instead of ``E e_ij``. The factors are ``p_ij
    = 1 / √(d_i d_j)``, where d contains the row sums of A + I.
    """

    def __init__(self, in_features: int, out_features: int, edge_features: int) -> None:
        super().__init__()
        self.linear = FeatureLinear(in_features, out_features)
        self.edges = FeatureLinear(edge_features + 1, out_features, bias=False)  # the last row is for self-loops

    def forward(self, x: Tensor | SparseMatrix, graph: Messages) -> Tensor:
        """Apply the convolution: float32 [N, in] to [N, out]."""
        of_edges, of_loops = self.edges.weight[:-1], self.edges.weight[-1]
        attr, source, target = _edges(graph, len(of_edges))
        scale = (counted(target, graph.n_nodes) + 1).to(attr.dtype).rsqrt().unsqueeze(-1)
        # Since p_ij > 0 commutes with the ReLU, its two factors scale nodes before and after, instead of one message per edge.
        hidden = scale * self.linear(x)
        messages = hidden.index_select(0, source).addmm_(attr * scale[source], of_edges).relu_()
        return scale * functional.relu(hidden + scale * of_loops).index_add(0, target, messages)

    def edge_attention(self, x: Tensor | SparseMatrix, graph: Messages) -> Tensor:
        """Derive each node's attention over its neighbours from the messages before the ReLU: float32 [E', 1]; see
        :func:`content_attention`."""
        of_edges, of_loops = self.edges.weight[:-1], self.edges.weight[-1]
        return content_attention(self.linear(x), graph, of_edges, of_loops)


class GINEConv(nn.Module):
    """GIN convolution with edge features (Hu et al. 2020) and fixed ε: ``MLP((1 + ε) h_i + Σ_j ReLU(h_j + E e_ij))``.

    Without edge features, it is a GIN convolution (Xu et al. 2019): ``MLP((1 + ε) h_i + Σ_j h_j)``. The MLP has one hidden layer of twice
    the width.
    """

    def __init__(self, width: int, edge_features: int, eps: float, batch_norm: bool) -> None:
        super().__init__()
        self.eps = eps
        self.edges = FeatureLinear(edge_features, width, bias=False) if edge_features else None
        self.inner, self.outer = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.norm = nn.BatchNorm1d(2 * width) if batch_norm else None

    def forward(self, x: Tensor, graph: Messages) -> Tensor:
        """Apply the convolution: float32 [N, width] to [N, width]."""
        return self.mapped(self.hidden(self.gathered(x, graph)))

    def gathered(self, x: Tensor, graph: Messages) -> Tensor:
        """Compute the input of the MLP, ``(1 + ε) h_i`` plus the sum of messages: float32 [N, width]."""
        own = x if self.eps == 0 else (1 + self.eps) * x
        if self.edges is None:
            return own + graph.propagate("sum", x)
        attr, source, target = _edges(graph, self.edges.in_features)
        return own.index_add(0, target, x.index_select(0, source).addmm_(attr, self.edges.weight).relu_())

    def hidden(self, heard: Tensor) -> Tensor:
        """Compute the MLP's hidden layer, after its ReLU: float32 [N, 2 width]."""
        hidden = self.inner(heard)
        return functional.relu(hidden if self.norm is None else normalised(self.norm, hidden))

    def mapped(self, hidden: Tensor) -> Tensor:
        """Compute the MLP's outputs from its hidden layer: float32 [N, width]."""
        out: Tensor = self.outer(hidden)
        return out

    def edge_attention(self, x: Tensor, graph: Messages) -> Tensor:
        """Derive each node's attention over its neighbours from the messages before the ReLU: float32 [E', 1]; see
        :func:`content_attention`."""
        return content_attention(x, graph, None if self.edges is None else self.edges.weight)


def _edges(graph: Messages, n_features: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the features (float32 [E, D]), sources and targets of all edges except self-loops.

    Raises:
        SpecError: if the edges have a different number of features.
    """
    attr = getattr(graph, "edge_features", None)  # message graphs have none
    n_given = 0 if attr is None else attr.shape[1]
    if attr is None or n_given != n_features:
        raise SpecError(f"backbone.edge_features = {n_features}: the edges of this dataset have {n_given} features; expected {n_given}")
    source, target = graph.edges_with_loops[:, : len(attr)]
    return attr, source, target


def content_attention(
    hidden: Tensor, graph: Messages, of_edges: Tensor | None = None, of_loops: Tensor | None = None, listener: Tensor | None = None
) -> Tensor:
    """Compute attention from the messages of a layer without built-in attention: ``softmax_j LeakyReLU_0.2(<W h_j, tanh(W h_i)>)``.

    This is the definition of Liu et al. (2021) for convolutions. It stores N·d numbers, a few numbers per edge, and two blocks of
    ``_BLOCK`` edges, so that even a graph with a million edges does not need a tensor [E', d].

    Args:
        hidden: float32 [N, d], ``W h`` of every node.
        of_edges: float32 [D, d], the map of edge features that is added to messages (``W h_j + E e_ij``). ``None`` = no edge features.
        of_loops: float32 [d], the vector added to the messages of self-loops.
        listener: float32 [N, d], used as ``W h_i``. ``None`` = ``hidden``.

    Returns:
        float32 [E', 1], one weight for each edge j → i and self-loop of ``graph.edges_with_loops``. The weights of the edges into a node
        sum to 1.
    """
    source, target = graph.edges_with_loops
    listening = (hidden if listener is None else listener).tanh()
    score: Tensor = _EdgeProduct.apply(hidden, listening, source, target)  # type: ignore[no-untyped-call]
    if of_edges is not None:
        attr, _, proper = _edges(graph, len(of_edges))
        added = (attr * (listening @ of_edges.T).index_select(0, proper)).sum(dim=1)
        score = score + torch.cat([added, score.new_zeros(graph.n_nodes) if of_loops is None else listening @ of_loops])
    return segment_softmax(functional.leaky_relu(score, 0.2).unsqueeze(-1), target, graph.n_nodes)


_BLOCK = 2**16


class _EdgeProduct(torch.autograd.Function):
    """Compute ``<a[source], b[target]>`` for each edge, from two float32 [N, d] to float32 [E]. Differentiable once."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, source: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(a, b, source, target)
        return torch.cat([(a[s] * b[t]).sum(dim=1) for s, t in zip(source.split(_BLOCK), target.split(_BLOCK), strict=True)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        a, b, source, target = ctx.saved_tensors
        of_a, of_b = torch.zeros_like(a), torch.zeros_like(b)
        for s, t, g in zip(source.split(_BLOCK), target.split(_BLOCK), gradient.unsqueeze(-1).split(_BLOCK), strict=True):
            of_a.index_add_(0, s, g * b[t])
            of_b.index_add_(0, t, g * a[s])
        return of_a, of_b, None, None


def segment_softmax(score: Tensor, segment: Tensor, n_segments: int) -> Tensor:
    """Compute the softmax of ``score`` (float32 [E, h]) within each segment, given by ``segment`` (int64 [E])."""
    index = segment.unsqueeze(-1).expand_as(score)
    top = torch.full((n_segments, score.shape[1]), -torch.inf, device=score.device).scatter_reduce(0, index, score.detach(), "amax")
    weight = (score - top[segment]).exp()
    total = torch.zeros(n_segments, score.shape[1], device=score.device).index_add(0, segment, weight)
    return weight / total[segment]


def normalised(norm: nn.Module, x: Tensor) -> Tensor:
    """Apply batch norm to float32 [n, d]. A single row has no variance, so it is normalised with the running statistics.

    This happens if a memory or the last mini-batch of an epoch contains only one item.
    """
    if len(x) > 1 or not isinstance(norm, nn.BatchNorm1d) or not norm.training or norm.running_mean is None:
        out: Tensor = norm(x)
        return out
    return functional.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, training=False, eps=norm.eps)
