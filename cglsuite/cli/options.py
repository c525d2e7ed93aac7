"""Options shared by several commands, and checks of their combinations."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cglsuite.base.errors import UsageError
from cglsuite.base.inputs import MAX_SEED, check_path, quoted, read_device, real_number, whole_number

if TYPE_CHECKING:
    from cglsuite.campaigns.campaign import Campaign
    from cglsuite.campaigns.overrides import Overrides
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue


_Command = TypeVar("_Command", bound=Callable[..., Any])
MAX_SECONDS = 1e9
DEVICE_WORDS = "[auto|cpu|cuda|cuda:N]"
_NUMERICS = "cglsuite.numerics"
_SPREAD = ("n_tasks", "classes_per_task")
_OF_CLASSES = ("task-il", "class-il")

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # generic only in newer releases of click


class _Value(_ParamType):
    """A command-line type that parses values with a function from :mod:`cglsuite.base.inputs`. A ValueError becomes a usage error."""

    def __init__(self, name: str, read: Callable[[Any], Any], unit: str = "") -> None:
        self.name, self.read, self.unit = name, read, unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(f"{quoted(str(value))}: {error}{self.unit}", param, ctx)


def DeviceWord() -> _Value:
    """Return a command-line type for device names; see :mod:`cglsuite.cells.device`."""
    return _Value("device", lambda value: read_device(str(value)))


def Whole(minimum: int, maximum: int) -> _Value:
    """Return a command-line type for integers within bounds."""
    return _Value("integer", lambda value: whole_number(value, minimum, maximum))


def Real(minimum: float, maximum: float) -> _Value:
    """Return a command-line type for real numbers within bounds."""
    return _Value("number", lambda value: real_number(value, minimum, maximum))


def Seconds(*, zero: bool = False) -> _Value:
    """Return a command-line type for a positive number of seconds; ``zero`` also allows 0."""
    return _Value("seconds", lambda value: real_number(value, 0, MAX_SECONDS, above=None if zero else 0.0), " (seconds)")


class _CheckedPath(click.Path):
    """A command-line type for paths that are not empty and have valid file names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            check_path(value)
        except ValueError as error:
            self.fail(f"{quoted(str(value))}: {error}", param, ctx)
        return super().convert(value, param, ctx)


def FolderPath() -> click.Path:
    """Return a command-line type for a folder that exists or can be created."""
    return _CheckedPath(file_okay=False, path_type=Path)


def AnyPath() -> click.Path:
    """Return a command-line type for a file or a folder."""
    return _CheckedPath(path_type=Path)


def FilePath() -> click.Path:
    """Return a command-line type for a file that exists or can be created."""
    return _CheckedPath(dir_okay=False, path_type=Path)


def _seed_option(axis: str, doc: str) -> Callable[[_Command], _Command]:
    return click.option(f"--{axis}-seed", type=Whole(0, MAX_SEED), default=0, show_default=True, help=doc)


order_seed_option = _seed_option("order", "Seed of the order in which tasks and classes arrive.")
split_seed_option = _seed_option("split", "Seed of the data split.")
init_seed_option = _seed_option("init", "Seed of the initial weights and of all other random draws during training.")


def set_option(command: _Command) -> _Command:
    """Decorator: add the repeatable option ``--set KEY=VALUE``."""
    text = "Override a switch or hyperparameter (training.epochs=50); repeatable. Overrides $CGLSUITE_SET (key=value;key=value)."
    return click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help=text)(command)


def _as_path(text: str) -> str:
    """Return a path unchanged. Write a data set such as ``pyg:Planetoid/PubMed`` to a file and return its path."""
    if not text.startswith(("pyg:", "ogb:")):
        return text
    from cglsuite.study.data import as_data_file

    return str(as_data_file(text))


