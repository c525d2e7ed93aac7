"""``--plugin`` and ``--data``: a method in one module and a data set in one file, for commands and campaigns, with provenance, in keys."""

from __future__ import annotations

import csv
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cglsuite.cli import main

METHOD = '''
from cglsuite import Hyperparameter, Method, MethodSpec, hookimpl
from {name}_helper import factor


class Mine(Method):
    """Bare with a decay of the weights."""

    def loss(self, batch):
        return super().loss(batch) + factor() * self.hyperparameters["decay"] * sum((p**2).sum() for p in self.model.parameters())


@hookimpl
def cglsuite_methods():
    decay = Hyperparameter(name="decay", default=1e-3, minimum=0, doc="weight of the squared norm")
    everywhere = ("task-il", "class-il", "domain-il", "time-il", "task-free")
    return [MethodSpec(name="{method}", summary="decays", factory="{name}:Mine", settings=everywhere, hyperparameters=(decay,))]
'''
COUNTER = itertools.count()


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CGLSUITE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", list(sys.path))


def method_file(folder: Path, method: str = "mine") -> Path:
    """A module of its own name, as a process imports a module once."""
    name = f"mine_{os.getpid()}_{next(COUNTER)}"
    (folder / f"{name}_helper.py").write_text("def factor():\n    return 1.0\n")
    path = folder / f"{name}.py"
    path.write_text(METHOD.format(name=name, method=method))
    return path


def data_file(folder: Path, name: str = "photo.npz") -> Path:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 6
    pairs = rng.integers(0, 120, (2, 300))
    np.savez(folder / name, x=np.eye(6)[y] + rng.normal(size=(120, 6)), edge_index=np.concatenate([pairs, pairs[::-1]], axis=1), y=y)
    return folder / name


