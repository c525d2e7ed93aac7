"""Analyses of a cell that go beyond its record: forgetting by cause, information revealed by query groups, and scores of individual items.

The forgetting split separates how much an old task loses because the graph around it has grown from how much it loses because weights
changed.

If edges are ``inter-task`` or ``snapshot``, or queries see the edges between tasks, the graph of an old query grows with every task. A
score can then fall although the model does not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite.base.errors import NotApplicable, SpecError, UnknownNameError
from cglsuite.base.hashing import digest
from cglsuite.base.traces import random_state_restored
from cglsuite.cells.run import build_stream, make_runner, numerics, store_checkpoints
from cglsuite.cells.spec import CellSpec
from cglsuite.cells.storage.store import Store
from cglsuite.graphs import MessageGraph
from cglsuite.graphs.homophily import node_homophily
from cglsuite.graphs.splits.multilabel import label_matrix
from cglsuite.graphs.splits.partition import symmetrised
from cglsuite.learning.reproducibility import state as method_state
from cglsuite.specs.scenario import EDGE_POLICIES
from cglsuite.streams import Batch, TaskFreeStream, TaskStream

if TYPE_CHECKING:
    from cglsuite.host import Catalogue
    from cglsuite.specs import ScenarioSpec
    from cglsuite.streams import QueryGroup
    from cglsuite.streams.stream import AskedItems


@dataclass(frozen=True, kw_only=True, eq=False)
class ForgettingSplit:
    """A cell's forgetting, split into two parts. The unit is that of performance, and positive values mean forgetting.

    Args:
        matrix: float64 [T + 1, T], the cell's performance matrix M; row 0 is the untrained model.
        later: float64 [T, T]; ``later[k, j]`` is the performance on task j with the weights after task k, in the graph of the queries after
            the last task, among the outputs that competed after task k; NaN for j > k.
    """

    matrix: NDArray[np.float64]
    later: NDArray[np.float64]

    @property
    def by_task(self) -> NDArray[np.float64]:
        """``M[j, j] - M[T, j]`` for every task except the last, float64 [T - 1]."""
        learnt = self.matrix[1:]
        forgotten: NDArray[np.float64] = (np.diagonal(learnt) - learnt[-1])[:-1]
        return forgotten

    @property
    def drift_by_task(self) -> NDArray[np.float64]:
        """The loss of performance per task between the old and the new graph, both with the old weights, float64 [T - 1]."""
        drift: NDArray[np.float64] = (np.diagonal(self.matrix[1:]) - np.diagonal(self.later))[:-1]
        return drift

    @property
    def weights_by_task(self) -> NDArray[np.float64]:
        """The loss of performance per task between the old and the new weights, both in the new graph, float64 [T - 1]."""
        return self.by_task - self.drift_by_task

    @property
    def forgetting(self) -> float:
        """``mean_{j<T} (M[j, j] - M[T, j])``, the sum of both parts. This is the metric ``forgetting_from_diagonal``."""
        return float(self.by_task.mean())

    @property
    def drift(self) -> float:
        """The forgetting due to changes in the graph: the mean of :attr:`drift_by_task`."""
        return float(self.drift_by_task.mean())

    @property
    def weights(self) -> float:
        """The forgetting due to changes in the weights and, in class-IL, additional competing outputs: the mean of
        :attr:`weights_by_task`.
        """
        return float(self.weights_by_task.mean())


def why_no_split(spec: ScenarioSpec) -> str:
    """Explain why all forgetting in a scenario is due to the weights. Returns an empty string if the graph of old queries grows."""
    if spec.task_free is not None:
        return "a task-free stream has one graph, and no tasks after which weights could be saved"
    unchanged = EDGE_POLICIES[spec.edge_policy].unchanged if spec.query_edges == "own" else ""
    return f"edge_policy is {spec.edge_policy}: {unchanged}, so all forgetting is due to weights" if unchanged else ""


@random_state_restored()
def split_forgetting(cell: CellSpec, catalogue: Catalogue) -> ForgettingSplit:
    """Train a cell, and also evaluate every task in the graph of the last task.

    The additional queries do not change the state of the method, so the matrix is bit-identical to the record's. Nothing is stored.

    Raises:
        NotApplicable: the graph of old queries does not grow (:func:`why_no_split`), or there is only one task.
        CglsuiteError: any error from building the stream or from training.
    """
    if reason := why_no_split(cell.scenario):
        growing = " or ".join(policy.name for policy in EDGE_POLICIES.values() if not policy.unchanged)
        raise NotApplicable(f"{cell.preset}: {reason}; expected edge_policy = {growing}, or query_edges = seen")
    stream = build_stream(cell, catalogue)
    if isinstance(stream, TaskFreeStream) or len(stream) < 2:
        raise NotApplicable(f"{cell.preset}: {len(stream)} task: expected several tasks, since only tasks before the last can be forgotten")
    later = np.full((len(stream), len(stream)), np.nan)

    def again(learnt: int) -> None:
        if learnt:
            for j, value in _performance_in_last_graph(runner, stream, learnt).items():
                later[learnt - 1, j] = value

    with numerics(cell):
        runner: Any = make_runner(cell, catalogue, stream, on_task=again)
        matrix = np.asarray(runner.run().matrix, dtype=np.float64)
    return ForgettingSplit(matrix=matrix, later=later)


@torch.no_grad()
def _performance_in_last_graph(runner: Any, stream: TaskStream, learnt: int) -> dict[int, float]:
    """Return the method's current performance on the tasks learnt so far, by position, in the graph of the last queries."""
    groups = [_competing_among(group, stream, learnt) for group in stream.make_queries(len(stream)) if min(group.tasks) < learnt]
    with method_state.untouched(runner.method, runner._draws):
        answers = runner._answers(groups, learnt)
    tested, _ = stream.oracle.grade(answers, {group.token: group.query.allowed for group in groups})
    return {j: score.performance for j, score in tested.items() if j < learnt}


