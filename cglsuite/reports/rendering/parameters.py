"""Declare the parameters of notebooks, and validate their values before anything runs.

The built-in notebooks declare their parameters in :mod:`cglsuite.reports.notebooks` as subclasses of :class:`Parameters`, with types,
bounds, choices, defaults and descriptions. A plugin's notebook may name such a class in its spec. Without one, the assignments in its cell
tagged ``parameters`` declare its parameters, and values must have the types of the defaults.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from cglsuite.base.errors import CglsuiteError, ReportError, UnknownNameError, UsageError, nearest
from cglsuite.base.inputs import key_path, problem_text, quoted, read_device
from cglsuite.campaigns.campaign import Campaign, load_campaign

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from cglsuite.host import Catalogue, Entry


TAG = "parameters"
_UNKNOWN = object()


# --- typed declarations ----------------------------------------------------------------------------------------------------------


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"expected a number (given: {value})")
    return value


def _text(value: Any) -> Any:
    """Validate text; ``None``, as in ``store=None``, means the empty text."""
    return "" if value is None else value


def as_structure(value: Any) -> Any:
    """Decode lists and tables that are written as JSON, because papermill passes the values of ``-p`` as text."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError(f"expected JSON: {error} (given: {quoted(value)})") from error
    return list(value) if isinstance(value, tuple) else value


def _names(value: Any) -> Any:
    """Validate a list of names; a single name becomes a list with one item."""
    value = as_structure(value)
    return [value] if isinstance(value, str) and value else [] if value in ("", None) else value


def _device(value: str) -> str:
    try:
        return value and read_device(value)
    except ValueError as error:
        raise ValueError(f"{error} (given: {quoted(value)})") from error


def _content(table: dict[str, Any]) -> dict[str, Any]:
    try:
        Campaign.parse(table) if table else None
    except UsageError as error:
        raise ValueError(str(error)) from error
    return table


def _listed(value: Any) -> Any:
    if isinstance(value, str) and value:
        return value
    if not isinstance(value, dict) or not value:
        raise ValueError(f"expected a file or the content of one (given: {quoted(value)})")
    return _content(value)


def _several(value: Any) -> Any:
    """Validate a list of campaigns; a single campaign becomes a list with one item."""
    value = _names(value)
    return [value] if isinstance(value, dict) else value


Text = Annotated[str, BeforeValidator(_text)]
Flag = bool
Whole = Annotated[int, BeforeValidator(_no_truth)]
Real = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_no_truth)]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False), BeforeValidator(_no_truth)]
Portion = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), BeforeValidator(_no_truth)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_no_truth)]
Names = Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(_names)]
Seed = Annotated[int, Field(ge=0), BeforeValidator(_no_truth)]
SeedNumbers = Annotated[list[Seed], Field(min_length=1), BeforeValidator(as_structure)]
Numbers = Annotated[list[Real], BeforeValidator(as_structure)]
Table = Annotated[dict[str, Any], BeforeValidator(as_structure)]
Device = Annotated[Text, AfterValidator(_device)]
Content = Annotated[Table, AfterValidator(_content)]
Contents = Annotated[list[Annotated[Any, AfterValidator(_listed)]], BeforeValidator(_several)]


@dataclass(frozen=True)
class Known:
    """Mark a parameter as one that takes names as values.

    ``kind`` is ``method`` or ``setting`` (of the campaign), ``metric``, ``subject`` (a scenario or data set) or ``campaign`` (the path of
    its file). With ``anywhere``, any installed name is valid.
    """

    kind: str
    anywhere: bool = False


