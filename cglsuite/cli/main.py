"""The ``cglsuite`` command: global options, a table of lazily imported subcommands, and error handling."""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import select
import signal
import sys
from collections.abc import Iterable, Sequence
from pkgutil import resolve_name
from types import FrameType
from typing import Any

import click

from cglsuite import __version__
from cglsuite.base.environment import check_environment
from cglsuite.base.errors import CglsuiteError, UnknownNameError, nearest, said
from cglsuite.base.inputs import quoted
from cglsuite.base.traces import end_process, pause_collector, resume_collector
from cglsuite.cli.options import Session
from cglsuite.cli.output import configure_logging, echo, release_logging, tidy
from cglsuite.graphs.files.named import named
from cglsuite.specs import CORE_COMMANDS

COMMANDS: dict[str, tuple[str, str]] = {spec.name: (spec.factory, spec.summary) for spec in CORE_COMMANDS}
"""Built-in commands: a mapping from name to ("module:command", one-line help). A module is imported only when its command is used."""

JOBS: dict[str, tuple[str, ...]] = {
    "See what is installed": ("list", "show", "scenarios", "data", "plugins"),
    "Train": ("cell", "run", "status", "reproduce"),
    "Results and pages": ("results", "report", "table", "diff", "notebook", "site"),
    "Your own plugins": ("new", "check"),
    "Keep and share": ("store", "merge", "publish", "pull", "submit", "migrate", "export"),
}
"""Commands grouped by job, in the order in which the help lists them."""
INTERRUPTED = 130
_NOT_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_ENDING = (signal.SIGTERM, signal.SIGQUIT)
_UNBROKEN = "\N{NON-BREAKING HYPHEN}"
_PROVIDER = "cglsuite.provider"
"""The context key for the plugin that provides the running command."""
_log = logging.getLogger(__name__)


class Ended(KeyboardInterrupt):
    """Raised on a terminating signal, and handled like Ctrl-C: running work is stopped, and finished work is kept."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class _Help(click.HelpFormatter):
    """A help formatter that never breaks a word at a hyphen, so that names and options can be copied."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(name, text.replace("-", _UNBROKEN)) for name, text in rows], col_max, col_spacing)

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _UNBROKEN))

    def getvalue(self) -> str:
        return super().getvalue().replace(_UNBROKEN, "-")


class _Context(click.Context):
    formatter_class = _Help


