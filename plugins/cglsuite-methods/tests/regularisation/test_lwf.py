"""LwF against the formula written out, and what the teacher costs: one answer per batch and task, no second pass of the student."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cglsuite_methods.regularisation.lwf import LwF
from tiny_streams import VARIANTS, KeptCheckpoints, assert_same_run, tiny_data, tiny_runner, tiny_stream, variant_stream
from torch import Tensor

from cglsuite import Method
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.streams import Batch, TaskView

SETTINGS: dict[str, Any] = {"lambda": 3.0, "temperature": 2.0}


def runner_of(method: type[Method] = LwF, /, *, stream: dict[str, Any] | None = None, **changes: Any) -> TaskRunner:
    return tiny_runner(tiny_stream(**(stream or {})), method, SETTINGS | changes)


def moved(method: Method, by: float = 0.1) -> None:
    """Move every weight a little, so that student and teacher differ."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in method.model.parameters():
            p += by * torch.randn(p.shape, generator=generator)


def after_tasks(runner: TaskRunner, k: int) -> tuple[LwF, TaskView]:
    """The method in evaluation mode when ``k`` tasks are past, and the view of the task that begins."""
    method = runner.method
    assert isinstance(method, LwF)
    method.model.eval()
    for j in range(k + 1):
        view = runner.stream.view(j)
        runner.problem.arrive(view)
        method.before_task(view)
        if j < k:
            method.after_task(view)
            moved(method)
    return method, view


def softened(old: Tensor, new: Tensor, columns: list[int], temperature: float) -> Tensor:
    """``-mean Σ p_old log p_new`` among some columns, item by item."""
    total = torch.zeros(())
    for a, b in zip(old, new, strict=True):
        weights = torch.exp(a[columns] / temperature)
        logs = b[columns] / temperature - torch.exp(b[columns] / temperature).sum().log()
        total = total - (weights / weights.sum() * logs).sum()
    return total / len(old)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
@pytest.mark.parametrize("past", [1, 2])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_the_loss_is_the_formula(setting: str, past: int, temperature: float) -> None:
    """Two classes a task: one term for each past task's pair in task-IL, one term over all old classes in class-IL."""
    method, view = after_tasks(runner_of(stream={"setting": setting}, temperature=temperature), past)
    batch = view.train
    assert method.teacher is not None
    old, new = method.problem.forward(method.teacher, batch), method.forward(batch)
    groups = [[0, 1], [2, 3]][:past] if setting == "task-il" else [list(range(2 * past))]
    expected = sum(softened(old, new, columns, temperature) for columns in groups)
    torch.testing.assert_close(method.loss(batch) - Method.loss(method, batch), 3.0 * expected)


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_the_gradient_is_that_of_the_formula_and_leaves_the_teacher_alone(setting: str) -> None:
    method, view = after_tasks(runner_of(stream={"setting": setting}), 2)
    assert method.teacher is not None
    before = {k: v.clone() for k, v in method.teacher.state_dict().items()}
    old, new = method.problem.forward(method.teacher, view.train).detach(), method.forward(view.train)
    groups = [[0, 1], [2, 3]] if setting == "task-il" else [[0, 1, 2, 3]]
    expected = method.problem.loss(new, view.train) + 3.0 * sum(softened(old, new, columns, 2.0) for columns in groups)
    parameters = list(method.model.parameters())
    for a, b in zip(
        torch.autograd.grad(method.loss(view.train), parameters, allow_unused=True),
        torch.autograd.grad(expected, parameters, allow_unused=True),
        strict=True,
    ):
        if b is not None:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    assert all(not p.requires_grad for p in method.teacher.parameters())
    assert all(torch.equal(v, before[k]) for k, v in method.teacher.state_dict().items())


def test_agreement_has_no_pull() -> None:
    """Where student and teacher answer alike, the gradient of the distillation vanishes."""
    method, view = after_tasks(runner_of(), 1)
    assert method.teacher is not None
    method.model.load_state_dict(method.teacher.state_dict())
    outputs = method.forward(view.train)
    assert method._known is not None
    pull = method.problem.distill(outputs.detach(), outputs, method._known, 2.0)
    (gradient,) = torch.autograd.grad(pull, outputs)
    assert float(gradient.abs().max()) < 1e-7


