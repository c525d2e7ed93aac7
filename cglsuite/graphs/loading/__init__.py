"""The last step of data loading: convert NumPy arrays to validated datasets, and build datasets from user files."""
