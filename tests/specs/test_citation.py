"""Citations: structured ones say who, what, where and when; plain texts are accepted; what comes with the suite is structured."""

from __future__ import annotations

from typing import Any

import pytest

from cglsuite.base.errors import SpecError
from cglsuite.host import load_catalogue
from cglsuite.specs import Citation, MethodSpec

GIVEN: dict[str, Any] = {"authors": ("Kipf", "Welling"), "title": "Semi-Supervised Classification", "year": 2017, "booktitle": "ICLR"}
UNPUBLISHED = {
    "An example of cglsuite; streams follow",
    "Embedded generator of this package",
    "NYC Taxi and Limousine Commission, TLC Trip Record Data",
    "The cglsuite authors, 2026 (unpublished)",
    "The package index of Debian 12 (bookworm, main, amd64), https://www.debian.org",
    "Tox21 Challenge, 2014",
    "a control: what remains of a result without any text",
    "cglsuite, 2026 (defined here: see the formula)",
    "the share of right answers",
}
"""What the suite cites that is no publication."""


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "Kipf & Welling, Semi-Supervised Classification, ICLR 2017"),
        ({"authors": ("Kipf",)}, "Kipf, Semi-Supervised Classification, ICLR 2017"),
        ({"authors": ("A", "B", "C")}, "A, B & C, Semi-Supervised Classification, ICLR 2017"),
        ({"authors": ("Xu", "others")}, "Xu et al., Semi-Supervised Classification, ICLR 2017"),
        ({"authors": ("A", "B", "others")}, "A, B et al., Semi-Supervised Classification, ICLR 2017"),
        ({"booktitle": "", "journal": "JMLR 24(1)"}, "Kipf & Welling, Semi-Supervised Classification, JMLR 24(1), 2017"),
        ({"booktitle": "", "journal": "TMLR"}, "Kipf & Welling, Semi-Supervised Classification, TMLR 2017"),
        ({"booktitle": "", "arxiv": "1609.02907"}, "Kipf & Welling, Semi-Supervised Classification, arXiv:1609.02907, 2017"),
        ({"arxiv": "1609.02907", "note": "part 2"}, "Kipf & Welling, Semi-Supervised Classification, ICLR 2017, arXiv:1609.02907, part 2"),
        ({"booktitle": "", "note": "Amsterdam"}, "Kipf & Welling, Semi-Supervised Classification, Amsterdam 2017"),
    ],
)
def test_text_of_a_citation(changes: dict[str, Any], text: str) -> None:
    assert str(Citation(**GIVEN | changes)) == text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"authors": ()}, "expected a tuple of family names"),
        ({"authors": "Kipf"}, "expected a tuple of family names"),
        ({"authors": ("Kipf", " ")}, "expected a tuple of family names"),
        ({"title": " "}, "Kipf & Welling: the title is missing"),
        ({"year": "2017"}, "year = '2017'; expected the year"),
        ({"year": 17}, "year = 17; expected the year"),
        ({"journal": "JMLR"}, "a booktitle or a journal, not both"),
        ({"booktitle": ""}, "give a booktitle, a journal, an arXiv identifier or a note"),
    ],
)
def test_incomplete_citations_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Citation(**GIVEN | changes)


def test_specs_cite_texts_citations_and_both() -> None:
    one = Citation(**GIVEN)
    for given, parts in (("", ()), ("Me, 2026", ("Me, 2026",)), (one, (one,)), (("after", one), ("after", one))):
        assert MethodSpec(name="m", summary="s", factory="a:b", citation=given).citations == parts
    with pytest.raises(SpecError, match=r"citation 7 is neither a string nor a Citation"):
        MethodSpec(name="m", summary="s", factory="a:b", citation=7)  # type: ignore[arg-type]


@pytest.mark.plugins
def test_what_the_suite_cites_is_structured() -> None:
    """Every publication; every dataset, scenario, method, backbone, metric, measure, schedule and encoder cites something."""
    catalogue = load_catalogue()
    kinds = ("dataset", "scenario", "method", "backbone", "metric", "measure", "schedule", "encoder")
    cited = {f"{kind} {entry.name}": entry.spec.citations for kind in kinds for entry in catalogue.entries(kind) if _ours(entry.provider)}
    assert len(cited) > 300
    assert [name for name, parts in cited.items() if not parts] == []
    assert {part for parts in cited.values() for part in parts if isinstance(part, str)} <= UNPUBLISHED


def _ours(provider: str) -> bool:
    return provider.startswith("cglsuite") and "mini" not in provider and "anchor" not in provider
