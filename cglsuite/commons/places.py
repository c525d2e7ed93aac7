"""Where results are published: folders of this machine, buckets (s3) and web servers (http, read only), the latter two through fsspec."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cglsuite.base.errors import StoreError, UsageError
from cglsuite.base.inputs import check_path, quoted
from cglsuite.cells.storage.packed import MOST_BYTES, LocalFolder

_Result = TypeVar("_Result")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://", re.ASCII)
_READ_ONLY = ("http", "https")
_REMOTE = ("s3", *_READ_ONLY)
STALLED_S = 60.0
"""The longest time in which a web server may send nothing."""
_SLOWEST = 1000
"""The least average speed of a transfer, in bytes per second."""
_CHUNK = 2**16
_CODINGS = ("identity", "gzip", "x-gzip", "deflate")
_ANY_HEADER = 47  # of gzip or zlib


def shown_url(url: str) -> str:
    """``url`` without user name and password."""
    return re.sub(r"://[^/@]*@", "://", url)


def open_place(url: str, *, writing: bool) -> LocalFolder | RemoteFolder:
    """The folder at ``url``: a path, or ``file://``, ``s3://``, ``http://`` or ``https://``.

    Raises:
        UsageError: another scheme; http to write to; the distribution that reads it is not installed.
    """
    match = _SCHEME.match(url)
    scheme = match[1].lower() if match else "file"
    shown = quoted(shown_url(url), 200)
    if scheme == "file":
        try:
            path = check_path(url[len(match[0]) :] if match else url).expanduser().absolute()
        except ValueError as error:
            raise UsageError(f"{shown}: {error}") from error
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file; name a folder")
        return LocalFolder(path)
    if scheme not in _REMOTE or not _host(url):
        raise UsageError(f"{shown}: expected a folder, s3://BUCKET/FOLDER, or (to pull from) http:// or https://")
    if writing and scheme in _READ_ONLY:
        raise UsageError(f"{shown}: a web server is only read; publish to a folder or to s3://, and let the server offer that")
    return RemoteFolder(url.rstrip("/"), scheme, anonymous=not writing)


def _host(url: str) -> str:
    """The server or bucket in an address; empty for invalid addresses such as ``http://[::1``."""
    try:
        parts = urlsplit(url)
        return parts.netloc if parts.port is None or parts.port else ""
    except ValueError:
        return ""


