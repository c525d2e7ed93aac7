"""ST-GCN against slow loops written from the paper's formulas, and as methods use it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from cglsuite_skeleton.backbones import backbones
from cglsuite_skeleton.layouts import LAYOUTS, layout_of
from cglsuite_skeleton.partitions import PARTITIONS, adjacency_stack
from cglsuite_skeleton.sequences import SkeletonSet
from cglsuite_skeleton.stgcn import STGCN, Block, JointConvolution, st_gcn
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.growth import redraw_outputs
from cglsuite.backbones.layers import content_attention
from cglsuite.base.errors import NotApplicable, SpecError, UnknownNameError
from cglsuite.host.catalogue import Catalogue
from cglsuite.learning.gradients import per_item_gradients
from cglsuite.testing.kinds.backbones import check_units

(SPEC,) = backbones()
SMALL = "0-1,1-2,3-1,4-3;centre=1"
DEFAULTS: dict[str, Any] = {h.name: h.default for h in SPEC.hyperparameters} | {"layout": SMALL, "width": 4, "temporal_kernel": 3}


def sequences(n: int = 3, persons: int = 2, frames: int = 6, channels: int = 3, layout: str = SMALL) -> SkeletonSet:
    skeleton = layout_of(layout)
    x = torch.randn(skeleton.n_joints, n, persons, frames, channels, generator=torch.Generator().manual_seed(1))
    return SkeletonSet(skeleton, "cpu", x)


def build(frames: int = 12, **hyperparameters: Any) -> STGCN:
    """A small model in which no parameter and no running statistic has the value that hides it."""
    torch.manual_seed(0)
    chosen = DEFAULTS | hyperparameters
    model = st_gcn(frames * chosen["channels"], 5, **chosen)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d):
                for tensor in (module.weight, module.running_var):
                    tensor.uniform_(0.5, 2)
                for tensor in (module.bias, module.running_mean):
                    tensor.normal_()
        for block in model.blocks:
            if block.joints.importance is not None:
                block.joints.importance.uniform_(0.5, 1.5)
    return model.eval()


def normal(norm: nn.BatchNorm1d, x: Tensor) -> Tensor:
    return (x - norm.running_mean) / torch.sqrt(norm.running_var + norm.eps) * norm.weight + norm.bias


def joints_slowly(block: Block, x: list[list[Tensor]]) -> list[list[Tensor]]:
    """``out[w] = Σ_k Σ_v (A ⊙ M)_k[v, w] (W_k x[v] + b_k)`` in every frame; x[t][v] is float32 [in]."""
    layer = block.joints
    mask = torch.ones_like(layer.adjacency) if layer.importance is None else layer.importance
    subsets, joints, _ = layer.adjacency.shape
    out = []
    for frame in x:
        row = []
        for w in range(joints):
            total = torch.zeros(block.width)
            for k in range(subsets):
                for v in range(joints):
                    total = total + layer.adjacency[k, v, w] * mask[k, v, w] * (frame[v] @ layer.weight[k] + layer.bias[k])
            row.append(total)
        out.append(row)
    return out


def block_slowly(block: Block, x: list[list[Tensor]]) -> list[list[Tensor]]:
    """One block of one person's frames; x[t][v] is float32 [in]."""
    hidden = [[functional.relu(normal(block.joints_norm, h)) for h in frame] for frame in joints_slowly(block, x)]
    kernel, stride, frames = block.frames.kernel_size[0], block.frames.stride[0], len(x)
    out = []
    for t in range(0, frames, stride):
        row = []
        for v in range(len(x[0])):
            total = block.frames.bias
            for i in range(kernel):
                s = t + i - kernel // 2
                if 0 <= s < frames:
                    total = total + block.frames.weight[:, :, i, 0] @ hidden[s][v]
            total = normal(block.frames_norm, total)
            if block.shortcut is not None:
                total = total + normal(block.shortcut_norm, block.shortcut.weight @ x[t][v] + block.shortcut.bias)
            elif block.residual:
                total = total + x[t][v]
            row.append(functional.relu(total))
        out.append(row)
    return out


