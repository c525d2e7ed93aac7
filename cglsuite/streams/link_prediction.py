"""Streams for link prediction: withheld links, negative pairs, views and queries.

Links may be duplicates, either repetitions or reversed copies of undirected links. A training link whose pair of nodes is also a validation
or test link of any task is withheld: it is not trained on and carries no messages. The exception is time-IL, where a training link that
precedes all such copies is kept as a past interaction.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import cast

import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.base.hashing import digest
from cglsuite.graphs import LinkData, MessageGraph, uploaded
from cglsuite.graphs.linkgraph import LinkGraph
from cglsuite.graphs.splits.negatives import draw_negatives, oriented, pair_keys, random_destinations
from cglsuite.specs import LinkPredictionSpec, ScenarioSpec, Seeds
from cglsuite.streams.assembly import AskedGroup, token_of
from cglsuite.streams.layout import PARTS, Layout
from cglsuite.streams.link_graphs import LinkGraphs
from cglsuite.streams.measures.hits import check_k
from cglsuite.streams.oracle import EVERY_TASK, NO_TASK, Oracle
from cglsuite.streams.stream import AskedItems
from cglsuite.streams.views import Batch, TaskView

logger = logging.getLogger(__name__)


class LinkPrediction(LinkGraphs):
    """A link-prediction stream. Test links of all tasks are ranked against the same negative pairs, in a fixed order and orientation.

    Every graph gets the same queries, so validation links of future tasks are queried too, but not scored. The validation view of a task
    has separate negatives, so that comparing views does not reveal links. A duplicated link is queried once per copy, whereas negative
    pairs are distinct, so duplicates can be recognised as links.
    """

    def __init__(self, spec: ScenarioSpec, data: LinkData, layout: Layout, seeds: Seeds, device: str) -> None:
        layout, self.withheld = without_repetitions(spec, data, layout)
        self.switches = cast("LinkPredictionSpec", spec.level_spec)  # guaranteed by the scenario
        super().__init__(spec, data, layout, seeds, device)
        self.n_negatives = self.switches.negatives or sum(parts["test"].numel() for parts in layout.parts)
        if spec.performance == "hits":
            check_k(self.switches.hits_k, self.n_negatives)
        self._check_destinations()
        drawn = self.negatives(2 * self.n_negatives, "evaluation")
        # The links by id, followed by the negatives for testing and the negatives for validation.
        self.pairs = torch.cat([oriented(data.links, spec.undirected), drawn], dim=1).T.contiguous()
        self.exist = (torch.arange(len(self.pairs)) < data.n_items).unsqueeze(1)
        self._monitored = lru_cache(maxsize=None)(self._draw_monitored)

    def make_oracle(self) -> Oracle:
        return Oracle.of(self.spec, self.data.n_classes, self.switches.hits_k)

    def _check_destinations(self) -> None:
        """Check that every task has training links whose negative pairs can differ from the link itself."""
        single = torch.bincount(self.types)[self.types] == 1
        for k, parts in enumerate(self.layout.parts):
            if bool(single[self.data.links[1, parts["train"]]].all()):
                raise DataError(
                    f"scenario {self.spec.name!r}: task {k + 1} ({self.layout.names[k]}) has no negative pairs to train on: "
                    "every node that its training links lead to is the only one of its type; leave the task out, or change node_types"
                )

    def negatives(self, count: int, *purpose: str) -> Tensor:
        """Draw pairs of nodes that are not links in any part or at any time: int64 [2, count]."""
        seed = int(digest(["negatives", self.seeds.split, *purpose])[:15], 16)
        return draw_negatives(
            self.data.links,
            count,
            self.data.n_nodes,
            seed=seed,
            others=self.data.base_edges,
            types=self.data.node_types,
            undirected=self.spec.undirected,
            name=self.data.name,
        )

    # --- what carries messages ---------------------------------------------------------------------------------------------------

    @cached_property
    def _trains(self) -> Tensor:
        """Which links are training links of some task: bool [M]."""
        trained = torch.cat([parts["train"] for parts in self.layout.parts])
        return torch.zeros(self.data.n_items, dtype=torch.bool).index_fill(0, trained, True)

    def carriers(self, stage: int) -> Tensor:
        return super().carriers(stage) & self._trains

    @cached_property
    def _base(self) -> Tensor:
        n, undirected = self.data.n_nodes, self.spec.undirected
        asked = torch.cat([parts[part] for parts in self.layout.parts for part in ("validation", "test")])
        hidden = torch.isin(pair_keys(self.data.base_edges, n, undirected), pair_keys(self.data.links[:, asked], n, undirected))
        if bool(hidden.any()):
            logger.warning(
                "scenario %s: %d of %d base edges are also validation or test links, and therefore carry no messages",
                self.spec.name,
                int(hidden.sum()),
                hidden.numel(),
            )
        return self.data.base_edges[:, ~hidden]

    def base(self) -> Tensor:
        return self._base

    def message_graph(self, stage: int) -> LinkGraph:
        edges, counted = self.edges_of(stage), self.spec.node_features != "given"
        return LinkGraph(
            self.nodes_with(edges),
            edges,
            self.device,
            types=self.types,
            undirected=self.spec.undirected,
            hides_targets=self.switches.exclude_targets,
            counted=torch.ones(self.data.n_nodes, dtype=torch.bool) if counted else None,
            kind=self.spec.node_features,
        )

    @cached_property
    def types(self) -> Tensor:
        """The type of each node, numbered from 0: int64 [N]."""
        types = self.data.node_types
        return torch.zeros(self.data.n_nodes, dtype=torch.int64) if types is None else types.unique(return_inverse=True)[1]

    # --- views -------------------------------------------------------------------------------------------------------------------

    def make_view(self, position: int, stage: int) -> TaskView:
        k, graph, content = position, self.graph_at(position, stage), self.tasks[position].content
        links = self.data.links[:, self.members(k, "train")]
        wrong = random_destinations(links[1], self.types, self.generator("training negatives", content))
        trained = torch.cat([links, torch.stack([links[0], wrong])], dim=1).T
        allowed = torch.ones(1, dtype=torch.bool, device=self.device)

        def batch(pairs: Tensor, y: Tensor | None) -> Batch:
            tasks = torch.full((len(pairs),), k, device=self.device)
            return Batch(graph=graph, ids=uploaded(pairs.contiguous(), self.device), allowed=allowed, y=y, tasks=tasks)

        return TaskView(
            position=k,
            n_tasks=len(self),
            n_outputs=1,
            train=batch(trained, uploaded((torch.arange(len(trained)) < links.shape[1]).unsqueeze(1), self.device)),
            validation=batch(self._monitored(k)[0], None),
            classes=self.layout.classes[k].clone(),
            task_outputs=allowed.clone(),
            seen_outputs=allowed.clone(),
            keeps_nodes=self.keeps_nodes,
        )

    def validation_token(self, position: int, stage: int | None = None) -> str:
        token, (_, exist) = f"monitor-{position}", self._monitored(position)
        tasks = uploaded(torch.where(exist[:, 0], position, EVERY_TASK), self.device)
        self.oracle.deposit(token, uploaded(exist, self.device), tasks, torch.zeros_like(tasks, dtype=torch.bool))
        return token

    def _draw_monitored(self, k: int) -> tuple[Tensor, Tensor]:
        """Return the task's validation links and ``n_negatives`` negatives, shuffled: int64 [n, 2], and which of them are links: bool [n,
        1]."""
        links = self.pairs[self.members(k, "validation")]
        content = self.tasks[k].content
        asked = torch.cat([links, self.negatives(self.n_negatives, "monitor", content).T])
        order = torch.randperm(len(asked), generator=self.generator("monitor", content))
        return asked[order], (order < len(links)).unsqueeze(1)

    # --- queries -----------------------------------------------------------------------------------------------------------------

    def plan(self, learnt: int) -> list[tuple[tuple[int, ...], int]]:
        tasks = tuple(range(len(self.layout)))
        if self.policy != "none":
            return [(tasks, max(learnt - 1, 0))]
        return [((k,), k) for k in (tasks[:learnt] if self.spec.setting == "time-il" else tasks)]

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[MessageGraph, Tensor]:
        return self.graph_at(stage, stage), self.pairs[ids]

    def ask(self, tasks: tuple[int, ...], learnt: int, stage: int) -> str:
        token = token_of(tasks, learnt, stage)
        if token not in self._made:
            ids, task_of, test = self._everything
            scored = (task_of < 0) | (torch.isin(task_of, torch.tensor(tasks)) & (test | (task_of < learnt)))
            self.put_down(token, AskedGroup(ids=ids, tasks=torch.where(scored, task_of, NO_TASK), test=test, stage=stage), self.exist[ids])
        return token

    @cached_property
    def _everything(self) -> tuple[Tensor, Tensor, Tensor]:
        """All queries in shuffled order: ids (int64 [n]), task positions, and test flags (bool [n])."""
        parts = [(k, part) for part in ("test", "validation") for k in range(len(self.layout))]
        groups = [self.members(k, part) for k, part in parts]
        first = self.data.n_items
        groups += [torch.arange(first, first + self.n_negatives), torch.arange(first + self.n_negatives, len(self.pairs))]
        sizes = torch.tensor([group.numel() for group in groups])
        ids = torch.cat(groups)
        task_of = torch.tensor([*(k for k, _ in parts), EVERY_TASK, EVERY_TASK]).repeat_interleave(sizes)
        test = torch.tensor([*(part == "test" for _, part in parts), True, False]).repeat_interleave(sizes)
        order = ids.argsort()[torch.randperm(ids.numel(), generator=self.generator("items"))]  # does not depend on the task order
        return ids[order], task_of[order], test[order]

    def asked(self, token: str) -> AskedItems:
        made = self._made[token]
        none = torch.empty(0, dtype=torch.int64)
        y = self.exist[made.ids]
        return AskedItems(ids=made.ids, tasks=made.tasks, test=made.test, nodes=none, y=y, y_of_nodes=y[none])


def without_repetitions(spec: ScenarioSpec, data: LinkData, layout: Layout) -> tuple[Layout, int]:
    """Remove the withheld training links (see the module docstring) from a layout. Return the new layout and the number of removed links.

    Raises:
        DataError: if a task has no training links left.
    """
    keys = pair_keys(data.links, data.n_nodes, spec.undirected).unique(return_inverse=True)[1]
    never = len(layout)
    earliest = torch.full((data.n_items,), never)  # by pair: the first task that queries it
    for k, parts in reversed(list(enumerate(layout.parts))):
        for part in set(PARTS) - {"train"}:
            earliest[keys[parts[part]]] = k
    kept = []
    for k, parts in enumerate(layout.parts):
        first = earliest[keys[parts["train"]]]
        stays = (first == never) | ((first > k) if spec.setting == "time-il" else torch.zeros_like(first, dtype=torch.bool))
        if not bool(stays.any()):
            raise DataError(
                f"scenario {spec.name!r}: every training link of task {k + 1} ({layout.names[k]}) is also a validation or test link; "
                "change scenario.split, or remove duplicate links in the loader"
            )
        kept.append(parts["train"][stays])
    withheld = sum(parts["train"].numel() - rest.numel() for parts, rest in zip(layout.parts, kept, strict=True))
    if withheld == 0:
        return layout, 0
    logger.warning(
        "scenario %s: %d training links are repetitions of validation or test links and are withheld; they are neither trained nor do they "
        "carry messages",
        spec.name,
        withheld,
    )
    return replace(layout, parts=[parts | {"train": rest} for parts, rest in zip(layout.parts, kept, strict=True)]), withheld
