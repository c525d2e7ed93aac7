"""Is not a plugin at all."""

cglsuite_methods_wanted = True
