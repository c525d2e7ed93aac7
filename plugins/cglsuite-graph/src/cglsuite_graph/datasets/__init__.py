"""Datasets whose items are graphs, one module per kind of source. ``specs`` lists them without importing torch."""
