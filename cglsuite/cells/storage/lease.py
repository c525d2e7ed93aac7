"""Leases: one file per cell, which keeps other runners from running it. Any runner may take a lease over once its holder is gone.

The file, its renewal and its expiry follow :class:`filelock.SoftFileLease`. A holder touches its file three times per lifetime. A
contender takes the file over after a lifetime without a touch *by its own monotonic clock*, so wall clocks do not matter. One
:class:`Lease` must therefore be reused across polls: a new one per poll never sees a lifetime pass.

This module adds what that class leaves to its users:

- removal of files that the class never removes: files of zombies or with different settings, empty files, a folder in the file's place,
  and any file on a file system that cannot exchange two names (NFS, SMB);
- the time and process of a lease, for display and for :meth:`Holder.dead`.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import secrets
import socket
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cglsuite.base.atomic import TEMPORARY_SUFFIX, file_mode, in_the_way, make_folder, store_error, write_atomic
from cglsuite.base.inputs import read_regular
from cglsuite.cells.job import job_name

if TYPE_CHECKING:
    from filelock import LeaseCompromise


LIFETIME_S = 60.0
LONGEST_S = 3600.0
"""The longest wait in seconds for any file, regardless of its claimed lifetime."""
GRACE_S = 5.0
"""Seconds for which a file without a holder counts as a lease, since its writer may still be writing."""
_LARGEST = 4096
_GUARD_S, _GUARD_POLL_S = 10.0, 0.02
_SAID: set[str] = set()
"""Messages already logged about other users' lock files."""
_Mark = tuple[int, int, int]
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The holder of a lease.

    Args:
        machine: distinguishes containers on one host. process: start of the process, which distinguishes it from a later one with the
            same pid. Both are empty in a half-written file.
        since, refreshed: seconds since the epoch, by the clocks of the holder and of the file system.
    """

    host: str
    machine: str
    pid: int
    process: str
    since: float
    refreshed: float
    lifetime_s: float

    @property
    def here(self) -> bool:
        """Whether the process runs or ran on this machine, in a visible process namespace."""
        return self.machine == _machine()

    @property
    def dead(self) -> bool:
        """Whether the process is known to have ended, which only the machine that it ran on can determine."""
        return self.here and _process_start(self.pid) != self.process

    @property
    def silent(self) -> bool:
        """Whether the last renewal is older than the lease's lifetime, assuming that wall clocks agree."""
        return time.time() >= self.refreshed + self.lifetime_s

    def __str__(self) -> str:
        last = f"last seen {_clock(self.refreshed)}"
        return f"process {self.pid} on {self.host} since {_clock(self.since)}, {last}"

    @property
    def wait(self) -> str:
        """A description of the holder and of how long others wait for it."""
        return f"{self}; if it is not seen again, it is taken over at {_clock(time.time() + min(self.lifetime_s, LONGEST_S))} at the latest"


def _clock(instant: float) -> str:
    form = "%H:%M:%S" if abs(time.time() - instant) < 43200 else "%Y-%m-%d %H:%M:%S"
    return time.strftime(form, time.localtime(instant))


def read_holder(path: Path) -> Holder | None:
    """Return the holder of the lease at ``path``, or ``None`` if the lease is free, does not name a holder, or belongs to a process known
    to be
    dead.
    """
    with contextlib.suppress(OSError):
        holder = _content_with_mark(path)[1]
        return None if holder is None or holder.dead else holder
    return None


