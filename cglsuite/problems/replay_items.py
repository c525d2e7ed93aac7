"""The items that methods store for replay."""

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
    """Items stored for replay, either with their features or by reference, in which case features are read from the current graph.

    Args:
        ids: the ids in the graph from which the items were sampled: int64 [n], or [n, 2] for pairs of nodes.
        y: the labels at sampling time, int64 [n] or bool [n, C]. tasks: the positions of the items' tasks, int64 [n].
        x: the features of nodes (float32 [n, F], dense or sparse CSR; for pairs, [n, 2F] with the features of both nodes concatenated), a
            set of n graphs, the surroundings of n nodes or pairs (a pack of graphs that begin with their centres), or ``None`` for items
            stored by reference.
        extra: other dense tensors with one row per item, by name: [n, ...] of any dtype, such as the model's outputs (``{"logits": float32
            [n, C]}``). They are sampled, joined, saved and metered with the items, but do not use up the budget.

    Raises:
        SpecError: if an extra tensor is not dense, or does not have one row per item.
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
        """The budget cost of each item (int64 [n]): 1, or the number of nodes in its stored subgraph."""
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
        """The memory use of ``extra`` in bytes."""
        return sum(rows.numel() * rows.element_size() for rows in self.extra.values())

    def bytes(self) -> int:
        """Return the memory use in bytes."""
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
        there = uploaded(chosen, self.ids.device)  # upload once: otherwise, each indexed tensor would upload the index again
        extra = {name: rows[there] for name, rows in self.extra.items()}
        return MemoryItems(ids=self.ids[there], y=self.y[there], tasks=self.tasks[there], x=x, extra=extra)

    def draw(self, n: int, generator: torch.Generator | None) -> MemoryItems:
        """Draw ``n`` items (or all, if there are fewer) uniformly without replacement, in random order.

        Args:
            generator: a CPU generator.
        """
        return self.take(torch.randperm(len(self), generator=generator)[:n])

    @classmethod
    def joined(cls, parts: Sequence[MemoryItems]) -> MemoryItems:
        """Concatenate several sets of items of the same kind.

        Raises:
            SpecError: if their extra tensors differ in names, shapes or dtypes.
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
        """Return the state to save in checkpoints."""
        return {
            "ids": self.ids,
            "y": self.y,
            "tasks": self.tasks,
            "x": self.x if self.x is None or isinstance(self.x, Tensor) else self.x.payload(),
            # Omitted if there are no extras, so that the fingerprints of states without extras do not change.
            **({"extra": {name: rows.detach() for name, rows in self.extra.items()}} if self.extra else {}),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], device: torch.device, like: GraphSet | None = None) -> MemoryItems:
        """Create items from :meth:`state`. Ids, labels and extra tensors are moved to ``device``. Node features stay on the CPU.

        Args:
            like: any set of graphs from the dataset, which is needed to rebuild stored graphs. ``None`` if items are not graphs.
        """
        ids, y, tasks = (state[name].to(device) for name in ("ids", "y", "tasks"))
        x = state["x"]
        if isinstance(x, Mapping):
            x = Pack.of(x) if like is None else like.rebuilt(x)
        extra = {name: rows.to(device) for name, rows in state.get("extra", {}).items()}
        return cls(ids=ids, y=y, tasks=tasks, x=x, extra=extra)


class _Extra(Mapping[str, Tensor]):
    """A read-only mapping of names to extra tensors. Stored items can be changed only through the memory, which meters them."""

    def __init__(self, rows: Mapping[str, Tensor]) -> None:
        if not isinstance(rows, Mapping):
            raise SpecError(f"extra of memory items is a {type(rows).__name__}; expected a mapping from names to tensors")
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
    """Raised for unknown names of extra tensors. It is also a ``KeyError``, as mappings require."""

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
        SpecError: if it is not dense or has a different number of rows.
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
            raise SpecError(f"memory items with different extras cannot be joined: {given}; expected the same names in all of them")
        for name in first:
            if other[name].shape[1:] != first[name].shape[1:] or other[name].dtype != first[name].dtype:
                given = " and ".join(f"{rows.dtype} [n, {', '.join(map(str, rows.shape[1:]))}]" for rows in (first[name], other[name]))
                raise SpecError(f"memory items cannot be joined, because their extra {name!r} differs: {given}")
    return {name: torch.cat([extra[name] for extra in extras]) for name in first}
