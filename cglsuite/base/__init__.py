"""Utilities that are not specific to graph learning: errors, files, hashes, text, processes."""
