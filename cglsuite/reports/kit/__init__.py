"""Building blocks shared by all studies: tables, figures, texts and media types."""

from __future__ import annotations
