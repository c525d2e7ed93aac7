"""Campaigns: a TOML file that defines a grid of cells, an optional hyperparameter search, and the reports to render.

.. code-block:: toml

    name = "demo"
    title = "What the suite does, on synthetic data"
    description = "..."
    # plugins = ["my_method.py"]   # plugin files, relative to this one (see --plugin); their code runs only with --allow-code
    # data = ["photo.npz"]        # data files, also relative (see --data)

    [grid]                       # every scenario × method × backbone
    scenarios = ["synthetic-csbm/task-il@begin-1", "synthetic-csbm/class-il@begin-1"]
    methods = ["bare", "ewc", "joint"]
    backbones = []               # empty: the preset's backbone
    axes = { "scenario.n_tasks" = [5, 8, 20] }   # further axes, for every cell that declares the key

    [seeds]                      # "zip": the longest list sets the length, single values are repeated; "cross": every combination
    design = "zip"
    order = [0, 1, 2]
    split = [0]
    init = [0, 1, 2]
    # orders = "all-tasks"       # instead of order: a design of task or class orders, crossed with split and init

    [set]                        # applies to every cell that declares the key; quoted dotted keys and plain ones are equivalent
    training.epochs = 50

    [[override]]                 # applies to some cells; later ones win; globs on scenario, method and backbone
    match = { method = "ewc" }
    set = { "method.lambda" = 1e4 }

    [search]                     # runs before the grid: per scenario, method and backbone, scored on validation data only
    trials = 12                  # points drawn from each method's grid, the same number for all; without it, the whole grid
    scope = "first-tasks(2)"     # use the validation items of the first k tasks (2 <= k < T); "all": of all tasks, after the last one;
                                 # without it, the preset's default: "first-tasks(2)" for our own task streams, otherwise "all"
    seeds = { order = [0, 1000], init = [0, 1] }
    grid = { "training.lr" = [1e-3, 5e-3] }
    draw = "sobol"               # how to draw from ranges: by a Sobol sequence, or "random"

    [search.methods.ewc]         # further axes for one method
    "method.lambda" = { log = [1e2, 1e4] }   # a range: float, int, log or log-int; needs trials

    [run]
    workers = 1
    device = "auto"
    numerics = "auto"            # "portable" on a CPU with AVX2: bit-identical across CPUs; otherwise "native"
    timeout_s = 3600
    checkpoint_every_s = 10      # seconds of finished work that an interrupted cell may lose; 0 saves after every task
    threads = 1
    executor = "local"           # or another installed executor: cglsuite list executors
    cells_at_most = 50_000       # a larger design is refused before any cell is planned
    read = ["../shared"]         # further stores whose results are reused; opened read-only; relative to this file
    watch = ["csv"]              # observers, as in --watch; their folders are relative to this file; classes need --allow-code
    share_prefixes = true        # cells whose orders begin with the same tasks share their training; results are the same

    [run.slurm]                  # options of the executor: cglsuite show executor slurm
    partition = "gpu"

    [[report]]
    notebook = "campaign_report"
    title = "All results"        # title of the page and of its link; without it, the notebook's name
    parameters = {}              # cglsuite show notebook campaign_report

Precedence: command line > environment > search > grid > ``[[override]]`` > ``[set]`` > preset. A hyperparameter of a
method, backbone or dataset (``method.lambda``) applies to the cells that declare it; a key that no cell declares is an error.

``seeds.orders`` makes the task or class order an axis. Its value is ``"all-tasks"`` (T! orders of the T tasks), ``"random-tasks:30"``,
``"latin-tasks"``, ``"random-classes:100"``, ``"latin-classes:10"``, explicit orders of the classes ``[[3, 1, 2, 0], [0, 1, 2, 3]]``,
or a list of several of these (see :mod:`cglsuite.campaigns.campaign`). It sets ``scenario.class_order`` and the order seeds, so
you cannot set either of them as well. Every order is run with every split seed and every init seed. ``all-tasks`` and
``latin-tasks`` need the number of tasks: ``scenario.n_tasks`` of the preset, or of ``[set]``. Searches have their own seeds
and take no ``orders``.
"""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    WrapValidator,
    field_validator,
    model_validator,
)

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import UnknownNameError, UsageError, nearest
from cglsuite.base.inputs import (
    MAX_PROCESSES,
    MAX_SEED,
    check_path,
    key_path,
    problem_text,
    quoted,
    read_regular,
    read_text,
    whole_number,
)
from cglsuite.campaigns.overrides import same_key
from cglsuite.campaigns.search import RANGES, Range, Sequencing, parse_range, parse_scope
from cglsuite.cells.portable import NumericsChoice
from cglsuite.graphs.files.named import naming, plugin_files
from cglsuite.graphs.files.shipped import shipped
from cglsuite.specs import ScenarioSpec, Seeds, order_count
from cglsuite.specs.plugins import PRETRAINING_SCHEME

