"""Commands of plugins: listed without their module, started like the suite's own, and harmless where they are faulty."""

from __future__ import annotations

import json
import logging

import pytest
from plugin_sites import Site

from cglsuite.cli import main
from cglsuite.specs import CORE_COMMANDS

HOOK = "from cglsuite import CommandSpec, hookimpl\n@hookimpl\ndef cglsuite_commands():\n    return [{specs}]\n"
COMMAND = """
import click
from cglsuite.base.errors import NotApplicable, UsageError
from cglsuite.cli import Session, echo, open_store, pass_session, store_option

print("imported")


@click.command()
@click.option("--end", type=click.Choice(["well", "usage", "inapplicable", "badly", "status", "exit"]), default="well")
@store_option
@pass_session
def greet(session: Session, end: str, store_path: object) -> int:
    "Greet, or end otherwise."
    if end == "usage":
        raise UsageError("no such greeting")
    if end == "inapplicable":
        raise NotApplicable("nobody is here")
    if end == "badly":
        raise RuntimeError("oops")
    if end == "exit":
        click.get_current_context().exit(7)
    echo(f"hello, {len(session.catalogue().names('command'))} commands")
    return 5 if end == "status" else 0


a_number = 3


def function():
    "No command."
"""


def hook(*commands: tuple[str, str]) -> str:
    return HOOK.format(specs=", ".join(f"CommandSpec(name={name!r}, summary='Greet.', factory={factory!r})" for name, factory in commands))


def greeter(site: Site, name: str = "greet", factory: str = "greeter_command:greet", distribution: str = "greeter") -> Site:
    module = distribution.replace("-", "_")
    return site.add(distribution, "2.1", files={f"{module}.py": hook((name, factory)), f"{module}_command.py": COMMAND})


def test_help_names_it_and_its_provider_and_imports_neither_its_module_nor_our_plugins(site: Site) -> None:
    greeter(site)
    code = (
        "import sys; from cglsuite.cli.main import run; run(['--help'])\n"
        "seen = {'greeter', 'greeter_command', 'torch', 'numpy', 'pydantic', 'cglsuite_methods', 'cglsuite.reports.plugin'}\n"
        "print(sorted(seen & set(sys.modules)), sorted(m for m in sys.modules if m.startswith('cglsuite.cli.')), file=sys.stderr)"
    )
    done = site.python("-c", code, CGLSUITE_PLUGINS_ALLOW="greeter,cglsuite-methods", CGLSUITE_PLUGINS_BLOCK="")
    assert done.stderr.splitlines()[-1] == "['greeter'] ['cglsuite.cli.main', 'cglsuite.cli.options', 'cglsuite.cli.output']"
    own, theirs = done.stdout.split("Commands of plugins:\n")
    assert theirs.split() == ["greet", "Greet.", "(greeter", "2.1)"]
    assert all(f"\n  {spec.name} " in own for spec in CORE_COMMANDS)


@pytest.mark.parametrize("words", [("--version",), ("migrate", "--help"), ("--nonsense",)])
def test_our_own_commands_load_no_plugin_for_its_sake(site: Site, words: tuple[str, ...]) -> None:
    greeter(site)
    code = f"import sys; from cglsuite.cli.main import run; run({list(words)}); sys.exit('greeter' in sys.modules)"
    assert site.python("-c", code).returncode == 0


def test_listing_it_imports_no_click_of_its_own(site: Site) -> None:
    done = greeter(site).python(
        "-c", "import sys; from cglsuite.cli.main import run; run(['list']); print('greeter_command' in sys.modules)"
    )
    assert done.stdout.splitlines()[-2:] == ["commands  1       greet", "False"]


@pytest.mark.parametrize(
    ("words", "status", "out", "err"),
    [
        ((), 0, "hello, 1 commands\n", ""),
        (("--end", "status"), 5, "hello, 1 commands\n", ""),
        (("--end", "exit"), 7, "", ""),
        (("--end", "usage"), 2, "", "error: no such greeting\n"),
        (("--end", "inapplicable"), 3, "", "error: nobody is here\n"),
        (
            ("--end", "badly"),
            1,
            "",
            "error: RuntimeError: oops in a command of greeter 2.1 (unexpected: run again as `cglsuite -v ...` for the traceback)\n",
        ),
        (("--nonsense",), 2, "", "error: No such option '--nonsense'. (see `cglsuite greet --help`)\n"),
    ],
)
def test_it_ends_as_ours_do(site: Site, words: tuple[str, ...], status: int, out: str, err: str) -> None:
    done = greeter(site).call("greet", *words)
    assert (done.returncode, done.stdout) == (status, out)
    assert done.stderr.removeprefix("imported\n").replace("No such option: --nonsense", "No such option '--nonsense'.") == err


