"""Render notebooks to pages: run them with papermill in a separate process, apply our template, and check whether a page is up to date."""

from __future__ import annotations