ORDERS_LIMIT = MAX_CELLS = 50_000
_MAX_TASKS = 100_000
"""Larger than the number of orders in any allowed design, and small enough to count quickly."""
_RULES = {
    "all-tasks": "all-tasks",
    "latin-tasks": "latin-tasks",
    "random-tasks": "random-tasks",
    "random-classes": "random",
    "latin-classes": "latin-classes",
    "native": "native",
}
_COUNTED = ("random-tasks", "random-classes", "latin-classes")


@dataclass(frozen=True)
class Order:
    """One task or class order of a cell: the value of ``scenario.class_order`` and the order seed."""

    rule: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class OrderDesign:
    """A design of orders: a value of ``scenario.class_order`` and its number of order seeds (``None``: determined by the number of tasks).

    ``classes``: the number of classes in explicit orders.
    """

    rule: str
    count: int | None
    classes: int = 0

    def orders(self, spec: ScenarioSpec, n_tasks: int | None) -> list[Order]:
        """Return the orders for one scenario; see :meth:`number`."""
        return [Order(self.rule, seed) for seed in range(self.number(spec, n_tasks))]

    def number(self, spec: ScenarioSpec, n_tasks: int | None) -> int:
        """Return the number of orders for one scenario.

        Args:
            n_tasks: the scenario's number of tasks, if known.

        Raises:
            UsageError: the design needs the number of tasks, but it is unknown; or there are too many orders.
        """
        if spec.setting == "time-il":
            raise UsageError(f"seeds.orders: the tasks of {spec.name!r} arrive in temporal order; remove orders")
        count = self.count
        if count is None:
            if n_tasks is None:
                raise UsageError(f'seeds.orders = "{self.rule}": the number of tasks of {spec.name!r} is unknown; set scenario.n_tasks')
            count = order_count(self.rule, min(n_tasks, _MAX_TASKS)) or 0
        if count > ORDERS_LIMIT:
            detail = f" of {n_tasks} tasks" if self.rule == "all-tasks" else ""
            number = f"{count} orders{detail}" if count < 10**30 else f"all orders{detail}"
            raise UsageError(
                f'seeds.orders = "{self.rule}": {number} are too many; expected at most {ORDERS_LIMIT}, '
                'for example "random-tasks:100" or "latin-tasks"'
            )
        if self.classes and n_tasks is not None and self.classes < n_tasks:
            raise UsageError(f"seeds.orders: {self.classes} classes cannot form the {n_tasks} tasks of {spec.name!r}")
        return count


