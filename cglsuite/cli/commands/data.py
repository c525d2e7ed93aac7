"""``cglsuite data list | fetch NAME | verify | statistics``: list, download and verify data sets, and compare them with published sizes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from cglsuite.base.markup import file_size, several
from cglsuite.cli.options import Session, pass_session
from cglsuite.cli.output import echo, heading, paragraph, print_json, properties, table, tidy

if TYPE_CHECKING:
    from cglsuite.base.datafiles import DataRoot
    from cglsuite.campaigns.reference.reproduction import Presence
    from cglsuite.host import Catalogue, Entry


@click.group(invoke_without_command=True)
@click.pass_context
def data(ctx: click.Context) -> None:
    """List data sets, download missing ones, and verify their files.

    Without a subcommand, explains where the suite looks for data and how to provide them.
    """
    if ctx.invoked_subcommand is None:
        echo("\n".join(_page()))


@data.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of objects: files, bytes, what is missing, licence, source.")
@pass_session
def list_data(session: Session, as_json: bool) -> None:
    """List all data sets with their availability, size, missing files, licence and source.

    Only checks whether the files exist, without reading them.
    """
    from cglsuite.base.datafiles import DataRoot
    from cglsuite.campaigns.reference.reproduction import data_presence

    catalogue, root = session.catalogue(), DataRoot.from_environment()
    presences = [(entry, data_presence(catalogue, entry.name, root=root)) for entry in catalogue.entries("dataset")]
    if as_json:
        print_json([_dataset_row(entry, known) for entry, known in presences])
        return
    rows = [(e.name, known.state, _size(known), *_origin(e), tidy(_first_line(known.reason))) for e, known in presences]
    echo(table(("NAME", "STATE", "SIZE", "LICENCE", "SOURCE", "MISSING"), rows))
    count = {state: sum(known.state == state for _, known in presences) for state in ("here", "missing")}
    here = sum(known.size for _, known in presences)
    echo(f"\n{count['here']} data sets are here ({file_size(here)}), {count['missing']} are missing. {_searched_folders(root)}")


@data.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@pass_session
def fetch(session: Session, names: Sequence[str]) -> int:
    """Download the missing files of data sets from their public sources to the cache, and verify them.

    Exits with status 1 if a data set cannot be downloaded. The message explains which file to place where.
    """
    from cglsuite.campaigns.reference.reproduction import data_presence

    catalogue, failed = session.catalogue(), False
    _check_known(catalogue, names)
    for name in dict.fromkeys(names):
        before = data_presence(catalogue, name)
        if before.state in {"here", "embedded"}:
            echo(f"{name}: {'needs no files' if before.state == 'embedded' else f'is here ({_size(before)})'}")
            continue
        after = data_presence(catalogue, name, fetch=True)
        if after.state == "here":
            echo(f"{name}: fetched ({_size(after)})")
        else:
            failed = True
            echo(f"{name}: not fetched: {after.reason or before.reason}")
    return int(failed)


@data.command()
@click.argument("names", metavar="[NAME...]", nargs=-1)
@pass_session
def verify(session: Session, names: Sequence[str]) -> int:
    """Load available data sets (default: all), compare their files with known checksums, and print their shapes.

    Nothing is downloaded. Exits with status 1 if a data set is damaged, or if a named data set is missing.
    """
    from cglsuite.base.datafiles import DataRoot
    from cglsuite.base.errors import CglsuiteError
    from cglsuite.campaigns.reference.reproduction import data_presence

    catalogue, root = session.catalogue(), DataRoot.from_environment()
    _check_known(catalogue, names)
    failed, missing = False, 0
    for name in dict.fromkeys(names) or catalogue.names("dataset"):
        known = data_presence(catalogue, name, root=root)
        if known.state == "missing":
            missing += 1
            failed = failed or bool(names)
            if names:
                echo(f"{name}: missing: {_first_line(known.reason)}")
            continue
        spec = catalogue.dataset(name)
        counting = _counting_root(root)
        try:
            loaded = catalogue.resolve(spec)(counting, **{h.name: h.default for h in spec.hyperparameters})
        except CglsuiteError as error:
            failed = True
            echo(f"{name}: FAILED: {error}")
        except Exception as error:  # noqa: BLE001 - a loader of any plugin; the others are still verified
            failed = True
            echo(f"{name}: FAILED: {type(error).__name__}: {error}")
        else:
            echo(f"{name}: {_checksum_text(counting.checked)}; {', '.join(_shapes(loaded))}")
    if not names and missing:
        echo(f"{missing} data sets are missing (see `cglsuite data list`)")
    return int(failed)


@data.command()
@click.option("--dataset", default="", metavar="NAME", help="Only this data set, by its name in the suite or in a paper.")
@click.option("--paper", default="", metavar="NAME", help="BeGin, CGLB, AGALE, DRIFT or SkeletonCGL.  [default: all]")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array with one object per published number.")
@pass_session
def statistics(session: Session, dataset: str, paper: str, as_json: bool) -> int:
    """Compare published statistics of data sets with our own counts, and print the cause of each deviation.

    Our counts come from locally available data; nothing is downloaded. A cause is a counting rule that is checked: it "holds" if it gives
    the published number. Exits with status 1 if a rule gives a different number.
    """
    from cglsuite.reports.kit.tables import as_rows
    from cglsuite.reports.studies.ledger.ratios import load_statistics, statistic_counts

    frame = load_statistics(session.catalogue(), paper=paper, dataset=dataset)
    rows = as_rows(frame)
    if as_json:
        print_json([{**row, "ours": row["ours"] if row["ours"] == row["ours"] else None} for row in rows])
    else:
        echo(
            table(
                ("PAPER", "DATA SET", "SETTING", "STATISTIC", "PUBLISHED", "OURS", "EQUAL", "CHECK", "CAUSE"), _rows_sharing_numbers(rows)
            )
        )
        counts = ", ".join(f"{n} {name}" for name, n in statistic_counts(frame).items())
        echo(f"\n{len(rows)} published numbers: {counts}.")
        for reason, where in _uncounted_by_reason(rows).items():
            echo(paragraph(f"{', '.join(where)}: {reason}", first="  ", rest="    "))
    return int((frame["check"] == "fails").any())


def _rows_sharing_numbers(rows: Iterable[dict[str, Any]]) -> list[Sequence[str]]:
    """Merge rows whose settings share the same numbers into one row."""
    settings: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        equal = "-" if row["equal"] is None else "yes" if row["equal"] else "no"
        ours = _digits(row["ours"]) if row["ours"] == row["ours"] else "-"
        numbers = (row["quantity"], _digits(row["published"]), ours, equal, row["check"] or "-", tidy(row["cause"]) or "-")
        settings.setdefault((row["paper"], row["dataset"], *numbers), []).append(row["setting"])
    return [(paper, name, ", ".join(where), *numbers) for (paper, name, *numbers), where in settings.items()]


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def _uncounted_by_reason(rows: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Group the data sets that were not counted by reason."""
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["reason"]:
            reasons.setdefault(_first_line(row["reason"]), {})[f"{row['paper']} {row['dataset']}"] = None
    return {reason: list(names) for reason, names in reasons.items()}


