"""Publications cited by a plugin, structured so that a leaderboard can give BibTeX entries."""

from __future__ import annotations

from dataclasses import dataclass

from cglsuite.base.errors import SpecError


@dataclass(frozen=True, kw_only=True)
class Citation:
    """One publication.

    Args:
        authors: family names in order; ``others`` at the end stands for the rest.
        title: as printed. year: of publication.
        booktitle: the conference, with its track or workshop; journal: the journal, with its volume. One of them, or neither for a preprint
            or a report, which then has ``arxiv`` or ``note``.
        arxiv: the identifier. doi: without a resolver. note: anything else, such as the part that is used.

    Raises:
        SpecError: authors, title or year are missing or malformed; both a conference and a journal; no venue at all.

    Example:
        >>> str(Citation(authors=("Kipf", "Welling"), title="Semi-Supervised Classification with GCNs", booktitle="ICLR", year=2017))
        'Kipf & Welling, Semi-Supervised Classification with GCNs, ICLR 2017'
    """

    authors: tuple[str, ...]
    title: str
    year: int
    booktitle: str = ""
    journal: str = ""
    arxiv: str = ""
    doi: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.authors, tuple) or not self.authors or not all(isinstance(a, str) and a.strip() for a in self.authors):
            raise SpecError(f"citation: authors = {self.authors!r}, expected a tuple of family names")
        if not isinstance(self.title, str) or not self.title.strip():
            raise SpecError(f"citation of {' & '.join(self.authors)}: expected a title")
        if not isinstance(self.year, int) or not 1600 <= self.year < 2200:
            raise SpecError(f"citation of {self.title!r}: year = {self.year!r}, expected the year of publication")
        if self.booktitle and self.journal:
            raise SpecError(f"citation of {self.title!r}: give a booktitle or a journal, not both")
        if not self.venue:
            raise SpecError(
                f"citation of {self.title!r}: expected a booktitle, a journal, an arXiv identifier or a note that says where it is"
            )

    @property
    def venue(self) -> str:
        """The publication's venue."""
        return self.booktitle or self.journal or (f"arXiv:{self.arxiv}" if self.arxiv else self.note)

    def __str__(self) -> str:
        names, rest = list(self.authors), ""
        if names[-1] == "others":
            names, rest = names[:-1], " et al."
        who = " & ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 and not rest else [", ".join(names)])
        more = [f"arXiv:{self.arxiv}"] if self.arxiv and (self.booktitle or self.journal) else []
        more += [self.note] if self.note and self.note != self.venue else []
        when = f"{self.venue}{',' if self.venue[-1] in ')0123456789' else ''} {self.year}"
        return ", ".join([f"{who}{rest}", self.title, when, *more])
