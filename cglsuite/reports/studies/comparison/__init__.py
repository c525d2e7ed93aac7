"""Comparison of methods: tests, effect sizes, ranks and power."""

from __future__ import annotations
