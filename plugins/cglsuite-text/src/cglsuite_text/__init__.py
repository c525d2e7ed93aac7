"""Language models as text encoders for cglsuite."""
