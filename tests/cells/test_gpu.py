"""Cells on a CUDA device, wherever there is one: of each level and each family of methods one cell ends, twice with the same bits.

``python tests/benchmarks/gpu.py cells`` tries all combinations, kills cells and compares with the CPU. What a CUDA cell sets and keys is
tested without a GPU in ``test_cuda.py``, and where code mixes devices in ``test_pretend_device.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cglsuite import Catalogue, MethodSpec, load_catalogue
from cglsuite.cells import resolve_cell, run_cell
from cglsuite.cells.records.comparison import compare
from cglsuite.cells.spec import CellSpec
from cglsuite.cells.storage.store import Store
from cglsuite.testing import tiny_catalogue

pytestmark = pytest.mark.plugins

FAMILIES = ("bare", "ewc", "er-gnn", "hat", "continual-gnn", "evolve-gcn")
CASES = [
    *(("nodes/task-il", method) for method in FAMILIES),
    *(("links/task-il", method) for method in FAMILIES),
    *(("graphs/task-il", method) for method in FAMILIES if method != "evolve-gcn"),  # which works on nodes and links
    *(("targets/domain-il", method) for method in ("bare", "ewc")),
    ("nodes/class-il", "joint"),
    *((f"{items}/task-free", method) for items in ("nodes", "graphs") for method in ("bare", "er", "a-gem")),
]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return tiny_catalogue(load_catalogue())


def planned(catalogue: Catalogue, place: str, method: str) -> CellSpec:
    return resolve_cell(catalogue, f"testing-{place}@testing-1", method, device="cuda")


def test_every_family_is_tried_and_every_cell_can_be_planned_without_a_gpu(catalogue: Catalogue) -> None:
    assert {planned(catalogue, *case).device for case in CASES} == {"cuda"}
    category = {name: spec.category for name, spec in catalogue.specs(MethodSpec).items()}
    assert {category[method] for _, method in CASES} == set(category.values()) - {"other"}


@pytest.mark.gpu
@pytest.mark.parametrize(("place", "method"), CASES)
def test_a_cell_on_a_gpu_ends_twice_with_the_same_bits(catalogue: Catalogue, place: str, method: str, tmp_path: Path) -> None:
    first, second = (run_cell(planned(catalogue, place, method), catalogue, Store(tmp_path / name)) for name in ("first", "second"))
    assert first.done, first.reason
    assert first.cell["device"] == "cuda"
    assert compare(first, second, ("first", "second")) == []
