"""Methods that isolate parameters: old answers keep their bits, and every part of the network belongs to whom it should."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.isolation.hat import free_of
from cglsuite_methods.isolation.packnet import share_kept
from cglsuite_methods.isolation.pi_gnn import blocks_of, walks
from cglsuite_methods.isolation.piggyback import Masked, packed, unpacked
from tiny_links import link_runner, link_variant
from tiny_streams import assert_same_run, catalogue_runner, tiny_data, tiny_graphs, tiny_stream
from torch import Tensor

from cglsuite.backbones import Units, Wire
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph
from cglsuite.learning.result import RunResult
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch

pytestmark = pytest.mark.plugins
METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "packnet": ({}, {"norm_statistics": "frozen"}),
    "packnet as BeGin": ({"as_begin": True}, {"norm_statistics": "frozen"}),
    "piggyback": ({}, {"norm_statistics": "frozen"}),
    "piggyback of drawn weights": ({"body": "drawn"}, {"norm_statistics": "frozen"}),
    "piggyback as BeGin": ({"as_begin": True}, {}),
    "hat": ({"gates": "binary"}, {"norm_statistics": "per-task"}),
    "pi-gnn": ({}, {}),
}


def made(method: str, hyperparameters: dict[str, Any], *, graphs: bool = False, setting: str = "task-il", **training: Any) -> TaskRunner:
    data: Any = tiny_graphs(per_class=15) if graphs else tiny_data(per_class=15)
    policy: dict[str, Any] = {} if graphs else {"edge_policy": "full"}
    return catalogue_runner(
        tiny_stream(data, setting=setting, training={"epochs": 12, "lr": 0.05} | training, **policy), method, hyperparameters
    )


def answers(runner: TaskRunner) -> list[Tensor]:
    """What the first task's training items are answered after each task."""
    return run_and_ask(runner)[0]


def run_and_ask(runner: TaskRunner) -> tuple[list[Tensor], RunResult]:
    """:func:`answers`, and the result of the run."""
    view, found = runner.stream.view(0), list[Tensor]()
    query = Batch(graph=view.graph, ids=view.train.ids, allowed=view.task_outputs, tasks=torch.zeros(len(view.train), dtype=torch.int64))

    @torch.no_grad()
    def ask(k: int) -> None:
        if k:
            runner.method.model.eval()
            found.append(runner._predicted(query).clone())

    runner.on_task = ask
    return found, runner.run()


@pytest.mark.sampled(10)
@pytest.mark.parametrize("level", ["NC", "LC", "GC"])
@pytest.mark.parametrize("method", METHODS)
def test_answers_to_a_learnt_task_keep_their_bits(method: str, level: str) -> None:
    """Under weight decay and a schedule that restores the best epoch too: only what the task does not use is moved. So average forgetting
    is 0, not nearly 0: every later test accuracy of a task is the one after it was learnt."""
    hyperparameters, training = METHODS[method]
    name, options = method.partition(" ")[0], training | {"weight_decay": 0.1, "monitor": "validation-loss", "restore_best": True}
    if level == "LC":
        runner = link_runner(link_variant("LC task-il", training={"epochs": 12, "lr": 0.05} | options), name, hyperparameters)
    else:
        runner = made(name, hyperparameters, graphs=level == "GC", **options)
    own = runner.stream.view(0).task_outputs
    (first, *later), result = run_and_ask(runner)
    assert len(later) == 2
    assert all(torch.equal(first[:, own], other[:, own]) for other in later)
    assert first[:, own].std() > 0.01
    matrix = result.matrix
    assert all(matrix[k][j] == matrix[j + 1][j] for j in range(3) for k in range(j + 1, 4))
    assert any(matrix[j + 1][j] != matrix[0][j] for j in range(3)), "nothing was learnt, so nothing could be forgotten"


def test_softer_gates_protect_less() -> None:
    def drift(s_max: float) -> float:
        runner = made("hat", {"s_max": s_max}, norm_statistics="per-task")
        own = runner.stream.view(0).task_outputs
        first, *_, last = answers(runner)
        return float((last - first)[:, own].abs().max())

    assert drift(400.0) < 1e-3 < drift(1.0)


