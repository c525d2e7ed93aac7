"""Continual-learning metrics for cglsuite."""
