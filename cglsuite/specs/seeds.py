"""The seeds of a cell."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from cglsuite.base.errors import SpecError
from cglsuite.base.inputs import quoted, seed_number

__all__ = ["Seeds"]


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """The three separate axes of randomness: task/class order, data split, and everything the method draws."""

    order: int = 0
    split: int = 0
    init: int = 0

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            given = getattr(self, f.name)
            try:
                seed_number(given)
            except ValueError as error:
                raise SpecError(f"seeds.{f.name} = {quoted(given)}: {error} (a seed is a whole number from 0 to 2^63 - 1)") from None
