"""Gradients item by item, by hand."""

from __future__ import annotations

import pytest
import torch

from cglsuite.learning.gradients import per_item_gradients


@pytest.mark.parametrize(("n", "chunk", "sizes"), [(5, 2, [2, 2, 1]), (4, 2, [2, 2]), (3, 16, [3]), (17, 16, [16, 1])])
def test_gradients_of_every_value(n: int, chunk: int, sizes: list[int]) -> None:
    """Of v_i = a · x_i + b²: x_i for a and 2b for b, in chunks; zeros for what no value depends on."""
    x = torch.arange(2.0 * n).view(n, 2)
    a, b, unused = (torch.tensor(v, requires_grad=True) for v in ([1.0, -1.0], 3.0, [7.0]))
    parts = list(per_item_gradients(x @ a + b**2, [a, b, unused], chunk))
    assert [len(part[0]) for part in parts] == sizes
    by_a, by_b, by_unused = (torch.cat(part) for part in zip(*parts, strict=True))
    assert torch.equal(by_a, x)
    assert by_b.tolist() == [6.0] * n
    assert by_unused.tolist() == [[0.0]] * n


def test_sixteen_at_a_time() -> None:
    a = torch.ones(1, requires_grad=True)
    assert [len(part[0]) for part in per_item_gradients(a * torch.ones(20), [a])] == [16, 4]
