"""DMSG: the greedy choice against brute force, each term of the loss, and who is trained by what."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_methods.rehearsal.task_free.dmsg import (
    DMSG,
    Generation,
    diverse,
    furthest_apart,
    kl_to_standard,
    reversed_gradient,
    same_class_loss,
)
from cglsuite_methods.rehearsal.task_free.memory import MEMORY
from tiny_streams import tiny_data, tiny_graphs
from tiny_task_free import task_free_runner, tiny_task_free_stream
from torch.distributions import Normal, kl_divergence

from cglsuite.backbones import convolutional

SETTINGS: dict[str, Any] = {"memory": 18, "inter": 1.0, "reconstruction": 0.1, "kl": 0.1, "adversarial": 0.1}


def cosines_of(*points: tuple[float, float]) -> np.ndarray:
    x = np.array(points, dtype=np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


def test_the_first_covers_its_class_and_the_second_what_is_left() -> None:
    """Three alike and one apart, of one class: one of the three, then the other."""
    cosines = cosines_of((1, 0.02), (1, 0), (1, -0.02), (-0.2, 1))
    assert diverse(cosines, np.ones((4, 1), dtype=np.bool_), 1, 0.0).tolist() == [0]
    assert diverse(cosines, np.ones((4, 1), dtype=np.bool_), 2, 0.0).tolist() == [0, 3]


def test_other_classes_are_kept_away_from() -> None:
    """Items 0 and 1 of a class are each other's mirror image; item 2, of another class, lies beside item 0."""
    cosines = cosines_of((1, 1), (1, -1), (1, 1.2))
    carried = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.bool_)
    assert diverse(cosines, carried, 2, 1.0).tolist() == [1, 2]


