"""EvolveGCN: the recurrence against a cell by hand, what is learnt when, and that committing changes no answer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.baselines.evolve_gcn import EvolveGCN, EvolvingWeight, evolve
from tiny_streams import KeptCheckpoints, assert_same_run, tiny_model, tiny_runner, tiny_stream
from torch import Tensor, nn

from cglsuite.backbones.convolutional import gat, gin
from cglsuite.base.errors import NotApplicable
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import TaskView


def runner_of(method: type[EvolveGCN] = EvolveGCN, hyperparameters: dict[str, Any] | None = None, **stream: Any) -> TaskRunner:
    return tiny_runner(tiny_stream(**stream), method, hyperparameters or {})


def started(runner: TaskRunner) -> tuple[EvolveGCN, TaskView]:
    """The method in evaluation mode at the start of the first task."""
    view = runner.stream.view(0)
    runner.problem.arrive(view)
    method = runner.method
    assert isinstance(method, EvolveGCN)
    method.before_task(view)
    method.model.eval()
    return method, view


def layers(method: EvolveGCN) -> list[Any]:
    return [layer.linear for layer in method.model.body]  # type: ignore[union-attr]


def by_hand(cell: nn.GRUCell, w: Tensor) -> Tensor:
    """The gated recurrent unit of torch's documentation with x = h = W, row by row."""
    one, other = w @ cell.weight_ih.T + cell.bias_ih, w @ cell.weight_hh.T + cell.bias_hh
    (r1, z1, n1), (r2, z2, n2) = one.chunk(3, dim=1), other.chunk(3, dim=1)
    z = (z1 + z2).sigmoid()
    return (1 - z) * (n1 + (r1 + r2).sigmoid() * n2).tanh() + z * w


def test_weights_are_moved_by_the_cell_while_a_task_is_learnt() -> None:
    runner = runner_of()
    linear = layers(runner.method)[0]  # type: ignore[arg-type]
    start = linear.parametrizations.weight.original
    assert linear.weight is start
    started(runner)
    expected = by_hand(linear.parametrizations.weight[0].cell, start)
    torch.testing.assert_close(linear.weight, expected)
    assert not torch.allclose(linear.weight, start)


def test_the_model_computes_with_the_evolved_weights() -> None:
    """Its outputs are those of a plain backbone that holds them."""
    runner = runner_of()
    method, view = started(runner)
    plain = tiny_model(runner.stream)().eval()
    state = {k: v for k, v in method.model.state_dict().items() if "parametrizations" not in k}
    state |= {f"body.{i}.linear.weight": linear.weight for i, linear in enumerate(layers(method))}
    plain.load_state_dict(state)
    torch.testing.assert_close(method.model(view.graph), plain(view.graph))
    torch.testing.assert_close(method.model.edge_attention(view.graph), plain.edge_attention(view.graph))


def test_the_start_is_learnt_in_the_first_task_only() -> None:
    method, view = started(runner_of())
    for first in (True, False):
        method.model.zero_grad()
        method.loss(view.train).backward()
        for linear in layers(method):
            weight = linear.parametrizations.weight
            assert (weight.original.grad is not None and bool(weight.original.grad.any())) == first
            assert all(p.grad is not None and p.grad.any() for p in weight[0].cell.parameters())
        method.after_task(view)
        method.before_task(view)


def test_committing_changes_no_answer_and_the_next_task_starts_there() -> None:
    seen: list[Tensor] = []

    class Watched(EvolveGCN):
        def before_task(self, view: TaskView) -> None:
            if seen:
                assert all(torch.equal(layer.weight, w) for layer, w in zip(layers(self), seen, strict=True))
            super().before_task(view)

        def after_task(self, view: TaskView) -> None:
            with torch.no_grad():
                before = self.forward(view.train)
                seen[:] = [layer.weight.clone() for layer in layers(self)]
                super().after_task(view)
                assert torch.equal(self.forward(view.train), before)

    runner = runner_of(Watched)
    runner.run()
    assert [int(layer.parametrizations.weight[0].steps) for layer in layers(runner.method)] == [3, 3]  # type: ignore[arg-type]


