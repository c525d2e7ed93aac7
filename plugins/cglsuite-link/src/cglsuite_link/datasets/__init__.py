"""Datasets of links, one module each. ``specs`` lists them without importing torch."""
