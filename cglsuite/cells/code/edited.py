"""What differs in memory from the files of modules as they are now: a notebook may have edited either."""

from __future__ import annotations

import ast
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from cglsuite.cells.code.objects import code_content, function_in, within

__all__ = ["edited"]

_WRAPPERS = (staticmethod, classmethod, property)
_PLAIN = (bool, int, float, complex, str, bytes, tuple)


@dataclass(frozen=True)
class _Written:
    """What a module's file says: ``constants``, literals that a name is bound to once; the same of ``functions`` with their defaults as
    text, ``None`` where these are no literals; the content of every code object, by qualified name; the names of its classes."""

    constants: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str | None] = field(default_factory=dict)
    contents: dict[str, list[Any]] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)


def edited(module: types.ModuleType | None) -> list[str]:
    """The functions, methods and constants of a module that differ in memory from its file as it is now, by name: the file was edited since
    it was loaded, or a notebook or script has set something."""
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ == "__main__":
        return []
    try:
        written = _written(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    places: dict[str, Mapping[str, Any]] = {"": vars(module)}
    places |= {f"{name}.": vars(cls) for name in written.classes if (cls := _class_at(module, name)) is not None}
    return sorted({full for prefix, names in places.items() for full in _differing(module, written, prefix, names)})


def _class_at(module: types.ModuleType, name: str) -> type | None:
    found: Any = module
    for part in name.split("."):
        found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
    return found if isinstance(found, type) and found.__module__ == module.__name__ else None


def _differing(module: types.ModuleType, written: _Written, prefix: str, names: Mapping[str, Any]) -> Iterator[str]:
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
            yield full  # a notebook put it there


def _defaults(function: types.FunctionType) -> str:
    return repr((function.__defaults__ or (), function.__kwdefaults__ or {}))


@lru_cache(maxsize=1024)
def _written(source: bytes) -> _Written:
    tree = ast.parse(source)
    found = _Written()
    for code in within(compile(source, "<disk>", "exec", dont_inherit=True)):
        found.contents.setdefault(code.co_qualname, []).append(code_content(code))  # a setter has the name of its property
    anywhere = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    anywhere |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    _read_scope(tree.body, "", anywhere, found)
    return found


def _read_scope(body: list[ast.stmt], prefix: str, anywhere: set[str], found: _Written) -> None:
    """Note what a module or class binds once, and nothing else sets."""
    nodes = list(_bindings(body))
    bound = Counter(node.id if isinstance(node, ast.Name) else node.name for node in nodes)
    for node in body:
        if isinstance(node, ast.ClassDef) and bound[node.name] == 1:
            found.classes.add(f"{prefix}{node.name}")
            _read_scope(node.body, f"{prefix}{node.name}.", anywhere, found)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and bound[node.name] == 1 and not node.decorator_list:
            found.functions[f"{prefix}{node.name}"] = _written_defaults(node.args)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and bound[target.id] == 1 and target.id not in anywhere and node.value is not None:
                literal = _literal(node.value)
                if type(literal) in _PLAIN:
                    found.constants[f"{prefix}{target.id}"] = repr(literal)


def _bindings(body: Iterable[ast.AST]) -> Iterator[ast.Name | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """What binds a name in a scope; not in the scopes inside of it."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Name):
            if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
                yield node
        elif not isinstance(node, ast.Lambda):
            yield from _bindings(ast.iter_child_nodes(node))


def _written_defaults(arguments: ast.arguments) -> str | None:
    values = tuple(map(_literal, arguments.defaults))
    named = {one.arg: _literal(value) for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value is not None}
    return None if ... in (*values, *named.values()) else repr((values, named))


def _literal(node: ast.expr) -> Any:
    """The value of a literal; ``...`` of any other expression."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return ...
