"""Rehearsal along a stream without task boundaries."""
