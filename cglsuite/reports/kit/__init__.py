"""Building blocks of all studies: tables, figures, texts and media types."""

from __future__ import annotations
