"""Items of finished cells against brute force: what was asked, in which graph, how it was answered; and nothing is trained twice."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from plugin_sites import Site, site  # noqa: F401 - a fixture

from cglsuite import Catalogue, Seeds, load_catalogue
from cglsuite.base.errors import NotApplicable, UnknownNameError
from cglsuite.cells.diagnostics import item_embeddings, item_results
from cglsuite.cells.run import build_stream, make_runner, numerics, run_cell, store_checkpoints
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.host import find_entry_points
from cglsuite.learning.task_runner import TaskRunner

pytestmark = pytest.mark.plugins

TINY = {"dataset.n_nodes": 72, "dataset.n_classes": 6, "dataset.n_features": 40, "dataset.words": 5, "dataset.avg_degree": 4}
BRIEF = {"training.epochs": 4, "training.lr": 0.01, "backbone.width": 6}
COLUMNS = ["task", "node", "labels", "degree", "homophily", "score", "better", "worse"]
SINGLE = [
    ("synthetic-csbm/task-il@cglb-1", {}),
    ("synthetic-csbm/class-il@begin-1", {}),
    ("synthetic-csbm/task-il@begin-1", {}),
    ("synthetic-csbm/class-il@cglb-inter-1", {"scenario.undirected": "false"}),
]
SEVERAL_LABELS = """
import torch
from cglsuite import DatasetSpec, ScenarioSpec, TrainingSpec, hookimpl


def load(root):
    from cglsuite.graphs import NodeData

    draw = torch.Generator().manual_seed(0)
    y = torch.rand(90, 6, generator=draw) < 0.3
    y[torch.arange(90), torch.arange(90) % 6] = True
    edges = torch.randint(0, 85, (2, 200), generator=draw)
    return NodeData(x=torch.rand(90, 5, generator=draw), edge_index=edges, y=y, n_classes=6, name="several")


@hookimpl
def cglsuite_datasets():
    return [DatasetSpec(name="several", summary="several labels", factory="several:load", embedded=True)]


@hookimpl
def cglsuite_scenarios():
    common = {"dataset": "several", "summary": "several", "labels": "multi", "performance": "average-precision", "class_order": "native"}
    brief = TrainingSpec(backbone="gcn", lr=0.01, epochs=8)
    return [
        ScenarioSpec(
            name=f"several/{setting}-{edges}@mine-1", setting=setting, edge_policy=edges, split="task-wise",
            train_outputs="task" if setting == "task-il" else "seen", training=brief, **common,
        )
        for setting in ("task-il", "class-il")
        for edges in ("none", "full")
    ]
