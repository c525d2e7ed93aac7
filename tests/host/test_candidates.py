"""Entry points, files and lists of names before any import: identity, version, problem and remedy of each, and what the gate says."""

from __future__ import annotations

import hashlib
import logging
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from plugin_sites import Site

from cglsuite.graphs.files.named import named
from cglsuite.host import find_entry_points
from cglsuite.host.discovery import BUILT_IN, Candidate, Gate, find_candidates, normalised, strict_by_environment

REFUSED = "blocked: it is in the block list"
NOT_ALLOWED = "blocked: it is not in the allow list"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("BLOCK", "ALLOW"):
        monkeypatch.delenv(f"CGLSUITE_PLUGINS_{name}", raising=False)
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.parametrize(
    ("value", "module"),
    [("a.b", "a.b"), ("a.b:c", "a.b"), ("a.b : c.d", "a.b"), ("a.b [x]", "a.b"), ("a.b:c [x,y]", "a.b"), ("a.b[x:y]", "a.b")],
)
def test_what_an_entry_point_names(value: str, module: str) -> None:
    made = Candidate(distribution="My_Plugin", version="1", entry_point=EntryPoint("e", value, "cglsuite"))
    assert made.module == module
    assert made.key == ("my-plugin", "e", value)


@pytest.mark.parametrize(
    ("value", "good"),
    [("a", True), ("a.b", True), ("a:b", True), ("a.b : c.d ", True), ("a [x]", True), ("a-b", False), ("", False), ("a:b:c", False)],
)
def test_entry_points_made_by_hand(value: str, good: bool) -> None:
    """Named after their outermost package; a malformed one says how it reads."""
    (made,) = find_candidates([EntryPoint("e", value, "cglsuite")])
    assert made.problem == (None if good else f"its entry point e = {value} does not name a module")
    assert (made.version, made.remedy) == ("unknown", "")
    (under,) = find_candidates([EntryPoint("e", "my_pack.inner:x", "cglsuite")])
    assert under.distribution == "my-pack"


def test_repeated_candidates_count_once_and_are_sorted_by_their_key() -> None:
    points = [EntryPoint("b", "q_x", "cglsuite"), EntryPoint("a", "q_x", "cglsuite"), EntryPoint("a", "Q_x", "cglsuite")]
    points += [EntryPoint("z", "a_x", "cglsuite"), EntryPoint("a", "q_x", "cglsuite")]
    assert [c.key for c in find_candidates(points)] == [("a-x", "z", "a_x"), ("q-x", "a", "Q_x"), ("q-x", "a", "q_x"), ("q-x", "b", "q_x")]
    assert find_candidates([]) == []


def test_metadata_that_cannot_be_read_leave_name_and_version_open(site: Site) -> None:
    """Such a distribution is a candidate with a problem, beside the others; two of them do not hide each other."""
    site.add("healthy", "2.5").add("clash-a").add("clash-b")
    for name in ("clash_a", "clash_b"):
        (site.folder / f"{name}-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\n")
    found = find_candidates(site.entry_points())
    assert [(c.distribution, c.version, c.problem is None) for c in found] == [
        ("(unnamed)", "unknown", False),
        ("(unnamed)", "unknown", False),
        ("healthy", "2.5", True),
    ]
    assert f"its metadata in {site.folder}" in str(found[0].problem)
    assert str(found[0].problem).endswith("have no name")


def test_distributions_without_the_group_are_passed_over(site: Site) -> None:
    site.add("healthy").add("clash-a")
    (site.folder / "clash_a-1.0.dist-info" / "entry_points.txt").write_text("[console_scripts]\ncglsuite = clash_a\n")
    assert [(p.name, p.value, p.group) for p in find_entry_points([str(site.folder)])] == [("plugin", "healthy", "cglsuite")]
    assert find_entry_points([]) == []
    assert "healthy" in [p.value for p in find_entry_points()]  # of sys.path


# --- files -------------------------------------------------------------------------------------------------------------------------


def test_a_named_file_is_a_candidate(tmp_path: Path) -> None:
    """Its version is the hash of its content; its folder is searched last, and once."""
    path = tmp_path / "own_method_7.py"
    path.write_text("x = 1\n")
    with named(plugins=[path]):
        made = next(c for c in find_candidates() if c.distribution == path.name)
        again = next(c for c in find_candidates() if c.distribution == path.name)
        assert find_candidates([]) == []  # given entry points are all there is
    assert made == again
    assert made.version == f"sha256-{hashlib.sha256(b'x = 1' + bytes([10])).hexdigest()[:12]}"
    assert (made.entry_point.name, made.module, made.entry_point.group) == ("file", "own_method_7", "cglsuite")
    assert (made.problem, made.remedy) == (None, "rename own_method_7.py")
    assert sys.path[-1] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1
    assert "own_method_7" not in sys.modules


