"""The curves of a store's records: ``curves/ab/KEY.DIGEST.json.gz``, with the first twelve digits of the digest that the record holds.

A file is written before its record, so a runner that is killed between the two leaves a file that its next attempt writes again. Two unlike
results of one cell have a file each. What is read must have the record's digest. Shards may bring curves as well
(:mod:`cglsuite.cells.storage.curve_tables`).
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from cglsuite.base.atomic import write_atomic
from cglsuite.base.inputs import read_regular
from cglsuite.cells.records.curves import Curves, NoCurvesError
from cglsuite.cells.storage.layout import shard_of

__all__ = ["CURVES", "SHORT", "curves_path", "discard_curves", "read_curves", "sidecar_names", "write_curves"]

CURVES = "curves"
_SUFFIX = ".json.gz"
SHORT = 12
_LEVEL = 6


def curves_path(store: Path, key: str, digest: str) -> Path:
    """Where the curves of the record of ``key`` are, which have this digest (or its first digits)."""
    return store / CURVES / shard_of(key) / f"{key}.{digest[:SHORT]}{_SUFFIX}"


def write_curves(store: Path, key: str, curves: Curves, *, durable: bool = True) -> None:
    """Write the file.

    Raises:
        StoreError: the disk is full or the folder cannot be written.
    """
    content = gzip.compress(curves.text, _LEVEL, mtime=0)
    write_atomic(curves_path(store, key, curves.digest), content, durable=durable)


def read_curves(store: Path, key: str, digest: str) -> Curves | None:
    """The curves with this digest (or its first digits); None without a file.

    Raises:
        NoCurvesError: the file cannot be read, or holds others.
    """
    path = curves_path(store, key, digest)
    try:
        text = gzip.decompress(read_regular(path))
    except FileNotFoundError:
        return None
    except (OSError, EOFError, zlib.error) as error:
        raise NoCurvesError(f"{path} cannot be read: {error}") from error
    return Curves.read(text, digest, path)


def sidecar_names(store: Path) -> Iterator[tuple[str, str]]:
    """The key and the first digits of the digest of every file, sorted."""
    for path in sorted((store / CURVES).glob(f"??/*{_SUFFIX}")):
        key, _, digest = path.name.removesuffix(_SUFFIX).partition(".")
        if key and digest and path.parent.name == shard_of(key):
            yield key, digest


def discard_curves(store: Path, key: str) -> None:
    """Remove the files of ``key``; missing is fine."""
    for path in (store / CURVES / shard_of(key)).glob(f"{key}.*{_SUFFIX}"):
        os.unlink(path)
