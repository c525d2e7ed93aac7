"""Audits the queries of every class-IL preset of nodes whose data are here: cglsuite/campaigns/reference/leaks.csv. A command.

    CGLSUITE_DATA=... python tests/tools/leaks.py [--only PART_OF_NAME]

A preset whose data are absent keeps the row that it has. Takes a few minutes.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import warnings
from pathlib import Path

from cglsuite import Seeds, load_catalogue
from cglsuite.base.errors import DataError
from cglsuite.cells.diagnostics import measure_leak
from cglsuite.cells.run import build_scenario
from cglsuite.cells.spec import resolve_scenario

FILE = Path(__file__).resolve().parents[2] / "cglsuite" / "campaigns" / "reference" / "leaks.csv"
FIELDS = ("scenario", "group", "chance", "alone", "grouped", "leak", "low", "high", "p")


def main() -> None:
    """Audit what can be audited, print and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="presets whose name contains this")
    only = parser.parse_args().only
    warnings.simplefilter("ignore")
    catalogue = load_catalogue()
    rows = {row["scenario"]: row for row in (csv.DictReader(FILE.open(encoding="utf-8")) if FILE.exists() else ())}
    for entry in catalogue.entries("scenario"):
        spec = entry.spec
        if (spec.level, spec.setting) != ("NC", "class-il") or only not in spec.name:  # type: ignore[attr-defined]
            continue
        try:
            scenario = resolve_scenario(catalogue, spec.name, {})
            stream = build_scenario(catalogue, scenario.spec, scenario.dataset_hyperparameters, Seeds(order=0, split=0))
        except DataError as error:
            print(f"{spec.name:45s} {str(error).splitlines()[0][:80]}", flush=True)
            continue
        found = measure_leak(stream)
        shown = {name: f"{value:.4f}" for name, value in dataclasses.asdict(found).items() if isinstance(value, float)}
        low, high = found.interval
        group = "task" if found.by_task else "all"
        row = {"scenario": spec.name, "group": group, **shown, "low": f"{low:.4f}", "high": f"{high:.4f}"}
        rows[spec.name] = {name: row[name] for name in FIELDS}
        print(*rows[spec.name].values(), flush=True)
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows) if name in catalogue.names("scenario"))


if __name__ == "__main__":
    main()
