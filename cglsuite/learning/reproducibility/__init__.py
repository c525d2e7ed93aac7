"""Reproducible runs: numerical settings, random generators and a method's state."""