class Parameters(BaseModel):
    """Base class for declaring the parameters of a notebook. An instance contains validated values."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    notebook: ClassVar[str] = ""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Validate the values and return the parameters.

        Raises:
            UsageError: a name is not declared or a value is invalid. The message states the notebook, the parameter, the value and the
                accepted values.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise UsageError("\n".join(dict.fromkeys(cls._problem(error) for error in error.errors(include_url=False)))) from None

    @classmethod
    def read(cls, names: Mapping[str, Any]) -> Self:
        """Read the parameters from the global variables of a running notebook, as in ``read(globals())``.

        Raises:
            UsageError: as for :meth:`of`, or papermill received a name that is not declared.
        """
        injected = next((source for source in names.get("In", ()) if source.startswith("# Parameters\n")), "")
        value = [name for statement in ast.parse(injected).body for name, _ in _assignments(statement)]
        return cls.of({name: names[name] for name in (*cls.model_fields, *value) if name in names})

    @classmethod
    def _problem(cls, error: Any) -> str:
        name = str(error["loc"][0]) if error["loc"] else ""
        if error["type"] == "extra_forbidden":
            close = nearest(name, cls.model_fields, 1)
            advice = f"Did you mean {close[0]!r}?" if close else f"`cglsuite show notebook {cls.notebook}` lists its parameters."
            return f"unknown parameter of notebook {cls.notebook!r} {name!r}. {advice}"
        where = key_path([part for part in error["loc"] if part != "[key]"])
        takes = f"It takes {_takes(cls, name)}: {cls.model_fields[name].description}"
        return f"parameter {where!r} of notebook {cls.notebook!r}: {problem_text(error)}. {takes}"

    def unknown(self, campaign: Campaign, catalogue: Catalogue) -> Iterator[str]:
        """Yield a message for each name that does not exist, such as a missing file or a method that the campaign does not run."""
        parameters: Any = self
        others: list[Campaign] = []
        try:
            if getattr(parameters, "campaign", ""):
                campaign = load_campaign(parameters.campaign)
            elif getattr(parameters, "inline", None):
                campaign = Campaign.parse(parameters.inline)
            also = getattr(parameters, "also", ())
            others += [load_campaign(campaign.folder / item) if isinstance(item, str) else Campaign.parse(item) for item in also]
        except UsageError as error:
            yield f"notebook {self.notebook!r}: {error}"
        known = _campaign_names((campaign, *others))
        for name, field in type(self).model_fields.items():
            for mark in (item for item in field.metadata if isinstance(item, Known)):
                for value in _values(getattr(self, name)):
                    try:
                        _require_known(mark, value, known, catalogue)
                    except CglsuiteError as error:
                        yield f"parameter {name!r} of notebook {self.notebook!r}: {error}"


def _campaign_names(campaigns: Iterable[Campaign]) -> dict[str, list[str]]:
    """Return the campaigns' methods, and their settings that have several values."""
    known: dict[str, dict[str, None]] = {"method": {}, "setting": {}}
    for campaign in campaigns:
        known["method"] |= dict.fromkeys(campaign.grid.methods)
        known["setting"] |= dict.fromkeys(
            [*campaign.grid.further, *campaign.values, *(key for o in campaign.overrides for key in o.values)]
        )
    return {kind: list(names) for kind, names in known.items()}


def _values(value: Any) -> list[str]:
    return [item for item in ([value] if isinstance(value, str) else value) if item]


def _require_known(mark: Known, value: str, known: Mapping[str, list[str]], catalogue: Catalogue) -> None:
    if mark.kind == "subject":
        catalogue.get("scenario" if "/" in value else "dataset", value)
    elif mark.kind == "metric":
        catalogue.get("metric", value)
    elif mark.kind == "method" and mark.anywhere:
        catalogue.get("method", value)
    elif mark.kind in known and value.partition(" (")[0] not in known[mark.kind]:
        raise UnknownNameError(f"{mark.kind} of this campaign", value, known[mark.kind])


def _takes(model: type[Parameters], name: str) -> str:
    """Describe the values that a parameter accepts."""
    schema = model.model_json_schema()["properties"][name]
    if "enum" in schema:
        return " or ".join(map(repr, schema["enum"]))
    words = {"boolean": "true or false", "integer": "a whole number", "number": "a number", "array": "a list", "object": "a table"}
    text = words.get(schema.get("type", ""), "text")
    if schema.get("type") == "array" and "type" in schema["items"]:
        text = {"string": "a list of texts", "integer": "a list of whole numbers", "number": "a list of numbers"}[schema["items"]["type"]]
    limits = {"exclusiveMinimum": "above {}", "minimum": "at least {}", "exclusiveMaximum": "below {}", "maximum": "at most {}"}
    bounds = [limit.format(f"{schema[key]:g}") for key, limit in limits.items() if key in schema]
    return f"{text} {' and '.join(bounds)}" if bounds else text


def parameter_rows(entry: Entry, catalogue: Catalogue) -> list[tuple[str, str, Any, str]]:
    """Return the name, the accepted values, the default and the description of every parameter of a notebook."""
    model = model_of(entry)
    if model is None:
        of_cell = _declared_in_cell(entry, catalogue).values()
        return [
            (parameter.name, type(parameter.default).__name__ if parameter.known else "any", parameter.default, "") for parameter in of_cell
        ]
    return [(name, _takes(model, name), field.default, field.description or "") for name, field in model.model_fields.items()]


def model_of(entry: Entry) -> type[Parameters] | None:
    """Return the class that declares a notebook's parameters, or ``None`` if they are declared in its cell tagged ``parameters``."""
    reference = getattr(entry.spec, "parameters", "")
    model: type[Parameters] | None = resolve_name(reference) if reference else None
    return model


def _declared_in_cell(entry: Entry, catalogue: Catalogue) -> dict[str, Parameter]:
    import nbformat

    return declared_parameters(nbformat.read(catalogue.resolve(entry), as_version=4))  # type: ignore[no-untyped-call]


