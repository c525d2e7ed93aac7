"""What every built-in preset gives to every built-in method, as digests in tests/protocols/presets.json. A command that writes them again.

    python tests/tools/presets.py

It prints the presets that have changed, with the methods; ``tests/protocols/test_presets_stay.py`` fails until what is committed is what
resolves. Whoever means to change a protocol gives the preset a new number instead, unless no record of the old one exists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from cglsuite.cells import resolve_cell
from cglsuite.errors import NotApplicable
from cglsuite.hashing import digest
from cglsuite.host import Catalogue, load_catalogue

FILE = Path(__file__).parents[1] / "protocols" / "presets.json"
BUILT_IN = ("node", "methods", "metrics", "skeleton", "drift", "link", "graph")


def built_in() -> Catalogue:
    """The built-in plugins, whatever else is installed."""
    return load_catalogue(allow=[f"cglsuite-{name}" for name in BUILT_IN])


def digests(catalogue: Catalogue) -> dict[str, str]:
    """Preset to a digest of its configuration for every method that it is for: ``"bare=1f2e3d ewc=…"``."""
    return {scenario: " ".join(_of_preset(catalogue, scenario)) for scenario in catalogue.names("scenario")}


def _of_preset(catalogue: Catalogue, scenario: str) -> Iterator[str]:
    for method in catalogue.names("method"):
        try:
            cell = resolve_cell(catalogue, scenario, method)
        except NotApplicable:
            continue
        yield f"{method}={digest({'backbone': cell.backbone, **cell.configuration})[:6]}"


def main() -> None:
    """Write the digests, and say what has moved."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    now = digests(built_in())
    for name in sorted(before.keys() | now.keys()):
        moved = set(before.get(name, "").split()) ^ set(now.get(name, "").split())
        if moved:
            print(f"{name}: {' '.join(sorted({entry.partition('=')[0] for entry in moved}))}")
    FILE.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
