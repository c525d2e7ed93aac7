"""Cases for the judge: a method in one tiny scenario, with data drawn from a secret seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.graphs import GraphData, LinkData, NodeData, NodeTargetData
from cglsuite.graphs.packed import PackedSource
from cglsuite.host import Catalogue
from cglsuite.specs import Hyperparameter, Seeds
from cglsuite.streams import TaskFreeStream, TaskStream
from cglsuite.testing.judge.sandbox import Sandbox, Snapshot
from cglsuite.testing.judge.session import JudgeSession, Outcome, State

# Tiny learnable data for every problem level, for conformance checks and authors' tests.
# Seed 0 gives the data of the public ``testing-*`` datasets. Any other seed gives data of the same kind with different labels and class
# directions, which can be neither loaded nor guessed without the seed.

N_CLASSES, PER_CLASS, N_FEATURES = 6, 24, 8
_SPREAD_WITHOUT_MEANING = 0.25


def _generator(seed: int, part: int) -> torch.Generator:
    return torch.Generator().manual_seed(8 * seed + part)


def _rotation(seed: int) -> Tensor:
    """Return a random rotation of features, an orthogonal float32 matrix [F, F]; the identity for seed 0."""
    if seed == 0:
        return torch.eye(N_FEATURES)
    rotation: Tensor = torch.linalg.qr(torch.randn(N_FEATURES, N_FEATURES, generator=_generator(seed, 7))).Q
    return rotation


def _directions(seed: int) -> Tensor:
    """Return the mean feature vector of each class, float32 [C, F]."""
    return _rotation(seed)[:N_CLASSES] * 2


def _features(classes: Tensor, generator: torch.Generator, seed: int, noise: float = 0.5) -> Tensor:
    """Draw each item's features, the direction of its class (int64 [n]) plus noise: float32 [n, F]."""
    return _directions(seed)[classes] + noise * torch.randn(len(classes), N_FEATURES, generator=generator)


def _shuffled_classes(generator: torch.Generator, per_class: int) -> tuple[Tensor, Tensor]:
    """Return classes (int64 [N]) in random order, and the number of earlier items of the same class for each item."""
    y = torch.arange(N_CLASSES).repeat_interleave(per_class)[torch.randperm(N_CLASSES * per_class, generator=generator)]
    return y, (y[:, None] == y).tril(-1).sum(dim=1)


def _keys(turn: Tensor) -> dict[str, Tensor]:
    """Return a domain and a year for each item, such that every domain and every year has items of every class."""
    return {"domain": turn % 3, "year": 2001 + turn % 3}


def _edges(y: Tensor, generator: torch.Generator) -> Tensor:
    """Draw random edges: int64 [2, E], with three neighbours per node, two of them in the node's class."""
    order = torch.argsort(y, stable=True)
    per_class = len(y) // N_CLASSES
    n, ends = len(y), torch.randint(0, per_class, (2, len(y)), generator=generator)
    partners = torch.cat([order[y * per_class + row][None] for row in ends] + [torch.randint(0, n, (1, n), generator=generator)])
    pairs = torch.stack([torch.arange(n).repeat(3), partners.flatten()])
    pairs = pairs[:, pairs[0] != pairs[1]]
    both: Tensor = torch.cat([pairs, pairs.flip(0)], dim=1).unique(dim=1)
    return both


