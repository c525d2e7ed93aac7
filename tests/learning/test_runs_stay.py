"""No method gives other numbers by accident: losses, matrices, memory and sizes of short runs are what is committed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import FILE, runs

pytestmark = pytest.mark.plugins
COMMITTED: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
STREAMS = sorted({name.partition(":")[0] for name in COMMITTED["runs"]})
#: Rounding of another processor moves a loss by less, an error of real targets too, and no answer.
RELATIVE, ABSOLUTE, ANSWERS = 1e-3, 1e-5, 0.005


@pytest.mark.skipif(torch.__version__.partition("+")[0] != COMMITTED["torch"], reason="another release of torch may draw other numbers")
@pytest.mark.parametrize("stream", STREAMS)
def test_runs_give_what_is_committed(stream: str) -> None:
    """A change that is meant is written by ``python tests/tools/tiny_runs.py``. A method that is new may be written later."""
    here = {name: run for name, run in runs() if name.partition(":")[0] == stream}
    committed = {name: facts for name, facts in COMMITTED["runs"].items() if name.partition(":")[0] == stream}
    assert committed.keys() <= here.keys()
    for name, facts in committed.items():
        found = here[name]()
        np.testing.assert_allclose(found["losses"], facts["losses"], rtol=RELATIVE, atol=ABSOLUTE, err_msg=name)
        np.testing.assert_allclose(found["matrix"], facts["matrix"], rtol=0, atol=ANSWERS, err_msg=name)
        for part in ("memory", "parameters", "counters"):
            assert found[part] == facts[part], (name, part)


def test_no_method_does_what_fine_tuning_does() -> None:
    """Else its numbers would not notice when it stops working."""
    for stream in STREAMS:
        bare = COMMITTED["runs"][f"{stream}: bare"]
        others = [facts for name, facts in COMMITTED["runs"].items() if name.startswith(f"{stream}: ") and not name.endswith(": bare")]
        assert all((facts["losses"], facts["matrix"]) != (bare["losses"], bare["matrix"]) for facts in others), stream
