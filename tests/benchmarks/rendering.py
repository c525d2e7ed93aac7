"""How long a campaign's site takes to render, and how large its pages are. A command, not a test.

    python tests/benchmarks/rendering.py [--out DIR] [--seeds 5] [--cores 2]

A campaign of 200 cells (four scenarios × ten methods × five seeds) with six reports is planned as usual; its records are made instead of
trained. Then `cglsuite report` does what it does for anyone: six notebooks, each in a kernel of its own, and the index. The bounds: two
minutes on two cores, 3 MB a page. Printed beside the wall time are the processor time of all processes, which other work on the machine
does not lengthen, and the load when it began. A second call, with nothing changed, keeps every page. Needs the built-in plugins, no data.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from made_records import fill_store

from cglsuite.campaigns.campaign import load_campaign
from cglsuite.host import load_catalogue
from cglsuite.reports.rendering.notebook import LARGEST_PAGE, RenderedReport
from cglsuite.reports.site.index import render_campaign

LONGEST_S = 120.0
REPORTS = ("campaign_report", "leaderboard", "method_comparison", "category_ranks", "order_sensitivity", "sensitivity")
CAMPAIGN = """\
name = "rendering"
title = "Ten methods in four scenarios"
description = "Made-up records: for the time that rendering takes."
[grid]
scenarios = ["cora/task-il@begin-1", "cora/class-il@begin-1", "citeseer/task-il@begin-1", "citeseer/class-il@begin-1"]
methods = ["bare", "ewc", "lwf", "mas", "twp", "replay", "er-gnn", "gem", "continual-gnn", "joint"]
[seeds]
order = {seeds}
init = {seeds}
[run]
device = "cpu"
"""


def written(folder: Path, reports: list[str], seeds: int) -> Path:
    """The campaign's file."""
    path = folder / "rendering.toml"
    tables = "".join(f'[[report]]\nnotebook = "{name}"\n' for name in reports)
    path.write_text(CAMPAIGN.format(seeds=list(range(seeds))) + tables, encoding="utf-8")
    return path


def processor_s() -> float:
    """Processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(campaign: Path, store: Path, out: Path) -> tuple[list[RenderedReport], float, float]:
    """Render; what became of it, the wall time and the processor time (s)."""
    wall, processor = time.monotonic(), processor_s()
    rendered = render_campaign(campaign, store=store, out=out)
    return rendered, time.monotonic() - wall, processor_s() - processor


def measure(folder: Path, seeds: int) -> bool:
    """Make the records, render twice, print; whether all bounds are kept."""
    catalogue = load_catalogue()
    known = {entry.name for entry in catalogue.entries("notebook")}
    reports = [name if name in known else "campaign_report" for name in REPORTS]
    campaign, store, out = written(folder, reports, seeds), folder / "store", folder / "site"
    plan = fill_store(load_campaign(campaign), catalogue, store)
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"{len(plan)} cells, {len(reports)} reports, {cores} cores, load {load:.1f} before", flush=True)
    rendered, wall, processor = timed(campaign, store, out)
    again, wall_again, _ = timed(campaign, store, out)
    sizes = {path.name: path.stat().st_size for path in sorted(out.glob("*.html"))}
    for report in rendered:
        print(f"{report.path.name:34} {report.status:6} {report.seconds:6.1f} s {report.reason}")
    for name, size in sizes.items():
        print(f"{name:34} {size / 1e6:6.2f} MB")
    print(f"all: {wall:.1f} s wall, {processor:.1f} s of processors (bound {LONGEST_S:.0f} s on two cores); again: {wall_again:.1f} s")
    print(f"largest page {max(sizes.values()) / 1e6:.2f} MB (bound {LARGEST_PAGE / 1e6:.0f} MB)")
    done = all(report.done for report in [*rendered, *again])
    return done and wall <= LONGEST_S and max(sizes.values()) < LARGEST_PAGE


def main() -> int:
    """Exit status 1 where a report failed or a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="an empty folder for campaign, records and pages; default: a temporary one")
    parser.add_argument("--seeds", type=int, default=5, help="repetitions of every method in every scenario")
    parser.add_argument("--cores", type=int, default=2, help="how many of this machine's cores to use")
    words = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: words.cores])
    if words.out is not None:
        words.out.mkdir(parents=True, exist_ok=True)
        return 0 if measure(words.out, words.seeds) else 1
    with tempfile.TemporaryDirectory() as folder:
        return 0 if measure(Path(folder), words.seeds) else 1


if __name__ == "__main__":
    sys.exit(main())
