"""The suite from Python: data in memory, classes from notebooks and modules, and what a study offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from html_shape import Shape
from torch_geometric.data import Data

import cglsuite as cgl
from cglsuite.base.errors import DataError, UsageError
from cglsuite.study.classes import as_plugin_file
from cglsuite.study.data import as_data_file

pytestmark = pytest.mark.plugins
FAST = {"training.epochs": 2}


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CGLSUITE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", list(sys.path))


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 6
    pairs = rng.integers(0, 120, (2, 300))
    return {
        "x": (np.eye(6)[y] + rng.normal(size=(120, 6))).astype(np.float32),
        "edge_index": np.concatenate([pairs, pairs[::-1]], 1),
        "y": y,
    }


def graph() -> Data:
    return Data(**{name: torch.from_numpy(values) for name, values in arrays().items()})


def test_own_data_in_memory_beside_a_built_in_data_set(tmp_path: Path) -> None:
    study = cgl.run(
        ["bare", "er-gnn"], graph(), ["task-il@begin-1", "class-il@cglb-1"], orders=3, overrides=FAST, name="photo", progress=False
    )
    assert study.outcome.counts == {"done": 12}
    assert repr(study) == "<Study of bare, er-gnn on photo/task-il@begin-1, photo/class-il@cglb-1: 12 done>"
    frame = study.frame
    assert set(frame["dataset"]) == {"photo"}
    assert sorted(frame["order_seed"].unique()) == [0, 1, 2]
    means = study.means()
    assert means["n"].tolist() == [3, 3, 3, 3]
    per_method = frame[frame["scenario"] == "photo/task-il@begin-1"].groupby("method")["average_performance"].mean()
    assert means["mean"].tolist()[:2] == pytest.approx(per_method.tolist())
    tests = study.compare(against="bare")
    assert list(tests.columns) == ["first", "second", "verdict", "estimate", "low", "high", "p_adjusted", "n", "scenario"]
    assert tests[["first", "second"]].to_numpy().tolist() == [["er-gnn", "bare"]] * 2
    whole = study.compare(against="bare", details=True)
    assert whole[tests.columns].equals(tests)
    assert whole["paired"].all()
    said = str(study)
    assert said.startswith("Study of bare, er-gnn on photo/task-il@begin-1, photo/class-il@cglb-1: 12 done\n\nphoto · ")
    assert said.count("performance, %\n  bare    ") == 2
    assert all(f"{100 * mean:.1f}  (" in said for mean in means["mean"])
    assert "differ" in said
    shown = Shape(study._repr_html_()).text
    assert "average performance, %" in shown
    assert all(f"{100 * mean:.1f}" in shown for mean in means["mean"])
    assert shown.index("differ") < shown.index("average performance, %"), "the sentences come first"
    long = study.long
    assert list(long.columns[-3:]) == ["stage", "task", "performance"]
    last = long[long["stage"] == long.groupby("key")["stage"].transform("max")].groupby("key")["performance"].mean()
    assert last[frame["key"]].tolist() == pytest.approx(frame["average_performance"].tolist())
    study.figure("curves", scenario="photo/class-il@cglb-1").savefig(tmp_path / "curves.pdf")
    assert b"/FontFile2" in (tmp_path / "curves.pdf").read_bytes()
    with pytest.raises(UsageError, match=r"scenario = '': expected one of photo/"):
        study.figure("curves")
    axes = study.plot().axes
    assert [a.get_title() for a in axes] == ["photo · class-IL · CGLB 1", "photo · task-IL · BeGin 1"]
    assert [a.get_xlabel() for a in axes] == ["average performance, %"] * 2
    assert {a.xaxis.get_major_formatter()(0.25) for a in axes} == {"25"}
    png, size = study.plot()._repr_png_()
    assert png.startswith(b"\x89PNG")  # Jupyter shows it without pyplot
    assert size["width"] > size["height"] > 0
    assert len(study.curves().pictures) == 3  # a legend, and a figure per protocol
    assert all(len(a.collections[0].get_offsets()) == 3 for a in axes)


@pytest.mark.nightly
def test_the_same_content_is_the_same_cell(tmp_path: Path) -> None:
    """As PyG object, arrays, file and NodeData; a second study reads the store."""
    files = [as_data_file(given, "photo") for given in (graph(), arrays())]
    assert files[0] == files[1]
    first = cgl.run("bare", arrays(), overrides=FAST, name="photo", progress=False)
    second = cgl.run("bare", str(files[0]), overrides=FAST, progress=False)
    assert [r.key for r in first.records] == [r.key for r in second.records]
    assert second.records[0].timings_s == first.records[0].timings_s  # it was read, not run
    stream = cgl.build_stream("class-il@cglb-1", arrays(), name="photo")
    assert len(stream) == 3  # type: ignore[arg-type]
    assert repr(stream.view(1)).startswith("<TaskView of task 2 of 3: ")  # type: ignore[union-attr]
    assert as_data_file(cgl.load_dataset("synthetic-csbm", n_nodes=200), "x") == as_data_file(
        cgl.load_dataset("synthetic-csbm", n_nodes=200), "x"
    )


@pytest.mark.nightly
def test_data_sets_of_libraries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that comes with PyG itself; on the command line too."""
    from cglsuite.cli import main

    study = cgl.run(
        "bare", "pyg:KarateClub", "task-il@begin-1", overrides={**FAST, "scenario.split_ratio": [0.5, 0.25, 0.25]}, progress=False
    )
    assert study.outcome.counts == {"done": 1}
    assert study.frame["dataset"].tolist() == ["karateclub"]
    assert main.run(["show", "dataset", "karateclub", "--data", "pyg:KarateClub"]) == 0
    assert "34 nodes, 156 edges, 34 features, 4 classes" in capsys.readouterr().out
    with pytest.raises(UsageError, match="has no KarateClob; did you mean KarateClub"):
        cgl.run("bare", "pyg:KarateClob", progress=False)
    with pytest.raises(UsageError, match="KarateClub is a single data set, which takes no name"):
        cgl.run("bare", "pyg:KarateClub/x", progress=False)


