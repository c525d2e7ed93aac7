"""The record of a cell: configuration, results, times and provenance. Records are plain data and are never unpickled."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import json
import marshal
import math
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from cglsuite.base.errors import CglsuiteError, StoreError, said, shortened
from cglsuite.base.hashing import plain
from cglsuite.base.inputs import key_path, problem_text, quoted
from cglsuite.base.markup import displayed, plain_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# What a run stores next to its record: the curves of its trainings, epoch by epoch, and the fingerprints of states and predictions.
# They make up most of a run's bytes, but tables and pages do not read them. A record holds :attr:`Curves.facts`: a summary of each
# training, and one digest of all exact values, by which two results are compared. The values are in a separate file of the store, which is
# written before the record and published only on request (see :mod:`cglsuite.cells.storage.layout`).


class NoCurvesError(StoreError):
    """A record's curves are missing from its store, or differ from the curves that it was written with."""


@dataclass(frozen=True, kw_only=True)
class Curves:
    """The curves and fingerprints of one run, as JSON-serialisable values.

    Args:
        trainings: for each training, ``task``, ``loss`` and ``monitor`` by epoch, and ``best_epoch``.
        fingerprints: digests of the method's ``state`` and ``answers`` after each task (each evaluation of a task-free stream).
    """

    trainings: Sequence[Mapping[str, Any]] = field(default_factory=list)
    fingerprints: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, trainings: Any, fingerprints: Any) -> Curves:
        """Create curves and fingerprints in which non-finite numbers are replaced by ``None``."""
        return cls(trainings=plain(trainings), fingerprints=plain(fingerprints))

    @cached_property
    def text(self) -> bytes:
        """The canonical JSON with exact floats."""
        content = {"curves": self.trainings, "fingerprints": self.fingerprints}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 (hex) of :attr:`text`."""
        return hashlib.sha256(self.text).hexdigest()

    @property
    def facts(self) -> dict[str, Any]:
        """A record's ``training``: the digest and, for each training, the number of epochs, the best epoch, and the first and last
        loss."""
        if not self.trainings and not self.fingerprints:
            return {}
        return {"digest": self.digest, "tasks": [_facts(training) for training in self.trainings]}

    @property
    def warnings(self) -> list[str]:
        """A warning about trainings that changed nothing, because their loss is the same to five digits in every epoch. It is empty if
        there are none.
        """
        still = []
        for training in self.trainings:
            digits = {"NaN" if loss is None else f"{loss:.5g}" for loss in training["loss"]}
            if len(digits) == 1 and len(training["loss"]) >= _FEW_EPOCHS:
                still.append(f"{training['task']} ({digits.pop()})")
        if not still:
            return []
        which = f"task {still[0]}" if len(still) == 1 else f"tasks {', '.join(still[:_MAX_TASKS])}{' ...' * (len(still) > _MAX_TASKS)}"
        return [
            f"the loss of {which} stays the same to five digits in every epoch: nothing was learnt; check the scale of features "
            "and targets, and training.lr"
        ]

    @classmethod
    def read(cls, text: bytes, digest: str, source: object) -> Curves:
        """Parse curves from their :attr:`text`, and check that their digest equals, or begins with, ``digest``.

        Raises:
            NoCurvesError: the digest differs, or the text is damaged; the message names ``source``.
        """
        actual = hashlib.sha256(text).hexdigest()
        if not actual.startswith(digest):
            raise NoCurvesError(
                f"{source} contains curves with the digest {actual[:12]}, but its record says {digest[:12]}: they belong to another run, "
                "or were damaged or edited after they were written"
            )
        data = json.loads(text)
        curves = cls(trainings=data["curves"], fingerprints=data["fingerprints"])
        curves.__dict__["text"] = text
        return curves


def _facts(training: Mapping[str, Any]) -> dict[str, Any]:
    loss = training["loss"]
    ends = {"first_loss": loss[0], "last_loss": loss[-1]} if loss else {"first_loss": None, "last_loss": None}
    return {"best_epoch": training["best_epoch"], "epochs": len(loss), **ends, "task": training["task"]}


SCHEMA = 4
_FEW_EPOCHS = 3
"""The loss is not expected to move in fewer epochs than this."""
_MAX_TASKS = 10
_WITH_CURVES = 3  # the previous schema, in which records held curves and fingerprints themselves
_DEEPEST = 201
_MAX_REASON = 10_000
_MAX_SHOWN = 1000
"""The maximum depth of nested lists and mappings: the limit of pydantic's parser."""
_PATTERN = bytes.maketrans(b"123456789E", b"000000000e")
_WHOLE, _EXPONENT = re.compile(b"0" * 19 + rb"(?<![0.]0{19})"), re.compile(rb"e\+?000")
_MANTISSA, _LONGEST_MANTISSA = re.compile(rb"(?:[:,\[]-?|\A)[0.]+\Z"), 40
_REPEATED = ("scenario", "environment", "tasks", "parameters")
_WITH_REPEATED = ("cell", "provenance")
_MAX_SHARED = 10_000
Status = Literal["done", "failed", "diverged", "timeout", "oom", "skipped", "unclean"]
STATUSES: tuple[str, ...] = get_args(Status)
SETTLED = ("diverged", "skipped")
"""Outcomes that training again repeats on the same arithmetic; others are failures of a machine or of code around the cell."""
Matrix = Sequence[Sequence[float | None]]


