"""Streams that query each multi-label node only once, in a single graph of all tasks seen so far.

A node with labels from several tasks is a test item of each of them. If it were queried per task, it would appear in several query groups,
and each would reveal the task of one of its labels. Here, each node gets a single prediction, which is scored in every task that contains
the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor

from cglsuite.base.errors import LeakError, SpecError
from cglsuite.graphs import NodeData, uploaded
from cglsuite.graphs.splits import partition
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.assembly import AskedGroup, check_labels, token_of
from cglsuite.streams.build import _first_met, _Nodes
from cglsuite.streams.layout import layout_of
from cglsuite.streams.oracle import Oracle, Score
from cglsuite.streams.stream import AskedItems, TaskStream

__all__ = ["build_asked_once"]


def build_asked_once(spec: ScenarioSpec, data: NodeData, seeds: Seeds, device: str = "cpu") -> TaskStream:
    """Build a task stream that queries each node only once and keeps edges between tasks.

    It is otherwise like :func:`cglsuite.streams.build.build_task_stream`. It depends only on (data, spec, seeds.order, seeds.split).

    Raises:
        SpecError: if the switches are not ``query_grouping = pooled`` and ``query_edges = seen``, or as for other streams.
        DataError: as for other streams.
    """
    if (spec.query_grouping, spec.query_edges) != ("pooled", "seen"):
        given = f"query_grouping = {spec.query_grouping}, query_edges = {spec.query_edges}"
        raise SpecError(
            f"{spec.name}: {given}: this preset queries each node once; expected query_grouping = 'pooled' and query_edges = 'seen'"
        )
    check_labels(spec, data)
    data = partition.replicated(data, spec.replicas)
    return _AskedOnce(spec, data, layout_of(spec, data, seeds), seeds, device)


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The scored items of a query group: ids, task positions, test flags, and the row of the prediction for each. All have shape [m]."""

    ids: Tensor
    tasks: Tensor
    test: Tensor
    query: Tensor


class _AskedOnce(_Nodes):
    """A stream that queries the distinct nodes of each group. The oracle scores one row per node and task."""

    oracle: _OncePerItem

    def make_oracle(self) -> Oracle:
        return _OncePerItem.of(self.spec, self.data.n_classes)

    def nodes_asked(self, stage: int) -> Tensor:
        return _first_met(super().nodes_asked(stage))

    def ask(self, tasks: tuple[int, ...], learnt: int, stage: int) -> str:
        token = token_of(tasks, learnt, stage)
        if token not in self._made:
            parts = [(k, part) for part in ("test", "validation") for k in tasks if part == "test" or k < learnt]
            ids, task_of, test = self._shuffled(parts)
            asked = _first_met(ids)
            rows = _Rows(ids=ids, tasks=task_of, test=test, query=self.positions(asked)[ids])
            sheet = [uploaded(part, self.device) for part in (self.data.y[ids], task_of, test)]
            self.oracle.deposit(token, *sheet)
            self.oracle.rows[token] = rows
            self._made[token] = AskedGroup(ids=asked, tasks=task_of, test=test, stage=stage)
        return token

    def asked(self, token: str) -> AskedItems:
        """Return the group's items, with one row per node and task, since a node may belong to several tasks."""
        rows, nodes, y = self.oracle.rows[token], self.nodes_asked(self._made[token].stage), self.data.y
        return AskedItems(ids=rows.ids, tasks=rows.tasks, test=rows.test, nodes=nodes, y=y[rows.ids], y_of_nodes=y[nodes])


class _OncePerItem(Oracle):
    """An oracle that scores each prediction in every task that contains the queried node."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.rows: dict[str, _Rows] = {}

    @classmethod
    def of(cls, spec: ScenarioSpec, n_outputs: int, hits_k: int = 50) -> _OncePerItem:
        return cast(_OncePerItem, super().of(spec, n_outputs, hits_k))

    def grade(
        self, answers: Mapping[str, Tensor], allowed: Mapping[str, Tensor] | None = None
    ) -> tuple[dict[int, Score], dict[int, Score]]:
        return super().grade({token: self._by_row(token, given) for token, given in answers.items()}, allowed)

    def _by_row(self, token: str, given: Tensor) -> Tensor:
        """Repeat a group's predictions so that there is one for each scored item."""
        if token not in self.rows:
            return given
        query = self.rows[token].query
        asked = int(query.max()) + 1
        if len(given) != asked:
            raise LeakError(f"got predictions of shape {list(given.shape)} for {asked} queries: predict() must return one per query")
        return given[query.to(given.device)]
