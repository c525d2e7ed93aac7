"""The command ``cglsuite``: global options, the table of lazily imported commands, and error handling."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import signal
import sys
from collections.abc import Sequence
from pkgutil import resolve_name
from types import FrameType
from typing import Any

import click

from cglsuite import __version__
from cglsuite.base.environment import check_environment
from cglsuite.base.errors import CglsuiteError, nearest, said
from cglsuite.base.inputs import quoted
from cglsuite.base.traces import end_process, rest_collector, wake_collector
from cglsuite.cli.options import Session
from cglsuite.cli.output import configure_logging, echo, release_logging
from cglsuite.graphs.files.named import named

__all__ = ["COMMANDS", "cli", "main", "run"]

COMMANDS: dict[str, tuple[str, str]] = {
    "cell": ("cglsuite.cli.commands.cells:cell", "Run one cell and print its metrics."),
    "check": ("cglsuite.cli.commands.check:check", "Check that anything in the catalogue keeps its contract."),
    "data": ("cglsuite.cli.commands.data:data", "Say which data sets are here, download what is missing, verify what is here."),
    "export": ("cglsuite.cli.commands.export:export", "Write the splits of a scenario's stream as npz with hashes, for use elsewhere."),
    "list": ("cglsuite.cli.commands.catalogue:list_names", "List what plugins provide: datasets, scenarios, methods, ..."),
    "merge": ("cglsuite.cli.commands.exchange:merge", "Merge the records of several stores; both of two unlike results are kept."),
    "migrate": ("cglsuite.cli.commands.migrate:migrate", "Re-key records after source changes that leave results bit-identical."),
    "new": ("cglsuite.cli.commands.new:new", "Write a package for your own method, dataset, or any other kind."),
    "notebook": ("cglsuite.cli.commands.catalogue:notebook", "Copy an installed notebook, to open and change in Jupyter."),
    "plugins": ("cglsuite.cli.commands.plugins:plugins", "List installed plugins and their state; diagnose them."),
    "publish": ("cglsuite.cli.commands.exchange:publish", "Publish the records of a store in a folder or a bucket, for others to pull."),
    "pull": ("cglsuite.cli.commands.exchange:pull", "Pull published records into a store, verified."),
    "report": ("cglsuite.cli.commands.report:report", "Render the reports of a campaign from stored records."),
    "reproduce": ("cglsuite.cli.commands.reproduce:reproduce", "Rerun published experiments; write a ledger that compares the results."),
    "results": ("cglsuite.cli.commands.results:results", "Write stored results as CSV, JSON or Parquet."),
    "run": ("cglsuite.cli.commands.cells:run", "Run the missing cells of a campaign, then render its reports."),
    "scenarios": ("cglsuite.cli.commands.scenarios:scenarios", "Compare scenario presets field by field."),
    "show": ("cglsuite.cli.commands.catalogue:show", "Show one dataset, scenario, method, ... with all its hyper-parameters or switches."),
    "site": ("cglsuite.cli.commands.site:site", "Write the leaderboard of a results folder as static pages, ready to host."),
    "status": ("cglsuite.cli.commands.status:status", "Count a campaign's finished, missing and failed cells."),
    "submit": ("cglsuite.cli.commands.submit:submit", "Check the records of a third party, rerun a sample, and accept what holds."),
    "table": ("cglsuite.cli.commands.report:table", "Write one table of several scenarios for a paper: LaTeX, Markdown or CSV."),
}
"""Name to ("module:command", one line of help); a command's module is imported only when that command is used."""

INTERRUPTED = 130
_NOT_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_ENDING = (signal.SIGTERM, signal.SIGQUIT)
_log = logging.getLogger(__name__)


