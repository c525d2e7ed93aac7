"""General utilities that are not specific to graph learning: errors, files, hashes, text and processes."""
