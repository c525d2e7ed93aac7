"""Datasets of links, with one module per dataset. ``specs`` lists them without importing torch."""
