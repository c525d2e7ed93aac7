"""``cglsuite cite``: the publications of the data sets, protocols, methods and networks behind the records of a store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from cglsuite import Catalogue
from cglsuite.base.errors import UnknownNameError
from cglsuite.cells import Record
from cglsuite.cli import Session, echo, open_store, pass_session, print_json, store_option
from cglsuite.specs import Citation


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print an object: publication to what of it was used.")
@store_option
@pass_session
def cite(session: Session, store_path: Path | None, as_json: bool) -> None:
    """Print what to cite for the results of a store, as BibTeX."""
    works, unknown = cited(open_store(store_path, must_exist=True).records(), session.catalogue())
    for name in unknown:
        click.echo(f"no installed plugin provides the {name}: what it cites is missing below", err=True)
    if as_json:
        print_json({str(work): names for work, names in works.items()})
    else:
        echo("\n\n".join(bibtex(work, names) for work, names in works.items()))


def cited(records: Iterable[Record], catalogue: Catalogue) -> tuple[dict[Citation | str, list[str]], list[str]]:
    """Each publication with what it is cited for, and what is in no catalogue; both sorted."""
    used = set[tuple[str, str]]()
    for record in records:
        cell = record.cell
        preset = cell["preset"].partition("+")[0]  # what follows stands for switches that were changed
        names = {"dataset": record.scenario["dataset"], "scenario": preset, "method": cell["method"], "backbone": cell["backbone"]}
        used |= set(names.items())
    works: dict[Citation | str, list[str]] = {}
    unknown = []
    for kind, name in sorted(used):
        try:
            spec = catalogue.get(kind, name).spec
        except UnknownNameError:
            unknown.append(f"{kind} {name}")
            continue
        for work in spec.citations:
            works.setdefault(work, []).append(f"{kind} {name}")
    return {work: works[work] for work in sorted(works, key=str)}, unknown


def bibtex(work: Citation | str, names: list[str]) -> str:
    """An entry of a BibTeX file, after a comment with what it is cited for."""
    head = f"% {', '.join(names)}\n"
    if isinstance(work, str):
        key = "".join(c for c in names[0] if c.isalnum())
        return f"{head}@misc{{{key},\n  note = {{{work}}},\n}}"
    authors = " and ".join(f"{{{author}}}" if author != "others" else author for author in work.authors)
    fields = {"author": authors, "title": f"{{{work.title}}}", "year": work.year, "booktitle": work.booktitle, "journal": work.journal}
    fields |= {"eprint": work.arxiv, "doi": work.doi, "note": work.note}
    kind = "inproceedings" if work.booktitle else "article" if work.journal else "misc"
    key = "".join(c for c in f"{work.authors[0]}{work.year}{work.title.split()[0]}" if c.isalnum()).lower()
    return "\n".join([f"{head}@{kind}{{{key},", *(f"  {name} = {{{value}}}," for name, value in fields.items() if value), "}"])
