"""cite: what to cite for the results of a store, as a command of cglsuite."""

from __future__ import annotations

from cglsuite import CommandSpec, hookimpl


@hookimpl
def cglsuite_commands() -> list[CommandSpec]:
    """The one command of this package."""
    return [CommandSpec(name="cite", summary="Print what to cite for the results of a store.", factory="cglsuite_cite.command:cite")]
