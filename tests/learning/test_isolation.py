"""The tools of methods that give every task a part of the network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.learning.isolation import Held, by_task, frozen_units, output_wires, swapped
from cglsuite.streams import Batch


class Answers:
    """A method whose outputs are the item's id in the task's column."""

    def __init__(self) -> None:
        self.column = -1
        self.asked: list[list[int]] = []

    def forward(self, batch: Batch) -> Tensor:
        self.asked.append(batch.ids.tolist())
        out = torch.zeros(len(batch), 4)
        out[:, self.column] = batch.ids.float()
        return out

    @contextmanager
    def use(self, task: int) -> Iterator[None]:
        self.column = task
        yield
        self.column = -1


def query(tasks: list[int] | None) -> Batch:
    n = 4
    return Batch(
        graph=None,
        ids=torch.arange(1, n + 1),
        allowed=torch.ones(n, 4, dtype=torch.bool) if tasks else torch.ones(4, dtype=torch.bool),
        tasks=torch.tensor(tasks) if tasks else None,
    )


def test_items_are_answered_under_their_tasks() -> None:
    """Task 3 has not been learnt yet: its item is answered under task 1, the latest."""
    method = Answers()
    out = by_task(method, query([1, 0, 3, 0]), method.use, 2)  # type: ignore[arg-type]
    assert out.tolist() == [[0, 1, 0, 0], [2, 0, 0, 0], [0, 3, 0, 0], [4, 0, 0, 0]]
    assert method.asked == [[2, 4], [1, 3]]


def test_items_of_unknown_tasks_are_answered_under_the_latest() -> None:
    method = Answers()
    assert by_task(method, query(None), method.use, 2)[:, 1].tolist() == [1, 2, 3, 4]  # type: ignore[arg-type]


def test_swapped_values_are_put_back_bit_for_bit_after_an_error_too() -> None:
    model = nn.BatchNorm1d(2)
    before = {n: v.clone() for n, v in model.state_dict().items()}
    with suppress(KeyError), swapped(model, {"weight": torch.zeros(2), "running_mean": torch.ones(2)}):
        assert model.weight.tolist() == [0, 0]
        assert model.running_mean.tolist() == [1, 1]  # type: ignore[union-attr]
        raise KeyError
    assert all(torch.equal(v, before[n]) for n, v in model.state_dict().items())
    with pytest.raises(SpecError, match="no parameter or buffer bogus"), swapped(model, {"bogus": torch.zeros(2)}):
        pass


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
def test_held_entries_stay_whatever_moves_them(optimizer: Any) -> None:
    """Weight decay and the moments of earlier steps move a weight without a gradient; the mask holds it to the bit."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1, bias=False)
    steps = optimizer(model.parameters(), lr=0.1, weight_decay=0.5)
    model(torch.ones(1, 4)).sum().backward()
    steps.step()  # moments
    start = model.weight.detach().clone()
    held, mask = Held(model), torch.tensor([[True, False, True, False]])
    steps.zero_grad()
    model(torch.ones(1, 4)).sum().backward()
    held.before({"weight": mask})
    steps.step()
    held.after()
    assert torch.equal(model.weight[:, [1, 3]], start[:, [1, 3]])
    assert not (model.weight[:, [0, 2]] == start[:, [0, 2]]).any()


def test_a_soft_mask_scales_the_update() -> None:
    model = nn.Linear(3, 1, bias=False)
    start, held = model.weight.detach().clone(), Held(model)
    held.before({"weight": torch.tensor([[0.0, 0.25, 1.0]])})
    with torch.no_grad():
        model.weight.add_(1.0)
    held.after()
    assert (model.weight - start).tolist() == [pytest.approx([0.0, 0.25, 1.0])]


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_held_entries_keep_their_bits_whatever_they_are(dtype: torch.dtype, kind: torch.dtype) -> None:
    """Signed zeros, infinities and not-a-numbers before or after the step stay with the entries that have them."""
    odd = torch.tensor([0.0, -0.0, 1.5, -2.0, torch.inf, -torch.inf, torch.nan], dtype=kind)
    before, after = (grid.flatten().clone() for grid in torch.meshgrid(odd, odd, indexing="ij"))
    for mask in (torch.ones(len(before)), torch.zeros(len(before)), torch.arange(len(before)) % 2):
        model = nn.ParameterDict({"w": nn.Parameter(before.clone())})
        held = Held(model)
        held.before({"w": mask.to(dtype)})
        model["w"].data.copy_(after)
        held.after()
        expected = torch.where(mask.bool(), after, before)
        assert torch.equal(torch.signbit(model["w"]), torch.signbit(expected))
        assert torch.equal(model["w"].nan_to_num(7.0), expected.nan_to_num(7.0))


