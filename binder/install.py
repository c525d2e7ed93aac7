"""Install the suite into a running notebook (Colab, say), from the checkout that this file lies in. What the host has already stays.

The first cell of every notebook runs it if the suite is missing and a checkout lies in the folder ``suite``::

    !git clone ADDRESS suite
"""

from __future__ import annotations

import site
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def packages(listing: str) -> list[str]:
    """The folders of our packages in a requirements file; pins are left out, for a host has its own torch."""
    return [line.removeprefix("-e").strip() for line in listing.splitlines() if line.startswith("-e")]


def main() -> None:
    """Install, and make what was installed importable in this process."""
    folders = packages((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    editable = [word for folder in folders for word in ("-e", folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *editable, "ipywidgets>=8.1"], cwd=ROOT, check=True)
    for folder in site.getsitepackages():
        site.addsitedir(folder)  # editable packages are found through .pth files, which are read at the start of a process


if __name__ == "__main__":
    main()
