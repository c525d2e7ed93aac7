"""What a notebook has set and worker processes do not have: it is told, by name, before anything is trained.

Workers import libraries anew, and modules of one's own as their files are now. A function that was put into a module of a library or of the
suite, another default dtype, and whatever functions, methods and constants of an imported module of one's own differ from its file stay
behind; so does everything else that is set on objects of others, such as an item of a list, which nobody can name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from cglsuite.cells.code.edited import edited
from cglsuite.cells.code.objects import function_in
from cglsuite.cells.code.user import is_ours, is_user_module

__all__ = ["unsent"]

_LIBRARIES = ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "numpy")
_CLASSES = (("torch", "Tensor"), ("torch.nn", "Module"))


def unsent(modules: Iterable[str]) -> list[str]:
    """What this process has set and a worker has not, in words, sorted.

    Args:
        modules: the user's modules that a method imports.
    """
    return sorted({*_patched(), *_defaults(), *(f"{name}.{one}" for name in modules for one in edited(sys.modules.get(name)))})


def _defaults() -> Iterator[str]:
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.get_default_dtype() != torch.float32:
        yield f"torch's default dtype ({torch.get_default_dtype()})"


def _patched() -> Iterator[str]:
    """Attributes of libraries, of the suite's modules and of its classes, that hold a user's function or class; of any module that hold one
    of the notebook."""
    ours = [name for name in sys.modules if is_ours(name)]
    for name in (*_LIBRARIES, *ours):
        module = sys.modules.get(name)
        for attribute, value in list(vars(module).items()) if isinstance(module, ModuleType) else ():
            if _is_users(value):
                yield f"{name}.{attribute}"
            elif isinstance(value, type) and value.__module__ == name and name in ours:
                yield from _patched_class(name, value)
    for name, module in list(sys.modules.items()):
        if type(module) is ModuleType:
            for attribute, value in list(vars(module).items()):
                if type(value) is FunctionType and value.__module__ == "__main__" and _is_installed(name, module):
                    yield f"{name}.{attribute}"
    for name, attribute in _CLASSES:
        if (module := sys.modules.get(name)) is not None:
            yield from _patched_class(name, getattr(module, attribute))


def _is_installed(name: str, module: ModuleType) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names or "site-packages" in (getattr(module, "__file__", None) or "")


def _patched_class(module: str, cls: type) -> Iterator[str]:
    for attribute, value in vars(cls).items():
        if _is_users(function_in(value)):
            yield f"{module}.{cls.__qualname__}.{attribute}"


def _is_users(value: Any) -> bool:
    if not isinstance(value, (FunctionType, type)):
        return False
    home = value.__module__
    return home == "__main__" or (isinstance(home, str) and not is_ours(home) and home.partition(".")[0] not in _KNOWN and _users(home))


_KNOWN = {"torch", "numpy", "builtins", "typing", "functools", "collections", "enum", "dataclasses", "abc", "contextlib"}
_SEEN: dict[str, bool] = {}


def _users(home: str) -> bool:
    top = home.partition(".")[0]
    if top not in _SEEN:
        file = getattr(sys.modules.get(top), "__file__", None) or "site-packages"
        _SEEN[top] = "site-packages" not in file and is_user_module(top)  # the first part costs nothing
    return _SEEN[top]
