"""All papers together: what can be run, what was run, the outcome, why values differ, and evidence on disagreements between papers."""

from __future__ import annotations
