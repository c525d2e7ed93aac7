"""Task-free streams for cglsuite: how latent tasks are mixed into batches, datasets, and published scenarios over them."""
