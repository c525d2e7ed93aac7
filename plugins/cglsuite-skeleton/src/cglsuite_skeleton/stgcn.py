"""ST-GCN: alternating graph convolutions over joints and convolutions over frames."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones import Backbone, Units, Wire
from cglsuite.backbones.layers import content_attention, drop, normalised
from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.graphs import GraphSet
from cglsuite_skeleton.layouts import Layout, layout_of
from cglsuite_skeleton.partitions import adjacency_stack

_FULL_DEPTH = ((64, 1),) * 4 + ((128, 2),) + ((128, 1),) * 2 + ((256, 2),) + ((256, 1),) * 2
"""(width, stride over frames) of the ten blocks of Yan et al. (2018)."""


def _norm(name: str) -> list[Wire]:
    """The affine parameters of the norm called ``name``, one entry per unit."""
    return [Wire(f"{name}.weight", 0), Wire(f"{name}.bias", 0)]


def _over_rows(norm: nn.BatchNorm1d, x: Tensor) -> Tensor:
    """Batch norm over the last axis, with all other axes as the batch: float32 [..., d]."""
    return normalised(norm, x.reshape(-1, x.shape[-1])).view(x.shape)


class JointConvolution(nn.Module):
    """Pass messages between the joints of a frame: ``out[w] = Σ_k Σ_v (A ⊙ M)_k[v, w] (x[v] W_k + b_k)`` (Yan et al. 2018, eq. 10).

    The adjacency matrices A are fixed; the edge importance M, initialised with ones, is learnt. Sums over joints are taken on the narrower
    side of the product with W, which is mathematically equivalent.

    Args:
        adjacency: float32 [K, V, V]; see :func:`cglsuite_skeleton.partitions.adjacency_stack`.
        edge_importance: whether to learn M.
    """

    adjacency: Tensor

    def __init__(self, in_features: int, out_features: int, adjacency: Tensor, edge_importance: bool) -> None:
        super().__init__()
        self.register_buffer("adjacency", adjacency, persistent=False)
        self.importance = nn.Parameter(torch.ones_like(adjacency)) if edge_importance else None
        bound = 1 / math.sqrt(in_features)  # initialised like torch's convolutions
        self.weight = nn.Parameter(torch.empty(len(adjacency), in_features, out_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(len(adjacency), out_features).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the convolution: float32 [B, T, V, in] to [B, T, V, out], for B sequences of T frames."""
        along = self.adjacency if self.importance is None else self.adjacency * self.importance
        subsets, joints, _ = along.shape
        _, narrow, wide = self.weight.shape
        frames = x.flatten(0, 1)
        if narrow < wide:
            heard = _each(along.permute(2, 0, 1).reshape(joints * subsets, joints), frames)  # rows (w, k)
            moved = along.sum(dim=1).T @ self.bias  # [V, out]
            out = heard.view(-1, joints, subsets * narrow) @ self.weight.reshape(subsets * narrow, wide) + moved
        else:
            sent = torch.addmm(self.bias.flatten(), frames.flatten(0, 1), self._beside())  # columns (k, out)
            out = _each(along.permute(2, 1, 0).reshape(joints, joints * subsets), sent.view(-1, joints * subsets, wide))
        return out.view(*x.shape[:3], wide)

    def sent(self, x: Tensor) -> Tensor:
        """Compute the messages from joints to each subset of their neighbours, ``x W_k`` concatenated over k: float32 [..., in] to [...,
        K·out].
        """
        return x @ self._beside()

    def _beside(self) -> Tensor:
        """All W_k concatenated: float32 [in, K·out]."""
        return self.weight.transpose(0, 1).flatten(1)


def _each(matrix: Tensor, frames: Tensor) -> Tensor:
    """One matrix multiplied with every frame: float32 [a, b] and [B, b, c] to [B, a, c]."""
    return torch.bmm(matrix.expand(len(frames), -1, -1), frames)


