"""Ends the process past all handlers."""

import os

os._exit(0)