def test_tasks_share_the_weights_equally_among_them() -> None:
    """κ = 1 - (1/T)^(1/(T-1)): of 3 tasks the first two keep the same share of what is free, 0.42265, and the last what is left."""
    assert share_kept(None, 0, 3) == pytest.approx(1 - (1 / 3) ** 0.5)
    assert (share_kept(None, 2, 3), share_kept(0.75, 0, 3), share_kept(0.75, 2, 3), share_kept(None, 0, 1)) == (1.0, 0.75, 1.0, 1.0)


def test_owners_of_weights() -> None:
    """After two of three tasks: κ of all, κ of the rest, the others free and 0; kept weights were the largest."""
    runner = made("packnet", {"keep": 0.5}, norm_statistics="frozen")
    method: Any = runner.method
    pruned = list[tuple[dict[str, Tensor], dict[str, Tensor]]]()
    prune = method._prune

    def watched(t: int) -> None:
        before = {n: p.detach().clone() for n, p in method.model.named_parameters()}
        prune(t)
        pruned.append((before, {n: o.clone() for n, o in method.owner.items()}))

    method._prune = watched
    result = runner.run()
    assert len(pruned) == 3
    for name, owner in pruned[1][1].items():
        n = owner.numel()
        assert int((owner == 0).sum()) == round(n / 2)
        assert int((owner == 1).sum()) == round((n - round(n / 2)) / 2)
        before, owners = pruned[0][0][name].abs(), pruned[0][1][name]
        assert before[owners == 0].min() >= before[owners == 3].max()
    assert result.counters == {"free_weights": 0}
    weights = sum(o.numel() for o in method.owner.values())
    assert (result.parameters["method"], result.parameters["method_bytes"]) == (weights, 2 * weights)


def test_the_gradient_of_a_mask_passes_its_threshold() -> None:
    """∂L/∂r = W ∂L/∂(W m), whatever m is; W itself gets m ∂L/∂(W m)."""
    weight = torch.tensor([[2.0, -3.0], [0.5, 4.0]], requires_grad=True)
    mask = Masked(weight, 0.01)
    with torch.no_grad():
        mask.real[0, 1] = 0.009
    slope = torch.tensor([[1.0, 10.0], [100.0, 1000.0]])
    masked = mask(weight)
    assert masked.tolist() == [[2.0, 0.0], [0.5, 4.0]]
    (masked * slope).sum().backward()
    assert mask.real.grad is not None
    assert weight.grad is not None
    assert mask.real.grad.tolist() == [[2.0, -30.0], [50.0, 4000.0]]
    assert weight.grad.tolist() == [[1.0, 0.0], [100.0, 1000.0]]


