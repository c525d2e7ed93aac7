"""How long Hits@K takes over many links and pairs without one, and what the oracle adds. A command, not a test.

    python tests/benchmarks/hits.py [--links 100000] [--pairs 100000] [--k 50] [--tasks 50] [--repetitions 20]

``hits_at`` is one task's performance: the target is 0.2 s for 100,000 links against 100,000 pairs on one CPU thread. ``grade`` is the
oracle's whole evaluation after a task: all links, spread over the tasks, each task against the same pairs. For contrast the same share by
NumPy alone; the values must be equal.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

TARGET_S = 0.2


def measured(call: Callable[[], Any], repetitions: int) -> tuple[Any, list[float]]:
    """What ``call`` gives, and the seconds of every repetition in ascending order."""
    seconds = []
    for _ in range(repetitions):
        started = time.perf_counter()
        value = call()
        seconds.append(time.perf_counter() - started)
    return value, sorted(seconds)


def main() -> None:
    """Measure, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("links", 100_000), ("pairs", 100_000), ("k", 50), ("tasks", 50), ("repetitions", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()

    import numpy as np
    import torch

    from cglsuite.streams import Oracle
    from cglsuite.streams.measures.hits import hits_at
    from cglsuite.streams.oracle import EVERY_TASK

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    links, pairs = torch.randn(args.links, generator=generator) + 2, torch.randn(args.pairs, generator=generator)

    def by_numpy() -> float:
        threshold = np.partition(pairs.numpy(), -args.k)[-args.k]
        return float((links.numpy() > threshold).mean())

    started = time.perf_counter()
    hits_at(args.k, links, pairs)
    print(f"first call, OGB imported: {time.perf_counter() - started:.2f} s")
    share, seconds = measured(lambda: hits_at(args.k, links, pairs), args.repetitions)
    expected, plain = measured(by_numpy, args.repetitions)
    print(f"hits_at, {args.links:,} links, {args.pairs:,} pairs, K = {args.k}: {share:.5f} (NumPy: {expected:.5f})")
    print(f"  median {seconds[len(seconds) // 2]:.4f} s, longest {seconds[-1]:.4f} s; NumPy alone: {plain[len(plain) // 2]:.4f} s")

    order = torch.randperm(args.links + args.pairs, generator=generator)
    of = torch.cat([torch.arange(args.links) % args.tasks, torch.full((args.pairs,), EVERY_TASK)])[order]
    given = torch.cat([links, pairs])[order].unsqueeze(1)
    oracle = Oracle(1, "hits", args.k)
    oracle.deposit("all", (of >= 0).unsqueeze(1), of, torch.ones_like(of, dtype=torch.bool))
    allowed = {"all": torch.tensor([True])}
    (tested, _), graded = measured(lambda: oracle.grade({"all": given}, allowed), max(args.repetitions // 4, 1))
    mean = sum(score.performance for score in tested.values()) / len(tested)
    print(f"grade, {args.tasks} tasks: median {graded[len(graded) // 2]:.3f} s, {graded[len(graded) // 2] / args.tasks:.4f} s per task")
    agree = abs(share - expected) < 1e-9 and (args.links % args.tasks or abs(mean - expected) < 1e-6)
    met = seconds[len(seconds) // 2] < TARGET_S
    print(f"target {TARGET_S} s per task: {'met' if met else 'MISSED'}; values {'agree' if agree else 'DIFFER'}")
    if not (agree and met):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
