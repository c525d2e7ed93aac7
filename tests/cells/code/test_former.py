"""The former rule for user code: the digests that it gave, and where it vouches for nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cglsuite.cells.code.sources import former_digest

FILES = {
    "fg/__init__.py": "from .method import M\nfrom . import effects\n",
    "fg/effects.py": "import fg.helper\nfg.helper.N = 3\n",
    "fg/helper.py": '''"""Words."""
import fg_beside
N: int = 2

def scale(x: int) -> int:
    """Doc."""
    if x is None:
        raise ValueError(f"no {x}")
    return x * N + fg_beside.z()
''',
    "fg/method.py": """import torch
from .helper import scale
from . import helper as h

class M(torch.nn.Module):
    def forward(self, x):
        from fg.late import later
        return scale(x) + later() + h.N

    def __repr__(self):
        return 'M'
""",
    "fg/late.py": "from numpy import pi\nNAME = __name__\n\ndef later():\n    return pi\n",
    "fg_beside.py": "def z():\n    return 2\n",
}
DIGESTS = {
    "fg.method:M": "b00da2ee4d72e50a6bfe854a094167766b09eebb0cc14d94ecba82f7839304b6",
    "fg:M": "b00da2ee4d72e50a6bfe854a094167766b09eebb0cc14d94ecba82f7839304b6",
    "fg.helper:scale": "4e1d5115ef5250f64b6d61e56d24f611c9252e943b281adf909c494801f52987",
    "fg.late": "63bf9392751df6be95fbcb7f8cbe877f2612ebb6da1d8fd3a8e6c142d606e0f4",
    "fg_beside:z": "b63af9ea0b4dbb11bd615ca565b365f22f30d67331a32f5318ca9bbb7a184af2",
}
"""As the code printed them that had this rule for all keys."""


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(files: dict[str, str], folder: Path = tmp_path) -> None:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        importlib.invalidate_caches()

    put(FILES)
    yield put
    for name in [name for name in sys.modules if name.partition(".")[0] in ("fg", "fg_beside")]:
        del sys.modules[name]


@pytest.mark.usefixtures("put")
def test_the_digests_are_those_of_the_former_rule() -> None:
    assert {root: former_digest((root,)) for root in DIGESTS} == DIGESTS


@pytest.mark.parametrize(
    ("name", "old", "new", "free"),
    [
        ("fg/helper.py", "Words.", "Other words.", True),
        ("fg/helper.py", "x: int", "x: float", True),
        ("fg/helper.py", "no {x}", "{x} is none", True),
        ("fg/method.py", "'M'", "'N'", True),
        ("fg/helper.py", "x * N", "x * N * 1", False),
        ("fg/effects.py", "3", "4", False),
        ("fg_beside.py", "2", "3", False),
    ],
)
def test_an_edit_counts_where_it_did(put: Callable[..., None], name: str, old: str, new: str, free: bool) -> None:
    put({name: FILES[name].replace(old, new)})
    assert (former_digest(("fg.method:M",)) == DIGESTS["fg.method:M"]) is free


def test_it_vouches_for_nothing_where_it_passed_over_code(
    put: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another library of the user's, a compiled module, and what computed names lead to."""
    root = ("fg.late",)
    put({"fg/late.py": "import fg_elsewhere\nx = 1\n"})
    assert former_digest(root) is not None
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    put({"fg_elsewhere.py": "x = 1\n"}, tmp_path / "lib")
    assert former_digest(root) is None
    put({"fg/late.py": "from . import fast\nx = 1\n"})
    assert former_digest(root) is not None
    put({"fg/fast.pyc": ""})
    assert former_digest(root) is None
    put({"fg/late.py": "import importlib, os\nimportlib.import_module(os.environ['X'])\n"})
    assert former_digest(root) is None
    put({"fg/late.py": "x = 1\n"})
    assert former_digest(root) is not None
    assert former_digest(("fg_absent:M",)) is None
