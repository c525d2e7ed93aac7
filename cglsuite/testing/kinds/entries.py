"""Conformance checks for all kinds of catalogue entries: importable, documented, and listed without importing torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from cglsuite.base.helpers import module_path, run_helper
from cglsuite.host import Catalogue, Entry
from cglsuite.specs import Hyperparameter
from cglsuite.testing.findings import Check, CheckFailed

_LISTING_S = 120.0


def entry_checks(
    catalogue: Catalogue,
    entry: Entry,
    hyperparameters: Iterable[Hyperparameter] = (),
    *,
    cited: bool = True,
    docstring: Callable[[], str] | None = None,
) -> Iterator[Check]:
    """Yield the checks shared by all kinds of entries.

    Args:
        hyperparameters: the declared hyperparameters.
        cited: whether a citation is expected.
        docstring: a function that imports the factory and returns its docstring, by default in this process.
    """
    imported = cache(docstring or (lambda: catalogue.resolve(entry).__doc__ or ""))
    yield Check(name="factory", action=lambda: imported() and None)
    yield Check(name="documentation", action=lambda: _documented(imported(), entry, hyperparameters, cited))
    yield Check(name="listing", action=lambda: _lists_without_torch(entry))


def _documented(docstring: str, entry: Entry, hyperparameters: Iterable[Hyperparameter], cited: bool) -> None:
    spec: Any = entry.spec
    lacking = ["the spec has no citation"] if cited and not any(str(part).strip() for part in spec.citations) else []
    if not docstring.strip():
        lacking.append(f"the factory of the {entry.kind} has no docstring")
    lacking += [f"hyperparameter {h.name!r} has no doc" for h in hyperparameters if not h.doc.strip()]
    if lacking:
        advice = "describe it, cite its publication (citation=..., or authors and year if unpublished), and document every hyperparameter"
        raise CheckFailed("; ".join(lacking), advice)


def _lists_without_torch(entry: Entry) -> None:
    module = entry.record.module
    if listed_modules(module):
        raise CheckFailed(
            f"importing {module} imports torch, which delays every command by a second",
            "import torch in the functions that use it, or move the code that needs it to a separate module and refer to it in the "
            f'factory string (factory="{module}_parts:Mine")',
        )


def listed_modules(module: str, sought: tuple[str, ...] = ("torch",)) -> list[str]:
    """Return the modules in ``sought`` that are imported when ``module`` is listed in a separate process.

    Args:
        sought: the modules to look for.

    Raises:
        CheckFailed: the module cannot be imported or listed.
    """
    failed, last = _listing(module, sought, tuple(module_path()))
    if failed:
        raise CheckFailed(f"{module} cannot be imported and listed on its own: {last}", "make the module importable on its own")
    return last.split()


@cache
def _listing(module: str, sought: tuple[str, ...], path: tuple[str, ...]) -> tuple[bool, str]:
    """Import and list a module in a separate process. Return whether this failed, and its last output (the error or the modules)."""
    done = run_helper("cglsuite.testing.staged.listing", module, *sought, limit_s=_LISTING_S, start_new_session=True)
    if done.returncode:
        return True, "".join(done.stderr.strip().splitlines()[-1:]) or f"exit status {done.returncode}"
    return False, done.stdout.rpartition("imported: ")[2]