class NewerSchemaError(StoreError):
    """A record was written by a later version of the suite; it is not corrupt, but this version cannot read it."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The stored outcome of one cell (:mod:`cglsuite.cells.records.schema` lists every field).

    Non-finite numbers are stored as ``None``; NumPy arrays, tensors and NaN are accepted and converted to plain lists.
    :meth:`performance` and :meth:`validation` return matrices with NaN.

    Args:
        key: the cell's key (hex). design: the same without source hashes, torch version and hardware.
        status: only ``done`` counts as a cached result; every other status has a ``reason``.
        cell: names, seeds and the configuration (every resolved value). scenario: every switch of the protocol.
        matrix: float64 ``[T + 1][T]``, row 0 before training. validation_matrix: the same, with tasks ≤ k in row k.
        per_class: performance by class after the last task.
        training: a summary of the curves, and their digest (see :attr:`cglsuite.cells.records.record.Curves.facts`).
        schema: 4. A record of schema 3, which held its curves, is read as one of schema 4 whose curves have their own file.
        beside: the curves, from which ``training`` follows, or a function that reads them; not part of the record.

    Raises:
        StoreError: a part is missing, has the wrong type or shape, or is out of bounds; the message names it.

    Example:
        >>> Record.from_json(record.to_json()) == record  # doctest: +SKIP
        True
    """

    key: str
    design: str
    status: Status
    cell: Mapping[str, Any]
    scenario: Mapping[str, Any]
    provenance: Mapping[str, Any]
    environment: Mapping[str, Any]
    reason: str | None = None
    matrix: Matrix = ()
    validation_matrix: Matrix = ()
    per_class: Matrix = ()
    tasks: Sequence[Mapping[str, Any]] = ()
    training: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    timings_s: Mapping[str, float | None] = field(default_factory=dict)
    memory: Mapping[str, float | None] = field(default_factory=dict)
    parameters: Mapping[str, float | None] = field(default_factory=dict)
    schema: int = SCHEMA
    beside: Curves | Callable[[], Curves] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.beside, Curves):
            object.__setattr__(self, "training", self.beside.facts)
        for name in _PARTS:
            object.__setattr__(self, name, _plain(getattr(self, name)))
        _check(self._content())

    @property
    def done(self) -> bool:
        """Whether this record contains a result."""
        return self.status == "done"

    @property
    def settled(self) -> bool:
        """Whether this record has no result and another attempt with the same arithmetic would end the same way."""
        return self.status in SETTLED and not self.provenance.get("unclean")

    def settled_on(self, arithmetic: str | None) -> bool:
        """Return whether the record is :attr:`settled` for this arithmetic (``None``: for any); see
        :func:`cglsuite.cells.portable.arithmetic`.

        Records from GPUs and older records do not state their arithmetic, so their cells are tried again.
        """
        here = self.environment.get("arithmetic")
        return self.settled and here is not None and arithmetic in (None, here)

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of the canonical JSON of everything else in the record. It detects damage, but is not a signature."""
        return _digest(self._content())

    @property
    def label(self) -> str:
        """A one-line label for display: preset, method and seeds."""
        seeds = self.cell["seeds"]
        return f"{self.cell['preset']} × {self.cell['method']} (order {seeds['order']}, split {seeds['split']}, init {seeds['init']})"

    @property
    def facts(self) -> list[tuple[str, Any]]:
        """(label, value) pairs that describe the cell and its environment."""
        device = f"{self.cell['device']}, {self.cell['threads']} threads"
        return [("backbone", self.cell["backbone"]), ("device", device), ("key", self.key)]

    @property
    def makers(self) -> list[Mapping[str, Any]]:
        """The code that computed this record, as mappings with ``role``, ``distribution``, ``version`` and ``source`` (SHA-256,
        hex).

        Metrics have the role ``metric`` and also state their ``names``. Older records do not contain them.
        """
        core = {"role": "core", "distribution": "cglsuite", **self.provenance["core"]}
        return [core, *self.provenance["plugins"], *({"role": "metric", **part} for part in self.provenance.get("metrics") or ())]

    def __repr__(self) -> str:
        return f"<Record {self.key[:12]} of {self.label}: {self.status}>"

    def _repr_html_(self) -> str:
        return displayed("record_card", self)

    @property
    def stream(self) -> Mapping[str, Any]:
        """Facts about a task-free stream: ``evaluations`` (the number of steps before each row of the matrix), ``delivered`` (the
        items of each latent task that had arrived by then), and ``exposure`` (the number of training items that arrive 0, 1, 2, ... times).
        Empty for a stream of tasks.
        """
        stream: Mapping[str, Any] = self.provenance.get("stream") or {}
        return stream

    @property
    def warnings(self) -> list[str]:
        """Warnings to consider before trusting the result, about the data file or about trainings that changed nothing."""
        return list(self.provenance.get("warnings") or ())

    @property
    def counters(self) -> Mapping[str, int]:
        """The method's counters by name (see :meth:`cglsuite.Method.counters`)."""
        counted: Mapping[str, int] = self.provenance.get("counters") or {}
        return counted

    def performance(self) -> NDArray[np.float64]:
        """Return the performance matrix, float64 ``[T + 1, T]``. Row 0 is before training. Entries without a query are NaN."""
        return as_array(self.matrix)

    def validation(self) -> NDArray[np.float64]:
        """Return the validation accuracies, float64 ``[T + 1, T]``. Row 0 and entries for unseen tasks are NaN."""
        return as_array(self.validation_matrix)

    def validation_average_performance(self) -> float:
        """Return ``1/T Σ_j V[T, j]``, the mean validation accuracy over all tasks after the last one; NaN if there is none. No test results
        are used.
        """
        values = [v for v in self.validation_matrix[-1] if v is not None] if self.validation_matrix else []
        return math.fsum(values) / len(values) if values else math.nan

    def curves(self) -> Curves:
        """Return the curves and fingerprints of the run, if they are stored with the record.

        Raises:
            NoCurvesError: they are not stored, or the stored ones have a different digest.
        """
        if not self.training:
            return Curves()
        curves = self.beside() if callable(self.beside) else self.beside
        if curves is None:
            raise NoCurvesError(f"record {self.key[:12]}: its curves are not stored with it; the record contains only their digest")
        return curves

    def training_curves(self) -> Sequence[Mapping[str, Any]]:
        """Return ``task``, ``loss`` and ``monitor`` by epoch, and ``best_epoch`` for each training. Raises the same errors as
        :meth:`curves`.
        """
        return self.curves().trainings

    def fingerprints(self) -> Sequence[Mapping[str, Any]]:
        """Return the digests of ``state`` and ``answers`` after each task. Raises the same errors as :meth:`curves`."""
        return self.curves().fingerprints

    def _content(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _PARTS}

    def copy(self) -> Record:
        """Return a copy for third-party code that shares no list or mapping with this record."""
        return dataclasses.replace(self, beside=copy.deepcopy(self.beside) if isinstance(self.beside, Curves) else self.beside)

    def with_parts(self, **parts: Any) -> Record:
        """Return a copy with some parts replaced by other JSON-serialisable values. The copy is not validated and has a different digest.

        This is for code that keeps many records in memory and needs little of each, since removing results per class needs no second
        validation. The copy has no curves attached.
        """
        record = object.__new__(type(self))
        for name in _PARTS:
            object.__setattr__(record, name, parts[name] if name in parts else getattr(self, name))
        object.__setattr__(record, "beside", None)
        return record

    def to_json(self) -> dict[str, Any]:
        """Return the record and its digest as JSON-serialisable values."""
        content = self._content()
        return content | {"digest": _digest(content)}

    def to_text(self) -> str:
        """Serialise the record for its file, as one line with sorted keys and exact floats."""
        return canonical_json(self.to_json()) + "\n"

    @classmethod
    def from_json(cls, content: str | bytes | Mapping[str, Any]) -> Record:
        """Parse a record from a file's text or from decoded JSON.

        Raises:
            StoreError: the content is not JSON, is truncated, does not match its digest, is out of bounds, or has an unknown schema
                (:class:`NewerSchemaError` for a later one).
        """
        data = _decode(content) if isinstance(content, (str, bytes)) else _plain(content)
        if not isinstance(data, dict):
            raise StoreError(f"a record is a JSON object, not {type(data).__name__}")
        schema = data.get("schema")
        if isinstance(schema, bool) or not isinstance(schema, int) or schema < _WITH_CURVES:
            raise StoreError(f"schema: {schema!r}; expected {_WITH_CURVES} or {SCHEMA}")
        if schema > SCHEMA:
            raise NewerSchemaError(
                f"the record has schema {schema}, but this version of cglsuite supports schemas up to {SCHEMA}: upgrade cglsuite"
            )
        known = {*_PARTS, "digest"} if schema == SCHEMA else {*_PARTS, "curves", "digest"} - {"training"}
        if differing := (known ^ data.keys()):
            raise StoreError(
                "; ".join(f"{name}: {'missing' if name in known else 'not a field of a record'}" for name in sorted(differing))
            )
        digest = data.pop("digest", None)
        if not (isinstance(content, (str, bytes)) and _as_written(content, digest)):
            computed = _digest(data)
            if digest != computed:
                raise StoreError(
                    f"digest: {digest!s:.12}, but the content gives {computed:.12}: the record was damaged or edited after it was written"
                )
        beside = _apart(data) if schema == _WITH_CURVES else None
        _check(data)
        record = object.__new__(cls)  # decoded JSON needs no conversion, only validation: this halves the reading time
        for name in _WITH_REPEATED:
            data[name] = {part: shared(value) for part, value in data[name].items()}
        for name in _PARTS:
            object.__setattr__(record, name, shared(data[name]) if name in _REPEATED else data[name])
        object.__setattr__(record, "beside", beside)
        return record


