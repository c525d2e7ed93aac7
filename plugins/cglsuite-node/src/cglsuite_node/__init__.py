"""Node-level datasets and scenarios for cglsuite."""
