"""A command whose import prints; and a hook in the module of its command."""

from __future__ import annotations

import click

from cglsuite import CommandSpec, hookimpl

print("here I am")


@click.command()
def loud() -> None:
    """Do nothing."""


@hookimpl
def cglsuite_commands() -> list[CommandSpec]:
    return [CommandSpec(name="loud", summary="Do nothing.", factory="loud_command:loud")]
