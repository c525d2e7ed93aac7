"""Portable numerics: what they compute, whom they refuse, and what they are in keys and records."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cglsuite import Catalogue, load_catalogue
from cglsuite.base.errors import SpecError, UsageError
from cglsuite.campaigns.campaign import Campaign, load_campaign
from cglsuite.campaigns.executors import LocalExecutor, RunOptions, run_campaign
from cglsuite.campaigns.executors.supervisor import arithmetic_of_workers
from cglsuite.campaigns.migrate import machine, rerun, rerun_and_compare, survey
from cglsuite.campaigns.overrides import Overrides
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells import portable
from cglsuite.cells.keys import cell_key, design_key, execution
from cglsuite.cells.plan import CellRequest, plan_cell
from cglsuite.cells.portable import device_and_numerics, process_numerics
from cglsuite.cells.records.record import Record
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.cli import main
from cglsuite.commons.submissions.review import Options, review
from cglsuite.testing import tiny_catalogue

TINY = "testing-nodes/class-il@testing-1"
METHOD = "testing-fine-tuning"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return tiny_catalogue()


def python(code: str, *, numerics: portable.NumericsWord = "portable", **variables: str) -> Any:
    """What ``code`` prints, as JSON, in a process with these numerics."""
    environment = portable.environment_of(numerics) | variables
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_kernels_compute_what_they_replace() -> None:
    """Values against float64 by NumPy, gradients and second gradients against finite differences, every form of a call."""
    found = python("""
        import json, numpy as np
        from cglsuite.cells.portable import prepare
        prepare("portable")
        import torch
        from torch.autograd import gradcheck, gradgradcheck
        torch.manual_seed(0)
        a, b, c = torch.randn(7, 5), torch.randn(5, 3), torch.randn(3)
        exact = a.double().numpy() @ b.double().numpy()
        off = {}
        off["mm"] = (a @ b).numpy() - exact
        off["transposed"] = (b.T @ a.T).numpy() - exact.T
        off["addmm"] = torch.addmm(c, a, b, beta=0.5, alpha=2).numpy() - (0.5 * c.double().numpy() + 2 * exact)
        off["no beta"] = torch.addmm(c * float("nan"), a, b, beta=0).numpy() - exact
        off["bmm"] = torch.bmm(a.expand(2, 7, 5), b.expand(2, 5, 3)).numpy()[1] - exact
        off["baddbmm"] = torch.baddbmm(c, a[None], b[None]).numpy()[0] - (c.double().numpy() + exact)
        off["strided"] = (torch.randn(14, 10)[::2, ::2].copy_(a) @ b).numpy() - exact
        off["vmap"] = torch.func.vmap(lambda row: row @ b)(a).numpy() - exact
        inside, positive = torch.rand(999) * 2 - 1, torch.rand(999) + 0.1
        for name, numpy_name, x in (("sqrt", "sqrt", positive), ("tan", "tan", inside), ("atan", "arctan", inside * 50),
                                    ("asin", "arcsin", inside), ("acos", "arccos", inside)):
            exact = getattr(np, numpy_name)(x.double().numpy())
            off[name] = (getattr(torch, name)(x).numpy() - exact) / np.maximum(1, np.abs(exact))
            off[name + "_"] = getattr(x.clone(), name + "_")().numpy() - getattr(torch, name)(x).numpy()
            off[name + ".out"] = getattr(torch, name)(x, out=torch.empty(0)).numpy() - getattr(torch, name)(x).numpy()
        s = torch.randn(4, 6, 6); s = s @ s.mT + 6 * torch.eye(6)
        lower, upper = torch.linalg.cholesky(s), torch.linalg.cholesky(s, upper=True)
        off["cholesky"], off["upper"] = (lower @ lower.mT - s).numpy() / 6, (upper.mT @ upper - s).numpy() / 6
        x, w = a.double().requires_grad_(), b.double().requires_grad_()
        others = {
            "gradients": gradcheck(lambda x, w: torch.addmm(c.double(), x, w, alpha=2).atan(), (x, w)),
            "second gradients": gradgradcheck(lambda x, w: (x @ w).square().add(1).sqrt(), (x, w)),
            "whole numbers": (torch.ones(2, 3, dtype=torch.int64) @ torch.ones(3, 2, dtype=torch.int64)).tolist() == [[3, 3], [3, 3]],
            "scalars": torch.sqrt(torch.tensor(4.0)).item() == 2 and torch.sqrt(torch.tensor(9)).item() == 3,
            "empty": (torch.zeros(2, 0) @ torch.zeros(0, 2)).tolist() == [[0, 0], [0, 0]],
        }
        try:
            torch.linalg.cholesky(-s)
            others["no factor"] = False
        except torch.linalg.LinAlgError:
            others["no factor"] = True
        print(json.dumps({"off": {k: float(np.abs(v).max()) for k, v in off.items()}, "others": others}))
    """)
    assert {name: value for name, value in found["off"].items() if not value < 1e-6} == {}
    assert set(found["others"].values()) == {True}, found["others"]


def test_what_has_no_portable_form_is_refused_by_name() -> None:
    said = python("""
        import json
        from cglsuite.cells.portable import prepare
        prepare("portable")
        import torch
        try:
            torch.nn.LSTM(5, 3)(torch.zeros(1, 4, 5))
        except Exception as error:
            print(json.dumps(str(error)))
    """)
    assert said == "torch.nn.LSTM has no portable form on this PyTorch: use native numerics"


def test_a_process_that_has_loaded_its_libraries_is_refused() -> None:
    with pytest.raises(UsageError, match=r"set before NumPy and PyTorch are loaded.*cglsuite run.*MKL_CBWR='COMPATIBLE'"):
        portable.prepare("portable")
    portable.prepare("native")
    said = python("""
        import json
        from cglsuite.cells.portable import prepare
        try:
            prepare("native")
        except Exception as error:
            print(json.dumps(str(error)))
    """)
    assert said.startswith("this process has portable numerics, so it cannot run a cell with native ones")
    late = """
        import json, os
        import numpy
        from cglsuite.cells import plan
        os.environ.update(NEW)
        from cglsuite.cells.portable import process_numerics
        print(json.dumps(process_numerics()))
    """
    late = textwrap.dedent(late).replace("NEW", repr(dict(portable.ENVIRONMENT)))
    assert python(late, numerics="native") == "native"  # NumPy was loaded before
    assert python(late.replace("import numpy\n", "").replace("from cglsuite.cells import plan\n", ""), numerics="native") == "portable"
    assert python(late, numerics="portable") == "portable"


def test_arithmetic_is_what_the_process_computes() -> None:
    """The same twice and with any number of threads; another one with other kernels; it leaves random numbers and threads alone."""
    code = """
        import json, random, numpy, torch
        from cglsuite.cells.portable import arithmetic
        before = torch.get_rng_state(), random.getstate(), torch.get_num_threads()
        first = arithmetic()
        arithmetic.cache_clear()
        after = torch.get_rng_state(), random.getstate(), torch.get_num_threads()
        same = bool((before[0] == after[0]).all()) and before[1:] == after[1:]
        print(json.dumps([first, arithmetic() == first, same]))
    """
    one, again, alone = python(code, numerics="native", OMP_NUM_THREADS="1")
    two = python(code, numerics="native", OMP_NUM_THREADS="2")
    compatible = python(code, numerics="native", OMP_NUM_THREADS="1", MKL_CBWR="COMPATIBLE")
    dispatch = "NPY_DISABLE_CPU_FEATURES"  # equal values are sorted in another order, although MKL and PyTorch compute as before
    sorts = python(code, numerics="native", OMP_NUM_THREADS="1", **{dispatch: portable.ENVIRONMENT[dispatch]})
    asked_first = python("import json; from cglsuite.cells.portable import arithmetic; print(json.dumps(arithmetic()))")
    assert again
    assert alone
    assert two[0] == one
    assert compatible[0] != one
    assert sorts[0] not in (one, compatible[0])
    assert asked_first == python(
        "import json; from cglsuite.cells.portable import arithmetic, prepare; prepare('portable'); print(json.dumps(arithmetic()))"
    )
    assert asked_first not in (one, compatible[0])  # the kernels count, not the environment alone


def test_numerics_are_in_the_key_only_where_they_are_portable(catalogue: Catalogue) -> None:
    native = resolve_cell(catalogue, scenario=TINY, method=METHOD)
    cell = resolve_cell(catalogue, scenario=TINY, method=METHOD, numerics="portable")
    assert "form" not in execution(native, catalogue)["numerics"]
    assert execution(cell, catalogue)["numerics"] == execution(native, catalogue)["numerics"] | {"form": "portable"}
    assert cell_key(cell, catalogue) != cell_key(native, catalogue)
    assert design_key(cell) == design_key(native)
    assert cell_key(dataclasses.replace(cell, numerics="native"), catalogue) == cell_key(native, catalogue)
    with pytest.raises(SpecError, match="portable numerics need a CPU; device = 'cuda'"):
        resolve_cell(catalogue, scenario=TINY, method=METHOD, numerics="portable", device="cuda")


@pytest.mark.parametrize(
    ("words", "again"),
    [
        ("cell --numerics portable", True),
        ("-v cell --method bare --numerics=portable", True),
        ("cell --numerics native --numerics portable", True),
        ("cell --numerics portable --numerics native", False),
        ("cell --method portable --numerics native", False),
        ("cell --method portable", True),
        ("cell --numerics auto --device cpu", True),
        ("cell --device cuda", False),
        ("cell --device=cuda --numerics auto", False),
        ("cell --device nonsense", False),
        ("cell --help", False),
        ("run cell --numerics portable", False),
        ("results --store cell --numerics=portable", False),
        ("", False),
    ],
)
def test_what_starts_the_command_anew(monkeypatch: pytest.MonkeyPatch, words: str, again: bool) -> None:
    """Only a cell of this process, and once: where something sets the variables otherwise in every process, it is refused."""
    started: list[Any] = []
    monkeypatch.setattr(portable, "_has_avx2", lambda: True)
    monkeypatch.setattr("cglsuite.cells.device.has_cuda", lambda: False)
    monkeypatch.delenv("CGLSUITE_DEVICE", raising=False)
    monkeypatch.setattr("os.execve", lambda *arguments: started.append(arguments))
    main._start_portable(words.split())
    assert bool(started) == again
    for _, command, environment in started:
        assert command[1:] == sys.orig_argv[1:]
        assert environment.items() >= portable.ENVIRONMENT.items()
        monkeypatch.setenv("CGLSUITE_RESTARTED", environment["CGLSUITE_RESTARTED"])
        main._start_portable(words.split())
    assert len(started) == again


def test_a_gpu_and_a_processor_without_avx2_have_native_numerics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "_has_avx2", lambda: True)
    assert [device_and_numerics(device, "auto")[1] for device in ("cpu", "cuda")] == ["portable", "native"]
    assert device_and_numerics("auto", "portable") == ("cpu", "portable")
    assert device_and_numerics("cpu", "auto", in_this_process=True)[1] == process_numerics()  # libraries are loaded
    monkeypatch.setattr(portable, "_has_avx2", lambda: False)
    assert device_and_numerics("cpu", "auto")[1] == process_numerics()  # a process that was started portable stays so


@pytest.mark.plugins
@pytest.mark.parametrize("avx2", [True, False])
def test_campaigns_that_name_no_numerics_have_those_of_the_device(avx2: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "_has_avx2", lambda: avx2)
    grid = {"scenarios": ["synthetic-csbm/class-il@example-1"], "methods": ["bare"]}
    campaign, catalogue = Campaign.parse({"name": "c", "grid": grid}), load_catalogue()

    def planned(**overrides: Any) -> str:
        (cell,) = plan_campaign(campaign, catalogue, Overrides(**overrides))
        return f"{cell.request.device} {cell.request.numerics}"

    assert planned(device="cpu") == ("cpu portable" if avx2 else "cpu native")
    assert planned(device="cuda") == "cuda native"
    assert planned(device="cpu", numerics="native") == "cpu native"
    assert planned(numerics="portable") == "cpu portable"


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[2].glob("reports/*/*.toml")), ids=lambda path: path.stem)
def test_campaigns_of_the_gallery_name_their_numerics(path: Path) -> None:
    """Their records count whatever a later version chooses."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    assert "grid" not in content or content["run"]["numerics"] in ("native", "portable")


