"""Skeleton sequences as graphs. Joints are nodes, bones are edges, and the features of a joint are its positions in all frames."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, lru_cache
from typing import Self

import torch
from torch import Tensor

from cglsuite.base.errors import DataError, SpecError
from cglsuite.base.hashing import digest
from cglsuite.graphs import GraphSet, Operator, Pooling, uploaded
from cglsuite_skeleton.epochs import TrainingPart
from cglsuite_skeleton.layouts import Layout
from cglsuite_skeleton.preparation import Preparation, centred
from cglsuite_skeleton.ragged import Sequences


class SkeletonSet(GraphSet):
    """A set of n sequences with the same layout; node ``joint * n + sequence`` is joint ``joint`` of sequence ``sequence``.

    Training sets contain their recordings, from which the inputs of each epoch are computed. Query sets contain only inputs, without ids or
    lengths. Sets are created by :class:`SkeletonSource`; tensors may be shared and must not be written to.

    Args:
        layout: joints and bones.
        device: where inputs live; recordings stay on the CPU.
        x: float32 [V, n, M, T, C], inputs; ``None`` = made from the recordings without augmentation on first use.
        parts: recordings, in the order of the set.
        augmented: the epoch whose augmentation ``x`` shows; ``None`` = none.
    """

    def __init__(
        self,
        layout: Layout,
        device: str | torch.device,
        x: Tensor | None = None,
        parts: Sequence[TrainingPart] = (),
        augmented: int | None = None,
    ) -> None:
        self.layout = layout
        self.device = torch.device(device)
        self._parts = tuple(parts)
        self._x = x
        self._augmented = augmented
        self._length = int(x.shape[1]) if x is not None else sum(len(p.sequences) for p in parts)

    def __len__(self) -> int:
        return self._length

    @property
    def x(self) -> Tensor:
        """The inputs, float32 [V, n, M, T, C], contiguous: V joints, n sequences, M persons, T frames, C coordinates."""
        if self._x is None:
            self._x = _side_by_side([p.plain() for p in self._parts])
        return self._x

    @property
    def features(self) -> Tensor:  # type: ignore[override]
        """The node features, float32 [V·n, M·T·C]: the positions of a joint in all frames, concatenated."""
        return self.x.view(self.n_nodes, self.n_features)

    @property
    def n_features(self) -> int:
        return math.prod(self._x.shape[2:]) if self._x is not None else self._parts[0].n_features

    @property
    def n_nodes(self) -> int:
        return self.layout.n_joints * len(self)

    @property
    def n_edges(self) -> int:
        return 2 * len(self.layout.edges) * len(self)

    @cached_property
    def edges_with_loops(self) -> Tensor:
        n = len(self)
        bones = torch.tensor(self.layout.edges, dtype=torch.int64).view(-1, 2).T
        joints = torch.cat([bones, bones.flip(0), torch.arange(self.layout.n_joints).expand(2, -1)], dim=1)
        return uploaded((joints.unsqueeze(-1) * n + torch.arange(n)).view(2, -1), self.device)

    def propagate(self, kind: Operator, hidden: Tensor) -> Tensor:
        operator = _operator(self.layout, kind, self.device, hidden.dtype)
        return (operator @ hidden.reshape(self.layout.n_joints, -1)).view(hidden.shape)

    def pool(self, hidden: Tensor, how: Pooling) -> Tensor:
        joints = hidden.reshape(self.layout.n_joints, len(self), hidden.shape[-1])
        return joints.amax(dim=0) if how == "max" else joints.sum(dim=0) if how == "sum" else joints.mean(dim=0)

    def take(self, ids: Tensor) -> Self:
        x = None if self._x is None else self._x[:, uploaded(ids, self._x.device)]
        parts = [_part(self._parts, Sequences.joined([p.sequences for p in self._parts]).take(ids.cpu()))] if self._parts else []
        return type(self)(self.layout, self.device, x, parts, self._augmented)

    def merged(self, others: Sequence[Self]) -> Self:
        if not others:
            return self
        sets = [self, *others]
        if len({(s.layout, s.device, bool(s._parts), *{(p.preparation, p.seed) for p in s._parts}) for s in sets}) > 1:
            raise SpecError(
                "sets of sequences can be merged only if they have the same layout, device, preparation and seed "
                "and are either all training sets or all query sets"
            )
        x = None if any(s._x is None for s in sets) else _side_by_side([s.x for s in sets])
        augmented = self._augmented if all(s._augmented == self._augmented for s in sets) else None
        return type(self)(self.layout, self.device, x, [p for s in sets for p in s._parts], augmented)

    def epoch(self, number: int) -> Self:
        if not self._parts or self._parts[0].preparation.augmentation == "none":
            return self
        return type(self)(self.layout, self.device, _side_by_side([p.epoch(number) for p in self._parts]), self._parts, number)

    def payload(self) -> dict[str, Tensor]:
        """Return ``coordinates``, ``lengths`` and ``ids`` of recordings (see :class:`Sequences`), or the inputs ``x`` for query sets."""
        if not self._parts:
            return {"x": self.x.cpu()}
        kept = Sequences.joined([p.sequences for p in self._parts])
        return {"coordinates": kept.coordinates, "lengths": kept.lengths, "ids": kept.ids}

    def rebuilt(self, payload: Mapping[str, Tensor]) -> Self:
        if "x" in payload:
            return type(self)(self.layout, self.device, payload["x"].to(self.device))
        if not self._parts:
            raise SpecError("only training sets can rebuild recordings, because query sets do not store how recordings are prepared")
        made = type(self)(self.layout, self.device, None, [_part(self._parts, Sequences(**{k: v.cpu() for k, v in payload.items()}))])
        return made if self._augmented is None else made.epoch(self._augmented)


def _part(like: Sequence[TrainingPart], sequences: Sequences) -> TrainingPart:
    """A set of other recordings with the same preparation."""
    first = like[0]
    return TrainingPart(sequences=sequences, preparation=first.preparation, seed=first.seed, device=first.device)


def _side_by_side(inputs: Sequence[Tensor]) -> Tensor:
    return inputs[0] if len(inputs) == 1 else torch.cat(list(inputs), dim=1)


@lru_cache(maxsize=64)
def _operator(layout: Layout, kind: Operator, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The propagation operator over the joints of one skeleton: [V, V]."""
    if kind not in ("sum", "sum-self", "sym"):
        raise SpecError(f"unknown propagation {kind!r}; expected 'sum', 'sum-self' or 'sym'")
    operator = layout.adjacency().double()
    if kind != "sum":
        operator += torch.eye(layout.n_joints, dtype=torch.float64)
    if kind == "sym":
        scale = operator.sum(dim=1).rsqrt()
        operator = scale[:, None] * operator * scale
    return operator.to(device=device, dtype=dtype)


