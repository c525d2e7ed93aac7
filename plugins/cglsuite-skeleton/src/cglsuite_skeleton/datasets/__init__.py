"""Datasets of skeleton sequences, with one module per dataset. ``specs`` lists them without importing torch."""
