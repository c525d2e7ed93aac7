"""Tools for reproducible runs: numerical settings, random generators and saving a method's state."""
