"""The items that a method stores for replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cglsuite.base.errors import SpecError, UsageError, nearest
from cglsuite.graphs.message import stored_bytes
from cglsuite.graphs.pack import Pack, stacked_rows, taken_rows
from cglsuite.graphs.upload import uploaded

if TYPE_CHECKING:
    from cglsuite.graphs import GraphSet


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryItems:
    """Items stored for replay, with their features or by reference (``x`` is ``None``, and features are read from the permitted graph).

    Args:
        ids: ids in the graph from which the items were sampled, int64 [n], or [n, 2] for pairs of nodes.
        y: the labels at sampling time, int64 [n] or bool [n, C]. tasks: the positions of the tasks they came from, int64 [n].
        x: features of nodes (float32 [n, F], dense or sparse CSR; for pairs, [n, 2F] with both ends concatenated), a set of n graphs,
            the surroundings of n nodes or pairs (a pack whose graphs begin with their centres), or ``None``.
        extra: other dense tensors per item, by name: [n, ...] of any dtype, such as the model's outputs (``{"logits": float32 [n, C]}``).
            They are sampled, joined, saved and metered with the items; a budget counts only items.

    Raises:
        SpecError: an extra tensor is not dense, or does not have one row per item.
    """

    ids: Tensor
    y: Tensor
    tasks: Tensor
    x: Tensor | GraphSet | Pack | None = None
    extra: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra", _Extra(self.extra))
        for name, rows in self.extra.items():
            check_rows(name, rows, len(self), "item")

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    @property
    def sizes(self) -> Tensor:
        """The cost of each item in a budget, int64 [n]: 1, or the number of nodes of its stored subgraph."""
        return self.x.sizes if isinstance(self.x, Pack) else torch.ones(len(self), dtype=torch.int64)

    @property
    def edges(self) -> int:
        """The number of stored directed edges."""
        if self.x is None or isinstance(self.x, Tensor):
            return 0
        if isinstance(self.x, Pack):
            return self.x.n_edges
        kept = self.x.payload().get("edge_index")
        return 0 if kept is None else int(kept.shape[1])

    @property
    def extra_bytes(self) -> int:
        """Memory use of ``extra`` in bytes."""
        return sum(rows.numel() * rows.element_size() for rows in self.extra.values())

    def bytes(self) -> int:
        """Memory use in bytes."""
        own = 8 * (self.ids.numel() + len(self)) + self.y.numel() * self.y.element_size() + self.extra_bytes
        if self.x is None:
            return own
        if isinstance(self.x, Tensor):
            return own + stored_bytes(self.x)
        if isinstance(self.x, Pack):
            starts = 2 * 8 * (len(self) + 1)
            return own + stored_bytes(self.x.x) + 2 * 8 * self.x.n_edges + starts
        return own + self.x.bytes()

    def take(self, chosen: Tensor) -> MemoryItems:
        """Select the items at positions ``chosen`` (int64 [m])."""
        x = self.x
        if isinstance(x, Tensor):
            x = taken_rows(x, chosen)
        elif isinstance(x, Pack):
            x = x.take(chosen.cpu())
        elif x is not None:
            x = x.take(chosen)
        there = uploaded(chosen, self.ids.device)  # once: an index on the CPU is uploaded by every tensor that it indexes
        extra = {name: rows[there] for name, rows in self.extra.items()}
        return MemoryItems(ids=self.ids[there], y=self.y[there], tasks=self.tasks[there], x=x, extra=extra)

    def draw(self, n: int, generator: torch.Generator | None) -> MemoryItems:
        """Draw ``n`` of the items (all if there are fewer) uniformly without replacement, in random order.

        Args:
            generator: a CPU generator.
        """
        return self.take(torch.randperm(len(self), generator=generator)[:n])

    @classmethod
    def joined(cls, parts: Sequence[MemoryItems]) -> MemoryItems:
        """Combine the items of several samples of the same kind.

        Raises:
            SpecError: their extra tensors differ in names, shapes or dtypes.
        """
        if len(parts) == 1:
            return parts[0]
        stored: list[Any] = [p.x for p in parts if p.x is not None]
        x: Tensor | GraphSet | Pack | None = None
        if stored and isinstance(stored[0], Tensor):
            x = stacked_rows(stored)
        elif stored and isinstance(stored[0], Pack):
            x = stored[0].joined(stored[1:])
        elif stored:
            x = stored[0].merged(stored[1:])
        ids, y, tasks = (torch.cat([getattr(p, name) for p in parts]) for name in ("ids", "y", "tasks"))
        return cls(ids=ids, y=y, tasks=tasks, x=x, extra=_stacked([p.extra for p in parts]))

    def state(self) -> dict[str, Any]:
        """The state for checkpoints."""
        return {
            "ids": self.ids,
            "y": self.y,
            "tasks": self.tasks,
            "x": self.x if self.x is None or isinstance(self.x, Tensor) else self.x.payload(),
            # Absent if there is none, so fingerprints of states without extras do not change.
            **({"extra": {name: rows.detach() for name, rows in self.extra.items()}} if self.extra else {}),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], device: torch.device, like: GraphSet | None = None) -> MemoryItems:
        """Restore items from :meth:`state`. Ids, labels and extra tensors go to ``device``; features of nodes stay on the CPU.

        Args:
            like: any set of graphs of the dataset, needed to rebuild stored graphs; ``None`` if items are not graphs.
        """
        ids, y, tasks = (state[name].to(device) for name in ("ids", "y", "tasks"))
        x = state["x"]
        if isinstance(x, Mapping):
            x = Pack.of(x) if like is None else like.rebuilt(x)
        extra = {name: rows.to(device) for name, rows in state.get("extra", {}).items()}
        return cls(ids=ids, y=y, tasks=tasks, x=x, extra=extra)


class _Extra(Mapping[str, Tensor]):
    """Read-only extra tensors by name. Stored items change only through the memory, which meters them."""

    def __init__(self, rows: Mapping[str, Tensor]) -> None:
        if not isinstance(rows, Mapping):
            raise SpecError(f"extra of memory items is a {type(rows).__name__}; expected a mapping of names to tensors")
        self._rows = dict(rows)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._rows:
            raise _UnknownExtra(name, self._rows)
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr({name: [str(rows.dtype).removeprefix("torch."), *rows.shape] for name, rows in self._rows.items()})


class _UnknownExtra(UsageError, KeyError):
    """Raised for an unknown extra tensor. It is also a ``KeyError``, as mappings require."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        if close := nearest(name, known):
            advice = f"did you mean {' or '.join(map(repr, close))}?"
        elif known := sorted(known):
            advice = f"they have {', '.join(map(repr, known))}"
        else:
            advice = f"they have none. Keep it with the items: extra={{{name!r}: ...}} of problem.sample or Reservoir.offer"
        super().__init__(f"memory items have no extra {name!r}: {advice}")

    __str__ = Exception.__str__


