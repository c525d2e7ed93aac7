"""Computes cells of a store again, with the code of this checkout, into another store: what ``cglsuite migrate --against`` compares with.

    python tests/tools/rerun.py STORE OTHER [--sample 14] [--seconds 2000] [KEY...]

Run it in a checkout of the commit that made the records, before a change or in a worktree; then, with the code after the change,
``cglsuite migrate STORE --against OTHER``. The cells are those named, or a sample over methods, levels and scenarios.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from cglsuite import load_catalogue
from cglsuite.campaigns.migrate import Candidate, _cell, choose, replanned
from cglsuite.cells.run import run_cell
from cglsuite.cells.storage.store import Store


def main() -> None:
    """Compute them, one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("keys", nargs="*", metavar="KEY")
    parser.add_argument("--sample", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=2000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    catalogue, other = load_catalogue(), Store(args.other)
    found = []
    for record in Store(args.store).records():
        if not record.done or (args.keys and record.key not in args.keys):
            continue
        planned, reason = replanned(record, catalogue)
        if planned is None or planned.key != record.key:
            print(f"left out  {record.label}: {reason or 'this code is not the one that made it'}", flush=True)
            continue
        found.append(Candidate(record=record, planned=planned, used={}, changes=frozenset()))
    for candidate in found if args.keys else choose(found, args.sample, args.seconds):
        made = run_cell(_cell(candidate.planned), catalogue, other)
        print(f"{made.status:9s} {candidate.seconds:7.1f} s then  {made.key[:12]}  {made.label}", flush=True)


if __name__ == "__main__":
    main()
