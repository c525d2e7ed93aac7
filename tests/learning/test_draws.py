"""A method's own draws: a purpose goes on from draw to draw, begins anew with every prefix, and predicting moves none of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tiny_streams import KeptCheckpoints, assert_same_run, tiny_data, tiny_runner, tiny_stream
from tiny_task_free import task_free_runner, tiny_task_free_stream
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import LeakError
from cglsuite.learning.reproducibility.randomness import Draws, generator
from cglsuite.learning.runner import Runner
from cglsuite.streams import Batch, TaskView

DATA = tiny_data()


def over_tasks(method: type[Method]) -> Runner[Any]:
    return tiny_runner(tiny_stream(DATA, edge_policy="none", training={"epochs": 3}), method)


def task_free(method: type[Method]) -> Runner[Any]:
    return task_free_runner(tiny_task_free_stream(training={"epochs": 2}), method)


KINDS: dict[str, Callable[[type[Method]], Runner[Any]]] = {"tasks": over_tasks, "task-free": task_free}


class Noisy(Method):
    """Draws in its loss and while predicting, of purposes that are partly the same."""

    state = ("drawn",)

    def setup(self) -> None:
        """Nothing was drawn; one generator is held on to."""
        self.drawn: list[float] = []
        self.held = self.context.generator("held")

    def loss(self, batch: Batch) -> Tensor:
        """The batch's loss with noise of its own in every step."""
        noise = torch.rand((), generator=self.context.generator("noise")) + torch.rand((), generator=self.held)
        self.drawn.append(float(noise))
        return super().loss(batch) * (1 + 0.1 * noise)

    def predict(self, query: Batch) -> Tensor:
        """Outputs with noise."""
        out = super().predict(query)
        return out + torch.rand(out.shape, generator=self.context.generator("noise"))


class Quiet(Noisy):
    """Predicts without noise."""

    def predict(self, query: Batch) -> Tensor:
        """Plain outputs."""
        return self.forward(query)


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_replays_the_draws_of_another(kind: str) -> None:
    runner = KINDS[kind](Noisy)
    result = runner.run()
    drawn = runner.method.drawn  # type: ignore[attr-defined]
    assert len(set(drawn)) == len(drawn) == sum(map(len, (c["loss"] for c in result.curves))) * (2 if kind == "task-free" else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_an_interruption_replays_and_skips_nothing(kind: str) -> None:
    """From the state after any task or evaluation the run goes on as if it had not been interrupted."""
    whole, states = KINDS[kind](Noisy).run(), KeptCheckpoints()
    KINDS[kind](Noisy).run(keep_all := _KeepsAll())
    for prefix in keep_all.saved:
        states.files = {prefix: keep_all.files[prefix]}
        resumed = KINDS[kind](Noisy).run(states)
        assert_same_run(resumed, whole)
        assert resumed.fingerprints == whole.fingerprints


class _KeepsAll(KeptCheckpoints):
    def drop(self, prefix: str) -> None:
        """Nothing goes."""


@pytest.mark.parametrize("kind", KINDS)
def test_predicting_moves_no_generator_of_training(kind: str) -> None:
    noisy, quiet = KINDS[kind](Noisy), KINDS[kind](Quiet)
    one, other = noisy.run(), quiet.run()
    assert noisy.method.drawn == quiet.method.drawn  # type: ignore[attr-defined]
    assert [f["state"] for f in one.fingerprints] == [f["state"] for f in other.fingerprints]
    assert [f["answers"] for f in one.fingerprints] != [f["answers"] for f in other.fingerprints]


class Holds(Noisy):
    """Predicts with the generator that it holds for training."""

    def predict(self, query: Batch) -> Tensor:
        """Outputs with that noise."""
        out = self.forward(query)
        return out + torch.rand(out.shape, generator=self.held)


@pytest.mark.parametrize("kind", KINDS)
def test_predicting_with_a_generator_of_training_is_refused(kind: str) -> None:
    with pytest.raises(LeakError, match=r"Holds\.predict drew from the training generator 'held'.*call self\.context\.generator"):
        KINDS[kind](Holds).run()


class Guesses(Method):
    """Answers at random."""

    def predict(self, query: Batch) -> Tensor:
        """Numbers that were drawn for the query."""
        return torch.rand(len(query), self.problem.n_outputs, generator=self.context.generator("guess"))


@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_draws_for_a_query_do_not_depend_on_later_tasks(policy: str) -> None:
    def runner(order: str) -> Any:
        return tiny_runner(tiny_stream(DATA, class_order=order, edge_policy=policy, setting="task-il"), Guesses)

    kept = KeptCheckpoints()
    runner("0,1,2,3,4,5").run(kept, keep=99)
    shared = runner("0,1,4,5,2,3").run(kept, keep=99)
    assert shared.trained_tasks == 2
    assert_same_run(shared, runner("0,1,4,5,2,3").run())


def test_queries_have_draws_of_their_own() -> None:
    seen: list[list[float]] = []

    class Watched(Guesses):
        def predict(self, query: Batch) -> Tensor:
            """Note the first draws."""
            out = super().predict(query)
            seen.append(out[0].tolist())
            return out

    over_tasks(Watched).run()
    assert len({tuple(row) for row in seen}) == len(seen) == 1 + 2 + 3


def test_the_state_of_generators_is_in_checkpoints() -> None:
    """A run that is over goes on drawing where it was, whoever finished it."""

    class Late(Method):
        def after_task(self, view: TaskView) -> None:
            """One draw of three."""
            torch.rand(1, generator=self.context.generator("x"))

    kept = KeptCheckpoints()
    whole = over_tasks(Late)
    whole.run(kept)
    resumed = over_tasks(Late)
    assert resumed.run(kept).trained_tasks == 0
    both = [torch.rand(2, generator=runner.method.context.generator("x")).tolist() for runner in (whole, resumed)]
    assert both[0] == both[1] == torch.rand(3, generator=generator(0, "method", "x", whole.draw_names[3])).tolist()[1:]


def test_only_what_was_drawn_from_has_a_state() -> None:
    draws = Draws(3, "a")
    untouched, drawn = draws("untouched"), draws("drawn")
    assert draws.state() == {}
    torch.rand(4, generator=drawn)
    assert list(draws.state()) == ["drawn"]
    other = Draws(3, "elsewhere")
    other.load_state("a", draws.state())
    assert torch.equal(torch.rand(5, generator=other("drawn")), torch.rand(5, generator=drawn))
    draws.begin("b")
    assert draws.state() == {}
    assert draws("drawn") is drawn
    assert draws("untouched") is untouched
    assert torch.equal(torch.rand(2, generator=drawn), torch.rand(2, generator=generator(3, "method", "drawn", "b")))


def test_draws_while_predicting_begin_anew_with_every_query() -> None:
    draws = Draws(3, "a")

    def drawn(*query: str) -> list[float]:
        with draws.predicting(*query):
            return [torch.rand((), generator=draws("x")).item() for _ in range(2)]

    before = torch.rand((), generator=draws("x")).item()
    assert drawn("one") == drawn("one") != drawn("other")
    assert len({before, *drawn("one")}) == 3
    assert torch.rand((), generator=draws("x")).item() == torch.rand(2, generator=generator(3, "method", "x", "a"))[1].item()
