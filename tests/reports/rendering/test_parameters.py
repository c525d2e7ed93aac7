"""What a notebook declares, and what is refused before anything runs."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from cglsuite.base.errors import ReportError, UnknownNameError, UsageError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.cli.main import run
from cglsuite.host import load_catalogue
from cglsuite.reports import notebooks
from cglsuite.reports.rendering.parameters import Parameter, Parameters, check_parameters, check_reports, declared_parameters


def notebook(*sources: str, tagged: int = 1) -> Any:
    cells = [new_code_cell(s, metadata={"tags": ["parameters"]} if i < tagged else {}) for i, s in enumerate(sources)]
    return new_notebook(cells=cells)


SOURCE = """
store = ""  # where
n = 3
rate: float = 0.5
flags = [1, 2]
table = {
    "a": 1,
}
nothing = None
made = list(range(3))
quick = True
"""
DECLARED = declared_parameters(notebook(SOURCE))


def test_declared_names_and_literal_defaults() -> None:
    """Assignments over any number of lines; what is no literal has no known default."""
    assert list(DECLARED) == ["store", "n", "rate", "flags", "table", "nothing", "made", "quick"]
    assert DECLARED["table"] == Parameter("table", {"a": 1}, True)
    assert not DECLARED["made"].known


@pytest.mark.parametrize(("given", "expected"), [(0, "0 code cells"), (2, "2 code cells")])
def test_exactly_one_cell_declares(given: int, expected: str) -> None:
    """None or two tagged cells are an error that says so."""
    with pytest.raises(ReportError, match=expected):
        declared_parameters(notebook("x = 1", "y = 2", tagged=given))


def test_a_parameters_cell_that_is_no_python() -> None:
    """The reason is the syntax error."""
    with pytest.raises(ReportError, match="is not valid Python"):
        declared_parameters(notebook("x = = 1"))


def test_a_misspelt_name_suggests_the_nearest() -> None:
    """Papermill alone would run on with the default."""
    with pytest.raises(UnknownNameError, match=r"unknown parameter of notebook 'r' 'stroe'. Did you mean 'store'\?"):
        check_parameters(DECLARED, {"stroe": "x"}, "r")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("nothing", Path("x"), "is a PosixPath"),
        ("nothing", datetime.date(2025, 1, 1), "is a date"),
        ("nothing", float("nan"), "JSON cannot represent it"),
        ("flags", [1, {"a": {1, 2}}], "item 1, key 'a' is a set"),
        ("table", {1: 2}, "the keys of a table must be text"),
        ("n", "3", "expected int, like its default 3"),
        ("n", True, "expected int"),
        ("quick", 1, "expected bool"),
        ("store", ["x"], "expected str"),
        ("table", "x", "expected dict"),
    ],
)
def test_values_that_do_not_fit(name: str, value: Any, expected: str) -> None:
    """Not JSON, or of another type than the default: the message names the parameter."""
    with pytest.raises(ReportError, match=expected) as caught:
        check_parameters(DECLARED, {name: value}, "r")
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    "given", [{}, {"rate": 1}, {"nothing": {"a": [1, None, "x", False]}}, {"made": "anything"}, {"flags": ()}, {"store": "s", "n": 4}]
)
def test_values_that_fit(given: dict[str, Any]) -> None:
    """Whole numbers are fractions; None and computed defaults fit anything."""
    assert check_parameters(DECLARED, given, "r") == given


def test_one_text_for_a_list_of_texts() -> None:
    """``-p methods bare`` means the list of one; a list of numbers takes no text."""
    declared = declared_parameters(notebook('methods = ["bare", "ewc"]\nflags = [1]'))
    assert check_parameters(declared, {"methods": "joint"}, "r") == {"methods": ["joint"]}
    with pytest.raises(ReportError, match="expected list"):
        check_parameters(declared, {"flags": "1"}, "r")


# --- our notebooks' declarations -------------------------------------------------------------------------------------------------

MODELS = [getattr(notebooks, name) for name in notebooks.__all__]
ODD: tuple[Any, ...] = (
    "x",
    "",
    3,
    -1,
    0.5,
    True,
    None,
    [],
    [1],
    ["x"],
    {},
    {"a": 1},
    {1: 2},
    math.inf,
    math.nan,
    Path("x"),
    "[",
    "{1",
    [[]],
    "²",
)


def taken_or_refused(model: type[Parameters], given: dict[str, Any]) -> tuple[Parameters | None, str]:
    try:
        return model.of(given), ""
    except UsageError as error:
        return None, str(error)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.notebook)
def test_odd_values_are_refused_by_name(model: type[Parameters]) -> None:
    """Every parameter, every odd value: it is taken, or refused with the parameter, what was given and what it takes."""
    for name, field in model.model_fields.items():
        for value in ODD:
            made, said = taken_or_refused(model, {name: value})
            if made is not None:
                json.dumps(made.model_dump(), allow_nan=False)
            else:
                assert all(part in said for part in (f"parameter '{name}", f"of notebook {model.notebook!r}", str(field.description)))
    with pytest.raises(UsageError, match="unknown parameter of notebook .* 'stroe'. Did you mean 'store'"):
        model.of({"stroe": "x"})


def test_papermills_texts_are_what_they_say() -> None:
    """What follows ``-p`` arrives as text wherever it is no Python constant."""
    given = {"train_missing": "false", "alpha": "0.1", "methods": "bare", "overrides": '{"training.epochs": 3}', "store": None}
    made = notebooks.MethodComparison.of(given)
    assert (made.train_missing, made.alpha, made.methods, made.overrides, made.store) == (False, 0.1, ["bare"], {"training.epochs": 3}, "")
    assert notebooks.StreamAnatomy.of({"orders": "[0, 2]", "subjects": "pcg"}).orders == [0, 2]
    assert notebooks.NodeAnalysis.of({"seeds": '{"order": [0, 1]}'}).seeds == {"order": [0, 1]}


def test_a_running_notebook_reads_its_names() -> None:
    """Also those that papermill assigned and nobody declares, which it only logs."""
    cell = "# Parameters\nstore = 'here'\nswich = 1\n"
    names = {"store": "here", "other": 3, "In": ["", "store = ''", cell]}
    assert notebooks.Findings.read(names | {"In": []}).store == "here"
    with pytest.raises(UsageError, match="unknown parameter of notebook 'findings' 'swich'"):
        notebooks.Findings.read(names | {"swich": 1})


REPORTED = """
name = "reported"
[grid]
scenarios = ["synthetic-csbm/class-il@example-1"]
methods = ["bare", "er-gnn"]
axes = { "training.lr" = [0.01, 0.1] }
[[report]]
notebook = "NOTEBOOK"
parameters = { PARAMETERS }
"""


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("method_comparison", 'against = ["bare"]', "expected text"),
        ("method_comparison", 'against = "ewc"', "unknown method of this campaign 'ewc'. Known: bare, er-gnn."),
        ("method_comparison", 'methods = ["er-gn"]', "Did you mean 'er-gnn'"),
        ("method_comparison", 'metric = "average_perfromance"', "Did you mean 'average_performance'"),
        ("method_comparison", "alpha = 5", "expected less than 1"),
        ("sensitivity", 'swich = "training.epochs"', "unknown parameter of notebook 'sensitivity' 'swich'"),
        ("sensitivity", 'axes = ["training.le"]', "Did you mean 'training.lr'"),
        ("order_sensitivity", 'also = ["absent.toml"]', "there is no campaign file"),
        ("order_sensitivity", "also = [{ name = 'x' }]", "grid: missing"),
        ("stream_anatomy", 'subjects = ["synthetic-csbm/class-il@exmple-1"]', "unknown scenario"),
        ("stream_anatomy", "orders = [-1]", "expected at least 0"),
        ("leaderbord", "", "Did you mean 'leaderboard'"),
    ],
)
def test_reports_are_checked_before_anything_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, parameters: str, says: str
) -> None:
    path = tmp_path / "c.toml"
    path.write_text(REPORTED.replace("NOTEBOOK", name).replace("PARAMETERS", parameters))
    for command in ("status", "run"):
        assert run([command, str(path), "--store", str(tmp_path / "store")]) == 2
        said = capsys.readouterr().err
        assert says in said
        assert "c.toml: report[0]" in said
    assert not (tmp_path / "store").exists()


@pytest.mark.plugins
def test_what_fits_is_accepted() -> None:
    """Among them a method with its variant, and settings of a pooled campaign."""
    inline = {
        "name": "x",
        "grid": {"scenarios": ["synthetic-csbm/class-il@example-1"], "methods": ["bare"], "axes": {"backbone.width": [8, 16]}},
    }
    reports = [
        {"notebook": "method_comparison", "parameters": {"methods": ["er-gnn (lr=0.01)", "bare"], "against": "bare"}},
        {"notebook": "sensitivity", "parameters": {"axes": "backbone.width", "also": [inline]}},
        {"notebook": "explore", "parameters": {"methods": ["ewc"]}},
    ]
    grid = {"scenarios": ["synthetic-csbm/class-il@example-1"], "methods": ["bare", "er-gnn"]}
    check_reports(Campaign.parse({"name": "c", "grid": grid, "report": reports}), load_catalogue())
