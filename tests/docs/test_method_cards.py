"""Cards of methods and schemes of pre-training: every entry has one with idea, formula, cost and citation; results are the gallery's."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import Any

import pytest
from doc_tool import TOOLS, tool

from cglsuite import Catalogue, load_catalogue
from cglsuite.cells.storage.store import Store

GALLERY = TOOLS.parents[1] / "reports" / "gallery" / "records"
KINDS = ("method", "pretraining")
pytestmark = pytest.mark.plugins


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(allow=tool("doc_hooks")._PROVIDERS)


@pytest.fixture(scope="module")
def made(catalogue: Catalogue) -> dict[str, str]:
    cards: dict[str, str] = tool("doc_methods").cards(catalogue)
    return cards


def path_of(kind: str, name: str) -> str:
    return str(getattr(tool("doc_cards"), f"{kind}_path")(name))


def section(page: str, title: str) -> str:
    """The text below a heading, up to the next."""
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_source_names_the_entries_of_the_catalogue_and_no_others(catalogue: Catalogue) -> None:
    words = tool("doc_methods").words()
    assert {kind: sorted(entries) for kind, entries in words.items()} == {kind: sorted(catalogue.names(kind)) for kind in KINDS}


@pytest.mark.nightly
def test_every_card_has_what_the_source_says_and_a_citation(made: dict[str, str], catalogue: Catalogue) -> None:
    words = tool("doc_methods").words()
    for kind in KINDS:
        for entry in catalogue.entries(kind):
            page, said = made[path_of(kind, entry.name)], words[kind][entry.name]
            assert page.startswith(f"# {entry.name}"), entry.name
            formula = page.partition("```text\n")[2].partition("\n```")[0]
            assert "".join(re.sub(r"[;,\s]", "", formula)) == re.sub(r"[;,\s]", "", said["formula"]), entry.name
            assert all(f"| {part} | " in section(page, "Cost") for part in ("time", "memory", "parameters"))
            (cited,) = re.findall(r"^\| citation \| (.*) \|$", page, re.MULTILINE)
            assert re.search(r"\b(19|20)\d\d\b", cited), f"{entry.name}: {cited!r} names no year"
            settings = section(page, "Settings")
            assert all(f"`{kind}.{h.name}`" in settings for h in entry.spec.hyperparameters), entry.name  # type: ignore[attr-defined]
            assert section(page, "Where a benchmark's code differs").strip()
            assert section(page, "Results here").strip()


def test_an_idea_is_two_sentences() -> None:
    for entries in tool("doc_methods").words().values():
        for name, said in entries.items():
            assert len(re.findall(r"[.](?:\s|$)", said["idea"])) == 2, f"{name}: {said['idea']}"


def test_an_entry_that_lacks_a_field_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = tool("doc_methods")
    source = tmp_path / "cards.toml"
    source.write_text('[method.bare]\nidea = "One. Two."\nformula = "L"\ntime = "1"\nmemory = ""\nparameters = "none"\n', encoding="utf-8")
    monkeypatch.setattr(module, "SOURCE", source)
    with pytest.raises(ValueError, match=r"\[method.bare\] has idea, formula"):
        module.words.__wrapped__()


def test_what_a_benchmarks_code_does_is_said_where_it_is_known(made: dict[str, str]) -> None:
    """A switch of the method, and the rows of the table of known artefacts that name it, also under the paper's name."""
    hat = section(made[path_of("method", "hat")], "Where a benchmark's code differs")
    assert "`method.as_begin`" in hat
    assert "untrained or unused" in hat
    assert "unbounded replay" in section(made[path_of("method", "continual-gnn")], "Where a benchmark's code differs"), "CGNN in the table"
    assert "Nothing is known of it." in section(made[path_of("method", "er")], "Where a benchmark's code differs")


@pytest.mark.nightly
def test_results_are_those_of_the_gallerys_records(made: dict[str, str]) -> None:
    """By hand, from the matrices: mean, standard deviation and number of runs of a preset; none where there are none."""
    runs = [
        statistics.mean(record.performance()[-1])
        for record in Store(GALLERY).records()
        if record.status == "done" and (record.cell["scenario"], record.cell["method"]) == ("cora/class-il@begin-2", "bare")
    ]
    assert len(runs) >= 3
    results = section(made[path_of("method", "bare")], "Results here").replace("\N{NO-BREAK SPACE}", " ")
    (row,) = [line for line in results.splitlines() if line.startswith("| [`cora/class-il@begin-2`]")]
    expected = f"{100 * statistics.mean(runs):.1f} ± {100 * statistics.stdev(runs):.1f}"
    assert f"| as the preset | `average_performance` | {expected} |" in row
    assert row.endswith(f"| {len(runs)} |")
    assert section(made[path_of("pretraining", "grace")], "Results here").strip() == "None yet."


def test_settings_tell_results_of_one_preset_apart(made: dict[str, str]) -> None:
    results = section(made[path_of("method", "er")], "Results here")
    rows: list[Any] = [line for line in results.splitlines() if line.startswith("| [`uai2010/gaussian@drift-honest-1`]")]
    assert sorted(re.findall(r"`schedule.sigma=(\d+)`", " ".join(rows))) == ["10", "20", "3"]
