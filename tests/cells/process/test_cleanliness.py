"""A cell that leaves its process otherwise than it found it gets no result, is named, and what it did is undone."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import careless_methods
import numpy as np
import pytest
import scipy.sparse
import stored_records
import torch
from odd_methods import with_specs

from cglsuite import Catalogue, Seeds, load_catalogue
from cglsuite.base.traces import LEFT_RUNNING, SHARED, Traces, still_running
from cglsuite.cells import Store, resolve_cell, run_cell
from cglsuite.cells.process import CodeCensus, Watch, _versions
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import _unclean_record
from cglsuite.cells.spec import CellSpec

pytestmark = pytest.mark.plugins

TINY = {
    "dataset.n_nodes": 72,
    "dataset.n_classes": 6,
    "dataset.n_features": 40,
    "dataset.words": 5,
    "dataset.avg_degree": 4,
    "training.epochs": 1,
    "backbone.width": 6,
}
BY = "method {name!r} of odd 1.0 changed global state of the process: "


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    installed = load_catalogue(allow=["cglsuite", "cglsuite-node", "cglsuite-methods", "cglsuite-metrics"])
    return with_specs(installed, careless_methods.specs())


@pytest.fixture(autouse=True)
def _end_threads() -> Iterator[None]:
    yield
    careless_methods.END.set()
    for thread in threading.enumerate():
        if thread.name == "forever":
            thread.join()
    careless_methods.END.clear()


def resolve(catalogue: Catalogue, method: str) -> CellSpec:
    return resolve_cell(catalogue, "synthetic-csbm/class-il@begin-1", method, overrides=TINY, seeds=Seeds())


def run(catalogue: Catalogue, method: str, folder: Path) -> Record:
    return run_cell(resolve(catalogue, method), catalogue, Store(folder))


@pytest.fixture(scope="module")
def honest(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """What a method without fault gives when nothing ran before it."""
    record = run(catalogue, "careful", tmp_path_factory.mktemp("honest"))
    assert record.done, record.reason
    return record


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", careless_methods.ACTS)
def test_what_a_method_does_to_the_process_is_found_named_and_undone(
    catalogue: Catalogue, honest: Record, tmp_path: Path, name: str
) -> None:
    record = run(catalogue, name, tmp_path / "first")
    assert record.status in ("unclean", "failed")  # it may have harmed itself first
    assert record.reason is not None
    assert BY.format(name=name) + careless_methods.ACTS[name][1] in record.reason
    assert record.matrix == []
    assert record.provenance["unclean"]
    assert list((tmp_path / "first" / "checkpoints").glob("*")) == []
    after = run(catalogue, "careful", tmp_path / "second")
    assert (after.status, after.matrix) == ("done", honest.matrix)
    assert after.fingerprints() == honest.fingerprints()


def test_draws_from_global_states_outside_of_scopes_are_found(catalogue: Catalogue, tmp_path: Path) -> None:
    record = run(catalogue, "seeds-while-counting", tmp_path)
    assert record.status == "unclean"
    for whose in ("random", "numpy", "torch"):
        assert f"{whose}'s global" in str(record.reason)


def test_a_loader_of_data_is_named_not_the_method(catalogue: Catalogue, honest: Record, tmp_path: Path) -> None:
    """What is left before the method begins is laid to those whose code has run, and is undone."""
    data = dataclasses.replace(
        catalogue.dataset("synthetic-csbm"), name="careless-data", factory="careless_methods:careless_data", embedded=False
    )
    with_data = with_specs(catalogue, [data])
    cell = resolve_cell(
        with_data, "careless-data/class-il@begin-1", "bare", overrides=TINY | {"scenario.split": "per-class"}, seeds=Seeds()
    )
    record = run_cell(cell, with_data, Store(tmp_path / "first"))
    assert record.status == "unclean"
    assert record.reason is not None
    said = "dataset 'careless-data' of odd 1.0 changed global state of the process: torch's default dtype is now torch.float64"
    assert record.reason.startswith(said)
    assert "method 'bare'" not in record.reason
    after = run(catalogue, "careful", tmp_path / "second")
    assert (after.status, after.matrix) == ("done", honest.matrix)


@pytest.mark.parametrize("part", ["x", "edge_index"])
def test_a_dataset_changed_in_place_is_found(catalogue: Catalogue, part: str) -> None:
    """Tensors and arrays alike, whatever way leads to them."""
    data: dict[str, Any] = {"x": torch.ones(3), "edge_index": np.ones(3)}
    watch = Watch(resolve(catalogue, "careful"), catalogue)
    with watch.inside(data, "method"):
        data[part] *= 2
    assert watch.changes == [BY.format(name="careful") + "the dataset was changed in place"]


def test_a_pool_that_ends_with_its_method_is_no_fault(catalogue: Catalogue, honest: Record, tmp_path: Path) -> None:
    record = run(catalogue, "owns-pool", tmp_path)
    assert (record.status, record.matrix) == ("done", honest.matrix)


def test_code_that_was_replaced_before_is_no_fault_of_the_cell(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a reload in a notebook does, or a test."""
    from cglsuite.learning.method import Method

    monkeypatch.setattr(Method, "counters", lambda self: {"patched": 1})
    record = run(catalogue, "bare", tmp_path)
    assert (record.status, record.counters) == ("done", {"patched": 1})


