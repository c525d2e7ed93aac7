"""Files that are written whole or not at all: what is there afterwards, and what is said of it."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cglsuite.base.atomic import new_file, write_atomic
from cglsuite.base.errors import StoreError


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_as_a_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a" / "b.json"
    assert write_atomic(path, b"one", durable=durable)
    assert write_atomic(path, b"two", durable=durable, permit=lambda: True)
    assert path.read_bytes() == b"two"
    assert [one.name for one in path.parent.iterdir()] == ["b.json"]


def test_without_permission_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """One that is not there is written; either way nothing else is left in the folder, and the answer says which it was."""
    path = tmp_path / "b.json"
    assert write_atomic(path, b"one", permit=lambda: False) is True
    assert write_atomic(path, b"two", permit=lambda: False) is False
    assert path.read_bytes() == b"one"
    assert [one.name for one in tmp_path.iterdir()] == ["b.json"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(tmp_path: Path, there: bool) -> None:
    """The file that it leads to is replaced as a whole, or made; through two links, one of them relative."""
    target, link, further = tmp_path / "far" / "data.csv", tmp_path / "link", tmp_path / "further"
    target.parent.mkdir()
    if there:
        target.write_text("old")
    link.symlink_to(Path("far") / "data.csv")
    further.symlink_to(link)
    assert write_atomic(further, b"new")
    assert further.is_symlink()
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["data.csv", "far", "further", "link"]


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(StoreError, match="Too many levels of symbolic links"):
        write_atomic(loop, b"new")
    assert loop.is_symlink()


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    """At once and as a whole, and what fails while it is made is not written."""
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with contextlib.suppress(InterruptedError), new_file(pipe) as file:
        file.write(b"part")
        raise InterruptedError
    assert os.read(reader, 100) == b""
    os.set_blocking(reader, True)
    holding = os.open(pipe, os.O_WRONLY)
    listening = threading.Thread(target=lambda: read.append(b"".join(iter(lambda: os.read(reader, 2**16), b""))))
    listening.start()
    assert write_atomic(pipe, b"x" * 2**20)
    os.close(holding)
    listening.join(30)
    os.close(reader)
    assert read == [b"x" * 2**20]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


def test_a_pipe_that_nobody_reads_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="it is a pipe without a reader: start the reading process first"):
        write_atomic(tmp_path / "pipe", b"new")
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)


def _device(path: Path, kind: int, numbers: tuple[int, int]) -> Path:
    """A device made for the test: no device of the machine is touched, whatever the code does."""
    try:
        os.mknod(path, kind | 0o600, os.makedev(*numbers))
        os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        pytest.skip(f"no devices can be made here: {error}")
    return path


def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    """One that takes everything, and one that is full, by name and by a link."""
    null, full = _device(tmp_path / "null", stat.S_IFCHR, (1, 3)), _device(tmp_path / "full", stat.S_IFCHR, (1, 7))
    (tmp_path / "link").symlink_to("null")
    assert write_atomic(null, b"new")
    assert write_atomic(tmp_path / "link", b"new")
    with pytest.raises(StoreError, match="No space left on device"):
        write_atomic(full, b"new")
    assert stat.S_ISCHR(null.lstat().st_mode)
    assert stat.S_ISCHR(full.lstat().st_mode)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["full", "link", "null"]


def test_a_socket_is_refused(tmp_path: Path) -> None:
    os.mknod(tmp_path / "socket", stat.S_IFSOCK | 0o600)
    with pytest.raises(StoreError, match="it is neither a file nor a pipe"):
        write_atomic(tmp_path / "socket", b"new")
    assert stat.S_ISSOCK((tmp_path / "socket").lstat().st_mode)


@pytest.mark.parametrize("target", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("to_file", [True, False])
def test_an_open_file_is_written_where_it_is(tmp_path: Path, target: str, to_file: bool) -> None:
    """After what the process has written so far; a file that the shell has opened is not replaced. By a link, all that can be lost."""
    (tmp_path / "link").symlink_to(target)
    code = (
        "import os; from pathlib import Path; from cglsuite.base.atomic import write_atomic\n"
        "os.write(1, b'before '); write_atomic(Path('link'), b'content'); os.write(1, b' after')"
    )
    with (tmp_path / "out").open("wb") as out:
        stdout = out if to_file else subprocess.PIPE
        ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, check=False)
    assert ended.stderr == b""
    assert ((tmp_path / "out").read_bytes() if to_file else ended.stdout) == b"before content after"
    assert (tmp_path / "link").is_symlink()
