"""Commands that keep all of the contract but one thing each, and one that keeps all: see the checks of commands."""

from __future__ import annotations

import os

import click


@click.command()
def fine() -> None:
    """Do nothing."""


@click.command()
def silent() -> None:
    pass


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def takes_all(words: tuple[str, ...]) -> None:
    """Take any word."""


@click.command(add_help_option=False)
@click.option("--help", "wanted", is_flag=True)
def own_help(wanted: bool) -> None:
    """Have a help of its own."""


class _Leaving(click.Command):
    def get_help(self, ctx: click.Context) -> str:
        os._exit(9)


@click.command(cls=_Leaving)
def leaves() -> None:
    """End the process in the help."""


class _Heavy(click.Command):
    def get_help(self, ctx: click.Context) -> str:
        import torch

        return f"{super().get_help(ctx)} {torch.__version__}"


@click.command(cls=_Heavy)
def heavy() -> None:
    """Compute its help."""


def no_command() -> None:
    """A function."""