def order_designs(value: Any) -> list[OrderDesign]:
    """Parse the value of the key ``orders`` into designs, which define the task or class orders of cells and their order seeds.

    ============================= ======================================================================= ==============================
    ``orders``                    the cells' orders                                                       ``scenario.class_order``
    ============================= ======================================================================= ==============================
    ``"all-tasks"``               every order of the native tasks, T!                                     ``all-tasks``
    ``"random-tasks:30"``         30 random orders of the native tasks (with replacement)                 ``random-tasks``
    ``"latin-tasks"``             the rows of a balanced Latin square of tasks: T, or 2 T if T is odd     ``latin-tasks``
    ``"random-classes:100"``      100 random orders of the classes                                        ``random``
    ``"latin-classes:10"``        the first 10 rows of a balanced Latin square of classes                 ``latin-classes``
    ``"native"``                  the native order                                                        ``native``
    ``[[3, 1, 2, 0], [...]]``     exactly these orders of the classes                                     ``3,1,2,0 | ...``
    ``["all-tasks", ...]``        several of these, one after the other
    ============================= ======================================================================= ==============================

    T is ``scenario.n_tasks`` of the preset or the campaign. An order that appears in two designs gives two cells.

    Raises:
        UsageError: a design is unknown, a number is missing or superfluous, explicit orders are not permutations of each other, or a
            design or order is repeated.
    """
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts:
        raise UsageError(
            f'expected a design such as "all-tasks", or a list of designs or of orders such as [3, 1, 2, 0] (given: {value!r})'
        )
    explicit = [part for part in parts if not isinstance(part, str)]
    designs: list[OrderDesign] = []
    for part in parts:
        if isinstance(part, str):
            designs.append(_design(part))
        elif part is explicit[0]:
            designs.append(_explicit_orders(explicit))
    _refuse("repeated design", [design.rule for design in designs])
    return designs


def too_many_cells_error(place: str, cells: int, limit: int, why: str = "") -> UsageError:
    """Create the error for a design with too many cells. Its message names the place in the campaign."""
    number = f"{cells:,}" if cells < 10**15 else f"more than {10**15:,}"
    advice = "narrow it, or set cells_at_most in [run] to a higher number"
    return UsageError(f"{place}: the design has {number} cells{why}, but at most {limit:,} are allowed: {advice}")


def _design(text: str) -> OrderDesign:
    name, colon, number = (part.strip() for part in text.partition(":"))
    if name not in _RULES:
        raise UnknownNameError("design", name, _RULES)
    if name not in _COUNTED:
        if colon:
            raise UsageError(f'"{text}": the number of orders of {name} is fixed; expected "{name}"')
        return OrderDesign(rule=_RULES[name], count=1 if name == "native" else None)
    try:
        return OrderDesign(rule=_RULES[name], count=whole_number(number, 1))
    except ValueError:
        raise UsageError(f'"{quoted(text)[1:-1]}": expected a number of orders, for example "{name}:30"') from None


def _explicit_orders(orders: Sequence[Any]) -> OrderDesign:
    """Return all explicit orders as one value of ``scenario.class_order``; the order seed selects one."""
    for order in orders:
        if not isinstance(order, list) or not order or any(isinstance(c, bool) or not isinstance(c, int) for c in order):
            raise UsageError(f"{order!r}: expected a list of class ids in order of arrival, for example [3, 1, 2, 0]")
    known = set(orders[0])
    for order in orders:
        if len(set(order)) < len(order):
            twice = next(c for place, c in enumerate(order) if c in order[:place])
            raise UsageError(f"{order}: class {twice} appears twice; list every class exactly once")
        if differing := sorted(known ^ set(order)):
            difference = f"class {differing[0]} is missing" if differing[0] in known else f"class {differing[0]} is not in the first order"
            raise UsageError(f"{order}: {difference}; expected a permutation of {sorted(known)}")
    _refuse("repeated order", orders)
    rule = " | ".join(",".join(map(str, order)) for order in orders)
    return OrderDesign(rule=rule, count=len(orders), classes=len(known))


def _refuse(problem: str, values: Sequence[Any]) -> None:
    try:
        refuse_repeats(problem, values)
    except ValueError as error:
        raise UsageError(str(error)) from error


# Repeated entries of a campaign (a seed, a value of an axis, a method) are errors, since means would count their cells twice.


