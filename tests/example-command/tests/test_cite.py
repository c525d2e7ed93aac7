"""The example command conforms, prints BibTeX that holds everything it cites, and says what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cglsuite_cite.command import bibtex, cite
from click.testing import CliRunner

from cglsuite.cli import Session
from cglsuite.specs import Citation
from cglsuite.testing import check_command


def test_cite_conforms() -> None:
    check_command("cite")


def test_cite_prints_an_entry_for_what_was_used_and_names_what_is_not_installed(run_cell: Any, tmp_path: Path) -> None:
    """The tiny streams are of no installed plugin, and the network cites its paper."""
    run_cell("testing-fine-tuning")
    words = ["--store", str(tmp_path / "store")]
    result = CliRunner().invoke(cite, words, obj=Session())
    assert result.exit_code == 0
    assert "no installed plugin provides the dataset testing-nodes" in result.stderr
    assert result.stdout.startswith("% backbone gcn\n@inproceedings{kipf2017semisupervised,\n  author = {{Kipf} and {Welling}},\n")
    works = json.loads(CliRunner().invoke(cite, [*words, "--json"], obj=Session()).stdout)
    assert list(works.values()) == [["backbone gcn"]]


@pytest.mark.parametrize(
    ("work", "entry"),
    [
        ("Someone, 2020", "% method a, method b\n@misc{methoda,\n  note = {Someone, 2020},\n}"),
        (
            Citation(authors=("Du Bois", "others"), title="On It", year=2020, arxiv="2001.1"),
            "% method a, method b\n@misc{dubois2020on,\n  author = {{Du Bois} and others},\n  title = {{On It}},\n  year = {2020},\n"
            "  eprint = {2001.1},\n}",
        ),
    ],
)
def test_cite_writes_entries_of_every_kind_of_citation(work: Citation | str, entry: str) -> None:
    assert bibtex(work, ["method a", "method b"]) == entry