class Lease:
    """A runner's lease on ``path``, held from :meth:`acquire` until :meth:`release` or the end of a ``with`` block.

    Reuse the object while waiting: only an object that watched the lease for a lifetime can tell that it was not renewed.

    Args:
        top: the folder above whose mode and group the files get (see :mod:`cglsuite.base.atomic`).
    """

    def __init__(self, path: Path, lifetime_s: float = LIFETIME_S, top: Path | None = None) -> None:
        from filelock import SoftFileLease

        self.path, self._top = path, top
        mode: dict[str, Any] = {} if (shared := _mode(top)) is None else {"mode": shared & 0o644}  # others read it and remove it as a whole
        self._soft = SoftFileLease(path, lease_duration=lifetime_s, thread_local=False, on_compromise=self._lost, **mode)
        self._seen: tuple[_Mark, float] | None = None

    def acquire(self) -> bool:
        """Try once to acquire the lease, and return whether that succeeded. False while another live runner or this object holds it.

        Raises:
            StoreError: the disk is full or the folder cannot be written.
        """
        if self.taken:
            return False
        try:
            make_folder(self.path.parent, self._top)
            return self._attempt() or (self._clear() and self._attempt())
        except OSError as error:
            raise store_error(error, self.path) from error

    def _attempt(self) -> bool:
        from filelock import LeaseSettingsMismatch, Timeout

        # Computed in advance: until these lines are in the file, a process that has been killed is displayed as its holder.
        identity = f"machine={_machine()}\nprocess={_process_start(os.getpid())}\n"
        try:
            self._soft.acquire(blocking=False)
        except (Timeout, LeaseSettingsMismatch, IsADirectoryError):
            return False
        # Readers ignore unknown names; these lines are informative only.
        with contextlib.suppress(OSError), self.path.open("ab", buffering=0) as file:
            file.write(f"since={time.time():.3f}\n{identity}".encode())
        return True

    def _clear(self) -> bool:
        """Remove the file at the path if this object has found it abandoned; return whether it is gone."""
        try:
            mark, holder = _content_with_mark(self.path)
        except FileNotFoundError:
            return True
        if holder is None or not holder.dead:
            if self._seen is None or self._seen[0] != mark:
                self._seen = mark, time.monotonic()
            patience_s = GRACE_S if holder is None else min(holder.lifetime_s, LONGEST_S)
            if time.monotonic() - self._seen[1] < patience_s:
                return False
        with _guard(self.path.parent, self._top):
            return _remove_marked(self.path, mark)

    def _lost(self, loss: LeaseCompromise) -> None:
        logger.warning("lost the lease %s (%s): another runner may do the same work; no record is overwritten", self.path, loss.reason)

    @property
    def taken(self) -> bool:
        """Whether this object has acquired the lease and not released it."""
        return self._soft.is_locked

    @property
    def held(self) -> bool:
        """Whether this object still holds the lease. After a suspension longer than its lifetime, another runner may hold it."""
        owner = self._soft.owner
        return owner is not None and owner.token is not None and owner.token == self._soft.token

    def release(self) -> None:
        """Release the lease. A lease that another runner has taken over is left alone. Releasing twice has no effect."""
        with contextlib.suppress(OSError):
            self._soft.release()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def _content_with_mark(path: Path) -> tuple[_Mark, Holder | None]:
    """Return the file's content, and a mark that identifies the file and its last touch."""
    status = os.lstat(path)
    mark = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    if not stat.S_ISREG(status.st_mode):
        return mark, None
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode(errors="replace")
    except PermissionError:  # a private file of another user: it counts as held by an unknown holder
        text = f"pid=1\nhost=unknown\nduration={LIFETIME_S}\n"
    return mark, _holder_in(text, status.st_mtime)


def _holder_in(text: str, touched: float) -> Holder | None:
    """Return the holder that a lease's content names; None if it names none."""
    facts = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    try:
        pid, lifetime_s, since = int(facts["pid"]), float(facts["duration"]), float(facts.get("since", touched))
    except (KeyError, ValueError):
        return None
    if not (text.endswith("\n") and 0 < pid < 2**31 and 0 < lifetime_s < float("inf") and 0 <= since < 2**40):
        return None
    identity = {name: facts.get(name, "") for name in ("machine", "process")}
    host = facts.get("host", "unknown").partition("?pidns-")[0]  # filelock's mark of a container
    return Holder(**identity, host=host, pid=pid, since=since, refreshed=touched, lifetime_s=lifetime_s)


def _remove_marked(path: Path, mark: _Mark) -> bool:
    """Remove the file identified by ``mark``, but no later one; return whether it is gone."""
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    try:
        if _content_with_mark(path)[0] != mark:
            return False
        os.rename(path, aside)
    except FileNotFoundError:
        return True
    status = os.lstat(aside)
    if (status.st_ino, status.st_mtime_ns) != mark[:2]:  # a rename changes neither, only the third part of a mark
        with contextlib.suppress(
            OSError
        ):  # if another file has the name now, there are two runners, and the one whose file was moved will notice
            os.link(aside, path)
        aside.unlink()
        return False
    try:
        aside.rmdir() if stat.S_ISDIR(status.st_mode) else aside.unlink()
    except OSError as error:
        logger.warning("%s was not a lease (%s): moved to %s", path, error.strerror, aside)
    return True


def _mode(top: Path | None) -> int | None:
    shared = None if top is None else file_mode(top)
    return None if shared is None else shared[1]


@contextlib.contextmanager
def _guard(folder: Path, top: Path | None = None) -> Iterator[bool]:
    """Take a short exclusive lock per folder of leases, which the kernel frees when its holder dies; yield whether there are such locks."""
    from filelock import FileLock, Timeout

    place, there = folder / ".lock", True
    mode: dict[str, Any] = {} if (shared := _mode(top)) is None else {"mode": shared}
    lock = FileLock(place, fallback_to_soft=False, **mode)
    with contextlib.ExitStack() as stack:
        stack.callback(lock.release)
        try:
            lock.acquire(timeout=_GUARD_S)
        except Timeout as error:
            logger.debug("%s", error)
        except PermissionError:  # another user's file: any user who can read it can lock it
            stack.enter_context(_locked_for_reading(place))
        except OSError as error:
            logger.debug("no file locks in %s: %s", folder, error)
            there = False
        yield there


