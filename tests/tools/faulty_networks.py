"""Backbones, schedules and executors that break a promise, each in one way, beside some that keep theirs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import nn

from cglsuite.backbones import Backbone
from cglsuite.campaigns.executors import LocalExecutor


class Fine(Backbone):
    """Two layers on features and their neighbourhood sums."""

    def __init__(self, in_features: int, outputs: int) -> None:
        super().__init__()
        self.body = nn.Linear(in_features, 8)
        self.head = nn.Linear(8, outputs)

    def encode(self, graph: Any) -> torch.Tensor:
        return torch.relu(graph.propagate("sym", self.body(graph.dense)))


class Narrow(Fine):
    """As many outputs as the data set once had."""

    def __init__(self, in_features: int, outputs: int) -> None:
        super().__init__(in_features, 6)


class AllItems(Fine):
    """Outputs of all nodes, whoever is asked."""

    def readout(self, hidden: torch.Tensor, graph: Any, ids: torch.Tensor | None) -> torch.Tensor:
        out: torch.Tensor = self.head(hidden)
        return out


class Headless(Backbone):
    """Predicts in encode()."""

    def __init__(self, in_features: int, outputs: int) -> None:
        super().__init__()
        self.body = nn.Linear(in_features, outputs)


class Unused(Fine):
    """A layer that nobody calls."""

    def __init__(self, in_features: int, outputs: int) -> None:
        super().__init__(in_features, outputs)
        self.spare = nn.Linear(8, 8)


class AlwaysDrops(Fine):
    """Dropout in evaluation too."""

    def encode(self, graph: Any) -> torch.Tensor:
        return nn.functional.dropout(super().encode(graph), 0.5)


class SeedsItself(Fine):
    """Seeds what belongs to the suite."""

    def __init__(self, in_features: int, outputs: int) -> None:
        torch.manual_seed(0)
        super().__init__(in_features, outputs)


SHARED: list[nn.Module] = []


class SharesLayer(Fine):
    """A default made once and held by all models."""

    def __init__(self, in_features: int, outputs: int, layers: list[nn.Module] = SHARED) -> None:
        super().__init__(in_features, outputs)
        if not layers:
            layers.append(nn.Linear(in_features, 8))
        self.body = layers[0]  # type: ignore[assignment]
        with torch.no_grad():
            self.body.weight.add_(torch.randn_like(self.body.weight))


class LooseTensor(Fine):
    """A constant that .to(device) leaves behind."""

    def __init__(self, in_features: int, outputs: int) -> None:
        super().__init__(in_features, outputs)
        self.scale = torch.ones(in_features)

    def encode(self, graph: Any) -> torch.Tensor:
        return super().encode(graph) * self.scale[0]


class OnlyDense(Fine):
    """Hands sparse features to a layer that takes none."""

    def encode(self, graph: Any) -> torch.Tensor:
        return torch.relu(self.body(graph.features))


class StiffHead(Fine):
    """A head whose outputs share a layer behind them."""

    def __init__(self, in_features: int, outputs: int) -> None:
        super().__init__(in_features, outputs)
        self.head = nn.Sequential(nn.Linear(8, outputs), nn.Linear(outputs, outputs))  # type: ignore[assignment]


def not_a_backbone(in_features: int, outputs: int) -> nn.Module:
    """A plain module."""
    return nn.Linear(in_features, outputs)


def one_row(steps: Any, spans: Any) -> Any:
    """A row for all steps."""
    return np.ones((1, len(spans) - 1))


def never_second(steps: Any, spans: Any) -> Any:
    """The second task never comes."""
    weights = np.ones((len(steps), len(spans) - 1))
    weights[:, 1] = 0.0
    return weights


def negative(steps: Any, spans: Any) -> Any:
    """Less than nothing."""
    return np.sin(steps)[:, None] * np.ones(len(spans) - 1)


def restless(steps: Any, spans: Any) -> Any:
    """Other weights each time."""
    return np.random.default_rng().random((len(steps), len(spans) - 1)) + 0.1


def global_draws(steps: Any, spans: Any) -> Any:
    """Draws from everybody's generator."""
    return np.random.rand(len(steps), len(spans) - 1) + 0.1  # noqa: NPY002


def as_lists(steps: Any, spans: Any) -> Any:
    """No array."""
    return [[1.0] * (len(spans) - 1) for _ in steps]


class Runless:
    """Nothing that runs."""


class Forgetful(LocalExecutor):
    """Says that nothing is left, having run half."""

    def run(self, cells: Any, store: Any, options: Any) -> int:
        super().run(cells[:1], store, options)
        return 0


class Twice(LocalExecutor):
    """Removes what is done and runs it again."""

    def run(self, cells: Any, store: Any, options: Any) -> int:
        super().run(cells, store, options)
        for path in store.record_files():
            path.unlink()
        time.sleep(0.1)
        return super().run(cells, type(store)(store.path), options)
