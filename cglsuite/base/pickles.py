"""Safe reading of untrusted pickles that contain only plain containers and objects the caller allows. No code from the file is run or
imported.

A pickle is a program that can import and call anything, and set attributes on everything that it can reach. :func:`read_pickle` interprets
a file in Python and supports only the instructions for containers, numbers and text. Names refer to factories from the caller, never to
imported objects. Only factories are called. State is set only on :class:`Stated` objects, which check it. Keys of mappings are numbers and
text. NumPy arrays are built here from their bytes (:data:`ARRAYS`), since NumPy's own ``__setstate__`` trusts its input, and a crafted
dtype crashes the interpreter.
"""

from __future__ import annotations

import io
import math
import pickle
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

__all__ = ["ARRAYS", "Stated", "as_array", "read_pickle"]

Names = Mapping[tuple[str, str], Callable[..., Any]]
_DTYPE = re.compile(r"[<>=|]?[biuf][1248]")
_KEYS = (int, str, bool, float, type(None))
#: Instructions in pickles of containers. Excluded: persistent ids, extensions, buffers, ``INST`` and ``OBJ``.
_OPCODES = (
    *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "NEWOBJ"),
    *("NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    *("EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
    *("GET", "BINGET", "LONG_BINGET", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"),
)


class Stated:
    """Base class for unpickled objects that receive their state after creation. Subclasses validate the state."""

    def set_state(self, state: Any) -> None:
        """Set the state, at most once.

        Raises:
            pickle.UnpicklingError: the state is not valid for such an object.
        """
        raise NotImplementedError


class _Name:
    """Represents an allowed name in a pickle. It can only be called."""

    __slots__ = ("called", "make")

    def __init__(self, called: str, make: Callable[..., Any]) -> None:
        self.called, self.make = called, make


class _Reader(pickle._Unpickler):
    """Python's pure-Python unpickler, restricted to fewer instructions."""

    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, content: bytes, names: Names) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._names = names

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _Name(f"{module}.{name}", self._names[module, name])
        except KeyError:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not allowed") from None

    def _call(self) -> None:
        arguments = self.stack.pop()
        name = self.stack[-1]
        if type(name) is not _Name or type(arguments) is not tuple:
            raise pickle.UnpicklingError("it calls an object that is not allowed")
        self.stack[-1] = name.make(*arguments)

    def _build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], Stated):
            raise pickle.UnpicklingError(f"it sets the state of an object of type {type(self.stack[-1]).__name__}, which has no state")
        self.stack[-1].set_state(state)

    def _set_items(self) -> None:
        items = self.pop_mark()
        self._put(self.stack[-1], items)

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._put(self.stack[-1], [key, value])

    def _dict(self) -> None:
        items = self.pop_mark()
        self.append({})
        self._put(self.stack[-1], items)

    def _append(self) -> None:
        value = self.stack.pop()
        self._extend(self.stack[-1], [value])

    def _appends(self) -> None:
        items = self.pop_mark()
        self._extend(self.stack[-1], items)

    @staticmethod
    def _extend(target: Any, items: list[Any]) -> None:
        if type(target) is not list:
            raise pickle.UnpicklingError(f"it appends to {type(target).__name__}")
        target.extend(items)

    @staticmethod
    def _put(target: Any, items: list[Any]) -> None:
        if type(target) is not dict or len(items) % 2:
            raise pickle.UnpicklingError(f"it sets items of {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, _KEYS):
                raise pickle.UnpicklingError(f"a mapping has a key of type {type(key).__name__}; expected a number or text")
            target[key] = value

    dispatch: ClassVar[dict[int, Any]] = {
        **{code[0]: pickle._Unpickler.dispatch[code[0]] for code in (getattr(pickle, name) for name in _OPCODES)},
        pickle.REDUCE[0]: _call,
        pickle.NEWOBJ[0]: _call,
        pickle.BUILD[0]: _build,
        pickle.SETITEM[0]: _set_item,
        pickle.SETITEMS[0]: _set_items,
        pickle.DICT[0]: _dict,
        pickle.APPEND[0]: _append,
        pickle.APPENDS[0]: _appends,
    }


def read_pickle(content: bytes, names: Names) -> Any:
    """Read a pickle that contains only lists, tuples, mappings, numbers, text, and objects created by ``names``.

    Args:
        content: the whole file.
        names: maps each (module, name) in the file to a factory, which is called with the arguments in the file.

    Raises:
        pickle.UnpicklingError: the file contains a name or instruction that is not allowed, or an invalid object state.
        EOFError, ValueError, LookupError, TypeError: the file is truncated or damaged.
    """
    try:
        return _Reader(content, names).load()
    except KeyError as error:
        if isinstance(error.args[0] if error.args else None, int):
            raise pickle.UnpicklingError(f"it has the instruction {error.args[0]}, which is not allowed") from error
        raise
    except (AttributeError, AssertionError, OverflowError, RecursionError, struct.error) as error:
        raise pickle.UnpicklingError(f"it is not a pickle ({type(error).__name__}: {error})") from error


class _Dtype(Stated):
    def __init__(self, text: Any, align: Any = 0, copy: Any = 0) -> None:
        if not isinstance(text, str) or not _DTYPE.fullmatch(text) or align not in (0, False):
            raise pickle.UnpicklingError(f"an array has dtype {text!r:.60}; expected numbers of 1 to 8 bytes")
        self.text = text.lstrip("<>=|")

    def set_state(self, state: Any) -> None:
        # (version, byte order, sub-array, names, fields, size, alignment, flags[, metadata])
        plain = type(state) is tuple and len(state) in (8, 9) and state[1] in ("<", ">", "=", "|")
        if not plain or any(part is not None for part in state[2:5]) or (len(state) == 9 and state[8]):
            raise pickle.UnpicklingError("an array has a dtype with fields, sub-arrays or metadata; expected plain numbers")
        self.text = state[1] + self.text

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.text)