def refuse_repeats(label: str, values: Iterable[Any]) -> None:
    """Check that all ``values`` differ. Different spellings of a value are equal: ``1`` and ``1.0``, or ``"0,1"`` and ``"0, 1"``.

    Raises:
        ValueError: two values are equal; the message begins with ``label`` and shows both spellings.
    """
    seen: dict[Hashable, str] = {}
    for value in values:
        form, spelled = _form(value), repr(value)
        if form in seen:
            repeated = f"{spelled} is given twice" if seen[form] == spelled else f"{seen[form]} and {spelled} are the same"
            raise ValueError(f"{label}: {repeated}; list each value once")
        seen[form] = spelled


def _form(value: Any) -> Hashable:
    """Return a canonical form that equal values share; numbers and booleans differ."""
    if isinstance(value, str):
        return "".join(value.split())
    if isinstance(value, (list, tuple)):
        return tuple(_form(v) for v in value)
    return (type(value) is bool, value)


_MAX_BYTES = 2**24
_DEEPEST = 20
_TOO_DEEP = f"tables or lists are nested more than {_DEEPEST} levels deep, deeper than any key of a campaign"


def _flatten(node: Any, keeps_table: Callable[[str, dict[str, Any]], bool] = lambda key, table: False, above: str = "") -> Any:
    """Flatten ``{a: {b: 1}}`` to ``{"a.b": 1}``: TOML reads unquoted dotted keys as tables. ``keeps_table``: whether a table is a value."""
    if not isinstance(node, dict):
        return node
    flat: dict[str, Any] = {}
    for key, value in node.items():
        whole = above + key
        if isinstance(value, dict) and not keeps_table(whole, value):
            inner = {f"{key}.{k}": v for k, v in _flatten(value, keeps_table, f"{whole}.").items()}
        else:
            inner = {key: value}
        for name in inner:
            if twice := next((other for other in flat if same_key(name, other)), None):
                raise ValueError(f"{twice!r} and {name!r} set the same value; remove one of them")
        flat |= inner
    return flat


def _without_repeats(values: list[Any]) -> list[Any]:
    refuse_repeats("repeated", values)
    return values


def _item_value(value: Any) -> Any:
    if not isinstance(value, (bool, int, float, str, list)):
        raise ValueError(f"expected true or false, a number, text or a list (given: {quoted(value)})")
    return value


ItemValue = Annotated[Any, AfterValidator(_item_value)]  # not a union type: its members would appear in the paths of errors
Values = Annotated[dict[str, ItemValue], BeforeValidator(_flatten)]
Axis = Annotated[list[ItemValue], Field(min_length=1), AfterValidator(_without_repeats)]
Axes = Annotated[dict[str, Axis], BeforeValidator(_flatten)]
Names = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1), AfterValidator(_without_repeats)]
SeedList = Annotated[list[Annotated[int, Field(ge=0, le=MAX_SEED)]], Field(min_length=1)]
Processes = Annotated[int, Field(ge=1, le=MAX_PROCESSES)]


def _flatten_space(space: Any) -> Any:
    return _flatten(space, lambda key, table: "." in key or bool(table.keys() & {*RANGES, "choice"}))


def _values_or_range(value: Any, values: Callable[[Any], list[Any]]) -> Any:
    if isinstance(value, dict) and value.keys() != {"choice"}:
        return parse_range(value)
    return values(value["choice"] if isinstance(value, dict) else value)


Space = Annotated[dict[str, Annotated[Axis, WrapValidator(_values_or_range)]], BeforeValidator(_flatten_space)]


def _scope(text: str) -> str:
    return str(parse_scope(text))


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=False)


