"""``cglsuite scenarios``: readable at 100 columns, JSON on demand; comparing presets needs no torch."""

from __future__ import annotations

import json

import pytest
from plugin_sites import Site

ONE, TWIN, TWO, OTHER_NET = "one/task-il@test-1", "one/task-il@test-2", "two/class-il@test-1", "one/task-il@net-1"


def test_json_is_an_array_of_field_a_b_and_effect(site: Site) -> None:
    done = site.add("comparable").call("scenarios", "diff", ONE, TWO, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = {row.pop("field"): row for row in json.loads(done.stdout)}
    assert all(set(row) == {"a", "b", "effect"} for row in found.values())
    assert (found["scenario.edge_policy"]["a"], found["scenario.edge_policy"]["b"]) == ("full", "none")
    assert found["scenario.searched"]["a"] == ["training.lr", "training.weight_decay", "backbone.width"]
    assert found["dataset.noise"]["a"] is None


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_table_fits_the_terminal(site: Site, width: int) -> None:
    done = site.add("comparable").call("scenarios", "diff", ONE, TWO, COLUMNS=str(width))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0] == "14 fields differ"
    assert [line.split() for line in lines[1:3]] == [["A", ONE], ["B", TWO]]


def test_the_table_tells_values_and_effects(site: Site) -> None:
    text = site.add("comparable").call("scenarios", "diff", ONE, TWO, COLUMNS="100").stdout
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("  ")}
    assert lines["scenario.edge_policy"].split()[1:5] == ["full", "none", "full:", "all"]
    assert lines["training.plateau_patience"].split()[1:3] == ["none", "20"]
    assert lines["scenario.searched"].split()[1:4] == ["…", "none", "A"]  # too long for a column: told before the effect
    assert lines["dataset.noise"].split()[1:4] == ["-", "0.5", "two"]
    assert lines["pull"].split()[:4] == ["pull", "training.epochs", "200", "50"]
    joined = " ".join(text.split())
    assert "A is training.lr, training.weight_decay, backbone.width. a search may choose the values" in joined
    assert "topology can reveal the task in class-IL" in joined
    titles = ("protocol", "training", "backbone", "dataset", "hyperparameters per method")
    assert [line for line in text.splitlines()[3:] if line and not line.startswith(" ")] == [
        next(line for line in text.splitlines() if line.startswith(title)) for title in titles
    ]


@pytest.mark.parametrize(
    ("pair", "message"),
    [((ONE, TWIN), f"{ONE} and {TWIN} do not differ in any field"), ((ONE, ONE), f"{ONE} is compared with itself: no field differs")],
)
def test_equal_presets_say_so(site: Site, pair: tuple[str, str], message: str) -> None:
    done = site.add("comparable").call("scenarios", "diff", *pair)
    assert (done.returncode, done.stdout, done.stderr) == (0, message + "\n", "")
    done = site.call("scenarios", "diff", *pair, "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((ONE, "two/class-il@test"), "unknown scenario 'two/class-il@test'. Did you mean 'two/class-il@test-1'"),
        (("on/task-il@test-1", TWO), "Did you mean 'one/task-il@test-1'"),
        ((ONE,), "Missing argument 'B'"),
    ],
)
def test_a_wrong_request_ends_with_2(site: Site, words: tuple[str, ...], message: str) -> None:
    done = site.add("comparable").call("scenarios", "diff", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_it_imports_nothing_heavy(site: Site) -> None:
    code = (
        f"import sys; from cglsuite.cli.main import run; code = run(['scenarios', 'diff', {ONE!r}, {TWO!r}]); "
        "heavy = {'torch', 'torch_geometric', 'pandas', 'numpy', 'pydantic', 'papermill'}; "
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    assert site.add("comparable").python("-c", code).stderr == "0 []\n"


@pytest.mark.plugins("cglsuite-node")
def test_two_published_protocols(capsys: pytest.CaptureFixture[str]) -> None:
    """BeGin's and CGLB's Cora: the differences that the papers' numbers hang on."""
    from cglsuite.cli import main

    assert main.run(["scenarios", "diff", "cora/class-il@begin-1", "cora/class-il@cglb-1", "--json"]) == 0
    found = {row["field"]: (row["a"], row["b"]) for row in json.loads(capsys.readouterr().out)}
    expected = {
        "scenario.edge_policy": ("full", "none"),
        "scenario.performance": ("micro", "macro"),
        "training.class_balanced": (False, True),
        "backbone.normalisation": ("symmetric", "none"),
        "backbone.dropout": (0.5, 0.0),
    }
    assert found.items() >= expected.items()
    assert "scenario.setting" not in found
    assert "scenario.dataset" not in found


@pytest.mark.plugins
def test_audit_prints_the_leak_by_grouping(capsys: pytest.CaptureFixture[str]) -> None:
    from cglsuite.cli import main

    command = ["scenarios", "audit", "synthetic-csbm/class-il@cglb-1", "--permutations", "1"]
    assert main.run(command) == 0
    shown = capsys.readouterr().out
    assert main.run([*command, "--set", "scenario.query_grouping=pooled", "--json"]) == 0
    printed = capsys.readouterr().out
    assert "80 items of one task" in shown
    assert "chance 20.0%" in shown
    found = json.loads(printed)
    assert found["scenario"].startswith("synthetic-csbm/class-il@cglb-1+")
    assert (found["by_task"], found["group_size"], found["chance"]) == (False, 80, 0.2)
    assert found["leak"] == pytest.approx(found["grouped"] - found["alone"])
