"""A method in one tiny scenario, run by the judge on data from a secret seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.graphs.packed import PackedSource
from cglsuite.host import Catalogue
from cglsuite.specs import Hyperparameter, Seeds
from cglsuite.streams import TaskFreeStream, TaskStream
from cglsuite.testing.judge.sandbox import Sandbox, Snapshot
from cglsuite.testing.judge.session import JudgeSession, Outcome, State

# Tiny learnable data for every problem level, for conformance checks and authors' tests.
# Seed 0 gives the data of the public ``testing-*`` datasets. Any other seed gives data of the same kind with other labels and other class
# directions: without the seed they can be neither loaded nor guessed.

N_CLASSES, PER_CLASS, N_FEATURES = 6, 24, 8
_SPREAD_WITHOUT_MEANING = 0.25


def _generator(seed: int, part: int) -> torch.Generator:
    return torch.Generator().manual_seed(8 * seed + part)


def _rotation(seed: int) -> Tensor:
    """A random rotation of features, float32 [F, F], orthogonal; the identity for seed 0."""
    if seed == 0:
        return torch.eye(N_FEATURES)
    rotation: Tensor = torch.linalg.qr(torch.randn(N_FEATURES, N_FEATURES, generator=_generator(seed, 7))).Q
    return rotation


def _directions(seed: int) -> Tensor:
    """The mean feature vector of each class: float32 [C, F]."""
    return _rotation(seed)[:N_CLASSES] * 2


def _features(classes: Tensor, generator: torch.Generator, seed: int, noise: float = 0.5) -> Tensor:
    """Features with the direction of each item's class (int64 [n]) plus noise: float32 [n, F]."""
    return _directions(seed)[classes] + noise * torch.randn(len(classes), N_FEATURES, generator=generator)


def _shuffled_classes(generator: torch.Generator, per_class: int) -> tuple[Tensor, Tensor]:
    """Classes (int64 [N]) in a random order, and the number of earlier items of the same class."""
    y = torch.arange(N_CLASSES).repeat_interleave(per_class)[torch.randperm(N_CLASSES * per_class, generator=generator)]
    return y, (y[:, None] == y).tril(-1).sum(dim=1)


def _keys(turn: Tensor) -> dict[str, Tensor]:
    """A domain and a year per item, each of which has items of every class."""
    return {"domain": turn % 3, "year": 2001 + turn % 3}


def _edges(y: Tensor, generator: torch.Generator) -> Tensor:
    """Random edges, int64 [2, E]: three partners per node, two of them of its own class."""
    order = torch.argsort(y, stable=True)
    per_class = len(y) // N_CLASSES
    n, ends = len(y), torch.randint(0, per_class, (2, len(y)), generator=generator)
    partners = torch.cat([order[y * per_class + row][None] for row in ends] + [torch.randint(0, n, (1, n), generator=generator)])
    pairs = torch.stack([torch.arange(n).repeat(3), partners.flatten()])
    pairs = pairs[:, pairs[0] != pairs[1]]
    both: Tensor = torch.cat([pairs, pairs.flip(0)], dim=1).unique(dim=1)
    return both