class FrameConvolution(nn.Conv2d):
    """Convolve over the frames of each joint. The number of frames is preserved (or divided by the stride)."""

    def __init__(self, width: int, kernel: int, stride: int) -> None:
        super().__init__(width, width, (kernel, 1), (stride, 1), (kernel // 2, 0))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the convolution: float32 [B, T, V, d] to [B, ⌈T / stride⌉, V, d]."""
        return super().forward(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class Block(nn.Module):
    """One block of ST-GCN: ``relu(dropout(BN(over frames(relu(BN(over joints(x)))))) + residual(x))``.

    The residual is x, or ``BN(x R + c)`` of every stride-th frame if the shape changes, or omitted.
    """

    def __init__(self, joints: JointConvolution, frames: FrameConvolution, dropout: float, residual: bool) -> None:
        super().__init__()
        in_features, width, stride = joints.weight.shape[1], frames.out_channels, frames.stride[0]
        self.width = width
        self.joints, self.joints_norm = joints, nn.BatchNorm1d(width)
        self.frames, self.frames_norm = frames, nn.BatchNorm1d(width)
        self.dropout, self.residual = dropout, residual
        changes = residual and (in_features != width or stride > 1)
        self.shortcut = nn.Linear(in_features, width) if changes else None
        self.shortcut_norm = nn.BatchNorm1d(width) if changes else None

    def forward(self, x: Tensor, gate: Tensor | None = None) -> Tensor:
        """Apply the block: float32 [B, T, V, in] to [B, ⌈T / stride⌉, V, width]; ``gate`` (float32 [width]) scales units between the
        convolutions.
        """
        hidden = functional.relu(_over_rows(self.joints_norm, self.joints(x)))
        if gate is not None:
            hidden = hidden * gate
        hidden = drop(_over_rows(self.frames_norm, self.frames(hidden)), self.dropout, self.training)
        if self.shortcut is not None and self.shortcut_norm is not None:
            hidden = hidden + _over_rows(self.shortcut_norm, self.shortcut(x[:, :: self.frames.stride[0]]))
        elif self.residual:
            hidden = hidden + x
        return functional.relu(hidden)


class STGCN(Backbone):
    """Spatial-temporal graph convolutional network (Yan et al., AAAI 2018).

    The input passes through a batch norm over (joint, channel) shared by all persons, the blocks, the mean over frames, joints and persons,
    and the linear head. The persons in a sequence are encoded separately and averaged.

    Its graphs must have ``x`` (float32 [V, n, M, T, C]: joints, sequences, persons, frames, channels) in addition to the interface of graph
    sets.
    """

    def __init__(self, layout: Layout, channels: int, blocks: list[Block], outputs: int) -> None:
        super().__init__()
        self.layout, self.channels = layout, channels
        self.input_norm = nn.BatchNorm1d(layout.n_joints * channels)
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(blocks[-1].width, outputs)

    def encode(self, graph: GraphSet) -> Tensor:
        """Return the embeddings of the sequences before the head: float32 [n, d]."""
        x = self._input(graph)
        sequences, persons, frames = x.shape[:3]
        hidden = _over_rows(self.input_norm, x.flatten(3)).view(sequences * persons, frames, self.layout.n_joints, self.channels)
        for i, block in enumerate(self.blocks):
            hidden = self.gated(f"blocks.{i}", block(hidden, self.gates.get(f"blocks.{i}.joints")))
        return hidden.view(sequences, -1, hidden.shape[-1]).mean(dim=1)

    def units(self) -> tuple[Units, ...]:
        """Return the units between the convolutions of each block, then its outputs. If a block adds its input, unit u also reads from unit
        u.
        """
        out = list[Units]()
        for i, block in enumerate(self.blocks):
            name, after = f"blocks.{i}", f"blocks.{i + 1}"
            last = i + 1 == len(self.blocks)
            shortcut = [Wire(f"{name}.shortcut.{p}", 0) for p in ("weight", "bias")] if block.shortcut is not None else []
            shortcut += _norm(f"{name}.shortcut_norm") if block.shortcut is not None else []
            readers = [Wire("head.weight", 1)] if last else [Wire(f"{after}.joints.weight", 1)]
            readers += [Wire(f"{after}.shortcut.weight", 1)] if not last and self.blocks[i + 1].shortcut is not None else []
            inner = (Wire(f"{name}.joints.weight", 2), Wire(f"{name}.joints.bias", 1), *_norm(f"{name}.joints_norm"))
            outer = (Wire(f"{name}.frames.weight", 0), Wire(f"{name}.frames.bias", 0), *_norm(f"{name}.frames_norm"), *shortcut)
            width = int(block.width)  # type: ignore[arg-type]
            out += [Units(f"{name}.joints", width, inner, (Wire(f"{name}.frames.weight", 1),)), Units(name, width, outer, tuple(readers))]
        return tuple(out)

    def edge_attention(self, graph: GraphSet) -> Tensor:
        """Compute content attention (see :func:`cglsuite.backbones.layers.content_attention`) for the joint convolution of the first block.

        The message ``W h`` of a joint to all K subsets of its neighbours is averaged over frames and persons; the input is normalised by
        the running statistics, which are not updated.

        Returns:
            float32 [E', 1].
        """
        norm = self.input_norm
        rows = self._input(graph).flatten(3).mean(dim=(1, 2))  # the norm and W are linear, so means commute with them
        rows = functional.batch_norm(rows, norm.running_mean, norm.running_var, norm.weight, norm.bias, training=False, eps=norm.eps)
        joints = rows.view(len(rows), self.layout.n_joints, self.channels).transpose(0, 1).flatten(0, 1)
        first: JointConvolution = self.blocks[0].joints  # type: ignore[assignment]
        return content_attention(first.sent(joints), graph)

    def _input(self, graph: Any) -> Tensor:
        """The sequences as float32 [n, M, T, V, C], checked against the layout."""
        x = getattr(graph, "x", None)
        if not isinstance(x, Tensor) or x.dim() != 5:
            raise NotApplicable(
                f"the backbone st-gcn convolves over frames, but {type(graph).__name__} contains no sequences (x: float32 [V, n, M, T, "
                "C]); "
                "choose a skeleton dataset, or a backbone for any kind of graph, such as graph-gcn"
            )
        joints, channels = x.shape[0], x.shape[4]
        if joints != self.layout.n_joints:
            raise SpecError(
                f"backbone.layout = {self.layout.name!r} has {self.layout.n_joints} joints, but the sequences have {joints}; choose the "
                "layout that matches the skeletons of the dataset"
            )
        if channels != self.channels:
            raise SpecError(
                f"backbone.channels = {self.channels}, but the sequences have {channels} coordinates per joint of layout "
                f"{self.layout.name!r}; set backbone.channels = {channels}"
            )
        return x.permute(1, 2, 3, 0, 4)


def st_gcn(
    in_features: int,
    outputs: int,
    *,
    layout: str,
    channels: int,
    layers: int,
    width: int,
    deep: str,
    partition: str,
    max_hop: int,
    edge_importance: bool,
    temporal_kernel: int,
    dropout: float,
    residual: bool,
) -> STGCN:
    """Build an ST-GCN with ``layers`` blocks of ``width``, or with the ten blocks of the paper (``deep = full``), which ignore both.

    Args:
        in_features: numbers per joint over all persons, frames and channels; only checked here, since frames and persons may vary.
        outputs: number of outputs C.
        layout: see :func:`cglsuite_skeleton.layouts.layout_of`.
        partition: see :func:`cglsuite_skeleton.partitions.adjacency_stack`, also for ``max_hop``.

    Raises:
        UnknownNameError: unknown layout or partition.
        SpecError: the temporal kernel is even, or the features of a joint are not whole frames.
    """
    if temporal_kernel % 2 == 0:
        raise SpecError(f"backbone.temporal_kernel = {temporal_kernel}: expected an odd number, because the kernel is centred")
    if in_features % channels:
        raise SpecError(
            f"backbone.channels = {channels}: the {in_features} values of a joint are not a multiple of {channels} coordinates per frame"
        )
    skeleton = layout_of(layout)
    adjacency = adjacency_stack(skeleton, partition, max_hop)
    depths = _FULL_DEPTH if deep == "full" else ((width, 1),) * layers
    blocks: list[Block] = []
    for after, stride in depths:
        joints = JointConvolution(blocks[-1].width if blocks else channels, after, adjacency, edge_importance)
        blocks.append(Block(joints, FrameConvolution(after, temporal_kernel, stride), dropout, residual and bool(blocks)))
    return STGCN(skeleton, channels, blocks, outputs)