class _Array(Stated):
    value: np.ndarray[Any, Any] | None = None

    def set_state(self, state: Any) -> None:
        if type(state) is not tuple or len(state) != 5:
            raise pickle.UnpicklingError("an array has an invalid state")
        _, shape, dtype, fortran, content = state
        if type(shape) is not tuple or len(shape) > 8 or not all(type(n) is int and n >= 0 for n in shape) or not isinstance(dtype, _Dtype):
            raise pickle.UnpicklingError("an array has an invalid state")
        content = content.encode("latin1") if isinstance(content, str) else content
        if type(content) is not bytes or len(content) != math.prod(shape) * dtype.dtype.itemsize:
            raise pickle.UnpicklingError(f"an array of shape {shape} and {dtype.text} has the wrong number of bytes")
        self.value = np.frombuffer(content, dtype.dtype).reshape(shape, order="F" if fortran else "C")


def as_array(obj: Any) -> np.ndarray[Any, Any]:
    """Convert an object from a pickle read with :data:`ARRAYS` to a read-only NumPy array.

    Raises:
        pickle.UnpicklingError: it is not an array, or an array without content.
    """
    if not isinstance(obj, _Array) or obj.value is None:
        raise pickle.UnpicklingError(f"expected an array, but it contains an object of type {type(obj).__name__}")
    return obj.value


def _reconstruct(kind: Any, shape: Any, code: Any) -> _Array:
    if not (type(kind) is _Name and kind.called == "numpy.ndarray"):
        raise pickle.UnpicklingError("it creates an array of an unknown kind")
    return _Array()


def _scalar(dtype: Any, content: Any) -> int | float | bool:
    array = _Array()
    array.set_state((1, (), dtype, False, content))
    value: int | float | bool = as_array(array).item()
    return value


def _encode(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("it encodes something other than bytes")
    return text.encode("latin1")


def _no_call(*_: Any) -> Any:
    raise pickle.UnpicklingError("it creates an array of an unknown kind")


ARRAYS: Names = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    ("numpy", "ndarray"): _no_call,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    **{(module, "bytes"): (lambda: b"") for module in ("__builtin__", "builtins")},  # how Python 3 writes empty bytes for Python 2
}
"""Names in pickles of NumPy arrays of plain numbers; see :func:`as_array`."""