def test_masks_and_parameters_that_change_are_seen() -> None:
    """Masks are laid out once, but one that is written to, another one, and another parameter of the same name count."""

    def moved(mask: torch.Tensor) -> list[float]:
        start = model.weight.detach().clone()
        model.weight.grad = torch.ones(1, 3)
        held.before({"weight": mask})
        assert model.weight.grad.tolist() == mask.expand(1, 3).tolist()
        with torch.no_grad():
            model.weight.add_(1.0)
        held.after()
        return [round(d) for d in (model.weight - start).flatten().tolist()]

    model = nn.Linear(3, 1, bias=False)
    held, mask = Held(model), torch.tensor([[True, False, True]])
    assert moved(mask) == [1, 0, 1]
    with torch.no_grad():
        model.weight[0, 1] = 4.0  # between two steps
    assert moved(mask) == [1, 0, 1]
    assert model.weight[0, 1] == 4.0
    mask[0, 0] = False
    assert moved(mask) == [0, 0, 1]
    assert moved(torch.tensor([True, True, False])) == [1, 1, 0]
    model.weight = nn.Parameter(torch.zeros(1, 3))
    assert moved(mask) == [0, 0, 1]
    model.weight.data = torch.full((1, 3), 5.0)
    assert moved(mask) == [0, 0, 1]
    assert model.weight.tolist() == [[5.0, 5.0, 6.0]]


def test_what_is_not_named_moves_freely() -> None:
    model = nn.Linear(2, 1)
    held = Held(model)
    held.before({"bias": torch.tensor([False])})
    start = model.bias.detach().clone()
    with torch.no_grad():
        model.bias.add_(1.0)
        model.weight.fill_(3.0)
    held.after()
    assert model.weight.tolist() == [[3.0, 3.0]]
    assert torch.equal(model.bias, start)
    held.before({})
    held.after()
    assert torch.equal(model.bias, start)


def test_frozen_units_are_normalised_by_their_running_statistics() -> None:
    torch.manual_seed(0)
    norm, plain = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    for n in (norm, plain):
        n.running_mean.copy_(torch.tensor([1.0, 2.0]))  # type: ignore[union-attr]
        n.running_var.copy_(torch.tensor([4.0, 9.0]))  # type: ignore[union-attr]
    x = torch.randn(5, 2)
    with frozen_units({"norm": (norm, torch.tensor([True, False]))}):
        out = [norm(x), norm(x)][1]
    expected = [plain(x), plain(x)][1]
    assert torch.allclose(out[:, 0], (x[:, 0] - 1) / (4 + norm.eps) ** 0.5)
    assert torch.equal(out[:, 1], expected[:, 1])
    assert norm.running_mean.tolist() == [1.0, plain.running_mean[1].item()]  # type: ignore[union-attr,index]
    assert norm.running_var.tolist() == [4.0, plain.running_var[1].item()]  # type: ignore[union-attr,index]
    assert torch.equal(norm(x), nn.BatchNorm1d(2)(x)), "outside the context the norm is as any"


def test_output_wires() -> None:
    assert [tuple(w) for w in output_wires(nn.Linear(3, 2))] == [("head.weight", 0, 1), ("head.bias", 0, 1)]
    with pytest.raises(NotApplicable):
        output_wires(nn.Sequential(nn.Linear(3, 2)))


def test_a_batch_norm_without_running_statistics_has_none_to_keep() -> None:
    """Its outputs and its weights are as without the context; other modules are left alone."""
    norm, x = nn.BatchNorm1d(3, track_running_stats=False), torch.arange(12.0).view(4, 3) ** 1.5
    plain = norm(x)
    with frozen_units({"a": (norm, torch.tensor([True, False, True])), "b": (nn.LayerNorm(3), torch.tensor([True, True, True]))}):
        assert torch.equal(norm(x), plain)
    tracked = nn.BatchNorm1d(3)
    with frozen_units({"a": (tracked, torch.tensor([True, False, False]))}):
        out = tracked(x)
    assert tracked.running_mean is not None
    assert tracked.running_mean[0] == 0.0
    assert tracked.running_mean[1] == pytest.approx(0.1 * float(x[:, 1].mean()))
    torch.testing.assert_close(out[:, 0], x[:, 0] / (1 + tracked.eps) ** 0.5)
    torch.testing.assert_close(out[:, 1], plain[:, 1])
