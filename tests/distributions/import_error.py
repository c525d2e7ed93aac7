"""Needs a module that is not installed."""

import a_module_that_is_not_there  # noqa: F401
