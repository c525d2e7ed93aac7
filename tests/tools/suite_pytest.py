"""What all tests of the repository share, whichever folder they are in: registered by the two ``conftest.py`` files.

- A cache of the run's own, no ``CGLSUITE_*`` setting of the caller's but the data root; cells save every task.
- Nothing waits for the disk (``os.fsync``): no test cuts the power, and the tests that are about it replace the call themselves.
- No network: a connection to anything but this machine is refused, and child processes are sent to a proxy that refuses.
- Tests whose need is not met (real data, a plugin, a GPU) are skipped with what would meet it; the tests of a distribution that is not
  installed are not even imported.
- A test that is marked nightly may take ten minutes, others the two of ``pyproject.toml``; ``--eighth K`` selects an eighth of the nightly.
- Of a test that is marked ``sampled(n)``, n of its cases, spread over all, are in the quick round; the others are nightly.
- The end of the run says how many real-data tests ran, and which environment runs what was not selected here.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import ipaddress
import logging
import os
import re
import socket
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

__all__ = ["SuitePlugin", "eighth_of", "pytest_addoption", "pytest_xdist_auto_num_workers", "register"]

BUILT_IN = (
    *("cglsuite-node", "cglsuite-methods", "cglsuite-metrics", "cglsuite-skeleton", "cglsuite-drift"),
    *("cglsuite-link", "cglsuite-graph"),
)
#: What runs the tests of a mark; a test with several is run by the first.
ENVIRONMENTS = {"nightly": "tox -e nightly", "notebook": "tox -e notebooks", "plugins": "tox -e plugins"}
NEED = ("notebook", "plugins")
#: The marks in a file's text that may give a test the mark.
WRITTEN = {name: (name,) for name in ENVIRONMENTS} | {"nightly": ("nightly", "sampled")}
NIGHTLY_S = 600
EIGHTHS = 8
CORE_TESTS = Path(__file__).resolve().parents[1]
REFUSING_PROXY = "http://127.0.0.1:9"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """What ``-n auto`` means: one worker more than there are processors, since many tests wait for processes that they have started."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else (os.cpu_count() or 1) + 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--eighth``, from whichever ``conftest.py`` comes first."""
    with suppress(ValueError):
        kinds = f"of the tests marked nightly only this part, 0 to {EIGHTHS - 1}"
        parser.addoption("--eighth", type=int, choices=range(EIGHTHS), metavar="K", help=kinds)


def eighth_of(unit: str) -> int:
    """Which eighth of the nightly tests one with this id, or a file, belongs to."""
    return hashlib.sha256(unit.encode()).digest()[0] % EIGHTHS


def _may_hold(path: Path, expression: str) -> bool:
    """Whether a file of tests may hold one that a ``-m`` of tox.ini selects, by the marks in its text."""
    if not re.fullmatch(r"(not )?\w+( and (not )?\w+)*", expression):
        return True
    terms = expression.split(" and ")
    wanted = [name for name in ENVIRONMENTS if name in terms]
    if "not core" in terms and "not notebook" in terms and CORE_TESTS in path.parents:
        wanted.append("plugins")
    return not wanted or all(_states(path, name) for name in wanted)


def _states(path: Path, name: str) -> bool:
    text = path.read_text(encoding="utf-8")
    return any(f"mark.{written}" in text for written in WRITTEN[name])