def _competing_among(group: QueryGroup, stream: TaskStream, learnt: int) -> QueryGroup:
    """Return a query group in which the outputs of the first ``learnt`` tasks compete; in task-IL, those of each item's task."""
    if group.query.allowed.dim() == 2:
        return group
    competing = stream.task_outputs[:learnt].any(dim=0)
    return dataclasses.replace(group, query=dataclasses.replace(group.query, allowed=competing))


# How much the group in which a query arrives reveals about its task, beyond what the query's neighbourhood reveals.

Floats = NDArray[np.float32]

_DIMENSIONS, _ITEMS = 64, 20


@dataclass(frozen=True, kw_only=True)
class Leak:
    """Balanced accuracies of a linear probe that predicts an item's task, averaged over bootstrapped query groups.

    Args:
        alone: from the item's view. grouped: from the item's view and the mean view of its group.
        leak: ``grouped - alone``. interval: its 2.5% and 97.5% percentiles over bootstrapped query groups.
        chance: one over the number of tasks.
        p: the fraction of permutations of the groups' means with a leak at least as large, including the observed one.
        group_size: number of items per group. by_task: whether all items of a group belong to one task.
    """

    alone: float
    grouped: float
    leak: float
    interval: tuple[float, float]
    chance: float
    p: float
    group_size: int
    by_task: bool


