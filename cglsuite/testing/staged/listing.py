"""Import the plugin module given by the first argument, list its specs, and print which modules in the other arguments were imported."""

from __future__ import annotations

import importlib
import sys

if __name__ == "__main__":
    plugin = importlib.import_module(sys.argv[1])
    for name, hook in list(vars(plugin).items()):
        if name.startswith("cglsuite_") and callable(hook):
            list(hook())
    sys.stdout.write("\nimported: " + " ".join(name for name in sys.argv[2:] if name in sys.modules))
