"""The last step of loaders: NumPy arrays to validated datasets, and datasets from user files."""
