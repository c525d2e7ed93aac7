"""What differs in memory from the files of modules as they are now: a notebook may have edited either."""

from __future__ import annotations

import ast
import contextlib
import sys
import types
from collections import Counter
from functools import lru_cache
from pathlib import Path

from cglsuite.cells.code.objects import code_content, function_in, within

__all__ = ["edited_since", "set_constants"]


def edited_since(cls: type) -> list[str]:
    """What of a class and of the constants of its module differs in memory from the file as it is now, by name."""
    module = sys.modules[cls.__module__]
    try:
        source = Path(str(module.__file__)).read_bytes()
        codes: dict[str, list[types.CodeType]] = {}
        for code in within(compile(source, "<disk>", "exec", dont_inherit=True)):
            codes.setdefault(code.co_qualname, []).append(code)  # a setter has the name of its property
    except (OSError, SyntaxError, ValueError):
        return []
    functions = {name: function_in(value) for name, value in vars(cls).items()}
    found = [
        f"{cls.__qualname__}.{name}"
        for name, function in functions.items()
        if isinstance(function, types.FunctionType) and function.__module__ == cls.__module__ and not hasattr(function, "__wrapped__")
        if code_content(function.__code__) not in map(code_content, codes.get(function.__qualname__, ()))
    ]
    return found + set_constants(module)


def set_constants(module: types.ModuleType | None) -> list[str]:
    """The constants of a module, assigned once in its file, that have another value in memory."""
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        return []
    try:
        written = _constants(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    return [name for name, value in written.items() if repr(vars(module).get(name)) != value]


@lru_cache(maxsize=1024)
def _constants(source: bytes) -> dict[str, str]:
    """The literals that a module binds to a name which it binds only once, as text."""
    tree = ast.parse(source)
    bound = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and bound[name := node.targets[0].id] == 1:
            with contextlib.suppress(ValueError, TypeError):
                value = ast.literal_eval(node.value)
                if isinstance(value, (bool, int, float, complex, str, bytes, tuple)):
                    found[name] = repr(value)
    return found
