"""What every built-in plugin declares, as digests in tests/packaging/declared.json. A command that writes them again.

    python tests/tools/declared.py

It prints the entries that have changed; ``tests/packaging/test_declarations_stay.py`` fails until what is committed is what is declared.
A digest covers every field of a spec but the prose about it; of scenarios the summaries and notes too, which follow from their settings.
Empty fields are left out, so that a field that specs gain moves no digest of those that do not use it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cglsuite.base.hashing import digest
from cglsuite.host import load_catalogue
from cglsuite.host.discovery import BUILT_IN
from cglsuite.specs import KINDS

FILE = Path(__file__).parents[1] / "packaging" / "declared.json"
_PROSE = {"summary", "citation", "doc", "effect", "note", "version"}


def declarations() -> dict[str, dict[str, str]]:
    """Distribution to ``"method ewc"`` to the digest of what it declares, for the built-in distributions that are installed."""
    catalogue = load_catalogue(allow=sorted(BUILT_IN))
    found: dict[str, dict[str, str]] = {}
    for kind in KINDS:
        for entry in catalogue.entries(kind):
            declared = _without(entry.describe(), _PROSE - {"summary", "note"} if kind == "scenario" else _PROSE)
            found.setdefault(entry.record.distribution, {})[f"{kind} {entry.name}"] = digest(declared)[:10]
    return found


def _without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(inner, names) for key, inner in value.items() if key not in names and inner}
    return [_without(inner, names) for inner in value] if isinstance(value, list) else value


def main() -> None:
    """Write the digests, and say what has moved."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    now = declarations()
    for distribution, entries in now.items():
        known = before.get(distribution, {})
        for name in sorted(known.keys() | entries.keys()):
            if known.get(name) != entries.get(name):
                print(f"{distribution}: {name}")
    FILE.write_text(json.dumps({**before, **now}, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
