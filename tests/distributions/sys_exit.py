"""Ends the program at import, as a script without a main guard does."""

import sys

sys.exit(3)
