"""gDOC: the weighted loss, the thresholds and the decision, against the formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from cglsuite_methods.baselines.gdoc import GDOC
from tiny_streams import tiny_data, tiny_runner, tiny_spec, tiny_stream

from cglsuite.learning.task_runner import TaskRunner
from cglsuite.specs import Seeds
from cglsuite.streams.open_world import build_open_stream

SETTINGS: dict[str, Any] = {"alpha": 3.0, "weighted": True, "fraction": 0.25, "neighbourhood": False}
DATA = tiny_data(per_class=20)


def runner_of(**changes: Any) -> TaskRunner:
    runner = tiny_runner(tiny_stream(DATA), GDOC, SETTINGS | changes, backbone={"dropout": 0.0})
    runner.problem.arrive(runner.stream.view(0))
    runner.method.model.eval()
    return runner


@pytest.mark.parametrize("weighted", [True, False])
def test_the_loss_is_the_weighted_cross_entropy_of_every_item_and_class(weighted: bool) -> None:
    runner = runner_of(weighted=weighted)
    batch = runner.problem.batch([runner.stream.view(0)])
    batch.y[:3] = 0  # unequal classes
    p = runner.method.forward(batch).detach().sigmoid().double()
    terms = []
    for c in (0, 1):  # the classes that compete
        positives = int((batch.y == c).sum())
        weight = (len(batch) - positives) / positives if weighted else 1.0
        for i, y in enumerate(batch.y.tolist()):
            terms.append(-weight * math.log(p[i, c]) if y == c else -math.log(1 - p[i, c]))
    assert float(runner.method.loss(batch).detach()) == pytest.approx(sum(terms) / len(terms), rel=1e-5)


def test_thresholds_follow_the_spread_of_each_class() -> None:
    runner = runner_of(alpha=0.5)
    view = runner.stream.view(0)
    batch = runner.problem.batch([view])
    with torch.no_grad():
        p = runner.method.forward(batch).sigmoid()
    runner.method.after_task(view)
    for c in (0, 1):
        points = p[batch.y == c, c]
        mirrored = torch.cat([points, 2 - points])
        expected = max(0.5, 1 - 0.5 * float(mirrored.std(unbiased=False)))
        assert float(runner.method.thresholds[c]) == pytest.approx(expected, rel=1e-5)
        assert expected > 0.5
    assert runner.method.thresholds[2:].tolist() == [0.5] * 4


def test_an_item_is_rejected_if_no_class_exceeds_its_threshold() -> None:
    stream = build_open_stream(tiny_spec(labels="open", performance="open-f1"), DATA, Seeds())
    runner = tiny_runner(stream, GDOC, SETTINGS, backbone={"dropout": 0.0})
    runner.problem.arrive(stream.view(0))
    runner.method.model.eval()
    (group,) = stream.make_queries(1)
    with torch.no_grad():
        p = runner.method.forward(group.query).sigmoid()
        runner.method.thresholds[:2] = p[:, :2].amax(dim=1).median()
        outputs = runner.method.predict(group.query)
    rejected = (p[:, :2] < runner.method.thresholds[:2]).all(dim=1)
    assert 0 < int(rejected.sum()) < len(rejected)
    assert torch.equal(outputs[:, 2] == math.inf, rejected)
    assert torch.equal(outputs[:, 2] == -math.inf, ~rejected)
    decoded = runner._scorer.decode(outputs, group.query.allowed)
    assert torch.equal(decoded[:, 2] == 0, rejected)


def test_it_learns_and_keeps_items() -> None:
    stream = build_open_stream(tiny_spec(labels="open", performance="rejection-auroc", training={"epochs": 30}), DATA, Seeds())
    result = tiny_runner(stream, GDOC, SETTINGS).run()
    assert result.matrix[1][0] > 0.5
    assert result.memory["items"] > 0