@pytest.mark.parametrize(
    ("stem", "taken"), [("json", r"by .*json.__init__\.py"), ("sys", "by a built-in module"), ("zipimport", "by a built-in module")]
)
def test_a_file_whose_name_is_taken_says_by_what(tmp_path: Path, stem: str, taken: str) -> None:
    path = tmp_path / f"{stem}.py"
    path.write_text("")
    with named(plugins=[path]):
        made = next(c for c in find_candidates() if c.distribution == path.name)
    assert re.fullmatch(f"the module name '{stem}' is taken ({taken})", str(made.problem))
    assert made.remedy == f"rename {stem}.py"


def test_a_file_that_is_gone_is_a_candidate_with_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "own_method_8.py"
    path.write_text("")
    with named(plugins=[path]):
        path.unlink()
        made = next(c for c in find_candidates() if c.distribution == path.name)
    assert made.problem is not None
    assert made.version.startswith("sha256-") is False
    assert made.version == "unknown"


# --- the gate ----------------------------------------------------------------------------------------------------------------------


def test_lists_of_the_environment_and_of_arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Block lists add up; a given allow list replaces that of the environment; without any everything is allowed."""
    assert Gate.from_environment() == Gate(frozenset(), None)
    monkeypatch.setenv("CGLSUITE_PLUGINS_BLOCK", " A_b,, c ")
    monkeypatch.setenv("CGLSUITE_PLUGINS_ALLOW", "D.e, f")
    assert Gate.from_environment() == Gate(frozenset({"a-b", "c"}), frozenset({"d-e", "f"}))
    assert Gate.from_environment(["X"], ["Y"]) == Gate(frozenset({"a-b", "c", "x"}), frozenset({"y"}))
    assert Gate.from_environment(allow=[]).allow == frozenset()
    monkeypatch.setenv("CGLSUITE_PLUGINS_ALLOW", " , ")
    assert Gate.from_environment().allow is None
    path = tmp_path / "own_method_9.py"
    path.write_text("")
    with named(plugins=[path]):
        assert Gate.from_environment().allow is None
        assert Gate.from_environment(allow=["y"]).allow == frozenset({"y", "own-method-9-py"})


@pytest.mark.parametrize(
    ("block", "allow", "name", "why", "remedy"),
    [
        ((), None, "x", None, ""),
        (("x",), None, "X", REFUSED, "remove X from CGLSUITE_PLUGINS_BLOCK (or from the argument block=) to load it"),
        (("x",), ("x",), "x", REFUSED, "remove x from CGLSUITE_PLUGINS_BLOCK (or from the argument block=) to load it"),
        ((), ("y",), "x_z", NOT_ALLOWED, "add x_z to CGLSUITE_PLUGINS_ALLOW (or to the argument allow=) to load it"),
        ((), ("x-z",), "x_z", None, ""),
        ((), (), "x", NOT_ALLOWED, "add x to CGLSUITE_PLUGINS_ALLOW (or to the argument allow=) to load it"),
        ((), ("y",), "cglsuite", None, ""),
        (("cglsuite",), None, "cglsuite", REFUSED, "remove cglsuite from CGLSUITE_PLUGINS_BLOCK (or from the argument block=) to load it"),
    ],
)
def test_what_the_gate_refuses(block: tuple[str, ...], allow: tuple[str, ...] | None, name: str, why: str | None, remedy: str) -> None:
    gate = Gate(frozenset(block), None if allow is None else frozenset(allow))
    assert gate.refusal(name) == (None if why is None else (why, remedy))


def test_every_name_without_a_plugin_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """In either list, sorted, with the nearest name; the core is always there."""
    with caplog.at_level(logging.WARNING):
        Gate(frozenset({"my-plugim", "zzz", "cglsuite"}), frozenset({"My-other", "cglsuite"})).warn_of_unknown(["my_plugin", "own"])
    assert [r.getMessage() for r in caplog.records] == [
        "the block list names 'my-plugim', which is not an installed plugin; did you mean 'my-plugin'?",
        "the block list names 'zzz', which is not an installed plugin",
        "the allow list names 'My-other', which is not an installed plugin",
    ]
    caplog.clear()
    Gate(frozenset({"own"}), None).warn_of_unknown(["own"])
    assert not caplog.records


@pytest.mark.parametrize(("given", "strict"), [(None, False), ("", False), ("0", False), ("no", False), ("1", True), ("true", True)])
def test_strict_mode_by_environment(monkeypatch: pytest.MonkeyPatch, given: str | None, strict: bool) -> None:
    monkeypatch.delenv("CGLSUITE_STRICT", raising=False)
    if given is not None:
        monkeypatch.setenv("CGLSUITE_STRICT", given)
    assert strict_by_environment() is strict


@pytest.mark.parametrize(
    "name", ["", "-dask", "-drift", "-graph", "-link", "-methods", "-metrics", "-node", "-skeleton", "-slurm", "-text"]
)
def test_the_distributions_of_the_suite_are_no_foreign_code(name: str) -> None:
    assert f"cglsuite{name}" in BUILT_IN
    assert len(BUILT_IN) == 11
    assert normalised(f"CGLsuite{name}".replace("-", "._-")) == f"cglsuite{name}"
