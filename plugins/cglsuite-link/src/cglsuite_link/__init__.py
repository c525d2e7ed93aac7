"""Link classification and link prediction for cglsuite: datasets of links that arrive by class, domain or time, with scenarios."""
