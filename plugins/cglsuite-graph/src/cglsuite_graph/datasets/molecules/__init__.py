"""Molecules: files of SMILES, scaffolds, classification and regression. The only loaders that use RDKit."""
