"""The composition of a stream or data set: sizes, classes, drift, homophily and degrees of its tasks, against published statistics."""

from __future__ import annotations
