"""What errors, interrupts and closed pipes become; help and version; the lazy table of commands."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from cglsuite import __version__
from cglsuite.base.errors import CglsuiteError, NotApplicable, PluginError, UsageError
from cglsuite.cli import main

HEAVY = {
    *("IPython", "matplotlib", "ogb", "pandas", "papermill", "plotly", "rich", "scipy.optimize", "scipy.stats", "seaborn", "sklearn"),
    *("statsmodels", "sympy", "torch._dynamo", "torch_geometric"),
}
"""Libraries of reports, notebooks and loaders, and torch's compiler."""


def command_that(action: Callable[[], object]) -> click.Command:
    return click.Command("probe", callback=action)


def fail(error: BaseException) -> Callable[[], object]:
    def action() -> object:
        raise error

    return action


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Puts a command ``probe`` into the table."""

    def install(action: Callable[[], object]) -> None:
        monkeypatch.setitem(main.COMMANDS, "probe", ("this_is_a_probe:command", "a probe"))
        module = type(sys)("this_is_a_probe")
        module.command = command_that(action)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "this_is_a_probe", module)

    return install


@pytest.mark.parametrize(
    ("action", "code", "message"),
    [
        (lambda: None, 0, ""),
        (lambda: 3, 3, ""),
        (fail(CglsuiteError("a cell failed")), 1, "error: a cell failed\n"),
        (fail(UsageError("a bad key")), 2, "error: a bad key\n"),
        (fail(NotApplicable("no task ids")), 3, "error: no task ids\n"),
        (fail(PluginError("broken")), 4, "error: broken\n"),
        (fail(KeyboardInterrupt()), 130, "error: interrupted\n"),
        (fail(click.UsageError("odd words")), 2, "error: odd words (see `cglsuite probe --help`)\n"),
        (fail(click.exceptions.Exit(7)), 7, ""),
        (fail(BrokenPipeError("a worker's")), 1, "error: BrokenPipeError: a worker's (the process reading this output has exited)\n"),
        (fail(RuntimeError("oops")), 1, "error: RuntimeError: oops (unexpected: run again as `cglsuite -v ...` for the traceback)\n"),
    ],
)
def test_what_a_command_does_becomes_the_exit_status(
    probe: Callable[[Callable[[], object]], None], capsys: pytest.CaptureFixture[str], action: Callable[[], object], code: int, message: str
) -> None:
    probe(action)
    assert main.run(["probe"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.lstrip("\n") == message


def test_the_traceback_comes_with_v_only(probe: Callable[[Callable[[], object]], None], capsys: pytest.CaptureFixture[str]) -> None:
    probe(fail(RuntimeError("oops")))
    assert main.run(["-v", "probe"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    assert main.run(["probe"]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(main.COMMANDS))
def test_every_command_of_the_table_exists_and_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module, _, attribute = main.COMMANDS[name][0].partition(":")
    assert getattr(importlib.import_module(module), attribute).name == name
    assert main.COMMANDS[name][1].endswith(".")
    assert main.run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: cglsuite {name}")


def test_help_lists_all_commands_and_imports_none() -> None:
    code = (
        "import sys; from cglsuite.cli.main import run; run(['--help']); print([m for m in sys.modules if m.startswith('cglsuite.cli.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    help_text, modules = done.stdout.rsplit("\n", 2)[:2]
    for name, (_, summary) in main.COMMANDS.items():
        assert name in help_text
        assert summary.split()[0] in help_text
    assert modules == "['cglsuite.cli.options', 'cglsuite.cli.output', 'cglsuite.cli.main']"


def test_every_command_has_one_job() -> None:
    assert sorted(name for names in main.JOBS.values() for name in names) == sorted(main.COMMANDS)


@pytest.mark.parametrize("words", [(), ("list",), ("run",), ("data", "fetch")])
def test_help_breaks_no_word(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main.run([*words, "--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.endswith("-") or "\u2011" in line] == []


@pytest.mark.nightly
def test_a_cell_imports_torch_and_scipy_and_nothing_as_heavy(tmp_path: Path) -> None:
    """From the start of the process to its record: none of the others is needed to train, and together they take longer than torch."""
    words = ["cell", "--scenario", "testing-nodes/class-il", "--method", "testing-fine-tuning", "--store", str(tmp_path), "--quiet"]
    code = f"import json, sys; from cglsuite.cli.main import run; json.dump([run({words}), *sys.modules], sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status, *names = json.loads(done.stderr.splitlines()[-1])
    loaded = set(names)
    assert status == 0
    assert loaded >= {"torch", "scipy.sparse", "cglsuite.learning.task_runner"}
    assert loaded.isdisjoint(HEAVY)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"cglsuite, version {__version__}\n"


def test_a_reader_that_closes_the_pipe_is_no_error() -> None:
    script = "import sys; from cglsuite.cli import main; import click; main.COMMANDS['probe'] = ('__main__:probe', 'x.')\n"
    script += "probe = click.Command('probe', callback=lambda: [click.echo('x' * 1000) for _ in range(1000)] and None)\nmain.main()\n"
    with subprocess.Popen([sys.executable, "-c", script, "probe"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(60) == 0


def test_without_a_command_there_is_a_start_page_whose_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """With status 0; every command on it is one, and takes the options that it is shown with."""
    assert main.run([]) == 0
    text, errors = capsys.readouterr()
    assert errors == ""
    assert text.startswith(f"cglsuite {__version__}")
    shown = [
        line.split("  ")[0].split()
        for line in map(str.strip, text.splitlines())
        if line.startswith("cglsuite ") and __version__ not in line
    ]
    assert {words[1] for words in shown} == {"cell", "list", "show", "run", "reproduce"}
    for words in shown:
        command = main.cli.get_command(click.Context(main.cli), words[1])
        assert command is not None
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options
