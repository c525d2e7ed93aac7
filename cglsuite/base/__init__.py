"""What every room uses and what is no idea of the field: errors, files, hashes, text, processes."""
