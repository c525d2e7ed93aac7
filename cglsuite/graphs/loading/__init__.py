"""The last step of loaders, which converts NumPy arrays to validated datasets and builds datasets from user files."""
