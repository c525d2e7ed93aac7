"""Several convolutional backbones of one shape as one model, for nodes of one message graph.

Every model has a slot, and every slot has whole blocks of 16 columns (64 bytes) in node-by-column matrices float32 [N, slots·block]. A
sparse product, batch norm, activation or dropout is then one operation for all models; maps are batched products, one per slot. No sum
crosses a slot's columns, and all slots are treated alike, so the outputs of a model depend neither on its slot nor on the other models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.base import Backbone
from cglsuite.backbones.convolutional import ConvolutionalBackbone
from cglsuite.backbones.layers import GCNConv, GINConv, _keep, drop
from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.learning.batched.operations import biased, joined, propagated, scalar

__all__ = ["Asked", "Items", "Masks", "Parts", "Pass", "Shape", "Stack", "masks_of", "shape_of"]

_BLOCK = 16
"""Columns of float32 in 64 bytes, the widest vector of a processor."""
_ROW = 64
_BETAS, _EPS = (0.9, 0.999), 1e-8
"""Of Adam: torch's defaults."""
Masks = list["Tensor | SparseMatrix | None"]
"""What dropout leaves of one model's input features (with their values), and its factors after each hidden convolution; ``None`` = all."""


def _padded(width: int) -> int:
    return -(-width // _BLOCK) * _BLOCK


@dataclass(frozen=True)
class Shape:
    """What models of one stack have in common: layers and their sizes, all settings, and the kinds of their norms."""

    facts: tuple[Any, ...]


def shape_of(model: Backbone) -> Shape | str:
    """The model's shape, or why it cannot be stacked."""
    if not isinstance(model, ConvolutionalBackbone):
        return f"the backbone {type(model).__name__} has no stacked form: expected gcn or gin"
    convolutions = [*model.body, model.head] if model.convolutional_head else list(model.body)
    if odd := next((type(c).__name__ for c in convolutions if type(c) not in (GCNConv, GINConv)), None):
        return f"layers of {odd} have no stacked form: expected GCNConv or GINConv"
    if model.activation is not functional.relu:  # torch rounds exponentials at the end of a tensor otherwise than before
        return "the backbone's activation is not ReLU"
    if not all(p.requires_grad for p in model.parameters()):
        return "some parameters are frozen"
    norms = [m for m in model.norms if isinstance(m, nn.BatchNorm1d)]
    if len(norms) != len(model.norms) or any(m.momentum is None or m.running_mean is None or not m.affine for m in norms):
        return "norms other than batch norm with moving averages have no stacked form"
    return Shape(
        (
            tuple(_layer_facts(c) for c in convolutions),
            None if model.convolutional_head else tuple(_tensor(model.head.weight).shape),
            tuple((m.eps, m.momentum) for m in norms),
            (model.activation, model.dropout, model.input_dropout, str(next(model.parameters()).device)),
        )
    )


def _layer_facts(layer: nn.Module) -> tuple[Any, ...]:
    weight = _weight(layer)
    how = layer.operator if isinstance(layer, GCNConv) else layer.eps
    return type(layer), how, tuple(weight.shape), layer.bias is not None


def _weight(layer: Any) -> Tensor:
    return _tensor(layer.linear.weight)


def _tensor(parameter: Any) -> Tensor:
    out: Tensor = parameter
    return out


def masks_of(model: ConvolutionalBackbone, graph: MessageGraph) -> Masks:
    """One forward pass's dropout, drawn from torch's global generator as the model would draw it by itself; of evaluation nothing."""
    if not model.training or not (model.dropout or model.input_dropout):
        return [None] * (len(model.body) + 1)
    x, masks = graph.features, Masks()
    if model.input_dropout > 0:
        values = x.values if isinstance(x, SparseMatrix) else x
        left = drop(values, model.input_dropout, True)
        masks.append(x.with_values(left) if isinstance(x, SparseMatrix) else left)
    else:
        masks.append(None)
    for convolution in model.body:
        width = _weight(convolution).shape[1]
        like = torch.empty(graph.n_nodes, width, device=graph.device) if model.dropout > 0 else None
        masks.append(None if like is None else _keep(like, model.dropout))
    return masks


class Parts:
    """A model's parameters and buffers, listed once: to walk through its modules takes as long as to copy them.

    Args:
        model: parameters and buffers stay the same objects while this is in use.
    """

    def __init__(self, model: ConvolutionalBackbone) -> None:
        self.model = model
        self.parameters = dict(model.named_parameters())
        self.statistics = {name: buffer for name, buffer in model.named_buffers() if buffer.dim()}
        self.counts = {name: buffer for name, buffer in model.named_buffers() if not buffer.dim()}
        self.norms: list[Any] = list(model.norms)

    @property
    def modes(self) -> tuple[bool, ...]:
        """Whether each norm uses the batch's statistics."""
        return tuple(norm.training for norm in self.norms)


class Stack:
    """The stacked form of models of one shape, with their parameters, gradients and moments of Adam: a row of numbers per slot.

    While a model is in a slot, its parameters and statistics are views of the slot's row.

    Args:
        model: one of them. slots: their number; unused ones are computed too, and their numbers are never read.
    """

    def __init__(self, model: ConvolutionalBackbone, slots: int) -> None:
        self.slots = slots
        self._model = _described(model)
        device = next(model.parameters()).device
        shapes = {name: _leaf_shape(name, parameter) for name, parameter in model.named_parameters()}
        self._places: dict[str, tuple[int, int]] = {}
        length = 0
        for name, shape in shapes.items():
            self._places[name] = length, math.prod(shape)
            length += -(-math.prod(shape) // _ROW) * _ROW  # no operation on rows ends within a vector
        self.weights, self.gradient, self._mean, self._square = (torch.zeros(slots, length, device=device) for _ in range(4))
        self._rows = [rows.unbind(0) for rows in (self.weights, self.gradient, self._mean, self._square)]
        self._shapes = shapes
        self._leaves = {name: self._leaf(self.weights, name) for name in shapes}
        self._gradients = {name: self._leaf(self.gradient, name) for name in shapes}
        sizes = {name: len(buffer) for name, buffer in model.named_buffers() if buffer.dim()}
        self._statistics = {name: torch.zeros(slots, _padded(size), device=device) for name, size in sizes.items()}

    def _leaf(self, rows: Tensor, name: str) -> Tensor:
        first, size = self._places[name]
        return rows[:, first : first + size].view(self.slots, *self._shapes[name])

    @torch.no_grad()
    def adopt(self, slot: int, parts: Parts) -> None:
        """Give a model the slot, with moments of 0."""
        for rows in (self.weights, self.gradient, self._mean, self._square):
            rows[slot] = 0.0
        for name, parameter in parts.parameters.items():
            place = _part(name, self._leaves[name][slot], parameter)
            parameter.data = place.copy_(parameter)
        for name, buffer in parts.statistics.items():
            self._statistics[name][slot] = 0.0
            place = self._statistics[name][slot, : len(buffer)]
            buffer.data = place.copy_(buffer)

    def moments(self, slot: int, parts: Parts) -> dict[str, tuple[Tensor, Tensor]]:
        """A slot's moments of Adam by parameter, as views in its shape."""
        means, squares = ({name: self._leaf(rows, name)[slot] for name in parts.parameters} for rows in (self._mean, self._square))
        return {name: (_part(name, means[name], p), _part(name, squares[name], p)) for name, p in parts.parameters.items()}

    @torch.no_grad()
    def release(self, slot: int, parts: Parts) -> None:
        """Give the model memory of its own again."""
        for tensor in (*parts.parameters.values(), *parts.statistics.values()):
            tensor.data = tensor.data.clone(memory_format=torch.contiguous_format)
        for parameter in parts.parameters.values():
            parameter.grad = None

    def forward(
        self, slots: Sequence[int], masks: Mapping[int, Masks], graph: MessageGraph, modes: Sequence[bool], *, head: bool = True, grad: bool
    ) -> Pass:
        """Outputs of all nodes (without ``head``: embeddings) of the models by slot.

        Args:
            slots: those whose norms' statistics move. masks: by slot, see :func:`masks_of`; none in evaluation. modes: of the norms, see
                :attr:`Parts.modes`. grad: whether :meth:`Pass.backward` will be asked for.
        """
        leaves = {name: leaf.detach().requires_grad_(grad) for name, leaf in self._leaves.items()}
        moved = {
            name: whole.clone() if any(modes) else whole for name, whole in self._statistics.items()
        }  # autograd keeps what it is given
        with torch.set_grad_enabled(grad):
            hidden = self._encoded(leaves, moved, masks, graph, modes)
            if head:
                hidden = self._read(leaves, hidden, graph)
        if any(modes):
            chosen = list(slots)
            for name, whole in moved.items():
                self._statistics[name][chosen] = whole[chosen]
        return Pass(self, hidden, self._model.outputs if head else self._model.widths[-1], leaves)

    @torch.no_grad()
    def clear(self, slots: Sequence[int]) -> None:
        """Set the gradients of some slots to 0."""
        if len(slots) == self.slots:
            self.gradient.zero_()
        else:
            self.gradient[list(slots)] = 0.0

    @torch.no_grad()
    def own_gradients(self, slot: int, parts: Parts) -> None:
        """Let the model's gradients be its part of :attr:`gradient`, with what they hold already added."""
        for name, parameter in parts.parameters.items():
            place = _part(name, self._gradients[name][slot], parameter)
            if parameter.grad is not None:
                place += parameter.grad
            parameter.grad = place

    @torch.no_grad()
    def taken_gradients(self, slot: int, parts: Parts) -> None:
        """Where a method has put another tensor in the place of a gradient, take that."""
        for name, parameter in parts.parameters.items():
            place = _part(name, self._gradients[name][slot], parameter)
            if parameter.grad is None:
                place.zero_()
            elif parameter.grad.data_ptr() != place.data_ptr():
                place.copy_(parameter.grad)

    @torch.no_grad()
    def adam(self, slots: Sequence[int], rates: Sequence[float], decays: Sequence[float], steps: Sequence[int]) -> None:
        """A step of Adam on some slots, each row by itself, in the arithmetic of :class:`cglsuite.learning.loop.FusedAdam`.

        Args:
            rates, decays: learning rate and weight decay of each. steps: the number of each one's step, from 1.
        """
        for (rate, decay), chosen in _alike(rates, decays).items():
            weights, gradients, means, squares = ([rows[slots[i]] for i in chosen] for rows in self._rows)
            counts = [torch.tensor(float(steps[i]), device=self.weights.device) for i in chosen]
            torch._fused_adam_(
                weights,
                gradients,
                means,
                squares,
                [],
                counts,
                lr=rate,
                beta1=_BETAS[0],
                beta2=_BETAS[1],
                weight_decay=decay,
                eps=_EPS,
                amsgrad=False,
                maximize=False,
            )

    @torch.no_grad()
    def sgd(self, slots: Sequence[int], rates: Sequence[float], decays: Sequence[float]) -> None:
        """A step down the gradient: ``θ -= η (g + decay θ)``."""
        for slot, rate, decay in zip(slots, rates, decays, strict=True):
            weights, gradient = self._rows[0][slot], self._rows[1][slot]
            weights.add_(gradient.add(weights, alpha=decay), alpha=-rate)

    def _encoded(
        self,
        leaves: Mapping[str, Tensor],
        statistics: Mapping[str, Tensor],
        masks: Mapping[int, Masks],
        graph: MessageGraph,
        modes: Sequence[bool],
    ) -> Tensor:
        described = self._model
        hidden = self._first(leaves["body.0.linear.weight"], masks, graph)
        for i, layer in enumerate(described.body):
            if i > 0:
                hidden = self._mapped(hidden, leaves[f"body.{i}.linear.weight"])
            hidden = propagated(layer, hidden, graph, leaves.get(f"body.{i}.bias"))
            if described.norms:
                hidden = functional.batch_norm(
                    hidden,
                    statistics[f"norms.{i}.running_mean"].view(-1),
                    statistics[f"norms.{i}.running_var"].view(-1),
                    leaves[f"norms.{i}.weight"].reshape(-1),
                    leaves[f"norms.{i}.bias"].reshape(-1),
                    modes[i],
                    described.norms[i][1],
                    described.norms[i][0],
                )
            hidden = described.activation(hidden)
            kept = {slot: of_slot[i + 1] for slot, of_slot in masks.items()}
            if any(mask is not None for mask in kept.values()):
                hidden = hidden * self._side_by_side(kept, graph.n_nodes, hidden.shape[1] // self.slots, hidden.device)
        return hidden

    def _first(self, weight: Tensor, masks: Mapping[int, Masks], graph: MessageGraph) -> Tensor:
        """``X W`` of every slot, each with the features that dropout left it: float32 [N, slots·block]."""
        x = graph.features
        own = {slot: of_slot[0] for slot, of_slot in masks.items()}
        if all(left is None for left in own.values()):
            if isinstance(x, SparseMatrix):
                return x @ weight.transpose(0, 1).reshape(weight.shape[1], -1)
            return joined(torch.bmm(x.expand(self.slots, *x.shape), weight))
        nothing = torch.zeros(graph.n_nodes, weight.shape[2], device=weight.device)
        products = [nothing if (left := own.get(slot)) is None else left @ part for slot, part in enumerate(weight.unbind(0))]
        return torch.cat(products, dim=1)

    def _mapped(self, hidden: Tensor, weight: Tensor) -> Tensor:
        """``H W`` of every slot: float32 [N, slots·a] and [slots, a, b] to [N, slots·b]."""
        return joined(torch.bmm(hidden.view(len(hidden), self.slots, -1).transpose(0, 1), weight))

    def _read(self, leaves: Mapping[str, Tensor], hidden: Tensor, graph: MessageGraph) -> Tensor:
        if self._model.head is not None:
            mapped = self._mapped(hidden, leaves["head.linear.weight"])
            return propagated(self._model.head, mapped, graph, leaves.get("head.bias"))
        return biased(self._mapped(hidden, leaves["head.weight"]), leaves["head.bias"])

    def _side_by_side(self, parts: Mapping[int, Any], n: int, block: int, device: torch.device) -> Tensor:
        whole = torch.zeros(n, self.slots, block, device=device)
        for slot, part in parts.items():
            whole[:, slot, : part.shape[1]] = part
        return whole.view(n, -1)


class Pass:
    """One stacked forward pass.

    Args:
        hidden: float32 [N, slots·block], what it computed. width: the columns of a block that count.
    """

    def __init__(self, stack: Stack, hidden: Tensor, width: int, leaves: Mapping[str, Tensor]) -> None:
        self.stack, self.width = stack, width
        self._hidden, self._leaves = hidden, leaves
        self._plain = hidden.detach().view(len(hidden), stack.slots, -1)

    def rows(self, slot: int, ids: Tensor | None) -> Tensor:
        """A slot's outputs for the nodes ``ids`` (int64 [n]; ``None`` = all): float32 [n, width], of its own memory."""
        own = self._plain[:, slot, : self.width]
        return own.clone(memory_format=torch.contiguous_format) if ids is None else own[ids]

    @torch.no_grad()
    def backward(self, given: Mapping[int, tuple[Tensor | None, Tensor]]) -> None:
        """Add to :attr:`Stack.gradient` the gradients of a scalar per slot; those of the other slots are 0.

        Args:
            given: by slot the nodes asked for (see :meth:`rows`), and the scalar's gradient with respect to their outputs.
        """
        gradient = torch.zeros_like(self._plain)
        for slot, (ids, of_rows) in given.items():
            own = gradient[:, slot, : self.width]
            if ids is None:
                own.copy_(of_rows)
            else:
                own.index_add_(0, ids, of_rows)
        self._differentiate(gradient, list(given))

    def _differentiate(self, gradient: Tensor, slots: Sequence[int]) -> None:
        with torch.enable_grad():
            seed = scalar(self._hidden, gradient.view_as(self._hidden))
        found = torch.autograd.grad(seed, list(self._leaves.values()), allow_unused=True)
        for name, added in zip(self._leaves, found, strict=True):
            if added is not None and len(slots) == self.stack.slots:
                self.stack._gradients[name] += added
            elif added is not None:
                for slot in slots:
                    self.stack._gradients[name][slot] += added[slot]

    @torch.no_grad()
    def cross_entropy(self, asked: Asked, *, grad: bool) -> list[float]:
        """The mean cross-entropy of each slot's items; with ``grad`` its gradient is added as in :meth:`backward`."""
        logits = self._plain.flatten(0, 1).index_select(0, asked.places).masked_fill_(asked.others, -torch.inf)
        losses = functional.log_softmax(logits, dim=1).gather(1, asked.y.unsqueeze(1)).squeeze(1).mul_(asked.weights).neg_()
        if grad:
            of_logits = functional.softmax(logits, dim=1)
            of_logits[asked.rows, asked.y] -= 1.0
            gradient = torch.zeros_like(self._plain)
            gradient.view(-1, gradient.shape[2]).index_add_(0, asked.places, of_logits * asked.weights.unsqueeze(1))
            self._differentiate(gradient, asked.slots)
        return torch.stack([part.sum() for part in losses.split(asked.sizes)]).tolist()


class Items:
    """Items of one slot and what their cross-entropy needs.

    Args:
        ids: int64 [n], their nodes. y: int64 [n]. allowed: the competing outputs, bool [C] or [n, C]. class_balanced: items of a class
            together weigh as much as those of any other.
    """

    def __init__(self, ids: Tensor, y: Tensor, allowed: Tensor, *, class_balanced: bool) -> None:
        self.ids, self.y, n, width = ids, y, len(ids), allowed.shape[-1]
        self.others = torch.ones(n, _padded(width), dtype=torch.bool, device=ids.device)
        self.others[:, :width] = ~allowed
        weights = torch.ones(n, device=ids.device)
        if class_balanced:
            weights = 1.0 / torch.bincount(y, minlength=width).to(weights.dtype)[y]
        self.weights = weights / weights.sum()


class Asked:
    """The items of several slots, side by side: one gather for all."""

    def __init__(self, items: Mapping[int, Items], slots: int) -> None:
        self.slots = list(items)
        self.sizes = [len(one.ids) for one in items.values()]
        self.places = torch.cat([one.ids * slots + slot for slot, one in items.items()])
        self.y, self.weights, self.others = (
            torch.cat([getattr(one, name) for one in items.values()]) for name in ("y", "weights", "others")
        )
        self.rows = torch.arange(len(self.y), device=self.y.device)


@dataclass(frozen=True)
class _Described:
    """A model's layers without its parameters."""

    body: list[tuple[str, float]]
    head: tuple[str, float] | None
    widths: list[int]
    outputs: int
    norms: list[tuple[float, float]]
    activation: Any


def _described(model: ConvolutionalBackbone) -> _Described:
    norms: list[Any] = list(model.norms)
    head: Any = model.head
    return _Described(
        body=[_how(layer) for layer in model.body],
        head=_how(head) if model.convolutional_head else None,
        widths=[_weight(layer).shape[1] for layer in model.body],
        outputs=head.linear.weight.shape[1] if model.convolutional_head else head.out_features,
        norms=[(m.eps, m.momentum) for m in norms],
        activation=model.activation,
    )


def _how(layer: nn.Module) -> tuple[str, float]:
    if isinstance(layer, GCNConv):
        return layer.operator, 0.0
    return "gin", float(layer.eps)  # type: ignore[arg-type]


def _alike(rates: Sequence[float], decays: Sequence[float]) -> dict[tuple[float, float], list[int]]:
    """The places of equal pairs."""
    places: dict[tuple[float, float], list[int]] = {}
    for place, pair in enumerate(zip(rates, decays, strict=True)):
        places.setdefault(pair, []).append(place)
    return places


def _is_torch_linear(name: str) -> bool:
    """Whether a parameter is the weight of a linear head, which torch keeps as [out, in]."""
    return name == "head.weight"


def _leaf_shape(name: str, parameter: Tensor) -> tuple[int, ...]:
    if parameter.dim() == 1:
        return (_padded(len(parameter)),)
    rows, columns = parameter.shape[::-1] if _is_torch_linear(name) else parameter.shape
    first = name == "body.0.linear.weight"  # its rows are input features, which all models share
    return (rows if first else _padded(rows), _padded(columns))


def _part(name: str, leaf: Tensor, parameter: Tensor) -> Tensor:
    """A parameter's place in its slot of a leaf, in the parameter's shape."""
    if parameter.dim() == 1:
        return leaf[: len(parameter)]
    if _is_torch_linear(name):
        return leaf[: parameter.shape[1], : parameter.shape[0]].t()
    return leaf[: parameter.shape[0], : parameter.shape[1]]
