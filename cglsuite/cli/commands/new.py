"""``cglsuite new KIND NAME``: write a package that publishes one plugin of any kind, with passing tests."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import click

from cglsuite import __version__
from cglsuite.base.errors import UsageError
from cglsuite.cli.options import FolderPath, Session, pass_session
from cglsuite.cli.output import echo
from cglsuite.graphs.files.shipped import shipped
from cglsuite.host import Catalogue
from cglsuite.host.catalogue import core_entry

__all__ = ["new", "template_folder"]

_KINDS = ("method", "dataset", "scenario", "backbone", "pretraining", "measure", "metric", "schedule", "notebook", "executor", "command")
_FORMS = {
    "scenario": (
        re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9._-]+@[a-z0-9._-]+-\d+"),
        "DATASET/SETTING@PROTOCOL-1, for example cora/class-il@mine-1",
    ),
    "metric": (re.compile(r"[a-z][a-z0-9_]*"), "lower-case letters, digits and _, for example worst_task"),
    "command": (re.compile(r"[a-z][a-z0-9-]*"), "lower-case letters, digits and -, beginning with a letter, for example slowest"),
}
_FORM = (re.compile(r"[a-z][a-z0-9.-]*"), "lower-case letters, digits, - and ., beginning with a letter, for example my-method")
_TASK_KEYS = {"class-il": (), "task-il": (), "domain-il": ("domain",), "time-il": ("year", "time")}
"""Settings that the template has, and the attributes of nodes that usually make their tasks."""
_log = logging.getLogger(__name__)


@click.command()
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("name")
@click.option("--into", type=FolderPath(), help="The new folder; default: the distribution's name, here.")
@click.option("--author", default="Its authors", show_default=True, help="The publisher.")
@pass_session
def new(session: Session, kind: str, name: str, into: Path | None, author: str) -> None:
    """Write a package that provides one plugin of any KIND: a module, an entry point, tests, a tox.ini,
    a workflow for continuous integration, a README. A scenario over a data set that nobody provides comes with data of that name.

    Once installed, `cglsuite check NAME` and its tests pass; then fill in your own code.
    """
    pattern, form = _FORMS.get(kind, _FORM)
    if not pattern.fullmatch(name):
        raise UsageError(f"{kind} name {name!r}: expected {form}")
    catalogue = session.catalogue()
    if name in catalogue.names(kind) or core_entry(kind, name) is not None:
        raise UsageError(f"{catalogue.get(kind, name).provider} already provides the {kind} {name!r}: choose another name")
    distribution = _distribution(name)
    folder = into or Path(distribution)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder: name another one with --into")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: name another folder with --into")
    answers = {"kind": kind, "name": name, "author": author, "core": __version__}
    _copy(folder, answers | (_over_data(catalogue, name) if kind == "scenario" else {}))
    echo(f"{folder}/ holds the package {distribution}, which provides the {kind} {name}. It works as it is:\n")
    for line in (f"cd {folder}", 'pip install -e ".[test]"', f"cglsuite check --kind {kind} {name}", "pytest"):
        echo(f"  {line}")


def template_folder() -> Path:
    """The template that ``cglsuite new`` fills in."""
    return shipped("cglsuite", "_plugins/template")


def _distribution(name: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", name).strip("-")
    return slug if slug.startswith("cglsuite-") else f"cglsuite-{slug}"


def _over_data(catalogue: Catalogue, name: str) -> dict[str, str]:
    """Who provides the data set of a new scenario, and the attribute that makes its tasks: the package itself has data that are new.

    Raises:
        UsageError: a setting that the template does not have, or a data set that does not suit it.
    """
    dataset, _, rest = name.partition("/")
    setting = rest.partition("@")[0]
    if setting not in _TASK_KEYS:
        raise UsageError(f"scenario name {name!r}: the template has the settings {', '.join(_TASK_KEYS)}, not {setting!r}")
    wanted = _TASK_KEYS[setting]
    if dataset not in catalogue.names("dataset"):
        return {"provider": "", "task_key": wanted[0] if wanted else ""}
    entry, spec = catalogue.get("dataset", dataset), catalogue.dataset(dataset)
    if "NC" not in spec.levels or spec.labels not in {None, "single"}:
        raise UsageError(
            f"scenario name {name!r}: the template is for nodes with one class each, and {dataset} is of level {', '.join(spec.levels)} "
            f"with labels {spec.labels or 'of unknown kind'}: see docs/how-to/links-and-graphs.md, or choose another data set"
        )
    keys = spec.keys if spec.keys is not None else wanted
    fitting = [key for key in wanted if key in keys] or list(keys)
    if wanted and not fitting:
        raise UsageError(f"scenario name {name!r}: {setting} needs an attribute of nodes, and the data set {dataset} has none")
    return {"provider": entry.record.distribution, "task_key": fitting[0] if wanted else ""}


def _copy(folder: Path, answers: dict[str, str]) -> None:
    from copier import run_copy

    run_copy(str(template_folder()), folder, data=answers, defaults=True, quiet=True)
