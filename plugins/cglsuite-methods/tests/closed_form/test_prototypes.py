"""Prototypes: cosines with class means, a network trained on the first task alone, and TEEN's calibration by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from cglsuite_methods.closed_form.prototypes import calibrated
from tiny_streams import catalogue_runner, tiny_data, tiny_stream, variant_stream
from tiny_task_free import catalogue_task_free_runner, tiny_task_free_stream
from torch.nn import functional

from cglsuite.base.errors import NotApplicable
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch

pytestmark = pytest.mark.plugins
FEW_SHOT = {"base_classes": 4, "classes_per_task": 1, "shots": 3}


def made(method: str = "simple-cil", hyperparameters: dict[str, Any] | None = None, **changes: Any) -> TaskRunner:
    switches = {"setting": "class-il", "edge_policy": "full", "training": {"epochs": 4, "lr": 0.05}}
    return catalogue_runner(tiny_stream(tiny_data(per_class=15), **(switches | changes)), method, hyperparameters)


@pytest.mark.parametrize("tune", [False, True])
def test_outputs_are_cosines_with_the_means_of_classes(tune: bool) -> None:
    runner = made(hyperparameters={"tune": tune})
    drawn = {n: v.clone() for n, v in runner.method.model.state_dict().items()}
    result = runner.run()
    assert [len(curve["loss"]) for curve in result.curves] == [4 if tune else 1, 1, 1]
    method, view = runner.method, runner.stream.view(2)
    assert tune == any(not torch.equal(v, drawn[n]) for n, v in method.model.state_dict().items())
    with torch.no_grad():
        hidden = method.model.eval().encode(view.graph)
        found = method.predict(Batch(graph=view.graph, ids=view.train.ids, allowed=view.seen_outputs))
    train = [runner.stream.view(k).train for k in range(3)]  # the graph is the same for all
    ids, y = torch.cat([b.ids for b in train]), torch.cat([runner.problem.labels(b) for b in train])
    means = torch.stack([hidden[ids[y == c]].mean(dim=0) for c in range(6)])
    expected = functional.cosine_similarity(hidden[view.train.ids][:, None], means[None], dim=2)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert result.parameters["method"] == 6 * (means.shape[1] + 1)


def test_a_sample_of_each_task_is_averaged() -> None:
    runner = made(hyperparameters={"per_task": 5})
    runner.run()
    method: Any = runner.method
    assert method.counts.sum() == 15


def test_a_class_without_items_comes_last() -> None:
    runner = made()
    view = runner.stream.view(0)
    query = Batch(graph=view.graph, ids=view.train.ids, allowed=view.seen_outputs)
    assert (runner.method.predict(query) == -1).all()


def test_later_prototypes_move_towards_those_of_the_base_session() -> None:
    """By hand: a later class of cosines 0.6 and 0.8 with two axes, and one more that lies on the first axis."""
    means = torch.tensor([[2.0, 0.0], [0.0, 0.5], [0.6, 0.8], [3.0, 0.0]])
    base = torch.tensor([True, True, False, False])
    found = calibrated(means, base, alpha=0.5, temperature=16.0)
    assert found[:2].tolist() == [[1, 0], [0, 1]]
    odds = math.exp(16 * (0.8 - 0.6))
    mixed = torch.tensor([1 / (1 + odds), odds / (1 + odds)])
    mixed /= mixed.norm()
    torch.testing.assert_close(found[2], 0.5 * torch.tensor([0.6, 0.8]) + 0.5 * mixed)
    torch.testing.assert_close(found[3], torch.tensor([1.0, 0.0]), atol=1e-6, rtol=0)
    torch.testing.assert_close(calibrated(means, base, alpha=0.0, temperature=1.0), functional.normalize(means, dim=1))


def test_teen_calibrates_the_classes_after_the_base_session() -> None:
    runner = made("teen", **FEW_SHOT)
    result = runner.run()
    method: Any = runner.method
    assert method.base.tolist() == runner.stream.view(0).task_outputs.tolist()
    assert int(method.base.sum()) == 4
    assert [len(curve["loss"]) for curve in result.curves] == [4, 1, 1]
    own = functional.normalize(super(type(method), method).prototypes(), dim=1)
    moved = [not torch.allclose(a, b) for a, b in zip(method.prototypes(), own, strict=True)]
    assert moved == (~method.base).tolist()


def test_teen_without_its_calibration_is_a_tuned_simple_cil() -> None:
    plain, other = made("teen", {"alpha": 0.0}, **FEW_SHOT), made(hyperparameters={"tune": True}, **FEW_SHOT)
    torch.testing.assert_close(torch.tensor(plain.run().matrix), torch.tensor(other.run().matrix))


def test_teen_is_refused_without_a_base_session() -> None:
    with pytest.raises(
        NotApplicable,
        match="teen needs a base session with more classes than any later task: the first task has 2 classes, but task 2 has 2",
    ):
        made("teen").run()


def test_what_does_not_fit_is_refused() -> None:
    for method in ("simple-cil", "teen"):
        with pytest.raises(
            NotApplicable,
            match=f"{method} compares means of classes and needs exactly one label per item, but the items of this stream are multi-label",
        ):
            catalogue_runner(variant_stream("multi class-il"), method)
    with pytest.raises(NotApplicable, match="a task-free stream has no tasks"):
        catalogue_task_free_runner(tiny_task_free_stream(), "simple-cil", {"tune": True}).run()