class SkeletonSource:
    """The recordings of a dataset (a :class:`cglsuite.graphs.GraphSource`).

    Args:
        coordinates: float32 [F, M, V, C], raw positions in all frames, recording by recording.
        lengths: int64 [N], frames per recording.
        layout: joints and bones.
        preparation: how recordings become inputs.
        centre: the joint whose position in a recording's first frame is subtracted; ``None`` for the layout's centre.
        name: of the dataset, for messages.

    Raises:
        DataError: inconsistent shapes, a wrong joint count, an empty recording, or NaN or infinite positions.
        SpecError: view augmentation of positions that are not three-dimensional.
    """

    def __init__(
        self,
        coordinates: Tensor,
        lengths: Tensor,
        layout: Layout,
        preparation: Preparation,
        centre: int | None = None,
        name: str = "skeletons",
    ) -> None:
        _check(coordinates, lengths, layout, preparation, name)
        self.layout, self.preparation = layout, preparation
        self.centre = layout.centre if centre is None else centre
        planes = coordinates.permute(3, 2, 1, 0).contiguous().numpy()
        relative = torch.from_numpy(centred(planes, lengths.numpy(), self.centre))
        self._all = Sequences(coordinates=relative, lengths=lengths, ids=torch.arange(len(lengths)))

    def __len__(self) -> int:
        return len(self._all)

    @property
    def n_features(self) -> int:
        """The number F of features of a joint: persons × frames × coordinates."""
        return self._all.n_values * self.preparation.frames

    @cached_property
    def content_hash(self) -> str:
        """The SHA-256 (hex) of recordings, layout and preparation."""
        how = {"layout": asdict(self.layout), "preparation": asdict(self.preparation), "centre": self.centre}
        total = hashlib.sha256(digest(how).encode())
        for part in (self._all.coordinates, self._all.lengths):
            array = part.numpy()
            total.update(f"|{array.dtype.str}{array.shape}|".encode())
            total.update(array.data)
        return total.hexdigest()

    def training(self, ids: Tensor, seed: int, device: str) -> SkeletonSet:
        """Return the sequences ``ids`` (int64 [n]) for training. Augmentation is a function of (seed, sequence, epoch)."""
        ids = ids.cpu()
        key = "|".join([self.content_hash, str(seed), hashlib.sha256(ids.numpy().tobytes()).hexdigest(), str(torch.device(device))])
        part = TrainingPart(sequences=self._all.take(ids), preparation=self.preparation, seed=seed, device=torch.device(device), key=key)
        return SkeletonSet(self.layout, device, None, [part])

    def queries(self, ids: Tensor, device: str) -> SkeletonSet:
        """Return the sequences ``ids`` (int64 [n]) as queries, which contain only inputs."""
        part = TrainingPart(sequences=self._all.take(ids.cpu()), preparation=self.preparation, seed=0, device=torch.device(device))
        return SkeletonSet(self.layout, device, part.plain())


def _check(coordinates: Tensor, lengths: Tensor, layout: Layout, preparation: Preparation, name: str) -> None:
    if coordinates.dim() != 4 or coordinates.dtype != torch.float32 or coordinates.shape[1] < 1:
        raise DataError(
            f"{name}: positions are {coordinates.dtype} {list(coordinates.shape)}; expected float32 [F, M, V, C] with M at least 1"
        )
    if coordinates.shape[2] != layout.n_joints:
        raise DataError(f"{name}: the recordings have {coordinates.shape[2]} joints, but the layout {layout.name!r} has {layout.n_joints}")
    if (empty := (lengths < 1).nonzero().flatten()).numel():
        raise DataError(f"{name}: sequence {int(empty[0])} has no frames; the loader must leave out empty sequences")
    if int(lengths.sum()) != coordinates.shape[0]:
        raise DataError(f"{name}: lengths sum to {int(lengths.sum())}; expected {coordinates.shape[0]}, the number of frames")
    if not bool(torch.isfinite(coordinates).all()):
        frame = int((~torch.isfinite(coordinates)).flatten(1).any(dim=1).nonzero()[0])
        sequence = int(torch.searchsorted(lengths.cumsum(0), frame, right=True))
        raise DataError(f"{name}: sequence {sequence} has a NaN or infinite position; the loader must repair such positions")
    if preparation.augmentation == "views" and coordinates.shape[3] != 3:
        raise SpecError(
            f"{name}: augmentation = views needs three-dimensional positions, but there are {coordinates.shape[3]} coordinates; set "
            "augmentation = none"
        )