_PARTS = tuple(f.name for f in dataclasses.fields(Record) if f.name != "beside")


_shared: dict[bytes, Any] = {}


def shared(value: Any) -> Any:
    """Return a list or mapping of JSON types that equals ``value`` and is the same object for equal values, so that thousands of records
    of a campaign need the memory of one configuration. Other values are returned unchanged. Neither may be modified.
    """
    if not isinstance(value, (dict, list)):
        return value
    if len(_shared) >= _MAX_SHARED:
        _shared.clear()
    return _shared.setdefault(marshal.dumps(value, 2), value)  # format 2 has no references, so equal values have equal bytes


def canonical_json(data: Any) -> str:
    """Serialise a record or a part of it as :func:`cglsuite.base.hashing.canonical` does, without first converting it to JSON types."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(content: Mapping[str, Any]) -> str:
    try:
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()
    except ValueError as error:
        raise StoreError(f"a non-finite number, such as 1e999: {error}") from error


def _as_written(text: str | bytes, digest: object) -> bool:
    """Return whether the file is as :meth:`Record.to_text` writes it and has the digest ``digest``. Without the digest, such a file is the
    text that was digested, so it need not be serialised again, which is fast."""
    raw = text if isinstance(text, bytes) else text.encode(errors="replace")
    content = raw.strip().replace(f'"digest":"{digest}",'.encode(), b"", 1)
    return digest == hashlib.sha256(content).hexdigest()


def _decode(text: str | bytes) -> Any:
    """Decode the JSON value of a file.

    Pydantic's parser takes a quarter of the standard library's time. If it refuses a text, the library decides: a lone surrogate is JSON.
    """
    from pydantic_core import from_json

    def refuse(token: str) -> Any:
        raise ValueError(f"{token} is not JSON")

    raw = text if isinstance(text, bytes) else text.encode(errors="replace")
    with contextlib.suppress(ValueError):
        decoded = from_json(text, allow_inf_nan=False, cache_strings="keys")
        return _with_sorted_keys(decoded) if _may_be_long(raw) else decoded  # checking the depth takes as long as parsing
    try:
        return _with_sorted_keys(json.loads(text, parse_constant=refuse))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"not a JSON file: {error}") from error


def _may_be_long(text: bytes) -> bool:
    """Return whether a JSON text may contain a number that exceeds 64 bits. A search in the original text would take ten times as long."""
    pattern = text.translate(_PATTERN)
    mantissas = (pattern[max(0, found.start() - _LONGEST_MANTISSA) : found.start()] for found in _EXPONENT.finditer(pattern))
    return bool(_WHOLE.search(pattern)) or any(map(_MANTISSA.search, mantissas))


def _apart(data: dict[str, Any]) -> Curves:
    """Remove curves and fingerprints from a record of schema 3, which makes it one of schema 4; return them."""
    from cglsuite.cells.records.schema import CURVES

    curves, provenance = data.pop("curves"), data["provenance"]
    _validate(data, lambda: CURVES.validate_python(curves), "curves")
    prints: list[Any] = []
    if isinstance(provenance, dict):
        prints = provenance.get("fingerprints") or []
        data["provenance"] = {name: value for name, value in provenance.items() if name != "fingerprints"}
    beside = Curves(trainings=curves, fingerprints=prints)
    data |= {"schema": SCHEMA, "training": beside.facts}
    return beside


def _check(data: dict[str, Any]) -> None:
    from cglsuite.cells.records.schema import RecordModel

    _validate(data, lambda: RecordModel.model_validate(data))


def _validate(data: dict[str, Any], check: Callable[[], object], part: str = "") -> None:
    from pydantic import ValidationError

    try:
        check()
    except ValidationError as error:
        problems = [
            f"{key_path((*filter(None, [part]), *e['loc'])) or 'record'}: {problem_text(e)}" for e in error.errors(include_url=False)[:5]
        ]
        raise StoreError(f"record {str(data.get('key'))[:16]}: " + "; ".join(problems)) from error


def _plain(value: Any) -> Any:
    """Return JSON types with sorted keys, as they are read from a file."""
    try:
        return _with_sorted_keys(plain(value))
    except (TypeError, RecursionError) as error:
        raise StoreError(f"a record may contain only numbers, text, lists and mappings: {error}") from error


def _with_sorted_keys(value: Any, place: _Place = None, depth: int = 0) -> Any:
    """Return JSON types with sorted keys, checked to fit 64-bit numbers and a limited depth, as tables, indexes and JSON require."""
    if isinstance(value, (dict, list)) and depth >= _DEEPEST:
        raise StoreError(f"a field is nested more than {_DEEPEST} levels deep")
    if isinstance(value, dict):
        return {key: _with_sorted_keys(inner, (place, key), depth + 1) for key, inner in sorted(value.items())}
    if isinstance(value, list):
        return [_with_sorted_keys(inner, (place, number), depth + 1) for number, inner in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise StoreError(f"{key_path(_location(place))}: expected a finite number")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise StoreError(f"{key_path(_location(place))}: expected a whole number of at most 64 bits (given: {quoted(value)})")
    return value


_Place = tuple["_Place", str | int] | None


def _location(place: _Place) -> tuple[str | int, ...]:
    return () if place is None else (*_location(place[0]), place[1])


def as_array(rows: Matrix) -> NDArray[np.float64]:
    """Convert a record's matrix to float64, with NaN for ``None``."""
    import numpy as np

    return np.array([[math.nan if v is None else v for v in row] for row in rows], dtype=np.float64).reshape(
        len(rows), len(rows[0]) if rows else 0
    )


