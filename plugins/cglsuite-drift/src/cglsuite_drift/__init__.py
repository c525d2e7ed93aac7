"""Task-free streams for cglsuite: schedules that mix latent tasks into batches, datasets, and published scenarios."""
