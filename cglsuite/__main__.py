"""``python -m cglsuite`` is the command ``cglsuite``."""

from __future__ import annotations

from cglsuite.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