class SeedAxes(_Section):
    """The three seed axes and how they are combined."""

    order: SeedList = [0]
    split: SeedList = [0]
    init: SeedList = [0]
    design: Literal["zip", "cross"] = "zip"

    @model_validator(mode="after")
    def _lengths_fit(self) -> SeedAxes:
        lengths = {len(self.order), len(self.split), len(self.init)} - {1}
        if self.design == "zip" and len(lengths) > 1 and getattr(self, "orders", None) is None:
            summary = f"order has {len(self.order)}, split {len(self.split)}, init {len(self.init)}"
            raise ValueError(f'{summary} seeds: design "zip" needs lists of equal length or length 1; use "cross" for all combinations')
        return self

    @model_validator(mode="after")
    def _no_repeats(self) -> SeedAxes:
        """Check seeds for repeats. In a zip design, a seed may be repeated with different seeds of the other axes."""
        crossed = self.design == "cross" or getattr(self, "orders", None) is not None
        if crossed:
            for axis in ("order", "split", "init"):
                refuse_repeats(f"repeated seed of {axis}", getattr(self, axis))
        else:
            refuse_repeats("repeated", (f"order {s.order}, split {s.split}, init {s.init}" for s in self.expand()))
        return self

    @property
    def count(self) -> int:
        """The number of repetitions without creating them."""
        lengths = (len(self.order), len(self.split), len(self.init))
        return math.prod(lengths) if self.design == "cross" else max(lengths)

    def expand(self) -> list[Seeds]:
        """Return the seeds of every repetition."""
        axes = (self.order, self.split, self.init)
        if self.design == "cross":
            return [Seeds(order=o, split=s, init=i) for o, s, i in itertools.product(*axes)]
        length = max(map(len, axes))
        order, split, init = (list(axis) * length if len(axis) == 1 else list(axis) for axis in axes)
        return [Seeds(order=o, split=s, init=i) for o, s, i in zip(order, split, init, strict=True)]


class GridSeeds(SeedAxes):
    """The seed axes of the grid. A design of orders may replace the order seeds."""

    orders: Any = None

    @field_validator("orders")
    @classmethod
    def _known_designs(cls, value: Any) -> Any:
        try:
            order_designs(value)
        except UsageError as error:
            raise ValueError(str(error)) from error
        return value

    @model_validator(mode="after")
    def _check_single_design(self) -> GridSeeds:
        if self.orders is None:
            return self
        if "order" in self.model_fields_set:
            raise ValueError("order and orders cannot be combined: orders sets the order seed of every cell")
        if "design" in self.model_fields_set and self.design == "zip":
            raise ValueError('orders are crossed with split and init: remove design, or set it to "cross"')
        return self

    def count_orders(self, spec: ScenarioSpec, n_tasks: int | None) -> int:
        """Return the number of repetitions of ``orders`` in one scenario. Raises the same errors as :meth:`expand_orders`."""
        orders = sum(design.number(spec, n_tasks) for design in order_designs(self.orders))
        return orders * len(self.split) * len(self.init)

    def expand_orders(self, spec: ScenarioSpec, n_tasks: int | None) -> list[tuple[str | None, Seeds]]:
        """Return the value of ``scenario.class_order`` (None: unchanged) and the seeds for every repetition in one scenario.

        Raises:
            UsageError: the orders do not fit the scenario, or its number of tasks is unknown.
        """
        if self.orders is None:
            return [(None, seeds) for seeds in self.expand()]
        orders = [order for design in order_designs(self.orders) for order in design.orders(spec, n_tasks)]
        rest = list(itertools.product(self.split, self.init))
        return [(order.rule, Seeds(order=order.seed, split=s, init=i)) for order in orders for s, i in rest]


class Grid(_Section):
    """The axes of the grid, all of which are crossed. Without ``backbones``, each preset uses its own backbone.

    ``pretraining`` lists pre-training schemes, including ``none``. ``axes`` contains all other axes.
    """

    scenarios: Names
    methods: Names
    backbones: Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_without_repeats)] = []
    pretraining: Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_without_repeats)] = []
    axes: Axes = {}

    @property
    def further(self) -> dict[str, Any]:
        """All axes other than scenarios, methods and backbones, by dotted key."""
        return ({PRETRAINING_SCHEME: self.pretraining} if self.pretraining else {}) | dict(self.axes)

    @model_validator(mode="after")
    def _check_single_scheme_axis(self) -> Grid:
        if self.pretraining and PRETRAINING_SCHEME in self.axes:
            raise ValueError(f"pretraining and axes.'{PRETRAINING_SCHEME}' set the same axis; use only one of them")
        return self