def ended(status: str, reason: str | None) -> str:
    """Describe how a cell without a result ended: ``diverged at epoch 12 of task 2: ...``, ``failed: ...``."""
    text = shown_reason(reason or "no reason")
    return f"{status} {text}" if text.startswith("at ") else f"{status}: {text}"


def shown_reason(reason: str) -> str:
    """Format a reason for display. It is shortened, and control sequences are removed, since it may contain the text of any error."""
    return shortened(plain_text(reason), _MAX_SHOWN)


def reason_of(error: BaseException, *, place: bool = True) -> str:
    """Format ``error`` as the reason in a record, with its text and, if ``place`` is set, the place where third-party code raised it."""
    name, text = type(error).__name__, said(error, _MAX_REASON)
    if isinstance(error, CglsuiteError):
        return recordable(text if text.strip() else name)
    frames = traceback.extract_tb(error.__traceback__)[-1:] if place else ()
    at = "".join(f" (at {Path(frame.filename).name}:{frame.lineno} in {frame.name})" for frame in frames)
    return recordable(f"{name}: {shortened(text, _MAX_REASON // 2)}{at}")


def recordable(text: str) -> str:
    """Convert ``text`` to a form that can be stored in a record: valid Unicode, cut to a length that tables can show."""
    return shortened(text.encode(errors="backslashreplace").decode(), _MAX_REASON)
