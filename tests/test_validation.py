"""What schema checks find is told in the suite's words: what was expected, what was given, where."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cglsuite.base.inputs import key_path, problem_text


def _even(given: int) -> int:
    if given % 2:
        raise ValueError(f"{given} is odd")
    return given


class Part(BaseModel):
    """A table in a table."""

    model_config = ConfigDict(strict=True, extra="forbid")
    size: int


class Everything(BaseModel):
    """A field for every kind of error that campaigns and records can have."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    flag: bool = True
    whole: Annotated[int, Field(ge=1, le=9)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    text: Annotated[str, Field(min_length=1)] = "x"
    name: Annotated[str, Field(pattern="^[a-z]+$")] = "x"
    choice: Literal["one", "two"] = "one"
    several: Annotated[list[int], Field(min_length=1)] = [1]
    table: dict[str, int] = {}
    part: Part | None = None
    even: Annotated[int, AfterValidator(_even)] = 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"flag": "yes"}, "flag: expected true or false (given: 'yes')"),
        ({"whole": 1.5}, "whole: expected a whole number (given: 1.5)"),
        ({"whole": 0}, "whole: expected at least 1 (given: 0)"),
        ({"whole": 10}, "whole: expected at most 9 (given: 10)"),
        ({"share": "0.5"}, "share: expected a number (given: '0.5')"),
        ({"share": 0.0}, "share: expected more than 0.0 (given: 0.0)"),
        ({"share": 1.0}, "share: expected less than 1.0 (given: 1.0)"),
        ({"share": float("nan")}, "share: expected a finite number (given: nan)"),
        ({"text": 3}, "text: expected text (given: 3)"),
        ({"text": ""}, "text: expected text that is not empty (given: '')"),
        ({"name": "X"}, "name: expected text of the form ^[a-z]+$ (given: 'X')"),
        ({"choice": "three"}, "choice: expected 'one' or 'two' (given: 'three')"),
        ({"several": 1}, "several: expected a list (given: 1)"),
        ({"several": []}, "several: expected at least 1 item(s) (given: [])"),
        ({"several": [1, "\x1b"]}, "several[1]: expected a whole number (given: '\\x1b')"),
        ({"table": 1}, "table: expected a table (given: 1)"),
        ({"part": 1}, "part: expected a table (given: 1)"),
        ({"part": {}}, "part.size: missing"),
        ({"part": {"size": 1, "colour": 2}}, "part.colour: unknown key"),
        ({"even": 3}, "even: 3 is odd"),
    ],
)
def test_every_kind_of_error_has_words(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as error:
        Everything.model_validate(given)
    assert [f"{key_path(e['loc'])}: {problem_text(e)}" for e in error.value.errors()] == [says]
