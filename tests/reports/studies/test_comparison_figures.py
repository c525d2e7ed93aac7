"""The figures of a comparison of methods: drawn the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import io
import pandas as pd
from cglsuite.reports.studies.comparison.page import rank_figure
from cglsuite.reports.kit.pictures import LIGHT
from cglsuite.stats.ranking import friedman

methods = ["bare", "lwf", "ewc", "mas", "gem", "joint"]
rows = [(m, block, i + (block * 7 + i * 3) % 5) for i, m in enumerate(methods) for block in range(6)]
found = friedman(pd.DataFrame(rows, columns=["method", "order", "value"]))
figure = rank_figure(found, LIGHT, title="ranks", order=methods)
lines = [line.get_xdata() for line in figure.axes[0].lines]
print([list(map(float, xs)) for xs in lines])
"""


@pytest.mark.nightly
def test_the_rank_diagram_does_not_depend_on_the_process() -> None:
    """Three processes at once, each of which hashes text in its own way."""
    given = {"stdout": subprocess.PIPE, "text": True}
    processes = [
        subprocess.Popen([sys.executable, "-c", CODE], env=os.environ | {"PYTHONHASHSEED": str(seed)}, **given) for seed in (1, 2, 3)
    ]
    found = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(found) == 1
    assert found.pop().count("[") > 6