class _LazyGroup(click.Group):
    """A group with the commands in :data:`COMMANDS` and those of plugins, which are loaded only when needed."""

    context_class = _Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return _command_of_plugin(ctx, cmd_name)
        command = resolve_name(COMMANDS[cmd_name][0])
        if cmd_name != "cell":
            resume_collector()  # other commands may run for a long time before they run a cell, if they run one
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name][0]} is not a command")
        for shown in (command, *getattr(command, "commands", {}).values()):
            shown.context_class = _Context
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for place, word in enumerate(args):
            if not word.strip() or (word.startswith("--") and word.endswith("=") and word.count("=") == 1):
                named = word.rstrip("=") or (args[place - 1] if place and args[place - 1].startswith("-") else "an argument")
                raise click.UsageError(f"{named} is empty: expected a value", ctx)
            if "\0" in word:
                raise click.UsageError(f"{quoted(word)} contains a NUL character, which is not allowed", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would exit with status 1 and without a message
            if _stdout_is_open():
                raise CglsuiteError(f"BrokenPipeError: {error} (the process reading this output has exited)") from error
            return 0
        except Exception as error:
            if _PROVIDER in ctx.meta:
                error.add_note(f"in a command of {ctx.meta[_PROVIDER]}")
            raise

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = {*COMMANDS, *_session(ctx).catalogue().names("command")}
            close = nearest(name, known, 1)
            advice = f"Did you mean {close[0]!r}?" if close else f"Commands: {', '.join(sorted(known))}."
            raise click.UsageError(f"No such command {name!r}. {advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        wide = max(map(len, COMMANDS))
        for job, names in JOBS.items():
            with formatter.section(job):
                formatter.write_dl([(name.ljust(wide), COMMANDS[name][1]) for name in names])
        if theirs := _commands_of_plugins():
            with formatter.section("Commands of plugins"):
                formatter.write_dl(theirs)


def _session(ctx: click.Context) -> Session:
    """Return the session of this invocation. The first call applies the global options."""
    if ctx.obj is None:
        configure_logging(ctx.params.get("verbose", 0), ctx.params.get("log_json", False))
        check_environment()
        ctx.obj = Session(strict=ctx.params.get("strict", False))
    session: Session = ctx.obj
    return session


def _command_of_plugin(ctx: click.Context, name: str) -> click.Command | None:
    """Return the plugin command with that name, or ``None`` if there is none.

    Raises:
        PluginError: the command cannot be imported or is not a click command, or, in strict mode, any plugin is faulty.
        CollisionError: several plugins provide a command with that name.
    """
    catalogue = _session(ctx).catalogue()
    try:
        entry = catalogue.get("command", name)
    except UnknownNameError:
        return None
    from cglsuite.host.loading import output_to_stderr

    with output_to_stderr(), contextlib.redirect_stdout(sys.stderr):
        command: click.Command = catalogue.resolve(entry)
    resume_collector()
    ctx.meta[_PROVIDER] = entry.provider
    return command


def _commands_of_plugins() -> list[tuple[str, str]]:
    """Return (name, summary with provider) of each plugin command. Empty if plugins cannot be loaded; other commands report that."""
    from cglsuite.host.catalogue import load_leniently

    try:
        entries = load_leniently(built_in=False).entries("command")
    except CglsuiteError as error:
        _log.info("%s", error)
        return []
    return [(entry.name, f"{tidy(entry.spec.summary)} ({entry.provider})") for entry in entries]


START = """\
cglsuite {version}: continual learning on graphs

Train one cell of a benchmark on bundled data:
  cglsuite cell --scenario synthetic-csbm/class-il@example-1 --method er-gnn

Look around:
  cglsuite list                    what is installed, with counts
  cglsuite list methods            entries of one kind: methods, scenarios, datasets, backbones, metrics, ...
  cglsuite show ewc                one entry, with all its hyperparameters or switches

Use your own data and method, each in one file:
  cglsuite show dataset photo --data photo.npz
  cglsuite cell --data photo.npz --scenario photo/class-il@cglb-1 --plugin mine.py --method mine

Run a study, with reports and significance tests:
  cglsuite run --example demo      the demonstration (three minutes)
  cglsuite run CAMPAIGN.toml       all cells of a campaign file
  cglsuite reproduce --paper BeGin --plan-only

All commands: cglsuite --help. Options of one: cglsuite COMMAND --help.
"""


@click.group(cls=_LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", count=True, help="Log more to stderr: -v adds progress and tracebacks, -vv logs everything.")
@click.option("--log-json", is_flag=True, help="Write the log to stderr as one JSON object per line.")
@click.option("--strict", is_flag=True, help="Exit with status 4 if any plugin is faulty (also: CGLSUITE_STRICT=1).")
@click.version_option(__version__, prog_name="cglsuite")
@click.pass_context
def cli(ctx: click.Context, /, **options: Any) -> None:
    """Benchmark continual learning on graphs, with published protocols, methods as small plugins, and sound statistics.

    Exit status: 0 ok, 1 a cell or report failed, 2 usage, 3 not applicable, 4 plugin fault, 130 interrupted (128 + n for signal n).
    """
    _session(ctx)
    if ctx.invoked_subcommand is None:
        echo(START.format(version=__version__).rstrip())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Errors are logged to stderr.

    Args:
        arguments: the words after ``cglsuite``; by default the arguments of this process.
    """
    configure_logging()
    _accept_any_text()
    try:
        with named():  # files named by this command do not leak into the next one
            result = cli.main(args=None if arguments is None else list(arguments), prog_name="cglsuite", standalone_mode=False)
        return result if _stdout_is_open() and isinstance(result, int) else 0
    except Exception as error:  # noqa: BLE001 - the outermost boundary: logged and turned into the exit status
        return _log_error(error)
    except KeyboardInterrupt as error:
        return _exit_interrupted(error)
    except BaseException as error:  # noqa: BLE001 - raised by third-party code: built-in commands never raise SystemExit or GeneratorExit
        _log.error("%s: %s: a plugin tried to end the command", type(error).__name__, said(error), exc_info=error)
        return 1
    finally:
        release_logging()


def _start_portable(words: Sequence[str]) -> None:
    """Restart this process with the environment of portable numerics if its command trains a cell with them: libraries read it when loaded.

    It restarts only once. If something resets these variables in every process, the cell is refused.
    """
    command = next((word for word in words if not word.startswith("-")), "")  # options before it have no values
    options = [(word.partition("=")[0], word.partition("=")[2] or after) for word, after in itertools.pairwise((*words, ""))]
    values = dict(options)
    choice = values.get("--numerics", "auto")
    if command == "cell" and choice in ("auto", "portable") and "--help" not in words:
        from cglsuite.cells.portable import device_and_numerics, environment_of, in_force

        if in_force() or "CGLSUITE_RESTARTED" in os.environ:
            return
        with contextlib.suppress(UnknownNameError):  # the command reports it
            device = values.get("--device") or os.environ.get("CGLSUITE_DEVICE") or "auto"
            if choice == "portable" or device_and_numerics(device, "auto")[1] == "portable":
                environment = environment_of("portable") | {"CGLSUITE_RESTARTED": "1"}
                os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def main() -> None:
    """Run the console script. SIGTERM and SIGQUIT are handled like SIGINT, and result in exit status 128 + n."""
    for number in _ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:  # a signal that the caller ignores stays ignored
            signal.signal(number, _raise_ended)
    pause_collector()
    _start_portable(sys.argv[1:])
    status = run()
    end_process(status)
    sys.exit(status)


def _raise_ended(number: int, frame: FrameType | None) -> None:
    del frame
    raise Ended(number)


def _log_error(error: Exception) -> int:
    """Log an error by its type and return the exit status."""
    if isinstance(error, CglsuiteError):
        _log.error("%s", error, exc_info=error.__cause__)
        return error.exit_code
    if isinstance(error, click.exceptions.Abort):
        return _exit_interrupted(error.__cause__)
    if isinstance(error, OSError) and error.errno in _NOT_WRITTEN and error.filename is None:
        _drop_stdout()
        _log.error("cannot write to standard output: %s; free some space or redirect the output", error.strerror or error)
        return 1
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context else ""
        _log.error("%s%s", error.format_message(), hint)
        return error.exit_code
    verbose = logging.getLogger("cglsuite").isEnabledFor(logging.INFO)
    advice = "" if verbose else " (unexpected: run again as `cglsuite -v ...` for the traceback)"
    where = "".join(f" {note}" for note in getattr(error, "__notes__", ()) if note.startswith("in a command of "))
    _log.error("%s: %s%s%s", type(error).__name__, said(error, 4000), where, advice, exc_info=error)
    return 1


def _exit_interrupted(cause: BaseException | None = None) -> int:
    if isinstance(cause, Ended):
        _log.error("ended by %s; finished work is kept", cause)
        return 128 + cause.number
    _log.error("interrupted")
    return INTERRUPTED


def _accept_any_text() -> None:
    """Print ``?`` for characters that the terminal cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _stdout_is_open() -> bool:
    """Flush stdout and return whether it is still open. If its reader (such as head) has exited, discard the rest of the output."""
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
        return True  # not a file, for example under a test runner
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
