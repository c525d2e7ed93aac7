"""Inner products of per-item gradients, computed without forming the gradients where a product ``X W`` would make them large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from cglsuite.backbones.layers import FeatureLinear
from cglsuite.graphs import SparseMatrix
from cglsuite.learning.gradients import per_item_gradients

_AT_ONCE = 2**22  # numbers


@dataclass(frozen=True, eq=False)
class Product:
    """Record one use of a weight in a forward pass: ``output = x weight + b``, with x float32 [N, in], dense or sparse, and output float32
    [N, out].
    """

    weight: nn.Parameter
    x: Tensor | SparseMatrix
    output: Tensor


@contextmanager
def products_of(model: nn.Module) -> Iterator[list[Product]]:
    """Collect the products of all :class:`~cglsuite.backbones.layers.FeatureLinear` layers in forward passes inside the ``with`` block."""
    products: list[Product] = []

    def note(module: Any, given: tuple[Any, ...], output: Tensor) -> None:
        products.append(Product(module.weight, given[0], output))

    handles = [module.register_forward_hook(note) for module in model.modules() if isinstance(module, FeatureLinear)]
    try:
        yield products
    finally:
        for handle in handles:
            handle.remove()


def gradient_similarity(
    losses: Tensor, references: int, parameters: Sequence[Tensor], chunk: int, products: Sequence[Product] = ()
) -> Tensor:
    """Compute cosine similarities between per-item gradients: float32 [n - references, references].

    The gradient of item i for W in ``Z = X W`` is ``Xᵀ D_i`` with ``D_i = ∂L_i/∂Z``, so ``<Xᵀ D_i, Xᵀ D_j> = <(X Xᵀ) D_i, D_j>``. If this
    takes less memory than the gradients and W has no other use, the gradients are never formed. Items with zero gradient have cosines of 0.

    Args:
        losses: float32 [n], one per item; the first ``references`` are the items that the others are compared with.
        parameters: the parameters to differentiate with respect to.
        chunk: items per batched backward pass; more if their gradients are small.
        products: the products that :func:`products_of` collected in the forward pass of the losses.
    """
    kept = _never_formed(losses, products)
    covered = {id(product.weight) for product in kept}
    plain = [parameter for parameter in parameters if id(parameter) not in covered]
    leaves = [*(product.output for product in kept), *plain]
    grams = [_gram(product.x) for product in kept]
    at_once = max(chunk, _AT_ONCE // max(1, sum(leaf.numel() for leaf in leaves)))

    def sides(values: Tensor) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Yield for each chunk of items the pairs of tensors (float32 [m, p] each) for which ``<g_i, g_j> = Σ left_i · right_j``."""
        for rows in per_item_gradients(values, leaves, at_once):
            of_products = [(gram @ d, d) for gram, d in zip(grams, rows, strict=False)]
            yield [(a.flatten(1), b.flatten(1)) for a, b in [*of_products, *((g, g) for g in rows[len(kept) :])]]

    of_references = [tuple(map(torch.cat, zip(*parts, strict=True))) for parts in zip(*sides(losses[:references]), strict=True)]
    norms = _norms(of_references)
    out = []
    for mine in sides(losses[references:]):
        inner = torch.stack([left @ right.T for (left, _), (_, right) in zip(mine, of_references, strict=True)]).sum(dim=0)
        out.append(inner / torch.outer(_norms(mine), norms).clamp(min=torch.finfo(inner.dtype).tiny))
    return torch.cat(out)


def _norms(sides: Sequence[tuple[Tensor, ...]]) -> Tensor:
    """Norms of the gradients represented by these pairs: float32 [m]."""
    return torch.stack([(left * right).sum(dim=1) for left, right in sides]).sum(dim=0).clamp(min=0).sqrt()


def _gram(x: Tensor | SparseMatrix) -> Tensor:
    """The Gram matrix ``X Xᵀ``: float32 [N, N]."""
    if isinstance(x, Tensor):
        return x @ x.T
    rows = x.rows(torch.arange(x.shape[0]))
    return torch.from_numpy((rows @ rows.T).toarray()).to(x.values.device)


def _never_formed(losses: Tensor, products: Sequence[Product]) -> list[Product]:
    """The products to use in place of gradients: each is its weight's only use, and smaller than the gradients would be."""
    uses = _uses(losses)
    chosen = []
    for product in products:
        n, (inner, outer), rows = len(losses), product.weight.shape, len(product.output)
        only = uses.get(id(product.weight), 0) == 1 and sum(p.weight is product.weight for p in products) == 1
        if only and rows * (rows + n * outer) < n * inner * outer:
            chosen.append(product)
    return chosen


def _uses(losses: Tensor) -> dict[int, int]:
    """How many operations in the graph of ``losses`` read each leaf, by ``id``."""
    uses: dict[int, int] = {}
    met, ahead = set(), [losses.grad_fn]
    while ahead:
        node: Any = ahead.pop()
        if node is None or node in met:
            continue
        met.add(node)
        for following, _ in node.next_functions:
            leaf = getattr(following, "variable", None)
            if leaf is not None:
                uses[id(leaf)] = uses.get(id(leaf), 0) + 1
            else:
                ahead.append(following)
    return uses
