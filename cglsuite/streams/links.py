"""Task streams whose items are links: link classification (LC) and link prediction (LP).

The edges that carry messages during training on task t and evaluation after it:

==============  =========================================  ==================================================================
edge policy     link classification                        link prediction
==============  =========================================  ==================================================================
``full``        all links                                  the training links of all tasks
``snapshot``    the links up to the task's time            the training links up to the task's time
``inter-task``  the links of the tasks so far              the training links of the tasks so far
``none``        the task's own links                       the task's own training links; a query uses its own task's
==============  =========================================  ==================================================================

together with the dataset's base edges, always over all nodes, whose ids never change. In link prediction, validation and test links, and
base edges between the same nodes, never carry messages, and no link does before its time. Under ``none`` in time-IL, links are queried from
their own task on; otherwise links of all tasks are always queried.

:mod:`cglsuite.streams.link_graphs` makes these graphs; :mod:`cglsuite.streams.link_prediction` makes the queries of link
prediction.
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

    Everything is a function of (data, spec, seeds.order, seeds.split). Items are pairs of nodes: a batch's ``ids`` are int64 [n, 2].

    Raises:
        SpecError: switches are inconsistent with each other, the level or the data, or K exceeds the number of negatives.
        DataError: a link from a node to itself, in link prediction a link that is labelled false; fewer pairs without a link than are to
            be drawn, a task with none to be trained on; a task whose ROC-AUC is undefined; a class too small to split, a task without items
            of some part, a missing key.
    """
    _check(spec, data)
    kind = LinkPrediction if spec.level == "LP" else LinkClassification
    return kind(spec, data, layout_of(spec, data, seeds), seeds, device)


def _check(spec: ScenarioSpec, data: LinkData) -> None:
    if not isinstance(data, LinkData) or spec.level not in ("LC", "LP"):
        raise SpecError(
            f"scenario.level = {spec.level}, and the dataset {spec.dataset!r} holds {type(data).__name__}: items of this stream are links; "
            "expected LC or LP over LinkData, or another scenario.builder"
        )
    check_labels(spec, data)
    if spec.setting == "task-free":
        raise SpecError("scenario.setting = task-free: links arrive in tasks; expected task-il, class-il, domain-il or time-il")
    if spec.node_features != "given" and spec.feature_normalisation != "none":
        raise SpecError(
            f"scenario.feature_normalisation = {spec.feature_normalisation}: features are degrees, which are recounted and not scaled; "
            "expected none"
        )
    if spec.replicas != 1:
        raise SpecError(f"scenario.replicas = {spec.replicas}: copies are made of graphs whose nodes are items; expected 1")
    if spec.node_features == "given" and data.x is None:
        raise SpecError(
            f"scenario.node_features = given: the nodes of the dataset {spec.dataset!r} have no features; expected degrees or "
            "log-degrees, which are counted from the edges that carry messages"
        )
    loops = (data.links[0] == data.links[1]).nonzero().flatten()
    if loops.numel():
        raise DataError(
            f"{data.name}: link {int(loops[0])} leads from node {int(data.links[0, loops[0]])} to itself, as {loops.numel()} do in all; a "
            "link that is asked about needs two ends: leave such links out in the loader"
        )
    if spec.level != "LP":
        return
    if spec.setting not in ("domain-il", "time-il"):
        raise SpecError(f"scenario.setting = {spec.setting}: a link to be predicted has no class; expected domain-il or time-il")
    if spec.setting == "time-il" and spec.edge_policy == "full":
        raise SpecError("scenario.edge_policy = full: in time-il it carries messages along links before their time; expected snapshot")
    if data.y.shape[1:] != (1,) or not bool(data.y.all()):
        wrong = int((~data.y.all(dim=1)).sum()) if data.y.dim() == 2 else len(data.y)
        raise DataError(
            f"{data.name}: {wrong} links are labelled false, or y has other than one column; in link prediction every item is a link that "
            "exists (y bool [M, 1], all true), and pairs without a link are drawn by the stream"
        )
