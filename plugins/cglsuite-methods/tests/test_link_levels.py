"""Every method of the package on links, to be classified and to be predicted: it means there what it means elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from installed import installed
from scipy.optimize import minimize
from tiny_links import LINK_VARIANTS, link_runner, link_variant
from torch.nn import functional

from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import LinkData, MessageGraph
from cglsuite.learning.task_runner import TaskRunner

TRAINING = {"lr": 1e-3, "epochs": 2, "monitor": "validation-loss", "restore_best": True}
ENTRIES: list[Any] = [e for e in installed().entries("method") if e.record.distribution == "cglsuite-methods"]  # type: ignore[attr-defined]
WITH_TASKS = [e.name for e in ENTRIES if set(e.spec.settings) - {"task-free"}]
TASK_FREE = [e.name for e in ENTRIES if set(e.spec.settings) == {"task-free"}]
LEVELS = {e.name: e.spec.levels for e in ENTRIES}
#: Streams on which a method is not defined: CaT, PUMA and DeLoMe condense, NCM, SimpleCIL and iCaRL compare classes, TEEN needs a base
#: session, PackNet, Piggyback and HAT need to know the task.
REFUSED = {
    **dict.fromkeys(("cat", "puma", "delome", "frozen-ncm", "icarl", "simple-cil"), "LC time-il"),
    "teen": "LC",
    **dict.fromkeys(("packnet", "piggyback", "hat"), r"(?!LC task-il)"),
}
COMBINATIONS = [
    (m, name) for m in WITH_TASKS for name in LINK_VARIANTS if name[:2] in LEVELS[m] and not re.match(REFUSED.get(m, "^$"), name)
]
SETTINGS: dict[str, dict[str, Any]] = {
    "continual-gnn": {"memory": 12, "replayed": 6},
    "der++": {"memory": 12},
    "er-ace": {"memory": 12},
    "gdumb": {"memory": 12},
    "icarl": {"memory": 12},
    "delome": {"per_class": 3, "draws": 4, "hidden": 8},
    "puma": {"per_task": 6, "encoders": 2, "steps": 2, "width": 16},
    "gem": {"per_task": 5},
    "er-gnn": {"per_class": 2},
    "twp": {"lambda_l": 10.0, "lambda_t": 1.0},
}


def runner_of(name: str, method: str, **hyperparameters: Any) -> TaskRunner:
    return link_runner(link_variant(name, training=TRAINING), method, {**SETTINGS.get(method, {}), **hyperparameters})


@pytest.mark.sampled(8)
@pytest.mark.parametrize("method", ["replay", "gem", "er-gnn", "continual-gnn"])
@pytest.mark.parametrize("name", ["LC task-il", "LC apart", "LP domain-il", "LP apart", "LP time-il"])
def test_a_memory_of_pairs_by_reference_reads_them_in_the_current_message_graph(name: str, method: str) -> None:
    runner = runner_of(name, method, neighbourhood=True)
    result = runner.run()
    assert result.memory["items"]
    items = runner.method.memory.all()[0]
    assert items.x is None
    assert items.ids.shape == (len(items), 2)
    view = runner.stream.view(2)
    recalled = runner.problem.recall(items, view)
    assert recalled.graph is view.graph
    n = len(runner.problem.join(runner.method.memory.all()))
    assert runner.method.memory.bytes() == n * (
        3 * 8 + runner.problem.join(runner.method.memory.all()).y[0].numel() * items.y.element_size()
    )


@pytest.mark.parametrize("name", ["LC class-il", "LP growing"])
def test_a_memory_of_pairs_keeps_the_features_of_both_ends(name: str) -> None:
    """Of sparse features as of dense ones; a pair counts one item."""
    runner = runner_of(name, "gem")
    result = runner.run()
    items = runner.method.memory["task-0"]
    assert result.memory["items"] == 15
    recalled = runner.problem.recall(items, None)
    x = runner.stream.view(0).graph.rows(items.ids.flatten())
    kept = recalled.graph.rows(recalled.ids.flatten())
    dense = [rows if isinstance(rows, torch.Tensor) else torch.from_numpy(rows.toarray()) for rows in (x, kept)]
    assert torch.equal(*dense)
    assert recalled.graph.n_edges == 0


def test_what_is_replayed_is_learnt_with_pairs_without_a_link() -> None:
    """Kept links are among the positives of every epoch, and as many destinations are drawn for them."""
    runner = runner_of("LP domain-il", "replay", fraction=0.5, neighbourhood=True)
    runner.run()
    view = runner.stream.view(2)
    together = runner.method.training_views(view)
    links = int(together[0].train.y.sum())
    kept = runner.problem.join(runner.method.memory.all())
    assert links == int(view.train.y.sum()) + int(kept.y.sum())
    (batch,) = runner.problem.epochs(together, torch.Generator().manual_seed(0))
    assert len(batch) == 2 * links
    assert int(batch.y.sum()) == links


@pytest.mark.parametrize("name", ["LC time-il", "LP domain-il"])
def test_lwf_distils_a_single_output(name: str) -> None:
    """The loss is the task's plus the two-sided cross-entropy to the teacher's sigmoids, and pulls its answers."""
    runner = runner_of(name, "lwf", temperature=2.0, **{"lambda": 3.0})
    runner.run()
    method: Any = runner.method
    view = runner.stream.view(2)
    method.before_task(view)
    batch = runner.problem.batch([view])
    with torch.no_grad():  # the model is no longer its own teacher
        for parameter in method.model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    method.model.eval()
    new = runner.problem.forward(method.model, batch)
    old = runner.problem.forward(method.teacher, batch).detach()
    distilled = functional.binary_cross_entropy_with_logits(new / 2, torch.sigmoid(old / 2))
    task = functional.binary_cross_entropy_with_logits(new, batch.y.float())
    torch.testing.assert_close(method.loss(replace(batch, cache={})), task + 3 * distilled)
    before = (new - old).abs().mean()
    optimizer = torch.optim.SGD(method.model.parameters(), lr=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        runner.problem.distill(old, runner.problem.forward(method.model, batch), torch.tensor([True])).backward()
        optimizer.step()
    assert (runner.problem.forward(method.model, batch) - old).abs().mean() < 0.5 * before


@pytest.mark.parametrize("name", ["LC task-il", "LC time-il", "LP apart"])
@pytest.mark.parametrize(("method", "attribute"), [("ewc", "fisher"), ("mas", "omega"), ("twp", "importance")])
def test_importances_of_parameters_are_found_on_pairs(method: str, attribute: str, name: str) -> None:
    """In the encoder, in the predictor and in the head."""
    runner = runner_of(name, method)
    runner.run()
    found = getattr(runner.method, attribute)
    for part in ("body.", "predictor.", "head."):
        assert any(bool((value > 0).any()) for parameter, value in found.items() if parameter.startswith(part))


def test_gem_projects_onto_the_gradients_of_a_memory_of_pairs() -> None:
    """The step is g + Gᵀv, v the bounded minimum that SciPy finds, where g goes against what two tasks' pairs ask for."""
    runner = runner_of("LP domain-il", "gem", neighbourhood=True, margin=0.5)
    runner.run()
    method: Any = runner.method
    method.memory.drop("task-2")
    method.before_task(runner.stream.view(2))
    method.model.eval()
    memories = [batch for _, group in method._memories for batch in group]
    assert all(isinstance(batch.graph, MessageGraph) and bool(batch.y.any()) for batch in memories)
    losses = [runner.problem.loss(method.forward(batch), batch) for batch in memories]
    past = torch.stack([torch.cat([g.flatten() for g in torch.autograd.grad(loss, method._parameters())]) for loss in losses])
    against = -past.sum(dim=0)
    for parameter, piece in zip(method._parameters(), against.split([p.numel() for p in method._parameters()]), strict=True):
        parameter.grad = piece.view_as(parameter).clone()
    method.before_step()
    step = torch.cat([p.grad.flatten() for p in method._parameters()])
    rows = past.double()
    quadratic, linear = (rows @ rows.T + 1e-3 * torch.eye(2)).numpy(), (rows @ against.double()).numpy()
    solved = minimize(
        lambda v: 0.5 * v @ quadratic @ v + linear @ v,
        [1.0, 1.0],
        jac=lambda v: quadratic @ v + linear,
        bounds=[(0.5, None)] * 2,
        tol=1e-14,
    )
    torch.testing.assert_close(step.double(), against.double() + torch.from_numpy(solved.x) @ rows, rtol=1e-3, atol=1e-6)
    assert (rows @ step.double() >= -1e-3 * torch.from_numpy(solved.x) - 1e-6).all(), "no memory's loss rises, but for the ridge"
    assert method.qp_failures == 0


@pytest.mark.parametrize("method", REFUSED)
def test_where_a_method_is_not_defined_it_is_refused(method: str) -> None:
    for name in LINK_VARIANTS:
        if name[:2] in LEVELS[method] and re.match(REFUSED[method], name):
            with pytest.raises(NotApplicable, match=method):
                runner_of(name, method).run()


@pytest.mark.parametrize("method", TASK_FREE)
def test_methods_for_streams_without_tasks_are_not_for_links(method: str) -> None:
    """There are no such streams of links; the reason is said."""
    with pytest.raises(NotApplicable, match="is not for"):
        runner_of("LC task-il", method)
    assert {"LC", "LP"}.isdisjoint(installed().method(method).levels)


@pytest.mark.nightly
def test_no_method_leads_to_the_links() -> None:
    from cglsuite.testing.judge.audited import path_to

    for method in (m for m, name in COMBINATIONS if name == "LP domain-il"):
        runner = runner_of("LP domain-il", method)
        runner.run()
        assert path_to(LinkData, runner.method) is None