"""


@pytest.fixture
def catalogue(site: Site) -> Catalogue:  # noqa: F811
    """What is built in, and a data set with several labels per node, of which five have no edge."""
    site.add("several", files={"several.py": SEVERAL_LABELS})
    wanted = {"cglsuite", "cglsuite-node", "cglsuite-methods", "cglsuite-metrics"}
    installed = [e for e in find_entry_points() if e.dist is not None and e.dist.name in wanted]
    return load_catalogue(entry_points=[*installed, *site.entry_points()])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def make(catalogue: Catalogue, scenario: str, method: str = "bare", **overrides: Any) -> CellSpec:
    given = BRIEF | (TINY if scenario.startswith("synthetic") else {}) | overrides
    return resolve_cell(catalogue, scenario, method, overrides=given, seeds=Seeds(order=1, split=2, init=3))


def brute(cell: CellSpec, catalogue: Catalogue, store: Store) -> pd.DataFrame:
    """The same by loops over nodes, from the raw data and the logits of the trained method."""
    data = build_data(cell, catalogue)
    stream = build_stream(cell, catalogue)
    n_tasks, classes = len(stream), [set(facts.classes) for facts in stream.tasks]
    pairs = {(int(a), int(b)) for a, b in data.edge_index.T if a != b}
    pairs |= {(b, a) for a, b in pairs}
    labels = [{int(c) for c in row.nonzero().flatten()} if data.multi_label else {int(row)} for row in data.y]
    answers = answered(cell, catalogue, store)
    rows = []
    for k in range(n_tasks):
        competing = classes[k] if cell.scenario.setting == "task-il" else set().union(*classes)
        graph = {
            "none": {n for n, own in enumerate(labels) if own & classes[k]},
            "full": set(range(data.n_nodes)),
            "inter-task": {n for n, own in enumerate(labels) if own & set().union(*classes)},
        }[cell.scenario.edge_policy]
        for node in stream.members(k, "test").tolist():
            own = labels[node] & competing
            near = [n for m, n in pairs if m == node and n in graph]
            likeness = [len(own & labels[n]) / len(own | (labels[n] & competing)) for n in near]
            given = answers[k, node] & competing if data.multi_label else answers[k, node]
            f1 = 2 * len(given & own) / (len(given) + len(own)) if data.multi_label else float(given == own)
            homophily = sum(likeness) / len(near) if near else math.nan
            rows.append({"task": k + 1, "node": node, "labels": len(own), "degree": len(near), "homophily": homophily, "score": f1})
    frame = pd.DataFrame(rows).sort_values(["task", "node"], ignore_index=True)
    means = {k: part["score"].mean() for k, part in frame.groupby("task")}
    distance = [row.score - means[row.task] for row in frame.itertuples()]
    return frame.assign(better=[d > 1e-9 for d in distance], worse=[d < -1e-9 for d in distance])


def build_data(cell: CellSpec, catalogue: Catalogue) -> Any:
    from cglsuite.base.datafiles import DataRoot

    return catalogue.resolve(catalogue.get("dataset", cell.scenario.dataset))(
        DataRoot.from_environment(), **dict(cell.dataset_hyperparameters)
    )


def answered(cell: CellSpec, catalogue: Catalogue, store: Store) -> dict[tuple[int, int], set[int]]:
    """By task and node the outputs that the trained method gives, from its own predictions."""
    stream = build_stream(cell, catalogue)
    given = {}
    with numerics(cell), torch.no_grad():
        runner = make_runner(cell, catalogue, stream)
        assert runner.run(store_checkpoints(cell, catalogue, store)).resumed_from_task == len(stream)
        runner.method.model.eval()
        for group in stream.make_queries(len(stream)):
            asked, logits = stream.asked(group.token), runner.method.predict(group.query)
            allowed = group.query.allowed.expand(logits.shape)
            for i, (k, node) in enumerate(zip(asked.tasks.tolist(), asked.ids.tolist(), strict=True)):
                best = int(logits[i].masked_fill(~allowed[i], -math.inf).argmax())
                given[k, node] = {int(c) for c in (logits[i] > 0).nonzero().flatten()} if cell.scenario.labels == "multi" else {best}
    return given


@pytest.mark.parametrize(("scenario", "overrides"), SINGLE, ids=[name for name, _ in SINGLE])
def test_single_labels(catalogue: Catalogue, store: Store, scenario: str, overrides: dict[str, Any]) -> None:
    """Tasks apart, tasks on the whole graph, a growing directed graph; task-incremental and class-incremental."""
    cell = make(catalogue, scenario, **overrides)
    found = item_results(cell, catalogue, store)
    assert list(found.columns) == COLUMNS
    pd.testing.assert_frame_equal(found, brute(cell, catalogue, store), check_dtype=False, check_exact=False, rtol=1e-12)
    assert set(found["labels"]) == {1}
    record = run_cell(cell, catalogue, store)
    if cell.scenario.performance == "micro":
        assert found.groupby("task")["score"].mean().tolist() == pytest.approx(list(record.performance()[-1]))


@pytest.mark.parametrize("edges", ["none", "full"])
@pytest.mark.parametrize("setting", ["task-il", "class-il"])
def test_several_labels(catalogue: Catalogue, store: Store, setting: str, edges: str) -> None:
    """F1 of the sets of labels, homophily by Jaccard; a node that several tasks ask has a row in each."""
    cell = make(catalogue, f"several/{setting}-{edges}@mine-1")
    found = item_results(cell, catalogue, store)
    pd.testing.assert_frame_equal(found, brute(cell, catalogue, store), check_dtype=False, check_exact=False, rtol=1e-12)
    assert found["node"].duplicated().any()
    assert found["labels"].max() > 1
    assert found["score"].between(0, 1).all()
    alone = found["degree"] == 0
    assert alone.any()
    assert found.loc[alone, "homophily"].isna().all()
    assert found.loc[~alone, "homophily"].between(0, 1).all()


def test_what_was_trained_is_not_trained_again(catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that has run comes from its last checkpoint; one that has not is trained once, and then kept."""
    learnt: list[int] = []
    learn = TaskRunner._stage

    def counted(self: TaskRunner, k: int, before: Any) -> Any:
        learnt.append(k)
        return learn(self, k, before)

    monkeypatch.setattr(TaskRunner, "_stage", counted)
    ran, fresh = (make(catalogue, "synthetic-csbm/class-il@begin-1", method) for method in ("ewc", "bare"))
    assert run_cell(ran, catalogue, store).done
    assert learnt == [0, 1, 2]
    first = item_results(ran, catalogue, store)
    assert learnt == [0, 1, 2]
    pd.testing.assert_frame_equal(item_results(ran, catalogue, store), first)
    item_results(fresh, catalogue, store)
    assert learnt == [0, 1, 2] * 2
    item_results(fresh, catalogue, store)
    assert learnt == [0, 1, 2] * 2


