"""The judge's side of one run, which serves views and queries, receives predictions and states, and scores them.

It serves the data that the method may currently see, once and in order. A process that requests more data, or the same data twice, has
bypassed the suite. Scores depend only on the received predictions.
"""

from __future__ import annotations

import hashlib
import io
import math
import pickle
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from cglsuite.base.errors import NotApplicable, PluginError
from cglsuite.cells.border import leaves_of, size_of, storages_of
from cglsuite.cells.spec import CellSpec
from cglsuite.graphs import GraphSet, MessageGraph
from cglsuite.graphs.pack import Pack
from cglsuite.host import Catalogue
from cglsuite.learning.equipment import adapter
from cglsuite.problems import MemoryItems, Problem
from cglsuite.streams import Batch, QueryGroup, TaskFreeStream, TaskStream, TaskView
from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.streams import decoy_answers, decoy_data

# Check that predictions are independent: an item's prediction must not depend on the other items of its query.

TOLERANCE = 1e-5
"""Tolerance between two predictions for the same item, relative to the larger of 1 and their magnitude."""
_FIX = "predict every item independently: no statistics over the query, no state between queries, draws that depend on the item only"


@dataclass(frozen=True, kw_only=True)
class _Probe:
    """A query, a description of it, and the positions of its first rows in the whole group."""

    what: str
    query: Batch
    rows: Tensor
    same_graph: bool


