"""Run cglsuite campaigns on a Slurm cluster."""
