"""The checks for each kind of plugin: methods, datasets, scenarios, metrics and others."""
