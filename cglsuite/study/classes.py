"""A method class as a plugin file, so that worker processes can run what a notebook defined.

A class of an importable module is named by that module: its source, and that of modules beside it, is in the key as usual. A class that was
defined in a notebook or script is pickled by value; its key is its source with the globals that it uses. Where a source or a global has no
stable text, the key is new each time, so that nothing is taken from the store that other code computed.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import math
import re
import sys
import textwrap
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from cglsuite.cells.code.neutral import normalised
from cglsuite.datafiles import DataRoot
from cglsuite.errors import UsageError
from cglsuite.hashing import plain
from cglsuite.learning import Method
from cglsuite.specs import LEVELS, SETTINGS, Hyperparameter, MethodSpec

__all__ = ["as_plugin_file", "source_with_globals", "spec_of"]

_TEMPLATE = '''"""Written by cglsuite for a class that was given in Python."""
{loading}
from cglsuite import Hyperparameter, MethodSpec, hookimpl


@hookimpl
def cglsuite_methods():
    return [{spec}]
'''
_LOADING = """
from cglsuite.learning.by_value import unpickled

SOURCE = {source!r}
{name} = unpickled(__file__)
"""


def as_plugin_file(method: type[Method]) -> tuple[Path, str, Path | None]:
    """The plugin file of a method class, the method's name, and the folder that its module needs on ``sys.path``.

    Raises:
        UsageError: not a class derived from :class:`cglsuite.Method`, or one that is defined inside a function.
    """
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise UsageError(f"method {method!r}: expected the name of a method, or a class derived from cglsuite.Method")
    if "<locals>" in method.__qualname__:
        raise UsageError(f"{method.__qualname__} is defined inside a function: define the class at the top level")
    module = sys.modules.get(method.__module__)
    file = getattr(module, "__file__", None)
    if method.__module__ != "__main__" and file:
        spec = spec_of(method, f"{method.__module__}:{method.__qualname__}")
        text = _TEMPLATE.format(loading="", spec=_written(spec))
        origin, inside = Path(file).absolute(), method.__module__.count(".")
        return _file(text, method.__name__, None), spec.name, origin.parents[inside + (origin.name == "__init__.py")]
    import cloudpickle

    source, stable = source_with_globals(method)
    text = source if stable else f"{source}\n# {uuid.uuid4()}"
    stem = _stem(method.__name__, text)
    spec = spec_of(method, f"{stem}:{method.__name__}")
    body = _TEMPLATE.format(loading=_LOADING.format(source=text, name=method.__name__), spec=_written(spec))
    return _file(body, method.__name__, cloudpickle.dumps(method), stem), spec.name, None


def spec_of(method: type[Method], factory: str) -> MethodSpec:
    """The spec that a class declares as its attribute ``spec``; otherwise one named after it, for every level and setting.

    ``hyperparameters`` of the class is a tuple of :class:`cglsuite.Hyperparameter`, or a mapping of names to defaults.
    """
    declared = getattr(method, "spec", None)
    if isinstance(declared, MethodSpec):
        return dataclasses.replace(declared, factory=factory)
    given = getattr(method, "hyperparameters", {})
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", method.__name__).lower().replace("_", "-")
    doc = inspect.cleandoc(method.__dict__.get("__doc__") or "").splitlines()
    return MethodSpec(
        name=words,
        summary=doc[0] if doc else f"{method.__name__}, defined in Python",
        factory=factory,
        levels=LEVELS,
        settings=SETTINGS,
        hyperparameters=tuple(given)
        if not isinstance(given, dict)
        else tuple(Hyperparameter(name=name, default=value, doc=f"{name} of {method.__name__}") for name, value in given.items()),
    )


def source_with_globals(method: type[Method]) -> tuple[str, bool]:
    """The source of a class with everything that it uses from its module, and whether that is all there is to it.

    Functions and classes of the same module are included by source without comments and docstrings, plain values by value, arrays and
    tensors by hash, modules and what they hold by name.
    """
    parts: dict[str, str] = {}
    stable = True
    waiting: list[Any] = [method]
    while waiting:
        item = waiting.pop()
        name = item.__qualname__
        if name in parts:
            continue
        try:
            parts[name] = ast.unparse(normalised(ast.parse(textwrap.dedent(inspect.getsource(item))), keeps_docs=False))
        except (OSError, TypeError, SyntaxError):
            parts[name], stable = repr(name), False
        for used, value in _used(item).items():
            if inspect.isclass(value) or isinstance(value, FunctionType):
                if value.__module__ == method.__module__:
                    waiting.append(value)
                else:
                    parts[used] = f"{used} = {value.__module__}:{value.__qualname__}"
            elif (text := _text_of(value)) is not None:
                parts[used] = f"{used} = {text}"
            else:
                parts[used], stable = used, False
    return "\n".join(parts[name] for name in sorted(parts)), stable


def _used(item: Any) -> dict[str, Any]:
    """The globals that a function, or the functions of a class, read; and the bases of a class."""
    functions = [item] if isinstance(item, FunctionType) else [_function(value) for value in vars(item).values()]
    used: dict[str, Any] = {} if isinstance(item, FunctionType) else {base.__name__: base for base in item.__bases__ if base is not object}
    for function in functions:
        if function is not None:
            names = _names(function.__code__)
            used |= {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    return used


def _function(value: Any) -> FunctionType | None:
    value = getattr(value, "__func__", getattr(value, "fget", value))
    return value if isinstance(value, FunctionType) else None


def _names(code: CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def _text_of(value: Any) -> str | None:
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        return f"{value.dtype.str}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    try:
        return repr(plain(_with_named_floats(value)))
    except TypeError:
        return None


def _with_named_floats(value: Any) -> Any:
    """The value with infinities and NaN by name: JSON has no form of theirs, and they are not the same code."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(float(value))}
    if isinstance(value, Mapping):
        return {key: _with_named_floats(inner) for key, inner in value.items()}
    return [_with_named_floats(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _written(spec: MethodSpec) -> str:
    """The spec as an expression."""
    fields = {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec) if f.name != "hyperparameters"}
    given = ", ".join(f"{name}={value!r}" for name, value in fields.items() if value is not None)
    declared = "".join(f"{_hyperparameter(h)}, " for h in spec.hyperparameters)
    return f"MethodSpec({given}, hyperparameters=({declared}))"


def _hyperparameter(declared: Hyperparameter) -> str:
    fields = {f.name: getattr(declared, f.name) for f in dataclasses.fields(declared) if f.name != "kind"}
    kind = f", kind={declared.kind.__name__}" if declared.kind else ""
    return f"Hyperparameter({', '.join(f'{name}={value!r}' for name, value in fields.items())}{kind})"


def _stem(name: str, text: str) -> str:
    return f"{name.lower()}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _file(text: str, name: str, pickled: bytes | None, stem: str = "") -> Path:
    stem = stem or _stem(name, text)
    folder = DataRoot.from_environment().cache / "given" / "methods" / stem
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.py"
    for target, content in ((path.with_suffix(".pkl"), pickled), (path, text.encode())):
        if content is not None and not target.exists():
            temporary = target.with_suffix(".part")
            temporary.write_bytes(content)
            temporary.replace(target)
    return path