def measure_leak(stream: TaskStream, *, hops: int = 2, repetitions: int = 50, permutations: int = 39, seed: int = 0) -> Leak:
    """Measure how much the query groups of a node stream reveal about the task, after the last task.

    A linear discriminant is trained on training items and tested on test items, in groups of equal size drawn with replacement in the
    way that the scenario groups its queries. An item's view consists of its features, their means over 1 to ``hops`` hops, and its degree.
    A node that belongs to several tasks is an item in each of them, so its view alone does not determine its task.

    Raises:
        SpecError: items are not nodes, the task is known at test time, or there is only one task.
    """
    spec = stream.spec
    if spec.level not in ("NC", "NR") or spec.task_ids_at_test or len(stream) < 2:
        described = f"level = {spec.level}, setting = {spec.setting}, {len(stream)} task{'s' * (len(stream) != 1)}"
        raise SpecError(
            f"{spec.name}: {described}: expected a node-level scenario with several tasks and queries that do not state the task. "
            "Links and graphs of all tasks are queried in one group unless scenario.edge_policy = none"
        )
    last = len(stream)
    trained = [(_neighbourhood_features(stream.view(k, last - 1).train, hops), k) for k in range(last)]
    groups = stream.make_queries(last)
    answered = [(_neighbourhood_features(group.query, hops), stream.asked(group.token), group) for group in groups]
    x_test = np.concatenate([views[queries_of(items, group)[items.test.cpu()].numpy()] for views, items, group in answered])
    test_tasks = torch.cat([items.tasks[items.test] for _, items, _ in answered]).cpu().numpy()
    x_train = np.concatenate([views for views, _ in trained])
    train_tasks = np.concatenate([np.full(len(views), k) for views, k in trained])
    by_task = all(len(group.tasks) == 1 for group in groups)
    size = min(int(np.bincount(tasks, minlength=last).min()) for tasks in (train_tasks, test_tasks))
    rng = np.random.default_rng(int(digest(["leak", seed])[:15], 16))
    mean, scale = x_train.mean(0), x_train.std(0) + 1e-6
    draw_train = _Groups((x_train - mean) / scale, train_tasks, last, size, by_task, repetitions, rng)
    draw_test = _Groups((x_test - mean) / scale, test_tasks, last, size, by_task, repetitions, rng)
    without = _balanced_accuracies(draw_train.items, draw_train.tasks, draw_test.items, draw_test)

    def leaks(train_means: Floats, test_means: Floats) -> NDArray[np.float64]:
        train, test = np.hstack([draw_train.items, train_means]), np.hstack([draw_test.items, test_means])
        return _balanced_accuracies(train, draw_train.tasks, test, draw_test) - without

    measured = leaks(draw_train.means, draw_test.means)
    null = [leaks(draw_train.exchanged(rng), draw_test.exchanged(rng)).mean() for _ in range(permutations)]
    low, high = np.percentile(measured, [2.5, 97.5])
    return Leak(
        alone=float(without.mean()),
        grouped=float((without + measured).mean()),
        leak=float(measured.mean()),
        interval=(float(low), float(high)),
        chance=1 / last,
        p=(1 + sum(value >= measured.mean() for value in null)) / (1 + permutations),
        group_size=size,
        by_task=by_task,
    )


