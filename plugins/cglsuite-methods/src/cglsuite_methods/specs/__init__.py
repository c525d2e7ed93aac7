"""The specs of the methods, by category. Imports no torch."""
