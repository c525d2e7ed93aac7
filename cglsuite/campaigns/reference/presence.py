"""Check for the raw files of a data set without reading them: its loader runs until it would open the first file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import CglsuiteError, DataAbsentError

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

__all__ = ["Presence", "absent_data", "presence"]

State = Literal["here", "missing", "embedded", "unknown"]


@dataclass(frozen=True)
class Presence:
    """What is here of a data set.

    ``files`` were found, ``reason`` says why it is missing, and ``urls`` are where a run would download its first missing file from. The
    state is ``unknown`` where the loader neither finds a file nor says which one it lacks.
    """

    state: State
    files: tuple[Path, ...] = ()
    reason: str = ""
    urls: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the files that were found."""
        return sum(path.stat().st_size for path in self.files if path.is_file())


class _Found(Exception):
    """Every file is present; the loader would read from here on."""


class _Absent(Exception):
    """The first missing file."""


class _Files(DataRoot):
    """A data root that locates files without opening or checking them.

    Args:
        fetch: get what is absent and has a public home, checked, as loading the data set would.
    """

    def __init__(self, given: DataRoot, fetch: bool) -> None:
        super().__init__(given.folders, given.cache, given.offline, verify=fetch and given.verify)
        self.fetch = fetch
        self.found: dict[Path, None] = {}
        self.wanted: tuple[str, ...] = ()

    def find(self, relative: str, *, sha256: str | None = None) -> Path | None:
        path = super().find(relative, sha256=sha256)
        if path is not None:
            self.found[path] = None
        return path

    def file(self, relative: str, *, sha256: str | None = None, urls: Iterable[str] = (), note: str = "") -> Path:
        urls = tuple(urls)
        if self.fetch:
            path = super().file(relative, sha256=sha256, urls=urls, note=note)
            self.found[path] = None
            return path
        found = self.find(relative)
        if found is None:
            raise _Absent(self._absence([relative], urls))
        return found

    def unpacked(self, members: Mapping[str, str], *, urls: Iterable[str], sha256: str | None = None, note: str = "") -> dict[str, Path]:
        urls = tuple(urls)
        if self.fetch:
            paths = super().unpacked(members, urls=urls, sha256=sha256, note=note)
            self.found |= dict.fromkeys(paths.values())
            return paths
        known = {relative: self.find(relative) for relative in members}
        if absent := [relative for relative, path in known.items() if path is None]:
            raise _Absent(self._absence(absent, urls))
        return {relative: path for relative, path in known.items() if path is not None}

    def sha256(self, path: Path) -> str:
        return super().sha256(path) if self.fetch else ""

    def derived(self, name: str, key: object, build: Any) -> NoReturn:
        raise _Found

    def stage(self, files: Mapping[str, Path]) -> Any:
        raise _Found

    def _absence(self, absent: list[str], urls: tuple[str, ...]) -> str:
        self.wanted = urls
        more = f" (and {len(absent) - 1} more files)" if len(absent) > 1 else ""
        what = f"the data file {absent[0]}{more} is absent"
        if urls and not self.offline:
            return f"{what}; a run would download it from {urls[0]}"
        return f"{what}; put it below " + (" or ".join(map(str, self.folders)) or "a folder and name that in CGLSUITE_DATA")


def presence(
    catalogue: Catalogue,
    dataset: str,
    hyperparameters: Mapping[str, Any] | None = None,
    *,
    root: DataRoot | None = None,
    fetch: bool = False,
) -> Presence:
    """What is here of a data set.

    Args:
        catalogue: has the data set.
        dataset: its name.
        hyperparameters: its; default: its defaults.
        root: default that of the environment.
        fetch: download what is absent and has a public home, checked. A download that fails is a reason, over several lines.

    Raises:
        UnknownNameError: there is no such data set.
    """
    spec = catalogue.dataset(dataset)
    if spec.embedded:
        return Presence(state="embedded")
    given = {h.name: h.default for h in spec.hyperparameters} if hyperparameters is None else dict(hyperparameters)
    files = _Files(root or DataRoot.from_environment(), fetch)
    state, reason = _asked(catalogue, dataset, given, files)
    return Presence(state=state, files=tuple(files.found), reason=reason, urls=files.wanted)


def _asked(catalogue: Catalogue, dataset: str, hyperparameters: Mapping[str, Any], files: _Files) -> tuple[State, str]:
    """The state, and why the data are unavailable."""
    try:
        catalogue.resolve(catalogue.get("dataset", dataset))(files, **dict(hyperparameters))
    except _Found:
        return "here", ""
    except _Absent as absent:
        return "missing", str(absent)
    except DataAbsentError as error:
        return "missing", str(error)
    except CglsuiteError as error:
        return "unknown", str(error)
    except Exception:  # noqa: BLE001 - a loader that does not get along with a root that only looks: its cells will say what is wrong
        return "unknown", ""
    return "here", ""


def absent_data(
    catalogue: Catalogue, dataset: str, hyperparameters: Mapping[str, Any], *, root: DataRoot | None = None, fetch: bool = False
) -> str:
    """Why the data of a data set are unavailable here, as one sentence; empty if there is no known reason.

    Args:
        hyperparameters: the data set's. root: default that of the environment.
        fetch: download what is absent and has a public home. A download that fails is a reason.
    """
    known = presence(catalogue, dataset, hyperparameters, root=root, fetch=fetch)
    return " ".join(known.reason.split())
