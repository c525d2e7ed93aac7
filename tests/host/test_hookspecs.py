"""Every kind of spec has its hook, and importing the host costs no heavy module."""

from __future__ import annotations

import subprocess
import sys
import typing

import pluggy
import pytest

import cglsuite
from cglsuite.host import HOOKS, hookspecs
from cglsuite.specs import KINDS


def test_every_kind_has_a_documented_hook_that_pluggy_knows() -> None:
    manager = pluggy.PluginManager("cglsuite")
    manager.add_hookspecs(hookspecs)
    assert sorted(HOOKS.values()) == sorted(KINDS)
    for name, kind in HOOKS.items():
        function = getattr(hookspecs, name)
        assert function.__doc__
        assert getattr(manager.hook, name).spec.argnames == ()
        assert typing.get_args(typing.get_type_hints(function)["return"]) == (KINDS[kind],)


def test_the_public_names_exist_and_unknown_ones_do_not() -> None:
    assert cglsuite.hookimpl is hookspecs.hookimpl
    assert callable(cglsuite.load_catalogue)
    assert set(dir(cglsuite)) == set(cglsuite.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cglsuite.nonsense


@pytest.mark.parametrize(
    "module",
    [
        "cglsuite",
        "cglsuite.host",
        "cglsuite.host.doctor",
        "cglsuite.cli.main",
        "cglsuite.cli.commands.catalogue",
    ],
)
def test_importing_costs_no_heavy_module(module: str) -> None:
    heavy = "{'torch', 'torch_geometric', 'pandas', 'numpy', 'pydantic', 'papermill', 'matplotlib'}"
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