@dataclass(kw_only=True)
class Probes:
    """The probe queries of a run and their outcomes.

    ``apart`` describes rows that differ by more than :data:`TOLERANCE`, and ``not_bitwise`` describes rows in the same graph that differ at
    all.
    """

    apart: list[str] = field(default_factory=list)
    not_bitwise: list[str] = field(default_factory=list)
    compared: int = 0
    group: int = 0
    _open: list[_Probe] = field(default_factory=list)
    _answers: Tensor | None = None
    _when: str = ""

    def draw(
        self, groups: list[QueryGroup], answers: Mapping[str, Tensor], view: TaskView | Batch | None, generator: torch.Generator, when: str
    ) -> list[Batch]:
        """Draw additional queries for a group: the whole group again, a single item, a part, and the same part among unrelated items."""
        self.group = int(torch.randint(len(groups), (1,), generator=generator))
        group = groups[self.group]
        whole, n = group.query, len(group.query)
        order = torch.randperm(n, generator=generator)
        part = order[: max(1, n // 2)]
        self._open = [_Probe(what="again", query=whole, rows=torch.arange(n), same_graph=True)]
        if isinstance(whole.graph, GraphSet):
            self._open.append(_Probe(what="alone", query=_graphs_at(whole, order[:1]), rows=order[:1], same_graph=False))
            train = view.train.graph if isinstance(view, TaskView) else view.graph if isinstance(view, Batch) else None
            others = train.take(torch.arange(min(5, len(train)))) if isinstance(train, GraphSet) else None
            self._open.append(_Probe(what="with unrelated items", query=_graphs_at(whole, part, others), rows=part, same_graph=False))
        else:
            self._open.append(_Probe(what="alone", query=_among(whole, order[:1]), rows=order[:1], same_graph=True))
            extra = _unrelated_ids(whole, generator)
            self._open.append(_Probe(what="with unrelated items", query=_among(whole, part, extra), rows=part, same_graph=True))
        self._open.append(_Probe(what="without the others", query=_among(whole, part), rows=part, same_graph=True))
        self._answers, self._when = answers[group.token], when
        return [probe.query for probe in self._open]

    def take(self, outputs: list[Tensor], scorer: Problem, name: str) -> None:
        """Compare the predictions for a probe query with the original ones.

        Raises:
            CheckFailed: the shape of the outputs does not match the queries.
        """
        self.compared += 1
        expected = [[len(probe.query), scorer.n_outputs] for probe in self._open]
        if [list(o.shape) for o in outputs] != expected:
            raise CheckFailed(f"{name} returns outputs of the wrong shape for a query with fewer items; expected {expected}", _FIX)
        whole, first = outputs[0], self._open[0]
        if self._answers is None or not torch.equal(scorer.decode(whole, first.query.allowed), self._answers):
            self.apart.append(f"{self._when}: repeating the same query gives different predictions")
        for probe, output in zip(self._open[1:], outputs[1:], strict=True):
            mine, theirs = whole[probe.rows], output[: len(probe.rows)]
            differences = torch.where(mine == theirs, 0.0, (mine - theirs).abs())  # Equal infinities do not differ.
            if not bool((differences <= TOLERANCE * torch.where(mine.isinf(), 1.0, mine.abs()).clamp(min=1.0)).all()):
                differ = float(differences.max())
                self.apart.append(
                    f"{self._when}: predictions for items queried {probe.what} differ from those in their group by up to {differ:.2g}"
                )
            elif probe.same_graph and not torch.equal(mine, theirs):
                self.not_bitwise.append(
                    f"{self._when}: predictions for items queried {probe.what} are not bit-identical to those in their group"
                )

    def check(self, plain: bool) -> None:
        """Check that all predictions agree.

        Args:
            plain: whether all predictions come from the adapter, for the whole graph at once. They must then be bit-identical.

        Raises:
            CheckFailed: predictions disagree. The message describes the first disagreement.
        """
        if wrong := [*self.apart, *(self.not_bitwise if plain else [])]:
            raise CheckFailed(wrong[0], _FIX)


def _among(query: Batch, places: Tensor, extra: Tensor | None = None) -> Batch:
    """Return the items at positions ``places``, followed by the items ``extra``, under the same conditions."""
    positions = places if extra is None else torch.cat([places, places[torch.arange(len(extra)) % len(places)]])
    ids = query.ids[places] if extra is None else torch.cat([query.ids[places], extra])
    allowed = query.allowed if query.allowed.dim() == 1 else query.allowed[positions]
    return replace(query, ids=ids, allowed=allowed, tasks=None if query.tasks is None else query.tasks[positions], cache={})


def _graphs_at(query: Batch, places: Tensor, appended: GraphSet | None = None) -> Batch:
    """Return the graphs at positions ``places`` as a new set, followed by ``appended``."""
    graphs: Any = query.graph.take(query.ids[places])
    extra = torch.arange(len(places), len(places) + (0 if appended is None else len(appended)))
    part = _among(replace(query, graph=None), places, extra)
    return replace(part, graph=graphs if appended is None else graphs.merged([appended]), ids=torch.arange(len(places) + len(extra)))


def _unrelated_ids(query: Batch, generator: torch.Generator) -> Tensor:
    """Return ids of nodes or pairs in the query's graph that are not in the query. If there are none, return other items of the query."""
    n = int(query.graph.n_nodes)
    if query.ids.dim() == 2:
        return torch.randint(n, (5, 2), generator=generator)
    others = torch.ones(n, dtype=torch.bool).index_fill(0, query.ids, False).nonzero().flatten()
    others = others if others.numel() else torch.arange(n)
    return others[torch.randperm(len(others), generator=generator)[:5]]


_ROWS_KEPT = 64
_AHEAD = "use only the arguments of the hooks: views, batches and queries come from the runner when they are due"


class Refused(PluginError):
    """The method rejects its setting."""


@dataclass(kw_only=True)
class State:
    """The received state that a method carries from one task (or evaluation) to the next.

    Args:
        prefix: the runner's name for the state. payload: the whole state.
        digest: the digest of the model, attributes and memory. model, beside, memory: bytes of the model, of other state and of metered
            items. charged: number of items that count against the budget. trained: number of training items seen so far. copied: how many
            of these are stored outside the metered memory with all their features. oversized: values in memory items beyond their features.
            stuffed: number of training items in the extras of memory items, beyond the number of memory items.
        items: items in memory. extras: bytes of their extras. row: the largest for one item. loose: nodes in budget-free subgraphs
            that no edges connect to their item.
    """

    prefix: str
    payload: dict[str, Any]
    digest: str
    model: int
    beside: int
    memory: int
    charged: int
    trained: int
    copied: int
    oversized: int
    stuffed: int
    items: int
    extras: int
    row: int
    loose: int

    @property
    def carried(self) -> int:
        """Size in bytes, excluding metered items."""
        return self.model + self.beside


@dataclass(kw_only=True)
class Outcome:
    """The results of one run and the observations of its process (``notes``, which are empty if the run was interrupted)."""

    matrix: dict[int, list[float]] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    losses: list[list[float]] = field(default_factory=list)
    probes: Probes = field(default_factory=Probes)
    notes: dict[str, Any] = field(default_factory=dict)


class JudgeSession:
    """Serves one run of a cell.

    Args:
        stream: a stream created for this run.
        seed: seed of the decoys and probe queries, hidden from the method.
        resume: the state to resume from, and the number of tasks (or evaluations) it covers.
        until: the number of further states after which to stop.
    """

    def __init__(
        self,
        cell: CellSpec,
        catalogue: Catalogue,
        stream: TaskStream | TaskFreeStream,
        *,
        seed: int,
        identity: str = "check",
        data: Any = None,
        resume: tuple[int, State] | None = None,
        until: int | None = None,
        probed: bool = True,
    ) -> None:
        self.cell, self.catalogue, self.stream, self.identity, self.data = cell, catalogue, stream, identity, data
        self.generator, self.probing = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed + 1)
        self.resume, self.until, self.probed = resume, until, probed
        self.outcome = Outcome()
        self.scorer = adapter(stream, cell.scenario.training, "cpu")
        self.method = catalogue.method(cell.method)
        self.free = isinstance(stream, TaskFreeStream)
        self.resumed = 0 if resume is None else resume[0]
        self.seen = (stream.evaluations[self.resumed] if isinstance(stream, TaskFreeStream) else self.resumed) - 1
        self.began, self.learnt = self.seen, -1
        self.groups: list[QueryGroup] = []
        self.view: TaskView | Batch | None = None
        self.trained, self.rows = 0, list[Tensor]()

    @property
    def name(self) -> str:
        """The method's name and its provider."""
        return f"method {self.cell.method!r} of {self.catalogue.get('method', self.cell.method).provider}"

    def request(self) -> dict[str, Any]:
        """Return the first message to the method's process. It contains decoys but no information about actual items."""
        backbone = self.catalogue.backbone(self.cell.backbone)
        request = {
            "cell": self.cell,
            "scenario": self.stream.spec,
            "method": self.method.factory,
            "backbone": backbone.factory,
            "past_views": "past-views" in self.method.needs,
            "identity": self.identity,
            "n_outputs": self.stream.n_outputs,
            "n_features": self.stream.n_features,
            "contents": [facts.content for facts in self.stream.tasks],
            "decoy": None if self.data is None else decoy_data(self.data, self.generator),
        }
        return request | ({"evaluations": list(self.stream.evaluations)} if isinstance(self.stream, TaskFreeStream) else {})

    def serve(self, near: Channel, ready: Callable[[], bool]) -> Outcome:
        """Run the session with the process at the other end of the channel.

        Args:
            ready: a function that waits for a message and returns whether one arrived within the time limit.

        Raises:
            CheckFailed: the method fails, hangs or requests forbidden data. Refused, NotApplicable: the method rejects the case.
            EOFError: the method's process has ended.
        """
        near.send(self.request())
        while True:
            if not ready():
                raise CheckFailed(f"{self.name} exceeds the time limit", "a run on a tiny stream should take only seconds")
            request = received_plain(near.connection)
            what = request.get("what")
            if what in ("failed", "done"):
                self.outcome.notes = request
                if what == "failed":
                    self._failed(request)
                self._complete()
                return self.outcome
            if what not in _SERVED:
                raise CheckFailed(f"{self.name} sends an unexpected request {what!r}", _AHEAD)
            near.send(getattr(self, f"_{what}")(request))
            if what == "save" and self.until is not None and len(self.outcome.states) >= self.until:
                return self.outcome

    def _failed(self, failure: dict[str, Any]) -> None:
        reason = str(failure["reason"])
        if failure["not_applicable"]:
            raise NotApplicable(reason)
        if failure["refused"]:
            raise Refused(reason)
        if failure["ended"]:
            raise CheckFailed(f"{self.name} ends its process: {reason}", "raise an error that describes the problem")
        raise CheckFailed(f"{self.name} fails: {reason}", "fix the error; note that only views and queries are available")

    def _complete(self) -> None:
        """Check that the run received all tasks and made predictions for all queries.

        Raises:
            CheckFailed: it stopped early.
        """
        stream: Any = self.stream
        last = stream.evaluations[-1] if self.free else len(stream)
        offline = self.free and "past-views" in self.method.needs
        if self.learnt != last and (offline or self.seen + 1 != last or self.free):
            raise CheckFailed(f"{self.name} reports that it is done after {self.seen + 1} of {last}", _AHEAD)

    def _forbidden_request(self, request: str) -> CheckFailed:
        return CheckFailed(f"{self.name} asks for {request}", _AHEAD)

    # --- requests -----------------------------------------------------------------------------------------------------

    def _view(self, request: dict[str, Any]) -> TaskView:
        position, stage = int(request["position"]), int(request["stage"])
        stream: Any = self.stream
        if position == stage and position < self.resumed and self.seen == self.began:
            return _view_without_items(stream.view(position))
        if position < stage == self.seen and "past-views" in self.method.needs:
            past: TaskView = stream.view(position, stage)
            return past
        if not position == stage == self.seen + 1:
            raise self._forbidden_request(f"the view of task {position + 1} out of order")
        self.seen = stage
        view: TaskView = stream.view(position, stage)
        self._register_items(view.train)
        self.scorer.arrive(view)
        self.view = view
        return view

    def _batch(self, request: dict[str, Any]) -> Batch:
        step = int(request["step"])
        stream: Any = self.stream
        if step == 0 and self.resumed and self.seen == self.began:
            first: Batch = stream.make_batch(0)
            return replace(first, graph=_empty_graphs_like(first.graph), ids=first.ids[:0], y=None, tasks=None, cache={})
        if step != self.seen + 1:
            raise self._forbidden_request(f"the batch of step {step + 1} out of order")
        self.seen = step
        batch: Batch = stream.make_batch(step)
        self._register_items(batch)
        self.scorer.like = batch.graph if isinstance(batch.graph, GraphSet) else None
        self.view = batch
        return batch

    def _everything(self, request: dict[str, Any]) -> Batch:
        stream: Any = self.stream
        if "past-views" not in self.method.needs:
            raise self._forbidden_request("all training items at once")
        batch: Batch = stream.everything()
        self._register_items(batch)
        return batch

    def _register_items(self, batch: Batch) -> None:
        """Register training items."""
        self.trained += len(batch)
        features = getattr(batch.graph, "features", None)
        if isinstance(features, Tensor) and len(self.rows) < _ROWS_KEPT:
            rows = features if isinstance(batch.graph, GraphSet) else features[batch.ids.flatten().unique()]
            self.rows += [row for row in rows.cpu() if row.unique().numel() >= min(4, len(row))][: _ROWS_KEPT - len(self.rows)]

    def _queries(self, request: dict[str, Any]) -> dict[str, Any]:
        learnt = int(request["learnt"])
        stream: Any = self.stream
        again = learnt <= self.began + 1 and self.seen == self.began
        offline = self.free and "past-views" in self.method.needs
        if not (learnt == self.seen + 1 or again or offline):
            raise self._forbidden_request(
                f"queries after {learnt} {'steps' if self.free else 'tasks'} although it has seen {self.seen + 1}"
            )
        if not self.free:
            stream.forget()
        self.learnt, self.groups = learnt, stream.make_queries(learnt)
        return {"groups": self.groups, "decoys": decoy_answers(stream, self.groups, self.generator)}

    def _grade(self, request: dict[str, Any]) -> dict[str, Any]:
        row = self.stream.evaluations.index(self.learnt) if isinstance(self.stream, TaskFreeStream) else self.learnt
        if row in self.outcome.matrix:
            raise self._forbidden_request(f"the scores after {self.learnt} {'steps' if self.free else 'tasks'} a second time")
        answers = {group.token: request["answers"][group.token] for group in self.groups}
        tested, validated = self.stream.oracle.grade(answers, {g.token: g.query.allowed for g in self.groups})
        self.outcome.matrix[row] = [tested[k].performance if k in tested else math.nan for k in range(len(self.stream))]
        self.outcome.answers[row] = hashlib.sha256(b"".join(a.cpu().numpy().tobytes() for a in answers.values())).hexdigest()
        probes = []
        if self.probed and self.seen > self.began:
            probes = self.outcome.probes.draw(self.groups, answers, self.view, self.probing, f"after {self.learnt}")
        return {"tested": sorted(tested), "validated": sorted(validated), "probes": probes, "group": self.outcome.probes.group}

    def _probed(self, request: dict[str, Any]) -> None:
        self.outcome.probes.take(request["outputs"], self.scorer, self.name)

    def _load(self, request: dict[str, Any]) -> dict[str, Any] | None:
        if self.resume is None or request["prefix"] != self.resume[1].prefix:
            return None
        return self.resume[1].payload

    def _save(self, request: dict[str, Any]) -> None:
        payload = compact_copy(request["payload"])
        state, size = payload["state"], size_of(request["payload"]["state"])
        method = state["method"]
        memory = method["memory"]
        like = self.scorer.like
        charged, _, _ = items_in(memory, like)
        rest = {**state, "method": {**method, "memory": None}}
        model, shelves = size_of(method["model"]), size_of(memory["shelves"])
        stages = payload["stages"]
        last = stages[-1]
        self.outcome.losses.append(list(last["curve"].get("loss", [])))
        self.outcome.states.append(
            State(
                prefix=str(request["prefix"]),
                payload=payload,
                digest=digest_of(method),
                model=model,
                beside=size - model - shelves,
                memory=shelves,
                charged=charged,
                trained=self.trained,
                copied=count_verbatim_rows(rest, torch.stack(self.rows)) if self.rows else 0,
                oversized=self._oversized(memory),
                stuffed=self._stuffed(memory),
                **_sizes_of_extras(memory),
                loose=_loose_nodes(memory) if like is None else 0,
            )
        )

    def _oversized(self, memory: dict[str, Any]) -> int:
        """Return the number of values in memory items beyond their features."""
        beyond = 0
        for shelf in memory["shelves"].values():
            x, n, ends = shelf["x"], len(shelf["ids"]), shelf["ids"].dim()
            if isinstance(x, Tensor) and x.layout == torch.strided:
                beyond += max(0, x.numel() - n * ends * self.stream.n_features)
            elif self.scorer.like is None and isinstance(x, Mapping) and x["x"].layout == torch.strided:  # surroundings
                beyond += max(0, x["x"].numel() - int(x["node_start"][-1]) * self.stream.n_features)
            wide = shelf["y"].numel() + shelf["tasks"].numel() + shelf["ids"].numel()
            beyond += max(0, wide - n * (1 + ends + (shelf["y"].shape[1] if shelf["y"].dim() == 2 else 1)))
            beyond += max(0, shelf["y"].numel() - n * self.stream.n_outputs)
        return beyond

    def _stuffed(self, memory: dict[str, Any]) -> int:
        """Count the training items with features in extras, beyond one per memory item, since they would defeat the budget."""
        shelves = list(memory["shelves"].values())
        extras = [shelf["extra"] for shelf in shelves if "extra" in shelf]
        count = count_verbatim_rows(extras, torch.stack(self.rows)) if extras and self.rows else 0
        return max(0, count - sum(len(shelf["ids"]) for shelf in shelves))

    def _token(self, request: dict[str, Any]) -> str:
        self._monitored("validation-loss", "validation-performance")
        stream: Any = self.stream
        return str(stream.validation_token(int(request["position"]), int(request["stage"])))

    def _loss(self, request: dict[str, Any]) -> float:
        self._monitored("validation-loss")
        tokens, logits = request["tokens"], request["logits"]

        def criterion(y: Tensor) -> Tensor:
            return self.scorer.loss(logits, Batch(graph=None, ids=torch.arange(len(logits)), allowed=request["allowed"], y=y))

        return self.stream.oracle.monitor(tokens, criterion)

    def _cost(self, request: dict[str, Any]) -> float:
        self._monitored("validation-performance")
        decoded = self.scorer.decode(request["logits"], request["allowed"])
        return -self.stream.oracle.performance(request["tokens"], decoded, request["allowed"])

    def _monitored(self, *what: str) -> None:
        if self.cell.scenario.training.monitor not in what:
            raise self._forbidden_request(f"a {what[0].replace('-', ' ')}, although its training has no monitor")


_SERVED = ("view", "batch", "everything", "queries", "grade", "probed", "load", "save", "token", "loss", "cost")


def _empty_graphs_like(graph: Any) -> Any:
    """Return an empty set of graphs of the same kind to replace ``graph``, or ``None`` for a message graph."""
    return graph.take(torch.empty(0, dtype=torch.int64)) if isinstance(graph, GraphSet) else None


def _view_without_items(view: TaskView) -> TaskView:
    """Return a view of a past task with its outputs but without its items."""

    def without(batch: Batch) -> Batch:
        graph, tasks = _empty_graphs_like(batch.graph), None if batch.tasks is None else batch.tasks[:0]
        return replace(batch, graph=graph, ids=batch.ids[:0], y=None if batch.y is None else batch.y[:0], tasks=tasks, cache={})

    return replace(view, train=without(view.train), validation=without(view.validation), past=())


# The size of a method's state in any format: bytes, digests, and verbatim copies of training items.


def compact_copy(value: Any) -> Any:
    """Copy the state, giving each tensor its own storage of exactly the required size."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {k: compact_copy(v) for k, v in value.items()}
    return [compact_copy(v) for v in value] if isinstance(value, (list, tuple)) else value


def digest_of(value: Any) -> str:
    """Return the SHA-256 hash (hex) of all bits of a piece of state."""
    total = hashlib.sha256()
    _absorb(total, value)
    return total.hexdigest()


def _absorb(total: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        if value.layout == torch.sparse_csr:
            _absorb(total, [value.crow_indices(), value.col_indices(), value.values()])
            return
        array = value.detach().cpu().contiguous()
        total.update(f"{array.dtype}{list(array.shape)}".encode())
        total.update(array.view(-1).view(torch.uint8).numpy().data if array.numel() else b"")
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            total.update(f"<{key}>".encode())
            _absorb(total, value[key])
    elif isinstance(value, (list, tuple)):
        total.update(f"[{len(value)}]".encode())
        for part in value:
            _absorb(total, part)
    else:
        total.update(f"{type(value).__name__} {value!r}".encode())


def count_verbatim_rows(value: Any, rows: Tensor) -> int:
    """Count the ``rows`` (float32 [n, F], features of training items) that occur anywhere in a piece of state, bit for bit."""
    blobs = [torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes() for storage in storages_of(value)]
    blobs += [leaf.encode("latin-1", "ignore") for leaf in leaves_of(value) if isinstance(leaf, str)]
    integers = (leaf for leaf in leaves_of(value) if isinstance(leaf, int) and leaf > 2**64)
    blobs += [number.to_bytes((number.bit_length() + 7) // 8, "little") for number in integers]
    wanted = [row.numpy().tobytes() for row in rows.contiguous()]
    return sum(any(row in blob for blob in blobs) for row in wanted)


def items_in(memory: Mapping[str, Any], like: Any) -> tuple[int, int, int]:
    """Recount the contents of a metered memory's state: items charged to the budget, all nodes, and edges.

    Args:
        memory: the state of a :class:`cglsuite.learning.memory.MeteredMemory`. like: a set of graphs, if items are graphs.
    """
    charged = nodes = edges = 0
    for shelf, state in memory["shelves"].items():
        items = MemoryItems.from_state(state, torch.device("cpu"), like)
        size = int(items.sizes.sum())
        charged += len(items) if shelf in memory["free"] else size
        nodes, edges = nodes + size, edges + items.edges
    return charged, nodes, edges


def _sizes_of_extras(memory: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of items in a memory's state, the total size of their extras in bytes, and the largest size for one item."""
    items, extras, most = 0, 0, 0
    for shelf in memory["shelves"].values():
        n, held = len(shelf["ids"]), sum(rows.numel() * rows.element_size() for rows in shelf.get("extra", {}).values())
        items, extras, most = items + n, extras + held, max(most, held // max(1, n))
    return {"items": items, "extras": extras, "row": most}


def _loose_nodes(memory: Mapping[str, Any]) -> int:
    """Count the nodes in a memory's budget-free subgraphs that have no path of stored edges to a centre."""
    loose = 0
    for name in memory["free"]:
        shelf = memory["shelves"][name]
        if not isinstance(shelf["x"], Mapping):
            continue
        pack, ends = Pack.of(shelf["x"]), shelf["ids"].dim()
        n, (source, target) = int(pack.node_start[-1]), pack.edge_index.numpy()
        joined = coo_matrix((np.ones(len(source)), (source, target)), shape=(n, n))
        part_of = connected_components(joined, directed=False)[1]
        centres = (pack.node_start[:-1, None] + torch.arange(ends)).clamp(max=n - 1).flatten().numpy()
        loose += int((~np.isin(part_of, part_of[centres])).sum())
    return loose


# The messages between a cell and a method in a separate process.
# The method receives pickled views and queries, with each graph sent once. It sends tensors and plain values, read without unpickling, so
# it cannot run code here.


class _Packer(pickle.Pickler):
    """A pickler for views that replaces graphs sent before with their numbers."""

    def __init__(self, file: io.BytesIO, sent: weakref.WeakKeyDictionary[Any, int]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.sent = sent

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, MessageGraph | GraphSet):
            return None
        return self.sent.get(obj)


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, held: dict[int, Any]) -> None:
        super().__init__(file)
        self.held = held

    def persistent_load(self, pid: Any) -> Any:
        return self.held[pid]


class Channel:
    """One end of a channel from a cell (:meth:`send`) to a method (:meth:`receive`) that preserves the identity of graphs."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._sent: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._held: dict[int, Any] = {}
        self._next = 0

    @property
    def held(self) -> list[Any]:
        """The graphs that are still held by the other end."""
        return list(self._held.values())

    def send(self, value: Any) -> None:
        """Send views, queries, or plain values."""
        new = [graph for graph in _graphs(value) if graph not in self._sent]
        numbered = {}
        for graph in new:
            if graph not in numbered:
                numbered[graph], self._next = self._next, self._next + 1
        self._write((sorted(self._sent.values()), {number: graph for graph, number in numbered.items()}))
        self._sent.update(numbered)
        self._write(value)

    def receive(self) -> Any:
        """Receive a message, and release graphs that the sender no longer holds."""
        rest, new = self._read()
        self._held = {number: self._held[number] for number in rest} | new
        return self._read()

    def _write(self, value: Any) -> None:
        buffer = io.BytesIO()
        _Packer(buffer, self._sent).dump(value)
        self.connection.send_bytes(buffer.getvalue())

    def _read(self) -> Any:
        return _Unpacker(io.BytesIO(self.connection.recv_bytes()), self._held).load()


def _graphs(value: Any) -> list[Any]:
    """Return the graphs contained in a value to be sent."""
    if isinstance(value, Batch):
        return [value.graph] if isinstance(value.graph, MessageGraph | GraphSet) else []
    if isinstance(value, TaskView):
        return [g for part in (value.train, value.validation, *value.past) for g in _graphs(part)]
    if isinstance(value, QueryGroup):
        return _graphs(value.query)
    if isinstance(value, dict):
        return [g for part in value.values() for g in _graphs(part)]
    return [g for part in value for g in _graphs(part)] if isinstance(value, list | tuple) else []


def send_plain(connection: Connection, value: dict[str, Any]) -> None:
    """Send tensors, numbers, strings, lists and dicts."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    connection.send_bytes(buffer.getvalue())


def received_plain(connection: Connection) -> dict[str, Any]:
    """Receive a message sent by :func:`send_plain`.

    Raises:
        EOFError: the other end is closed. pickle.UnpicklingError: the message has another form.
    """
    value: dict[str, Any] = torch.load(io.BytesIO(connection.recv_bytes()), weights_only=True)
    return value
