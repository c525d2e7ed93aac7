"""Self-supervised pre-training before the first task."""