def _page() -> Iterator[str]:
    from cglsuite.base.datafiles import DataRoot

    root = DataRoot.from_environment()
    yield heading("where the suite looks for data")
    folders = ", ".join(map(str, root.folders)) or "none (CGLSUITE_DATA is not set)"
    downloads = f"{root.cache / 'downloads'}" + ("; CGLSUITE_OFFLINE forbids new ones" if root.offline else "")
    yield properties([("data folders", folders), ("downloads", downloads)])
    yield ""
    yield heading("how to provide data")
    yield paragraph(
        f"Set CGLSUITE_DATA to the folder with your data sets, or to several folders separated by {os.pathsep!r}, which are searched in "
        "order. They are only read. A file that is in none of them is downloaded on first use if it has a public source. Some data sets "
        "are embedded and need no files.",
        first="  ",
        rest="  ",
    )
    yield ""
    yield heading("commands")
    yield properties(
        [
            ("cglsuite data list", "list what is here and what is missing, with sizes, licences and sources"),
            ("cglsuite data fetch NAME...", "download data sets now"),
            ("cglsuite data verify [NAME...]", "compare checksums, load the data and print their shapes"),
            ("cglsuite data statistics [--dataset NAME]", "compare published statistics with our own counts"),
            ("cglsuite show dataset NAME", "show the details of one data set"),
        ]
    )


def _check_known(catalogue: Catalogue, names: Iterable[str]) -> None:
    """Raise an error for an unknown name before any work begins."""
    for name in names:
        catalogue.dataset(name)


def _dataset_row(entry: Entry, presence: Presence) -> dict[str, Any]:
    spec: Any = entry.spec
    return {
        "name": entry.name,
        "provider": entry.record.distribution,
        "state": presence.state,
        "bytes": presence.size,
        "files": [str(path) for path in presence.files],
        "missing": presence.reason or None,
        "urls": list(presence.urls),
        "licence": spec.licence,
        "home": spec.home,
        "levels": list(spec.levels),
        "summary": spec.summary,
    }


def _origin(entry: Entry) -> tuple[str, str]:
    spec: Any = entry.spec
    return spec.licence, spec.home or "-"


def _searched_folders(root: DataRoot) -> str:
    if root.folders:
        return f"Searched: {', '.join(map(str, root.folders))}, and downloads in {root.cache}."
    return f"CGLSUITE_DATA is not set; only downloads in {root.cache} were searched (see `cglsuite data`)."


def _first_line(reason: str) -> str:
    return reason.splitlines()[0] if reason else ""


def _size(presence: Presence) -> str:
    return file_size(presence.size) if presence.files else "-"


def _counting_root(root: DataRoot) -> Any:
    """Return a data root that downloads nothing and records each file that it finds and whether the checksum of the file is known."""
    from pathlib import Path

    from cglsuite.base.datafiles import DataRoot

    class Counting(DataRoot):
        def __init__(self) -> None:
            super().__init__(root.folders, root.cache, offline=True)
            self.checked: dict[Path, bool] = {}

        def find(self, relative: str, *, sha256: str | None = None) -> Path | None:
            path = super().find(relative, sha256=sha256)
            if path is not None:
                self.checked[path] = self.checked.get(path, False) or sha256 is not None
            return path

    return Counting()


def _checksum_text(files: dict[Any, bool]) -> str:
    if not files:
        return "needs no files"
    known = sum(files.values())
    total = several(len(files), "file")
    return f"{total}, {'no checksum is' if not known else f'{known} checksums are' if known > 1 else '1 checksum is'} known" + (
        " and right" if known else ""
    )


def _shapes(loaded: Any) -> Iterator[str]:
    """Yield ``name [shape]`` for every array of a data set."""
    for field in dataclasses.fields(loaded) if dataclasses.is_dataclass(loaded) else ():
        shape = getattr(getattr(loaded, field.name), "shape", None)
        if shape is not None:
            yield f"{field.name} {list(shape)}"
    if isinstance(classes := getattr(loaded, "n_classes", None), int):
        yield f"{classes} classes"
