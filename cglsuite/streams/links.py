"""Task streams whose items are links: link classification (LC) and link prediction (LP).

The edge policy determines which edges carry messages during training on task t and the evaluation after it:

==============  =========================================  ==================================================================
edge policy     link classification                        link prediction
==============  =========================================  ==================================================================
``full``        all links                                  the training links of all tasks
``snapshot``    the links up to the task's time            the training links up to the task's time
``inter-task``  the links of the tasks so far              the training links of the tasks so far
``none``        the task's own links                       the task's own training links; a query uses its own task's
==============  =========================================  ==================================================================

The dataset's base edges always carry messages too. Graphs contain all nodes, and node ids never change. In link prediction, validation and
test links, and base edges between the same nodes, never carry messages, and no link carries messages before its time. Under ``none`` in
time-IL, the links of a task are queried only once the task has arrived. In all other cases, the links of all tasks are always queried.

:mod:`cglsuite.streams.link_graphs` builds these graphs, and :mod:`cglsuite.streams.link_prediction` builds the queries for link prediction.
"""

from __future__ import annotations

from cglsuite.base.errors import DataError, SpecError
from cglsuite.graphs import LinkData
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.assembly import check_labels
from cglsuite.streams.layout import layout_of
from cglsuite.streams.link_graphs import LinkClassification
from cglsuite.streams.link_prediction import LinkPrediction
from cglsuite.streams.stream import TaskStream

__all__ = ["build_link_stream"]


def build_link_stream(spec: ScenarioSpec, data: LinkData, seeds: Seeds, device: str = "cpu") -> TaskStream:
    """Partition ``data`` into a stream of tasks for link classification, or for link prediction if ``spec.level`` is LP.

    The stream depends only on (data, spec, seeds.order, seeds.split). Items are pairs of nodes, so a batch's ``ids`` are int64 [n, 2].

    Raises:
        SpecError: if switches are inconsistent with each other, the level or the data, or K exceeds the number of negatives.
        DataError: if a link connects a node to itself, a link is labelled false in link prediction, there are too few pairs without a link
            to draw or train on, the ROC-AUC of a task is undefined, a class is too small to split, a task has no items in some part, or a
            key is missing.
    """
    _check(spec, data)
    kind = LinkPrediction if spec.level == "LP" else LinkClassification
    return kind(spec, data, layout_of(spec, data, seeds), seeds, device)


def _check(spec: ScenarioSpec, data: LinkData) -> None:
    if not isinstance(data, LinkData) or spec.level not in ("LC", "LP"):
        raise SpecError(
            f"scenario.level = {spec.level!r}, and the dataset {spec.dataset!r} contains {type(data).__name__}, but this builder creates "
            "streams of links; expected LC or LP with LinkData, or another scenario.builder"
        )
    check_labels(spec, data)
    if spec.setting == "task-free":
        raise SpecError("scenario.setting = task-free: links always arrive in tasks; expected task-il, class-il, domain-il or time-il")
    if spec.node_features != "given" and spec.feature_normalisation != "none":
        raise SpecError(
            f"scenario.feature_normalisation = {spec.feature_normalisation}: features are degrees, which are recounted for every "
            "graph and not scaled; expected none"
        )
    if spec.replicas != 1:
        raise SpecError(f"scenario.replicas = {spec.replicas}: only graphs whose items are nodes can be copied; expected 1")
    if spec.node_features == "given" and data.x is None:
        raise SpecError(
            f"scenario.node_features = given: the dataset {spec.dataset!r} has no node features; expected 'degrees' or "
            "'log-degrees', which are counted from the edges that carry messages"
        )
    loops = (data.links[0] == data.links[1]).nonzero().flatten()
    if loops.numel():
        raise DataError(
            f"{data.name}: link {int(loops[0])} connects node {int(data.links[0, loops[0]])} to itself ({loops.numel()} self-loops in "
            "total); links must connect two different nodes: remove self-loops in the loader"
        )
    if spec.level != "LP":
        return
    if spec.setting not in ("domain-il", "time-il"):
        raise SpecError(
            f"scenario.setting = {spec.setting!r}, but links have no classes in link prediction; expected 'domain-il' or 'time-il'"
        )
    if spec.setting == "time-il" and spec.edge_policy == "full":
        raise SpecError("scenario.edge_policy = 'full': in time-il, links would carry messages before their time; expected 'snapshot'")
    if data.y.shape[1:] != (1,) or not bool(data.y.all()):
        wrong = int((~data.y.all(dim=1)).sum()) if data.y.dim() == 2 else len(data.y)
        raise DataError(
            f"{data.name}: {wrong} links are labelled false, or y does not have exactly one column; in link prediction, every item must be "
            "an existing link (y bool [M, 1], all true), and the stream draws the negative pairs"
        )
