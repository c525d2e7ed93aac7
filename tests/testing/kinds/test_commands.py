"""Checks of commands: the good pass, and each fault is named by the check that it breaks."""

from __future__ import annotations

import pytest

from cglsuite.host import Catalogue, PluginRecord
from cglsuite.specs import CORE_COMMANDS, CommandSpec
from cglsuite.testing import CheckFailed, check_command, examine
from cglsuite.testing.streams import with_specs

RECORD = PluginRecord(distribution="faulty", version="1.0", entry_point="faulty", module="cglsuite.testing", status="ok")
EAGER = PluginRecord(distribution="eager", version="1.0", entry_point="eager", module="loud_command", status="ok")


def command(name: str, module: str = "faulty_commands") -> CommandSpec:
    return CommandSpec(name=name.replace("_", "-"), summary="Goes wrong.", factory=f"{module}:{name}")


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    names = ("fine", "silent", "takes_all", "own_help", "leaves", "heavy", "no_command")
    return with_specs(with_specs(Catalogue([], []), map(command, names), RECORD), [command("loud", "loud_command")], EAGER)


def test_a_command_in_order_conforms(catalogue: Catalogue) -> None:
    check_command("fine", catalogue)
    assert {finding.check for finding in examine("command", "fine", catalogue)} == {
        *("factory", "documentation", "listing", "lazy", "quiet import", "help", "refusal")
    }


@pytest.mark.parametrize(
    ("name", "check", "message"),
    [
        ("silent", "documentation", "the factory of the command has no docstring"),
        ("loud", "lazy", "listing loud_command imports loud_command, the module of the command"),
        ("loud", "quiet import", "importing loud_command prints 'here I am'"),
        ("own-help", "help", "`cglsuite own-help --help` ends with status 0 and prints '' on stdout"),
        ("heavy", "help", "`cglsuite heavy --help` imports torch"),
        ("leaves", "quiet import", "`cglsuite leaves --help` does not end within 120 s or ends its process (status 9)"),
        ("takes-all", "refusal", "ends with status 0 and prints '' on stdout, '' on stderr; expected status 2"),
        ("no-command", "factory", "expected a click command"),
    ],
)
def test_a_fault_is_named_by_the_check_that_it_breaks(catalogue: Catalogue, name: str, check: str, message: str) -> None:
    report = examine("command", name, catalogue, only=(check,))
    assert message in report.failed[0].message
    assert report.failed[0].fix
    with pytest.raises(CheckFailed, match=check):
        report.raise_failures()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [spec.name for spec in CORE_COMMANDS])
def test_the_suites_own_commands_conform(name: str) -> None:
    check_command(name, Catalogue([], []))
