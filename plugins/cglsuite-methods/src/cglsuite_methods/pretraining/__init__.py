"""Self-supervised pre-training of the backbone on the first task."""
