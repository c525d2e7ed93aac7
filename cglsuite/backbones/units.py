"""The units of a backbone, and the parameter entries that write and read them. Importing it does not import torch."""

from __future__ import annotations

from typing import NamedTuple


class Wire(NamedTuple):
    """The slice of a parameter that writes or reads a group of units.

    Args:
        parameter: its name in the model.
        axis: the axis along which the units lie; ``None`` = the parameter, flattened, has one entry per unit.
        tile: how often the units are repeated along the axis: 2 if a readout ``[sum, max]`` reads each unit twice.
    """

    parameter: str
    axis: int | None
    tile: int = 1


class Units(NamedTuple):
    """Hidden units that one gate scales (see :attr:`cglsuite.backbones.Backbone.gates`).

    Args:
        name: the gate's name. width: number of units.
        writers: the parameters from which the units are computed, norms and residual maps included.
        readers: the parameters that take the units as inputs, predictor and head included.
        together: consecutive units that depend on each other's writers, such as those of an attention head; gates and masks must treat
            them alike.
    """

    name: str
    width: int
    writers: tuple[Wire, ...]
    readers: tuple[Wire, ...]
    together: int = 1