def test_a_census_tells_what_was_replaced_and_puts_it_back() -> None:
    census, relu, plus = CodeCensus(), torch.nn.functional.relu, torch.Tensor.__add__
    assert census.undo() == []
    for owner, name in ((torch.nn.functional, "relu"), (torch.Tensor, "__add__")):
        setattr(owner, name, lambda self, other: self)
    assert census.undo() == ["torch.Tensor.__add__", "torch.nn.functional.relu"]
    assert torch.nn.functional.relu is relu
    assert torch.Tensor.__add__ == plus
    assert census.undo() == []


@pytest.mark.parametrize(
    ("owner", "name", "told"),
    [
        (json, "dumps", "json.dumps"),
        (json.encoder.JSONEncoder, "encode", "json.encoder.JSONEncoder.encode"),
        (dataclasses, "replace", "dataclasses.replace"),
        (Path, "read_bytes", "pathlib.Path.read_bytes"),
        (os.path, "exists", "posixpath.exists"),
    ],
)
def test_a_census_holds_what_records_are_written_with(owner: Any, name: str, told: str) -> None:
    census, before = CodeCensus(), getattr(owner, name)
    setattr(owner, name, lambda *args: "")
    try:
        assert census.undo() == [told]
        assert getattr(owner, name) is before
    finally:
        setattr(owner, name, before)


@pytest.mark.filterwarnings("ignore:Warning only once for all operators")
def test_a_census_tells_of_operators_that_were_given_another_kernel() -> None:
    census, library = CodeCensus(), torch.library.Library("aten", "IMPL")
    library.impl("argmax", lambda *args: torch.zeros(1), "CPU")
    assert census.undo() == ["torch.ops.aten.argmax.CPU"]
    assert int(torch.argmax(torch.tensor([1.0, 2.0, 0.0]))) == 1
    assert census.undo() == []


