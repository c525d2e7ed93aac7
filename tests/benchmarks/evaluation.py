"""What an evaluation costs over a plain loop's, on a graph of CoraFull's size under the edge policy `none`. A command, not a test.

    python tests/benchmarks/evaluation.py [--tasks 35] [--turns 25]

Both ask every task once after the last one, in turn within one process, so that a busy machine slows both alike; the ratio of their
shortest times and that of their medians are printed, with the forward passes alone and with the first evaluation, which makes the graphs
of the queries. Processor time. The suite asks the validation items too, checks and decodes every answer and scores by the oracle.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
from overhead import _cell, plain_tasks, split_of

LIMIT = 1.2


def main() -> None:
    """Take the turns and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=0, help="tasks at most; 0 = all 35")
    parser.add_argument("--turns", type=int, default=25)
    args = parser.parse_args()
    args.method, args.epochs = "bare", 1
    warnings.simplefilter("ignore")
    import plain
    import torch

    from cglsuite import load_catalogue
    from cglsuite.cells.run import _keep_freed_memory, _load, build_stream, make_runner, numerics

    catalogue = load_catalogue()
    cell = _cell(catalogue, args)
    _keep_freed_memory()
    data = _load(catalogue, cell.scenario.dataset, tuple(sorted(cell.dataset_hyperparameters.items())))
    stream = build_stream(cell, catalogue)
    with numerics(cell), torch.no_grad():
        tasks = plain_tasks(data, stream.tasks, split_of(cell, data, stream.tasks))
        weights, loop, runner, n = plain.weights_of(tasks, data.n_classes), plain.Run(), make_runner(cell, catalogue, stream), len(tasks)
        for k in range(n):
            runner._arrive(stream.view(k))
            stream.forget()
        started = time.process_time()
        runner._evaluate(n)
        first = time.process_time() - started
        groups = runner._queries(n)
        turns = {
            "loop": lambda: loop.evaluate(tasks, weights),
            "suite": lambda: runner._evaluate(n),
            "loop, forward": lambda: [plain.Pass.of(task, *weights).out for task in tasks],
            "suite, forward": lambda: [runner.method.predict(group.query) for group in groups],
        }
        seconds: dict[str, list[float]] = {name: [] for name in turns}
        for _ in range(args.turns):
            for name, turn in turns.items():
                started = time.process_time()
                turn()
                seconds[name].append(time.process_time() - started)
    for name, those in seconds.items():
        print(f"{name:15} {1e3 * min(those):7.2f} ms at least, {1e3 * median(those):7.2f} in the median, {n} tasks")
    print(f"suite, first    {1e3 * first:7.2f} ms, with the graphs of the queries")
    for what in ("", ", forward"):
        ratios = [pick(seconds[f"suite{what}"]) / pick(seconds[f"loop{what}"]) for pick in (min, median)]
        print(
            f"suite / loop{what}: {ratios[0]:.3f} of the shortest, {ratios[1]:.3f} of the medians" + ("" if what else f" (at most {LIMIT})")
        )


if __name__ == "__main__":
    main()
