"""``cglsuite data``: what is here, downloads, and verification, on data sets of a plugin made for the test and a server on this machine."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_sites import Site

from cglsuite.cli.main import run
from cglsuite.reports.studies.anatomy import published

PLUGIN = """
from cglsuite import DatasetSpec, hookimpl

FILES = {{"here": "Here/a.npz", "away": "Away/a.npz", "homeless": "Homeless/a.npz", "made": None}}

def load(name, root):
    import io
    import numpy as np
    import torch
    from cglsuite.graphs import NodeData
    y = torch.arange(12) % 3
    x = torch.eye(3)[y]
    if FILES[name]:
        urls = () if name == "homeless" else ["{url}/a.npz"]
        read = root.read(FILES[name], sha256="{sha256}" if name != "homeless" else None, urls=urls)
        x = torch.from_numpy(np.load(io.BytesIO(read.content))["x"])
    return NodeData(x=x, edge_index=torch.zeros(2, 5, dtype=torch.int64), y=y, n_classes=3, name=name)

def here(root): return load("here", root)
def away(root): return load("away", root)
def homeless(root): return load("homeless", root)
def made(root): return load("made", root)

@hookimpl
def cglsuite_datasets():
    return [
        DatasetSpec(name=n, summary="s", factory="shelf:" + n, licence="CC0-1.0", home="https://example.org/" + n, embedded=n == "made")
        for n in FILES
    ]
"""


def _content() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, x=np.ones((12, 7), dtype=np.float32))
    return stream.getvalue()


CONTENT = _content()


@pytest.fixture
def url() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


class Shelf:
    """A plugin with four data sets, a data folder with the files of one of them, and an empty cache."""

    def __init__(self, site: Site, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        text = PLUGIN.format(url=url, sha256=hashlib.sha256(CONTENT).hexdigest())
        self.site = site.add("shelf", files={"shelf.py": text})
        self.folder, self.cache = folder / "data", folder / "cache"
        (self.folder / "Here").mkdir(parents=True)
        (self.folder / "Here" / "a.npz").write_bytes(CONTENT)
        self.patch, self.capsys = monkeypatch, capsys
        monkeypatch.delitem(sys.modules, "shelf", raising=False)
        monkeypatch.setattr("cglsuite.host.load_catalogue", lambda **_: self.site.catalogue())
        self.environment = {"CGLSUITE_DATA": str(self.folder), "CGLSUITE_CACHE": str(self.cache), "CGLSUITE_OFFLINE": ""}

    def run(self, *words: str, **environment: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of ``cglsuite data ...``."""
        for name, value in (self.environment | environment).items():
            self.patch.setenv(name, value)
        status = run(["data", *words])
        out, err = self.capsys.readouterr()
        return status, out, err

    def listed(self, **environment: str) -> dict[str, Any]:
        """By name what ``list --json`` says."""
        status, out, err = self.run("list", "--json", **environment)
        assert (status, err) == (0, "")
        return {entry["name"]: entry for entry in json.loads(out)}


