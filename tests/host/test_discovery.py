"""What is found on the path, told apart, deduplicated and sorted; nothing is imported."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from plugin_sites import Site

from cglsuite.host import find_entry_points, load_catalogue
from cglsuite.host.discovery import Gate, find_candidates, normalised


def test_names_compare_as_packaging_tools_compare_them() -> None:
    assert normalised("My_Plugin..X") == normalised("my-plugin-x") == "my-plugin-x"


def test_candidates_are_sorted_by_distribution_and_name_and_nothing_is_imported(site: Site) -> None:
    site.add("clash-b").add("sys-exit").add("clash-a", entry_points={"z": "clash_a", "a": "clash_a"})
    found = [(c.distribution, c.entry_point.name) for c in find_candidates(site.entry_points())]
    assert found == [("clash-a", "a"), ("clash-a", "z"), ("clash-b", "plugin"), ("sys-exit", "plugin")]
    assert "clash_a" not in sys.modules


def test_the_same_entry_point_name_in_two_distributions_is_two_plugins(site: Site) -> None:
    catalogue = (
        site.add("healthy", entry_points={"plugin": "healthy"}).add("twice-b", files={"other.py": METHOD}, entry_points=PLUGIN).catalogue()
    )
    assert [(r.distribution, r.entry_point, r.status) for r in catalogue.records] == [
        ("healthy", "plugin", "ok"),
        ("twice-b", "plugin", "ok"),
    ]
    assert catalogue.names("method") == ["alpha", "other", "zeta"]


def test_a_distribution_found_twice_counts_once_as_the_copy_that_comes_first(site: Site, tmp_path: Path) -> None:
    site.add("healthy", "1.0")
    second = tmp_path / "second"
    shutil.copytree(site.folder, second)
    newer = second / "healthy-1.0.dist-info" / "METADATA"
    newer.write_text(newer.read_text().replace("Version: 1.0", "Version: 9.9"))
    found = find_candidates(find_entry_points([str(site.folder), str(second), str(site.folder)]))
    assert [(c.distribution, c.version) for c in found] == [("healthy", "1.0")]


def test_a_first_copy_without_plugins_shadows_a_later_one_with_them(site: Site, tmp_path: Path) -> None:
    site.add("healthy", "1.0")
    first = tmp_path / "first"
    shutil.copytree(site.folder, first)
    (first / "healthy-1.0.dist-info" / "entry_points.txt").write_text("[console_scripts]\nx = y:z\n")
    assert find_entry_points([str(first), str(site.folder)]) == []


def test_metadata_without_a_name_is_a_recorded_fault(site: Site) -> None:
    site.add("healthy")
    (site.folder / "healthy-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\n")
    (record,) = site.catalogue().records
    assert record.status == "failed"
    assert "have no name" in str(record.error)


def test_an_entry_point_that_names_no_module_is_a_recorded_fault(site: Site) -> None:
    (record,) = site.add("healthy", entry_points={"plugin": "not a module!"}).catalogue().records
    assert record.status == "failed"
    assert "plugin = not a module! does not name a module" in str(record.error)


@pytest.mark.parametrize("group", ["cglsuite", "console_scripts"])
def test_a_malformed_line_of_anybody_is_named_and_hides_nothing(site: Site, monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    """importlib.metadata ends at it with a TypeError, for every distribution; so would the import of torch."""
    site.add("healthy").add("sys-exit")
    file = site.folder / "sys_exit-1.0.dist-info" / "entry_points.txt"
    file = file if file.parent.is_dir() else next(site.folder.glob("sys*dist-info")) / "entry_points.txt"
    file.write_text(f"[{group}]\nnonsense\n")
    monkeypatch.setattr(sys, "path", [str(site.folder), *sys.path])
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "1")
    monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD")
    with pytest.raises(TypeError):
        importlib.metadata.entry_points(group="cglsuite")
    found = {candidate.distribution: candidate for candidate in find_candidates()}
    assert found["healthy"].problem is None
    assert found["sys-exit"].problem == f"{file}: the line 'nonsense' is not an entry point; expected name = module:object"
    assert os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"


@pytest.mark.parametrize("line", ["nonsense", "plugin = not a module!"])
def test_commands_run_beside_a_malformed_line(site: Site, line: str) -> None:
    """A file of a campaign, records and the code behind keys: each is read with a library that looks at everybody's entry points."""
    site.add("sys-exit")
    (next(site.folder.glob("sys*dist-info")) / "entry_points.txt").write_text(f"[cglsuite]\n{line}\n")
    code = (
        "from cglsuite.cells.code.user import plugin_packages; plugin_packages()\n"
        "from cglsuite.cells.records import schema\n"
        "from cglsuite.cells.storage import shards\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != "PYDANTIC_DISABLE_PLUGINS"}
    environment["PYTHONPATH"] = os.pathsep.join([str(site.folder), *sys.path])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


def test_unreadable_metadata_of_a_stranger_are_passed_over(site: Site) -> None:
    site.add("healthy").add("clash-a")
    (site.folder / "clash_a-1.0.dist-info" / "entry_points.txt").write_bytes(b"[cglsuite]\n\xff\xfe = nonsense")
    assert [c.distribution for c in find_candidates(site.entry_points())] == ["healthy"]


def test_entry_points_made_by_hand_need_no_distribution(site: Site) -> None:
    site.add("healthy")
    catalogue = load_catalogue(entry_points=[EntryPoint("x", "healthy", "cglsuite")] * 2)
    assert [(r.distribution, r.version, r.status) for r in catalogue.records] == [("healthy", "unknown", "ok")]


def test_installed_plugins_are_found_without_being_named(site: Site) -> None:
    site.add("healthy")
    importlib.invalidate_caches()
    assert "healthy" in [c.distribution for c in find_candidates()]


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_blocked_plugin_is_never_imported(site: Site, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    site.add("clash-a").add("clash-b")
    if how == "environment":
        monkeypatch.setenv("CGLSUITE_PLUGINS_BLOCK", "nothing, CLASH_A")
    catalogue = site.catalogue(block=["clash.a"] if how == "argument" else [])
    blocked, loaded = catalogue.records
    assert (blocked.distribution, blocked.status, blocked.hooks, blocked.provides) == ("clash-a", "blocked", (), {})
    assert "block list" in str(blocked.error)
    assert "CGLSUITE_PLUGINS_BLOCK" in str(blocked.fix)
    assert loaded.status == "ok"
    assert "clash_a" not in sys.modules
    assert "clash_b" in sys.modules
    assert catalogue.get("method", "same").record.distribution == "clash-b"


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_only_allowed_plugins_are_imported(site: Site, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    site.add("clash-a").add("clash-b").add("sys-exit")
    if how == "environment":
        monkeypatch.setenv("CGLSUITE_PLUGINS_ALLOW", "clash-b")
    catalogue = site.catalogue(allow=["clash-b"] if how == "argument" else None)
    assert [(r.distribution, r.status) for r in catalogue.records] == [("clash-a", "blocked"), ("clash-b", "ok"), ("sys-exit", "blocked")]
    assert "clash_a" not in sys.modules


def test_the_core_needs_no_mention_in_the_allow_list_but_can_be_blocked() -> None:
    assert Gate.from_environment(allow=["x"]).refusal("cglsuite") is None
    assert Gate.from_environment(block=["cglsuite"]).refusal("cglsuite") is not None


def test_a_misspelt_block_list_is_told(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.add("clash-a").catalogue(block=["clahs-a"])
    assert "the block list names 'clahs-a', which is not an installed plugin; did you mean 'clash-a'?" in caplog.text


PLUGIN = {"plugin": "other"}
METHOD = """
from cglsuite import MethodSpec, hookimpl

@hookimpl
def cglsuite_methods():
    return [MethodSpec(name="other", summary="another", factory="other:f")]
"""
