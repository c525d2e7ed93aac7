"""The units of a backbone, and the parameter entries that write and read them. Importing this module does not import torch."""

from __future__ import annotations

from typing import NamedTuple


class Wire(NamedTuple):
    """The slice of a parameter that writes or reads a group of units.

    Args:
        parameter: the parameter's name in the model.
        axis: the axis that indexes the units. ``None`` = the flattened parameter has one entry per unit.
        tile: how many times the units are repeated along the axis, for example 2 if a readout ``[sum, max]`` reads each unit twice.
    """

    parameter: str
    axis: int | None
    tile: int = 1


class Units(NamedTuple):
    """A group of hidden units that share a gate (see :attr:`cglsuite.backbones.Backbone.gates`).

    Args:
        name: the name of the gate. width: number of units.
        writers: the parameters that compute the units, including norms and residual maps.
        readers: the parameters that have the units as inputs, including the predictor and the head.
        together: the number of consecutive units that depend on each other's writers, such as those of an attention head. Gates and masks
            must be equal for them.
    """

    name: str
    width: int
    writers: tuple[Wire, ...]
    readers: tuple[Wire, ...]
    together: int = 1