class Match(_Section):
    """Glob patterns that select the cells to which an override applies."""

    scenario: str = "*"
    method: str = "*"
    backbone: str = "*"


class Override(_Section):
    """Values that apply to some of the cells."""

    match: Match
    values: Annotated[Values, Field(alias="set")]


class SearchSection(_Section):
    """The hyperparameter search that precedes the grid."""

    trials: Annotated[int, Field(ge=2, le=1_000_000)] | None = None
    scope: Annotated[str, AfterValidator(_scope)] | None = None
    draw: Sequencing = "sobol"
    seeds: SeedAxes = SeedAxes()
    grid: Space = {}
    methods: dict[str, Space] = {}

    @model_validator(mode="after")
    def _ranges_are_drawn(self) -> SearchSection:
        spaces: dict[str, Mapping[str, Any]] = {"grid": self.grid, **{f"methods.{method}": space for method, space in self.methods.items()}}
        ranges = [f"{where}.{key}" for where, space in spaces.items() for key, axis in space.items() if isinstance(axis, Range)]
        if ranges and self.trials is None:
            raise ValueError(
                f"{ranges[0]} is a range, from which points are drawn: set trials to the number of points, or list the values instead"
            )
        if not ranges and "draw" in self.model_fields_set:
            raise ValueError(
                f'draw = "{self.draw}" applies only to ranges such as {{ log = [1e-4, 1e-1] }}, but this search has none: remove it'
            )
        return self


class RunSection(_Section):
    """The ``[run]`` section of a campaign: how cells are executed."""

    workers: Processes = 1
    device: Literal["auto", "cpu", "cuda"] = "auto"
    numerics: NumericsChoice = "auto"
    timeout_s: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = None
    checkpoint_every_s: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    threads: Processes = 1
    executor: Annotated[str, Field(min_length=1)] = "local"
    share_prefixes: bool = True
    cells_at_most: Annotated[int, Field(ge=1, le=100_000_000)] = MAX_CELLS
    watch: Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_without_repeats)] = []
    read: Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_without_repeats)] = []
    executors: Annotated[dict[str, dict[str, Any]], Field(exclude=True)] = {}  # cannot be set in a file: see the validator

    @model_validator(mode="before")
    @classmethod
    def _tables_are_executors(cls, section: Any) -> Any:
        """Accept ``[run.slurm]`` as options of the executor ``slurm``; they are checked against its declaration when it is used."""
        if not isinstance(section, dict):
            return section
        tables = {name: value for name, value in section.items() if isinstance(value, dict) and name not in cls.model_fields}
        if "executors" in section:
            raise ValueError("executors: unknown key. The options of an executor belong in a table with its name, such as [run.slurm]")
        return {**{name: value for name, value in section.items() if name not in tables}, "executors": tables}


class Report(_Section):
    """A notebook to render after the cells have run. ``title`` is the page's title (empty: the notebook's name)."""

    notebook: Annotated[str, Field(min_length=1)]
    title: str = ""
    parameters: dict[str, Any] = {}


