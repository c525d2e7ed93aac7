"""General-purpose utilities: errors, files, hashes, text and processes."""
