"""DER++ and ER-ACE: what is stored, what is compared with it, which classes compete."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.rehearsal.task_free.der import DERPlusPlus
from cglsuite_methods.rehearsal.task_free.er_ace import ERACE
from cglsuite_methods.rehearsal.task_free.memory import MEMORY
from tiny_streams import tiny_data, tiny_graphs, tiny_runner, tiny_stream
from tiny_task_free import task_free_runner, tiny_task_free_stream
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import NotApplicable
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView

DER: dict[str, Any] = {"memory": 9, "alpha": 0.3, "beta": 0.7, "neighbourhood": False}
ACE: dict[str, Any] = {"memory": 9, "neighbourhood": False}


class Scripted(DERPlusPlus):
    """Notes the draws of each step and compares its loss with one from the definition."""

    def setup(self) -> None:
        """Nothing was compared yet."""
        super().setup()
        self.compared = 0
        self._draws: list[MemoryItems | None] = []

    def drawn(self, n: int) -> MemoryItems | None:
        """As drawn, and noted."""
        self._draws.append(super().drawn(n))
        return self._draws[-1]

    def loss(self, batch: Batch) -> Tensor:
        """Without dropout, so that forward passes can be repeated."""
        self.model.eval()
        self._draws = []
        found = super().loss(batch)
        first, second = self._draws
        expected = functional.cross_entropy(self.forward(batch).masked_fill(~batch.allowed, -torch.inf), self.problem.labels(batch))
        if first is not None and second is not None:
            z, stored, competed = self.forward(self.problem.recall(first, batch)).detach(), first.extra["outputs"], first.extra["competed"]
            squares = [float((z[i, c] - stored[i, c]) ** 2) for i in range(len(first)) for c in range(z.shape[1]) if competed[i, c]]
            replay = self.problem.recall(second, batch)
            again = functional.cross_entropy(self.forward(replay).masked_fill(~replay.allowed, -torch.inf), second.y)
            expected = expected + 0.3 * sum(squares) / len(squares) + 0.7 * again
            self.compared += 1
        torch.testing.assert_close(found, expected)
        self.model.train()
        return found


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
@pytest.mark.parametrize("neighbourhood", [False, True])
def test_the_loss_is_that_of_the_paper(setting: str, neighbourhood: bool) -> None:
    stream = tiny_stream(setting=setting, edge_policy="full")
    runner = tiny_runner(stream, Scripted, DER | {"neighbourhood": neighbourhood})
    runner.run()
    assert runner.method.compared == 2 * 4, "two tasks of four epochs come after the first"  # type: ignore[attr-defined]


def test_and_in_a_stream_without_tasks() -> None:
    runner = task_free_runner(tiny_task_free_stream(), Scripted, DER)
    runner.run()
    assert runner.method.compared == runner.stream.n_steps - 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("graphs", [False, True])
def test_stored_outputs_are_those_of_the_moment_as_the_item_is_kept(graphs: bool) -> None:
    """After the last task those of its items are what the model says now; only outputs that had come by then are compared."""

    class Watched(DERPlusPlus):
        def after_task(self, view: TaskView) -> None:
            super().after_task(view)
            items = self.memory[MEMORY]
            own = (items.tasks == view.position).nonzero().flatten()
            assert len(own)
            with torch.no_grad():
                now = self.forward(self.problem.recall(items.take(own)))
            torch.testing.assert_close(now, items.extra["outputs"][own])
            assert items.extra["competed"].sum(dim=1).tolist() == [2 * (t + 1) for t in items.tasks.tolist()]

    tiny_runner(tiny_stream(tiny_graphs() if graphs else tiny_data()), Watched, DER | {"memory": 15}).run()


def test_two_draws_differ_and_beta_of_zero_is_der() -> None:
    draws: list[tuple[list[int], list[int]]] = []

    class Watched(Scripted):
        def loss(self, batch: Batch) -> Tensor:
            loss = super().loss(batch)
            first, second = self._draws
            if first is not None and second is not None and len(self.memory) > len(batch):
                draws.append((first.ids.tolist(), second.ids.tolist()))
            return loss

    task_free_runner(tiny_task_free_stream(), Watched, DER | {"memory": 20}).run()
    assert draws
    assert any(sorted(one) != sorted(other) for one, other in draws)


@pytest.mark.parametrize("method", [DERPlusPlus, ERACE])
def test_by_reference_it_is_refused_where_earlier_nodes_are_gone(method: Any) -> None:
    runner = tiny_runner(tiny_stream(edge_policy="none"), method, DER | {"neighbourhood": True})
    with pytest.raises(NotApplicable, match="but the edge policy `none` excludes old nodes from it"):
        runner.run()


# --- ER-ACE -----------------------------------------------------------------------------------------------------------------------


def test_new_items_compete_among_the_classes_of_their_batch() -> None:
    """By hand: items of classes 3 and 1, with logits 0 but for class 3, which has log 3 for both; 0, 2, 4 and 5 do not count."""
    runner = tiny_runner(tiny_stream(), ERACE, ACE)
    for k in range(3):
        runner.problem.arrive(runner.stream.view(k))
    view = runner.stream.view(2)
    batch = Batch(graph=view.graph, ids=torch.tensor([0, 1, 2]), allowed=view.train.allowed, y=torch.tensor([3, 1, 3]))
    method: Any = runner.method
    own = method.among_own(batch)
    assert own.allowed.nonzero().flatten().tolist() == [1, 3]
    logits = torch.zeros(3, 6)
    logits[:, 3] = torch.tensor(3.0).log()
    expected = -(2 * torch.tensor(3 / 4).log() + torch.tensor(1 / 4).log()) / 3
    torch.testing.assert_close(runner.problem.loss(logits, own), expected)
    assert batch.allowed.all()


def test_replayed_items_compete_among_all_and_both_losses_count_alike() -> None:
    compared: list[int] = []

    class Watched(ERACE):
        def draw(self, batch: Batch, n: int) -> Batch | None:
            self._replay = super().draw(batch, n)
            return self._replay

        def loss(self, batch: Batch) -> Tensor:
            self.model.eval()
            found = super().loss(batch)
            y = self.problem.labels(batch)
            own = sorted(set(y.tolist()))
            expected = functional.cross_entropy(self.forward(batch)[:, own], torch.tensor([own.index(c) for c in y.tolist()]))
            if self._replay is not None:
                seen = batch.allowed.nonzero().flatten().tolist()
                compared.append(len(seen) - len(own))
                labels = torch.tensor([seen.index(c) for c in self.problem.labels(self._replay).tolist()])
                expected = expected + functional.cross_entropy(self.forward(self._replay)[:, seen], labels)
            torch.testing.assert_close(found, expected)
            self.model.train()
            return found

    tiny_runner(tiny_stream(), Watched, ACE).run()
    assert compared == [0] * 4 + [2] * 4 + [4] * 4, "each task's items are in memory from its beginning"
    task_free_runner(tiny_task_free_stream(), Watched, ACE).run()


def test_labels_that_do_not_compete_are_learnt_as_in_experience_replay() -> None:
    stream = tiny_stream(tiny_data(multi_label=True), setting="class-il", labels="multi", edge_policy="inter-task")
    runner = tiny_runner(stream, ERACE, ACE)
    runner.problem.arrive(stream.view(0))
    batch = stream.view(0).train
    assert runner.method.among_own(batch) is batch  # type: ignore[attr-defined]
