"""Write the lowest versions that the repository's packages admit, as constraints: what ``tox -e lowest`` installs.

Direct requirements are pinned to their lower bounds. What they pull in is left to pip, except for the clients of S3. torch stays at
the version of ``constraints.txt``: older ones have no build for every supported Python, and looser requests fetch other builds.

    python tests/tools/lowest.py lowest.txt
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from overlay import ROOT, requirements

__all__ = ["main", "pins"]

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?:>=|==)\s*(?P<version>[0-9][^,;\s]*)")
_PINNED = ("torch",)
#: What s3fs 2025.2 pulls in. Without these pins, pip tries hundreds of releases of botocore, for an hour or more.
_PULLED_IN = ("aiobotocore==2.19.0", "boto3==1.36.3", "botocore==1.36.3")


def pins(root: Path) -> list[str]:
    """One ``name==version`` per direct requirement, sorted; the highest of several lower bounds."""
    lowest: dict[str, str] = {}
    for wanted in requirements(root, leave_out=("dev", "lint", "docs", "text")):
        found = _REQUIREMENT.match(wanted)
        if found is None:
            raise SystemExit(f"{wanted!r} has no lower bound: write one in pyproject.toml")
        name, version = found["name"].lower(), found["version"]
        lowest[name] = max(lowest.get(name, version), version, key=_parts)
    for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, _, version = line.partition("==")
        if name.lower() in _PINNED:
            lowest[name.lower()] = version
    return sorted([*(f"{name}=={version}" for name, version in lowest.items()), *_PULLED_IN])


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def main() -> None:
    """Entry point."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    Path(sys.argv[1]).write_text("\n".join(pins(ROOT)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