class Ended(KeyboardInterrupt):
    """A terminating signal, raised like Ctrl-C: running work is stopped, finished work is kept."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class _LazyGroup(click.Group):
    """A group whose commands are in :data:`COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = resolve_name(COMMANDS[cmd_name][0])
        if cmd_name != "cell":
            wake_collector()  # others may go on for long before a cell runs in their process, if ever
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name][0]} is not a command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for place, word in enumerate(args):
            if not word.strip() or (word.startswith("--") and word.endswith("=") and word.count("=") == 1):
                named = word.rstrip("=") or (args[place - 1] if place and args[place - 1].startswith("-") else "an argument")
                raise click.UsageError(f"{named} is empty: expected a value", ctx)
            if "\0" in word:
                raise click.UsageError(f"{quoted(word)}: expected no NUL character", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would exit with status 1 and without a message
            if _stdout_is_open():
                raise CglsuiteError(f"BrokenPipeError: {error} (a process that read from this one has ended)") from error
            return 0

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            close = nearest(args[0], COMMANDS, 1)
            advice = f"Did you mean {close[0]!r}?" if close else f"Commands: {', '.join(sorted(COMMANDS))}."
            raise click.UsageError(f"No such command {args[0]!r}. {advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


START = """\
cglsuite {version}: continual learning on graphs

Train one cell of a benchmark, on embedded data:
  cglsuite cell --scenario synthetic-csbm/class-il@example-1 --method er-gnn

Look around:
  cglsuite list                    what is installed, counted
  cglsuite list methods            one kind: methods, scenarios, datasets, backbones, metrics, ...
  cglsuite show ewc                one entry, with all its hyper-parameters or switches

Use your own data and method, each in one file:
  cglsuite show dataset photo --data photo.npz
  cglsuite cell --data photo.npz --scenario photo/class-il@cglb-1 --plugin mine.py --method mine

Run a study, with reports and significance tests:
  cglsuite run --example demo      the demonstration, in three minutes
  cglsuite run CAMPAIGN.toml       the cells of a campaign file
  cglsuite reproduce --paper BeGin --plan-only

All commands: cglsuite --help. Options of one: cglsuite COMMAND --help.
"""


@click.group(cls=_LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", count=True, help="Log more on stderr: progress and tracebacks; twice: everything.")
@click.option("--log-json", is_flag=True, help="Write the log on stderr as one JSON object per line.")
@click.option("--strict", is_flag=True, help="End with status 4 if any plugin is faulty (also: CGLSUITE_STRICT=1).")
@click.version_option(__version__, prog_name="cglsuite")
@click.pass_context
def cli(ctx: click.Context, verbose: int, log_json: bool, strict: bool) -> None:
    """Continual graph learning: published protocols, methods as small plugins, reports with honest statistics.

    Exit status: 0 ok, 1 a cell or report failed, 2 usage, 3 not applicable, 4 plugin fault, 130 interrupted (128 + n: by signal n).
    """
    configure_logging(verbose, log_json)
    check_environment()
    ctx.obj = Session(strict=strict)
    if ctx.invoked_subcommand is None:
        echo(START.format(version=__version__).rstrip())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; errors are logged on stderr.

    Args:
        arguments: the words after ``cglsuite``; default: this process's arguments.
    """
    configure_logging()
    _accept_any_text()
    try:
        with named():  # files that this command names are not the next one's
            result = cli.main(args=None if arguments is None else list(arguments), prog_name="cglsuite", standalone_mode=False)
        return result if _stdout_is_open() and isinstance(result, int) else 0
    except Exception as error:  # noqa: BLE001 - the outermost boundary: logged and turned into the exit status
        return _logged(error)
    except KeyboardInterrupt as error:
        return _interrupted(error)
    except BaseException as error:  # noqa: BLE001 - raised by code of others: no command of ours ends by SystemExit or GeneratorExit
        _log.error("%s: %s: a plugin tried to end the command", type(error).__name__, said(error), exc_info=error)
        return 1
    finally:
        release_logging()


def main() -> None:
    """Entry point of the console script: SIGTERM and SIGQUIT end it as SIGINT does, with status 128 + n."""
    for number in _ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:  # a signal that the caller ignores stays ignored
            signal.signal(number, _end)
    rest_collector()
    status = run()
    end_process(status)
    sys.exit(status)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    raise Ended(number)


def _logged(error: Exception) -> int:
    """Log an error by its type and return the exit status."""
    if isinstance(error, CglsuiteError):
        _log.error("%s", error, exc_info=error.__cause__)
        return error.exit_code
    if isinstance(error, click.exceptions.Abort):
        return _interrupted(error.__cause__)
    if isinstance(error, OSError) and error.errno in _NOT_WRITTEN and error.filename is None:
        _drop_stdout()
        _log.error("standard output cannot be written: %s; free some space, or redirect it", error.strerror or error)
        return 1
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context else ""
        _log.error("%s%s", error.format_message(), hint)
        return error.exit_code
    verbose = logging.getLogger("cglsuite").isEnabledFor(logging.INFO)
    advice = "" if verbose else " (unexpected: run again as `cglsuite -v ...` for the traceback)"
    _log.error("%s: %s%s", type(error).__name__, said(error, 4000), advice, exc_info=error)
    return 1


def _interrupted(cause: BaseException | None = None) -> int:
    if isinstance(cause, Ended):
        _log.error("ended by %s; finished work is kept", cause)
        return 128 + cause.number
    _log.error("interrupted")
    return INTERRUPTED


def _accept_any_text() -> None:
    """Show ``?`` for characters that the terminal cannot encode instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _stdout_is_open() -> bool:
    """Flush stdout; if its reader (such as head) has exited, discard the rest, so that Python's own flush at exit is quiet."""
    if sys.stdout is None:  # closed before this process started
        return True
    try:
        sys.stdout.flush()
        descriptor = sys.stdout.fileno()
    except BrokenPipeError:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in _NOT_WRITTEN:
            raise
        return True  # not a file, as under a test runner
    poll = select.poll()
    poll.register(descriptor, 0)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return True
    _drop_stdout()
    return False


def _drop_stdout() -> None:
    """Discard the rest of stdout: Python flushes it again at exit and would report an error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