def test_groups_of_unequal_sizes() -> None:
    """Groups of two, two and three outputs: padding makes no difference."""
    stream = tiny_stream(tiny_data(n_classes=7), classes_per_task=2, leftover="join-last", setting="task-il")
    method, view = after_tasks(tiny_runner(stream, LwF, SETTINGS), 2)
    method.past.append(torch.tensor([False, False, False, False, True, True, True]))
    method.before_task(view)
    assert method.teacher is not None
    old, new = method.problem.forward(method.teacher, view.train), method.forward(view.train)
    expected = sum(softened(old, new, columns, 2.0) for columns in ([0, 1], [2, 3], [4, 5, 6]))
    loss = method.loss(view.train) - Method.loss(method, view.train)
    torch.testing.assert_close(loss, 3.0 * expected)
    assert all(g.isfinite().all() for g in torch.autograd.grad(loss, list(method.model.parameters())) if g is not None)


def test_one_pass_of_the_student_a_step_and_one_of_the_teacher_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted over a run of three tasks with four epochs each."""
    from cglsuite.backbones.convolutional import ConvolutionalBackbone

    passes: dict[str, int] = {"student": 0, "teacher": 0}
    original = ConvolutionalBackbone.encode

    def counted(self: ConvolutionalBackbone, graph: Any) -> Tensor:
        frozen = not any(p.requires_grad for p in self.parameters())
        if frozen or torch.is_grad_enabled():
            passes["teacher" if frozen else "student"] += 1
        return original(self, graph)

    monkeypatch.setattr(ConvolutionalBackbone, "encode", counted)
    runner_of().run()
    assert passes == {"student": 3 * 4, "teacher": 2}


def test_answers_are_kept_with_the_batch_and_go_with_it() -> None:
    """A new batch object (a sampled one) is answered anew, and the method holds on to none; a new teacher answers anew too."""
    import gc
    import weakref

    method, view = after_tasks(runner_of(), 1)
    batch = view.train
    method.loss(batch)
    first = batch.cache["teacher"][1]
    method.loss(batch)
    assert batch.cache["teacher"][1] is first

    sampled = replace(batch, cache={})
    method.loss(sampled)
    answers = weakref.ref(sampled.cache["teacher"][1])
    assert answers() is not first
    del sampled
    gc.collect()
    assert answers() is None

    moved(method)
    method.after_task(view)
    method.before_task(view)
    method.loss(batch)
    assert not torch.equal(batch.cache["teacher"][1], first)


@pytest.mark.parametrize("policy", ["none", "inter-task", "full"])
def test_without_weight_it_is_fine_tuning_to_the_bit(policy: str) -> None:
    stream = tiny_stream(edge_policy=policy)
    lwf, bare = tiny_runner(stream, LwF, SETTINGS | {"lambda": 0.0}), tiny_runner(stream, Method)
    one, other = lwf.run(), bare.run()
    assert repr(one.matrix) == repr(other.matrix)
    assert one.curves == other.curves
    for name, value in lwf.method.model.state_dict().items():
        assert torch.equal(value, bare.method.model.state_dict()[name])


def test_the_first_task_is_fine_tuning_and_later_ones_are_not() -> None:
    one, other = runner_of().run(), tiny_runner(tiny_stream(), Method).run()
    assert one.curves[0] == other.curves[0]
    assert one.matrix[1] == other.matrix[1]
    assert one.curves[1] != other.curves[1]


def test_it_forgets_less() -> None:
    stream = tiny_stream(tiny_data(per_class=30), setting="task-il", training={"epochs": 40})
    options: dict[str, Any] = {"backbone": {"dropout": 0.0, "width": 16}}

    def drift(method: type[Method], hyperparameters: dict[str, Any]) -> float:
        """How far the answers on the second task's items, among the first task's classes, move while it is learnt."""
        kept: dict[str, Tensor] = {}

        class Watched(method):  # type: ignore[misc, valid-type]
            def before_task(self, view: TaskView) -> None:
                super().before_task(view)
                if view.position == 1:
                    kept["before"] = self.answers(view.train)

            def after_task(self, view: TaskView) -> None:
                super().after_task(view)
                if view.position == 1:
                    kept["after"] = self.answers(view.train)

            def answers(self, batch: Batch) -> Tensor:
                self.model.eval()
                with torch.no_grad():
                    answers = self.forward(batch)[:, :2].softmax(dim=1)
                self.model.train()
                return answers

        tiny_runner(stream, Watched, hyperparameters, **options).run()
        return float((kept["after"] - kept["before"]).abs().mean())

    assert drift(LwF, SETTINGS | {"lambda": 10.0}) < 0.7 * drift(Method, {})


@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_resumption(setting: str) -> None:
    """Teacher and past outputs are in the state that a checkpoint keeps."""
    kept = KeptCheckpoints()
    whole = runner_of(stream={"setting": setting}).run(kept, keep=99)
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        assert_same_run(runner_of(stream={"setting": setting}).run(only), whole)


def test_state_is_one_model_and_one_row_per_task() -> None:
    result = runner_of().run()
    # The teacher with batch norm's statistics (6 means, 6 variances and a count for each of two layers), and bool [3, 6].
    assert result.parameters["method"] == result.parameters["model"] + 2 * 13 + 3 * 6


@pytest.mark.sampled(5)
@pytest.mark.parametrize("variant", VARIANTS)
def test_domains_time_steps_and_several_labels(variant: str) -> None:
    """The same code in every setting; a run that is taken up in the middle ends where an uninterrupted one does."""

    def runner() -> TaskRunner:
        return tiny_runner(variant_stream(variant), LwF, SETTINGS)

    kept = KeptCheckpoints()
    whole = runner().run(kept, keep=99)
    bare = tiny_runner(variant_stream(variant), Method).run()
    assert len(whole.curves) == len(bare.curves) > 1
    assert whole.curves[0] == bare.curves[0]
    assert all(whole.curves[k]["loss"] != bare.curves[k]["loss"] for k in range(1, len(bare.curves)))
    middle = KeptCheckpoints()
    middle.files[kept.saved[1]] = kept.files[kept.saved[1]]
    assert_same_run(runner().run(middle), whole)


@pytest.mark.parametrize("variant", ["multi task-il", "multi class-il", "multi domain-il"])
def test_several_labels_are_distilled_by_sigmoids(variant: str) -> None:
    """A softmax would make labels compete that do not: binary cross-entropy per output, the mean over a group, the sum over groups."""
    method, view = after_tasks(tiny_runner(variant_stream(variant), LwF, SETTINGS), 2)
    assert method.teacher is not None
    old, new = method.problem.forward(method.teacher, view.train), method.forward(view.train)
    groups = method.past if method.problem.task_ids else [torch.stack(method.past).any(dim=0)]
    expected = torch.zeros(())
    for mask in groups:
        target, answer = torch.sigmoid(old[:, mask] / 2), torch.sigmoid(new[:, mask] / 2)
        expected = expected - (target * answer.log() + (1 - target) * (1 - answer).log()).mean()
    torch.testing.assert_close(method.loss(view.train) - Method.loss(method, view.train), 3.0 * expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("past", [1, 2])
def test_in_class_il_the_loss_may_be_that_of_task_il(past: int) -> None:
    """As benchmarked by CGLB on graphs: cross-entropy among the task's own pair of classes, one distillation term for each past pair."""
    method, view = after_tasks(runner_of(stream={"setting": "class-il"}, own_task_loss=True), past)
    batch = view.train
    assert method.teacher is not None
    assert batch.y is not None
    old, new = method.problem.forward(method.teacher, batch), method.forward(batch)
    own = torch.nn.functional.cross_entropy(new[:, 2 * past : 2 * past + 2], batch.y - 2 * past)
    expected = own + 3.0 * sum(softened(old, new, columns, 2.0) for columns in [[0, 1], [2, 3]][:past])
    torch.testing.assert_close(method.loss(batch), expected)
    assert not torch.allclose(method.problem.loss(new, batch), own)


def test_in_task_il_the_choice_makes_no_difference() -> None:
    losses = []
    for chosen in (False, True):
        method, view = after_tasks(runner_of(stream={"setting": "task-il"}, own_task_loss=chosen), 2)
        losses.append(method.loss(view.train))
    assert torch.equal(*losses)