@contextlib.contextmanager
def _locked_for_reading(path: Path) -> Iterator[None]:
    """Hold the lock on a file that this user may not write. If the file cannot be read either, log that and continue without the lock."""
    descriptor = None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        until = time.monotonic() + _GUARD_S
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(_GUARD_POLL_S)
    except OSError:
        who = in_the_way(path.absolute(), write=False) or in_the_way(path.parent.absolute(), write=True) or f"{path} cannot be locked"
        if who not in _SAID:
            _SAID.add(who)
            logger.warning("%s. Until this is fixed, two runners that take over an abandoned cell at the same moment may both run it", who)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def has_locks(folder: Path, top: Path | None = None) -> bool:
    """Return whether the file system of ``folder`` supports file locks. True if the folder is not writable, which is reported elsewhere."""
    try:
        make_folder(folder, top)
    except OSError:
        return True
    with _guard(folder, top) as there:
        return there or not os.access(folder, os.W_OK)


@cache
def _machine() -> str:
    """Return the scope in which a pid identifies a process: host, boot and process namespace."""
    parts = [socket.gethostname()[:64]]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(" ".join(parts).split())


def _process_start(pid: int) -> str:
    """Return the start of process ``pid`` in kernel ticks; ``"alive"`` if unknown; ``""`` if it is dead or a zombie."""
    try:
        # The name in parentheses may hold anything; after the last parenthesis come state, parent, ..., and the start as 20th field.
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


# Runners that started a cell and died in it. This is how a cell that kills its runners is recognised.
# A runner writes a line when it starts a cell, and removes it on every orderly stop: a record, an error, Ctrl-C, or release by its
# supervisor. The line of a runner that was killed stays. A saved checkpoint clears the lines of earlier runners, so a long cell may be
# preempted any number of times as long as it makes progress.

MAX_TAKEOVERS = 3
"""How often a cell is taken over from runners that died in it before it is recorded as failed."""


class Attempt:
    """A context manager for this process's attempt at one cell. Only the holder of the cell's lease may begin an attempt.

    Args:
        path: the file with a line per attempt. top: see :class:`Lease`.
    """

    def __init__(self, path: Path, top: Path | None = None) -> None:
        self.path, self._top = path, top
        self.fallen: Sequence[str] = ()

    def __enter__(self) -> Attempt:
        self.fallen = _read(self.path)
        job = f" of {job}" if (job := job_name()) else ""
        began = time.strftime("%Y-%m-%d %H:%M:%S")
        self._write([*self.fallen, f"{runner(os.getpid())}{job}, begun {began}"])
        return self

    def progressed(self) -> None:
        """Mark this attempt as having saved work, so that earlier failures no longer count."""
        if self.fallen:
            last = _read(self.path)[-1:]
            self.fallen = ()
            self._write(last)

    def finished(self) -> None:
        """Mark this attempt as having stored a record, so that earlier failures no longer count."""
        self.fallen = ()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        withdraw(self.path, os.getpid(), keep=bool(self.fallen), top=self._top)

    def _write(self, lines: Sequence[str]) -> None:
        write_atomic(self.path, "".join(f"{line}\n" for line in lines).encode(), durable=False, top=self._top)


def withdraw(path: Path, pid: int, *, keep: bool = True, top: Path | None = None) -> None:
    """Remove the line of process ``pid`` on this machine, which stopped properly. Without ``keep``, remove all lines."""
    with contextlib.suppress(OSError):
        lines = _read(path)
        left = [line for line in lines if not line.startswith(f"{runner(pid)} ") and not line.startswith(f"{runner(pid)},")] if keep else []
        if left:
            write_atomic(path, "".join(f"{line}\n" for line in left).encode(), durable=False, top=top)
        else:
            path.unlink(missing_ok=True)


def runner(pid: int) -> str:
    """Return the text that identifies a process in a file of attempts."""
    return f"process {pid} on {socket.gethostname()[:64]}"


def _read(path: Path) -> list[str]:
    try:
        return read_regular(path).decode(errors="replace").splitlines()
    except OSError:
        return []


# When to check a lease that another runner holds: soon at first, then less and less often, to spare the file system.

FIRST_S = 0.25
NEAR_S = 1.0
"""The longest delay if the holder is on this machine, where its death is noticed at once."""
FAR_S = LIFETIME_S / 6
_FACTOR = 1.5


class TaskElsewhere(Exception):
    """Raised when another machine trains one of the cell's first tasks. Since this may take long, the caller can run a different cell in
    the meantime.
    """


class Backoff:
    """Delays by name that grow by a factor of 1.5."""

    def __init__(self, first_s: float = FIRST_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._first_s, self._clock = first_s, clock
        self._delays: dict[str, tuple[float, float]] = {}

    def due(self, name: str) -> bool:
        """Return whether it is time to check ``name`` again."""
        return name not in self._delays or self._clock() >= self._delays[name][1]

    def missed(self, name: str, *, near: bool = False) -> float:
        """Register that another runner held ``name`` (``near``: on this machine), and return the number of seconds until it is due
        again."""
        former = self._delays[name][0] * _FACTOR if name in self._delays else self._first_s
        delay = min(former, NEAR_S if near else FAR_S)
        self._delays[name] = delay, self._clock() + delay
        return delay

    def forget(self, name: str) -> None:
        """Reset the delay of ``name``, which is free or done."""
        self._delays.pop(name, None)
