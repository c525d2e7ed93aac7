"""The test environment itself: one shared base, no network, and an honest account of what did not run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import overlay
import pytest
import suite_pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_base_holds_only_third_parties_and_what_the_plugins_need() -> None:
    wanted = overlay.requirements(ROOT)
    assert not [r for r in wanted if r.startswith("cglsuite")]
    for name in ("torch>=", "hatchling>=", "pytest>=", "mypy>=", "pot>="):
        assert any(r.startswith(name) for r in wanted)


def test_a_base_is_made_anew_when_a_requirement_or_a_pin_changes_but_not_for_a_comment() -> None:
    pins = "# tested\ntorch==2.13.0\n"
    first = overlay.fingerprint(["torch>=2.13"], pins)
    assert first == overlay.fingerprint(["torch>=2.13"], "torch==2.13.0\n")
    assert first != overlay.fingerprint(["torch>=2.13"], "torch==2.13.1\n")
    assert first != overlay.fingerprint(["torch>=2.13", "tqdm>=4"], pins)


def test_what_most_tests_import_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    overlay.compile_by_import(sys.executable, ["one", "not_installed"], ["not_installed_either", "two"])
    assert {path.name.partition(".")[0] for path in (tmp_path / "__pycache__").iterdir()} == {"one", "two"}


def test_installed_distributions_satisfy_each_other() -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_connections_that_leave_this_machine_are_refused() -> None:
    with pytest.raises(ConnectionRefusedError, match="run without a network"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/tmp/kernel.sock", True),
        (("127.0.0.1", 80), True),
        (("localhost", 80), True),
        (("::1", 80, 0, 0), True),
        (("192.0.2.1", 80), False),
        (("example.org", 443), False),
        (("2001:db8::1", 80, 0, 0), False),
    ],
)
def test_what_counts_as_this_machine(address: object, expected: bool) -> None:
    assert suite_pytest.is_local(address) is expected


INNER = """
import pytest

@pytest.mark.realdata
def test_on_real_data(): pass

@pytest.mark.plugins("no-such-distribution")
def test_with_a_plugin(): pass

@pytest.mark.notebook
def test_a_notebook(): pass
"""


def inner_run(folder: Path, *arguments: str, more: str = "", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A run of the tests in a folder under the suite's own conftest and settings; ``more`` is added to the conftest."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8") + more, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "-p", "no:cacheprovider"]
    return subprocess.run([*command, *arguments, str(folder)], cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("data", "line"), [(True, "real-data tests: 1 ran, 0 skipped"), (False, "real-data tests: 0 ran, 1 skipped")])
def test_a_run_says_what_did_not_run_and_why(data: bool, line: str, tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(INNER, encoding="utf-8")
    absent = tmp_path / "absent-plugin"
    absent.mkdir()
    (absent / "pyproject.toml").write_text('[project]\nname = "absent-plugin"\n', encoding="utf-8")
    (absent / "test_absent.py").write_text("import absent_plugin\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "CGLSUITE_DATA"}
    if data:
        environment["CGLSUITE_DATA"] = str(tmp_path)
    done = inner_run(tmp_path, "-m", "not notebook", env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert line in done.stdout
    assert "needs no-such-distribution, not installed here" in done.stdout
    assert "not collected: tests of absent-plugin" in done.stdout
    assert "1 tests marked 'notebook' (tox -e notebooks runs them)" in done.stdout


@pytest.mark.nightly
def test_workers_tell_what_did_not_run(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(INNER, encoding="utf-8")
    done = inner_run(tmp_path, "-m", "not notebook", "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 tests marked 'notebook' (tox -e notebooks runs them)" in done.stdout


NIGHTLY = """
import pytest

@pytest.mark.nightly
@pytest.mark.parametrize("n", range(40))
def test_at_night(n): print(f"ran-{n}.")

@pytest.mark.nightly
@pytest.mark.timeout(1)
def test_with_a_limit_of_its_own(request): assert request.node.get_closest_marker("timeout").args == (1,)

@pytest.mark.nightly
def test_may_take_long(request): assert request.node.get_closest_marker("timeout").args == (600,)

