"""The judge of methods and the separate processes in which methods run."""
