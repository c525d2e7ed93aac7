"""Node-level datasets, with one module per family. ``specs`` lists them without importing torch."""