def test_global_options_apply_to_it(site: Site) -> None:
    before = list(logging.getLogger("cglsuite").handlers)
    greeter(site)
    assert "Traceback (most recent call last)" in site.call("-v", "greet", "--end", "badly").stderr
    line = json.loads(site.call("--log-json", "greet", "--end", "badly").stderr.splitlines()[-1])
    assert (line["level"], "RuntimeError: oops in a command of greeter 2.1" in line["message"]) == ("error", True)
    site.add("sys-exit")
    assert site.call("--strict", "greet").returncode == 4
    assert site.call("greet").stdout == "hello, 1 commands\n"
    assert logging.getLogger("cglsuite").handlers == before


def test_an_unknown_name_gets_the_nearest_of_all(site: Site) -> None:
    greeter(site)
    for words, advice in (
        (("gret",), "Did you mean 'greet'?"),
        (("lsit",), "Did you mean 'list'?"),
        (("qqqqqqqq",), "export, greet, list,"),
    ):
        done = site.call(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"No such command '{words[0]}'" in done.stderr
        assert advice in done.stderr
    (line,) = site.call("--log-json", "gret").stderr.splitlines()
    assert "Did you mean 'greet'?" in json.loads(line)["message"]


def test_a_broken_plugin_breaks_no_help(site: Site) -> None:
    greeter(site).add("sys-exit").add("raises-in-hook").add("import-error").add("os-exit")
    done = site.run("--help")
    assert done.returncode == 0
    assert "greet  Greet. (greeter 2.1)" in done.stdout
    assert "Traceback" not in done.stderr
    assert site.run("--help", CGLSUITE_PLUGINS_TIMEOUT="soon").returncode == 0


def test_our_names_are_taken(site: Site) -> None:
    """The suite's own command runs; the plugin is told of, and what else it provides works."""
    greeter(site, "plugins", distribution="taker").add("healthy")
    done = site.call("plugins")
    problem = "command 'plugins' of taker 2.1 has the same name as a built-in command of cglsuite"
    assert (done.returncode, done.stdout.split()[0]) == (0, "DISTRIBUTION")
    assert f"warning: {problem}. To resolve it, its authors must choose another name; everything else in taker works." in done.stderr
    assert f"warning: {problem}; the one of cglsuite is used" in site.call("list").stderr
    assert site.call("list", "commands", "--json").stdout.count('"kind"') == 1
    done = site.call("--strict", "list")
    assert (done.returncode, problem in done.stderr) == (4, True)
    assert site.call("show", "command", "plugins").returncode == 4
    assert "  plugins " in (text := site.call("--help").stdout)
    assert "taker" not in text


def test_no_plugin_replaces_ours_on_purpose(site: Site) -> None:
    spec = "CommandSpec(name='run', summary='Mine.', factory='mine:run', replaces='cglsuite')"
    site.add("mine", files={"mine.py": HOOK.format(specs=spec)})
    assert "command 'run' of mine 1.0 has the same name as a built-in command of cglsuite" in site.call("list").stderr


def test_two_of_one_name_are_withheld_and_both_named(site: Site) -> None:
    greeter(site)
    greeter(site, distribution="other", factory="other_command:greet")
    done = site.call("greet")
    assert (done.returncode, done.stdout) == (4, "")
    assert "command 'greet' is provided by 2 plugins: greeter 2.1, other 2.1." in done.stderr
    assert "Commands of plugins" not in site.call("--help").stdout
    assert site.call("greet", CGLSUITE_PLUGINS_BLOCK="cglsuite,other").stdout == "hello, 1 commands\n"


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("greeter_absent:greet", "'greeter_absent:greet' cannot be loaded: ModuleNotFoundError: No module named 'greeter_absent'"),
        ("greeter_command:gret", "module 'greeter_command' has no 'gret'; did you mean 'greet'?"),
        ("greeter_command:a_number", "'a_number' is of type int, which is not callable"),
        ("greeter_command:function", "'function' is of type function; expected a click command, as created by @click.command()"),
    ],
)
def test_a_factory_that_is_no_command_is_a_fault_of_the_plugin(site: Site, factory: str, message: str) -> None:
    done = greeter(site, factory=factory).call("greet")
    assert (done.returncode, done.stdout) == (4, "")
    assert "error: command 'greet' of greeter 2.1: " in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_ours_are_in_every_catalogue_and_are_those_that_run() -> None:
    assert {spec.name: (spec.factory, spec.summary) for spec in CORE_COMMANDS} == main.COMMANDS


def test_ours_can_be_shown_and_their_names_are_refused_to_new_packages(site: Site) -> None:
    done = site.add("healthy").call("show", "command", "run")
    assert done.stdout.splitlines()[:2] == ["command run", "  Run the missing cells of a campaign, then render its reports."]
    done = site.call("new", "command", "run")
    assert (done.returncode, "cglsuite" in done.stderr, "already provides the command 'run'" in done.stderr) == (2, True, True)
