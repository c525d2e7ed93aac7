"""Node-level datasets, with one module per dataset. ``specs`` lists them without importing torch."""