def _sample(items: list[pytest.Item]) -> None:
    """Mark as nightly all cases of a sampled test but the number that its mark names, spread evenly from the first to the last."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in cases.values():
        (wanted,) = group[0].get_closest_marker("sampled").args  # type: ignore[union-attr]
        by_day = {round(place * (len(group) - 1) / max(1, wanted - 1)) for place in range(wanted)}
        for number, item in enumerate(group):
            if number not in by_day:
                item.add_marker(pytest.mark.nightly)


def _require_written(items: list[pytest.Item]) -> None:
    """Check that marks which select tests stand in the files of these: :func:`_may_hold` reads them there.

    Raises:
        pytest.UsageError: a test has one from elsewhere.
    """
    marked = {(item.path, name) for item in items for name in ENVIRONMENTS if item.get_closest_marker(name)}
    for path, name in sorted(marked):
        if not _states(path, name):
            raise pytest.UsageError(f"{path}: a test has the mark {name!r}, which the file does not state: write pytest.mark.{name} in it")


def register(config: pytest.Config) -> None:
    """Add the shared behaviour to this run, once."""
    with suppress(ImportError):  # the machine's speed is no property of what is tested
        from hypothesis import settings

        settings.register_profile("suite", deadline=None)
        settings.load_profile("suite")
    if not config.pluginmanager.has_plugin("cglsuite-suite"):
        config.pluginmanager.register(SuitePlugin(), "cglsuite-suite")


def data_root() -> Path | None:
    """The first folder of real data that this run was given, or None."""
    named = os.environ.get("CGLSUITE_DATA")
    folders = [named] if not named or Path(named).is_dir() else named.split(os.pathsep)
    for folder in filter(None, folders):
        if not Path(folder).is_dir():
            raise pytest.UsageError(f"CGLSUITE_DATA={named!r}: {folder!r} is not a folder: unset it, or name the folders of data sets")
    return Path(folders[0]) if folders[0] else None


def is_local(address: Any) -> bool:
    """Whether a socket address is on this machine: a path (Unix sockets), a loopback address or its name."""
    if not isinstance(address, tuple):
        return True
    host = address[0].decode() if isinstance(address[0], bytes) else str(address[0])
    if host in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _guarded(original: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def connect(self: socket.socket, address: Any) -> Any:
        if not is_local(address):
            raise ConnectionRefusedError(f"a test tried to connect to {address!r}: tests run without a network")
        return original(self, address)

    return connect


class SuitePlugin:
    """The hooks, and what they count."""

    def __init__(self) -> None:
        self.realdata: Counter[str] = Counter()
        self.elsewhere: Counter[str] = Counter()
        self.absent: set[str] = set()
        self.patch = pytest.MonkeyPatch()
        self.cache = tempfile.TemporaryDirectory(prefix="cglsuite-tests-", ignore_cleanup_errors=True)

    def pytest_sessionstart(self) -> None:
        """Refuse connections that leave this machine, wait for no disk, and keep the caller's settings and cache out of the tests."""
        self.patch.setattr(os, "fsync", lambda descriptor: None)
        for name in ("connect", "connect_ex"):
            self.patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            self.patch.setenv(name, REFUSING_PROXY)
        for name in ("no_proxy", "NO_PROXY"):
            self.patch.setenv(name, "localhost,127.0.0.1,::1")
        for name in [n for n in os.environ if n.startswith("CGLSUITE_") and n != "CGLSUITE_DATA"]:
            self.patch.delenv(name)
        self.patch.delenv("COLUMNS", raising=False)  # of the terminal, or set by what runs tests side by side: tables would be cut to it
        self.patch.setenv("CGLSUITE_CACHE", self.cache.name)
        self.patch.setenv("CGLSUITE_CHECKPOINT_EVERY", "0")  # cells of tests take less than ten seconds

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Give sockets and the environment back. An eighth in which there is nothing has passed."""
        if _eighth(session.config) is not None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["suite"] = {"elsewhere": dict(self.elsewhere), "absent": sorted(self.absent)}
        self.patch.undo()
        self.cache.cleanup()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from a worker what all workers have left out: only they collect."""
        told = getattr(node, "workeroutput", {}).get("suite", {"elsewhere": {}, "absent": ()})
        self.elsewhere |= Counter(told["elsewhere"])
        self.absent.update(told["absent"])

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Leave out the folder of a distribution that is not installed here, and files in which ``-m`` selects nothing: every worker would
        import them."""
        if collection_path.suffix == ".py" and collection_path.name.startswith("test_"):
            return None if _may_hold(collection_path, config.option.markexpr) else True
        project = collection_path / "pyproject.toml"
        if not collection_path.is_dir() or not project.is_file():
            return None
        name = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {}).get("name")
        if not name or _installed(name):
            return None
        self.absent.add(name)
        return True

    @pytest.hookimpl(tryfirst=True)  # before ``-m`` selects
    def pytest_collection_modifyitems(self, items: list[pytest.Item], config: pytest.Config) -> None:
        """Mark what needs no plugin, skip what cannot run here, each with its reason, and begin with what takes long.

        Workers take whole files in this order (``--dist loadfile --no-loadscope-reorder``): a long one at the end would run alone.
        """
        _sample(items)
        _require_written(items)
        root = data_root()
        self._select_eighth(items, config)
        dear = {item.path for item in items if item.get_closest_marker("nightly")}
        size = Counter(item.path for item in items)
        items.sort(key=lambda item: (item.path not in dear, -size[item.path], str(item.path)))
        for item in items:
            if CORE_TESTS in item.path.parents and not any(item.get_closest_marker(name) for name in NEED):
                item.add_marker(pytest.mark.core)
            if item.get_closest_marker("nightly") and not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(NIGHTLY_S))
            if reason := self._unmet(item, root):
                item.add_marker(pytest.mark.skip(reason=reason))

    @staticmethod
    def _select_eighth(items: list[pytest.Item], config: pytest.Config) -> None:
        """Leave out the nightly tests of other eighths, if one was asked for.

        A file of nightly tests alone is in one of them: they share what it makes.
        """
        eighth = _eighth(config)
        if eighth is not None:
            mixed = {item.path for item in items if not item.get_closest_marker("nightly")}
            unit = {item: item.nodeid if item.path in mixed else item.nodeid.partition("::")[0] for item in items}
            others = {item for item in items if item.get_closest_marker("nightly") and eighth_of(unit[item]) != eighth}
            items[:] = [item for item in items if item not in others]
            config.hook.pytest_deselected(items=list(others))

    def _unmet(self, item: pytest.Item, root: Path | None) -> str | None:
        if item.get_closest_marker("realdata") and root is None:
            return "needs real data: CGLSUITE_DATA is not set"
        if marker := item.get_closest_marker("plugins"):
            missing = [name for name in marker.args or BUILT_IN if not _installed(name)]
            if missing:
                return f"needs {', '.join(missing)}, not installed here"
        if item.get_closest_marker("gpu") and not _has_gpu():
            return "needs a CUDA device"
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        """The level of messages that a worker's or a command's entry point sets for its whole process is not the next test's."""
        logger = logging.getLogger("cglsuite")
        before = logger.level
        try:
            return (yield)
        finally:
            logger.setLevel(before)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Count what a marker expression left out."""
        for item in items:
            marks = [name for name in ENVIRONMENTS if item.get_closest_marker(name)]
            self.elsewhere.update(marks[:1])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count real-data tests that ran, and those that were skipped at whatever moment."""
        if "realdata" in report.keywords and (report.when == "call" or report.skipped):
            self.realdata["skipped" if report.skipped else "ran"] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what ran on real data and what did not run here."""
        root = data_root()
        where = f"from {root}" if root else "CGLSUITE_DATA is not set"
        terminalreporter.write_line(f"real-data tests: {self.realdata['ran']} ran, {self.realdata['skipped']} skipped ({where})")
        eighth = _eighth(terminalreporter.config)
        if eighth is not None:
            terminalreporter.write_line(f"nightly tests: eighth {eighth} of 0 to {EIGHTHS - 1} (--eighth)")
        if self.absent:
            terminalreporter.write_line(f"not collected: tests of {', '.join(sorted(self.absent))}, not installed here")
        for name, count in sorted(self.elsewhere.items()):
            terminalreporter.write_line(f"not selected here: {count} tests marked {name!r} ({ENVIRONMENTS[name]} runs them)")


def _eighth(config: pytest.Config) -> int | None:
    """The part that ``--eighth`` asks for; a folder of its own, with another ``conftest.py``, has no such option."""
    asked: int | None = config.getoption("eighth", None)
    return asked


@cache
def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@cache
def _has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()
