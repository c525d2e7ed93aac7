"""Studies, by subject: the computations, figures and tables of the notebooks."""

from __future__ import annotations
