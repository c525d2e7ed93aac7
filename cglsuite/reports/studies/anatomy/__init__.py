"""What a stream or a data set is made of: sizes, classes, drift, homophily and degrees of its tasks, beside published statistics."""

from __future__ import annotations