class Campaign(_Section):
    """A validated campaign file. ``reports`` and ``overrides`` are the file's ``[[report]]`` and ``[[override]]`` tables."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    title: str = ""
    description: str = ""
    plugins: Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_without_repeats)] = []
    data: Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_without_repeats)] = []
    data_options: dict[str, dict[str, ItemValue]] = {}
    grid: Grid
    seeds: GridSeeds = GridSeeds()
    values: Annotated[Values, Field(alias="set")] = {}
    overrides: Annotated[list[Override], Field(alias="override")] = []
    search: SearchSection | None = None
    run: RunSection = RunSection()
    reports: Annotated[list[Report], Field(alias="report")] = []
    _path: Path | None = PrivateAttr(default=None)
    _allowed: bool = PrivateAttr(default=False)

    @property
    def path(self) -> Path | None:
        """The path of the campaign file, if it was read from a file."""
        return self._path

    @property
    def where(self) -> str:
        """The campaign's file or name, for messages."""
        return str(self._path) if self._path else f"campaign {self.name!r}"

    @property
    def folder(self) -> Path:
        """The folder that the campaign's relative paths refer to."""
        return self._path.parent if self._path else Path()

    @property
    def stores(self) -> list[Path]:
        """The folders in ``run.read``."""
        return [self.folder / Path(name).expanduser() for name in self.run.read]

    @property
    def withheld(self) -> list[str]:
        """The campaign's plugin files that the user has not allowed. Their code is not run."""
        allowed = {os.path.realpath(path) for path in plugin_files()}
        files = {name: os.path.realpath((self.folder / name).expanduser()) for name in self.plugins}
        return [name for name, path in files.items() if path not in allowed]

    def refuse_code(self, *, observers: bool = True) -> None:
        """Refuse to run the campaign's code unless the user has allowed it with ``--allow-code`` or by naming the same files.

        Args:
            observers: whether the campaign's observers (``run.watch``) would run.

        Raises:
            UsageError: code would run without permission; the message lists it.
        """
        allowed = {os.path.realpath(path) for path in plugin_files()}
        watching = [name.partition("=")[0] for name in self.run.watch if ":" in name.partition("=")[0] and observers and not self._allowed]
        watching = [name for name in watching if os.path.realpath((self.folder / name.partition(":")[0]).expanduser()) not in allowed]
        code = [*(f"the plugin file {name}" for name in self.withheld), *(f"the observer {name} of run.watch" for name in watching)]
        if code:
            raise UsageError(
                f"{self.where}: running this campaign executes code: {', '.join(code)}. Review that code, then allow it with --allow-code "
                "(load_campaign(..., allow_code=True) in Python), or name each file with --plugin FILE"
            )

    @classmethod
    def parse(cls, data: Mapping[str, Any], path: Path | None = None) -> Campaign:
        """Validate a campaign that was decoded from TOML.

        Raises:
            UsageError: a key is unknown, or a value is missing or wrong; the message names the file and the key path.
        """
        _check_depth(data, path)
        _check_lengths(data, path)
        try:
            campaign = cls.model_validate(data)
        except ValidationError as error:
            problems = [_explain(cls, e) for e in error.errors(include_url=False)[:8]]
            raise UsageError("\n".join(f"{path or 'campaign'}: {problem}" for problem in problems)) from error
        campaign._path = path
        return campaign


def load_campaign(path: str | Path, *, allow_code: bool = False) -> Campaign:
    """Load a campaign from a TOML file. The data files that it names are added to those named by the user.

    Args:
        allow_code: whether code named in the campaign may run: its plugin files are added to the user's, and its observers are imported.

    Raises:
        UsageError: the file does not exist (the message suggests those in ``./reports``), is not TOML, or is not a valid campaign.
    """
    path = Path(path)
    try:
        check_path(path)
        content = read_regular(path)
        if len(content) > _MAX_BYTES:
            raise UsageError(f"{path}: {len(content):,} bytes; a campaign may have at most {_MAX_BYTES:,}")
        data = tomllib.loads(read_text(content))
    except FileNotFoundError:
        raise UsageError(_no_such_file(path)) from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except RecursionError:
        raise UsageError(f"{path}: {_TOO_DEEP}") from None
    except ValueError as error:  # TOMLDecodeError, a wrong encoding, or an integer with thousands of digits
        reason = "a number has thousands of digits" if "integer string conversion" in str(error) else str(error)
        raise UsageError(f"{path}: not a TOML file: {reason}") from error
    campaign = Campaign.parse(data, path)
    campaign._allowed = allow_code
    plugins = [path.parent / name for name in campaign.plugins] if allow_code else []
    try:
        naming(data=[path.parent / name for name in campaign.data], plugins=plugins, options=campaign.data_options)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    return campaign


