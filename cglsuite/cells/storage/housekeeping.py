"""Housekeeping for a store: report the size of its files by kind, owner and campaign, and remove files that are no longer needed.

A prune is planned first, and every file is checked again under its lease before it is removed. Records and their curves are moved to
``trash``, which the next prune empties; checkpoints, attempts and code are deleted. A prune removes only files of the current user. It
never removes files that a runner holds, that a stored plan or job names, or that are less than a day old.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from cglsuite.base.atomic import make_folder, owner
from cglsuite.base.errors import StoreError
from cglsuite.cells.plan import PlanFile
from cglsuite.cells.storage.layout import CELLS, CONFLICTS, CURVES, INPUTS, sidecar_names
from cglsuite.cells.storage.lease import read_holder
from cglsuite.cells.storage.store import Store
from cglsuite.host.frozen import CODE

KINDS: Mapping[str, Sequence[str]] = {
    "records": (CELLS, CONFLICTS, INPUTS, "searches", "splits", "shards", "manifest"),
    "checkpoints": ("checkpoints",),
    "curves": (CURVES, "watched"),
    "code": (CODE,),
    "caches": (),
    "left-over": ("leases", "attempts", "plans", "jobs", "corrupt", "common"),
    "trash": ("trash",),
}
"""The folders of a store by what they hold. Its only cache, the index of its records, is in this machine's cache folder."""
TRASH = "trash"
_TRASHED = {"records", "curves"}
YOUNG_S = 86400.0
"""Younger files are not pruned, since a process that is not visible here may be using them."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """The number and total size of the files of one kind, owner and campaign (``""``: not part of a named campaign)."""

    kind: str
    owner: str
    campaign: str
    files: int
    bytes: int


def usage(store: Store, campaigns: Mapping[str, Set[str]] | None = None, families: Mapping[str, Set[str]] | None = None) -> list[Use]:
    """Return the disk usage of a store by kind, owner and campaign, in sorted order.

    Args:
        campaigns: maps a campaign's name to the keys of its cells. families: maps its name to the families of its checkpoints. A file that
            several campaigns need counts for the first.
    """
    of_key = {key: name for name, keys in reversed(list((campaigns or {}).items())) for key in keys}
    of_family = {family: name for name, names in reversed(list((families or {}).items())) for family in names}
    kind_of = {folder: kind for kind, folders in KINDS.items() for folder in folders}
    files, sizes = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for path, status in _files(store.path):
        folder, name = path.relative_to(store.path).parts[0], path.name
        kind = "left-over" if name.startswith(".") else kind_of.get(folder, "left-over")
        campaign = of_family.get(name.partition("-")[0], "") if kind == "checkpoints" else of_key.get(name.partition(".")[0], "")
        files[place := (kind, owner(status), campaign)] += 1
        sizes[place] += status.st_size
    if (index := store.index_file()) is not None and index.exists():
        files[place := ("caches", owner(index.stat()), "")] += 1
        sizes[place] += index.stat().st_size
    return [Use(kind=k, owner=o, campaign=c, files=files[k, o, c], bytes=sizes[k, o, c]) for k, o, c in sorted(files)]


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every file below a folder; files that cannot be listed or that have disappeared are left out."""
    for above, _, names in os.walk(folder):
        for name in names:
            path = Path(above, name)
            with contextlib.suppress(OSError):
                yield path, path.lstat()


@dataclass(frozen=True, kw_only=True)
class Item:
    """A file to prune or to leave in place.

    Args:
        kind, why: its kind, and why it is not needed. lease: the name of the lease under which it is removed. skipped: why it stays; empty
            if it is removed.
    """

    path: Path
    kind: str
    why: str
    bytes: int
    lease: str
    skipped: str = ""


def shown(path: Path, store: Path) -> str:
    """Return a path relative to the store, or the full path if it is outside the store."""
    return str(path.relative_to(store) if path.is_relative_to(store) else path)


