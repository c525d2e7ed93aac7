"""Data sets and plugins in plain files: arrays in an npz, tables in a folder, a saved PyG ``Data``; a method in one module."""