def test_later_tasks_move_the_weights_through_the_cells_alone() -> None:
    """What a task starts from is not touched while it is learnt, whatever the optimiser carries over or decays."""
    starts: list[Tensor] = []

    class Watched(EvolveGCN):
        def before_task(self, view: TaskView) -> None:
            super().before_task(view)
            starts[:] = [layer.parametrizations.weight.original.detach().clone() for layer in layers(self)]

        def before_epoch(self, epoch: int) -> None:
            same = [torch.equal(layer.parametrizations.weight.original, s) for layer, s in zip(layers(self), starts, strict=True)]
            if epoch == 3:
                assert all(same) != (int(layers(self)[0].parametrizations.weight[0].steps) == 0)

    runner_of(Watched, training={"carry_optimizer": True, "weight_decay": 0.1}).run()


@pytest.mark.parametrize("training", [{}, {"carry_optimizer": True}, {"monitor": "validation-loss", "restore_best": True}])
@pytest.mark.parametrize("policy", ["none", "full"])
@pytest.mark.parametrize("start", ["previous", "drawn"])
def test_resumption(start: str, policy: str, training: dict[str, Any]) -> None:
    hyperparameters = {"start": start}
    kept = KeptCheckpoints()
    runner = runner_of(hyperparameters=hyperparameters, edge_policy=policy, training=training)
    cells = [linear.parametrizations.weight[0].cell for linear in layers(runner.method)]  # type: ignore[arg-type]
    whole = runner.run(kept, keep=99)
    assert whole.parameters["method"] == sum(p.numel() for cell in cells for p in cell.parameters())
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner_of(hyperparameters=hyperparameters, edge_policy=policy, training=training).run(only), whole)


def test_everything_that_is_learnt_is_the_models() -> None:
    """Optimiser, best weights and checkpoints reach cells and starts; heads keep their tag."""
    runner = runner_of()
    names = dict(runner.method.model.named_parameters())
    assert sum(n.endswith("weight.original") for n in names) == 2
    assert sum(".weight.0.cell." in n for n in names) == 8
    assert {n for t, n, _ in runner.method.model.tagged_parameters() if t == "head"} == {"head.weight", "head.bias"}


def test_gin_evolves_too_and_attention_does_not() -> None:
    model = gin(8, 6, layers=2, width=6, eps=0.0, batch_norm=False, dropout=0.0, head="convolution")
    evolve(model)
    assert sum(isinstance(m, EvolvingWeight) for m in model.modules()) == 1  # the convolution that is the head is trained as ever
    attentive = gat(8, 6, layers=2, width=6, heads=2, dropout=0.0, attention_dropout=0.0, head="linear")
    with pytest.raises(NotApplicable, match="the body of ConvolutionalBackbone contains other layers; choose the backbone gcn or gin"):
        evolve(attentive)


def test_as_the_library_of_agale_has_it_every_pass_is_one_step_from_the_drawn_weights() -> None:
    """In tasks and between them; the start has no gradient and stays, the cell is trained."""
    stream = tiny_stream()
    runner = tiny_runner(stream, EvolveGCN, {"start": "drawn"})
    method = runner.method
    drawn = [linear.parametrizations.weight.original.clone() for linear in layers(method)]
    view = runner.stream.view(0)
    runner.problem.arrive(view)
    for task in range(2):
        method.before_task(view)
        method.model.zero_grad()
        method.loss(view.train).backward()
        for linear, start in zip(layers(method), drawn, strict=True):
            weight = linear.parametrizations.weight
            assert weight.original.grad is None
            assert all(p.grad is not None and p.grad.any() for p in weight[0].cell.parameters())
            torch.testing.assert_close(linear.weight, by_hand(weight[0].cell, start))
        with torch.no_grad():
            for linear in layers(method):
                for p in linear.parametrizations.weight[0].cell.parameters():
                    p += 0.1 * (task + 1)
        method.after_task(view)
        for linear, start in zip(layers(method), drawn, strict=True):
            assert torch.equal(linear.parametrizations.weight.original, start)
            torch.testing.assert_close(linear.weight, by_hand(linear.parametrizations.weight[0].cell, start))
