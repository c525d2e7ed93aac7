"""Continual-learning methods for cglsuite."""
