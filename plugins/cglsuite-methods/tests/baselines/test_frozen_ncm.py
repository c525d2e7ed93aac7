"""The nearest class mean under a network that is never trained."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_streams import catalogue_runner, tiny_data, tiny_stream, variant_stream
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import NotApplicable
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch

pytestmark = pytest.mark.plugins


def made(**changes: Any) -> TaskRunner:
    changes.setdefault("training", {"epochs": 4, "lr": 0.5, "weight_decay": 0.1})
    return catalogue_runner(tiny_stream(tiny_data(per_class=15), **{"setting": "class-il", "edge_policy": "full"} | changes), "frozen-ncm")


def test_nothing_is_trained() -> None:
    """One epoch per task, whatever the protocol says, and it moves nothing."""
    runner = made()
    before = {n: v.clone() for n, v in runner.method.model.state_dict().items()}
    result = runner.run()
    assert all(torch.equal(v, before[n]) for n, v in runner.method.model.state_dict().items())
    assert [curve["loss"] for curve in result.curves] == [[0.0]] * 3


def test_outputs_are_distances_to_the_means_of_classes() -> None:
    runner = made()
    runner.run()
    method, problem = runner.method, runner.problem
    view = runner.stream.view(2)
    method.model.eval()
    with torch.no_grad():
        hidden = functional.normalize(method.model.encode(view.graph), dim=1)
        query = Batch(graph=view.graph, ids=view.train.ids, allowed=view.seen_outputs)
        found = method.predict(query)
    train = [runner.stream.view(k).train for k in range(3)]  # the graph is the same for all
    ids, y = torch.cat([b.ids for b in train]), torch.cat([problem.labels(b) for b in train])
    means: Tensor = torch.stack([hidden[ids[y == c]].mean(dim=0) for c in range(6)])
    torch.testing.assert_close(found, -torch.cdist(hidden[view.train.ids], means).square(), rtol=1e-3, atol=1e-5)


def test_a_class_without_items_comes_last() -> None:
    runner = made()
    seen = list[tuple[Tensor, Tensor]]()

    @torch.no_grad()
    def ask(k: int) -> None:
        if k == 1:
            view = runner.stream.view(0)
            outputs = runner.method.predict(Batch(graph=view.graph, ids=view.train.ids, allowed=view.seen_outputs))
            seen.append((outputs, view.task_outputs))

    runner.on_task = ask
    runner.run()
    ((outputs, own),) = seen
    assert (outputs[:, ~own] == -4).all()
    assert (outputs[:, own] > -4).all()


def test_it_keeps_one_vector_per_class() -> None:
    runner = made()
    result = runner.run()
    method: Any = runner.method
    width = method.sums[0].shape[1]
    assert result.memory["items"] == 0
    assert result.parameters["method"] == 6 * (width + 1)


def test_it_is_refused_where_items_have_several_labels() -> None:
    with pytest.raises(NotApplicable, match="needs exactly one label per item, but the items of this stream are multi-label"):
        catalogue_runner(variant_stream("multi class-il"), "frozen-ncm")
