"""The published protocols of graph classification and regression on this package's datasets, one module each."""
