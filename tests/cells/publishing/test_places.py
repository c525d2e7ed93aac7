"""The same on a bucket of a local server, and over http: what is tested for folders is not tested again."""

from __future__ import annotations

import functools
import gzip
import http.server
import importlib
import re
import sys
import threading
import time
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stored_records import failed, filled, record, unlike

from cglsuite.base.errors import StoreError, UsageError
from cglsuite.cells.storage.store import Store
from cglsuite.cli.main import run
from cglsuite.commons import exchange
from cglsuite.commons.exchange import RemoteFolder, open_place, publish, pull

BUCKET = "results"
URL = f"s3://{BUCKET}/study"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


def contents(store: Path) -> dict[str, str]:
    return {one.key: one.to_text() for one in Store(store, quarantine=False).records()}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a local server that speaks s3. Servers of one process share their buckets: it forgets those of other tests."""
    from moto.server import ThreadedMotoServer

    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    yield f"http://{host}:{port}"
    moto.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """An empty bucket, and the client to look into it."""
    import boto3

    for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": server, "AWS_CONFIG_FILE": str(tmp_path / "no-config")}.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    yield client
    for item in client.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        client.delete_object(Bucket=BUCKET, Key=item["Key"])
    client.delete_bucket(Bucket=BUCKET)
    client.close()


def objects(client: Any) -> dict[str, str]:
    return {item["Key"]: item["ETag"] for item in client.list_objects_v2(Bucket=BUCKET).get("Contents", [])}


@pytest.mark.nightly
def test_two_stores_meet_in_a_bucket(tmp_path: Path, bucket: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Published from both, pulled into a third; only what is new is written, and nothing is written twice."""
    a, b = filled(tmp_path / "a", record(1), failed(2)), filled(tmp_path / "b", record(2), unlike(1), record(3))
    assert run(["publish", str(a.path), URL]) == 0
    before = objects(bucket)
    assert run(["publish", str(a.path), URL]) == 0
    assert objects(bucket) == before
    assert run(["publish", str(b.path), URL]) == 1
    assert "both are published" in capsys.readouterr().err
    assert before.items() <= objects(bucket).items()
    c = Store(tmp_path / "c")
    assert run(["pull", URL, "--into", str(c.path)]) == 1
    assert contents(c.path) == {one.key: one.to_text() for one in (record(1), record(2), record(3))}
    assert len(c.conflict_files()) == 1
    assert pull(URL, c).read_bytes == 0


def test_a_number_in_a_bucket_is_created_once(bucket: Any) -> None:
    """By a conditional write, so two publishers at once take different numbers."""
    one, other = (open_place(URL, writing=True) for _ in range(2))
    assert isinstance(one, RemoteFolder)
    assert one.create("manifest/numbers/00000001", b"a" * 64)
    other.size = lambda name: None  # type: ignore[method-assign] - it looked before the first one wrote
    assert not other.create("manifest/numbers/00000001", b"b" * 64)
    assert one.read("manifest/numbers/00000001") == b"a" * 64


