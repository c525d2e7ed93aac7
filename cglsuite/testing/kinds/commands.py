"""Conformance checks for commands: lazy imports, a help text, and the suite's usual error for unknown options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

from cglsuite.base.helpers import run_helper
from cglsuite.host import Catalogue, Entry
from cglsuite.testing.findings import Check, CheckFailed
from cglsuite.testing.kinds.entries import entry_checks, listed_modules

_LIMIT_S = 120.0
_BAD_OPTION = "--no-such-option-of-any-command"


def checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    """Yield the checks of a command's help and error messages. They run in separate processes, and the command itself is not run."""
    trial = _Trial(entry)

    def text() -> str:
        command = catalogue.resolve(entry)
        return command.help or command.short_help or ""

    yield from entry_checks(catalogue, entry, cited=False, docstring=text)
    yield Check(name="lazy", action=partial(_lazy, trial))
    yield Check(name="quiet import", action=partial(_quiet, trial), after="factory")
    yield Check(name="help", action=partial(_help, trial), after="quiet import")
    yield Check(name="refusal", action=partial(_refusal, trial), after="help")


class _Trial:
    """A command and its behaviour in separate processes."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    @property
    def module(self) -> str:
        """The module that defines the command."""
        spec: Any = self.entry.spec
        return str(spec.factory).partition(":")[0]

    @cached_property
    def helped(self) -> dict[str, Any]:
        """The outcome of ``cglsuite NAME --help``."""
        return self.run("--help")

    def run(self, *words: str) -> dict[str, Any]:
        """Run the command. Return its exit status and output, and the output of importing it.

        Raises:
            CheckFailed: the process does not end or is killed.
        """
        spec: Any = self.entry.spec
        done = run_helper("cglsuite.testing.staged.command_line", spec.factory, spec.name, *words, limit_s=_LIMIT_S, start_new_session=True)
        try:
            answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        except (ValueError, IndexError):
            said = " ".join(words)
            last = "".join(done.stderr.strip().splitlines()[-1:])[-300:]
            raise CheckFailed(
                f"`cglsuite {spec.name} {said}` does not end within {_LIMIT_S:g} s or ends its process (status {done.returncode}). {last}",
                "do all work in the function of the command, not during import or in the callback of an option",
            ) from None
        return answer


def _lazy(trial: _Trial) -> None:
    """Check that listing the plugin does not import the command's module."""
    module = trial.entry.record.module
    if trial.module in listed_modules(module, (trial.module,)):
        raise CheckFailed(
            f"listing {module} imports {trial.module}, the module of the command",
            f'move the command to a separate module that {module} does not import, such as factory="{module}_command:main"',
        )


def _quiet(trial: _Trial) -> None:
    if printed := trial.helped["imported"].strip():
        raise CheckFailed(f"importing {trial.module} prints {printed[:200]!r}", "print only in the function of the command")


def _help(trial: _Trial) -> None:
    """Check that the help is printed to stdout with status 0 and without importing torch."""
    helped, words = trial.helped, f"`cglsuite {trial.entry.name} --help`"
    if (helped["status"], helped["errors"]) != (0, "") or "Usage:" not in helped["output"]:
        raise CheckFailed(
            f"{words} {_outcome(helped)}; expected status 0 and the help on stdout only",
            "let click print the help: use @click.command() with a docstring, and do not define an option --help",
        )
    if helped["torch"]:
        raise CheckFailed(
            f"{words} imports torch, which takes a second", "import torch and modules that need it in the function of the command"
        )


def _refusal(trial: _Trial) -> None:
    """Check that an unknown option gives status 2, a message on stderr, and nothing on stdout."""
    refused = trial.run(_BAD_OPTION)
    if refused["status"] != 2 or refused["output"] or not refused["errors"].strip() or "Traceback" in refused["errors"]:
        raise CheckFailed(
            f"`cglsuite {trial.entry.name} {_BAD_OPTION}` {_outcome(refused)}; expected status 2 and a message on stderr only",
            "declare options with click, without ignore_unknown_options",
        )


def _outcome(answer: dict[str, Any]) -> str:
    output, errors = (answer[part].strip()[:120] for part in ("output", "errors"))
    return f"ends with status {answer['status']} and prints {output!r} on stdout, {errors!r} on stderr"
