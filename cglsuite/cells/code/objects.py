"""Hash a class or function in memory, as defined in a notebook or script, together with every value that it reads.

Hashing source text would not be enough. Python keeps no text for classes of a notebook kernel, and a class is more than its text: default
arguments, closures, decorators, attributes set later, and the *current* values of its globals. The hash covers

- for a function: its byte code, exception table, names and constants (with their types), defaults, closure, annotations and attributes;
  file names and line numbers are omitted, so that comments and layout do not matter;
- for a class: its bases, metaclass and every attribute in its dictionary, except what Python derives (the state of ABCs and caches);
- for a value: its content, and the type of every object on the way, so a method of a dataclass counts if an instance of it is used;
- the globals that functions read (``LOAD_GLOBAL``, ``LOAD_NAME``), each under its name, and the globals that those read in turn.

Contents of an importable module are represented by the module: it is listed in :attr:`Hashed.modules`, and the caller hashes its sources.
Byte code differs between minor versions of Python, so the digest contains the version.
"""

from __future__ import annotations

import abc
import ast
import contextlib
import copyreg
import dis
import enum
import functools
import hashlib
import sys
import types
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from cglsuite.cells.code.syntax import absolute
from cglsuite.cells.code.user import is_ours, is_user_module

_DERIVED = {
    *("__dict__", "__weakref__", "__module__", "__firstlineno__", "__static_attributes__"),
    *("_abc_impl", "__abstractmethods__", "_abc_registry", "_abc_cache", "_abc_negative_cache", "_abc_negative_cache_version"),
}
_READS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_BUILT_IN = (
    *(types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodWrapperType, types.MethodDescriptorType),
    *(types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType),
)


class Unhashable(TypeError):
    """Raised for a value whose content cannot be hashed, such as a lock, an open file or a generator. ``path`` leads to the value."""

    def __init__(self, path: str, value: object) -> None:
        super().__init__(f"{path} is a {type(value).__module__}.{type(value).__qualname__}, whose content cannot be compared")
        self.path, self.value = path, value


