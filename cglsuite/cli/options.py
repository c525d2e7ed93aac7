"""Options shared by several commands, and their combinations."""

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
    """A command-line type whose values a function of :mod:`cglsuite.base.inputs` reads; its ValueError is a usage error."""

    def __init__(self, name: str, read: Callable[[Any], Any], unit: str = "") -> None:
        self.name, self.read, self.unit = name, read, unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(f"{quoted(str(value))}: {error}{self.unit}", param, ctx)


def DeviceWord() -> _Value:
    """A command-line type for names of devices: see :mod:`cglsuite.cells.device`."""
    return _Value("device", lambda value: read_device(str(value)))


def Whole(minimum: int, maximum: int) -> _Value:
    """A command-line type for whole numbers within bounds."""
    return _Value("integer", lambda value: whole_number(value, minimum, maximum))


def Real(minimum: float, maximum: float) -> _Value:
    """A command-line type for real numbers within bounds."""
    return _Value("number", lambda value: real_number(value, minimum, maximum))


def Seconds(*, zero: bool = False) -> _Value:
    """A command-line type for seconds: positive, or also 0 with ``zero``."""
    return _Value("seconds", lambda value: real_number(value, 0, MAX_SECONDS, above=None if zero else 0.0), " (seconds)")


class _CheckedPath(click.Path):
    """A command-line type for valid paths: not empty, with names that the file system allows."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            check_path(value)
        except ValueError as error:
            self.fail(f"{quoted(str(value))}: {error}", param, ctx)
        return super().convert(value, param, ctx)


def FolderPath() -> click.Path:
    """A command-line type for a folder that exists or can be created."""
    return _CheckedPath(file_okay=False, path_type=Path)


def AnyPath() -> click.Path:
    """A command-line type for a file or a folder."""
    return _CheckedPath(path_type=Path)


def FilePath() -> click.Path:
    """A command-line type for a file that exists or can be created."""
    return _CheckedPath(dir_okay=False, path_type=Path)


def _seed_option(axis: str, doc: str) -> Callable[[_Command], _Command]:
    return click.option(f"--{axis}-seed", type=Whole(0, MAX_SEED), default=0, show_default=True, help=doc)


order_seed_option = _seed_option("order", "Seed of the order in which tasks and classes arrive.")
split_seed_option = _seed_option("split", "Seed of the data split.")
init_seed_option = _seed_option("init", "Seed of all of the method's random numbers.")


def set_option(command: _Command) -> _Command:
    """``--set KEY=VALUE``, repeatable."""
    text = "Override a switch or hyper-parameter (training.epochs=50); repeatable. Precedes $CGLSUITE_SET (key=value;key=value)."
    return click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help=text)(command)


def _as_path(text: str) -> str:
    """A path unchanged; a library's data set (``pyg:Planetoid/PubMed``) as the file that it is written to."""
    if not text.startswith(("pyg:", "ogb:")):
        return text
    from cglsuite.study.data import as_data_file

    return str(as_data_file(text))


