"""What a run leaves beside its record: the curves of its trainings, epoch by epoch, and the fingerprints of states and answers.

They are most of the bytes of a run, and tables and pages read none of them. A record holds :attr:`Curves.facts`: what is read of a
training, and one digest of all exact values, by which two results are compared. The values stand in a file of the store, which is
written before the record, and are only published on request (see :mod:`cglsuite.cells.storage.sidecars`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cglsuite.base.errors import StoreError
from cglsuite.base.hashing import plain

__all__ = ["Curves", "NoCurvesError"]


class NoCurvesError(StoreError):
    """The curves of a record are not where it is, or are not those that it was written with."""


@dataclass(frozen=True, kw_only=True)
class Curves:
    """The curves and fingerprints of one run, as JSON types.

    Args:
        trainings: for each training ``task``, ``loss`` and ``monitor`` by epoch, and ``best_epoch``.
        fingerprints: digests of the method's ``state`` and ``answers`` after each task (each evaluation of a task-free stream).
    """

    trainings: Sequence[Mapping[str, Any]] = field(default_factory=list)
    fingerprints: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, trainings: Any, fingerprints: Any) -> Curves:
        """The same of any numbers; those that are not finite become ``None``."""
        return cls(trainings=plain(trainings), fingerprints=plain(fingerprints))

    @cached_property
    def text(self) -> bytes:
        """The canonical JSON, exact floats."""
        content = {"curves": self.trainings, "fingerprints": self.fingerprints}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of :attr:`text`."""
        return hashlib.sha256(self.text).hexdigest()

    @property
    def facts(self) -> dict[str, Any]:
        """A record's ``training``: the digest, and of each training the epochs run, the best one, and the first and last loss."""
        if not self.trainings and not self.fingerprints:
            return {}
        return {"digest": self.digest, "tasks": [_facts(one) for one in self.trainings]}

    @classmethod
    def read(cls, text: bytes, digest: str, where: object) -> Curves:
        """The curves whose digest is ``digest`` (or begins so), from their :attr:`text`.

        Raises:
            NoCurvesError: these are others, or damaged; the message names ``where``.
        """
        found = hashlib.sha256(text).hexdigest()
        if not found.startswith(digest):
            raise NoCurvesError(
                f"{where} holds curves with the digest {found[:12]}, its record says {digest[:12]}: they are of another run, or were "
                "damaged or edited after they were written"
            )
        data = json.loads(text)
        made = cls(trainings=data["curves"], fingerprints=data["fingerprints"])
        made.__dict__["text"] = text
        return made


def _facts(training: Mapping[str, Any]) -> dict[str, Any]:
    loss = training["loss"]
    ends = {"first_loss": loss[0], "last_loss": loss[-1]} if loss else {"first_loss": None, "last_loss": None}
    return {"best_epoch": training["best_epoch"], "epochs": len(loss), **ends, "task": training["task"]}