@dataclass(frozen=True, kw_only=True)
class Prune:
    """The plan of a prune: the files to remove, the files to leave in place, and the trash of earlier prunes to empty."""

    items: Sequence[Item]
    trash: Sequence[tuple[Path, int]] = ()
    notes: Sequence[str] = field(default=())

    @property
    def going(self) -> list[Item]:
        """The files to remove."""
        return [item for item in self.items if not item.skipped]

    @property
    def staying(self) -> list[Item]:
        """The files to leave in place."""
        return [item for item in self.items if item.skipped]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The cells and checkpoints that are still needed.

    Args:
        keys: the keys of the campaigns' cells; None: no campaign was named. families: prefixes of the names of the checkpoints that
            unfinished cells need; None: unknown, so no checkpoint is removed. reason: why they are unknown.
    """

    keys: Set[str] | None = None
    families: Set[str] | None = frozenset()
    reason: str = ""


def stored_plans(store: Store) -> dict[str, PlanFile]:
    """Return the plans of running supervisors and of jobs, by the name of their file in the store.

    Raises:
        StoreError: a plan cannot be read, so the cells that it needs are unknown.
    """
    plans = {}
    for path in (*(store.path / "plans").glob("*.json"), *(store.path / "jobs").glob("*/plan.json")):
        try:
            plans[str(path.relative_to(store.path))] = PlanFile.read(path)
        except Exception as error:
            raise StoreError(
                f"{error}. Nothing was pruned, because the cells that this plan needs are unknown; remove the plan if its job has ended"
            ) from error
    return plans


class Pruning:
    """A prune of a store: plans which files to remove, and removes them.

    Args:
        wanted: the cells and checkpoints that must be kept. records: also prune records that no campaign needs. plans: the result of
        :func:`stored_plans`.
    """

    def __init__(self, store: Store, wanted: Wanted, plans: Mapping[str, PlanFile], *, records: bool = False) -> None:
        self.store, self.wanted, self.records = store, wanted, records
        self.planned = {key: name for name, plan in plans.items() for key, _ in plan.cells}
        self.in_use = {sha256 for plan in plans.values() for sha256, _ in plan.code.values()}

    def plan(self) -> Prune:
        """Plan the prune without changing anything."""
        notes = [] if self.wanted.families is not None else [f"no checkpoint is pruned: {self.wanted.reason}"]
        if self.wanted.keys is None and self.wanted.families is not None:
            notes.append("no campaign is named: checkpoints of interrupted cells that no stored job runs are not needed")
        items = sorted((self._with_reason(item) for item in self._candidates()), key=lambda item: item.path)
        return Prune(items=items, trash=self._trash(), notes=notes)

    def carry_out(self, plan: Prune) -> Prune:
        """Empty the trash, and prune the files in the plan after checking each again under its lease. Returns what was done.

        Raises:
            StoreError: the store cannot be written; what was done so far remains done.
        """
        for folder, _ in plan.trash:
            shutil.rmtree(folder, ignore_errors=True)
        trash = self.store.path / TRASH / f"{os.getuid()}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        going = sorted(plan.going, key=lambda item: item.kind in _TRASHED)  # first what frees space, since taking a lease creates a file
        done = [self._go(item, trash) for item in going]
        return Prune(items=[*plan.staying, *done], trash=plan.trash, notes=plan.notes)

    def _go(self, item: Item, trash: Path) -> Item:
        lease: contextlib.AbstractContextManager[object] | None
        try:
            lease = self.store.lease(item.lease)
        except StoreError as error:
            if item.kind in _TRASHED:
                return self._stays(item, str(error))
            lease = contextlib.nullcontext()  # the disk is full, which is why the store is pruned
        if lease is None:
            return self._stays(item, self._held(item.lease) or "leased by another runner")
        with lease:
            again = self._with_reason(item)
            if again.skipped:
                return again
            try:
                if item.kind in _TRASHED:
                    place = trash / item.path.relative_to(self.store.path)
                    make_folder(place.parent, self.store.path)
                    os.rename(item.path, place)
                else:
                    item.path.unlink()
            except OSError as error:
                return self._stays(item, error.strerror or str(error))
        return item

    # What is not needed

    def _candidates(self) -> Iterator[Item]:
        yield from self._attempts()
        yield from self._records()
        yield from self._curves()
        yield from self._code()
        if (index := self.store.index_file()) is not None:
            yield from self._item(index, "caches", "the index of records, which is rebuilt when needed", "index")
        if self.wanted.families is not None:
            for path in (self.store.path / "checkpoints").glob("*.pt"):
                if path.stem.partition("-")[0] not in self.wanted.families:
                    yield from self._item(path, "checkpoints", "no unfinished cell needs it", path.stem)

    def _attempts(self) -> Iterator[Item]:
        for path in (self.store.path / "attempts").glob("*.txt"):
            yield from self._item(path, "attempts", "traces of runners that died during a cell", path.stem)

    def _records(self) -> Iterator[Item]:
        """Yield records of failed attempts and, with ``records``, those that no named campaign needs."""
        asked = self.wanted.keys
        for key, summary in self.store.summaries():
            if summary is None:
                continue
            if not summary.done and not summary.settled:
                why = f"a failed attempt: {summary.status}"
            elif self.records and asked is not None and key not in asked:
                why = "no named campaign needs it"
            else:
                continue
            for path in self.store.places(key):
                if os.path.lexists(path):
                    yield from self._item(path, "records", why, key)

    def _curves(self) -> Iterator[Item]:
        """Yield curves whose record is removed or missing."""
        going = {item.path.stem for item in self._records()} if self.records else set[str]()
        known = set(self.store.keys())
        for key, digest in sidecar_names(self.store.path):
            if key in going or key not in known:
                why = "its record is removed" if key in going else "it belongs to no record"
                for path in (self.store.path / CURVES / key[:2]).glob(f"{key}.{digest}*"):
                    yield from self._item(path, "curves", why, key)

    def _code(self) -> Iterator[Item]:
        """Yield user code that no stored plan runs and no record names."""
        places = [path for path in (self.store.path / CODE).glob("??/*") if path.name.partition(".")[0] not in self.in_use]
        if not places:
            return
        named = {str(text) for record in self.store.records() for text in _texts(record.provenance.get("code") or {})}
        for path in places:
            if path.name.partition(".")[0] not in named:
                yield from self._item(path, "code", "no plan runs it, and no record names it", f"code-{path.name.partition('.')[0]}")

    def _item(self, path: Path, kind: str, why: str, lease: str) -> Iterator[Item]:
        with contextlib.suppress(OSError):
            yield Item(path=path, kind=kind, why=why, bytes=path.lstat().st_size, lease=lease)

    # Checks before removal

    def _with_reason(self, item: Item) -> Item:
        """Return the item with the reason for which it stays, if there is one."""
        try:
            status = item.path.lstat()
        except OSError:
            return self._stays(item, "it no longer exists")
        if status.st_uid != os.getuid():
            return self._stays(item, f"it belongs to {owner(status)}, who can prune it")
        if (age := time.time() - changed(status)) < YOUNG_S:
            return self._stays(item, f"it is {max(age, 0) / 3600:.1f} hours old, less than a day")
        if item.lease in self.planned:
            return self._stays(item, f"it is in the stored job {self.planned[item.lease]}")
        if held := self._held(item.lease):
            return self._stays(item, held)
        if item.kind == "checkpoints" and (held := next(filter(None, map(self._held, self._leases_without_plan())), "")):
            return self._stays(item, f"a running cell may need it: {held}")
        return item

    def _held(self, name: str) -> str:
        """Return the holder of a lease, other than this process, or an empty string if there is none."""
        holder = read_holder(self.store.path / "leases" / f"{name}.lease")
        ours = holder is not None and holder.here and holder.pid == os.getpid()
        return "" if holder is None or holder.silent or ours else f"leased by {holder}"

    def _leases_without_plan(self) -> Iterable[str]:
        """Yield names of leases on cells whose checkpoints are not known to be needed."""
        known: Collection[str] = {*self.planned, *(self.wanted.keys or ())}
        names = (path.stem for path in (self.store.path / "leases").glob("*.lease"))
        return [name for name in names if "-" not in name and name not in known]

    def _trash(self) -> list[tuple[Path, int]]:
        """Return the trash folders of this user's earlier prunes."""
        folders = sorted((self.store.path / TRASH).glob(f"{os.getuid()}-*"))
        return [(folder, sum(status.st_size for _, status in _files(folder))) for folder in folders]

    @staticmethod
    def _stays(item: Item, why: str) -> Item:
        return Item(path=item.path, kind=item.kind, why=item.why, bytes=item.bytes, lease=item.lease, skipped=why)


def changed(status: os.stat_result) -> float:
    """Return the time when a file was last written, moved or given different permissions. Copying a file preserves only the time when it
    was written.
    """
    return max(status.st_mtime, status.st_ctime)


def _texts(value: object) -> Iterator[str]:
    """Yield every text in nested mappings and lists."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