def _data_options(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """``NAME.KEY=VALUE`` options by data set; a plain ``KEY=VALUE`` belongs to the only data file.

    Raises:
        UsageError: another form, or no data file or several are named.
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
                f"--data-option {text}: expected NAME.KEY=VALUE, NAME one of {', '.join(names) or 'the data sets given by --data'}"
            )
        options.setdefault(name or names[0], {})[option] = value.strip()
    return options


def files_options(command: _Command) -> _Command:
    """``--plugin FILE``, ``--data FILE`` and ``--data-option``, each repeatable and applied before the catalogue is loaded."""

    def name(context: click.Context, parameter: click.Parameter, paths: tuple[str, ...]) -> None:
        from cglsuite.graphs.files.named import naming

        if context.resilient_parsing or not paths:
            return
        if parameter.name == "data_options":
            naming(options=_data_options(paths))
        else:
            naming(data=map(_as_path, paths)) if parameter.name == "data_files" else naming(plugins=paths)

    text = "A Python module that is a plugin, such as my_method.py; repeatable."
    command = click.option("--plugin", "plugin_files", metavar="FILE", multiple=True, callback=name, expose_value=False, help=text)(command)
    text = "A data set in a file: an npz, a folder of CSV tables, a saved PyG Data; or pyg:CLASS/NAME, ogb:NAME. Repeatable."
    # Eager: options are of files, which may stand behind them on the command line.
    command = click.option(
        "--data", "data_files", metavar="FILE", multiple=True, callback=name, expose_value=False, help=text, is_eager=True
    )(command)
    text = "What a data file leaves open: id, labels, unlabelled, time_unit or keys, such as photo.unlabelled=-1; repeatable."
    return click.option(
        "--data-option", "data_options", metavar="NAME.KEY=VALUE", multiple=True, callback=name, expose_value=False, help=text
    )(command)


def allow_code_option(command: _Command) -> _Command:
    """``--allow-code``: run the code that a campaign names."""
    text = "Run the code that the campaign names: its plugin files, and the classes of run.watch. Read it before."
    return click.option("--allow-code", is_flag=True, help=text)(command)


def tasks_option(command: _Command) -> _Command:
    """``--tasks N``; see :func:`with_tasks`."""
    text = "Spread the classes evenly over N tasks: short for scenario.n_tasks=N with scenario.classes_per_task=none."
    return click.option("--tasks", type=Whole(1, 1_000_000), metavar="N", help=text)(command)


def watch_option(command: _Command) -> _Command:
    """``--watch NAME[=FOLDER]``, repeatable; see :func:`cglsuite.cells.observing.observer_of`."""
    text = "Observe cells while they run: csv, tensorboard, package.module:Class or file.py:Class; repeatable."
    return click.option("--watch", metavar="NAME[=FOLDER]", multiple=True, help=text)(command)


def quiet_option(command: _Command) -> _Command:
    """``--quiet``: show no progress."""
    return click.option("-q", "--quiet", is_flag=True, help="Show no progress. Warnings and results are printed.")(command)


def check_tasks(catalogue: Catalogue, scenario: str, tasks: int | None) -> None:
    """Refuse ``--tasks`` in settings without class increments.

    Raises:
        UsageError: the scenario's tasks are domains or time steps, or it is unknown.
    """
    setting = catalogue.scenario(scenario).setting
    if tasks is not None and setting not in _OF_CLASSES:
        raise UsageError(
            f"--tasks {tasks}: the tasks of {scenario!r} ({setting}) follow from the data and are not groups of classes; "
            f"--set scenario.n_tasks={tasks} takes the first {tasks}"
        )


def with_tasks(values: Mapping[str, Any], tasks: int | None) -> dict[str, Any]:
    """``values`` with the settings that ``--tasks`` stands for.

    Raises:
        UsageError: the values also set the number of tasks, or the classes per task.
    """
    if tasks is None:
        return dict(values)
    for key in values:
        if key.removeprefix("scenario.") in _SPREAD:
            raise UsageError(f"--tasks {tasks} and --set {key}={values[key]}: --tasks sets scenario.n_tasks and scenario.classes_per_task")
    return {**values, "scenario.n_tasks": tasks, "scenario.classes_per_task": None}


# Shared parts of commands over cells: the store, the device, and overrides of a campaign.

_log = logging.getLogger(__name__)
FAILED = 1
"""Exit status: a cell, a record or a report failed."""


def store_option(command: _Command) -> _Command:
    """``--store FOLDER``: the parameter ``store_path``, ``None`` by default; see :func:`open_store`."""
    text = "Folder of results.  [default: $CGLSUITE_STORE, else ./.cglsuite]"
    return click.option("--store", "store_path", type=FolderPath(), help=text)(command)


def read_option(command: _Command) -> _Command:
    """``--read FOLDER``, any number of times: for this command and its processes what ``CGLSUITE_READ`` says, before those named there."""

    def name(context: click.Context, parameter: click.Parameter, paths: tuple[Path, ...]) -> None:
        if paths and not context.resilient_parsing:
            named = [str(path.expanduser().absolute()) for path in paths]
            for folder in named:
                if not os.path.isdir(folder):
                    raise UsageError(f"--read {folder}: there is no store: name the folder that holds cells/")
            context.with_resource(_variable("CGLSUITE_READ", os.pathsep.join([*named, *filter(None, [os.environ.get("CGLSUITE_READ")])])))

    text = "A store whose results count as well and which is only read; repeatable.  [default: $CGLSUITE_READ, and the campaign's]"
    return click.option("--read", type=FolderPath(), multiple=True, callback=name, expose_value=False, is_eager=True, help=text)(command)


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """An environment variable for the length of a block."""
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
        "portable: the same bits on every x86-64 processor with AVX2, CPUs only; auto: portable on such a CPU, else native.  "
        "[default: the campaign's, else auto]"
    )
    words = click.Choice(["auto", "native", "portable"])
    return click.option("--numerics", type=words, help=text, expose_value=False, callback=keep)(command)


def checkpoint_option(command: _Command) -> _Command:
    text = (
        "Seconds of finished work that an interruption of a cell may cost; 0 saves every task. No result depends on it.  "
        "[default: $CGLSUITE_CHECKPOINT_EVERY, else the campaign's, else 10]"
    )
    return click.option("--checkpoint-every", "checkpoint_every_s", type=Seconds(zero=True), metavar="SECONDS", help=text)(command)


def executor_option(command: _Command) -> _Command:
    text = "What runs the cells, as `cglsuite list executors` prints it; its options: --set run.NAME.KEY=VALUE.  [default: the campaign's]"
    return click.option("--executor", metavar="NAME", help=text)(command)


def open_store(path: Path | None, must_exist: bool = False) -> Store:
    """The store in that folder; default ``$CGLSUITE_STORE``, else ``./.cglsuite``.

    Raises:
        UsageError: with ``must_exist``, there is none.
    """
    from cglsuite.cells.storage.store import Store

    store = Store(path)
    if must_exist and not store.path.is_dir():
        raise UsageError(f"there is no store at {store.path}: name one with --store, or run something first")
    return store


def overrides_of(
    assignments: Sequence[str],
    device: str | None = None,
    workers: int | None = None,
    tasks: int | None = None,
    executor: str | None = None,
    checkpoint_every_s: float | None = None,
) -> Overrides:
    """The command line's overrides, on top of the environment's. Keys below ``run.`` are options of the executor."""
    from cglsuite.campaigns.overrides import Overrides, parse_overrides

    values = parse_overrides(assignments, "--set")
    run = {key.removeprefix("run."): value for key, value in values.items() if key.startswith("run.") and key.count(".") > 1}
    cells = with_tasks({key: value for key, value in values.items() if key.removeprefix("run.") not in run}, tasks)
    context = click.get_current_context(silent=True)
    given_here: dict[str, Any] = {"numerics": None if context is None else context.meta.get(_NUMERICS)}
    given_here |= {"device": device, "workers": workers, "executor": executor, "checkpoint_every_s": checkpoint_every_s}
    return Overrides.of(Overrides(values=cells, run=run, **given_here))


def shown_campaign(path: Path, allow_code: bool) -> Campaign:
    """The campaign of a command that only reads results; a warning names what it cannot plan."""
    from cglsuite.campaigns.campaign import load_campaign

    campaign = load_campaign(path, allow_code=allow_code)
    if campaign.withheld:
        what = "is not planned, and stored records with its names and seeds are shown; --allow-code runs that code"
        _log.warning("%s: what needs the code of %s %s", path, ", ".join(campaign.withheld), what)
    return campaign


def print_derivations(catalogue: Catalogue, scenarios: Iterable[str]) -> None:
    """Print on stderr, for every derived scenario, its preset, what was left out, and how a data file was interpreted."""
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
    """One invocation of the command line."""

    strict: bool = False
    _catalogue: Catalogue | None = field(default=None, repr=False)

    def catalogue(self) -> Catalogue:
        """The catalogue of installed plugins, loaded on first use; faults are logged on stderr once.

        Raises:
            PluginError: in strict mode, on any fault.
        """
        if self._catalogue is None:
            from cglsuite.host import load_catalogue

            self._catalogue = load_catalogue(strict=self.strict)
            warn_of_faults(self._catalogue)
        return self._catalogue


def warn_of_faults(catalogue: Catalogue) -> None:
    """One warning per quarantined plugin, per withheld name, and per questionable data file."""
    from cglsuite.graphs.files.given import data_warnings
    from cglsuite.specs import DatasetSpec

    for record in catalogue.failed:
        _log.warning("plugin %s is quarantined: %s (see `cglsuite plugins doctor`)", record.label, record.error)
    for collision in catalogue.collisions:
        used = "that of cglsuite" if collision.reserved else "none"
        _log.warning("%s; %s is used (see `cglsuite plugins doctor`)", collision.problem, used)
    for warning in data_warnings(catalogue.specs(DatasetSpec).values()):
        _log.warning("%s", warning)


def pass_session(command: _Command) -> _Command:
    """Decorator: the command's first argument is the :class:`Session`."""
    return click.make_pass_decorator(Session, ensure=True)(command)  # type: ignore[return-value]
