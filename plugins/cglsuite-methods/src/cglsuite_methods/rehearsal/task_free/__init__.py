"""Rehearsal that needs no task boundaries."""
