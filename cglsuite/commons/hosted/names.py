"""File names of pages and feeds, from names that strangers may have chosen: plain, short, and each name its own."""

from __future__ import annotations

from cglsuite.base.hashing import digest
from cglsuite.reports.site.downloads import file_stem

__all__ = ["Names"]

_LONGEST = 100


class Names:
    """A stem for every kind and name, the same for the same names in the same order; no two are alike where case does not count."""

    def __init__(self) -> None:
        self._stems: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def stem(self, kind: str, name: str) -> str:
        """As ``method-ewc``."""
        if (kind, name) not in self._stems:
            stem = f"{kind}-{file_stem(name)}"
            if len(stem) > _LONGEST or stem.lower() in self._taken:
                stem = f"{stem[:_LONGEST]}-{digest([kind, name])[:12]}"
            self._taken.add(stem.lower())
            self._stems[kind, name] = stem
        return self._stems[kind, name]

    def page(self, kind: str, name: str) -> str:
        """The file of a page."""
        return f"{self.stem(kind, name)}.html"