MODULE = '''
import cglsuite as cgl
from {stem}_helper import factor

class {name}(cgl.Method):
    """Decays weights."""
    hyperparameters = {{"weight": 0.5}}
    def loss(self, batch):
        return super().loss(batch) + factor() * self.hyperparameters["weight"] * sum(p.square().sum() for p in self.model.parameters())
'''


@pytest.mark.nightly
def test_a_class_of_a_module_is_named_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stem = f"own_{os.getpid()}"
    (tmp_path / f"{stem}.py").write_text(MODULE.format(stem=stem, name="WeightDecay"))
    (tmp_path / f"{stem}_helper.py").write_text("def factor():\n    return 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    method = __import__(stem).WeightDecay
    study = cgl.run(["bare", method], arrays(), overrides=FAST, name="photo", progress=False)
    assert study.outcome.counts == {"done": 2}
    bare, own = (next(r for r in study.records if r.cell["method"] == name) for name in ("bare", "weight-decay"))
    assert own.matrix != bare.matrix
    assert own.cell["configuration"]["method.weight"] == 0.5
    assert "PYTHONPATH" not in os.environ or str(tmp_path) not in os.environ["PYTHONPATH"].split(os.pathsep)


def test_what_was_planned_is_trained_whatever_happens_to_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of the second method is edited while the first is trained. Afterwards the edit is another cell."""
    text = "import cglsuite as cgl\nclass {name}(cgl.Method):\n    def loss(self, batch): return super().loss(batch) * {factor}\n"
    first, second = (tmp_path / f"planned_{one}_{os.getpid()}.py" for one in ("a", "b"))
    first.write_text(text.format(name="First", factor=1.0))
    second.write_text(text.format(name="Second", factor=1.0))
    monkeypatch.syspath_prepend(str(tmp_path))
    methods = [__import__(first.stem).First, __import__(second.stem).Second]

    class Editor(cgl.cells.Observer):
        def cell_started(self, cell: Any) -> None:
            second.write_text(text.format(name="Second", factor=-50.0))

    study = cgl.run(methods, arrays(), overrides={"training.epochs": 3}, name="photo", progress=False, observers=[Editor()])
    assert study.outcome.counts == {"done": 2}
    found = {record.cell["method"]: record for record in study.records}
    assert found["second"].matrix == found["first"].matrix
    again = cgl.run(methods, arrays(), overrides={"training.epochs": 3}, name="photo", progress=False)
    edited = {record.cell["method"]: record for record in again.records}
    assert edited["first"].key == found["first"].key
    assert edited["second"].key != found["second"].key
    assert edited["second"].matrix != found["second"].matrix
    assert again.why().splitlines() == [
        "first: unchanged, so its key is as it was",
        f"second: new key: module {second.stem} changed",
    ]


TEST_FOLDERS = Path(__file__).parent, Path(__file__).parents[1] / "tools"
"""Of the modules that :data:`SCRIPT` and this module import."""
SCRIPT = '''
import cglsuite as cgl, numpy as np, sys
SCALE = {scale}
def penalty(model):
    """{doc}"""
    return SCALE * sum(p.square().sum() for p in model.parameters())
class Mine(cgl.Method):
    def loss(self, batch):
        return super().loss(batch) + penalty(self.model)
from test_study import arrays
study = cgl.run(Mine, arrays(), overrides={{"training.epochs": 2}}, name="photo", progress=False)
record = study.records[0]
print(record.key, record.matrix[-1])
'''


@pytest.mark.nightly
def test_a_class_of_a_script_runs_in_workers_and_its_key_follows_what_it_uses() -> None:
    def out(**words: Any) -> list[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [*map(str, TEST_FOLDERS), os.environ.get("PYTHONPATH")])),
        }
        Path("script.py").write_text(SCRIPT.format(**words))
        done = subprocess.run([sys.executable, "script.py"], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split(" ", 1)

    first, again, other = out(scale=0.0, doc="a"), out(scale=0.0, doc="a"), out(scale=9.0, doc="a")
    assert first == again
    assert other[0] != first[0]
    assert other[1] != first[1]


def test_what_cannot_be_run_is_named() -> None:
    class Local(cgl.Method):
        pass

    with pytest.raises(UsageError, match="defined inside a function"):
        as_plugin_file(Local)
    with pytest.raises(UsageError, match=r"expected the name of a method, or a class derived from cglsuite\.Method"):
        cgl.run(int, "synthetic-csbm")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="data is a int; expected the name of a data set"):
        cgl.run("bare", 3)
    with pytest.raises(UsageError, match="orders = 0: expected a whole number from 1"):
        cgl.run("bare", "synthetic-csbm", orders=0)
    with pytest.raises(UsageError, match="methods is empty: expected at least one name or class"):
        cgl.run([], "synthetic-csbm")
    with pytest.raises(UsageError, match="unknown scenario .synthetic-csbn"):
        cgl.run("bare", "synthetic-csbn", progress=False)
    with pytest.raises(DataError, match="has no array 'y'"):
        cgl.run("bare", {"x": np.eye(3), "edge_index": np.zeros((2, 1), dtype=int)}, progress=False)


@pytest.mark.nightly
def test_a_report_is_a_campaign_that_can_be_run_again(tmp_path: Path) -> None:
    from cglsuite.cli import main

    study = cgl.run("bare", arrays(), overrides=FAST, name="photo", seeds=2, progress=False, observers=[f"csv={tmp_path / 'watched'}"])
    assert len(list((tmp_path / "watched").glob("bare-*/epochs.csv"))) == 2
    page, *problems = study.report(tmp_path / "out", notebooks=["campaign_report"])
    assert not problems, problems[0].reason
    assert page.status == "done", page.reason
    said = "photo/class-il@cglb-1 is derived from "
    assert said in page.path.read_text()
    assert said in (tmp_path / "out" / "index.html").read_text()
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.json")}
    assert main.run(["report", str(tmp_path / "out" / "study.toml"), "--out", str(tmp_path / "out")]) == 0
    assert main.run(["run", str(tmp_path / "out" / "study.toml"), "--no-reports"]) == 0
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.json")} == before
