"""Rendering of notebooks to pages: papermill in a separate process, our template, and the check whether a page is up to date."""

from __future__ import annotations
