"""Rehearsal methods that need no task boundaries."""
