"""All papers at once: what was reached and run, what came out, why values differ, and what the data sets on which papers disagree say."""

from __future__ import annotations
