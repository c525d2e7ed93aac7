"""Molecules: SMILES files, scaffolds, classification and regression. These are the only loaders that use RDKit."""
