"""Raw files, checked downloads and the cache of derived arrays; the downloads come from a server on this machine."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cglsuite.base.atomic import TEMPORARY_SUFFIX
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, UsageError

CONTENT = b"0,1\n1,2\n" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server:
    """Serves ``files`` by path; counts requests; ``truncate`` cuts an answer short of its announced length."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.truncate = False
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                time.sleep(0.05)  # long enough for a second downloader to arrive
                body = outer.files.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if outer.truncate else body)

            def log_message(self, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}{path}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    made.files["/edges.csv"] = CONTENT
    yield made
    made.close()


@pytest.fixture
def root(tmp_path: Path) -> DataRoot:
    (tmp_path / "data").mkdir()
    return DataRoot(tmp_path / "data", tmp_path / "cache")


def put(root: DataRoot, relative: str, content: bytes) -> Path:
    assert root.root is not None
    path = root.root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p.relative_to(folder)): (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*")}


def leftovers(root: DataRoot) -> list[Path]:
    return list(root.cache.rglob(f".*{TEMPORARY_SUFFIX}"))


# Files that are present


def test_present_file_is_used_in_place(root: DataRoot) -> None:
    path = put(root, "Set/raw/edges.csv", CONTENT)
    before = listing(path.parents[2])
    assert root.file("Set/raw/edges.csv", sha256=SHA256, urls=["http://unused.invalid"]) == path
    assert listing(path.parents[2]) == before


def test_wrong_checksum_of_a_present_file_names_found_and_expected(root: DataRoot) -> None:
    path = put(root, "Set/raw/edges.csv", CONTENT[:-100])
    found = hashlib.sha256(CONTENT[:-100]).hexdigest()
    with pytest.raises(DataError) as error:
        root.file("Set/raw/edges.csv", sha256=SHA256, urls=["http://unused.invalid"])
    message = str(error.value)
    assert str(path) in message
    assert f"found sha256 {found} (7,900 bytes), expected {SHA256}" in message
    assert "truncated" in message


def test_a_folder_in_the_place_of_a_file_is_an_error(root: DataRoot) -> None:
    assert root.root is not None
    (root.root / "edges.csv").mkdir()
    with pytest.raises(DataError, match="is not a file"):
        root.file("edges.csv")


def test_checksum_is_computed_once_per_path_size_and_time(root: DataRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(root, "edges.csv", CONTENT)
    monkeypatch.setattr("cglsuite.base.datafiles._SETTLED_NS", -1)  # as if the file were old
    calls = []
    original = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: (calls.append(a), original(*a))[1])
    for _ in range(3):
        root.file("edges.csv", sha256=SHA256)
    DataRoot(root.root, root.cache).file("edges.csv", sha256=SHA256)
    assert len(calls) == 1
    os.utime(path, ns=(1, 1))
    root.file("edges.csv", sha256=SHA256)
    assert len(calls) == 2
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(DataError, match="wrong checksum"):
        root.file("edges.csv", sha256=SHA256)


def test_a_file_replaced_under_its_size_and_time_of_modification_is_hashed_again(root: DataRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(root, "edges.csv", CONTENT)
    for settled in (2_000_000_000, -1):  # just written, and as if it were old
        monkeypatch.setattr("cglsuite.base.datafiles._SETTLED_NS", settled)
        first, times = root.sha256(path), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
        path.write_bytes(path.read_bytes()[::-1])
        os.utime(path, ns=times)
        assert root.sha256(path) != first


def test_a_damaged_checksum_note_is_computed_again(root: DataRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cglsuite.base.datafiles._SETTLED_NS", -1)
    path = put(root, "edges.csv", CONTENT)
    root.sha256(path)
    (note,) = (root.cache / "checksums").iterdir()
    for content in (b"", b"[]", b'{"sha256": "0"}', b"\xff"):
        note.write_bytes(content)
        assert root.sha256(path) == SHA256


def test_verify_false_accepts_any_content(tmp_path: Path) -> None:
    lenient = DataRoot(tmp_path / "data", tmp_path / "cache", verify=False)
    path = put(lenient, "edges.csv", b"tiny")
    assert lenient.file("edges.csv", sha256=SHA256) == path


@pytest.mark.parametrize("relative", ["../edges.csv", "/etc/passwd", "a/../../b", "a\\b", ""])
def test_paths_out_of_the_data_root_are_refused(root: DataRoot, relative: str) -> None:
    with pytest.raises(UsageError, match="below the data folder"):
        root.file(relative)


# Downloads


def test_absent_file_is_downloaded_once_and_kept(root: DataRoot, server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    path = root.file("Set/edges.csv", sha256=SHA256, urls=[server.url("/edges.csv")])
    assert path.read_bytes() == CONTENT
    assert path == root.cache / "downloads/Set/edges.csv"
    assert root.file("Set/edges.csv", sha256=SHA256, urls=[server.url("/edges.csv")]) == path
    assert DataRoot(root.root, root.cache, offline=True).file("Set/edges.csv", sha256=SHA256, urls=["http://unused.invalid"]) == path
    assert server.requests == ["/edges.csv"]
    assert listing(root.root or Path()) == {}
    assert not leftovers(root)
    assert capfd.readouterr().out == ""


def test_a_file_under_the_data_root_wins_over_a_download(root: DataRoot, server: Server) -> None:
    root.file("edges.csv", sha256=SHA256, urls=[server.url("/edges.csv")])
    path = put(root, "edges.csv", CONTENT)
    assert root.file("edges.csv", sha256=SHA256) == path


def test_second_address_is_tried_after_the_first_fails(root: DataRoot, server: Server) -> None:
    urls = [server.url("/gone.csv"), "not an address", server.url("/edges.csv")]
    assert root.file("edges.csv", sha256=SHA256, urls=urls).read_bytes() == CONTENT


def test_download_with_the_wrong_checksum_is_not_kept(root: DataRoot, server: Server) -> None:
    server.files["/edges.csv"] = b"something else"
    with pytest.raises(DataError) as error:
        root.file("edges.csv", sha256=SHA256, urls=[server.url("/edges.csv")])
    assert hashlib.sha256(b"something else").hexdigest() in str(error.value)
    assert f"expected {SHA256}" in str(error.value)
    assert root.find("edges.csv") is None
    assert not leftovers(root)


def test_truncated_download_is_an_error(root: DataRoot, server: Server) -> None:
    server.truncate = True
    with pytest.raises(DataError, match="the connection ended after 4,000 of 8,000 bytes"):
        root.file("edges.csv", urls=[server.url("/edges.csv")])
    assert root.find("edges.csv") is None
    assert not leftovers(root)


def test_failed_download_says_what_to_put_where(root: DataRoot, server: Server) -> None:
    with pytest.raises(DataError) as error:
        root.file("Set/raw/gone.csv", sha256=SHA256, urls=[server.url("/gone.csv")])
    assert str(error.value).splitlines() == [
        f"the data file Set/raw/gone.csv is absent: the download failed - {server.url('/gone.csv')}: HTTP Error 404: Not Found. "
        "To provide it by hand, put",
        f"  {root.root}/Set/raw/gone.csv",
        f"with sha256 {SHA256}",
        f"from {server.url('/gone.csv')}",
    ]


def test_offline_says_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        DataRoot(None, tmp_path, offline=True).file("Set/raw/a.csv", urls=["https://example.org/a.csv"], note="Unpack it first.")
    assert str(error.value).splitlines() == [
        "the data file Set/raw/a.csv is absent: CGLSUITE_OFFLINE forbids downloads. To provide it by hand, put",
        "  $CGLSUITE_DATA/Set/raw/a.csv",
        "(no checksum is known)",
        "from https://example.org/a.csv",
        "Unpack it first.",
        "and set CGLSUITE_DATA to the folder that you choose",
    ]


def test_a_file_without_a_public_home_says_so(root: DataRoot) -> None:
    with pytest.raises(DataError, match=r"has no public home.*(?s:.)*Made from other files\."):
        root.file("own.npz", note="Made from other files.")


def test_first_download_without_a_known_checksum_is_recorded(root: DataRoot, server: Server) -> None:
    url = server.url("/edges.csv")
    path = root.file("edges.csv", urls=[url])
    assert (path.parent / "edges.csv.sha256").read_text() == f"{SHA256}  edges.csv\n"
    # A damaged copy is fetched again, and must be what came first.
    path.write_bytes(CONTENT[:10])
    assert root.find("edges.csv") is None
    assert root.file("edges.csv", urls=[url]).read_bytes() == CONTENT
    path.write_bytes(CONTENT[:10])
    server.files["/edges.csv"] = b"another version"
    with pytest.raises(DataError, match=f"expected {SHA256} as in the first download .remove .*edges.csv.sha256 to accept another"):
        root.file("edges.csv", urls=[url])


def test_concurrent_users_download_once(root: DataRoot, server: Server) -> None:
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: root.file("edges.csv", sha256=SHA256, urls=[server.url("/edges.csv")]), range(4)))
    assert len(set(paths)) == 1
    assert server.requests == ["/edges.csv"]


def test_interrupted_download_leaves_nothing(root: DataRoot, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        root.file("edges.csv", sha256=SHA256, urls=[server.url("/edges.csv")])
    assert not leftovers(root)
    assert root.find("edges.csv") is None


# Archives


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return stream.getvalue()


def test_only_named_members_of_an_archive_are_unpacked(root: DataRoot, server: Server, tmp_path: Path) -> None:
    server.files["/set.zip"] = archive({"set/a.csv": b"a", "set/b.csv": b"b", "set/c.csv": b"c", "../../evil.txt": b"evil"})
    put(root, "Set/b.csv", b"own")
    found = root.unpacked({"Set/a.csv": "set/a.csv", "Set/b.csv": "set/b.csv"}, urls=[server.url("/set.zip")])
    assert {name: path.read_bytes() for name, path in found.items()} == {"Set/a.csv": b"a", "Set/b.csv": b"own"}
    assert {p.name for p in (root.cache / "downloads").rglob("*") if p.is_file()} == {"a.csv", "a.csv.sha256", "set.zip.sha256"}
    assert not list(tmp_path.rglob("evil*"))
    assert root.unpacked({"Set/a.csv": "set/a.csv"}, urls=[]) == {"Set/a.csv": found["Set/a.csv"]}
    assert server.requests == ["/set.zip"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no archive", "not a zip file"),
        (archive({"set/b.csv": b"b"}), "no item named 'set/a.csv'"),
        (archive({"set/a.csv": b"a"})[:-9], "zip"),
    ],
)
def test_unusable_archive_is_an_error_and_can_be_replaced(root: DataRoot, server: Server, content: bytes, reason: str) -> None:
    server.files["/set.zip"] = content
    with pytest.raises(DataError, match=f"set.zip could not be unpacked: .*{reason}"):
        root.unpacked({"Set/a.csv": "set/a.csv"}, urls=[server.url("/set.zip")])
    server.files["/set.zip"] = archive({"set/a.csv": b"a"})
    assert root.unpacked({"Set/a.csv": "set/a.csv"}, urls=[server.url("/set.zip")])["Set/a.csv"].read_bytes() == b"a"


def test_absent_archive_lists_every_file(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        DataRoot(tmp_path, tmp_path / "cache", offline=True).unpacked({"S/a": "a", "S/b": "b"}, urls=["https://example.org/s.zip"])
    assert str(error.value).splitlines()[:3] == [
        "2 data files are absent: CGLSUITE_OFFLINE forbids downloads. To provide them by hand, put",
        f"  {tmp_path}/S/a",
        f"  {tmp_path}/S/b",
    ]


# Derived arrays


def example() -> dict[str, Any]:
    return {"x": np.arange(600, dtype=np.float32).reshape(20, 30), "y": np.array([1, -1, 0])}


def counted(build: Callable[[], dict[str, Any]]) -> tuple[list[int], Callable[[], dict[str, Any]]]:
    calls: list[int] = []

    def wrapped() -> dict[str, Any]:
        calls.append(1)
        return build()

    return calls, wrapped


def assert_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_derived_arrays_are_built_once_per_key(root: DataRoot) -> None:
    calls, build = counted(example)
    for _ in range(3):
        assert_equal(root.derived("set", {"reader": 1, "files": {"a": "0"}}, build), example())
    assert len(calls) == 1
    root.derived("set", {"reader": 2, "files": {"a": "0"}}, build)
    assert len(calls) == 2


def test_concurrent_users_build_once(root: DataRoot) -> None:
    calls, build = counted(lambda: (time.sleep(0.1), example())[1])
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: root.derived("set", "key", build), range(4)):
            assert_equal(found, example())
    assert len(calls) == 1


def test_damaged_cache_entries_are_built_again(root: DataRoot) -> None:
    calls, build = counted(example)
    root.derived("set", "key", build)
    (entry,) = (root.cache / "derived/set").iterdir()
    whole = entry.read_bytes()
    damaged = [b"", b"PK", whole[: len(whole) // 2], whole[:-1]]
    # One flipped bit, in the headers, in the data, and everywhere in the archive's directory: each is noticed or harmless.
    places = [*range(0, len(whole), 37), *range(len(whole) - 100, len(whole))]
    damaged += [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in places]
    for n, content in enumerate(damaged):
        entry.write_bytes(content)
        assert_equal(root.derived("set", "key", build), example())
        if n < 4:
            assert len(calls) == n + 2
    assert len(calls) > len(damaged) // 2


def large() -> dict[str, Any]:
    """Two arrays that are mapped, one by columns, and small ones of other types."""
    x = np.arange(400_000, dtype=np.float32).reshape(4000, 100)
    return {
        "x": x,
        "columns": np.asfortranarray(x.astype(np.float64)),
        "y": np.arange(3),
        "split": np.array([1, -1], np.int8),
        "flag": x[:2] > 5,
    }


def test_large_arrays_are_mapped_and_aligned(root: DataRoot) -> None:
    """From the first use on. Writing into them changes neither the cache nor what others read."""
    for _ in range(2):
        found = root.derived("set", "key", large)
        assert_equal(found, large())
        for name, array in found.items():
            mapped = isinstance(array.base, np.memmap)
            assert mapped == (name in ("x", "columns"))
            assert array.ctypes.data % array.itemsize == 0
            assert type(array) is np.ndarray
            assert array.flags.writeable
        assert found["x"].ctypes.data % 64 == 0
        found["x"][:] = -1
    assert_equal(root.derived("set", "key", large), large())


def test_entries_of_numpy_are_read_too(root: DataRoot) -> None:
    """Caches of earlier versions: their arrays lie at any place, and are read where they cannot be mapped."""
    root.derived("set", "key", large)
    (entry,) = (root.cache / "derived/set").iterdir()
    for save in (np.savez, np.savez_compressed):
        with entry.open("wb") as stream:
            save(stream, **large(), __names__=np.array(sorted(large())))  # type: ignore[arg-type]
        calls, build = counted(large)
        assert_equal(root.derived("set", "key", build), large())
        assert not calls


@pytest.mark.nightly
def test_a_damaged_bit_of_a_mapped_array_is_noticed(root: DataRoot) -> None:
    calls, build = counted(large)
    root.derived("set", "key", build)
    (entry,) = (root.cache / "derived/set").iterdir()
    whole = entry.read_bytes()
    places = [*range(0, 400, 19), len(whole) // 3, len(whole) // 2, *range(len(whole) - 300, len(whole), 41)]
    for place in places:
        entry.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert_equal(root.derived("set", "key", build), large())
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        entry.write_bytes(whole[:length])
        assert_equal(root.derived("set", "key", build), large())
    assert len(calls) > len(places) // 2


_PROCESS = """
import sys, time
from pathlib import Path
import numpy as np
from cglsuite.base.datafiles import DataRoot

folder, log = Path(sys.argv[1]), Path(sys.argv[2])
def build():
    with log.open("a") as stream:
        stream.write("built\\n")
    time.sleep(1)
    return {"x": np.arange(1_000_000.0)}
while not (folder / "go").exists():
    time.sleep(0.01)
x = DataRoot(folder / "data", folder / "cache").derived("set", "key", build)["x"]
assert (x == np.arange(1_000_000.0)).all()
assert isinstance(x.base, np.memmap)
"""


@pytest.mark.nightly
def test_two_processes_at_once_build_once_and_share_the_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = [sys.executable, "-c", _PROCESS, str(tmp_path), str(log)]
    processes = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    (tmp_path / "go").touch()
    ends = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    assert log.read_text().splitlines() == ["built"]
    assert len(list((tmp_path / "cache/derived/set").iterdir())) == 1


def test_a_data_root_that_cannot_be_written_is_enough(tmp_path: Path) -> None:
    """Everything derived goes to the cache; the data root stays as it was, to the time of its last change."""
    data = tmp_path / "data"
    put(DataRoot(data, tmp_path / "cache"), "set/a.csv", CONTENT)
    for folder in (data / "set", data):
        folder.chmod(0o555)
    before = listing(data)
    try:
        root = DataRoot(data, tmp_path / "cache")
        path = root.file("set/a.csv")
        key = {"a.csv": root.sha256(path)}
        with root.stage({"raw/a.csv": path}):
            assert_equal(root.derived("set", key, large), large())
        assert_equal(root.derived("set", key, large), large())
        assert listing(data) == before
    finally:
        for folder in (data, data / "set"):
            folder.chmod(0o755)


def test_pickles_are_neither_written_nor_read(root: DataRoot) -> None:
    with pytest.raises(TypeError, match="dtype object"):
        root.derived("set", "key", lambda: {"x": np.array([{}], dtype=object)})
    root.derived("set", "key", example)
    (entry,) = (root.cache / "derived/set").iterdir()
    np.savez(entry, x=np.array([pickle], dtype=object).astype(str).astype(object))
    assert_equal(root.derived("set", "key", example), example())


def test_full_disk_costs_the_entry_and_not_the_arrays(
    root: DataRoot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with caplog.at_level(logging.WARNING):
        assert_equal(root.derived("set", "key", example), example())
    assert "No space left on device" in caplog.text
    assert not leftovers(root)


def test_cache_that_cannot_be_made_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(DataError, match="set CGLSUITE_CACHE"):
        DataRoot(None, tmp_path / "cache").derived("set", "key", example)


# Staging


def test_stage_shows_files_in_another_layout_and_leaves_no_trace(root: DataRoot) -> None:
    path = put(root, "a.csv", CONTENT)
    before = listing(path.parent)
    with root.stage({"Set/raw/b.csv": path}) as folder:
        assert (folder / "Set/raw/b.csv").read_bytes() == CONTENT
        (folder / "Set/processed").mkdir()
        (folder / "Set/processed/data.pt").write_bytes(b"written by a library")
    assert not folder.exists()
    assert listing(path.parent) == before


def test_stage_copies_where_links_are_not_to_be_had(root: DataRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*args: Any) -> None:
        raise OSError("links are not supported")

    monkeypatch.setattr(Path, "symlink_to", no_links)
    with root.stage({"b.csv": put(root, "a.csv", CONTENT)}) as folder:
        assert not (folder / "b.csv").is_symlink()
        assert (folder / "b.csv").read_bytes() == CONTENT


def test_stage_removes_what_killed_processes_left(root: DataRoot) -> None:
    old = root.cache / "staging/stage-old"
    old.mkdir(parents=True)
    (old / "data.pt").touch()
    os.utime(old, (0, 0))
    with root.stage({}) as folder:
        assert folder.exists()
    assert not old.exists()


# The environment


def test_environment_names_the_folders(tmp_path: Path) -> None:
    env = {"CGLSUITE_DATA": str(tmp_path), "CGLSUITE_CACHE": str(tmp_path / "c"), "CGLSUITE_OFFLINE": "1"}
    made = DataRoot.from_environment(env)
    assert (made.root, made.cache, made.offline, made.verify) == (tmp_path, tmp_path / "c", True, True)


def test_environment_defaults_to_the_platform_cache() -> None:
    made = DataRoot.from_environment({"CGLSUITE_DATA": "", "CGLSUITE_OFFLINE": "0"})
    assert made.root is None
    assert not made.offline
    assert made.cache.name == "cglsuite"


@pytest.mark.parametrize(
    ("platform", "given", "found"),
    [
        ("linux", "", "/home/me/.cache/cglsuite"),
        ("linux", "relative", "/home/me/.cache/cglsuite"),
        ("linux", "/caches", "/caches/cglsuite"),
        ("darwin", "", "/home/me/Library/Caches/cglsuite"),
        ("darwin", "/caches", "/caches/cglsuite"),
    ],
)
def test_the_cache_is_where_the_platform_has_caches(platform: str, given: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert DataRoot.from_environment({}).cache == Path(found)


@pytest.mark.parametrize("env", [{"CGLSUITE_DATA": "/no/such/folder"}, {"CGLSUITE_OFFLINE": "perhaps"}])
def test_environment_that_makes_no_sense_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=next(iter(env))):
        DataRoot.from_environment(env)


def folders(tmp_path: Path) -> list[Path]:
    """Two data folders: both have a.csv, with other content, only the second has Set/b.csv."""
    made = [tmp_path / "one", tmp_path / "two"]
    for folder in made:
        (folder / "Set").mkdir(parents=True)
        (folder / "a.csv").write_text(folder.name)
    (made[1] / "Set" / "b.csv").write_text("b")
    return made


def test_several_folders_are_searched_in_turn(tmp_path: Path) -> None:
    one, two = folders(tmp_path)
    for first, second in ((one, two), (two, one)):
        made = DataRoot.from_environment(
            {"CGLSUITE_DATA": f"{first}{os.pathsep}{os.pathsep}{second}", "CGLSUITE_CACHE": str(tmp_path / "c")}
        )
        assert made.folders == (first, second)
        assert made.root == first
        assert made.file("a.csv") == first / "a.csv"
        assert made.file("Set/b.csv") == two / "Set" / "b.csv"
        assert made.read("a.csv").content.decode() == first.name
        assert str(first) in repr(made)
        assert str(second) in repr(made)


def test_a_folder_may_have_the_separator_in_its_name(tmp_path: Path) -> None:
    odd = tmp_path / f"a{os.pathsep}b"
    odd.mkdir()
    assert DataRoot.from_environment({"CGLSUITE_DATA": str(odd)}).folders == (odd,)


def test_an_absent_file_names_all_folders(tmp_path: Path) -> None:
    one, two = folders(tmp_path)
    with pytest.raises(DataError) as error:
        DataRoot([one, two], tmp_path / "c", offline=True).file("gone.csv")
    assert f"  {one}/gone.csv" in str(error.value).splitlines()
    assert f"or put it below one of the other folders searched: {two}" in str(error.value).splitlines()


def test_a_wrong_checksum_in_the_first_folder_is_an_error(tmp_path: Path) -> None:
    """A file that is there counts: a damaged one is not silently replaced by that of another folder."""
    one, two = folders(tmp_path)
    with pytest.raises(DataError, match=f"{one}/a.csv has the wrong checksum"):
        DataRoot([one, two], tmp_path / "c").file("a.csv", sha256=hashlib.sha256(b"two").hexdigest())


def test_the_folder_that_is_none_is_named(tmp_path: Path) -> None:
    given = f"{tmp_path}{os.pathsep}/no/such/folder"
    with pytest.raises(UsageError, match="CGLSUITE_DATA=.*: '/no/such/folder' is not a folder.*separated by"):
        DataRoot.from_environment({"CGLSUITE_DATA": given})


def test_a_data_root_travels_to_worker_processes(root: DataRoot) -> None:
    assert repr(pickle.loads(pickle.dumps(root))) == repr(root)


def test_importing_the_module_imports_nothing_heavy() -> None:
    code = "import sys, cglsuite.base.datafiles; print(sorted({'torch', 'numpy', 'pandas', 'tqdm', 'filelock'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
