"""What every built-in preset gives to every built-in method, as digests in tests/protocols/presets.json. A command that writes them again.

    python tests/tools/presets.py

It prints the presets that have changed, with the methods; ``tests/protocols/test_presets_stay.py`` fails until what is committed is what
resolves. Whoever means to change a protocol gives the preset a new number instead, unless no record of the old one exists.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

from cglsuite.base.errors import NotApplicable
from cglsuite.base.hashing import digest
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.host import Catalogue, load_catalogue

FILE = Path(__file__).parents[1] / "protocols" / "presets.json"
BUILT_IN = ("node", "methods", "metrics", "skeleton", "drift", "link", "graph")


def built_in() -> Catalogue:
    """The built-in plugins, whatever else is installed."""
    return load_catalogue(allow=[f"cglsuite-{name}" for name in BUILT_IN])


def cells(catalogue: Catalogue, scenario: str) -> dict[str, CellSpec]:
    """Method to the cell that a preset resolves to with it, for every method that it is for."""
    found = {}
    for method in catalogue.names("method"):
        with contextlib.suppress(NotApplicable):
            found[method] = resolve_cell(catalogue, scenario, method)
    return found


def digests(of: Mapping[str, CellSpec]) -> str:
    """Each method with a digest of its cell's configuration: ``"bare=1f2e3d ewc=…"``."""
    return " ".join(f"{m}={digest({'backbone': cell.backbone, **cell.configuration})[:6]}" for m, cell in of.items())


def main() -> None:
    """Write the digests, and say what has moved."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    catalogue = built_in()
    now = {scenario: digests(cells(catalogue, scenario)) for scenario in catalogue.names("scenario")}
    for name in sorted(before.keys() | now.keys()):
        moved = set(before.get(name, "").split()) ^ set(now.get(name, "").split())
        if moved:
            print(f"{name}: {' '.join(sorted({entry.partition('=')[0] for entry in moved}))}")
    FILE.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
