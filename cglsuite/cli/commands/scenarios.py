"""``cglsuite scenarios``: the fields in which two presets differ with their effects, and what a scenario's queries reveal."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from cglsuite.base.markup import several
from cglsuite.cli.options import Session, Whole, files_options, order_seed_option, pass_session, set_option, split_seed_option
from cglsuite.cli.output import descriptions, echo, heading, print_json, properties
from cglsuite.specs import Seeds
from cglsuite.study.display.facts import shown_value

if TYPE_CHECKING:
    from cglsuite.cells.spec import Difference

__all__ = ["audit", "diff", "scenarios"]

_EFFECT, _LONG = "EFFECT OF THE DIFFERENCE", 24
_TITLES = {
    "scenario": "protocol (--set scenario.NAME=VALUE)",
    "training": "training (--set training.NAME=VALUE)",
    "backbone": "backbone (--set backbone.NAME=VALUE)",
    "dataset": "dataset (--set dataset.NAME=VALUE)",
    "method_defaults": "hyper-parameters per method, where they differ from the above",
}


@click.group()
def scenarios() -> None:
    """Compare scenario presets, and audit their queries."""


@scenarios.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects with field, a, b and effect.")
@files_options
@pass_session
def diff(session: Session, a: str, b: str, as_json: bool) -> None:
    """Print the fields in which the presets A and B differ, both values, and one line on the effect.

    Compares switches of the protocol, training, hyper-parameters of backbone and dataset with their defaults, and those per method.
    Presets of different datasets can be compared too. A dash means that a preset has no such key.
    """
    from cglsuite.cells.spec import preset_differences

    differences = preset_differences(session.catalogue(), a, b)
    if as_json:
        print_json([difference.to_json() for difference in differences])
    elif not differences:
        echo(f"{a} and {b} do not differ in any field" if a != b else f"{a} is compared with itself: no field differs")
    else:
        echo("\n".join(_page(a, b, differences)))


@scenarios.command()
@click.argument("name", metavar="NAME")
@order_seed_option
@split_seed_option
@set_option
@click.option("--permutations", type=Whole(1, 1_000_000), default=39, show_default=True, help="Permutations behind the p-value.")
@click.option("--json", "as_json", is_flag=True, help="Print one object with the numbers.")
@files_options
@pass_session
def audit(
    session: Session, name: str, order_seed: int, split_seed: int, assignments: Sequence[str], permutations: int, as_json: bool
) -> None:
    """Measure how well the task of a query of NAME can be told from the group in which it arrives.

    A linear probe predicts the task of test items, once from each item's own neighbourhood and once also from the mean over its query
    group. The leak is the difference of the balanced accuracies, with an interval over bootstrapped groups and a permutation test. For
    nodes in class-, domain- and time-IL. --set scenario.query_grouping=pooled closes such a leak.
    """
    from cglsuite.campaigns.overrides import parse_overrides
    from cglsuite.cells.leak import measure_leak
    from cglsuite.cells.run import build_scenario
    from cglsuite.cells.spec import resolve_scenario

    catalogue = session.catalogue()
    scenario = resolve_scenario(catalogue, name, parse_overrides(assignments, "--set"))
    seeds = Seeds(order=order_seed, split=split_seed)
    leak = measure_leak(build_scenario(catalogue, scenario.spec, scenario.dataset_hyperparameters, seeds), permutations=permutations)
    if as_json:
        print_json({"scenario": scenario.preset, **dataclasses.asdict(leak)})
        return
    low, high = leak.interval
    grouped = f"{leak.group_size} items of one task" if leak.by_task else f"{leak.group_size} items of all tasks"
    rows = [
        ("scenario", scenario.preset),
        ("query groups", grouped),
        ("task from an item alone", f"{leak.alone:.1%} (chance {leak.chance:.1%})"),
        ("task with its group's mean", f"{leak.grouped:.1%}"),
        ("leak", f"{100 * leak.leak:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}], permutation p = {leak.p:.3f}"),
    ]
    echo(properties(rows))


def _page(a: str, b: str, differences: Sequence[Difference]) -> Iterable[str]:
    yield heading(several(len(differences), "field differs", "fields differ"))
    yield properties((("A", a), ("B", b)))
    for section, title in _TITLES.items():
        if rows := [difference for difference in differences if difference.section == section]:
            yield from ("", heading(title), _methods(rows) if section == "method_defaults" else _values(rows))


def _values(rows: Sequence[Difference]) -> str:
    return descriptions(("SWITCH", "A", "B", _EFFECT), [(d.field, *_cells(d)) for d in rows])


def _methods(rows: Sequence[Difference]) -> str:
    return descriptions(("METHOD", "KEY", "A", "B", _EFFECT), [(*d.field.split(".", 2)[1:], *_cells(d)) for d in rows])


def _cells(difference: Difference) -> tuple[str, str, str]:
    """Both values and the effect; a value too long for its column is placed before the effect."""
    values = {"A": shown_value(difference.a), "B": shown_value(difference.b)}
    long = [f"{side} is {value}." for side, value in values.items() if len(value) > _LONG]
    a, b = ("…" if len(value) > _LONG else value for value in values.values())
    return a, b, " ".join([*long, difference.effect])
