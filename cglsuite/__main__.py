"""Run the command ``cglsuite`` as ``python -m cglsuite``."""

from __future__ import annotations

from cglsuite.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
