"""Provides a dataset, then raises in the middle of another hook."""

from __future__ import annotations

from collections.abc import Iterator

from cglsuite import DatasetSpec, MethodSpec, hookimpl


@hookimpl
def cglsuite_datasets() -> list[DatasetSpec]:
    return [DatasetSpec(name="orphan", summary="must not be in the catalogue", factory="raises_in_hook:load")]


@hookimpl
def cglsuite_methods() -> Iterator[MethodSpec]:
    yield MethodSpec(name="half", summary="must not be in the catalogue", factory="raises_in_hook:load")
    raise ZeroDivisionError("one over nothing")
