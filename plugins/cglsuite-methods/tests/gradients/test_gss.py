"""GSS: cosines between gradients, who gives way to whom, and scores that belong to the items they stand beside."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from cglsuite_methods.gradients.gss import GSS, replacements
from cglsuite_methods.gradients.products import gradient_similarity
from cglsuite_methods.rehearsal.task_free.memory import MEMORY
from scipy.stats import chisquare
from tiny_streams import tiny_graphs
from tiny_task_free import task_free_runner, tiny_task_free_stream

from cglsuite.base.errors import SpecError

SETTINGS: dict[str, Any] = {"memory": 12, "compared": 5, "chunk": 3, "neighbourhood": False}


@pytest.mark.parametrize("chunk", [1, 2, 16])
def test_cosines_of_gradients_one_by_one(chunk: int) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    x = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    parameters = list(model.parameters())
    rows = [torch.cat([g.flatten() for g in torch.autograd.grad(model(x[i]).pow(2).sum(), parameters)]) for i in range(7)]
    expected = torch.stack([torch.stack([torch.cosine_similarity(a, b, dim=0) for b in rows[:3]]) for a in rows[3:]])
    found = gradient_similarity(model(x).pow(2).squeeze(1), 3, parameters, chunk)
    torch.testing.assert_close(found, expected)


def test_only_items_that_point_elsewhere_are_candidates() -> None:
    victims, newcomers = replacements(torch.ones(4), torch.tensor([1.0, 1.5, 2.0]), torch.Generator())
    assert victims.numel() == newcomers.numel() == 0


def test_victims_are_drawn_by_score_and_the_better_one_stays_more_often() -> None:
    """One candidate of score 0.5 against scores (1, 3): victim i with probability C_i / 4, and then C_i / (C_i + 0.5)."""
    generator = torch.Generator().manual_seed(1)
    seen: Counter[int] = Counter()
    for _ in range(3000):
        victims, _ = replacements(torch.tensor([1.0, 3.0]), torch.tensor([0.5]), generator)
        seen[int(victims[0]) if victims.numel() else -1] += 1
    first, second = 0.25 * (1 / 1.5), 0.75 * (3 / 3.5)
    expected = [3000 * p for p in (first, second, 1 - first - second)]
    assert chisquare([seen[0], seen[1], seen[-1]], expected).pvalue > 1e-3


def test_the_items_of_a_batch_take_different_places() -> None:
    victims, newcomers = replacements(torch.full((5,), 2.0), torch.zeros(5), torch.Generator().manual_seed(0))
    assert sorted(victims.tolist()) == [0, 1, 2, 3, 4]
    assert newcomers.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("graphs", [False, True])
def test_scores_stay_beside_their_items(graphs: bool) -> None:
    """Filled first, then replaced; each score is the one its item was admitted with."""
    admitted: dict[float, float] = {}

    class Watched(GSS):
        def _scored(self, batch: Any, items: Any, memory: Any) -> torch.Tensor:
            assert self.model.training
            scores = super()._scored(batch, items, memory)
            assert self.model.training
            admitted.update(zip(first_feature(items), scores.tolist(), strict=True))
            return scores

    def first_feature(items: Any) -> list[float]:
        values: list[float] = (items.x.pool(items.x.features, "max") if graphs else items.x)[:, 0].tolist()
        return values

    runner = task_free_runner(tiny_task_free_stream(tiny_graphs(per_class=20) if graphs else None), Watched, SETTINGS)
    result = runner.run()
    method: Any = runner.method
    assert len(method.scores) == len(method.memory) == result.memory["items"] == 12
    assert result.counters["replaced"] > 0
    for item, score in zip(first_feature(method.memory[MEMORY]), method.scores.tolist(), strict=True):
        assert score == admitted.get(item, 1.0)
    assert all(0 <= s <= 2.00001 for s in method.scores.tolist())


@pytest.mark.parametrize("memory", [1, 4])
def test_a_first_batch_fills_the_memory(memory: int) -> None:
    """Whoever is drawn as a victim: one that holds a single item too, and one of the size of a batch replaces nothing."""
    for init_seed in range(6):
        runner = task_free_runner(tiny_task_free_stream(), GSS, SETTINGS | {"memory": memory}, init_seed=init_seed)
        method: Any = runner.method
        batch = runner.stream.make_batch(0)
        assert len(batch) == 4
        runner.problem.current = batch.allowed
        method.after_batch(batch)
        assert len(method.memory) == memory
        assert memory == 1 or method.replaced == 0
        assert method.scores.tolist() == [1.0] * memory


# --- as benchmarked by DRIFT --------------------------------------------------------------------------------------------------------


def gradient_of(method: Any, loss: torch.Tensor) -> torch.Tensor:
    parameters = list(method.model.parameters())
    found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(parameters, found, strict=True)])


def test_scores_by_the_mean_gradients_of_batches() -> None:
    """Against one backward pass per random batch of the memory, per item and for the batch as a whole."""
    runner = task_free_runner(tiny_task_free_stream(), GSS, SETTINGS | {"compared_batches": 2})
    method: Any = runner.method
    for step in range(3):
        batch = runner.stream.make_batch(step)
        runner.problem.current = batch.allowed
        if step < 2:
            method.after_batch(batch)
    method.model.eval()
    items, memory, n = method.sampled(batch, torch.arange(len(batch))), method.kept(), len(batch)
    same = torch.Generator()
    same.set_state(method.context.generator("compared").get_state())
    scores, opposed = method._scored_by_batches(batch, items, memory, 2)
    drawn = torch.randperm(len(memory), generator=same)[: 2 * n]
    references = []
    for part in drawn.split(n):
        replayed = method.problem.recall(memory.take(part), batch)
        references.append(gradient_of(method, method.problem.loss(method.forward(replayed), replayed)))
    asked = method.problem.recall(items, batch)
    losses = method.problem.loss(method.forward(asked), asked, "none")
    mine = [gradient_of(method, loss) for loss in [*losses, losses.mean()]]
    cosines = torch.stack([torch.stack([torch.cosine_similarity(g, r, dim=0) for r in references]).max() for g in mine])
    torch.testing.assert_close(scores, 1 + cosines[:-1], rtol=1e-4, atol=1e-5)
    assert opposed == bool(cosines[-1] < 0)


def test_steps_in_turn() -> None:
    """The first pass over a batch learns the batch, the second the memory; one pass alone is an error."""
    runner = task_free_runner(tiny_task_free_stream(), GSS, SETTINGS | {"separate_steps": True})
    method: Any = runner.method
    batch = runner.stream.make_batch(0)
    runner.problem.current = batch.allowed
    method.model.eval()
    method.before_batch(batch)
    assert torch.equal(method.loss(batch), method.problem.loss(method.forward(batch), batch))
    with pytest.raises(SpecError, match="set training.epochs = 2"):
        method.after_batch(batch)
    assert float(method.loss(batch).detach()) == 0.0
    method.after_batch(batch)
    method.before_batch(batch)
    method.loss(batch)
    replayed = method.problem.recall(method.kept(), batch)
    expected = method.problem.loss(method.forward(replayed), replayed)
    torch.testing.assert_close(method.loss(batch), expected)


def test_victims_of_a_batch_lie_above_the_lowest_score() -> None:
    """All that arrives is a candidate; the place of lowest score is drawn last, and the odds are those of the scores."""
    scores, arriving = torch.tensor([0.5, 1.5, 1.0, 0.9]), torch.tensor([1.2, 0.4])
    counts, wins = torch.zeros(4), 0
    for seed in range(400):
        victims, newcomers = replacements(scores, arriving, torch.Generator().manual_seed(seed), of_batch=True)
        counts[victims] += 1
        wins += len(newcomers)
    assert counts[0] == 0
    assert counts[1] > counts[2] > 0
    assert 0 < wins < 800