def cell(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    capsys.readouterr()
    status = main.run(["cell", "--set", "training.epochs=2", "--json", *words])
    out, err = capsys.readouterr()
    assert status == 0, err
    record: dict[str, object] = json.loads(out)
    return record


@pytest.mark.nightly
@pytest.mark.plugins
def test_own_method_on_own_data_under_any_protocol(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin, data = method_file(tmp_path), data_file(tmp_path)
    files = ["--plugin", str(plugin), "--data", str(data), "--method", "mine"]
    for protocol in ("class-il@cglb-1", "task-il@begin-1", "gaussian@drift-1"):
        record = cell(capsys, *files, "--scenario", f"photo/{protocol}")
        assert record["status"] == "done"
        makers = {p["role"]: (p["distribution"], p["version"][:7]) for p in record["provenance"]["plugins"]}  # type: ignore[index]
        assert makers["method"] == (plugin.name, "sha256-")
        assert makers["dataset"] == ("photo.npz", "sha256-")
    assert not {"CGLSUITE_DATA_FILES", "CGLSUITE_PLUGIN_FILES"} & set(os.environ)  # named for that command alone


@pytest.mark.plugins
def test_a_derived_scenario_says_what_it_follows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["show", "scenario", "photo/class-il@begin-1", "--data", str(data_file(tmp_path))]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("photo/class-il@begin-1 is derived from cora/class-il@begin-1; left out: what was searched on cora per method (")
    assert "the memory budget of 12 items" in err
    assert "the official split, which photo does not have (per-class)" in err
    assert "no published preset" in out


@pytest.mark.plugins
def test_content_is_in_the_key_and_its_place_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = ["--scenario", "photo/class-il@cglb-1", "--method", "bare"]
    (tmp_path / "elsewhere").mkdir()
    here, there = data_file(tmp_path), data_file(tmp_path / "elsewhere")
    keys = [cell(capsys, "--data", str(path), *scenario)["key"] for path in (here, there)]
    arrays = dict(np.load(here))
    np.savez(here, **{**arrays, "x": arrays["x"] + 1})
    assert keys[0] == keys[1] != cell(capsys, "--data", str(here), *scenario)["key"]


@pytest.mark.nightly
@pytest.mark.plugins
def test_the_source_of_a_plugin_file_and_its_helpers_is_in_the_key(tmp_path: Path) -> None:
    """Each edit in a process of its own, which imports the module anew."""
    import subprocess

    plugin = method_file(tmp_path)
    helper = plugin.with_name(f"{plugin.stem}_helper.py")

    def key() -> str:
        script = (
            "from cglsuite.cells.plan import CellRequest, plan_cell\n"
            "from cglsuite.host import load_catalogue\n"
            "print(plan_cell(CellRequest(scenario='synthetic-csbm/class-il@cglb-1', method='mine'), load_catalogue()).key)"
        )
        environment = {**os.environ, "CGLSUITE_PLUGIN_FILES": str(plugin)}
        return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True).stdout

    first = key()
    helper.write_text("# a comment\n" + helper.read_text())
    assert key() == first
    helper.write_text(helper.read_text().replace("1.0", "2.0"))
    second = key()
    assert second != first
    plugin.write_text(plugin.read_text().replace("p**2", "p**4"))
    assert key() not in (first, second)


@pytest.mark.nightly
@pytest.mark.plugins
def test_a_campaign_names_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    plugin, data = method_file(folder), data_file(folder)
    (folder / "own.toml").write_text(
        f'name = "own"\nplugins = ["{plugin.name}"]\ndata = ["{data.name}"]\n[grid]\nscenarios = ["photo/task-il@cglb-1"]\n'
        'methods = ["bare", "mine"]\n[set]\ntraining.epochs = 2\n'
    )
    monkeypatch.setenv("CGLSUITE_PLUGINS_ALLOW", "cglsuite-node,cglsuite-methods,cglsuite-metrics")  # whoever names a file wants it
    assert main.run(["run", str(folder / "own.toml"), "--allow-code"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main.run(["status", str(folder / "own.toml"), "--json", "--allow-code"]) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["done"] == 2


@pytest.mark.nightly
@pytest.mark.plugins
def test_a_campaign_is_data_until_its_code_is_allowed(tmp_path: Path) -> None:
    """Without it nothing runs, and what was stored is shown with what cannot be planned."""
    plugin, sign = method_file(tmp_path), tmp_path / "sign"
    plugin.write_text(f"open({str(sign)!r}, 'w').close()\n" + plugin.read_text())
    Path("own.toml").write_text(
        f'name = "own"\nplugins = ["{plugin.name}"]\n[grid]\nscenarios = ["synthetic-csbm/class-il@begin-1"]\nmethods = ["bare", "mine"]\n'
        '[seeds]\ninit = [0, 1]\n[set]\ntraining.epochs = 1\nscenario.n_tasks = 2\n[[report]]\nnotebook = "campaign_report"\n'
    )

    def ran(*words: str, status: int = 0) -> tuple[str, str]:
        sign.unlink(missing_ok=True)
        done = subprocess.run([Path(sys.executable).with_name("cglsuite"), *words], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert sign.exists() == ("--allow-code" in words or "--plugin" in words)
        return done.stdout, done.stderr

    assert f"running this campaign executes code: the plugin file {plugin.name}" in ran("run", "own.toml", status=2)[1]
    ran("run", "own.toml", "--no-reports", "--plugin", plugin.name, "--only", "init_seed=0")
    out, err = ran("status", "own.toml", "--json")
    why = f"cannot be planned without {plugin.name} (--allow-code)"
    assert f"cells that need code from {plugin.name} are not planned" in err
    assert json.loads(out)["totals"] == {"done": 2, "settled": 0, "running": 0, "failed": 0, "missing": 2, "n/a": 0}
    assert [reason for row in json.loads(out)["rows"] for reason in row["reasons"]] == [why]
    assert sorted(row["method"] for row in csv.DictReader(ran("results", "own.toml")[0].splitlines())) == ["bare", "mine"]
    page = Path(ran("report", "own.toml")[0].split()[0]).read_text()
    assert "mine" in page
    assert why in page
    out, _ = ran("status", "own.toml", "--json", "--allow-code")
    assert json.loads(out)["totals"]["done"] == 2


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main.run(["show", "method", "bare", *words]) != 0
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err.removeprefix("error: ").strip()


def test_files_that_do_not_fit_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "--plugin", "absent.py").startswith("absent.py: no such file in ")
    (tmp_path / "my-method.py").write_text("")
    assert "a plugin file must be a Python module with an importable name" in refused(capsys, "--plugin", "my-method.py")
    (tmp_path / "torch.py").write_text("")
    taken = refused(capsys, "--plugin", "torch.py")
    assert "the module name 'torch' is taken by" in taken
    assert taken.endswith("To fix it: rename torch.py.")
    broken = method_file(tmp_path)
    broken.write_text("def x(:\n")
    assert f"plugin file {broken.name}: SyntaxError" in refused(capsys, "--plugin", broken.name)
    (tmp_path / "x.npz").write_bytes(b"")
    assert "x.npz is damaged or not an npz file" in refused(capsys, "--data", "x.npz")


@pytest.mark.parametrize("option", ["--plugin", "--data"])
def test_a_pipe_or_a_name_that_no_file_can_have_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    """The bug: the command waited for somebody to write into the pipe."""
    ending = {"--plugin": ".py", "--data": ".npz"}[option]
    os.mkfifo(tmp_path / f"pipe{ending}")
    assert refused(capsys, option, f"pipe{ending}") == f"pipe{ending}: it is a FIFO, not a regular file; expected a file or a folder"
    (tmp_path / f"link{ending}").symlink_to(f"pipe{ending}")
    assert refused(capsys, option, f"link{ending}") == f"link{ending}: it is a FIFO, not a regular file; expected a file or a folder"
    for long in ("x" * 300 + ending, "abcdefghi/" * 500 + f"x{ending}"):
        assert "expected a shorter path" in refused(capsys, option, long)


@pytest.mark.plugins
def test_a_data_file_does_not_replace_a_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, "--data", str(data_file(tmp_path, "cora.npz")))
    assert "would define the data set 'cora', which cglsuite-node" in message
    assert message.endswith("rename the file")


@pytest.mark.plugins
def test_options_of_a_file_are_in_its_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-1 is asked about, and the answer makes another cell; what was understood and what is not used are said."""
    rng, n = np.random.default_rng(0), 60
    arrays = {"x": rng.normal(size=(n, 3)), "edge_index": rng.integers(0, n, (2, 90)), "edge_weight": rng.random(90)}
    np.savez(tmp_path / "mail.npz", **arrays, y=np.where(np.arange(n) % 2, 1, -1), domain=np.arange(n) // 2 % 2)
    cell = ["cell", "--scenario", "mail/domain-il@begin-2", "--method", "bare", "--set", "training.epochs=1", "--json"]
    assert main.run([*cell, "--data", "mail.npz"]) == 1
    assert "y contains -1, 1, where -1 could be a class or mark items without a label: say unlabelled = none" in capsys.readouterr().err
    keys = []
    for options in (
        ["--data-option", "mail.unlabelled=none"],
        ["--data-option", "unlabelled=none"],
        ["--data-option", "mail.unlabelled=-1"],
    ):
        assert main.run([*cell, *options, "--data", "mail.npz"]) == 0
        said = capsys.readouterr()
        record = json.loads(said.out)
        keys.append((record["key"], record["cell"]["configuration"]["dataset.options"]))
        assert "mail.npz: the weights of edges are used only by gcn and gin with backbone.edge_weight = true" in said.err
    assert "nodes: 60, 3 features; edges: 90, directed, weights of 0." in said.err
    assert "all labels are of one class: every method scores 100%" in said.err
    assert keys[0] == keys[1] != keys[2]
    assert [options for _, options in keys] == ['{"unlabelled": "none"}', '{"unlabelled": "none"}', '{"unlabelled": "-1"}']


@pytest.mark.plugins
def test_values_that_nothing_can_learn_from_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the data set is shown, on the record, and where it is printed."""
    rng, n = np.random.default_rng(0), 120
    np.savez(tmp_path / "large.npz", x=rng.normal(size=(n, 4)) * 1e30, edge_index=rng.integers(0, n, (2, 300)), y=np.arange(n) % 6)
    assert main.run(["show", "dataset", "large", "--data", "large.npz"]) == 0
    assert "float32 cannot hold their squares" in "".join(capsys.readouterr())
    cell = ["cell", "--scenario", "large/task-il@cglb-1", "--method", "bare", "--set", "training.epochs=5", "--data", "large.npz"]
    assert main.run(cell) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "read with care features are as large as" in shown
    assert "stays the same to five digits in every epoch: nothing was learnt; check" in shown
    assert main.run([*cell, "--json"]) == 0
    of_data, of_training = json.loads(capsys.readouterr().out)["provenance"]["warnings"]
    assert of_data.startswith("features are as large as")
    assert of_training.startswith("the loss of tasks 1 (")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--data-option", "photo.label=multi"], "unknown option 'label'; did you mean labels?"),
        (["--data-option", "photo.labels=many"], "labels = 'many'; expected one of single, multi, real"),
        (
            ["--data-option", "photos.labels=multi"],
            "options were given for the data set photos, but no data file has this name; the data files are photo",
        ),
        (["--data-option", "labels"], "--data-option labels: expected NAME.KEY=VALUE"),
    ],
)
def test_options_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], says: str) -> None:
    data_file(tmp_path)
    assert main.run(["show", "dataset", "photo", *given, "--data", "photo.npz"]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.plugins
def test_a_campaign_says_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside ``data``, in a file with a byte-order mark too."""
    rows = "".join(f"{k},{k % 5},{k % 4}\n" for k in range(30))
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "nodes.csv").write_text(f"nr,a,y\n{rows}")
    (tmp_path / "shop" / "edges.csv").write_text("source,target\n0,1\n2,3\n")
    text = 'name = "a"\ndata = ["shop"]\n[grid]\nscenarios = ["shop/task-il@cglb-1"]\nmethods = ["bare"]\n'
    (tmp_path / "a.toml").write_text(text)
    assert main.run(["status", "a.toml"]) == 1
    assert "the values of column 'nr' are unique and include the ends of all edges" in capsys.readouterr().err
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / "b.toml").write_text(text + '[data_options.shop]\nid = "nr"\n', encoding=encoding)
        assert main.run(["status", "b.toml"]) == 0
    (tmp_path / "c.toml").write_text(text + '[data_options.shops]\nid = "nr"\n')
    assert main.run(["status", "c.toml"]) == 2
    assert (
        "c.toml: options were given for the data set shops, but no data file has this name; the data files are shop"
        in capsys.readouterr().err
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
def test_a_fifo_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "f.npz")
    assert main.run(["show", "dataset", "f", "--data", "f.npz"]) == 2
    assert "f.npz: it is a FIFO, not a regular file; expected a file or a folder" in capsys.readouterr().err
    (tmp_path / "shop").mkdir()
    os.mkfifo(tmp_path / "shop" / "nodes.csv")
    assert main.run(["show", "dataset", "shop", "--data", "shop"]) != 0
    assert "nodes.csv cannot be read: it is a FIFO" in capsys.readouterr().err