def nodes(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> NodeData:
    """A tiny dataset of nodes of six classes (NC)."""
    generator = _generator(seed, 0)
    y, turn = _shuffled_classes(generator, per_class)
    return NodeData(
        x=_features(y, generator, seed),
        edge_index=_edges(y, generator),
        y=y,
        n_classes=N_CLASSES,
        keys=_keys(turn),
        name="testing-nodes",
    )


def label_sets(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> NodeData:
    """A tiny multi-label dataset of the same nodes, with every further label at probability 1/5 (NC)."""
    plain, generator = nodes(seed=seed, per_class=per_class), _generator(seed, 1)
    y = torch.rand(plain.n_nodes, N_CLASSES, generator=generator) < 0.2
    y[torch.arange(plain.n_nodes), plain.y] = True
    x = plain.x + y.float() @ _directions(seed)
    return NodeData(x=x, edge_index=plain.edge_index, y=y, n_classes=N_CLASSES, keys=plain.keys, name="testing-label-sets")


def _stars(x: Tensor, generator: torch.Generator) -> PackedSource:
    """A star of two to four nodes around each row of ``x``, whose nodes share the features up to noise."""
    sizes = torch.randint(2, 5, (len(x),), generator=generator)
    spread = x.repeat_interleave(sizes, dim=0)
    spread = spread + 0.1 * torch.randn(spread.shape, generator=generator)
    centre = sizes.cumsum(0) - sizes
    leaves = torch.ones(len(spread), dtype=torch.bool).index_fill(0, centre, False).nonzero().flatten()
    spokes = torch.stack([centre.repeat_interleave(sizes - 1), leaves])
    return PackedSource(spread, torch.cat([spokes, spokes.flip(0)], dim=1), sizes, "testing-graphs")


def graphs(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> GraphData:
    """A tiny dataset of star graphs of six classes (GC)."""
    generator = _generator(seed, 2)
    y, turn = _shuffled_classes(generator, per_class)
    items = _stars(_features(y, generator, seed), generator)
    return GraphData(items=items, y=y, n_classes=N_CLASSES, keys=_keys(turn), name="testing-graphs")


def molecules(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> GraphData:
    """A tiny dataset of star graphs with or without one property (GC, one label, known for all)."""
    plain = graphs(seed=seed, per_class=per_class)
    y = (plain.y < N_CLASSES // 2).unsqueeze(1)
    known = torch.ones_like(y)
    return GraphData(items=plain.items, y=y, n_classes=1, known=known, keys=plain.keys, name="testing-molecules")


def targets(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> GraphData:
    """A tiny regression dataset of star graphs, whose target is linear in two directions of their features (GR)."""
    generator = _generator(seed, 3)
    spread = torch.full((N_FEATURES,), _SPREAD_WITHOUT_MEANING).index_fill(0, torch.arange(2), 1.0)
    turned = spread * torch.randn(N_CLASSES * per_class, N_FEATURES, generator=generator)
    x = turned @ _rotation(seed).T
    y = turned[:, :1] - 0.5 * turned[:, 1:2]
    turn = torch.arange(len(x))
    return GraphData(items=_stars(x, generator), y=y, n_classes=1, keys=_keys(turn), name="testing-targets")


def _communities(generator: torch.Generator, seed: int, per_class: int) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes of six communities, their features, and distinct random pairs within communities (int64 [2, M])."""
    community_of, per_community = torch.arange(N_CLASSES).repeat_interleave(per_class), 60 * per_class // PER_CLASS
    ends = torch.randint(0, per_class, (2, N_CLASSES * per_community), generator=generator)
    pairs = ends + torch.arange(N_CLASSES).repeat_interleave(per_community) * per_class
    pairs = pairs[:, pairs[0] != pairs[1]].sort(dim=0).values.unique(dim=1)
    pairs = pairs[:, torch.randperm(pairs.shape[1], generator=generator)]
    return community_of, _features(community_of, generator, seed), pairs


def links(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> LinkData:
    """A tiny dataset of links within six communities, which are the classes (LC)."""
    community_of, x, pairs = _communities(_generator(seed, 4), seed, per_class)
    y = community_of[pairs[0]]
    turn = (y[:, None] == y).tril(-1).sum(dim=1)
    return LinkData(links=pairs, y=y, n_classes=N_CLASSES, n_nodes=len(community_of), x=x, keys=_keys(turn), name="testing-links")


def interactions(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> LinkData:
    """A tiny dataset of links within six communities, to be distinguished from other pairs (LP)."""
    community_of, x, pairs = _communities(_generator(seed, 5), seed, per_class)
    y = torch.ones(pairs.shape[1], 1, dtype=torch.bool)
    turn = torch.arange(pairs.shape[1])
    keys = {"domain": community_of[pairs[0]] // 2, "year": 2001 + turn % 3}
    return LinkData(links=pairs, y=y, n_classes=1, n_nodes=len(community_of), x=x, keys=keys, name="testing-interactions")


@dataclass(kw_only=True)
class Case:
    """A method to be checked in one tiny scenario.

    Args:
        seed: of data, decoys and probes. overrides: by dotted key, in addition to the scenario's.
    """

    method_sandbox: Sandbox
    catalogue: Catalogue
    method: str
    scenario: str
    seed: int
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """Those of the case's hyper-parameters that the method declares."""
        spec: Any = self.catalogue.get("method", self.method).spec
        declared: tuple[Hyperparameter, ...] = spec.hyperparameters
        return declared

    def cell(self, **overrides: Any) -> CellSpec:
        """The cell, with further overrides by dotted key (``__`` for the dot)."""
        more = {name.replace("__", "."): value for name, value in overrides.items()}
        return resolve_cell(self.catalogue, self.scenario, self.method, overrides={**self.overrides, **more}, seeds=Seeds())

    def stream(self, cell: CellSpec, per_class: int = PER_CLASS) -> tuple[TaskStream | TaskFreeStream, Any]:
        """A new stream with its data."""
        dataset: Any = self.catalogue.get("dataset", cell.scenario.dataset)
        data = self.catalogue.resolve(dataset)(None, seed=self.seed, per_class=per_class)
        builder = self.catalogue.resolve(self.catalogue.get("scenario", cell.scenario.name))
        return builder(cell.scenario, data, cell.seeds, "cpu"), data

    def judge_session(
        self,
        *,
        turn: int = 0,
        per_class: int = PER_CLASS,
        resume: tuple[int, State] | None = None,
        until: int | None = None,
        probed: bool = False,
        **overrides: Any,
    ) -> JudgeSession:
        """A judge session for a run on a new stream.

        Args:
            turn: selects the decoys and probes.
        """
        cell = self.cell(**overrides)
        stream, data = self.stream(cell, per_class)
        seed = (self.seed * 1009 + turn) % 2**62
        return JudgeSession(cell, self.catalogue, stream, seed=seed, data=data, resume=resume, until=until, probed=probed)

    def folder_snapshot(self) -> Snapshot:
        """A snapshot of the folders to which the method could write."""
        return self.method_sandbox.snapshot(self.catalogue.method(self.method).factory)

    def run(self, judge_sessions: Iterable[JudgeSession], *, elsewhere: bool = False) -> list[Outcome]:
        """Serve sessions in order in a fresh process; arguments as for :meth:`Sandbox.run`."""
        return self.method_sandbox.run(self.catalogue, judge_sessions, elsewhere=elsewhere)

    def run_one(self, *, elsewhere: bool = False, **options: Any) -> Outcome:
        """Serve one session in a fresh process; other arguments as for :meth:`judge_session`."""
        (outcome,) = self.run([self.judge_session(**options)], elsewhere=elsewhere)
        return outcome