def test_by_day(request): assert request.node.get_closest_marker("timeout") is None
"""


@pytest.mark.nightly
def test_an_eighth_of_the_nightly_tests_is_selected_and_the_others_are_counted(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(NIGHTLY, encoding="utf-8")
    done = inner_run(tmp_path, "-q", "--collect-only", "--eighth=5")
    assert done.returncode == 0, done.stdout + done.stderr
    names = ["test_with_a_limit_of_its_own", "test_may_take_long", *(f"test_at_night[{n}]" for n in range(40))]
    nodes = {f"test_inner.py::{name}" for name in names if suite_pytest.eighth_of(f"test_inner.py::{name}") == 5}
    assert 1 < len(nodes) < 12
    assert {line for line in done.stdout.splitlines() if "::" in line} == nodes | {"test_inner.py::test_by_day"}
    assert "nightly tests: eighth 5 of 0 to 7 (--eighth)" in done.stdout
    assert f"not selected here: {42 - len(nodes)} tests marked 'nightly' (tox -e nightly runs them)" in done.stdout


@pytest.mark.nightly
def test_a_file_of_nightly_tests_alone_is_in_one_eighth(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(NIGHTLY.replace("def test_by_day", "@pytest.mark.nightly\ndef test_too"), encoding="utf-8")
    done = inner_run(tmp_path, "-q", "--collect-only", f"--eighth={suite_pytest.eighth_of('test_inner.py')}")
    assert done.stdout.count("::") == 43
    assert "tests marked 'nightly'" not in done.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "in a worker"])
def test_an_eighth_without_a_test_has_passed(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_inner.py").write_text("import pytest\n\n@pytest.mark.nightly\ndef test_one(): pass\n", encoding="utf-8")
    other = (suite_pytest.eighth_of("test_inner.py") + 1) % 8
    done = inner_run(tmp_path, "-m", "nightly", f"--eighth={other}", *workers)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" not in done.stdout


SAMPLED = """
import pytest

@pytest.mark.sampled({wanted})
@pytest.mark.parametrize("y", range(3))
@pytest.mark.parametrize("x", range(3))
def test_many(x, y): pass

def test_one(): pass
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("wanted", "by_day"),
    [(1, ["0-0"]), (2, ["0-0", "2-2"]), (3, ["0-0", "1-1", "2-2"]), (9, None), (20, None)],
)
def test_of_a_sampled_test_some_cases_are_in_the_quick_round(tmp_path: Path, wanted: int, by_day: list[str] | None) -> None:
    (tmp_path / "test_inner.py").write_text(SAMPLED.format(wanted=wanted), encoding="utf-8")
    every = [f"{x}-{y}" for x in range(3) for y in range(3)]
    by_day = every if by_day is None else by_day
    quick = {line for line in inner_run(tmp_path, "-q", "--collect-only", "-m", "not nightly").stdout.splitlines() if "::" in line}
    late = {line for line in inner_run(tmp_path, "-q", "--collect-only", "-m", "nightly").stdout.splitlines() if "::" in line}
    assert quick == {"test_inner.py::test_one", *(f"test_inner.py::test_many[{case}]" for case in by_day)}
    assert late == {f"test_inner.py::test_many[{case}]" for case in every if case not in by_day}


def test_a_nightly_test_may_take_longer(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(NIGHTLY, encoding="utf-8")
    done = inner_run(tmp_path, "-k", "not at_night")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


@pytest.mark.nightly
def test_a_mark_that_selects_is_written_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text("def test_one(): pass\n", encoding="utf-8")
    done = inner_run(tmp_path, more="\n\ndef pytest_itemcollected(item):\n    item.add_marker('notebook')\n")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "test_inner.py: a test has the mark 'notebook', which the file does not state" in done.stderr + done.stdout


@pytest.mark.nightly
def test_a_run_of_notebooks_does_not_import_other_files(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(INNER, encoding="utf-8")
    (tmp_path / "test_other.py").write_text("import no_such_module\n", encoding="utf-8")
    done = inner_run(tmp_path, "-m", "notebook")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