def _data_options(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Group ``NAME.KEY=VALUE`` options by data set. A plain ``KEY=VALUE`` applies to the only data file.

    Raises:
        UsageError: an option has a different form, or has no NAME while there is not exactly one data file.
    """
    from cglsuite.graphs.files.named import data_files, name_of

    options: dict[str, dict[str, str]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        name, _, option = key.strip().rpartition(".")
        if not equals or not option:
            raise UsageError(f"--data-option {text}: expected NAME.KEY=VALUE, such as photo.labels=multi")
        names = sorted({name_of(path) for path in data_files()})
        if not name and len(names) != 1:
            raise UsageError(
                f"--data-option {text}: expected NAME.KEY=VALUE, where NAME is one of {', '.join(names) or 'the data sets given by --data'}"
            )
        options.setdefault(name or names[0], {})[option] = value.strip()
    return options


def files_options(command: _Command) -> _Command:
    """Decorator: add the repeatable ``--plugin``, ``--data`` and ``--data-option``, which apply before the catalogue is loaded."""

    def name(context: click.Context, parameter: click.Parameter, paths: tuple[str, ...]) -> None:
        from cglsuite.graphs.files.named import naming

        if context.resilient_parsing or not paths:
            return
        if parameter.name == "data_options":
            naming(options=_data_options(paths))
        else:
            naming(data=map(_as_path, paths)) if parameter.name == "data_files" else naming(plugins=paths)

    text = "Load this Python file as a plugin, for example my_method.py; repeatable."
    command = click.option("--plugin", "plugin_files", metavar="FILE", multiple=True, callback=name, expose_value=False, help=text)(command)
    text = "Load a data set: an npz, a folder of CSV tables, a saved PyG Data, pyg:CLASS/NAME or ogb:NAME. Repeatable."
    # Eager, because --data-option refers to data files that may come later on the command line.
    command = click.option(
        "--data", "data_files", metavar="FILE", multiple=True, callback=name, expose_value=False, help=text, is_eager=True
    )(command)
    text = "Set how a data file is read: id, labels, unlabelled, time_unit or keys, for example photo.unlabelled=-1; repeatable."
    return click.option(
        "--data-option", "data_options", metavar="NAME.KEY=VALUE", multiple=True, callback=name, expose_value=False, help=text
    )(command)


def allow_code_option(command: _Command) -> _Command:
    """Decorator: add ``--allow-code``, which lets a campaign run the code that it names."""
    text = "Run the code that the campaign names: its plugin files and the classes in run.watch. Review that code first."
    return click.option("--allow-code", is_flag=True, help=text)(command)


def tasks_option(command: _Command) -> _Command:
    """Decorator: add ``--tasks N``; see :func:`with_tasks`."""
    text = "Split the classes evenly into N tasks; shorthand for scenario.n_tasks=N with scenario.classes_per_task=none."
    return click.option("--tasks", type=Whole(1, 1_000_000), metavar="N", help=text)(command)


def watch_option(command: _Command) -> _Command:
    """Decorator: add the repeatable option ``--watch NAME[=FOLDER]``; see :func:`cglsuite.cells.observing.observer_of`."""
    text = "Observe cells while they run: csv, tensorboard, package.module:Class or file.py:Class; repeatable."
    return click.option("--watch", metavar="NAME[=FOLDER]", multiple=True, help=text)(command)


def quiet_option(command: _Command) -> _Command:
    """Decorator: add ``--quiet``, which hides progress."""
    return click.option("-q", "--quiet", is_flag=True, help="Hide progress; still print warnings and results.")(command)


def check_tasks(catalogue: Catalogue, scenario: str, tasks: int | None) -> None:
    """Check that ``--tasks`` is used only in class-incremental settings.

    Raises:
        UsageError: the tasks of the scenario are domains or time steps, or the scenario is unknown.
    """
    setting = catalogue.scenario(scenario).setting
    if tasks is not None and setting not in _OF_CLASSES:
        raise UsageError(
            f"--tasks {tasks}: the tasks of {scenario!r} ({setting}) come from the data and are not groups of classes; "
            f"use --set scenario.n_tasks={tasks} to run only the first {tasks}"
        )


def with_tasks(values: Mapping[str, Any], tasks: int | None) -> dict[str, Any]:
    """Return ``values`` with the settings added that ``--tasks`` is shorthand for.

    Raises:
        UsageError: the values already set the number of tasks or the classes per task.
    """
    if tasks is None:
        return dict(values)
    for key in values:
        if key.removeprefix("scenario.") in _SPREAD:
            raise UsageError(f"--tasks {tasks} and --set {key}={values[key]}: --tasks sets scenario.n_tasks and scenario.classes_per_task")
    return {**values, "scenario.n_tasks": tasks, "scenario.classes_per_task": None}


# Options of commands that run or read cells: the store, the device, and overrides of a campaign.

_log = logging.getLogger(__name__)
FAILED = 1
"""The exit status if a cell, a record or a report failed."""


def store_option(command: _Command) -> _Command:
    """Decorator: add ``--store FOLDER`` as the parameter ``store_path`` (default ``None``); see :func:`open_store`."""
    text = "Folder of results.  [default: $CGLSUITE_STORE, else ./.cglsuite]"
    return click.option("--store", "store_path", type=FolderPath(), help=text)(command)


def read_option(command: _Command) -> _Command:
    """Decorator: add the repeatable ``--read FOLDER``, prepended to ``CGLSUITE_READ`` for this command and its processes."""

    def name(context: click.Context, parameter: click.Parameter, paths: tuple[Path, ...]) -> None:
        if paths and not context.resilient_parsing:
            named = [str(path.expanduser().absolute()) for path in paths]
            for folder in named:
                if not os.path.isdir(folder):
                    raise UsageError(f"--read {folder} is not a store: name the folder that contains cells/")
            context.with_resource(_variable("CGLSUITE_READ", os.pathsep.join([*named, *filter(None, [os.environ.get("CGLSUITE_READ")])])))

    text = "Also use the results in this store, which is only read; repeatable.  [default: $CGLSUITE_READ, and the campaign's]"
    return click.option("--read", type=FolderPath(), multiple=True, callback=name, expose_value=False, is_eager=True, help=text)(command)


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for the duration of a block."""
    former = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if former is None:
            del os.environ[name]
        else:
            os.environ[name] = former


def device_option(command: _Command) -> _Command:
    text = "Where to train; auto uses a GPU if there is one.  [default: $CGLSUITE_DEVICE, else the campaign's, else auto]"
    return click.option("--device", type=DeviceWord(), metavar=DEVICE_WORDS, help=text)(command)


def numerics_option(command: _Command) -> _Command:
    def keep(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
        ctx.meta[_NUMERICS] = value

    text = (
        "portable gives the same bits on every x86-64 CPU with AVX2; auto is portable on such a CPU, else native.  "
        "[default: the campaign's, else auto]"
    )
    words = click.Choice(["auto", "native", "portable"])
    return click.option("--numerics", type=words, help=text, expose_value=False, callback=keep)(command)


def checkpoint_option(command: _Command) -> _Command:
    text = (
        "Lose at most this many seconds of work on an interruption; 0 saves after every task. Results do not depend on it.  "
        "[default: $CGLSUITE_CHECKPOINT_EVERY, else the campaign's, else 10]"
    )
    return click.option("--checkpoint-every", "checkpoint_every_s", type=Seconds(zero=True), metavar="SECONDS", help=text)(command)


def executor_option(command: _Command) -> _Command:
    text = "Executor that runs the cells (see `cglsuite list executors`); options: --set run.NAME.KEY=VALUE.  [default: the campaign's]"
    return click.option("--executor", metavar="NAME", help=text)(command)


def open_store(path: Path | None, must_exist: bool = False) -> Store:
    """Open the store in a folder. The default is ``$CGLSUITE_STORE``, else ``./.cglsuite``.

    Raises:
        UsageError: ``must_exist`` is set and the folder does not exist.
    """
    from cglsuite.cells.storage.store import Store

    store = Store(path)
    if must_exist and not store.path.is_dir():
        raise UsageError(f"there is no store at {store.path}: name a store with --store, or run a cell or campaign first")
    return store


def overrides_of(
    assignments: Sequence[str],
    device: str | None = None,
    workers: int | None = None,
    tasks: int | None = None,
    executor: str | None = None,
    checkpoint_every_s: float | None = None,
) -> Overrides:
    """Return the overrides from the environment and the command line, which takes precedence. Keys below ``run.`` are options of the
    executor.
    """
    from cglsuite.campaigns.overrides import Overrides, parse_overrides

    values = parse_overrides(assignments, "--set")
    run = {key.removeprefix("run."): value for key, value in values.items() if key.startswith("run.") and key.count(".") > 1}
    cells = with_tasks({key: value for key, value in values.items() if key.removeprefix("run.") not in run}, tasks)
    context = click.get_current_context(silent=True)
    given_here: dict[str, Any] = {"numerics": None if context is None else context.meta.get(_NUMERICS)}
    given_here |= {"device": device, "workers": workers, "executor": executor, "checkpoint_every_s": checkpoint_every_s}
    return Overrides.of(Overrides(values=cells, run=run, **given_here))


def shown_campaign(path: Path, allow_code: bool) -> Campaign:
    """Load the campaign for a command that only reads results, and warn about parts that cannot be planned."""
    from cglsuite.campaigns.campaign import load_campaign

    campaign = load_campaign(path, allow_code=allow_code)
    if campaign.withheld:
        what = "are not planned, and stored records with the same names and seeds are shown instead; --allow-code runs that code"
        _log.warning("%s: cells that need code from %s %s", path, ", ".join(campaign.withheld), what)
    return campaign


def print_derivations(catalogue: Catalogue, scenarios: Iterable[str]) -> None:
    """Print to stderr, for each derived scenario, the preset, what was left out, and how the data file was interpreted."""
    from cglsuite.campaigns.executors.progress import say
    from cglsuite.graphs.files.given import FileDatasetSpec

    named_already: set[str] = set()
    for name in dict.fromkeys(scenarios):
        derivation = catalogue.derivation(name)
        if derivation is None:
            continue
        say(derivation.message)
        dataset = catalogue.dataset(derivation.spec.dataset)
        if isinstance(dataset, FileDatasetSpec) and dataset.name not in named_already:
            named_already.add(dataset.name)
            say(f"{dataset.name}: {'; '.join(f'{what}: {value}' for what, value in dataset.facts)}")


# The global options and the catalogue of one invocation; commands receive it through ``@pass_session``.


@dataclass
class Session:
    """The state of one command-line invocation: strict mode and the catalogue."""

    strict: bool = False
    _catalogue: Catalogue | None = field(default=None, repr=False)

    def catalogue(self) -> Catalogue:
        """Return the catalogue of installed plugins. It is loaded on first use, and faults are logged then.

        Raises:
            PluginError: a plugin is faulty and strict mode is on.
        """
        if self._catalogue is None:
            from cglsuite.host import load_catalogue

            self._catalogue = load_catalogue(strict=self.strict)
            warn_of_faults(self._catalogue)
        return self._catalogue


def warn_of_faults(catalogue: Catalogue) -> None:
    """Log a warning for each quarantined plugin, each name that several plugins provide, and each questionable data file."""
    from cglsuite.graphs.files.given import data_warnings
    from cglsuite.specs import DatasetSpec

    for record in catalogue.failed:
        _log.warning("plugin %s is quarantined: %s (see `cglsuite plugins doctor`)", record.label, record.error)
    for collision in catalogue.collisions:
        used = "the one of cglsuite" if collision.reserved else "none"
        _log.warning("%s; %s is used (see `cglsuite plugins doctor`)", collision.problem, used)
    for warning in data_warnings(catalogue.specs(DatasetSpec).values()):
        _log.warning("%s", warning)


def pass_session(command: _Command) -> _Command:
    """Decorator: pass the :class:`Session` as the first argument of the command."""
    return click.make_pass_decorator(Session, ensure=True)(command)  # type: ignore[return-value]