class _Groups:
    """Query groups drawn with replacement, one per task and repetition, with some items from each.

    Attributes:
        items: [n, d], each item's view. means: [n, d], the mean view of each item's group. tasks: int64 [n], each item's task.
        repetition: int64 [n].
    """

    def __init__(self, x: Floats, tasks: NDArray[np.int64], n_tasks: int, size: int, by_task: bool, times: int, rng: np.random.Generator):
        self.members = [np.flatnonzero(tasks == k) for k in range(n_tasks)]
        drawn = list(self._draw_groups(len(self.members) * times, size, by_task, rng))
        sampled = [ids[:_ITEMS] for ids in drawn]
        self._sizes = [len(ids) for ids in sampled]
        self._group_means = np.stack([x[ids].mean(0) for ids in drawn])
        self.items, self.tasks = x[np.concatenate(sampled)], tasks[np.concatenate(sampled)]
        self.means = self._group_means.repeat(self._sizes, axis=0)
        self.repetition = (np.arange(len(drawn)) // n_tasks).repeat(self._sizes)

    def _draw_groups(self, n_groups: int, size: int, by_task: bool, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        for number in range(n_groups):
            if by_task:
                yield rng.choice(self.members[number % len(self.members)], size)
            else:  # every task is equally likely, so that balanced accuracy is defined in every repetition
                yield np.array([rng.choice(self.members[k]) for k in rng.integers(len(self.members), size=size)])

    def exchanged(self, rng: np.random.Generator) -> Floats:
        """Randomly permute the groups' means, and return :attr:`means`."""
        means: Floats = rng.permutation(self._group_means).repeat(self._sizes, axis=0)
        return means


def _balanced_accuracies(x: Floats, tasks: NDArray[np.int64], x_test: Floats, test: _Groups) -> NDArray[np.float64]:
    """Return the probe's balanced accuracy in each repetition of ``test``: float64 [repetitions]."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    probe = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(len(test.members), 1 / len(test.members)))
    right = probe.fit(x, tasks).predict(x_test) == test.tasks
    cell = test.repetition * len(test.members) + test.tasks
    shape = (int(test.repetition.max()) + 1, len(test.members))
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    hits = np.bincount(cell[right], minlength=shape[0] * shape[1]).reshape(shape)
    with np.errstate(invalid="ignore"):
        recalls = hits / counts
    scores: NDArray[np.float64] = np.nanmean(recalls, axis=1)
    return scores


def _neighbourhood_features(batch: Batch, hops: int) -> Floats:
    """Describe a batch's nodes by their neighbourhoods: float32 [n, (hops + 1) * d + 1], with features projected to at most 64
    dimensions."""
    graph: MessageGraph = batch.graph
    x: Tensor = graph.dense.float()
    if x.shape[1] > _DIMENSIONS:
        x = x @ torch.randn(x.shape[1], _DIMENSIONS, generator=torch.Generator().manual_seed(0)).to(x.device)
    degree = graph.propagate("sum-self", torch.ones(graph.n_nodes, 1, device=x.device))
    parts = [x]
    for _ in range(hops):
        parts.append(graph.propagate("sum-self", parts[-1]) / degree)
    views: Floats = torch.cat([*parts, degree.log()], dim=1)[batch.ids].cpu().numpy()
    return views


# A finished cell's predictions for single items, with properties of the graph around each item (AGALE's analysis of single nodes).

_ROUNDING = 1e-9


ITEM_SCORES = ("f1", "average-precision")
"""Scores for the labels of a single node: of the predicted set, or of the ranking by outputs, as in AGALE's tables."""


def item_results(cell: CellSpec, catalogue: Catalogue, store: Store, score: str = ITEM_SCORES[0], runner: Any = None) -> pd.DataFrame:
    """Score the test items of all tasks after the last task. The cell is trained if no final checkpoint is stored.

    Args:
        score: for items with several labels, one of :data:`ITEM_SCORES`. runner: the cell's runner from :func:`finished`, if available.

    Returns:
        One row per item, sorted by task and node, with the columns ``task`` (int64, from 1); ``node`` (int64, id in the dataset);
        ``labels`` (int64, number of competing labels); ``degree`` (int64, number of neighbours) and ``homophily`` (float64, mean Jaccard
        similarity of its neighbours' competing labels with its own; NaN without neighbours) in the graph of the query; ``score`` (float64);
        ``better`` and ``worse`` (bool), whether the score is above or below the mean of the item's task. The score is 1 or 0 for a single
        label. For several labels it is the F1 score of the set of outputs above zero, or the average precision of the competing outputs; it
        is NaN for an item without any of these labels, which is neither better nor worse. Competing labels are the outputs of the item's
        task in task-IL, otherwise all outputs. A neighbour counts once, regardless of the edge's direction, and a node is not its own
        neighbour.

    Raises:
        CglsuiteError: any error from building the stream or from training.
    """
    if score not in ITEM_SCORES:
        raise UnknownNameError("score of an item", score, ITEM_SCORES)
    if cell.scenario.level != "NC":
        raise NotApplicable(f"{cell.preset}: individual items can be analysed only in node classification; expected a scenario of level NC")
    runner = runner or finished(cell, catalogue, store)
    with numerics(cell):
        rows = [_rows(runner.stream, group, answers, _SCORES[score]) for group, answers in runner.answers()]
    frame = pd.concat(rows, ignore_index=True).sort_values(["task", "node"], ignore_index=True)
    above = frame["score"] - frame.groupby("task")["score"].transform("mean")
    # If all items have the same score, rounding must not move them off their mean.
    return frame.assign(better=above > _ROUNDING, worse=above < -_ROUNDING)


def finished(cell: CellSpec, catalogue: Catalogue, store: Store) -> Any:
    """Return a cell's runner in its state after the last task, restored from the final checkpoint if one is stored.

    Raises:
        NotApplicable: the stream is task-free. CglsuiteError: any error from building the stream or from training.
    """
    stream = build_stream(cell, catalogue)
    if isinstance(stream, TaskFreeStream):
        raise NotApplicable(f"{cell.preset}: no final state is saved for a task-free stream; expected a scenario with tasks")
    with numerics(cell):
        runner: Any = make_runner(cell, catalogue, stream)
        runner.run(store_checkpoints(cell, catalogue, store))
    return runner


def item_embeddings(
    cell: CellSpec, catalogue: Catalogue, store: Store, at_most: int = 500, runner: Any = None
) -> tuple[pd.DataFrame, NDArray[np.float32]]:
    """Return the embeddings of test items by the model's body after the last task. The cell is trained if no final checkpoint is stored.

    Masks, gates and prompts that a method adds for a task are not applied.

    Args:
        at_most: number of items; if there are more, this many are drawn with a fixed seed. runner: the cell's runner from :func:`finished`.

    Returns:
        Columns ``task`` (int64, from 1), ``item`` (int64, id in the dataset) and ``label`` (int64; -1 for items without a single class);
        and embeddings, float32 [n, d], one row per item.

    Raises:
        NotApplicable: the stream is task-free, or the backbone has no embedding of such items.
        CglsuiteError: any error from building the stream or from training.
    """
    runner, parts = runner or finished(cell, catalogue, store), []
    with numerics(cell):
        for group, _ in runner.answers():  # in evaluation mode
            items, place = runner.stream.asked(group.token), group.query.ids.device
            with torch.no_grad():
                embedded = runner.problem.embed(runner.method.model, group.query)[queries_of(items, group).to(place)]
            single = items.y.dim() == 1 and not items.y.is_floating_point()
            labels = items.y if single else torch.full_like(items.ids, -1)
            rows = torch.stack([items.tasks.cpu() + 1, items.ids, labels], dim=1)
            parts.append((rows[items.test], embedded.cpu()[items.test.cpu()]))
    rows, vectors = (torch.cat(some) for some in zip(*parts, strict=True))
    drawn = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:at_most].sort().values
    return pd.DataFrame(rows[drawn].numpy(), columns=["task", "item", "label"]), vectors[drawn].float().numpy()


def _rows(stream: TaskStream, group: QueryGroup, predicted: Tensor, scored: Callable[..., Tensor]) -> pd.DataFrame:
    items, allowed = stream.asked(group.token), group.query.allowed.cpu()
    queries = queries_of(items, group)
    answers, place = predicted.cpu()[queries], group.query.ids.cpu()[queries]
    tasks = items.tasks.cpu()
    allowed = allowed if allowed.dim() == 1 else allowed[queries]
    edges = symmetrised(group.query.graph.edge_index.cpu(), len(items.nodes))
    several = items.y.dim() == 2
    own_labels = label_matrix(items.y, stream.n_outputs) & allowed
    score = scored(answers, own_labels, allowed) if several else (answers == items.y).double()
    frame = pd.DataFrame(
        {
            "task": tasks.numpy() + 1,
            "node": items.ids.numpy(),
            "labels": own_labels.sum(dim=1).numpy(),
            "degree": torch.bincount(edges[1], minlength=len(items.nodes))[place].numpy(),
            "homophily": _homophily(items.y_of_nodes, edges, allowed, tasks, place).numpy(),
            "score": score.numpy(),
        }
    )
    return frame[items.test.cpu().numpy()]


def queries_of(items: AskedItems, group: QueryGroup) -> Tensor:
    """Return the position of each item's query in ``group`` (int64 [n]). This is the item's own query, or its node's query if nodes have
    several tasks.
    """
    if len(items.ids) == len(group.query):
        return torch.arange(len(items.ids))
    numbers = items.nodes[group.query.ids.cpu()]
    place = torch.full((int(numbers.max()) + 1,), -1)
    place[numbers] = torch.arange(len(numbers))
    return place[items.ids]


def _homophily(y: Tensor, edges: Tensor, allowed: Tensor, tasks: Tensor, place: Tensor) -> Tensor:
    """Return the homophily of the items at ``place`` over their competing labels: float64 [n].

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


def _f1(outputs: Tensor, true: Tensor, allowed: Tensor) -> Tensor:
    """Return the F1 score of each set of allowed outputs above zero (float [n, C]), or 1 if it and the true set are empty: float64 [n]."""
    predicted = (outputs > 0) & allowed
    both, sizes = (predicted & true).sum(dim=1).double(), (predicted.sum(dim=1) + true.sum(dim=1)).double()
    return torch.where(sizes > 0, 2 * both / sizes.clamp(min=1), 1.0)


def _average_precision(outputs: Tensor, true: Tensor, allowed: Tensor) -> Tensor:
    """Return the average precision of each row of outputs (float [n, C]) among its allowed ones, NaN without a true label: float64 [n]."""
    from sklearn.metrics import average_precision_score

    masks = allowed.expand_as(true)
    rows = [
        average_precision_score(labels[mask], values[mask]) if labels.any() else np.nan
        for values, labels, mask in zip(outputs.numpy(), true.numpy(), masks.numpy(), strict=True)
    ]
    return torch.tensor(rows, dtype=torch.float64)


_SCORES = dict(zip(ITEM_SCORES, (_f1, _average_precision), strict=True))