def accepted(entry: Entry, catalogue: Catalogue, values: Mapping[str, Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the validated parameters of a notebook: the entries of ``offered`` that it declares, overridden by ``values``.

    Raises:
        UsageError, ReportError: a name is not declared, or a value is invalid.
    """
    model = model_of(entry)
    if model is not None:
        for name, value in values.items():
            _require_json(value, f"parameter {name!r} of notebook {entry.name!r}")
        checked, names = model.of(values).model_dump(include=set(values)), set(model.model_fields)
    else:
        declared = _declared_in_cell(entry, catalogue)
        checked, names = check_parameters(declared, values, entry.name), set(declared)
    if offered.get("only") and "only" not in names:
        raise UsageError(
            f"notebook {entry.name!r} has no parameter 'only', so it cannot report on {', '.join(offered['only'])} alone: add the "
            "parameter to its cell tagged `parameters`, or leave out --only"
        )
    return {name: value for name, value in offered.items() if name in names} | checked


def check_reports(campaign: Campaign, catalogue: Catalogue) -> None:
    """Check every ``[[report]]`` of a campaign (its notebook, its parameters and the names in them) before training starts.

    Raises:
        UsageError: lists all problems, report by report.
    """
    problems: list[str] = []
    for n, report in enumerate(campaign.reports, 1):
        try:
            entry = catalogue.get("notebook", report.notebook)
            accepted(entry, catalogue, report.parameters, {})
            model = model_of(entry)
            unknown = [] if model is None else list(model.of(report.parameters).unknown(campaign, catalogue))
        except CglsuiteError as error:
            unknown = str(error).splitlines()
        problems += [f"{campaign.where}: report[{n - 1}]: {problem}" for problem in unknown]
    if problems:
        raise UsageError("\n".join(problems))


# --- the cell tagged parameters --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """One declared parameter. If its default is a literal, ``known`` is true and ``default`` is the value."""

    name: str
    default: Any
    known: bool


def declared_parameters(notebook: NotebookNode) -> dict[str, Parameter]:
    """Return the parameters that the cell tagged ``parameters`` assigns, in order.

    Raises:
        ReportError: the notebook has no such cell or several of them, or the cell is not Python.
    """
    cells = [c for c in notebook.cells if c.cell_type == "code" and TAG in c.metadata.get("tags", [])]
    if len(cells) != 1:
        raise ReportError(f"the notebook has {len(cells)} code cells tagged {TAG!r}: expected exactly one, which declares its parameters")
    try:
        body = ast.parse(cells[0].source).body
    except SyntaxError as error:
        raise ReportError(f"the cell tagged {TAG!r} is not valid Python: {error}") from error
    declared = {}
    for statement in body:
        for name, value in _assignments(statement):
            default = _literal(value)
            declared[name] = Parameter(name, None if default is _UNKNOWN else default, default is not _UNKNOWN)
    return declared


def _assignments(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        return [(statement.target.id, statement.value)]
    if isinstance(statement, ast.Assign):
        return [(t.id, statement.value) for t in statement.targets if isinstance(t, ast.Name)]
    return []


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return _UNKNOWN


def check_parameters(declared: Mapping[str, Parameter], values: Mapping[str, Any], notebook: str) -> dict[str, Any]:
    """Check that ``notebook`` declares the parameters, and that their values are valid JSON of the defaults' types.

    Where a list of texts is expected, a single text becomes a list with one item (``-p methods bare``).

    Without this check, papermill would only log a misspelt parameter and run with the default, so the report would not show what the user
    requested.

    Returns:
        The checked values.

    Raises:
        UnknownNameError: a name is not declared. The message suggests the closest declared name.
        ReportError: JSON cannot represent a value, or its type is not that of the default.
    """
    checked = dict(values)
    for name, value in values.items():
        where = f"parameter {name!r} of notebook {notebook!r}"
        if name not in declared:
            raise UnknownNameError(f"parameter of notebook {notebook!r}", name, declared)
        _require_json(value, where)
        parameter = declared[name]
        if parameter.known and isinstance(value, str) and _of_texts(parameter.default):
            checked[name] = [value]
        elif parameter.known and not _fits(value, parameter.default):
            wanted = type(parameter.default).__name__
            raise ReportError(f"{where} = {value!r}: expected {wanted}, like its default {parameter.default!r}")
    return checked


def _of_texts(default: Any) -> bool:
    return isinstance(default, list) and bool(default) and all(isinstance(item, str) for item in default)


def _require_json(value: Any, place: str) -> None:
    if value is None or isinstance(value, (bool, int, str)):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ReportError(f"{place} is {value}: JSON cannot represent it")
        return
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _require_json(item, f"{place}, item {i}")
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ReportError(f"{place} has the key {key!r}: the keys of a table must be text")
            _require_json(item, f"{place}, key {key!r}")
        return
    known = "text, numbers, true or false, null, lists, tables"
    raise ReportError(f"{place} is a {type(value).__name__} ({value!r:.80}): expected a JSON value ({known})")


def _fits(value: Any, default: Any) -> bool:
    if default is None or value is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, (int, float))
    if isinstance(default, (list, tuple)):
        return isinstance(value, (list, tuple))
    return isinstance(value, type(default))


def shown_path(path: Path) -> str:
    """Return a path relative to the current folder if it is inside it, so that pages do not reveal paths of the rendering machine."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)
