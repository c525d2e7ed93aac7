"""Run cglsuite campaigns on a Dask cluster."""
