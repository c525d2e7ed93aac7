"""What data sets and views show in a notebook: sizes and training labels, and no label that a method may not see."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from html_shape import Shape
from IPython.core.formatters import DisplayFormatter
from tiny_links import link_stream, tiny_links
from tiny_streams import tiny_data, tiny_graphs, tiny_stream

import cglsuite
from cglsuite.streams import TaskView
from cglsuite.study.display import data_card, view_card


def test_a_view_shows_training_labels_and_hides_the_others() -> None:
    view = tiny_stream().view(1)
    assert view.train.y is not None
    shown = Shape(view_card(view)).text
    counts = "".join(f"{c}\n{int((view.train.y == c).sum())}\n" for c in sorted(view.classes.tolist()))
    assert "view of task 2 of" in shown
    assert f"training\n{len(view.train)}\nyes\nvalidation\n{len(view.validation)}\nhidden\n" in shown
    assert f"items per class\nclass\nitems\n{counts.rstrip()}" in shown
    assert "tensor" not in shown


@pytest.mark.parametrize("view", [tiny_stream(tiny_graphs()).view(0), link_stream().view(0)], ids=["graphs", "links"])
def test_views_of_every_level_are_shown(view: TaskView) -> None:
    shown = Shape(view_card(view)).text
    assert f"training\n{len(view.train)}\nyes\n" in shown
    assert "object at" not in shown


def test_a_data_set_shows_its_sizes_split_and_attributes() -> None:
    data = tiny_data()
    n = data.n_nodes
    split = torch.tensor([0, 1, 2, -1] * n, dtype=torch.int8)[:n]
    years = torch.arange(n) + 2000
    data = cglsuite.graphs.NodeData(
        x=data.x, edge_index=data.edge_index, y=data.y, n_classes=data.n_classes, official_split=split, keys={"year": years}, name="a"
    )
    shown = Shape(data_card(data)).text
    sizes = [int((split == part).sum()) for part in (0, 1, 2)]
    assert f"data set a\n{data.n_nodes} nodes, " in shown
    assert f"split of the data set\n{sizes[0]} training, {sizes[1]} validation, {sizes[2]} test\n" in shown
    assert f"year\n2000 to {1999 + n}\n" in shown
    assert "items per class\nclass\nitems\n0\n10\n" in shown


@pytest.mark.parametrize("data", [tiny_graphs(), tiny_links()], ids=["graphs", "links"])
def test_data_of_every_level_are_shown(data: Any) -> None:
    assert f"data set {data.name}\n{data.n_items} " in Shape(data_card(data)).text


@pytest.mark.plugins
def test_a_notebook_shows_them_as_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a data set was loaded or a stream built; IPython that is not running has no shell."""
    formatter = DisplayFormatter()
    shell = SimpleNamespace(display_formatter=formatter)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    data = cglsuite.load_dataset("synthetic-csbm", n_nodes=120, n_classes=4)
    assert "data set synthetic-csbm" in formatter.format(data)[0]["text/html"]
    assert formatter.format(data)[0]["text/plain"] == repr(data)
    view = cglsuite.build_stream("synthetic-csbm/class-il@example-1", overrides={"dataset.n_nodes": 400}).view(0)
    assert "view of task 1 of" in formatter.format(view)[0]["text/html"]
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert cglsuite.load_dataset("synthetic-csbm", n_nodes=120, n_classes=4).n_nodes == 120
