"""With CGLSUITE_OFFLINE=1 no loader opens a socket, and a file in CGLSUITE_DATA comes before a download."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import Any

import pytest
import torch_geometric.datasets

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import CglsuiteError, DataAbsentError, DataError, UsageError
from cglsuite.host import load_catalogue
from cglsuite.study.data import load_from_library


@pytest.fixture
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was done to reach a host: sockets made, names looked up. There are no data but an empty folder, and no cache."""
    done: list[Any] = []

    class Recorded(socket.socket):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            if arguments[:1] != (socket.AF_UNIX,):  # a pair within this machine
                done.append(arguments)
            super().__init__(*arguments, **named)

    def looked_up(*arguments: Any, **named: Any) -> Any:
        done.append(arguments)
        raise OSError("no network")

    (tmp_path / "data").mkdir()
    monkeypatch.setattr(socket, "socket", Recorded)
    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    monkeypatch.setenv("CGLSUITE_OFFLINE", "1")
    monkeypatch.setenv("CGLSUITE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CGLSUITE_CACHE", str(tmp_path / "cache"))
    return done


def test_online_a_download_is_seen(sockets: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    monkeypatch.setenv("CGLSUITE_OFFLINE", "0")
    with pytest.raises(DataAbsentError, match="the download failed"):
        DataRoot.from_environment().file("Set/a.csv", urls=["http://example.org/a.csv"])
    with pytest.raises(DataError, match="could not load it"):
        load_from_library("pyg:Planetoid/Cora")
    assert len(sockets) >= 2


@pytest.mark.plugins
def test_no_built_in_data_set_opens_a_socket(sockets: list[Any]) -> None:
    catalogue, absent = load_catalogue(), dict[str, str]()
    for name in catalogue.names("dataset"):
        try:
            catalogue.resolve(catalogue.get("dataset", name))(DataRoot.from_environment())
        except CglsuiteError as error:
            absent[name] = str(error)
    assert sockets == []
    reasons = ("absent: CGLSUITE_OFFLINE forbids downloads", "absent: it has no public home", "is not installed")
    assert [said for said in absent.values() if not any(reason in said for reason in reasons)] == []
    assert {"cora", "ogbn-arxiv", "bitcoin-otc"} <= absent.keys()
    assert "synthetic-csbm" not in absent


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # of PyG, about its own files
def test_no_data_set_of_a_library_opens_a_socket(sockets: list[Any]) -> None:
    """Every class of PyG, with a name and without, and OGB's data sets."""
    forbidden = set()
    for reference in [*(f"pyg:{name}{rest}" for name in torch_geometric.datasets.__all__ for rest in ("", "/Cora")), "ogb:ogbn-arxiv"]:
        try:
            load_from_library(reference)
        except (DataError, UsageError) as error:
            forbidden |= {reference} if f"{reference}: CGLSUITE_OFFLINE forbids the download" in str(error) else set()
    assert sockets == []
    assert {"pyg:Planetoid/Cora", "pyg:Reddit", "pyg:PPI", "ogb:ogbn-arxiv"} <= forbidden


def test_a_file_of_the_data_folder_comes_first(sockets: list[Any], tmp_path: Path) -> None:
    """Before an earlier download, and before a download."""
    for folder, content in (("cache/downloads", b"downloaded"), ("data", b"mine")):
        (tmp_path / folder / "Set").mkdir(parents=True)
        (tmp_path / folder / "Set" / "a.csv").write_bytes(content)
    assert DataRoot.from_environment().read("Set/a.csv", urls=["http://example.org/a.csv"]).content == b"mine"
    assert sockets == []


@pytest.mark.nightly
@pytest.mark.plugins
@pytest.mark.realdata
def test_data_sets_that_are_here_are_read_without_a_socket(sockets: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    catalogue, done = load_catalogue(), set()
    monkeypatch.setenv("CGLSUITE_OFFLINE", "1")
    monkeypatch.setattr(socket, "socket", None)  # nothing that opens one works
    for name in ("cora", "citeseer", "bitcoin-otc"):
        with contextlib.suppress(DataAbsentError):
            done.add(catalogue.resolve(catalogue.get("dataset", name))(DataRoot.from_environment()).name)
    assert done