class RemoteFolder:
    """A folder that fsspec reaches (see :class:`cglsuite.cells.storage.shards.Folder`).

    Args:
        anonymous: read a public bucket if this machine has no credentials.
    """

    def __init__(self, url: str, scheme: str, *, anonymous: bool) -> None:
        import fsspec

        self.shown = shown_url(url)
        self.lists = scheme not in _READ_ONLY
        options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
        try:
            if not self.lists:
                options["client_kwargs"] = _client()
            if scheme == "s3" and anonymous and not _has_credentials():
                options["anon"] = True
            self._files, self._root = fsspec.core.url_to_fs(url, **options)
        except ImportError as error:
            extra = "cglsuite[s3]" if scheme == "s3" else "fsspec[http]"
            raise UsageError(
                f"{self.shown}: a library that reads it is not installed: python -m pip install '{extra}' ({error})"
            ) from error

    def __str__(self) -> str:
        return self.shown

    def _done(self, what: str, name: str, call: Callable[[], _Result]) -> _Result:
        """Run ``call``; failures become errors that name the file, except for FileNotFoundError."""
        try:
            return call()
        except (FileNotFoundError, FileExistsError, StoreError):
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {shown_url(str(error)):.200}" if str(error) else type(error).__name__
            raise StoreError(f"{self.shown}/{name} cannot be {what}: {message}; what is there is kept: try again later") from error

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def size(self, name: str) -> int | None:
        """The number of bytes of a file; None without one, or if the server does not say."""
        try:
            info = self._done("looked up", name, lambda: self._files.info(self._path(name)))
        except FileNotFoundError:
            return None
        size = info.get("size")
        return size if isinstance(size, int) else None

    def read(self, name: str, *, most: int = MOST_BYTES) -> bytes:
        """The content of a file of at most ``most`` bytes."""
        size = self.size(name)
        if size is not None and size > most:
            raise StoreError(f"{self.shown}/{name} has {size:,} bytes; expected at most {most:,}")
        if not self.lists:
            return self._done("read", name, lambda: self._body(name, most))
        # A bucket is asked for as much as it has declared, and no more.
        part = {"start": 0, "end": size} if size else {}
        content: bytes = self._done("read", name, lambda: self._files.cat_file(self._path(name), **part))
        if len(content) > most:
            raise StoreError(f"{self.shown}/{name} is larger than {most:,} bytes; expected no more")
        return content

    def range(self, name: str, start: int, length: int) -> bytes:
        """A part of a file."""
        if not self.lists:
            return self._done("read", name, lambda: self._body(name, length, {"Range": f"bytes={start}-{start + length - 1}"}))
        content: bytes = self._done("read", name, lambda: self._files.cat_file(self._path(name), start=start, end=start + length))
        return content

    def _body(self, name: str, most: int, headers: Mapping[str, str] | None = None) -> bytes:
        """The answer of a web server, read in decompressed pieces up to ``most`` bytes."""
        from fsspec.asyn import sync

        async def body() -> bytes:
            session, url = await self._files.set_session(), self._path(name)
            async with session.get(self._files.encode_url(url), headers=headers, **self._files.kwargs) as answer:
                self._files._raise_not_found_for_status(answer, url)
                coding = answer.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
                if coding not in _CODINGS:
                    raise StoreError(f"{self.shown}/{name} is sent as {quoted(coding)}; expected it as it is, or as gzip")
                inflate = None if coding == "identity" else zlib.decompressobj(_ANY_HEADER)
                content, came, began = bytearray(), 0, time.monotonic()
                async for chunk in answer.content.iter_chunked(_CHUNK):
                    came += len(chunk)
                    content += chunk if inflate is None else inflate.decompress(chunk, most + 1 - len(content))
                    if max(came, len(content)) > most + (_CHUNK if inflate else 0) or len(content) > most:
                        raise StoreError(f"{self.shown}/{name} is larger than {most:,} bytes; expected no more")
                    if (waited := time.monotonic() - began) > STALLED_S + came / _SLOWEST:
                        raise StoreError(f"{self.shown}/{name} has sent {came:,} bytes in {waited:.0f} s: it is given up")
                return bytes(content)

        try:
            content: bytes = sync(self._files.loop, body)
        except TimeoutError as error:
            raise StoreError(f"{self.shown}/{name} cannot be read: the server has sent nothing for {STALLED_S:g} s") from error
        return content

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder."""
        try:
            names = self._done("listed", folder, lambda: self._files.ls(self._path(folder), detail=False))
        except FileNotFoundError:
            return []
        return [path.rstrip("/").rpartition("/")[2] for path in names]

    def write(self, name: str, data: bytes) -> None:
        """Put ``data`` there; objects of a bucket appear whole."""
        self._put(name, data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless there is one. A server without conditional writes may overwrite a file that appears meanwhile."""
        if self.size(name) is not None:
            return False
        try:
            self._put(name, data, mode="create")
        except FileExistsError:
            return False
        return True

    def _put(self, name: str, data: bytes, **how: str) -> None:
        try:
            self._done("written", name, lambda: self._files.pipe_file(self._path(name), data, **how))
        except FileNotFoundError as error:
            raise StoreError(f"{self.shown}/{name} cannot be written: {error}: create the bucket first") from error


def _client() -> dict[str, Any]:
    """The client for web servers: it decompresses nothing by itself and gives up on a silent server."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=STALLED_S, sock_read=STALLED_S)
    return {"auto_decompress": False, "headers": {"Accept-Encoding": "identity"}, "timeout": timeout}


def _has_credentials() -> bool:
    """Whether there are credentials for buckets, by the rules of AWS."""
    from botocore.session import get_session

    return get_session().get_credentials() is not None