@pytest.mark.nightly
def test_what_the_store_has_pulled_is_not_read_again(tmp_path: Path, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """To publish, the scalars of what is published are needed: from the bucket, or from the store."""
    publish(filled(tmp_path / "a", record(1)), URL)
    names: list[str] = []
    real = RemoteFolder.read

    def noting(self: RemoteFolder, name: str, **how: int) -> bytes:
        names.append(name)
        return real(self, name, **how)

    monkeypatch.setattr(RemoteFolder, "read", noting)
    publish(Store(tmp_path / "a"), URL)
    assert [name for name in names if name.endswith(".parquet")]
    b = Store(tmp_path / "b")
    pull(URL, b)
    b.put(record(2))
    names.clear()
    assert publish(b, URL).merge.new == [record(2).key]
    assert [name for name in names if name.endswith(".parquet")] == []


@pytest.mark.nightly
def test_a_truncated_object_is_named(tmp_path: Path, bucket: Any) -> None:
    publish(filled(tmp_path / "a", record(1)), URL)
    (name,) = (key for key in objects(bucket) if key.endswith(".zst"))
    whole = bucket.get_object(Bucket=BUCKET, Key=name)["Body"].read()
    bucket.put_object(Bucket=BUCKET, Key=name, Body=whole[:-3])
    (fault,) = pull(URL, Store(tmp_path / "b")).faults
    assert str(fault.path) == f"s3://{name.replace('study', f'{BUCKET}/study', 1)}"
    assert "truncated or altered" in fault.reason
    assert not publish(Store(tmp_path / "a"), URL).merge.clean
    assert pull(URL, Store(tmp_path / "b")).clean


def test_a_bucket_that_does_not_exist_and_credentials_that_are_missing(
    tmp_path: Path, bucket: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a = filled(tmp_path / "a", record(1))
    assert run(["publish", str(a.path), "s3://no-such-bucket/study"]) == 1
    assert "create the bucket first" in capsys.readouterr().err
    assert run(["pull", "s3://no-such-bucket/study", "--into", str(tmp_path / "b")]) == 1
    assert "nothing is published at s3://no-such-bucket/study" in capsys.readouterr().err
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert run(["publish", str(a.path), URL]) == 1
    assert "NoCredentialsError" in capsys.readouterr().err
    place = open_place(URL, writing=False)
    assert isinstance(place, RemoteFolder)
    assert place._files.anon, "a public bucket is read without credentials"


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    importlib.import_module("fsspec.registry")
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(UsageError, match=r"python -m pip install 'cglsuite\[s3\]'"):
        open_place(URL, writing=True)


# --- http ------------------------------------------------------------------------------------------------------------------------------


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Static files; folders are not listed."""

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def list_directory(self, path: Any) -> None:
        self.send_error(404)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The address of ``tmp_path / "p"``."""
    handler = functools.partial(Quiet, directory=str(tmp_path / "p"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()
        thread.join()


def test_a_folder_that_a_web_server_offers(tmp_path: Path, site: str) -> None:
    """Without listings: numbers lead to entries, and entries to their parents."""
    for n in (1, 2, 3):
        publish(filled(tmp_path / "a", record(n)), str(tmp_path / "p"))
    numbers = tmp_path / "p" / "manifest" / "numbers"
    (numbers / "00000001").write_text("cut off")
    (numbers / "00000002").write_text((numbers / "00000003").read_text())
    (numbers / "00000003").unlink()
    b = Store(tmp_path / "b")
    assert run(["pull", f"{site}/", "--into", str(b.path)]) == 0
    assert contents(b.path) == contents(tmp_path / "a")
    publish(filled(tmp_path / "a", record(4)), str(tmp_path / "p"))
    assert [len(pull(site, b).merge.new) for _ in range(2)] == [1, 0]


def test_a_web_server_that_does_not_answer_and_one_without_results(tmp_path: Path, site: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p").mkdir()
    assert run(["pull", f"{site}/elsewhere", "--into", str(tmp_path / "b")]) == 1
    assert "nothing is published at" in capsys.readouterr().err
    assert run(["pull", "http://someone:secret@127.0.0.1:9/x", "--into", str(tmp_path / "b")]) == 1
    told = capsys.readouterr().err
    assert "http://127.0.0.1:9/x/manifest/numbers/00000001 cannot be read" in told
    assert "secret" not in told
    assert not (tmp_path / "b").exists()


def test_a_web_server_that_has_an_answer_for_every_address(tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the start page of an application, with status 200."""
    publish(filled(tmp_path / "a", record(1)), str(tmp_path / "p"))
    page = tmp_path / "p" / "index.html"
    page.write_text("<html>welcome</html>")
    found = Quiet.translate_path
    monkeypatch.setattr(Quiet, "translate_path", lambda self, path: p if Path(p := found(self, path)).is_file() else str(page))
    assert pull(site, Store(tmp_path / "b")).clean
    assert contents(tmp_path / "b") == contents(tmp_path / "a")


def test_a_shard_that_the_web_server_has_lost(tmp_path: Path, site: str) -> None:
    publish(filled(tmp_path / "a", record(1)), str(tmp_path / "p"))
    next((tmp_path / "p" / "shards").rglob("*.zst")).unlink()
    (fault,) = pull(site, Store(tmp_path / "b")).faults
    assert "missing" in fault.reason
    with pytest.raises(StoreError, match="cannot be"):
        open_place("http://127.0.0.1:9", writing=False).read("manifest/x.json")


BOMB = gzip.compress(bytes(2**26))
"""64 MiB in 64 kB."""


class Hostile(Quiet):
    """Answers for shards in ways that cost whoever reads them memory or time; ``kind`` says how, ``sent`` counts the bytes."""

    protocol_version = "HTTP/1.1"
    kind = ""
    sent = 0

    def do_GET(self) -> None:
        if self.kind and self.path.endswith(".zst"):
            try:
                getattr(self, self.kind)(Path(self.translate_path(self.path)).read_bytes())
            except OSError:
                self.close_connection = True
        else:
            super().do_GET()

    def _begin(self, **headers: str) -> None:
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)
        type(self).sent += len(data)

    def endless(self, whole: bytes) -> None:
        """Chunks without end."""
        self._begin(Transfer_Encoding="chunked")
        for _ in range(4096):
            self._write(b"10000\r\n" + b"x" * 2**16 + b"\r\n")

    def bomb(self, whole: bytes) -> None:
        """Zeros."""
        self._begin(Content_Encoding="gzip", Content_Length=str(len(BOMB)))
        self._write(BOMB)

    def hollow(self, whole: bytes) -> None:
        """Empty blocks: compressed bytes without end, and no content."""
        self._begin(Content_Encoding="gzip", Transfer_Encoding="chunked")
        begun = zlib.compressobj(wbits=31)
        for _ in range(4096):
            block = b"".join(begun.flush(zlib.Z_FULL_FLUSH) + b"\0\0\0\xff\xff" * 2000 for _ in range(6))
            self._write(b"%x\r\n" % len(block) + block + b"\r\n")

    def stalled(self, whole: bytes) -> None:
        """Half, and then nothing."""
        self._begin(Content_Length=str(len(whole)))
        self._write(whole[: len(whole) // 2])
        self.wfile.flush()
        time.sleep(5)

    def dripping(self, whole: bytes) -> None:
        """A byte now and then."""
        self._begin(Content_Length=str(len(whole)))
        for byte in whole:
            self._write(bytes([byte]))
            time.sleep(0.1)

    def brotli(self, whole: bytes) -> None:
        """A coding that nobody asked for."""
        self._begin(Content_Encoding="br", Content_Length=str(len(whole)))
        self._write(whole)

    def zipped(self, whole: bytes) -> None:
        """As servers do that compress everything."""
        packed = gzip.compress(whole)
        self._begin(Content_Encoding="gzip", Content_Length=str(len(packed)))
        self._write(packed)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("endless", "is larger than"),
        ("bomb", "is larger than"),
        ("hollow", "is larger than"),
        ("stalled", "cannot be read: the server has sent nothing for 0.5 s"),
        ("dripping", r"was downloading too slowly \(\d+ bytes in 1 s\), so the download was stopped"),
        ("brotli", "has the content encoding 'br'; expected 'gzip' or no encoding"),
        ("zipped", None),
    ],
)
def test_what_a_server_may_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, says: str | None) -> None:
    """No more is read than the manifest says, packed or not, and no longer waited than a minute; the file is named, the rest is pulled."""
    for n in (1, 2):
        publish(filled(tmp_path / "a", record(n)), str(tmp_path / "p"))
    monkeypatch.setattr(exchange, "STALLED_S", 0.5)
    monkeypatch.setattr(exchange, "_SLOWEST", 2**20)
    monkeypatch.setattr(Hostile, "kind", kind)
    monkeypatch.setattr(Hostile, "sent", 0)
    handler = functools.partial(Hostile, directory=str(tmp_path / "p"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        web.daemon_threads = True
        threading.Thread(target=web.serve_forever, daemon=True).start()
        began = time.monotonic()
        done = pull(f"http://127.0.0.1:{web.server_port}", Store(tmp_path / "b"))
        took = time.monotonic() - began
        web.shutdown()
    assert took < 20
    assert Hostile.sent < 2**26
    assert done.clean is (says is None)
    for fault in done.faults:
        assert re.search(rf"/shards/.*\.zst {says}", fault.reason), fault.reason
    assert len(done.faults) == (0 if says is None else 2)


def test_a_bucket_is_asked_for_no_more_than_it_declared(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: the whole body came, whatever its size had been said to be."""
    bucket.put_object(Bucket=BUCKET, Key="study/large", Body=b"x" * 5000)
    bucket.put_object(Bucket=BUCKET, Key="study/empty", Body=b"")
    place = open_place(URL, writing=False)
    assert isinstance(place, RemoteFolder)
    assert place.read("empty") == b""
    assert len(place.read("large")) == 5000
    with pytest.raises(StoreError, match="has 5,000 bytes; expected at most 100"):
        place.read("large", max_bytes=100)
    info = place._files.info
    monkeypatch.setattr(place._files, "info", lambda path: {**info(path), "size": 100})
    assert len(place.read("large", max_bytes=100)) == 100
    monkeypatch.setattr(place._files, "cat_file", lambda path, start, end: b"x" * 5000)
    with pytest.raises(StoreError, match="is larger than 100 bytes"):
        place.read("large", max_bytes=100)


@pytest.mark.parametrize("address", ["http://[::1", "http://[::1]:x/", "http://a:99999/x", "https://", "http://[v1.x]:0/", "s3://[x"])
def test_what_is_no_address_is_a_wrong_request(address: str) -> None:
    """The bug: ValueError of the library."""
    with pytest.raises(UsageError, match="expected a folder, s3://BUCKET/FOLDER, or"):
        open_place(address, writing=False)