def test_embeddings_of_test_items(catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """By brute force from the trained model in the graph of the queries; at most as many as wanted, and nothing is trained again."""
    cell = make(catalogue, "synthetic-csbm/class-il@begin-1")
    results = item_results(cell, catalogue, store)
    monkeypatch.setattr(TaskRunner, "_stage", None)
    frame, vectors = item_embeddings(cell, catalogue, store)
    assert set(zip(frame["task"], frame["item"], strict=True)) == set(zip(results["task"], results["node"], strict=True))
    stream = build_stream(cell, catalogue)
    with numerics(cell):
        runner = make_runner(cell, catalogue, stream)
        runner.run(store_checkpoints(cell, catalogue, store))
        (group,) = [group for group, _ in runner.answers()]
        with torch.no_grad():
            hidden = runner.method.model.eval().encode(group.query.graph)
    items = stream.asked(group.token)
    row = {int(node): place for place, node in enumerate(items.ids)}
    place = [row[node] for node in frame["item"]]
    assert torch.equal(torch.from_numpy(vectors), hidden[group.query.ids][place])
    assert frame["label"].to_list() == items.y[place].tolist()
    few, some = item_embeddings(cell, catalogue, store, at_most=5, runner=runner)
    assert (len(few), some.shape) == (5, (5, vectors.shape[1]))
    assert set(few["item"]) < set(frame["item"])


def test_embeddings_of_what_keeps_no_state_or_has_several_labels(catalogue: Catalogue, store: Store) -> None:
    with pytest.raises(NotApplicable, match="no final state is saved for a task-free stream"):
        item_embeddings(resolve_cell(load_catalogue(), "synthetic-csbm/hard@drift-2", "bare"), load_catalogue(), store)
    frame, vectors = item_embeddings(make(catalogue, "several/class-il-none@mine-1"), catalogue, store)
    assert set(frame["label"]) == {-1}
    assert len(vectors) == len(frame)


def test_items_that_all_score_alike_are_neither_better_nor_worse(
    catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal scores whose mean is not exactly their value."""
    from cglsuite.cells import diagnostics

    alike = lambda outputs, true, allowed: torch.full((len(true),), 1 / 3 + 0.1, dtype=torch.float64)  # noqa: E731
    monkeypatch.setitem(diagnostics._SCORES, "f1", alike)
    found = item_results(make(catalogue, "several/class-il-none@mine-1"), catalogue, store)
    assert not found["better"].any()
    assert not found["worse"].any()


def test_f1_of_sets() -> None:
    """Against scikit-learn's samples average, an empty pair of sets counting as right."""
    from sklearn.metrics import f1_score

    from cglsuite.cells.diagnostics import _f1

    given, true = torch.rand(2, 50, 4, generator=torch.Generator().manual_seed(0)) < 0.4
    expected = [f1_score(t[None].numpy(), g[None].numpy(), average="samples", zero_division=1.0) for g, t in zip(given, true, strict=True)]
    assert _f1(given.double() - 0.5, true, torch.ones(4, dtype=torch.bool)).tolist() == pytest.approx(expected)


def test_average_precision_of_a_node(catalogue: Catalogue, store: Store) -> None:
    """By hand: labels 0 and 2 at ranks 1 and 3 of the allowed outputs; unknown without a label; an unknown name is refused."""
    from cglsuite.cells.diagnostics import _average_precision

    outputs = torch.tensor([[0.9, 0.5, 0.1, 5.0], [0.9, 0.5, 0.1, 5.0]])
    true = torch.tensor([[True, False, True, False], [False] * 4])
    first, none = _average_precision(outputs, true, torch.tensor([True, True, True, False])).tolist()
    assert first == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert math.isnan(none)
    cell = make(catalogue, "several/class-il-none@mine-1")
    found, sets = (item_results(cell, catalogue, store, score) for score in ("average-precision", "f1"))
    assert found["score"].dropna().between(0, 1).all()
    assert found["score"].tolist() != sets["score"].tolist()
    with pytest.raises(UnknownNameError, match="score of an item"):
        item_results(cell, catalogue, store, "auc")
