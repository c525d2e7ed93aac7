"""Datasets whose items are graphs, with one module per kind of source. ``specs`` lists them without importing torch."""
