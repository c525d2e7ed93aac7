"""The store: a folder with one file per record, checkpoints for resuming, leases, and the outcomes of searches."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

from cglsuite.base.atomic import TEMPORARY_SUFFIX, new_file, store_error, sweep_temporaries, write_atomic
from cglsuite.base.inputs import read_regular
from cglsuite.base.markup import displayed
from cglsuite.cells.code.noted import INPUTS
from cglsuite.cells.storage.attempts import Attempt, withdraw
from cglsuite.cells.storage.layout import CELLS, SUFFIX
from cglsuite.cells.storage.lease import LIFETIME_S, Holder, Lease, has_locks, read_holder
from cglsuite.cells.storage.records import Problem, Records, check_key, default_store, is_key
from cglsuite.cells.storage.sidecars import CURVES
from cglsuite.host.frozen import CODE

__all__ = ["Problem", "Store", "default_store", "plan_lease", "search_text"]

logger = logging.getLogger(__name__)
_MAGIC = b"cglsuite checkpoint 1"
_LEASE = ".lease"


class Store(Records):
    """A folder of records. Opening it writes nothing; folders are created with their first file; many processes may share a store.

    Args:
        path: the folder; ``None`` means :func:`default_store`.
        quarantine: move unreadable files to ``corrupt/``; otherwise they are reported and stay where they are.

    ``problems`` lists the unreadable files found so far; each was logged once.
    """

    def __init__(self, path: str | Path | None = None, *, quarantine: bool = True) -> None:
        super().__init__(path, quarantine=quarantine)
        self._watched: dict[str, Lease] = {}
        self._leases: WeakValueDictionary[str, Lease] = WeakValueDictionary()
        self._attempts: set[Path] = set()
        self._locks_tried = False
        self.saved = 0
        """Number of checkpoints that this object has saved."""

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return displayed("records:store_card", self)

    # Leases

    def _permit(self, key: str) -> Callable[[], bool] | None:
        lease = self._leases.get(key)
        return (lambda: lease.held) if lease is not None and lease.taken else None

    def lease(self, key: str, lifetime_s: float = LIFETIME_S) -> Lease | None:
        """A lease on ``key`` (a context manager), or None while another live runner holds it.

        Poll with the same store object while waiting: a runner on another machine counts as gone once this object has not seen its lease
        renewed for a lifetime. A record of ``key`` that is put meanwhile is put under this lease.
        """
        lease = self._watched.setdefault(key, Lease(self._lease_path(key), lifetime_s))
        if not lease.acquire():
            return None
        self._leases[key] = self._watched.pop(key)
        return lease

    def holder(self, key: str) -> Holder | None:
        """The holder of the lease on ``key``, if any, for display: a single look. It may be ``silent``."""
        return read_holder(self._lease_path(key))

    def discard_stale_lease(self, key: str) -> bool:
        """Remove the lease on ``key`` if this object has found its holder gone; return whether it is free now."""
        if not os.path.lexists(self._lease_path(key)):
            self._watched.pop(key, None)
            return True
        lease = self.lease(key)
        if lease is not None:
            lease.release()
        return lease is not None

    def warn_without_locks(self) -> None:
        """Warn once if the file system has no file locks."""
        folder = self.path / "leases"
        if not self._locks_tried and not has_locks(folder):
            logger.warning(
                "the file system of %s has no file locks: two runners that take over an abandoned cell at the same moment may both run it, "
                "which costs time but affects no result",
                folder,
            )
        self._locks_tried = True

    def _lease_path(self, key: str) -> Path:
        return self._file("leases", key, _LEASE)

    # Attempts

    def attempt(self, key: str) -> Attempt:
        """This process's attempt at the cell ``key``, whose lease it holds: a context manager that detects attempts that died halfway."""
        path = self._file("attempts", key, ".txt")
        self._attempts.add(path)
        return Attempt(path)

    def withdraw_attempts(self) -> None:
        """Take back what this object has begun, before the process ends in order without unwinding."""
        for path in self._attempts:
            withdraw(path, os.getpid())

    def withdraw_attempt(self, key: str, pid: int) -> None:
        """Take back the attempt of process ``pid`` of this machine, which was ended by its supervisor."""
        withdraw(self._file("attempts", key, ".txt"), pid)

    def forget_attempts(self, key: str) -> None:
        """Nobody fell in the middle of ``key``: there is a record that says how it ended."""
        withdraw(self._file("attempts", key, ".txt"), os.getpid(), keep=False)

    # Checkpoints

    def checkpoint_path(self, prefix_key: str) -> Path:
        """The path of the checkpoint of ``prefix_key``."""
        return self._file("checkpoints", prefix_key, ".pt")

    def has_checkpoints(self) -> bool:
        """Whether any checkpoint is saved."""
        return any((self.path / "checkpoints").glob("*.pt"))

    def save_checkpoint(self, prefix_key: str, payload: Mapping[str, Any]) -> None:
        """Store ``payload`` (tensors, str, int, float, bool, None, list, dict) atomically, with its checksum.

        Raises:
            StoreError: the disk is full or the folder cannot be written.
        """
        import torch

        path = self.checkpoint_path(prefix_key)
        body = _Checked()
        try:
            # Written often, so it must be cheap: the checksum detects damage after a crash of the machine.
            with new_file(path, durable=False) as file:
                file.write(_checkpoint_header(prefix_key, body))
                body.file = file
                torch.save(dict(payload), body)  # type: ignore[arg-type]
                file.seek(0)
                file.write(_checkpoint_header(prefix_key, body))
        except (OSError, RuntimeError) as error:
            failed = body.failed or error  # torch tells of a failed write in words of its own
            if not isinstance(failed, OSError):
                raise
            raise store_error(failed, path) from error
        self.saved += 1

    def load_checkpoint(self, prefix_key: str) -> dict[str, Any] | None:
        """The payload of ``prefix_key`` with tensors on the CPU; None if absent or damaged (then moved to ``corrupt/`` and reported)."""
        path = self.checkpoint_path(prefix_key)
        try:
            header, _, body = read_regular(path).partition(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            self._report(path, f"cannot be read: {error.strerror or error}", None)
            return None
        if not _is_header(header, prefix_key, body):
            self._quarantine(path, "a truncated, damaged or mismatched checkpoint; its tasks are trained again")
            return None
        import torch

        try:
            payload: dict[str, Any] = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
        except Exception as error:  # noqa: BLE001 - torch may raise anything; a checkpoint only saves time
            self._quarantine(path, f"a checkpoint that torch cannot load ({type(error).__name__}: {error!s:.200})")
            return None
        return payload

    def drop_checkpoint(self, prefix_key: str) -> None:
        """Remove this checkpoint; missing is fine."""
        with contextlib.suppress(OSError):
            self.checkpoint_path(prefix_key).unlink()

    def drop_checkpoints(self, prefix_keys: Iterable[str]) -> None:
        """Remove these checkpoints, all whose names continue theirs after a ``-``, and abandoned leases on them; missing ones are
        fine."""
        for prefix_key in prefix_keys:
            path = self.checkpoint_path(prefix_key)
            for checkpoint in (path, *path.parent.glob(f"{prefix_key}-*{path.suffix}")):
                with contextlib.suppress(OSError):
                    checkpoint.unlink()
            for left in (self.path / "leases").glob(f"{prefix_key}-*{_LEASE}"):
                self.discard_stale_lease(left.stem)

    # Searches

    def put_search(self, digest: str, outcome: Mapping[str, Any]) -> Path:
        """Store the outcome of a hyper-parameter search atomically; return its path."""
        path = self._file("searches", digest, ".json")
        write_atomic(path, search_text(outcome))
        return path

    def get_search(self, digest: str) -> dict[str, Any] | None:
        """The stored outcome of a search, or None if absent or unreadable (then moved to ``corrupt/`` and reported)."""
        path = self._file("searches", digest, ".json")
        try:
            outcome = json.loads(read_regular(path))
            if not isinstance(outcome, dict):
                raise ValueError(f"expected an object, not {type(outcome).__name__}")
            return outcome
        except FileNotFoundError:
            return self._packed.searches().get(digest)
        except (OSError, ValueError) as error:
            self._quarantine(path, f"an unreadable search outcome ({error})")
            return self._packed.searches().get(digest)

    def searches(self) -> list[str]:
        """The digests of all searches with an outcome, readable or not, sorted."""
        files = (path for path in (self.path / "searches").glob(f"*{SUFFIX}") if not path.name.startswith("."))
        return sorted({*(path.stem for path in files), *self._packed.searches()})

    def search_outcomes(self) -> list[dict[str, Any]]:
        """The outcomes of all searches, in the order of :meth:`searches`; unreadable ones are left out."""
        return [outcome for digest in self.searches() if (outcome := self.get_search(digest)) is not None]

    # Housekeeping

    def sweep(self) -> None:
        """Remove leftovers of killed runners: leases, attempts at cells that have a result, plans whose supervisors are gone, and temporary
        files older than an hour.

        A lease of another machine is removed once this object has not seen it renewed for a lifetime, so sweep again later.
        """
        sweep_temporaries(self.path)
        for below in (f"{CELLS}/??", f"{CURVES}/??", f"{CODE}/??", f"{INPUTS}/??/*", "shards/??", "manifest/numbers"):
            sweep_temporaries(self.path, pattern=f"{below}/.*{TEMPORARY_SUFFIX}")
        sweep_temporaries(self.path, pattern=f"leases/*{_LEASE}.*")
        for plan in (self.path / "plans").glob("*.json"):
            if is_key(plan.stem) and (lease := self.lease(plan_lease(plan))) is not None:
                with lease:
                    plan.unlink(missing_ok=True)
        for attempt in (self.path / "attempts").glob("*.txt"):
            if is_key(attempt.stem) and (lease := self.lease(attempt.stem)) is not None:
                with lease:
                    if (record := self.get(attempt.stem)) is not None and record.done:
                        attempt.unlink(missing_ok=True)
        for left in (self.path / "leases").glob(f"*{_LEASE}"):
            if is_key(left.stem):
                self.discard_stale_lease(left.stem)

    def _file(self, folder: str, name: str, suffix: str) -> Path:
        return self.path / folder / f"{check_key(name)}{suffix}"


def search_text(outcome: Mapping[str, Any]) -> bytes:
    """The bytes of the file that holds the outcome of a search."""
    return (json.dumps(outcome, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def plan_lease(plan: Path) -> str:
    """The name of the lease that a supervisor holds while it needs the file ``plan``."""
    return f"plan-{plan.stem}"


class _Checked:
    """A stream that hands on what is written and counts it, so that a checkpoint is never in memory as a whole."""

    def __init__(self) -> None:
        self.file: IO[bytes] | None = None
        self.size = self.checksum = 0
        self.failed: OSError | None = None

    def write(self, data: Any) -> int:
        """Write bytes or any buffer of them; their number."""
        if self.file is None:
            raise ValueError("nothing to write to")
        with memoryview(data).cast("B") as view:
            try:
                self.file.write(view)
            except OSError as error:
                self.failed = error
                raise
            self.size += len(view)
            self.checksum = zlib.crc32(view, self.checksum)
            return len(view)

    def flush(self) -> None:
        """Left to the file."""


def _checkpoint_header(prefix_key: str, body: _Checked) -> bytes:
    """The first line of a checkpoint, of one length whatever its body."""
    # torch does not verify what it loads: without a checksum, a flipped bit would become a wrong result.
    return b"%s %s %020d %08x\n" % (_MAGIC, prefix_key.encode(), body.size, body.checksum)


def _is_header(line: bytes, prefix_key: str, body: bytes) -> bool:
    """Whether this is the first line of the checkpoint with that body; earlier versions wrote its size without leading zeros."""
    start = b"%s %s " % (_MAGIC, prefix_key.encode())
    size, _, checksum = line.removeprefix(start).partition(b" ")
    return line.startswith(start) and size.isdigit() and int(size) == len(body) and checksum == b"%08x" % zlib.crc32(body)
