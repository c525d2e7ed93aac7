"""Python imports this when it starts with this folder on its path: workers of tests whose cells are fakes get the fakes here."""

import os
import sys

if (_catalogue := os.environ.get("FAKE_CATALOGUE")) and any(word.startswith("cglsuite.campaigns.executors.") for word in sys.orig_argv):
    import fakes

    fakes.install_in_worker(_catalogue)
