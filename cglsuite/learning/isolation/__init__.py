"""Building blocks for methods that assign part of the network to each task."""

from __future__ import annotations

from cglsuite.learning.isolation.answers import by_task
from cglsuite.learning.isolation.norms import frozen_units
from cglsuite.learning.isolation.weights import Held, along, output_wires, swapped

__all__ = ["Held", "along", "by_task", "frozen_units", "output_wires", "swapped"]
