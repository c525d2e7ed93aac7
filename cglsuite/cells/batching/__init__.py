"""Cells that train as one stacked model."""
