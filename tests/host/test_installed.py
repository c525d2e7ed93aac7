"""From where the code of a distribution was imported, and what a run of tests says of it first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cglsuite.host.discovery import installation
from cglsuite.testing.pytest_plugin import pytest_report_header


def put(folder: Path, *, editable: Path | None = None) -> None:
    """A distribution ``mine 2.0`` in a folder, with a plugin module there unless it is editable."""
    info = folder / "mine-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[cglsuite]\nmine = mine_plugin\n")
    if editable is None:
        (folder / "mine_plugin.py").write_text("")
    else:
        (info / "direct_url.json").write_text(json.dumps({"url": editable.as_uri(), "dir_info": {"editable": True}}))


@pytest.mark.parametrize(
    ("editable", "front", "said"),
    [
        (False, False, "installed: {site}"),
        (True, False, "editable: {checkout}"),
        (False, True, "not the installed copy in {site}: {front}"),
        (True, True, "not the editable copy in {checkout}: {front}"),
    ],
)
def test_the_copy_that_is_imported_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editable: bool, front: bool, said: str) -> None:
    places = {name: tmp_path / name for name in ("site", "checkout", "front")}
    for name in ("checkout", "front"):
        places[name].mkdir()
        (places[name] / "mine_plugin.py").write_text("")
    put(places["site"], editable=places["checkout"] if editable else None)
    monkeypatch.syspath_prepend(str(places["site"]))
    if editable:
        monkeypatch.syspath_prepend(str(places["checkout"]))
    if front:
        monkeypatch.syspath_prepend(str(places["front"]))
    (line,) = [line for line in pytest_report_header() if line.startswith("plugin mine ")]
    assert line == f"plugin mine 2.0, {said.format(**places)}/mine_plugin.py"


def test_without_a_distribution_nothing_is_installed(tmp_path: Path) -> None:
    assert installation("nobody-has-this", tmp_path) == "not installed"
