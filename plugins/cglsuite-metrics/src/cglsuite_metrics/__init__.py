"""Metrics of continual learning for cglsuite."""