def nodes(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> NodeData:
    """Return a tiny dataset of nodes with six classes (NC)."""
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
    """Return a tiny multi-label dataset of the same nodes, with a probability of 1/5 for each additional label (NC)."""
    plain, generator = nodes(seed=seed, per_class=per_class), _generator(seed, 1)
    y = torch.rand(plain.n_nodes, N_CLASSES, generator=generator) < 0.2
    y[torch.arange(plain.n_nodes), plain.y] = True
    x = plain.x + y.float() @ _directions(seed)
    return NodeData(x=x, edge_index=plain.edge_index, y=y, n_classes=N_CLASSES, keys=plain.keys, name="testing-label-sets")


def node_targets(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> NodeTargetData:
    """Return a tiny regression dataset of nodes. The target is linear in two features, which are alike for neighbours (NR)."""
    plain, generator = nodes(seed=seed, per_class=per_class), _generator(seed, 6)
    turned = _spread(plain.n_nodes, generator)
    turned[:, :2] = 0.2 * turned[:, :2] + torch.randn(N_CLASSES, 2, generator=generator)[plain.y]
    x, y = turned @ _rotation(seed).T, turned[:, :1] - 0.5 * turned[:, 1:2]
    return NodeTargetData(x=x, edge_index=plain.edge_index, y=y, n_classes=1, keys=plain.keys, name="testing-node-targets")


def _spread(n: int, generator: torch.Generator) -> Tensor:
    """Draw features, float32 [n, F], of which only the first two vary much."""
    spread = torch.full((N_FEATURES,), _SPREAD_WITHOUT_MEANING).index_fill(0, torch.arange(2), 1.0)
    return spread * torch.randn(n, N_FEATURES, generator=generator)


def _stars(x: Tensor, generator: torch.Generator) -> PackedSource:
    """Build a star of two to four nodes for each row of ``x``. Its nodes have the same features up to noise."""
    sizes = torch.randint(2, 5, (len(x),), generator=generator)
    spread = x.repeat_interleave(sizes, dim=0)
    spread = spread + 0.1 * torch.randn(spread.shape, generator=generator)
    centre = sizes.cumsum(0) - sizes
    leaves = torch.ones(len(spread), dtype=torch.bool).index_fill(0, centre, False).nonzero().flatten()
    spokes = torch.stack([centre.repeat_interleave(sizes - 1), leaves])
    return PackedSource(spread, torch.cat([spokes, spokes.flip(0)], dim=1), sizes, "testing-graphs")


def graphs(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> GraphData:
    """Return a tiny dataset of star graphs with six classes (GC)."""
    generator = _generator(seed, 2)
    y, turn = _shuffled_classes(generator, per_class)
    items = _stars(_features(y, generator, seed), generator)
    return GraphData(items=items, y=y, n_classes=N_CLASSES, keys=_keys(turn), name="testing-graphs")


def molecules(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> GraphData:
    """Return a tiny dataset of star graphs with or without a property (GC with one binary label, known for all graphs)."""
    plain = graphs(seed=seed, per_class=per_class)
    y = (plain.y < N_CLASSES // 2).unsqueeze(1)
    known = torch.ones_like(y)
    return GraphData(items=plain.items, y=y, n_classes=1, known=known, keys=plain.keys, name="testing-molecules")


def targets(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> GraphData:
    """Return a tiny regression dataset of star graphs. The target is linear in two directions of the features (GR)."""
    generator = _generator(seed, 3)
    turned = _spread(N_CLASSES * per_class, generator)
    x = turned @ _rotation(seed).T
    y = turned[:, :1] - 0.5 * turned[:, 1:2]
    turn = torch.arange(len(x))
    return GraphData(items=_stars(x, generator), y=y, n_classes=1, keys=_keys(turn), name="testing-targets")


def _communities(generator: torch.Generator, seed: int, per_class: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the nodes of six communities, their features, and distinct random pairs within communities (int64 [2, M])."""
    community_of, per_community = torch.arange(N_CLASSES).repeat_interleave(per_class), 60 * per_class // PER_CLASS
    ends = torch.randint(0, per_class, (2, N_CLASSES * per_community), generator=generator)
    pairs = ends + torch.arange(N_CLASSES).repeat_interleave(per_community) * per_class
    pairs = pairs[:, pairs[0] != pairs[1]].sort(dim=0).values.unique(dim=1)
    pairs = pairs[:, torch.randperm(pairs.shape[1], generator=generator)]
    return community_of, _features(community_of, generator, seed), pairs


def links(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> LinkData:
    """Return a tiny dataset of links within six communities, where the communities are the classes (LC)."""
    community_of, x, pairs = _communities(_generator(seed, 4), seed, per_class)
    y = community_of[pairs[0]]
    turn = (y[:, None] == y).tril(-1).sum(dim=1)
    return LinkData(links=pairs, y=y, n_classes=N_CLASSES, n_nodes=len(community_of), x=x, keys=_keys(turn), name="testing-links")


def interactions(root: Any = None, *, seed: int = 0, per_class: int = PER_CLASS) -> LinkData:
    """Return a tiny dataset of links within six communities, to be distinguished from pairs without a link (LP)."""
    community_of, x, pairs = _communities(_generator(seed, 5), seed, per_class)
    y = torch.ones(pairs.shape[1], 1, dtype=torch.bool)
    turn = torch.arange(pairs.shape[1])
    keys = {"domain": community_of[pairs[0]] // 2, "year": 2001 + turn % 3}
    return LinkData(links=pairs, y=y, n_classes=1, n_nodes=len(community_of), x=x, keys=keys, name="testing-interactions")


@dataclass(kw_only=True)
class Case:
    """A method to be checked in one tiny scenario.

    Args:
        seed: the seed of the data, decoys and probe queries. overrides: values by dotted key, in addition to those of the scenario.
    """

    method_sandbox: Sandbox
    catalogue: Catalogue
    method: str
    scenario: str
    seed: int
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """The hyperparameters of the case that the method declares."""
        spec: Any = self.catalogue.get("method", self.method).spec
        declared: tuple[Hyperparameter, ...] = spec.hyperparameters
        return declared

    def cell(self, **overrides: Any) -> CellSpec:
        """Return the cell, with additional overrides by dotted key (written with ``__`` instead of dots)."""
        more = {name.replace("__", "."): value for name, value in overrides.items()}
        return resolve_cell(self.catalogue, self.scenario, self.method, overrides={**self.overrides, **more}, seeds=Seeds())

    def stream(self, cell: CellSpec, per_class: int = PER_CLASS) -> tuple[TaskStream | TaskFreeStream, Any]:
        """Build a new stream and its data."""
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
        """Create the judge's session for a run on a new stream.

        Args:
            turn: selects the decoys and probes.
        """
        cell = self.cell(**overrides)
        stream, data = self.stream(cell, per_class)
        seed = (self.seed * 1009 + turn) % 2**62
        return JudgeSession(cell, self.catalogue, stream, seed=seed, data=data, resume=resume, until=until, probed=probed)

    def folder_snapshot(self) -> Snapshot:
        """Take a snapshot of the folders that the method could write to."""
        return self.method_sandbox.snapshot(self.catalogue.method(self.method).factory)

    def run(self, judge_sessions: Iterable[JudgeSession], *, elsewhere: bool = False) -> list[Outcome]:
        """Serve sessions in order in a fresh process. See :meth:`Sandbox.run` for the arguments."""
        return self.method_sandbox.run(self.catalogue, judge_sessions, elsewhere=elsewhere)

    def run_one(self, *, elsewhere: bool = False, **options: Any) -> Outcome:
        """Serve one session in a fresh process. See :meth:`judge_session` for the other arguments."""
        (outcome,) = self.run([self.judge_session(**options)], elsewhere=elsewhere)
        return outcome