def check_rows(name: str, rows: Tensor, n: int, of: str) -> None:
    """Check that an extra tensor is dense and has ``n`` rows, one per ``of``.

    Raises:
        SpecError: the check fails.
    """
    if not isinstance(rows, Tensor) or rows.layout != torch.strided:
        given = f"a tensor of layout {rows.layout}" if isinstance(rows, Tensor) else f"a {type(rows).__name__}"
        raise SpecError(f"extra {name!r} of memory items is {given}; expected a dense tensor with one row per {of}")
    if rows.dim() == 0 or len(rows) != n:
        raise SpecError(f"extra {name!r} of memory items has shape {list(rows.shape)}; expected one row per {of}: [{n}, ...]")


def _stacked(extras: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    first = extras[0]
    for other in extras[1:]:
        if set(other) != set(first):
            given = " and ".join(", ".join(map(repr, sorted(names))) or "none" for names in (first, other))
            raise SpecError(f"memory items with different extras cannot be joined: {given}; expected the same names for all")
        for name in first:
            if other[name].shape[1:] != first[name].shape[1:] or other[name].dtype != first[name].dtype:
                given = " and ".join(f"{rows.dtype} [n, {', '.join(map(str, rows.shape[1:]))}]" for rows in (first[name], other[name]))
                raise SpecError(f"extra {name!r} of memory items differs between the samples that are joined: {given}")
    return {name: torch.cat([extra[name] for extra in extras]) for name in first}
