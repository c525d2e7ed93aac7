"""``cglsuite list`` and ``cglsuite show``: data on stdout, faults on stderr, exit codes, and tables that fit."""

from __future__ import annotations

import json

import pytest
from plugin_sites import Site

from cglsuite.specs import KINDS


def test_listing_imports_no_torch_and_no_command_but_its_own(site: Site) -> None:
    code = (
        "import sys; from cglsuite.cli.main import run; code = run(['list']); "
        "heavy = {'torch', 'torch_geometric', 'pandas', 'numpy', 'pydantic', 'papermill', 'healthy'}; "
        "print(code, sorted(heavy & set(sys.modules)), sorted(m for m in sys.modules if m.startswith('cglsuite.cli.')), file=sys.stderr)"
    )
    done = site.add("healthy").python("-c", code)
    modules = ("commands", "commands.catalogue", "main", "options", "output")
    assert done.stderr.strip() == "0 ['healthy'] " + str([f"cglsuite.cli.{m}" for m in modules])


@pytest.mark.parametrize("kind", KINDS)
def test_json_is_an_array_with_the_promised_keys(site: Site, kind: str) -> None:
    done = site.add("healthy", "2.0").call("list", f"{kind}s", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    entries = json.loads(done.stdout)
    assert entries
    for entry in entries:
        assert (entry["kind"], entry["provider"], entry["version"]) == (kind, "healthy", "2.0")
        assert entry["name"]
        assert entry["summary"]
    assert [e["name"] for e in entries] == sorted(e["name"] for e in entries)


def test_without_a_kind_everything_is_counted(site: Site) -> None:
    """One line per kind; as JSON everything is listed."""
    site.add("healthy")
    assert {e["kind"] for e in json.loads(site.call("list", "--json").stdout)} == set(KINDS)
    header, *lines = site.call("list").stdout.splitlines()
    assert header.split()[:2] == ["KIND", "NUMBER"]
    assert [line.split()[0] for line in lines] == [f"{kind}s" for kind in KINDS]
    (methods,) = [line for line in lines if line.startswith("methods")]
    assert methods.split() == ["methods", "2", "alpha,", "zeta"]


def test_show_finds_a_name_among_all_kinds(site: Site) -> None:
    """One that several kinds have needs its kind; one that none has gets the nearest."""
    site.add("healthy")
    assert site.call("show", "zeta").stdout == site.call("show", "method", "zeta").stdout
    assert site.call("show", "tiny/task-il@test-1").stdout.splitlines()[0] == "scenario tiny/task-il@test-1"
    done = site.call("show", "zteta")
    assert done.returncode == 2
    assert "nothing is named 'zteta'. Did you mean zeta (method)?" in done.stderr
    done = site.call("show", "method", "zeta", "more")
    assert (done.returncode, "expected [KIND] NAME" in done.stderr) == (2, True)


def test_the_name_of_a_dataset_is_answered_with_the_scenarios_over_it(site: Site) -> None:
    site.add("healthy")
    done = site.call("show", "scenario", "tiny")
    assert done.returncode == 2
    assert "'tiny' is a dataset: expected a scenario over it, with a setting and a protocol. Presets: tiny/task-il@test-1." in done.stderr
    page = site.call("show", "dataset", "tiny").stdout.splitlines()
    assert page[page.index("presets") + 1].strip() == "tiny/task-il@test-1"


def test_the_table_is_aligned_and_fits_the_terminal(site: Site) -> None:
    site.add("healthy").add("chatty")
    wide = site.call("list", "methods", COLUMNS="100").stdout.splitlines()
    assert wide[0].split() == ["NAME", "CATEGORY", "LEVELS", "PROVIDER", "SUMMARY"]
    column = wide[0].index("PROVIDER")
    assert [line[column:].split()[0] for line in wide[1:4]] == ["healthy", "chatty", "healthy"]
    for width in (20, 40, 60, 80):
        lines = site.call("list", "methods", COLUMNS=str(width)).stdout.splitlines()
        assert max(map(len, lines)) <= max(width, 40)
        assert [line.split()[0] for line in lines[1:4]] == ["alpha", "loud", "zeta"]


def test_abbreviations_are_explained_to_a_reader_and_not_to_a_pipe(site: Site) -> None:
    assert "NC = node classification" not in site.add("healthy").call("list", "methods").stdout
    shown = site.call("list", "methods", COLUMNS="80").stdout
    assert "NC = node classification, NR = node regression, LC = link classification" in " ".join(shown.split())
    assert "Reg = regularisation" in shown


def test_text_of_strangers_cannot_break_the_table_or_the_terminal(site: Site) -> None:
    done = site.add("chatty").run("list", "methods")
    assert done.stdout.splitlines()[1].endswith("says hello?[31m in red")
    assert "hello from the plugin" in done.stderr


def test_faults_are_told_once_on_stderr_and_listing_works(site: Site) -> None:
    done = site.add("healthy").add("sys-exit", "0.7").add("clash-a").add("clash-b").call("list", "methods", "--json")
    assert done.returncode == 0
    assert [e["name"] for e in json.loads(done.stdout)] == ["alpha", "own-a", "own-b", "zeta"]
    quarantined, collision = done.stderr.splitlines()
    assert quarantined == "warning: plugin sys-exit 0.7 is quarantined: SystemExit: 3 (sys_exit.py, line 5) (see `cglsuite plugins doctor`)"
    assert collision.startswith("warning: method 'same' is provided by 2 plugins: clash-a 1.0, clash-b 1.0; none is used")


@pytest.mark.parametrize("how", ["option", "environment"])
def test_strict_mode_ends_with_4_and_prints_no_data(site: Site, how: str) -> None:
    site.add("healthy").add("hook-typo")
    done = site.call("--strict", "list") if how == "option" else site.call("list", CGLSUITE_STRICT="1")
    assert (done.returncode, done.stdout) == (4, "")
    assert "error: strict mode requires every plugin to load without faults:" in done.stderr
    assert "unknown hook cglsuite_method: did you mean cglsuite_methods?" in done.stderr


def test_show_tells_all_settings_of_a_method(site: Site) -> None:
    text = site.add("healthy", "1.5").call("show", "method", "zeta", COLUMNS="100").stdout
    assert text.splitlines()[0] == "method zeta"
    assert "healthy 1.5" in text
    assert "  method.strength  float  0.5      >= 0             how strongly the old weights pull" in text
    assert "  method.order     str    native   native | random  the order of the items" in text
    assert max(map(len, text.splitlines())) <= 100


def test_show_tells_licence_and_parameters_of_a_dataset(site: Site) -> None:
    text = site.add("healthy").call("show", "datasets", "tiny").stdout
    assert "licence   CC0-1.0" in text
    assert "dataset.limit  int   none     >= 1 or none  items at most" in text


def test_show_tells_every_switch_of_a_scenario(site: Site) -> None:
    from cglsuite.specs import ScenarioSpec, TrainingSpec, switches

    text = site.add("healthy").call("show", "scenario", "tiny/task-il@test-1", COLUMNS="120").stdout
    spec = ScenarioSpec(name="tiny/task-il@test-1", summary="x", dataset="tiny", setting="task-il")
    for prefix, part in (("scenario", spec), ("training", TrainingSpec())):
        for name in switches(part):
            assert f"  {prefix}.{name} " in text
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert lines["training.epochs"].split()[1] == "3"
    assert "the message graph:" in lines["scenario.edge_policy"]
    assert lines["zeta"].split() == ["zeta", "method.strength", "2.0"]
    assert max(map(len, text.splitlines())) <= 120


def test_show_json_is_one_object(site: Site) -> None:
    shown = json.loads(site.add("healthy").call("show", "metric", "mean", "--json").stdout)
    assert (shown["name"], shown["kind"], shown["formula"], shown["range"]) == ("mean", "metric", "mean of row T", [0.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("list", "methdos"), 2, "Did you mean 'methods'?"),
        (("lsit", "methods"), 2, "No such command 'lsit'. Did you mean 'list'?"),
        (("show", "method", "alhpa"), 2, "unknown method 'alhpa'. Did you mean 'alpha'?"),
        (("show", "method"), 2, "Missing argument 'NAME'"),
        (("show", "same"), 4, "method 'same' is provided by 2 plugins: clash-a 1.0, clash-b 1.0"),
        (("show", "method", "same"), 4, "method 'same' is provided by 2 plugins: clash-a 1.0, clash-b 1.0"),
        (("--nonsense",), 2, "No such option"),
    ],
)
def test_errors_go_to_stderr_with_their_exit_code(site: Site, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = site.add("healthy").add("clash-a").add("clash-b").call(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_kind_says_so_on_stderr(site: Site) -> None:
    done = site.add("clash-a").call("list", "datasets")
    assert (done.returncode, done.stdout) == (0, "")
    assert "there are no datasets" in done.stderr
    assert json.loads(site.call("list", "datasets", "--json").stdout) == []


def test_the_log_is_json_on_demand(site: Site) -> None:
    done = site.add("sys-exit").run("--log-json", "show", "method", "nothing")
    warning, error = (json.loads(line) for line in done.stderr.splitlines())
    assert (warning["level"], warning["logger"]) == ("warning", "cglsuite.cli.options")
    assert error["level"] == "error"
    assert "unknown method 'nothing'" in error["message"]
    assert done.returncode == 2
