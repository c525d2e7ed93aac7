"""Node-level datasets, one module each. ``specs`` lists them without importing torch."""
