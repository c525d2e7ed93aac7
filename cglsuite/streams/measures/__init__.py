"""The built-in performance measures; see :class:`cglsuite.specs.MeasureSpec`."""
