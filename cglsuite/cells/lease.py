"""Leases: a file per cell that keeps two runners off it, and that anybody may take over once its holder is gone.

A lease is created with ``O_EXCL`` and names its holder (host, process, when it was taken, when it expires). A thread renews it four times
per lifetime *through the open file*, so that a holder that slept too long never writes into a successor's lease. Taking over a stale lease
looks and acts under one file lock, so that of many contenders exactly one wins.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import TracebackType

from cglsuite.cells.atomic import store_error

__all__ = ["LIFETIME_S", "Holder", "Lease", "discard_if_stale", "read_holder"]

LIFETIME_S = 60.0
_SIZE = 512  # one fixed size: renewing is a single write that neither grows nor shrinks the file
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who holds a lease. ``machine`` tells containers of one host apart, ``process_start`` a process from a later one with its number."""

    host: str
    machine: str
    pid: int
    process_start: str
    token: str
    started: float
    expires: float

    def to_bytes(self) -> bytes:
        """The file's content."""
        return json.dumps(asdict(self), sort_keys=True).encode().ljust(_SIZE - 1) + b"\n"

    @property
    def live(self) -> bool:
        """Whether the holder may still be at work: not expired, and not known to be dead (which only its own machine can know)."""
        if time.time() >= self.expires:
            return False
        return self.machine != _machine() or _process_start(self.pid) == self.process_start


def read_holder(path: Path) -> Holder | None:
    """The live holder of the lease at ``path``, or None when it is free or stale."""
    try:
        with path.open("rb") as file:
            content, touched = file.read(), os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    try:
        holder = Holder(**json.loads(content))
    except (ValueError, TypeError):
        # Being written this moment, or left half-written by a full disk: it counts for one lifetime.
        holder = Holder(host="?", machine="?", pid=0, process_start="", token="", started=touched, expires=touched + LIFETIME_S)
    return holder if holder.live else None


def discard_if_stale(path: Path) -> None:
    """Remove the lease at ``path`` if its holder is gone (tidiness only: a stale lease holds nobody up)."""
    if path.exists():
        with contextlib.suppress(OSError), _guard(path.parent):
            if read_holder(path) is None:
                path.unlink(missing_ok=True)


class Lease:
    """A lease that this process holds until :meth:`release` (or the end of its ``with`` block)."""

    def __init__(self, path: Path, holder: Holder, descriptor: int, lifetime_s: float) -> None:
        self.path, self.holder = path, holder
        self._descriptor, self._lifetime_s = descriptor, lifetime_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease-{path.stem[:8]}", daemon=True)
        self._thread.start()

    @classmethod
    def acquire(cls, path: Path, lifetime_s: float = LIFETIME_S) -> Lease | None:
        """The lease at ``path``, or None while another live runner holds it.

        Raises:
            StoreError: the disk is full or the folder cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _guard(path.parent):
                if read_holder(path) is not None:
                    return None
                path.unlink(missing_ok=True)
                holder = _self_as_holder(lifetime_s)
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
                try:
                    os.pwrite(descriptor, holder.to_bytes(), 0)
                except BaseException:
                    os.close(descriptor)
                    path.unlink(missing_ok=True)
                    raise
        except FileExistsError:
            return None  # only where the file system has no locks: somebody was quicker
        except OSError as error:
            raise store_error(error, path) from error
        return cls(path, holder, descriptor, lifetime_s)

    def _renew(self) -> None:
        while not self._stop.wait(self._lifetime_s / 4):
            renewed = Holder(**(asdict(self.holder) | {"expires": time.time() + self._lifetime_s}))
            try:
                os.pwrite(self._descriptor, renewed.to_bytes(), 0)
            except OSError as error:
                logger.warning("cannot renew the lease %s: %s", self.path, error)

    def release(self) -> None:
        """Give the lease back; a lease that another has taken over meanwhile is left alone. Releasing twice does nothing."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join()
        with contextlib.suppress(OSError), _guard(self.path.parent):
            if os.path.samestat(os.fstat(self._descriptor), self.path.stat()):
                self.path.unlink()
        os.close(self._descriptor)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


@contextlib.contextmanager
def _guard(folder: Path) -> Iterator[None]:
    """One short exclusive lock per folder of leases; the kernel frees it when its holder dies. Where there is none, ``O_EXCL`` must do."""
    import fcntl

    descriptor = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            logger.debug("no file locks in %s: %s", folder, error)
        yield
    finally:
        os.close(descriptor)


def _self_as_holder(lifetime_s: float) -> Holder:
    now, pid = time.time(), os.getpid()
    return Holder(
        host=socket.gethostname()[:64],
        machine=_machine(),
        pid=pid,
        process_start=_process_start(pid),
        token=secrets.token_hex(8),
        started=now,
        expires=now + lifetime_s,
    )


@cache
def _machine() -> str:
    """What must be equal for a process number to mean the same process: host, boot and process namespace."""
    parts = [socket.gethostname()[:64]]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _process_start(pid: int) -> str:
    """When process ``pid`` began, in the kernel's ticks; ``"alive"`` where that is not told; ``""`` when it is dead or a zombie."""
    try:
        # The name in parentheses may hold anything; what follows the last one is state, parent, ..., and the start as 20th field.
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    except (OSError, ValueError, IndexError):
        if Path("/proc/self/stat").exists():
            return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass
    return "alive"
