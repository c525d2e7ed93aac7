"""Pure functions that divide classes, nodes and pairs into tasks and splits."""
