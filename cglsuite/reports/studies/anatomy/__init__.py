"""The composition of a stream or a data set: sizes, classes, drift, homophily and degrees, compared with published statistics."""

from __future__ import annotations