def test_rules_that_torch_registers_late_are_no_fault() -> None:
    """The first ``vmap`` loads some; in a process of its own, where nothing has called it before."""
    code = (
        "from cglsuite.cells.process import CodeCensus\nimport torch\ncensus = CodeCensus()\nknown = set(torch.library._impls)\n"
        "f = lambda x: torch.nn.functional.nll_loss(x[None].log_softmax(1), torch.tensor([0]))\n"
        "for _ in range(2):\n    torch.func.vmap(torch.func.grad(f))(torch.ones(2, 3))\n    print(census.undo())\n"
        "print(any(name.startswith('aten/') for name in set(torch.library._impls) - known))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\nTrue\n"


@pytest.mark.nightly
def test_what_libraries_replace_when_they_are_imported_is_no_fault() -> None:
    """PyTorch Geometric puts functions of its own into torch, late."""
    code = (
        "from cglsuite.cells.process import CodeCensus\ncensus = CodeCensus()\nimport torch\nbefore = torch.select\n"
        "import torch_geometric.hash_tensor, torch._dynamo\nassert torch.select is not before\nprint(census.undo())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_services_of_libraries_are_no_threads_left_behind() -> None:
    """A bar's monitor, and the process that Python's own multiprocessing keeps."""
    from tqdm import tqdm

    before = Traces(LEFT_RUNNING)
    with open(os.devnull, "w") as nowhere, tqdm(total=1, file=nowhere):
        context = multiprocessing.get_context("spawn")
        context.Lock()
        assert still_running(before, grace_s=0.1) == []


def test_closed_descriptors_are_found() -> None:
    """In a process of its own, whose output this is."""
    code = (
        "import os, sys\nfrom cglsuite.base.traces import SHARED, Traces\nbefore = Traces(SHARED)\n"
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\nos.close(0)\nsys.stdout.write('; '.join(before.changes()))"
    )
    message = subprocess.run([sys.executable, "-c", code], stdin=subprocess.PIPE, capture_output=True, text=True, check=True).stdout
    assert message == "file descriptor 0 was closed; file descriptor 2 was replaced"


def test_an_unrelated_variable_that_is_new_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Traces(SHARED)
    monkeypatch.setenv("SOME_LIBRARY_SAYS", "hello")
    assert before.changes() == []
    monkeypatch.setenv("TORCH_SHOW", "1")
    assert before.changes() == ["environment variables have changed (TORCH_SHOW)"]


OURS = {"name": "gcn", "distribution": "cglsuite", "version": "0.1.0"}
THEIRS = {"name": "odd", "distribution": "odd-methods", "version": "1.0"}


@pytest.mark.parametrize(
    ("used", "roles", "suspects"),
    [
        ({"method": THEIRS, "backbone": OURS}, ("method", "backbone"), "method 'odd' of odd-methods 1.0"),
        (
            {"method": THEIRS, "dataset": THEIRS},
            ("dataset", "method"),
            "dataset 'odd' of odd-methods 1.0 or method 'odd' of odd-methods 1.0",
        ),
        ({"method": THEIRS, "backbone": OURS}, ("backbone",), "backbone 'gcn' of cglsuite 0.1.0"),
        ({"method": THEIRS}, ("dataset",), "a plugin"),
    ],
)
def test_suspects_are_those_that_are_not_built_in(used: Any, roles: tuple[str, ...], suspects: str) -> None:
    """Of the roles whose code has run; built-in ones only if there are no others."""
    watch: Any = SimpleNamespace(_used=used)
    assert Watch._sentence(watch, ["a was replaced", "b"], roles) == f"{suspects} changed global state of the process: a was replaced; b"


@dataclasses.dataclass
class Held:
    """Data of every kind that a dataset may hold."""

    x: Any
    parts: Any = ()


def _deeply(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def test_every_kind_of_data_has_a_version() -> None:
    """Tensors count their changes, arrays are summed: also in sparse matrices, dataclasses, lists and mappings, four levels deep."""
    made: dict[str, Callable[[], tuple[Any, Any]]] = {
        "tensor": lambda: (t := torch.zeros(3), t),
        "array": lambda: (a := np.zeros(3), a),
        "transposed array": lambda: ((a := np.zeros((2, 3))).T, a),
        "array of truths": lambda: (a := np.zeros(3, dtype=np.bool_), a),
        "sparse matrix": lambda: (m := scipy.sparse.csr_matrix(np.eye(3)), m.data),
        "dataclass": lambda: (Held(t := torch.zeros(3)), t),
        "second field": lambda: (Held(None, a := np.zeros(3)), a),
        "list": lambda: ([1, t := torch.zeros(3)], t),
        "tuple of mappings": lambda: (({"a": 1}, {"b": (a := np.zeros(3))}), a),
        "four levels": lambda: (_deeply(t := torch.zeros(3), 4), t),
    }
    for kind, make in made.items():
        whole, part = make()
        before = list(_versions(whole))
        assert before, kind
        assert list(_versions(whole)) == before, kind
        part[0] = 1 if kind != "sparse matrix" else 7
        assert list(_versions(whole)) != before, kind
    assert list(_versions([_deeply(torch.zeros(3), 4), "text", None, 3])) == []  # deeper than that nothing is looked at
    assert list(_versions([np.empty(0), np.array([object()]), torch.inference_mode(torch.zeros)(1)])) == [0, 0, -1]


@pytest.mark.parametrize("status", ["failed", "diverged", "oom", "skipped"])
def test_what_ended_without_a_result_keeps_its_status_and_reason(status: str) -> None:
    """The changes are told besides; a result is discarded for them."""
    found = _unclean_record(stored_records.record(status=status, reason="it grew"), ["torch was patched", "a thread is left"])
    assert (found.status, found.reason) == (status, "it grew. In addition, torch was patched; a thread is left")
    assert found.provenance["unclean"] == ["torch was patched", "a thread is left"]
    done = _unclean_record(stored_records.record(), ["torch was patched"])
    assert done.status == "unclean"
    assert str(done.reason).startswith("torch was patched. The result was discarded")
    assert not list(done.matrix)
