"""All papers at once: what was reached and run, the outcome, why values differ, and evidence where papers disagree."""

from __future__ import annotations
