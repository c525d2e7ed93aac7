"""Helpers with which built-in backbones implement :meth:`cglsuite.backbones.Backbone.units`: how layers write and read units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from torch import nn

from cglsuite.backbones.layers import EdgeGCNConv, FeatureLinear, GATConv, GCNConv, GINConv
from cglsuite.backbones.units import Units, Wire
from cglsuite.base.errors import NotApplicable


class Layer(NamedTuple):
    """The units of a layer, the parameters that write them, and how the layer reads the units of the previous layer."""

    name: str
    width: int
    writers: tuple[Wire, ...]
    readers: tuple[Wire, ...]
    together: int = 1

    def with_writers(self, *further: Wire) -> Layer:
        """Return a copy of the layer with additional parameters that write its units."""
        return self._replace(writers=(*self.writers, *further))


def chained(layers: Iterable[Layer], last: Iterable[Wire]) -> tuple[Units, ...]:
    """Return the units of consecutive layers, each read by the next layer. ``last`` reads the units of the final layer."""
    layers = list(layers)
    readers = [*(layer.readers for layer in layers[1:]), tuple(last)]
    return tuple(Units(layer.name, layer.width, layer.writers, read, layer.together) for layer, read in zip(layers, readers, strict=True))


def normed(name: str) -> tuple[Wire, Wire]:
    """Return the wires of the affine parameters of the norm called ``name``."""
    return Wire(f"{name}.weight", 0), Wire(f"{name}.bias", 0)


def reading(name: str, module: nn.Module, tile: int = 1) -> Wire:
    """Return how the layer or head called ``name`` reads the units of the previous layer.

    Raises:
        NotApplicable: if the kind of layer is unknown.
    """
    return layer_of(name, module).readers[0]._replace(tile=tile)


_STOCK = {  # of torch_geometric.nn: (weights [out, in], parameters with one entry per unit, whether they have attention heads)
    "SAGEConv": (("lin_l", "lin_r"), (), False),
    "GraphConv": (("lin_rel", "lin_root"), (), False),
    "GCNConv": (("lin",), ("bias",), False),
    "GATConv": (("lin",), ("att_src", "att_dst", "bias"), True),
    "GATv2Conv": (("lin_l", "lin_r"), ("att", "bias"), True),
    "TransformerConv": (("lin_key", "lin_query", "lin_value", "lin_skip"), (), True),
}


def layer_of(name: str, module: nn.Module) -> Layer:
    """Return the units of the layer called ``name``, with the parameters that write and read them.

    Raises:
        NotApplicable: if the kind of layer is unknown.
    """
    own = {parameter for parameter, _ in module.named_parameters()}

    def wires(axis: int | None, *parameters: str) -> tuple[Wire, ...]:
        return tuple(Wire(f"{name}.{parameter}", axis) for parameter in parameters if parameter in own)

    if isinstance(module, nn.Linear):
        return Layer(name, module.out_features, wires(0, "weight", "bias"), wires(1, "weight"))
    if isinstance(module, FeatureLinear):
        return Layer(name, module.weight.shape[1], (*wires(1, "weight"), *wires(0, "bias")), wires(0, "weight"))
    if isinstance(module, GATConv):
        writers = (*wires(1, "linear.weight"), *wires(None, "target", "source"), *wires(0, "bias"))
        return Layer(name, module.linear.weight.shape[1], writers, wires(0, "linear.weight"), module.out_features)
    if isinstance(module, GCNConv | GINConv | EdgeGCNConv):
        writers = (*wires(1, "linear.weight", "edges.weight"), *wires(0, "linear.bias", "bias"))
        return Layer(name, module.linear.weight.shape[1], writers, wires(0, "linear.weight"))
    kind = type(module).__name__
    if kind in _STOCK and hasattr(module, "propagate") and all(hasattr(module, name) for name in _STOCK[kind][0]):
        maps, entries, heads = _STOCK[kind]
        weights = [f"{m}.weight" for m in maps]
        biases = [f"{m}.bias" for m in maps]
        width = module.get_parameter(weights[0]).shape[0]
        together = width // int(module.heads) if heads else 1  # type: ignore[arg-type]
        return Layer(name, width, (*wires(0, *weights, *biases), *wires(None, *entries)), wires(1, *weights), together)
    raise NotApplicable(
        f"the layer {name} is a {kind}, whose units cannot be addressed individually: choose a backbone of linear maps and convolutions "
        "(gcn, gat, gin, link-gcn, graph-gcn)"
    )
