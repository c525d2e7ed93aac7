"""The checks of each kind of plugin: methods, datasets, scenarios, metrics and more."""
