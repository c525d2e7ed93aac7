"""``cglsuite export SCENARIO``: the splits of a scenario's stream as npz with hashes, for use outside the suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cglsuite.cli.options import (
    FolderPath,
    Session,
    check_tasks,
    files_options,
    order_seed_option,
    pass_session,
    set_option,
    split_seed_option,
    tasks_option,
    with_tasks,
)
from cglsuite.cli.output import echo, print_json
from cglsuite.specs import Seeds, switches

if TYPE_CHECKING:
    from cglsuite.host import Catalogue


@click.command()
@click.argument("scenario")
@order_seed_option
@split_seed_option
@set_option
@tasks_option
@click.option("--out", type=FolderPath(), default=Path(), help="Folder for the files.  [default: .]")
@click.option("--force", is_flag=True, help="Replace files of the same name that differ.")
@click.option("--json", "as_json", is_flag=True, help="Print one object: paths, their SHA-256, and the description of the splits.")
@files_options
@pass_session
def export(
    session: Session,
    scenario: str,
    order_seed: int,
    split_seed: int,
    assignments: Sequence[str],
    tasks: int | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Build the stream of SCENARIO and write which items train, validate and test each task.

    Two files: NAME.npz (per task the classes and the global item ids of the three parts, and the outputs of each task) and NAME.json
    (every switch, seeds, the data's content hash, versions, and a SHA-256 of each array). Equal inputs give equal files.

    Prints "SHA-256  path" per file, as sha256sum -c reads it. The function cglsuite.streams.exported.read_export reads an export back and
    checks every hash.
    """
    from cglsuite.cells.export import export_scenario

    overrides = _overrides(session.catalogue(), scenario, assignments, tasks)
    seeds = Seeds(order=order_seed, split=split_seed)
    written, paths = export_scenario(session.catalogue(), scenario, out, overrides=overrides, seeds=seeds, force=force)
    hashes = written.hashes
    if as_json:
        files = [{"path": str(path), "sha256": hashes[path.name]} for path in paths]
        print_json({"name": written.name, "files": files, "metadata": written.metadata})
    else:
        echo("\n".join(f"{hashes[path.name]}  {path}" for path in paths))


def _overrides(catalogue: Catalogue, scenario: str, assignments: Sequence[str], tasks: int | None) -> dict[str, Any]:
    """The command line's overrides on top of those of the environment that affect streams (the others affect training)."""
    from cglsuite.campaigns.overrides import Overrides, merge_overrides, parse_overrides

    check_tasks(catalogue, scenario, tasks)
    of_streams = _bare_names(catalogue, scenario)
    environment = Overrides.from_environment().values
    values = {k: v for k, v in environment.items() if k in of_streams or k.startswith(("scenario.", "dataset."))}
    return merge_overrides(values, with_tasks(parse_overrides(assignments, "--set"), tasks))


def _bare_names(catalogue: Catalogue, scenario: str) -> set[str]:
    """The names of all switches of a scenario and of its dataset's parameters."""
    spec = catalogue.scenario(scenario)
    dataset = catalogue.dataset(spec.dataset)
    return {*switches(spec, implicit=True), *(h.name for h in dataset.hyperparameters)}
