"""The published protocols of node classification on this package's datasets, one module each."""
