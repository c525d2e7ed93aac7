"""Methods that assign part of the network to each task."""
