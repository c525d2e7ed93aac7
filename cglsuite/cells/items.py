"""A finished cell's predictions item by item, with properties of the graph around each item (AGALE's analysis of single nodes)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch import Tensor

from cglsuite.base.errors import NotApplicable
from cglsuite.cells.run import build_stream, make_runner, numerics, store_checkpoints
from cglsuite.cells.spec import CellSpec
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.homophily import node_homophily
from cglsuite.graphs.splits.multilabel import label_matrix
from cglsuite.graphs.splits.partition import symmetrised
from cglsuite.streams import TaskFreeStream

if TYPE_CHECKING:
    from cglsuite.host import Catalogue
    from cglsuite.streams import QueryGroup, TaskStream
    from cglsuite.streams.stream import AskedItems

__all__ = ["item_results", "queries_of"]

_ROUNDING = 1e-9


def item_results(cell: CellSpec, catalogue: Catalogue, store: Store) -> pd.DataFrame:
    """The test items of all tasks after the last one, one row each; the cell is trained if no final checkpoint is stored.

    Returns:
        Columns, by task and node: ``task`` (int64, from 1); ``node`` (int64, id in the dataset); ``labels`` (int64, number of competing
        labels); ``degree`` (int64, neighbours) and ``homophily`` (float64, mean Jaccard similarity of its neighbours' competing labels
        with its own; NaN without neighbours) in the graph of the query; ``score`` (float64: 1 or 0 for a single label; for
        several the F1 score of the set of outputs above zero); ``better`` and ``worse`` (bool), whether the score is above or below the
        mean of the item's task. Competing labels are the outputs of the item's task in task-IL, else all. A neighbour counts once,
        regardless of the edge's direction, and no node is its own neighbour.

    Raises:
        CglsuiteError: any error of building the stream or of training.
    """
    stream = build_stream(cell, catalogue)
    if isinstance(stream, TaskFreeStream) or cell.scenario.level != "NC":
        raise NotApplicable(
            f"{cell.preset}: single items are analysed only in node-level streams of tasks; expected a node-level scenario with tasks"
        )
    with numerics(cell):
        runner: Any = make_runner(cell, catalogue, stream)
        runner.run(store_checkpoints(cell, catalogue, store))
        rows = [_rows(stream, group, given) for group, given in runner.answers()]
    frame = pd.concat(rows, ignore_index=True).sort_values(["task", "node"], ignore_index=True)
    above = frame["score"] - frame.groupby("task")["score"].transform("mean")
    # If all items have the same score, rounding must not move them off their mean.
    return frame.assign(better=above > _ROUNDING, worse=above < -_ROUNDING)


def _rows(stream: TaskStream, group: QueryGroup, given: Tensor) -> pd.DataFrame:
    asked, allowed = stream.asked(group.token), group.query.allowed.cpu()
    queries = queries_of(asked, group)
    answers, place = given.cpu()[queries], group.query.ids.cpu()[queries]
    tasks = asked.tasks.cpu()
    allowed = allowed if allowed.dim() == 1 else allowed[queries]
    edges = symmetrised(group.query.graph.edge_index.cpu(), len(asked.nodes))
    several = asked.y.dim() == 2
    own = label_matrix(asked.y, stream.n_outputs) & allowed
    score = _f1((answers > 0) & allowed, own) if several else (answers == asked.y).double()
    frame = pd.DataFrame(
        {
            "task": tasks.numpy() + 1,
            "node": asked.ids.numpy(),
            "labels": own.sum(dim=1).numpy(),
            "degree": torch.bincount(edges[1], minlength=len(asked.nodes))[place].numpy(),
            "homophily": _homophily(asked.y_of_nodes, edges, allowed, tasks, place).numpy(),
            "score": score.numpy(),
        }
    )
    return frame[asked.test.cpu().numpy()]


def queries_of(asked: AskedItems, group: QueryGroup) -> Tensor:
    """The query in ``group`` (int64 [n]) that asks each item: its own place, or that of the node where a node of several tasks is asked
    once."""
    if len(asked.ids) == len(group.query):
        return torch.arange(len(asked.ids))
    numbers = asked.nodes[group.query.ids.cpu()]
    place = torch.full((int(numbers.max()) + 1,), -1)
    place[numbers] = torch.arange(len(numbers))
    return place[asked.ids]


def _homophily(y: Tensor, edges: Tensor, allowed: Tensor, tasks: Tensor, place: Tensor) -> Tensor:
    """The homophily of the items at ``place`` over their competing labels: float64 [n].

    Args:
        allowed: bool [C], or bool [n, C] with a row per task. tasks: int64 [n].
    """
    if allowed.dim() == 1:
        return node_homophily(y, edges, allowed)[place]
    result = torch.empty(len(place), dtype=torch.float64)
    for k in tasks.unique():
        mine = tasks == k
        result[mine] = node_homophily(y, edges, allowed[mine][0])[place[mine]]
    return result


def _f1(given: Tensor, true: Tensor) -> Tensor:
    """The F1 score of each predicted set of labels (bool [n, C]) against the true one, 1 where both are empty: float64 [n]."""
    both, sizes = (given & true).sum(dim=1).double(), (given.sum(dim=1) + true.sum(dim=1)).double()
    return torch.where(sizes > 0, 2 * both / sizes.clamp(min=1), 1.0)