@dataclass(frozen=True)
class Hashed:
    """The result of :func:`hashed`: digests of the parts, with their dependencies.

    Attributes:
        parts: the digests of the class itself and of every global that it needs, by name.
        modules: the importable modules whose names it uses, ``"module"`` or ``"module:name"``, sorted.
        unstable: descriptions of where values without comparable content are; each part with such a value gets a new digest every time.
        files: the source files of the hashed functions, as their code objects name them; not part of the digest.
    """

    parts: Mapping[str, str]
    modules: tuple[str, ...]
    unstable: tuple[Unhashable, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of the parts and of Python's minor version, on which bytecode depends."""
        return _sha(repr((sys.version_info[:2], sorted(self.parts.items()))))


def hashed(obj: type | types.FunctionType, memory: dict[Any, str] | None = None) -> Hashed:
    """Compute the digests of a class or function and of everything that it uses.

    Args:
        memory: digests of tensors and arrays that were already hashed, shared by several calls within one run.
    """
    return _Hasher({} if memory is None else memory).run(obj)


def is_importable(obj: Any) -> bool:
    """Return whether another process can import this class or function by its module and name. Reloading the module in this process does
    not matter.
    """
    module = sys.modules.get(getattr(obj, "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or (getattr(module, "__spec__", None) is None and not hasattr(module, "__file__")):
        return False
    target: Any = module
    for name in obj.__qualname__.split("."):
        target = getattr(target, name, None)
    return target is obj or _is_former(obj, target)


def _is_former(obj: Any, now: Any) -> bool:
    """Return whether a class or function is the version that its module held under this name before a reload by the user or the suite."""
    if isinstance(obj, types.FunctionType) and isinstance(now, types.FunctionType):
        same_file = obj.__code__.co_filename == now.__code__.co_filename and not hasattr(now, "__wrapped__")
    else:
        same_file = isinstance(obj, type) and isinstance(now, type)
    return same_file and (now.__module__, now.__qualname__) == (obj.__module__, obj.__qualname__)


def code_content(code: types.CodeType) -> Any:
    """Return the relevant parts of a code object as nested tuples, without file names and line numbers."""
    return _Hasher({}).code(code)


def within(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield all code objects nested in a code object, at any depth."""
    for inner in _nested_code(code):
        yield inner
        yield from within(inner)


def function_in(value: Any) -> Any:
    """Return the function behind a class attribute (a method, class method, static method or property), or the value itself if there is
    none.
    """
    return getattr(value, "__func__", getattr(value, "fget", value))


def globals_of(function: types.FunctionType) -> dict[str, Any]:
    """Return the globals that a function and its nested functions read, with their current values."""
    return {name: function.__globals__[name] for name in sorted(_globals_read(function.__code__)) if name in function.__globals__}


@dataclass
class _Hasher:
    memory: dict[Any, str]
    parts: dict[str, str] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    unstable: list[Unhashable] = field(default_factory=list)
    files: set[str] = field(default_factory=set)

    def run(self, obj: type | types.FunctionType) -> Hashed:
        self.waiting: list[tuple[str, dict[str, Any], str]] = []
        self.spaces: dict[int, tuple[str, dict[str, Any]]] = {}
        self.queued: set[tuple[int, str]] = set()
        self.sets: list[Any] = []
        self.path = [obj.__qualname__]
        space = getattr(sys.modules.get(obj.__module__), "__dict__", {})
        if space.get(obj.__qualname__) is obj:
            self._queue_global(space, obj.__qualname__)
        else:
            self._part(f"{obj.__qualname__}, as given", obj, obj.__qualname__)
        while self.waiting:
            name, space, where = self.waiting.pop()
            self._part(f"{self._space(space)}{name}", space[name], where)
        return Hashed(dict(sorted(self.parts.items())), tuple(sorted(self.modules)), tuple(self.unstable), tuple(sorted(self.files)))

    def _part(self, name: str, value: Any, place: str) -> None:
        self.seen: dict[int, tuple[int, Any]] = {}
        self.path = [place]
        before = len(self.unstable)
        try:
            text = self._text(value, top=True)
        except RecursionError:
            text = self._without_content(value)
        if len(self.unstable) > before:
            import uuid

            text = (text, uuid.uuid4().hex)
        self.parts[name] = _sha(repr(text))

    def _space(self, space: dict[str, Any]) -> str:
        """Return a prefix that distinguishes the globals of one module from another's; none for the first module."""
        if id(space) not in self.spaces:
            name, others = space.get("__name__", ""), [prefix for prefix, _ in self.spaces.values()]
            prefix = f"{name}." if others else ""
            number = 2
            while prefix in others:
                prefix, number = f"{name}#{number}.", number + 1
            self.spaces[id(space)] = (prefix, space)
        return self.spaces[id(space)][0]

    @contextlib.contextmanager
    def _at(self, step: str) -> Iterator[None]:
        self.path.append(step)
        try:
            yield
        finally:
            self.path.pop()

    # --- values ---------------------------------------------------------------------------------------------------------------------------

    def _text(self, value: Any, *, top: bool = False) -> Any:
        """Return the content of a value as nested tuples of text."""
        kind = type(value)
        if kind is int:
            return "int", hex(value)  # repr refuses very long integers
        if value is None or value is ... or value is NotImplemented or kind in (bool, str, bytes):
            return kind.__name__, repr(value)
        if kind in (float, complex):
            return (kind.__name__, *(part.hex() for part in ((value,) if kind is float else (value.real, value.imag))))
        if isinstance(value, types.ModuleType) and sys.modules.get(value.__name__) is value:
            return "module", self._module(value)
        if kind is tuple:
            return "tuple", tuple(self._text(item) for item in value)
        if kind in (range, slice):
            return kind.__name__, repr(value)
        if isinstance(value, types.CodeType):
            return self.code(value)
        if issubclass(kind, _BUILT_IN):
            return self._built_in(value)
        if id(value) in self.seen:  # also if a value refers to itself
            return "again", self.seen[id(value)][0]
        self.seen[id(value)] = (len(self.seen), value)
        if kind is types.FunctionType:  # a proxy reports that it is one
            return self._function(value, top=top)
        if issubclass(kind, type):
            return self._class(value, top=top)
        if issubclass(kind, types.ModuleType):  # created at run time: no other process can import it
            content = {name: item for name, item in vars(value).items() if not (name.startswith("__") and name.endswith("__"))}
            return "module", value.__name__, self._mapping(content)
        return self._object(value)

    def _built_in(self, value: Any) -> Any:
        owner: Any = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
        if owner is None or isinstance(owner, (type, types.ModuleType)):
            return "built-in", getattr(value, "__module__", None) or "", getattr(owner, "__qualname__", ""), value.__qualname__
        return "built-in", value.__name__, self._text(owner)  # a bound method

    def _module(self, module: types.ModuleType) -> str:
        self.modules.add(module.__name__)
        return module.__name__

    def _name_if_elsewhere(self, obj: Any, top: bool) -> Any:
        """Return the name of a class or function that is hashed elsewhere: in a module, or as a global with its own part."""
        if is_importable(obj):
            self.modules.add(f"{obj.__module__}:{obj.__qualname__}")
            return "named", obj.__module__, obj.__qualname__
        space, name = getattr(sys.modules.get(obj.__module__), "__dict__", {}), str(obj.__qualname__)
        if not top and space.get(name) is obj:
            return "global", self._queue_global(space, name)
        return None

    def _queue_global(self, space: dict[str, Any], name: str) -> str:
        """Queue a global to be hashed as a part, once; return the part's name."""
        full = f"{self._space(space)}{name}"
        if (id(space), name) not in self.queued:
            self.queued.add((id(space), name))
            self.waiting.append((name, space, name if self.path[0] == name else f"{self.path[0]}, global {name}"))
        return full

    # --- functions --------------------------------------------------------------------------------------------------------------------

    def _function(self, function: types.FunctionType, *, top: bool) -> Any:
        if (known := self._name_if_elsewhere(function, top)) is not None:
            return known
        with self._at(f"function {function.__qualname__}"):
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            return (
                "function",
                self.code(function.__code__),
                self._globals(function),
                ("defaults", self._text(function.__defaults__), self._mapping(function.__kwdefaults__ or {})),
                ("closure", tuple((name, self._cell(cell)) for name, cell in cells)),
                ("annotations", self._mapping(_annotations(function))),
                ("attributes", self._mapping(vars(function))),
            )

    def _cell(self, cell: types.CellType) -> Any:
        try:
            return self._text(cell.cell_contents)
        except ValueError:
            return ("empty cell",)

    def _globals(self, function: types.FunctionType) -> Any:
        home = function.__globals__.get("__name__", "")
        if home != "__main__" and home in sys.modules and not is_ours(home) and not is_user_module(home):
            return ("of a library", home)
        pairs: list[tuple[str, Any]] = []
        for name, value in globals_of(function).items():
            module = isinstance(value, types.ModuleType) and sys.modules.get(value.__name__) is value
            pairs.append((name, ("module", self._module(value)) if module else self._queue_global(function.__globals__, name)))
            if module:
                self.modules.update(_submodules(value.__name__, function.__code__))
        self.modules.update(_imports(function.__code__, function.__globals__.get("__package__") or ""))
        return tuple(pairs)

    def code(self, code: types.CodeType) -> Any:
        self.files.add(code.co_filename)
        constants = tuple(self._constant(constant) for constant in code.co_consts)
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return "code", code.co_code.hex(), code.co_exceptiontable.hex(), counts, names, constants

    def _constant(self, constant: Any) -> Any:
        if type(constant) is frozenset:
            return "frozenset", tuple(sorted(repr(self._constant(item)) for item in constant))
        if type(constant) is tuple:
            return "tuple", tuple(self._constant(item) for item in constant)
        return self._text(constant)

    # --- classes ----------------------------------------------------------------------------------------------------------------------

    def _class(self, cls: type, *, top: bool) -> Any:
        if cls.__module__ == "builtins":
            return "built-in", cls.__qualname__
        if (known := self._name_if_elsewhere(cls, top)) is not None:
            return known
        with self._at(f"class {cls.__qualname__}"):
            attributes = []
            for name, value in sorted(vars(cls).items()):
                if (
                    name in _DERIVED
                    or (name == "__doc__" and _is_generated(cls))
                    or (isinstance(value, types.GetSetDescriptorType) and name in ("__dict__", "__weakref__"))
                ):
                    continue
                with self._at(f"{name}"):
                    attributes.append((name, self._text(value)))
            bases = tuple(self._text(base) for base in cls.__bases__)
            virtual = _virtual_subclasses(cls)
            if virtual:
                attributes.append(("registered", self._text(virtual)))
            return "class", cls.__qualname__, bases, self._text(type(cls)), tuple(attributes)

    # --- other objects ----------------------------------------------------------------------------------------------------------------

    def _object(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(_safe_getattr(value, "__qualname__"), str) and is_importable(value):  # a wrapper around a function
            return self._name_if_elsewhere(value, top=False)
        if kind in (dict, types.MappingProxyType):
            return kind.__name__, self._mapping(value, ordered=True)
        if kind is list:
            return "list", tuple(self._text(item) for item in value)
        if kind in (set, frozenset):
            self.sets.append(value)
            items = tuple(sorted(_sha(repr(self._set_member(item))) for item in value))
            self.sets.pop()
            return kind.__name__, items
        if kind in (staticmethod, classmethod):
            return kind.__name__, self._text(value.__func__), self._mapping(wrapper_state(value))
        if kind is property:
            return kind.__name__, *(self._text(part) for part in (value.fget, value.fset, value.fdel, value.__doc__))
        if kind is functools.cached_property:
            return self._text(kind), value.attrname, self._text(value.func)
        if isinstance(value, functools._lru_cache_wrapper):
            wrapped = wrapper_state(value)
            parts = self._text(value.__wrapped__), self._mapping(value.cache_parameters())
            return "cached", *parts, *([self._mapping(wrapped)] if wrapped else ())
        if isinstance(value, types.MethodType):
            return "method", self._text(value.__func__), self._text(value.__self__)
        if isinstance(value, enum.Enum):
            state = {name: item for name, item in vars(value).items() if name not in ("__objclass__", "_sort_order_")}
            return "enum", self._text(kind), self._mapping(state)
        if isinstance(value, weakref.ref):
            return self._text(kind), self._text(value())
        if isinstance(value, (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)):
            return self._text(kind)  # weak references have no content of their own
        if (content := self._array(value)) is not None:
            return content
        return self._pickle_reduction(value)

    def _mapping(self, mapping: Mapping[Any, Any], *, ordered: bool = False) -> Any:
        items = mapping.items() if ordered else sorted(mapping.items())
        pairs = []
        for key, item in items:
            with self._at(repr(key)):
                pairs.append((self._text(key), self._text(item)))
        return tuple(pairs)

    def _set_member(self, item: Any) -> Any:
        """Return the content of a set's member, independent of what was visited before, since sets have no order."""
        before, self.seen = self.seen, {id(item): (place, item) for place, item in enumerate(self.sets)}
        try:
            return self._text(item)
        finally:
            self.seen = before

    def _array(self, value: Any) -> Any:
        """Hash tensors and arrays by their bytes; each is read only once."""
        module = type(value).__module__.partition(".")[0]
        if module == "numpy" and _is_plain_array(value) and not value.dtype.hasobject:
            mark = None
        elif module == "torch" and hasattr(value, "detach") and hasattr(value, "_version"):
            mark = value._version
        else:
            return None
        extra: tuple[Any, ...] = (type(value).__qualname__, str(value.dtype), tuple(value.shape))
        if mark is None:
            return "array", *extra, _sha(value.tobytes())
        extra += (str(value.layout), str(value.device.type), value.requires_grad)
        known = (id(value), mark)
        if known not in self.memory:
            self.memory[known] = _tensor_digest(value)
            self.memory[id(value), "kept"] = value  # keeps the object alive, so that its identity is not reused
        return (
            "tensor",
            *extra,
            self.memory[known],
            self._mapping(dict(getattr(value, "__dict__", {}))),
        )

    def _pickle_reduction(self, value: Any) -> Any:
        """Hash any other object by what pickle reduces it to: its type, its arguments and its state."""
        kind = type(value)
        try:
            reducer = copyreg.dispatch_table.get(kind)
            reduced = reducer(value) if reducer is not None else value.__reduce_ex__(4)
        except Exception:  # noqa: BLE001 - by foreign classes
            return self._without_content(value)
        if isinstance(reduced, str):
            return "named", getattr(value, "__module__", "") or "", reduced
        function, arguments, *rest = reduced
        state, items, pairs = (*rest, None, None, None)[:3]
        return (
            "object",
            self._text(kind),
            self._text(function),
            self._text(arguments),
            self._text(state),
            tuple(self._text(item) for item in items or ()),
            tuple((self._text(key), self._text(item)) for key, item in pairs or ()),
        )

    def _without_content(self, value: Any) -> Any:
        self.unstable.append(Unhashable(", ".join(self.path), value))
        return "without content", type(value).__qualname__


def _annotations(function: types.FunctionType) -> Mapping[str, Any]:
    try:
        return function.__annotations__
    except NameError:  # evaluated lazily from Python 3.14 on
        return {}


def _virtual_subclasses(cls: type) -> set[type]:
    """Return the virtual subclasses of an ABC, which ``isinstance`` accepts."""
    return {subclass for ref in vars(abc)["_get_dump"](cls)[0] if (subclass := ref()) is not None} if "_abc_impl" in vars(cls) else set()


def wrapper_state(value: Any) -> dict[str, Any]:
    """Return the attributes that were set on a function's wrapper, such as a ``staticmethod``, and not copied from the function."""
    copied = {"__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__wrapped__", "__annotate__", "__type_params__"}
    return {name: item for name, item in vars(value).items() if name not in copied}


def _globals_read(code: types.CodeType) -> set[str]:
    """Return the globals that a code object and its nested code read."""
    names = {str(instruction.argval) for instruction in dis.get_instructions(code) if instruction.opname in _READS}
    return names.union(*(_globals_read(inner) for inner in _nested_code(code)))


def _imports(code: types.CodeType, package: str) -> set[str]:
    """Return the modules that a code object and its nested code import at run time, by statements or by ``import_module`` with a
    literal."""
    names = set[str]()
    before: list[Any] = [None, None]
    literal = "import_module" in code.co_names or "__import__" in code.co_names
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            level, wanted = before
            module = absolute(instruction.argval, level, package)
            names.update([module, *(f"{module}.{name}" for name in wanted or () if name != "*")])
        if instruction.opname == "LOAD_CONST":
            before = [before[1], instruction.argval]
            if literal and isinstance(instruction.argval, str) and all(part.isidentifier() for part in instruction.argval.split(".")):
                names.add(instruction.argval)
    return names.union(*(_imports(inner, package) for inner in _nested_code(code)))


def _submodules(package: str, code: types.CodeType) -> set[str]:
    """Return the submodules that code reaches as attributes of a package: ``import package.part`` binds only the package."""
    read = set(code.co_names).union(*(inner.co_names for inner in within(code)))
    return {name for name in list(sys.modules) if name.startswith(f"{package}.") and set(name[len(package) + 1 :].split(".")) <= read}


def _safe_getattr(value: Any, name: str) -> Any:
    """Return an attribute's value, or ``None`` if reading it fails for any reason."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - by foreign classes
        return None


def _is_plain_array(value: Any) -> bool:
    import numpy as np

    return type(value) is np.ndarray or isinstance(value, np.generic)


def _is_generated(cls: type) -> bool:
    """Return whether a class's docstring is the signature that ``dataclass`` generates, which contains addresses of functions."""
    return "__dataclass_fields__" in vars(cls) and (cls.__doc__ or "").startswith(f"{cls.__name__}(")


def _nested_code(code: types.CodeType) -> Iterable[types.CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, types.CodeType))


def _tensor_digest(tensor: Any) -> str:
    import torch

    with torch.no_grad():
        plain = tensor.detach().resolve_conj().resolve_neg()
        if plain.layout != torch.strided:
            parts = [plain.to_sparse_coo().coalesce()] if plain.layout != torch.sparse_coo else [plain.coalesce()]
            return _sha(repr([(_tensor_digest(part.indices()), _tensor_digest(part.values())) for part in parts]))
        content = plain.cpu().contiguous()
        return _sha(content.reshape(-1).view(torch.uint8).numpy().tobytes() if content.numel() else b"")


def _sha(content: str | bytes) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content).hexdigest()


# How modules in memory differ from their current files: a notebook may have edited either.

_WRAPPERS = (staticmethod, classmethod, property)
_PLAIN = (bool, int, float, complex, str, bytes, tuple)


@dataclass(frozen=True)
class _SourceFacts:
    """Facts in a module's file: ``constants`` are literals that a name is bound to once; ``functions`` are the same with their defaults as
    text, ``None`` if these are not literals; also the content of every code object, by qualified name, and the names of the classes."""

    constants: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str | None] = field(default_factory=dict)
    contents: dict[str, list[Any]] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)


def edited(module: types.ModuleType | None) -> list[str]:
    """Return the names of a module's functions, methods and constants that differ between memory and the current file."""
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ == "__main__":
        return []
    try:
        written = _source_facts(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    places: dict[str, Mapping[str, Any]] = {"": vars(module)}
    places |= {f"{name}.": vars(cls) for name in written.classes if (cls := _class_at(module, name)) is not None}
    return sorted({full for prefix, names in places.items() for full in _edited_names(module, written, prefix, names)})


def _class_at(module: types.ModuleType, name: str) -> type | None:
    target: Any = module
    for part in name.split("."):
        target = vars(target).get(part) if isinstance(target, (types.ModuleType, type)) else None
    return target if isinstance(target, type) and target.__module__ == module.__name__ else None


def _edited_names(module: types.ModuleType, written: _SourceFacts, prefix: str, names: Mapping[str, Any]) -> Iterator[str]:
    for name, value in names.items():
        function = function_in(value) if type(value) in _WRAPPERS else value
        kind, full = type(function), f"{prefix}{name}"
        if full in written.constants:
            if kind in _PLAIN and repr(value) != written.constants[full]:
                yield full
        elif kind is types.FunctionType and function.__code__.co_filename == module.__file__ and not hasattr(function, "__wrapped__"):
            code, defaults = code_content(function.__code__), written.functions.get(full)
            if code not in written.contents.get(function.__qualname__, ()) or defaults not in (None, _defaults(function)):
                yield full
        elif (kind is types.FunctionType or issubclass(kind, type)) and function.__module__ == "__main__":
            yield full  # assigned by a notebook


def _defaults(function: types.FunctionType) -> str:
    return repr((function.__defaults__ or (), function.__kwdefaults__ or {}))


@lru_cache(maxsize=1024)
def _source_facts(source: bytes) -> _SourceFacts:
    tree = ast.parse(source)
    written = _SourceFacts()
    for code in within(compile(source, "<disk>", "exec", dont_inherit=True)):
        written.contents.setdefault(code.co_qualname, []).append(code_content(code))  # a setter has the name of its property
    anywhere = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    anywhere |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    _read_scope(tree.body, "", anywhere, written)
    return written


def _read_scope(body: list[ast.stmt], prefix: str, anywhere: set[str], written: _SourceFacts) -> None:
    """Collect the names that a module or class binds exactly once."""
    nodes = list(_bindings(body))
    bound = Counter(node.id if isinstance(node, ast.Name) else node.name for node in nodes)
    for node in body:
        if isinstance(node, ast.ClassDef) and bound[node.name] == 1:
            written.classes.add(f"{prefix}{node.name}")
            _read_scope(node.body, f"{prefix}{node.name}.", anywhere, written)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and bound[node.name] == 1 and not node.decorator_list:
            written.functions[f"{prefix}{node.name}"] = _written_defaults(node.args)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and bound[target.id] == 1 and target.id not in anywhere and node.value is not None:
                literal = _literal(node.value)
                if type(literal) in _PLAIN:
                    written.constants[f"{prefix}{target.id}"] = repr(literal)


def _bindings(body: Iterable[ast.AST]) -> Iterator[ast.Name | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Yield the names that a scope binds, without its nested scopes."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Name):
            if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
                yield node
        elif not isinstance(node, ast.Lambda):
            yield from _bindings(ast.iter_child_nodes(node))


def _written_defaults(arguments: ast.arguments) -> str | None:
    values = tuple(map(_literal, arguments.defaults))
    named = {
        parameter.arg: _literal(value)
        for parameter, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    }
    return None if ... in (*values, *named.values()) else repr((values, named))


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal; ``...`` for any other expression."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return ...