def test_masks_are_stored_as_bits() -> None:
    for n in (1, 7, 8, 9, 64):
        mask = torch.rand(n, generator=torch.Generator().manual_seed(n)) < 0.5
        bits = packed(mask)
        assert (bits.dtype, len(bits)) == (torch.uint8, -(-n // 8))
        assert torch.equal(unpacked(bits, mask.shape), mask)


@pytest.mark.parametrize("body", ["first-task", "drawn"])
def test_which_weights_piggyback_moves(body: str) -> None:
    """A body as drawn never moves; otherwise the first task trains it, norms included, and later ones train masks alone."""
    runner = made("piggyback", {"body": body}, norm_statistics="frozen")
    method: Any = runner.method
    seen = list[dict[str, Tensor]]()

    def fixed() -> dict[str, Tensor]:
        state = method.model.state_dict()
        return {n: v.clone() for n, v in state.items() if not n.startswith("head.") and not n.endswith(".real")}

    seen.append(fixed())
    runner.on_task = lambda k: seen.append(fixed()) if k else None
    result = runner.run()
    first, *later = seen
    assert len(later) == 3
    moved = {n for n in first if not torch.equal(first[n], later[0][n])}
    assert moved == (set(first) if body == "first-task" else set())
    assert all(torch.equal(later[0][n], other[n]) for other in later for n in first)
    masks = [{n: unpacked(bits[k], method.masks[n].real.shape) for n, bits in method.kept.items()} for k in range(3)]
    assert all(bool(m.all()) for m in masks[0].values()) == (body == "first-task")
    assert result.counters["masked_weights"] == sum(int((~m).sum()) for m in masks[2].values()) > 0
    weights = [m.real.numel() for m in method.masks.values()]
    assert result.parameters["method_bytes"] == sum(4 * n + 3 * -(-n // 8) for n in weights)


@pytest.mark.parametrize("as_begin", [False, True])
def test_masks_of_the_best_epoch_and_of_the_last(as_begin: bool) -> None:
    """The paper's masks belong to the head that they were trained with; BeGin's are those of the last epoch."""
    options: dict[str, Any] = {"monitor": "validation-loss", "restore_best": True, "epochs": 12, "lr": 0.2}
    runner = made("piggyback", {"body": "drawn", "as_begin": as_begin}, norm_statistics="frozen", **options)
    method: Any = runner.method
    by_epoch = list[dict[str, Tensor]]()
    step = method.after_step

    def noted() -> None:
        step()
        by_epoch.append({n: packed(m.real.detach() >= m.threshold) for n, m in method.masks.items()})

    method.after_step = noted
    result = runner.run()
    ends, start = list[int](), 0
    for k, curve in enumerate(result.curves):
        chosen = len(curve["loss"]) - 1 if as_begin else curve["best_epoch"]
        assert all(torch.equal(method.kept[n][k], bits) for n, bits in by_epoch[start + chosen].items())
        ends.append(len(curve["loss"]) - 1 - curve["best_epoch"])
        start += len(curve["loss"])
    assert max(ends) > 0


def test_gates_as_benchmarked_are_random_and_protect_the_latest_task_only() -> None:
    """Their embeddings are not trained, c has no effect, and what the first task used is free again in the third."""

    def run(**hyperparameters: Any) -> tuple[TaskRunner, list[Tensor], Any]:
        runner, drawn = made("hat", {"as_begin": True} | hyperparameters), list[Tensor]()
        method: Any = runner.method
        drawn += [e.detach().clone() for e in method.embeddings]
        result = runner.run()
        assert all(torch.equal(e, before) for e, before in zip(method.embeddings, drawn, strict=True))
        return runner, drawn, result

    runner, drawn, result = run()
    assert_same_run(run(c=4.0)[2], result)
    method: Any = runner.method
    for i, u in enumerate(method.units):
        assert torch.equal(method.used[u.name], (method.hyperparameters.s_max * drawn[i][2]).sigmoid().repeat_interleave(u.together))
    first, *_, last = answers(made("hat", {"as_begin": True}))
    own = runner.stream.view(0).task_outputs
    assert (last - first)[:, own].abs().max() > 0.1


def test_gates_of_the_paper_are_learnt_and_protect_all_tasks() -> None:
    runner = made("hat", {}, norm_statistics="per-task")
    method: Any = runner.method
    drawn = [e.detach().clone() for e in method.embeddings]
    own = runner.stream.view(0).task_outputs
    first, *_, last = answers(runner)
    assert not any(torch.equal(e, before) for e, before in zip(method.embeddings, drawn, strict=True))
    assert (last - first)[:, own].abs().max() < 1e-3
    for i, u in enumerate(method.units):
        gates = torch.stack([method._gate(i, t, method.hyperparameters.s_max) for t in range(3)])
        assert torch.equal(method.used[u.name], gates.max(dim=0).values)


def test_how_much_of_an_update_units_leave_free() -> None:
    """Between units that are used by 0.25 and 1 of a layer of two, and by 0.5 and 0 of the next."""
    units = (
        Units("one", 2, (Wire("a", 1), Wire("bias", 0)), (Wire("b", 0),)),
        Units("two", 2, (Wire("b", 1),), (Wire("head", 1),)),
    )
    parameters = {
        "a": torch.zeros(3, 2),
        "bias": torch.zeros(2),
        "b": torch.zeros(2, 2),
        "head": torch.zeros(4, 2),
        "shared": torch.zeros(1),
    }
    used = {"one": torch.tensor([0.25, 1.0]), "two": torch.tensor([0.5, 0.0])}
    masks = free_of(units, parameters, used)
    assert masks["a"].expand(3, 2).tolist() == [[0.75, 0.0]] * 3
    assert masks["bias"].tolist() == [0.75, 0.0]
    assert masks["b"].tolist() == [[0.75, 1.0], [0.5, 1.0]]  # 1 - min(in, out)
    assert masks["shared"].tolist() == [0.0]


def test_blocks_are_equal_and_keep_heads_together() -> None:
    layer = Units("body.0", 12, (), ())
    assert blocks_of(layer, 3, torch.device("cpu")).tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert blocks_of(layer._replace(together=4), 2, torch.device("cpu")).tolist() == [0] * 8 + [1] * 4
    with pytest.raises(NotApplicable, match="the layer has only 3 groups of 4 units"):
        blocks_of(layer._replace(together=4), 4, torch.device("cpu"))


def test_no_weight_leads_back_to_an_earlier_block() -> None:
    runner = made("pi-gnn", {}, setting="class-il")
    runner.run()
    method: Any = runner.method
    parameters = dict(method.model.named_parameters())
    assert method.exists
    for name, exists in method.exists.items():
        assert not parameters[name][~exists].any()
        assert parameters[name][exists].all()


def test_walks_tell_whether_surroundings_have_changed() -> None:
    """A path 0 - 1 - 2 to which 3 is tied: within two steps that changes 2 and 1, and not 0."""
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    longer = torch.cat([path, torch.tensor([[2, 3], [3, 2]])], dim=1)
    one, two = (walks(MessageGraph(torch.zeros(4, 1), edges), torch.arange(3), 2) for edges in (path, longer))
    assert one.tolist() == [[2, 5], [3, 7], [2, 5]]
    assert (one == two).all(dim=1).tolist() == [True, False, False]


def test_old_blocks_are_rectified_on_nodes_whose_whole_surroundings_stayed() -> None:
    """Of the kept nodes 0, 1 and 2 of the path above, 1 has as many neighbours as before, but more nodes two steps away: it is not used."""
    method: Any = made("pi-gnn", {}, setting="class-il").method
    assert method.model.hops == 2
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    longer = torch.cat([path, torch.tensor([[2, 3], [3, 2]])], dim=1)
    before, now = (MessageGraph(torch.zeros(4, 1), edges) for edges in (path, longer))
    kept = torch.arange(3)
    items = MemoryItems(ids=kept, y=kept, tasks=torch.zeros_like(kept), extra={"walks": walks(before, kept, 2)})
    method.memory.put("task-0", items)
    assert method._stable(Batch(graph=now, ids=kept, allowed=torch.ones(4, dtype=torch.bool))).ids.tolist() == [0]
    assert method._stable(Batch(graph=before, ids=kept, allowed=torch.ones(4, dtype=torch.bool))) is None  # nothing changed


def test_hat_as_begin_deals_units_out_at_random_and_the_sparsity_changes_nothing() -> None:
    """Embeddings stay as drawn, so gates are near 0 or 1 at random; c is in no gradient. The paper's form trains them by both."""
    runs = {}
    for as_begin in (True, False):
        for c in (0.1, 4.0):
            runner = made("hat", {"as_begin": as_begin, "c": c})
            method: Any = runner.method
            drawn = [e.detach().clone() for e in method.embeddings]
            runs[as_begin, c] = [found["state"] for found in runner.run().fingerprints]
            assert all(torch.equal(e, before) for e, before in zip(method.embeddings, drawn, strict=True)) == as_begin
            if as_begin:
                gates = torch.cat([torch.sigmoid(400.0 * e).flatten() for e in drawn])
                assert 0.2 < float((gates > 0.5).float().mean()) < 0.8
                assert float(((gates < 0.01) | (gates > 0.99)).float().mean()) > 0.9
    assert runs[True, 0.1] == runs[True, 4.0]
    assert runs[False, 0.1] != runs[False, 4.0]
