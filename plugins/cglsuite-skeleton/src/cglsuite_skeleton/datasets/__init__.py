"""Datasets of skeleton sequences, one module each. ``specs`` lists them without importing torch."""
