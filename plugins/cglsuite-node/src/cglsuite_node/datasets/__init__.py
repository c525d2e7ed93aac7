"""Node-level datasets, one module per family. ``specs`` lists them without importing torch."""
