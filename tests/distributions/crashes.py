"""Crashes at import, as a broken extension module does."""

import os
import signal

os.kill(os.getpid(), signal.SIGSEGV)