def _check_depth(data: Mapping[str, Any], path: Path | None) -> None:
    """Refuse tables and lists nested deeper than any key of a campaign can be."""
    level: list[Any] = [data]
    for _ in range(_DEEPEST):
        level = [inner for value in level for inner in (value.values() if isinstance(value, Mapping) else value)]
        level = [value for value in level if isinstance(value, (Mapping, list))]
        if not level:
            return
    raise UsageError(f"{path or 'campaign'}: {_TOO_DEEP}")


def _check_lengths(data: Mapping[str, Any], path: Path | None) -> None:
    """Refuse a list with more values than a design may have cells, before its values are compared."""
    run = data.get("run")
    limit = run.get("cells_at_most") if isinstance(run, Mapping) else None
    most = limit if type(limit) is int and limit > 0 else MAX_CELLS
    level: list[tuple[str, Any]] = [("", data)]
    while level:
        for name, value in level:
            if isinstance(value, list) and len(value) > most:
                raise too_many_cells_error(str(path or "campaign"), len(value), most, f" ({name} has {len(value):,} values)")
        tables = [(name, value) for name, value in level if isinstance(value, Mapping)]
        level = [(f"{name}.{key}".lstrip("."), inner) for name, table in tables for key, inner in table.items()]


def _no_such_file(path: Path) -> str:
    known = sorted(str(p) for p in Path("reports").rglob("*.toml"))
    by_stem = {Path(k).stem: k for k in known}
    close = [by_stem[stem] for stem in nearest(path.stem, by_stem)] or known[:5]
    advice = "Did you mean " + " or ".join(close) + "?" if close else "A campaign is a TOML file, for example reports/demo.toml."
    return f"there is no campaign file {path}. {advice}"


def _explain(model: type[BaseModel], error: Any) -> str:
    """Describe one problem with its key path and, for an unknown key, the nearest known keys."""
    where, problem = key_path(error["loc"]), problem_text(error)
    if error["type"] != "extra_forbidden":
        return f"{where or 'file'}: {problem}"
    known = _keys_at(model, error["loc"][:-1])
    close = nearest(str(error["loc"][-1]), known)
    advice = "Did you mean " + " or ".join(repr(c) for c in close) + "?" if close else "Known here: " + ", ".join(known) + "."
    return f"{where}: {problem}. {advice}"


def _keys_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the known keys of the section at ``location``."""
    here = model
    for part in location:
        for name, info in here.model_fields.items():
            inner = _section_in(info.annotation)
            if part in {name, info.alias} and inner is not None:
                here = inner
    return [info.alias or name for name, info in here.model_fields.items() if not info.exclude]


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and not get_origin(annotation) and issubclass(annotation, BaseModel):
        return annotation
    return next((section for arg in get_args(annotation) if (section := _section_in(arg)) is not None), None)


# Campaigns that come with the suite and need no data: the demonstration, and those in ``reports/examples``.


def examples() -> dict[str, Path]:
    """Return the file of each example campaign, by name."""
    folder = shipped("cglsuite", "_reports")
    return {path.stem: path for path in sorted([folder / "demo.toml", *folder.glob("examples/*.toml")])}


def write_example(name: str, folder: Path) -> Path:
    """Copy an example campaign into a folder, unless it is already there, and return its path.

    Raises:
        UnknownNameError: there is no example with this name.
        UsageError: a different file with this name exists.
    """
    known = examples()
    if name not in known:
        raise UnknownNameError("example", name, known)
    path, content = folder / f"{name}.toml", known[name].read_bytes()
    if not path.exists():
        write_atomic(path, content, option="cd")
    elif not path.is_file() or path.read_bytes() != content:
        raise UsageError(
            f"{path} already exists and differs from the example: run it with `cglsuite run {path}`, or run the example in another folder"
        )
    return path
