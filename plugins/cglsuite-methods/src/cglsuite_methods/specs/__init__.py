"""The specs of the methods, grouped by category. This package does not import torch."""