def test_classes_have_equal_shares_and_small_ones_leave_theirs() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(20, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    carried = np.zeros((20, 3), dtype=np.bool_)
    carried[:12, 0], carried[12:18, 1], carried[18:, 2] = True, True, True
    chosen = diverse(x @ x.T, carried, 12, 0.5)
    assert carried[chosen].sum(axis=0).tolist() == [5, 5, 2]
    assert diverse(x @ x.T, carried, 99, 0.5).tolist() == list(range(20))


def test_each_choice_has_the_largest_gain() -> None:
    """Against the objective, written out: of one class, the mean cover plus the weighted distance to the others."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=(9, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    cosines = x @ x.T
    carried = np.zeros((9, 2), dtype=np.bool_)
    carried[:6, 0], carried[6:, 1] = True, True

    def objective(chosen: list[int]) -> float:
        mine = [j for j in chosen if j < 6]
        cover = np.maximum(-1.0, cosines[:6][:, mine].max(axis=1)).mean() if mine else -1.0
        return float(cover + 0.7 * sum(1 - cosines[j, 6:].max() for j in mine))

    first = max(range(6), key=lambda j: objective([j]))
    second = max((j for j in range(6) if j != first), key=lambda j: objective([first, j]))
    assert [j for j in diverse(cosines, carried, 3, 0.7).tolist() if j < 6] == sorted((first, second))


@pytest.mark.parametrize("inter", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("labels", ["one", "several"])
def test_the_greedy_choice_against_loops(labels: str, inter: float) -> None:
    """Item by item, at every size of memory: the least chosen class next, of it the item with the largest gain."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(14, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    cosines = x @ x.T
    carried = np.eye(3, dtype=np.bool_)[np.arange(14) % 3]
    if labels == "several":
        carried |= generator.random((14, 3)) < 0.3
        carried[0] = True  # no item is of another class than this one

    def away(j: int) -> float:
        others = [cosines[j, u] for u in range(14) if not (carried[j] & carried[u]).any()]
        return 1.0 - (max(others) if others else -1.0)

    chosen: list[int] = []
    for n in range(1, 15):
        counts = [sum(carried[j, c] for j in chosen) for c in range(3)]
        open_classes = [c for c in range(3) if any(carried[j, c] and j not in chosen for j in range(14))]
        k = min(open_classes, key=lambda c: (counts[c], c))
        members = [i for i in range(14) if carried[i, k]]

        def cover(picked: list[int], k: int = k, members: list[int] = members) -> float:
            return float(np.mean([max([cosines[i, j] for j in picked if carried[j, k]], default=-1.0) for i in members]))

        gains = {j: cover([*chosen, j]) - cover(chosen) + inter * away(j) for j in range(14) if carried[j, k] and j not in chosen}
        chosen.append(max(gains, key=lambda j: gains[j]))
        assert diverse(cosines, carried, n, inter).tolist() == sorted(chosen)


def test_terms_by_hand() -> None:
    mean, spread = torch.randn(4, 3), torch.rand(4, 3) + 0.1
    expected = kl_divergence(Normal(mean, spread), Normal(torch.zeros(4, 3), torch.ones(4, 3))).mean()
    torch.testing.assert_close(kl_to_standard(mean, spread), expected)
    h = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    chance = torch.sigmoid(torch.tensor([1.0, 4.0, 0.0]))
    by_hand = -(chance[0].log() + chance[1].log() + 2 * (1 - chance[2]).log()) / 4
    torch.testing.assert_close(same_class_loss(h, torch.eye(2)), by_hand)


def written_out(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """``x Wᵀ + b`` in float64."""
    return np.asarray(x.astype(np.float64) @ weight.astype(np.float64).T + bias.astype(np.float64))


def cross_entropy_of(logits: np.ndarray, target: np.ndarray) -> float:
    """``-mean(y ln σ(a) + (1 - y) ln(1 - σ(a)))``."""
    chance = 1 / (1 + np.exp(-logits))
    return float(-np.mean(target * np.log(chance) + (1 - target) * np.log(1 - chance)))


def test_every_term_from_its_formula() -> None:
    """In NumPy, from the weights and the drawn noise alone: replay, reconstruction, KL and adversarial terms, and their weighted sum."""
    weights = {"reconstruction": 0.3, "kl": 0.7, "adversarial": 1.9}
    runner = task_free_runner(tiny_task_free_stream(), DMSG, SETTINGS | weights)
    runner.run()
    method: Any = runner.method
    method.model.eval()
    replay = runner.problem.recall(method.memory[MEMORY], None)
    torch.manual_seed(11)
    found = float(method._generated(replay).detach())
    torch.manual_seed(11)
    mean = method.model.encode(replay.graph).detach()
    noise = torch.randn_like(mean).numpy().astype(np.float64)
    named = {n: p.detach().numpy() for n, p in method.model.generation.named_parameters()}
    mu, y = mean.numpy().astype(np.float64), replay.y.numpy()
    spread = np.log1p(np.exp(written_out(mu, named["scale.weight"], named["scale.bias"])))
    made = mu + noise * spread
    logits = method.model.head(torch.from_numpy(made).float()).detach().numpy().astype(np.float64)[:, replay.allowed.numpy()]
    columns = np.flatnonzero(replay.allowed.numpy())
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    replayed = -np.mean([np.log(row[list(columns).index(c)]) for row, c in zip(chances, y, strict=True)])
    reconstruction = cross_entropy_of(made @ made.T, (y[:, None] == y).astype(np.float64))
    divergence = np.mean(-np.log(spread) + (spread**2 + mu**2) / 2 - 0.5)
    hidden = np.maximum(written_out(np.concatenate([made, mu]), named["discriminator.0.weight"], named["discriminator.0.bias"]), 0)
    answers = written_out(hidden, named["discriminator.2.weight"], named["discriminator.2.bias"])[:, 0]
    adversarial = cross_entropy_of(answers, np.repeat([0.0, 1.0], len(mu)))
    expected = replayed + 0.3 * reconstruction + 0.7 * divergence + 1.9 * adversarial
    assert min(reconstruction, divergence, adversarial) > 1e-3, "each term counts"
    assert found == pytest.approx(expected, rel=1e-4)


def test_the_gradient_is_reversed_for_the_inputs_and_not_for_the_discriminator() -> None:
    x = torch.ones(2, requires_grad=True)
    (reversed_gradient(x) * torch.tensor([2.0, 3.0])).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert x.grad.tolist() == [-2.0, -3.0]
    torch.manual_seed(0)
    generation = Generation(3)
    made = torch.randn(50, 3, requires_grad=True)
    true = torch.randn(50, 3) + 2
    loss = generation.adversarial(made, true)
    own = torch.autograd.grad(loss, list(generation.discriminator.parameters()), retain_graph=True)
    (theirs,) = torch.autograd.grad(loss, made)
    with torch.no_grad():
        for p, g in zip(generation.discriminator.parameters(), own, strict=True):
            p.sub_(0.01 * g)
        assert generation.adversarial(made, true) < loss, "a step along its gradient serves the discriminator"
        for p, g in zip(generation.discriminator.parameters(), own, strict=True):
            p.add_(0.01 * g)
        assert generation.adversarial(made - 0.1 * theirs, true) > loss, "a step along theirs fools it"


@pytest.mark.parametrize("graphs", [False, True])
def test_all_parts_are_trained_and_the_memory_is_full(graphs: bool) -> None:
    stream = tiny_task_free_stream(tiny_graphs(per_class=20) if graphs else None)
    runner = task_free_runner(stream, DMSG, SETTINGS)
    before = {n: p.detach().clone() for n, p in runner.method.model.named_parameters()}
    held = {id(p) for group in runner.optimizer.param_groups for p in group["params"]}
    assert held == {id(p) for p in runner.method.model.parameters()}
    result = runner.run()
    moved = {n for n, p in runner.method.model.named_parameters() if not torch.equal(p, before[n])}
    assert {n for n in before if n.startswith("generation.")} <= moved
    assert result.memory["items"] == 18
    classes = torch.bincount(runner.method.memory[MEMORY].y, minlength=6)
    assert int(classes.max()) - int(classes.min()) <= 1


@pytest.mark.parametrize("kind", ["gcn", "gin", "gat"])
def test_heads_that_pass_messages(kind: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "gcn": {"normalisation": "symmetric", "bias": True, "batch_norm": False, "dropout": 0.0, "input_dropout": 0.0},
        "gin": {"eps": 0.0, "batch_norm": False, "dropout": 0.0},
        "gat": {"heads": 2, "dropout": 0.0, "attention_dropout": 0.0},
    }
    stream = tiny_task_free_stream(tiny_data(per_class=20))
    build = getattr(convolutional, kind)
    runner = task_free_runner(stream, DMSG, SETTINGS)
    make = partial(build, 8, 6, layers=2, width=4, head="convolution", **options[kind])
    made = DMSG(replace(runner.method.context, build_model=make))
    batch = stream.make_batch(0)
    runner.problem.current = batch.allowed
    made.before_batch(batch)
    made.after_batch(batch)
    assert torch.isfinite(made.loss(batch))


# --- as benchmarked by DRIFT --------------------------------------------------------------------------------------------------------

BENCHMARKED: dict[str, Any] = {"replay_weight": 20.0, "kl_unit": "bits", "selection": "max-min"}


def test_picks_are_furthest_apart() -> None:
    """Against the rule written out: the largest norm, then the largest distance to the nearest pick among softmax outputs."""
    outputs = torch.randn(12, 4, generator=torch.Generator().manual_seed(3))
    points = outputs.softmax(dim=1)
    picks = [int(outputs.norm(dim=1).argmax())]
    for _ in range(4):
        distance = [-1.0 if i in picks else min(float((points[i] - points[j]).norm()) for j in picks) for i in range(12)]
        picks.append(distance.index(max(distance)))
    assert furthest_apart(outputs, 5).tolist() == picks
    assert sorted(furthest_apart(outputs, 99).tolist()) == list(range(12))


def test_the_divergence_in_bits_is_the_sum_over_coordinates() -> None:
    runner = task_free_runner(tiny_task_free_stream(), DMSG, SETTINGS | BENCHMARKED)
    method: Any = runner.method
    mean, spread = torch.randn(6, 5), torch.rand(6, 5) + 0.1
    expected = kl_divergence(Normal(mean, spread), Normal(0.0, 1.0)).sum(dim=1).mean() / np.log(2)
    torch.testing.assert_close(method._divergence(mean, spread), expected)


def test_the_weight_of_replay() -> None:
    """The term of the replayed embeddings counts 20 times, the others as they did."""
    losses, alone = [], {"reconstruction": 0.0, "kl": 0.0, "adversarial": 0.0}
    for weight in (1.0, 20.0):
        runner = task_free_runner(tiny_task_free_stream(), DMSG, SETTINGS | alone | {"replay_weight": weight})
        method: Any = runner.method
        batch = runner.stream.make_batch(0)
        runner.problem.current = batch.allowed
        torch.manual_seed(5)
        replayed = method.problem.recall(method.sampled(batch, torch.arange(len(batch))), batch)
        losses.append(float(method._generated(replayed).detach()))
    assert losses[1] == pytest.approx(20 * losses[0], rel=1e-5)


def test_a_reservoir_of_half_of_every_batch() -> None:
    """Filled with the picks of each batch in turn; then a pick replaces a place that is drawn, or passes."""
    runner = task_free_runner(tiny_task_free_stream(), DMSG, SETTINGS | BENCHMARKED | {"memory": 7})
    method: Any = runner.method
    size = method.problem.batch_size
    for step in range(4):
        batch = runner.stream.make_batch(step)
        runner.problem.current = batch.allowed
        kept = None if step == 0 else method.kept().ids.tolist()
        picks = batch.ids[furthest_apart(method.problem.forward(method.model.eval(), batch), size // 2)].tolist()
        method.after_batch(batch)
        now = method.kept().ids.tolist()
        if kept is None:
            assert now == picks
        else:
            assert len(now) == min(7, (step + 1) * len(picks))
            assert set(now) <= set(kept) | set(picks)
    assert int(method.model.generation.picked) == 4 * (size // 2)
    assert "picked" not in dict(task_free_runner(tiny_task_free_stream(), DMSG, SETTINGS).method.model.generation.named_buffers())


def test_items_of_no_class_are_never_selected() -> None:
    """However many are asked for: the selection ends with the last item that carries a class."""
    carried = np.array([[True, False], [False, False], [False, True], [False, False]])
    assert diverse(np.eye(4), carried, 4, 0.5).tolist() == [0, 2]
    assert diverse(np.eye(4), np.zeros((4, 2), dtype=np.bool_), 3, 0.5).tolist() == []
