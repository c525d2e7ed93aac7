"""The base class of methods, the training loop, the metered memory and checkpoints. Importing this package does not import torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily
from cglsuite.learning.method import Hyperparameters, Method, MethodContext, Phase

if TYPE_CHECKING:
    from cglsuite.learning.memory import MeteredMemory
    from cglsuite.learning.pretraining.scheme import Pretraining, PretrainingContext
    from cglsuite.learning.reservoir import Reservoir

__all__ = ["Hyperparameters", "MeteredMemory", "Method", "MethodContext", "Phase", "Pretraining", "PretrainingContext", "Reservoir"]

__getattr__, __dir__ = lazily(__name__, __file__)