def slowly(model: STGCN, x: Tensor) -> Tensor:
    """One sequence, float32 [V, M, T, C]: its outputs, float32 [outputs]."""
    joints, persons, frames, channels = x.shape
    states = []
    for m in range(persons):
        entering = []
        for t in range(frames):
            flat = torch.cat([x[v, m, t] for v in range(joints)])  # joint by joint, channel by channel
            entering.append(list(normal(model.input_norm, flat).split(channels)))
        for block in model.blocks:
            entering = block_slowly(block, entering)
        states += [h for frame in entering for h in frame]
    return model.head.weight @ (sum(states) / len(states)) + model.head.bias


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "hyperparameters",
    [
        *({"partition": p} for p in PARTITIONS),
        {"max_hop": 2},
        {"edge_importance": False},
        {"residual": False},
        {"layers": 3, "width": 2},  # narrower than the input: the sums over joints follow the product
        {"temporal_kernel": 9},
        {"channels": 2},
    ],
)
def test_outputs_equal_a_loop_over_persons_frames_and_joints(hyperparameters: dict[str, Any]) -> None:
    model, given = build(**hyperparameters), sequences(channels=hyperparameters.get("channels", 3))
    expected = torch.stack([slowly(model, given.x[:, i]) for i in range(len(given))])
    torch.testing.assert_close(model(given), expected, atol=2e-5, rtol=1e-4)
    ids = torch.tensor([2, 0])
    torch.testing.assert_close(model(given, ids), expected[ids], atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(model(given.take(ids)), expected[ids], atol=2e-5, rtol=1e-4)


def test_a_block_that_changes_shape_equals_a_loop() -> None:
    """Half as many frames and twice the width: block 5 of the full network, in small."""
    from cglsuite_skeleton.stgcn import FrameConvolution, JointConvolution

    torch.manual_seed(0)
    adjacency = adjacency_stack(layout_of(SMALL), "spatial")
    block = Block(JointConvolution(4, 8, adjacency, True), FrameConvolution(8, 3, 2), 0.0, True).eval()
    x = torch.randn(2, 7, 5, 4)
    found = block(x)
    assert found.shape == (2, 4, 5, 8)
    for i in range(2):
        expected = torch.stack([torch.stack(row) for row in block_slowly(block, [list(frame) for frame in x[i]])])
        torch.testing.assert_close(found[i], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_runs(name: str) -> None:
    model = build(layout=name)
    assert model(sequences(layout=name)).shape == (3, 5)
    assert model.input_norm.num_features == layout_of(name).n_joints * 3


def test_the_full_network() -> None:
    """Ten blocks, 52 frames become 13, and as many numbers as the paper's network has."""
    model = build(deep="full", layout="ntu-rgbd", temporal_kernel=9).train()
    assert [(b.width, b.frames.stride[0]) for b in model.blocks] == [(64, 1)] * 4 + [
        (128, 2),
        (128, 1),
        (128, 1),
        (256, 2),
        (256, 1),
        (256, 1),
    ]
    assert [b.shortcut is not None for b in model.blocks] == [i in (4, 7) for i in range(10)]
    assert [b.residual for b in model.blocks] == [False] + [True] * 9
    hidden = torch.randn(1, 52, 25, 3)
    with torch.no_grad():
        for block in model.blocks:
            hidden = block(hidden)
    assert hidden.shape == (1, 13, 25, 256)
    given = sequences(n=2, persons=1, frames=8, layout="ntu-rgbd")
    model(given).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    kernels = sum(
        3 * a * b + 3 * b + 9 * b * b + b + 4 * b + 3 * 25 * 25 + (a * b + 3 * b if a != b and a > 3 else 0)
        for a, b in zip([3, *[64] * 4, *[128] * 3, *[256] * 2], [*[64] * 4, *[128] * 3, *[256] * 3], strict=True)
    )
    assert sum(p.numel() for p in model.parameters()) == kernels + 2 * 75 + 256 * 5 + 5


def test_batch_norm_in_training_and_evaluation() -> None:
    """The input's over (joint, channel), shared by all persons and frames; running statistics move in training only."""
    model, given = build().train(), sequences()
    norm = model.input_norm
    rows = given.x.permute(1, 2, 3, 0, 4).reshape(-1, 15)
    mean, variance = 0.9 * norm.running_mean + 0.1 * rows.mean(0), 0.9 * norm.running_var + 0.1 * rows.var(0)
    first = model(given)
    torch.testing.assert_close(norm.running_mean, mean)
    torch.testing.assert_close(norm.running_var, variance)
    model.eval()
    after = {n: b.clone() for n, b in model.named_buffers()}
    assert not torch.allclose(model(given), first)
    assert all(torch.equal(b, after[n]) for n, b in model.named_buffers())
    assert sum(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()) == 5


def test_dropout_in_training_only() -> None:
    model, given = build(dropout=0.5), sequences()
    assert torch.equal(model(given), model(given))
    torch.testing.assert_close(model(given), build()(given))
    model.train()
    assert not torch.equal(model(given), model(given))


def test_edge_attention_is_read_off_the_first_block() -> None:
    model, given = build(dropout=0.5).train(), sequences()
    before = {n: b.clone() for n, b in model.named_buffers()}
    found = model.edge_attention(given)
    assert all(torch.equal(b, before[n]) for n, b in model.named_buffers())
    hidden = torch.zeros(5, 3, 12)
    for v in range(5):
        for i in range(3):
            for m in range(2):
                for t in range(6):
                    state = normal(model.input_norm, given.x[:, i, m, t].flatten())[3 * v : 3 * v + 3]
                    hidden[v, i] += torch.cat([state @ w for w in model.blocks[0].joints.weight]) / 12
    torch.testing.assert_close(found, content_attention(hidden.flatten(0, 1), given), atol=1e-5, rtol=1e-4)
    assert found.shape == (given.n_edges + given.n_nodes, 1)
    total = torch.zeros(given.n_nodes, 1).index_add(0, given.edges_with_loops[1], found)
    torch.testing.assert_close(total, torch.ones_like(total))
    slope = torch.autograd.grad(found.pow(2).sum(), model.blocks[0].joints.weight)[0]
    assert slope.abs().max() > 1e-5


@pytest.mark.parametrize("hyperparameters", [{}, {"width": 2, "edge_importance": False}])
def test_gradients_item_by_item(hyperparameters: dict[str, Any]) -> None:
    model, given = build(**hyperparameters), sequences()
    parameters = list(model.parameters())
    found = [torch.cat(p) for p in zip(*per_item_gradients(model(given).pow(2).sum(dim=1), parameters, chunk=2), strict=True)]
    for i in range(len(given)):
        alone = torch.autograd.grad(model(given.take(torch.tensor([i]))).pow(2).sum(), parameters)
        for mine, theirs in zip(found, alone, strict=True):
            torch.testing.assert_close(mine[i], theirs, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("training", [True, False])
def test_second_order_gradients_exist(training: bool) -> None:
    """The gradient of the gradient's squared norm, against finite differences of that norm."""
    model, given = build(width=2).double().train(training), sequences()
    given = SkeletonSet(given.layout, "cpu", given.x.double())
    parameters, labels = list(model.parameters()), torch.tensor([0, 1, 2])

    def norm() -> Tensor:
        slopes = torch.autograd.grad(functional.cross_entropy(model(given), labels), parameters, create_graph=True)
        return torch.stack([s.pow(2).sum() for s in slopes]).sum()

    for weight in (model.blocks[0].joints.weight, model.blocks[1].frames.weight):
        curved = torch.autograd.grad(norm(), weight)[0]
        with torch.no_grad():
            weight.view(-1)[0] += 1e-6
        above = norm()
        with torch.no_grad():
            weight.view(-1)[0] -= 2e-6
        slope = (above - norm()) / 2e-6
        assert float(slope.detach()) == pytest.approx(float(curved.flatten()[0]), rel=1e-3, abs=1e-6)


def test_a_single_sequence_of_one_frame_trains() -> None:
    """The input norm has one row per frame and person; a single one is normalised by the running statistics."""
    model = build().train()
    out = model(sequences(n=1, persons=1, frames=1))
    out.sum().backward()
    assert out.isfinite().all()


def test_it_learns_to_tell_sequences_apart() -> None:
    model, given, labels = build(width=16).train(), sequences(), torch.tensor([0, 1, 2])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(40):
        optimizer.zero_grad()
        functional.cross_entropy(model(given), labels).backward()
        optimizer.step()
    assert torch.equal(model(given).argmax(dim=1), labels)


def test_a_growing_head_redraws_its_outputs_alone() -> None:
    mine, fresh, given = build(), build(), sequences()
    with torch.no_grad():
        fresh.head.weight.add_(1)
        before = mine(given)
        redraw_outputs(mine, fresh, torch.tensor([False, False, True, False, True]))
        after = mine(given)
    assert torch.equal(after[:, [0, 1, 3]], before[:, [0, 1, 3]])
    assert (after[:, [2, 4]] != before[:, [2, 4]]).all()


def test_tags_and_state() -> None:
    """Edge importance is body; the fixed adjacency is no part of the state."""
    model = build(layers=1)
    tagged = {name: tag for tag, name, _ in model.tagged_parameters()}
    assert tagged["blocks.0.joints.importance"] == "body"
    assert {n for n, t in tagged.items() if t == "head"} == {"head.weight", "head.bias"}
    assert {n.rpartition(".")[0] for n, t in tagged.items() if t == "norm"} == {
        "input_norm",
        "blocks.0.joints_norm",
        "blocks.0.frames_norm",
    }
    assert not any("adjacency" in name for name in model.state_dict())


# --- what is refused --------------------------------------------------------------------------------------------------------------


def test_wrong_joints_and_channels_are_named() -> None:
    with pytest.raises(SpecError, match=r"backbone.layout = 'nw-ucla' has 20 joints, but the sequences have 5"):
        build(layout="nw-ucla")(sequences())
    with pytest.raises(SpecError, match=r"backbone.channels = 3, but the sequences have 2 coordinates .* set backbone.channels = 2"):
        build()(sequences(channels=2))
    with pytest.raises(SpecError, match="the 13 values of a joint are not a multiple of 3 coordinates per frame"):
        st_gcn(13, 5, **DEFAULTS)
    with pytest.raises(SpecError, match="backbone.temporal_kernel = 4: expected an odd number"):
        build(temporal_kernel=4)
    with pytest.raises(UnknownNameError, match="unknown layout 'nw-ulca'"):
        build(layout="nw-ulca")


def test_graphs_without_sequences_are_refused() -> None:
    class Plain(SkeletonSet):
        x = None  # type: ignore[assignment]

    for asked in (STGCN.encode, STGCN.edge_attention):
        with pytest.raises(NotApplicable, match="st-gcn convolves over frames, but Plain contains no sequences"):
            asked(build(), Plain(layout_of(SMALL), "cpu", torch.zeros(5, 1, 1, 1, 3)))


# --- the spec ---------------------------------------------------------------------------------------------------------------------


def test_the_spec_declares_what_its_factory_takes() -> None:
    assert Catalogue([], []).resolve(SPEC) is st_gcn
    keywords = {p.name for p in inspect.signature(st_gcn).parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert keywords == {h.name for h in SPEC.hyperparameters}
    assert SPEC.levels == ("GC",)
    assert SPEC.citation
    assert all(h.doc and h.effect for h in SPEC.hyperparameters)
    choices = next(h.choices for h in SPEC.hyperparameters if h.name == "partition")
    assert choices == PARTITIONS


def test_joints_begin_as_a_convolution_of_torch_does() -> None:
    """Weights and biases are uniform within one over the root of the inputs; importances are one."""
    torch.manual_seed(0)
    model = st_gcn(12 * 3, 5, **DEFAULTS | {"width": 32})
    for block in model.blocks:
        layer = block.joints
        bound = layer.weight.shape[1] ** -0.5
        for parameter in (layer.weight, layer.bias):
            assert -bound <= parameter.min() < -0.8 * bound
            assert 0.8 * bound < parameter.max() <= bound
        if layer.importance is not None:
            assert torch.equal(layer.importance, torch.ones_like(layer.adjacency))


@pytest.mark.parametrize("deep", ["none", "full"])
def test_units_are_named_truly(deep: str) -> None:
    """Of blocks with and without a map beside them; gates act between the two convolutions and behind each block."""
    x = sequences(2)
    model = build(6, layers=2, deep=deep).eval()
    with torch.no_grad():
        check_units(model, lambda: model(x))
    assert [u.name for u in model.units()][:4] == ["blocks.0.joints", "blocks.0", "blocks.1.joints", "blocks.1"]


def test_joint_convolutions_begin_like_torchs_own() -> None:
    """Weights and biases uniform between ±1/sqrt(inputs), on both sides of 0."""
    torch.manual_seed(3)
    layer = JointConvolution(25, 400, torch.ones(3, 4, 4), edge_importance=True)
    for drawn in (layer.weight.detach(), layer.bias.detach()):
        assert 0.19 < float(drawn.max()) <= 0.2
        assert -0.2 <= float(drawn.min()) < -0.19
        assert abs(float(drawn.std()) - 0.2 / 3**0.5) < 0.005
    assert layer.importance is not None
    assert bool((layer.importance == 1.0).all())
    assert JointConvolution(2, 2, torch.ones(3, 4, 4), edge_importance=False).importance is None