@pytest.mark.plugins
def test_run_says_that_native_results_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Results of a campaign that named no numerics before portable ones became the default are not trained again without a word."""
    monkeypatch.setattr(portable, "_has_avx2", lambda: True)
    grid = {"scenarios": ["synthetic-csbm/class-il@example-1"], "methods": ["bare"]}
    content = {"name": "c", "grid": grid, "seeds": {"init": [0, 1]}, "set": {"training.epochs": 1}, "run": {"device": "cpu"}}
    store, catalogue = Store(tmp_path), load_catalogue()
    said: list[str] = []
    monkeypatch.setattr("cglsuite.campaigns.executors.campaign_run.say", said.append)
    run_campaign(Campaign.parse(content), catalogue, store, Overrides(numerics="native"), progress=False)
    assert said == []
    nothing_runs: Any = SimpleNamespace(run=lambda cells, store, options: len(cells))
    for only in ([], ["init_seed=1"]):
        run_campaign(Campaign.parse(content), catalogue, store, executor=nothing_runs, only=only, progress=False)
    assert said == [
        f"c: {n} of its cells have results with native numerics, which are not used because portable is the default: "
        'set numerics = "native" in [run] to continue with them'
        for n in (2, 1)
    ]


def cell(store: Path, *words: str) -> dict[str, Any]:
    """The record of a tiny cell that the command line runs."""
    command = (sys.executable, "-m", "cglsuite", "cell", "--scenario", TINY, "--method", METHOD, "--set", "training.epochs=2")
    done = subprocess.run([*command, "--store", str(store), "--json", "-q", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def test_the_command_starts_anew_for_portable_numerics_and_records_say_so(tmp_path: Path) -> None:
    native, record = cell(tmp_path, "--numerics", "native"), cell(tmp_path, "--numerics", "portable")
    assert cell(tmp_path, "--device", "cpu")["key"] == (record if device_and_numerics("cpu", "auto")[1] == "portable" else native)["key"]
    assert record["key"] != native["key"]
    assert record["design"] == native["design"]
    assert (record["cell"]["numerics"], record["environment"]["numerics"]["form"]) == ("portable", "portable")
    assert "numerics" not in native["cell"]
    for found, numerics in ((native, "native"), (record, "portable")):
        code = f"import json; from cglsuite.cells import portable as p; p.prepare({numerics!r}); print(json.dumps(p.arithmetic()))"
        assert found["environment"]["arithmetic"] == python(code, numerics=numerics)  # type: ignore[arg-type]
    assert Record.from_json(record).performance().shape == (4, 3)


@pytest.mark.nightly
@pytest.mark.plugins
def test_reruns_of_portable_records_are_portable(tmp_path: Path) -> None:
    """Those of a submission, and those of a migration, whose process is native: they are compared with what workers compute."""
    store, catalogue = Store(tmp_path / "store"), load_catalogue()
    request = CellRequest(
        scenario="synthetic-csbm/class-il@example-1", method="bare", overrides={"training.epochs": "1"}, numerics="portable"
    )
    planned = plan_cell(request, catalogue)
    record = rerun([planned], store, catalogue)[planned.key]
    assert record.done
    assert record.environment["arithmetic"] == arithmetic_of_workers("portable") != machine()["arithmetic"]
    (item,) = review(store.path, tmp_path / "results", catalogue, Options(sample=1)).items
    assert [(f.verdict, f.reason) for f in item.findings if f.check == "rerun"] == [("verified", "bit-identical")]
    core = {**record.provenance["core"], "source": "0" * 64}
    former = dataclasses.replace(record, key="0" * 64, provenance={**record.provenance, "core": core})
    old = Store(tmp_path / "old")
    old.put(former)
    (candidate,) = survey(old, catalogue, current=machine()).candidates
    assert rerun_and_compare(candidate, catalogue, Store(tmp_path / "scratch")) == []


@pytest.mark.plugins
def test_workers_have_the_numerics_of_their_cells(tmp_path: Path) -> None:
    """One store, one plan of either kind: each worker runs what it was started for."""
    grid = 'name = "c"\n[grid]\nscenarios = ["synthetic-csbm/class-il@example-1"]\nmethods = ["bare"]\n[set]\n"training.epochs" = 1\n'
    (tmp_path / "c.toml").write_text(grid)
    (tmp_path / "portable.toml").write_text(grid + '[run]\nnumerics = "portable"\n')
    for words in (("c.toml", "--numerics", "native"), ("c.toml", "--numerics", "portable"), ("portable.toml",)):
        command = (sys.executable, "-m", "cglsuite", "run", *words, "--no-reports", "--store", "store")
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    records = list(Store(tmp_path / "store").records())
    assert sorted(str(record.cell.get("numerics")) for record in records) == ["None", "portable"]
    plan = [
        planned
        for numerics in ("native", "portable")
        for planned in plan_campaign(load_campaign(tmp_path / "c.toml"), load_catalogue(), Overrides(numerics=numerics))
    ]
    assert {planned.key for planned in plan} == {record.key for record in records}
    both = Store(tmp_path / "both")
    assert LocalExecutor().run(plan, both, RunOptions(catalogue=load_catalogue(), progress=False)) == 0
    assert {record.key for record in both.records()} == {record.key for record in records}
