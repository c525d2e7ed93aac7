"""Publish the records of a store, and pull published ones."""