@pytest.fixture
def shelf(site: Site, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shelf:
    return Shelf(site, url, tmp_path, monkeypatch, capsys)


def test_a_list_says_what_is_here_and_what_is_missing(shelf: Shelf) -> None:
    found = shelf.listed()
    assert {name: entry["state"] for name, entry in found.items()} == {
        "away": "missing",
        "here": "here",
        "homeless": "missing",
        "made": "embedded",
    }
    assert found["here"]["bytes"] == len(CONTENT)
    assert found["here"]["files"] == [str(shelf.folder / "Here" / "a.npz")]
    assert found["here"]["licence"] == "CC0-1.0"
    assert found["here"]["home"] == "https://example.org/here"
    assert found["away"]["missing"].startswith("the data file Away/a.npz is absent; a run would download it from http://127.0.0.1")
    assert found["homeless"]["missing"] == f"the data file Homeless/a.npz is absent; put it below {shelf.folder}"
    _, out, _ = shelf.run("list")
    assert out.splitlines()[0].split() == ["NAME", "STATE", "SIZE", "LICENCE", "SOURCE", "MISSING"]
    assert f"1 data sets are here ({len(CONTENT)} B), 2 are missing. Searched: {shelf.folder}" in out


def test_a_data_set_is_taken_from_any_of_several_folders(shelf: Shelf, tmp_path: Path) -> None:
    more = tmp_path / "more"
    (more / "Homeless").mkdir(parents=True)
    (more / "Homeless" / "a.npz").write_bytes(CONTENT)
    found = shelf.listed(CGLSUITE_DATA=f"{shelf.folder}{os.pathsep}{more}")
    assert {found["here"]["state"], found["homeless"]["state"]} == {"here"}
    assert found["homeless"]["files"] == [str(more / "Homeless" / "a.npz")]


@pytest.mark.nightly
def test_listing_imports_no_pyg(shelf: Shelf) -> None:
    code = "import sys; from cglsuite.cli.main import run; run(['data', 'list']); print('torch_geometric' in sys.modules, file=sys.stderr)"
    assert shelf.site.python("-c", code, **shelf.environment).stderr.strip() == "False"


def test_without_a_folder_the_page_says_how_to_provide_data(shelf: Shelf) -> None:
    status, out, err = shelf.run(CGLSUITE_DATA="")
    assert (status, err) == (0, "")
    assert "none (CGLSUITE_DATA is not set)" in out
    assert "Set CGLSUITE_DATA to the folder" in out
    assert str(shelf.cache / "downloads") in out
    assert "CGLSUITE_DATA is not set; only downloads in" in shelf.run("list", CGLSUITE_DATA="")[1]


def test_fetching_downloads_checks_and_is_done_once(shelf: Shelf) -> None:
    size = f"{len(CONTENT)} B"
    status, out, _ = shelf.run("fetch", "away", "here", "made")
    assert status == 0
    assert out.splitlines() == [f"away: fetched ({size})", f"here: is here ({size})", "made: needs no files"]
    assert (shelf.cache / "downloads" / "Away" / "a.npz").read_bytes() == CONTENT
    assert shelf.listed()["away"]["state"] == "here"


def test_what_cannot_be_fetched_says_what_to_put_where(shelf: Shelf) -> None:
    status, out, _ = shelf.run("fetch", "homeless", "away", CGLSUITE_OFFLINE="1")
    assert status == 1
    assert "homeless: not fetched: the data file Homeless/a.npz is absent: it has no public home to download it from" in out
    assert "away: not fetched: the data file Away/a.npz is absent: CGLSUITE_OFFLINE forbids downloads" in out
    assert f"  {shelf.folder}/Away/a.npz" in out.splitlines()


@pytest.mark.parametrize("url", ["http://127.0.0.1:9"])
def test_without_a_network_fetching_fails_with_the_address(shelf: Shelf) -> None:
    status, out, _ = shelf.run("fetch", "away")
    assert status == 1
    assert "away: not fetched: the data file Away/a.npz is absent: the download failed - http://127.0.0.1:9/a.npz: " in out


def test_a_download_with_the_wrong_checksum_is_not_kept(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "CONTENT", b"something else")
    status, out, _ = shelf.run("fetch", "away")
    assert status == 1
    assert "expected" in out
    assert not (shelf.cache / "downloads" / "Away" / "a.npz").exists()


def test_an_unknown_name_is_refused_before_anything_is_fetched(shelf: Shelf) -> None:
    status, _, err = shelf.run("fetch", "away", "hree")
    assert status == 2
    assert "here" in err
    assert not (shelf.cache / "downloads").exists()


def test_verifying_loads_what_is_here(shelf: Shelf) -> None:
    status, out, _ = shelf.run("verify")
    assert status == 0
    assert out.splitlines() == [
        "here: 1 file, 1 checksum is known and right; x [12, 7], edge_index [2, 5], y [12], 3 classes",
        "made: needs no files; x [12, 3], edge_index [2, 5], y [12], 3 classes",
        "2 data sets are missing (see `cglsuite data list`)",
    ]


def test_a_file_without_a_known_checksum_is_not_called_right(shelf: Shelf) -> None:
    (shelf.folder / "Homeless").mkdir()
    (shelf.folder / "Homeless" / "a.npz").write_bytes(CONTENT)
    status, out, _ = shelf.run("verify", "homeless")
    assert status == 0
    assert out.splitlines() == ["homeless: 1 file, no checksum is known; x [12, 7], edge_index [2, 5], y [12], 3 classes"]


def test_a_damaged_file_fails_and_the_others_are_verified(shelf: Shelf) -> None:
    (shelf.folder / "Here" / "a.npz").write_bytes(CONTENT[:-1])
    (shelf.folder / "Homeless").mkdir()
    (shelf.folder / "Homeless" / "a.npz").write_bytes(b"no archive")
    status, out, _ = shelf.run("verify")
    assert status == 1
    assert f"here: FAILED: {shelf.folder}/Here/a.npz has the wrong checksum" in out
    assert "homeless: FAILED: " in out
    assert "made: needs no files; x [12, 3]" in out


def test_a_data_set_that_was_named_and_is_missing_fails(shelf: Shelf) -> None:
    status, out, _ = shelf.run("verify", "away")
    assert status == 1
    assert out.startswith("away: missing: the data file Away/a.npz is absent")


def test_statistics_of_data_without_presets(shelf: Shelf) -> None:
    """Every printed number is listed; nothing is downloaded; causes that the papers' own numbers decide on are checked all the same."""
    status, out, err = shelf.run("statistics", "--dataset", "ogbn-arxiv", "--json")
    rows = json.loads(out)
    assert (status, err) == (0, "")
    assert {row["paper"] for row in rows} == {"BeGin", "CGLB", "DRIFT"}
    nodes = next(row for row in rows if (row["paper"], row["setting"], row["quantity"]) == ("BeGin", "task-IL", "nodes"))
    assert (nodes["published"], nodes["ours"], nodes["equal"]) == (19793, None, None)
    assert (nodes["cause"], nodes["check"]) == ("repeats the row of CoraFull", "holds")
    assert nodes["reason"] == "no plugin provides a preset of BeGin for ogbn-arxiv in task-IL"
    status, out, _ = shelf.run("statistics", "--dataset", "ogbn-arxiv", "--paper", "drift")
    lines = out.splitlines()
    assert status == 0
    assert lines[0].split() == ["PAPER", "DATA", "SET", "SETTING", "STATISTIC", "PUBLISHED", "OURS", "EQUAL", "CHECK", "CAUSE"]
    assert lines[1].split() == ["DRIFT", "Arxiv-CL", "task-free", "nodes", "169,343", *"----"]
    assert "7 published numbers: 7 not counted." in out
    assert "no plugin provides a preset of DRIFT for Arxiv-CL in task-free" in " ".join(out.split())
    status, _, err = shelf.run("statistics", "--dataset", "ogbn-arxi")
    assert (status, "Did you mean 'ogbn-arxiv'" in err) == (2, True)
    assert not (shelf.cache / "downloads").exists()


def test_a_cause_that_does_not_hold_is_an_error(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 1: the rule gives another number than the printed one."""
    monkeypatch.setitem(published.RULES, "row", lambda *_: 1.0)  # type: ignore[index]
    status, out, _ = shelf.run("statistics", "--dataset", "ogbn-arxiv", "--paper", "BeGin")
    assert status == 1
    assert "fails  repeats the row of CoraFull" in out
