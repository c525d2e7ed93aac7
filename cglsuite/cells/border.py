"""The boundary between a method and the suite: convert predictions to plain tensors before they are compared with labels, and measure a
method's state.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cglsuite.base.errors import NotApplicable, PluginError
from cglsuite.learning.reproducibility import state as method_state
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch

if TYPE_CHECKING:
    from cglsuite.learning.method import Method
    from cglsuite.learning.task_free_runner import TaskFreeRunner
    from cglsuite.learning.task_runner import TaskRunner
    from cglsuite.problems import Problem
    from cglsuite.streams import TaskFreeStream, TaskStream, TaskView


def plain_answer(answer: Any) -> Tensor:
    """Return a method's prediction as a plain ``torch.Tensor``. An instance of a subclass is copied, so that none of its code runs
    afterwards.

    Raises:
        PluginError: the prediction is not a tensor.
    """
    if type(answer) is Tensor:
        return answer
    if not isinstance(answer, Tensor):
        raise PluginError(
            f"the method returned an object of type {type(answer).__name__}; expected a tensor with one row per item of the query"
        )
    with torch._C.DisableTorchFunctionSubclass():
        shape, dtype, device = Tensor.size(answer), Tensor.dtype.__get__(answer), Tensor.device.__get__(answer)  # type: ignore[attr-defined]
        return torch.empty(shape, dtype=dtype, device=device).copy_(answer)


def use_plain_answers(runner: TaskRunner | TaskFreeRunner, stream: TaskStream | TaskFreeStream) -> None:
    """Ensure that the runner and the stream's oracle receive the method's predictions as plain tensors.

    A subclass of ``Tensor`` takes part in every operation on it (``__torch_function__``), so it would see the labels.
    """
    held: Any = runner
    held._predicted = _with_plain_answers(runner._predicted)
    for name in ("validation_loss", "validation_cost"):
        if hasattr(runner, name):
            setattr(held, name, _with_plain_batch(getattr(runner, name)))
    oracle: Any = stream.oracle
    for name in ("grade", "monitor", "performance"):
        setattr(oracle, name, _with_plain_arguments(getattr(oracle, name)))


def refuse_unknown_nodes(problem: Problem) -> None:
    """Prevent nodes from being recalled by reference where their ids refer to different nodes.

    Views declare whether they keep the ids of earlier views, and :meth:`Problem.recall` refuses those that do not. Batches declare nothing,
    so the wrong nodes could be read from a batch without an error. A batch of sampled neighbours renumbers its nodes, so nothing can be
    recalled into it, and references to its nodes are not valid elsewhere.
    """
    held: Any = problem
    arrive, recall, sample, join = problem.arrive, problem.recall, problem.sample, problem.join
    keeps, whole = True, tuple[Any, ...]()

    def keep_graphs(view: TaskView) -> None:
        nonlocal keeps, whole
        keeps, whole = view.keeps_nodes, (view.train.graph, view.validation.graph)
        arrive(view)

    def renumbered(batch: Batch) -> bool:
        return bool(problem.fan_out) and not any(batch.graph is graph for graph in whole)

    def sample_marked(batch: Batch, *arguments: Any, **named: Any) -> MemoryItems:
        items = sample(batch, *arguments, **named)
        return _Renumbered.of(items) if items.x is None and renumbered(batch) else items

    def join_marked(parts: Sequence[MemoryItems]) -> MemoryItems:
        joined = join(parts)
        return _Renumbered.of(joined) if any(isinstance(part, _Renumbered) for part in parts) else joined

    def refuse_renumbered(items: MemoryItems, view: TaskView | Batch | None = None) -> Batch:
        if items.x is None and isinstance(items, _Renumbered):
            raise NotApplicable(
                "memory by reference refers to nodes in a batch of sampled neighbours, and their ids are not valid in any other graph: "
                'sample from view.train, keep items with their features instead (kind "item"), or set training.fan_out = ()'
            )
        if items.x is None and isinstance(view, Batch) and renumbered(view):
            raise NotApplicable(
                "memory by reference reads old nodes in a batch of sampled neighbours, which has its own numbering: keep items with their "
                'features instead (kind "item", or method.neighbourhood=false), or set training.fan_out = ()'
            )
        if (
            items.x is None
            and isinstance(view, Batch)
            and not keeps
            and (view.tasks is None or not bool(torch.isin(items.tasks, view.tasks).all()))
        ):
            raise NotApplicable(
                "memory by reference reads old nodes in another batch, whose graph does not contain them under the edge policy `none`: "
                'keep items with their features instead (kind "item", or method.neighbourhood=false)'
            )
        return recall(items, view)

    held.arrive, held.recall, held.sample, held.join = keep_graphs, refuse_renumbered, sample_marked, join_marked


class _Renumbered(MemoryItems):
    """Items stored by reference whose ids are those of a batch of sampled neighbours."""

    @classmethod
    def of(cls, items: MemoryItems) -> _Renumbered:
        return cls(ids=items.ids, y=items.y, tasks=items.tasks, x=items.x, extra=items.extra)

    def take(self, chosen: Tensor) -> MemoryItems:
        """Return the items at positions ``chosen`` (int64 [m])."""
        return self.of(super().take(chosen))


def _with_plain_answers(predicted: Callable[[Batch], Tensor]) -> Callable[[Batch], Tensor]:
    return lambda query: plain_answer(predicted(query))


def _with_plain_batch(measured: Callable[[Sequence[str], Batch, Tensor], float]) -> Callable[[Sequence[str], Batch, Tensor], float]:
    """Wrap a measure of a batch that the method has seen and whose tensors it may have replaced."""

    def measure(tokens: Sequence[str], batch: Batch, logits: Tensor) -> float:
        held = {f.name: value for f in dataclasses.fields(batch) if isinstance(value := getattr(batch, f.name), Tensor)}
        plain: dict[str, Any] = {name: plain_answer(value) for name, value in held.items()}
        return measured(tokens, dataclasses.replace(batch, **plain), plain_answer(logits))

    return measure


def _with_plain_arguments(scored: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of the oracle so that it receives plain tensors and no code of a subclass runs meanwhile."""

    def score(*arguments: Any, **named: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return scored(*map(_plain, arguments), **{name: _plain(value) for name, value in named.items()})

    return score


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return plain_answer(value)
    return {name: _plain(part) for name, part in value.items()} if isinstance(value, Mapping) else value


# --- size ----------------------------------------------------------------------------------------------------------------------

_WORD = 8


def state_bytes(method: Method) -> int:
    """Return the size in bytes of the method's state without its model and its metered memory, as counted by :func:`size_of`."""
    state = method_state.collect(method)
    return size_of(state) - size_of(state["model"]) - size_of(state["memory"]["shelves"])


def leaves_of(value: Any) -> Iterator[Any]:
    """Yield all leaves of nested lists and dicts, including keys. A sparse tensor contributes its three parts."""
    if isinstance(value, Tensor) and value.layout == torch.sparse_csr:
        yield from (value.crow_indices(), value.col_indices(), value.values())
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves_of(key)
            yield from leaves_of(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from leaves_of(part)
    else:
        yield value


def storages_of(value: Any) -> list[torch.UntypedStorage]:
    """Return the complete storage of every tensor, including parts that a view does not cover."""
    return [leaf.untyped_storage() for leaf in leaves_of(value) if isinstance(leaf, Tensor)]


def _plain_bytes(leaf: Any) -> int:
    """Return the bytes that a checkpoint needs for one value, without the storage of tensors.

    Counts 8 bytes for a number (more for a long integer), the UTF-8 of a string, 8 for each dimension and stride of a tensor, and the
    pickle of any other value.
    """
    if isinstance(leaf, Tensor):
        return _WORD * (1 + 2 * leaf.dim()) if leaf.layout == torch.strided else _WORD * (1 + leaf.dim())
    if leaf is None or isinstance(leaf, (bool, float)):
        return _WORD
    if isinstance(leaf, int):
        return max(_WORD, (leaf.bit_length() + 7) // 8)
    return len(leaf.encode("utf-8", "surrogatepass")) if isinstance(leaf, str) else len(pickle.dumps(leaf))


def _containers(value: Any) -> int:
    """Count the lists and dicts in ``value``, including nested ones, since their structure is saved too."""
    parts = list(value.values()) if isinstance(value, Mapping) else value
    return 1 + sum(map(_containers, parts)) if isinstance(parts, (list, tuple)) else 0


def size_of(value: Any) -> int:
    """Return the size in bytes that a piece of state (nested lists and dicts of tensors, numbers and text) takes in a checkpoint.

    A tensor counts with its shape and its whole storage, which a checkpoint saves; shared storages count once.
    """
    storages = {storage.data_ptr(): storage.nbytes() for storage in storages_of(value)}
    return sum(storages.values()) + sum(map(_plain_bytes, leaves_of(value))) + _WORD * _containers(value)
